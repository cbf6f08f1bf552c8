//! One operation of a handle, waiting to be awaited.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::error::Error;

/// An operation that starts when it is awaited.
///
/// It is a named type that says nothing of the handle's state, so that a call in the wrong state is one error of the
/// compiler and not three.
#[must_use = "nothing happens until this is awaited"]
pub struct Call<'a, T> {
    work: BoxFuture<'a, Result<T, Error>>,
}

impl<'a, T> Call<'a, T> {
    pub(crate) fn new(work: impl Future<Output = Result<T, Error>> + Send + 'a) -> Self {
        Call {
            work: Box::pin(work),
        }
    }
}

impl<T> Future for Call<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.work.as_mut().poll(cx)
    }
}

impl<T> std::fmt::Debug for Call<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Call")
    }
}
