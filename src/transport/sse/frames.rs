//! The decoder on a stream of byte chunks.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::Stream;

use super::{Decoder, Frame, SseError};

/// What ends a [`Frames`] stream early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError<E> {
    /// The body failed.
    #[error("the body of the stream failed")]
    Body(#[source] E),
    /// The body is not a stream of events within the limits.
    #[error(transparent)]
    Frame(#[from] SseError),
}

/// The frames of a body. It ends after the first error; a partial frame at the end of the body is dropped.
#[derive(Debug)]
pub struct Frames<S> {
    body: S,
    decoder: Decoder,
    chunk: Bytes,
    ended: bool,
}

impl<S> Frames<S> {
    /// The frames of `body`, read by `decoder`.
    pub fn new(body: S, decoder: Decoder) -> Self {
        Self {
            body,
            decoder,
            chunk: Bytes::new(),
            ended: false,
        }
    }

    /// Whether the body ended (or stands) inside a frame.
    pub fn is_mid_frame(&self) -> bool {
        self.decoder.is_mid_frame()
    }
}

impl<S, E> Stream for Frames<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = Result<Frame, ReadError<E>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        while !this.ended {
            let mut input = &this.chunk[..];
            let frame = this.decoder.next(&mut input);
            let used = this.chunk.len() - input.len();
            this.chunk.advance(used);
            match frame {
                Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(None) => this.chunk = Bytes::new(),
                Err(error) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
            match ready!(Pin::new(&mut this.body).poll_next(context)) {
                Some(Ok(chunk)) => this.chunk = chunk,
                Some(Err(error)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(ReadError::Body(error))));
                }
                None => this.ended = true,
            }
        }
        Poll::Ready(None)
    }
}
