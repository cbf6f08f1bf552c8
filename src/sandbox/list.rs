//! Reading the sandboxes of an account page by page.

use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::contract::types::{SandboxId, SandboxRecord};
use crate::contract::{limits, routes};
use crate::transport::{Call, Transport};

use super::error::Error;
use super::record::Status;

/// Which sandboxes to list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    statuses: Vec<Status>,
    scope: Option<String>,
    page: Option<usize>,
}

impl ListOptions {
    /// All of the caller's own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those in this status; may be given several times.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.statuses.push(status);
        self
    }

    /// `all`, `personal` or `team:<id>`.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// How many entries a page has: 1 to 1,000, which is also the default.
    #[must_use]
    pub fn page(mut self, entries: usize) -> Self {
        self.page = Some(entries.clamp(1, limits::MAX_PAGE));
        self
    }

    fn limit(&self) -> usize {
        self.page.unwrap_or(limits::MAX_PAGE)
    }
}

/// A stream of sandbox records, newest first. After an error it has ended.
#[must_use = "nothing is read until the stream is polled"]
pub struct Listing {
    transport: Transport,
    options: ListOptions,
    offset: usize,
    seen: HashSet<SandboxId>,
    ready: VecDeque<SandboxRecord>,
    state: State,
}

enum State {
    /// The next page has to be asked for.
    Next,
    Reading(BoxFuture<'static, Result<Vec<SandboxRecord>, Error>>),
    /// The last page was short, or there was an error.
    Finished,
}

impl Listing {
    pub(crate) fn new(transport: Transport, options: ListOptions) -> Self {
        Listing {
            transport,
            options,
            offset: 0,
            seen: HashSet::new(),
            ready: VecDeque::new(),
            state: State::Next,
        }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    ///
    /// As the call that reads the page, or `PROTOCOL_ERROR` when the page cannot be trusted.
    pub async fn next(&mut self) -> Option<Result<SandboxRecord, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn ask(&self) -> BoxFuture<'static, Result<Vec<SandboxRecord>, Error>> {
        let mut call = Call::new(&routes::SANDBOXES_LIST, &[])
            .query("limit", &self.options.limit().to_string())
            .query("offset", &self.offset.to_string());
        for status in &self.options.statuses {
            call = call.query("status", status.as_str());
        }
        if let Some(scope) = &self.options.scope {
            call = call.query("scope", scope);
        }
        let transport = self.transport.clone();
        Box::pin(async move { page(transport.json(call).await?) })
    }

    fn take(&mut self, records: Vec<SandboxRecord>) -> Result<(), Error> {
        let limit = self.options.limit();
        let no = |rule: &str| Err(Error::protocol("list", rule));
        if records.len() > limit {
            return no("a page has more entries than were asked for");
        }
        self.offset += records.len();
        if self.offset > limits::MAX_INVENTORY {
            return no("the list has more than 100,000 entries");
        }
        for record in &records {
            if !self.seen.insert(record.id.clone()) {
                return no("a page repeats an entry");
            }
        }
        self.state = match records.len() < limit {
            true => State::Finished,
            false => State::Next,
        };
        self.ready.extend(records);
        Ok(())
    }
}

/// A page is `{ "sandboxes": […] }`, or the list itself.
fn page(value: Value) -> Result<Vec<SandboxRecord>, Error> {
    let malformed = |_| Error::protocol("list", "a page has a malformed entry");
    match value {
        Value::Array(_) => serde_json::from_value(value).map_err(malformed),
        Value::Object(mut members) => match members.remove("sandboxes") {
            Some(list) => serde_json::from_value(list).map_err(malformed),
            None => Err(Error::protocol("list", "a page has no `sandboxes`")),
        },
        _ => Err(Error::protocol(
            "list",
            "a page is neither object nor array",
        )),
    }
}

impl Stream for Listing {
    type Item = Result<SandboxRecord, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(record)));
            }
            let result = match &mut self.state {
                State::Finished => return Poll::Ready(None),
                State::Next => {
                    let reading = self.ask();
                    self.state = State::Reading(reading);
                    continue;
                }
                State::Reading(reading) => std::task::ready!(reading.as_mut().poll(cx)),
            };
            if let Err(error) = result.and_then(|records| self.take(records)) {
                self.state = State::Finished;
                self.ready.clear();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl std::fmt::Debug for Listing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listing")
            .field("options", &self.options)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
