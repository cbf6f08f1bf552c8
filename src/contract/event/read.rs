//! One frame to one event.

use crate::contract::bounds;
use crate::contract::types::UsageMode;
use crate::contract::usage;

use super::canonical;
use super::expected::Carried;
use super::{EnvironmentEvent, Expected, RawFrame, Refusal, is_terminal, project_terminal};

/// The type of the frame with which a harness tells the identity that it keeps to itself.
const PRIVATE: &str = "native.session.observed";

/// Reads one frame of a stream that was opened for the run `expected`.
///
/// A terminal frame is cut down to its summary first, so that its history may be of any size. Then the frame keeps the
/// bounds of event content, belongs to the run, and gets its canonical form and its usage. A frame of an unknown type, or
/// whose data does not make a canonical event, is an event all the same.
///
/// # Errors
///
/// [`Refusal`]; each ends the stream.
pub fn read_frame(frame: RawFrame, expected: &Expected) -> Result<EnvironmentEvent, Refusal> {
    if frame.kind() == PRIVATE {
        return Err(Refusal::PrivateIdentity);
    }
    let terminal = is_terminal(frame.kind());
    let frame = match terminal {
        true => summary(frame)?,
        false => frame,
    };
    bounds::frame(frame.kind(), frame.id(), frame.data()).map_err(Refusal::ContentBound)?;
    if frame.data().contains_key("contextTransferReceipt") {
        return Err(Refusal::UnsolicitedReceipt);
    }
    let carried = Carried::read(&frame)?;
    carried.check(frame.kind(), expected)?;
    let normalized = canonical::of(&frame, &carried)?;
    let usage = usage::from_data(frame.data())?;
    let mode = usage::mode(frame.data());
    let mode = mode.or((terminal && usage.is_some()).then_some(UsageMode::Cumulative));
    Ok(EnvironmentEvent::of_frame(frame, normalized, usage, mode))
}

fn summary(mut frame: RawFrame) -> Result<RawFrame, Refusal> {
    let data = project_terminal(frame.take_data()).map_err(|refusal| refusal.below("/data"))?;
    Ok(frame.with_data(data))
}
