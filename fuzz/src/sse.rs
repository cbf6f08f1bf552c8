//! The target of server-sent events, which needs the client.

use tangle_sandbox::contract::event;
use tangle_sandbox::transport::frame::RawFrame;
use tangle_sandbox::transport::sse::{Decoder, Frame};

use crate::targets::event_of;

/// The largest frame that is taken here.
const LIMIT: usize = 4096;

/// A body gives the same frames however it is cut, and a frame never stops its reader.
pub fn sse(bytes: &[u8]) {
    let Some((&cut, body)) = bytes.split_first() else {
        return;
    };
    let whole = decode(&[body]);
    let pieces: Vec<&[u8]> = body.chunks(usize::from(cut).max(1)).collect();
    assert_eq!(decode(&pieces), whole);
    for frame in whole.0 {
        assert!(frame.data().len() <= LIMIT);
        if let Some(kind) = frame.event()
            && let Ok(frame) = event::RawFrame::parse(kind, frame.id(), frame.data())
        {
            event_of(frame);
        }
        if let Ok(Some(frame)) = RawFrame::read(frame) {
            let _ = frame.object();
        }
    }
}

/// The frames, and whether the body ended well and between two frames.
fn decode(pieces: &[&[u8]]) -> (Vec<Frame>, bool, bool) {
    let mut decoder = Decoder::new(LIMIT);
    let mut frames = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        loop {
            match decoder.next(&mut input) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (frames, false, false),
            }
        }
    }
    (frames, true, decoder.is_mid_frame())
}
