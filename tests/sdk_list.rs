//! Listing sandboxes and backends (wire protocol, 4.8 and 5.1).

mod support {
    pub mod service;
}

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use support::service::{Answer, Seen, Service, record, refusal};
use tangle_sandbox::sandbox::{Error, ListOptions, Status};
use tangle_sandbox::transport::{Code, RetryPolicy};

const LIST: &str = "GET /v1/sandboxes";
const BACKENDS: &str = "GET /v1/backends";

/// A page of a list of `total` sandboxes, as the query asks for it.
fn page(seen: &Seen, total: usize) -> Vec<Value> {
    let number = |name: &str| -> usize {
        let query = seen.line.split_once('?').unwrap().1;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value);
        value.collect::<Vec<_>>()[0].parse().unwrap()
    };
    let (limit, offset) = (number("limit"), number("offset"));
    (offset..total.min(offset + limit))
        .map(|number| record(&format!("sbx_{number}"), "running"))
        .collect()
}

fn wrapped(page: Vec<Value>) -> Answer {
    Answer::Json(200, json!({ "sandboxes": page }))
}

fn queries(service: &Service) -> Vec<String> {
    let seen = service.seen();
    let query = |seen: &Seen| seen.line.split_once('?').unwrap().1.to_owned();
    seen.iter().map(query).collect()
}

#[tokio::test]
async fn wire_4_5_two_and_a_half_pages_are_three_requests() {
    let service = Service::start().await;
    service.on(LIST, |seen, _| wrapped(page(seen, 2500)));
    let records = service
        .client()
        .inventory(ListOptions::new())
        .await
        .unwrap();
    assert_eq!(records.len(), 2500);
    assert_eq!(records[2499].id.as_str(), "sbx_2499");
    assert_eq!(
        queries(&service),
        [
            "limit=1000&offset=0",
            "limit=1000&offset=1000",
            "limit=1000&offset=2000"
        ]
    );
}

#[tokio::test]
async fn wire_4_5_a_list_of_exactly_one_page_asks_for_a_second() {
    let service = Service::start().await;
    service.on(LIST, |seen, _| wrapped(page(seen, 1000)));
    let records = service
        .client()
        .inventory(ListOptions::new())
        .await
        .unwrap();
    assert_eq!(records.len(), 1000);
    assert_eq!(queries(&service).len(), 2);
}

#[tokio::test]
async fn wire_4_6_a_repeated_id_ends_the_stream_late_and_the_inventory_whole() {
    let service = Service::start().await;
    service.on(LIST, |seen, nth| {
        let mut page = page(seen, 30);
        if nth % 2 == 1 {
            page[3] = record("sbx_4", "running");
        }
        wrapped(page)
    });
    let options = ListOptions::new().page(10);
    let client = service.client();
    let mut listing = client.list(options.clone());
    for number in 0..10 {
        let record = listing.next().await.unwrap().unwrap();
        assert_eq!(record.id.as_str(), format!("sbx_{number}"));
    }
    let error = listing.next().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "list: a page repeats an entry");
    assert_eq!(error.code(), Code::ProtocolError);
    assert!(listing.next().await.is_none());
    assert_eq!(service.seen().len(), 2);
    let error = client.inventory(options).await.unwrap_err();
    assert_eq!(error.to_string(), "list: a page repeats an entry");
}

#[tokio::test]
async fn a_page_that_cannot_be_trusted_is_an_error() {
    for (page, rule) in [
        (
            json!({ "sandboxes": [record("a", "running"), { "id": "b" }] }),
            "a page has a malformed entry",
        ),
        (
            json!({ "sandboxes": [record("a", "running"), 7] }),
            "a page has a malformed entry",
        ),
        (
            json!({ "sandboxes": [record("", "running")] }),
            "a page has a malformed entry",
        ),
        (
            json!({ "sandboxes": "none" }),
            "a page has a malformed entry",
        ),
        (json!({ "items": [] }), "a page has no `sandboxes`"),
        (json!("none"), "a page is neither object nor array"),
        (
            json!([
                record("a", "running"),
                record("b", "running"),
                record("c", "running")
            ]),
            "a page has more entries than were asked for",
        ),
    ] {
        let service = Service::start().await;
        service.always(LIST, Answer::Json(200, page));
        let mut listing = service.client().list(ListOptions::new().page(2));
        let error = listing.next().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), format!("list: {rule}"));
        assert!(listing.next().await.is_none());
        assert_eq!(service.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_bare_array_and_an_envelope_are_pages_too() {
    for answer in [
        json!([record("a", "running")]),
        json!({ "success": true, "data": { "sandboxes": [record("a", "running")] } }),
        json!({ "sandboxes": [record("a", "running")], "total": 1 }),
    ] {
        let service = Service::start().await;
        service.always(LIST, Answer::Json(200, answer));
        let records = service
            .client()
            .inventory(ListOptions::new())
            .await
            .unwrap();
        assert_eq!(records.len(), 1);
    }
}

#[tokio::test]
async fn a_page_that_fails_is_never_the_end_of_the_list() {
    let service = Service::start().await;
    service.on(LIST, |seen, nth| match nth {
        0 | 2 => wrapped(page(seen, 30)),
        _ => refusal(500, "", json!({})),
    });
    let client = service.builder().retry(RetryPolicy::OFF).build().unwrap();
    let listing = client.list(ListOptions::new().page(10));
    let items: Vec<_> = listing.collect().await;
    assert_eq!(items.len(), 11);
    assert_eq!(items[10].as_ref().unwrap_err().code(), Code::ServerError);
    let error = client.inventory(ListOptions::new().page(10)).await;
    assert_eq!(error.unwrap_err().code(), Code::ServerError);
}

#[tokio::test]
async fn the_list_is_asked_for_as_the_caller_says() {
    let service = Service::start().await;
    service.on(LIST, |seen, _| wrapped(page(seen, 0)));
    let options = ListOptions::new()
        .status(Status::Running)
        .status(Status::Other("a&b".into()))
        .scope("team:t 1")
        .page(5_000);
    service.client().inventory(options).await.unwrap();
    assert_eq!(
        queries(&service),
        ["limit=1000&offset=0&status=running&status=a%26b&scope=team%3At%201"]
    );
}

#[tokio::test]
async fn nothing_is_read_until_it_is_asked_for() {
    let service = Service::start().await;
    service.on(LIST, |seen, _| wrapped(page(seen, 100_000)));
    let mut listing = service.client().list(ListOptions::new().page(2));
    assert_eq!(service.seen().len(), 0);
    listing.next().await.unwrap().unwrap();
    listing.next().await.unwrap().unwrap();
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn a_list_without_end_ends_with_an_error() {
    let service = Service::start().await;
    service.on(LIST, |seen, _| wrapped(page(seen, usize::MAX / 2)));
    let mut listing = service.client().list(ListOptions::new());
    let mut records = 0;
    let error = loop {
        match listing.next().await.unwrap() {
            Ok(_) => records += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(records, 100_000);
    assert_eq!(
        error.to_string(),
        "list: the list has more than 100,000 entries"
    );
}

#[tokio::test]
async fn wire_5_1_an_unknown_backend_type_is_kept_and_an_absent_one_is_none() {
    let service = Service::start().await;
    let catalog = json!({
        "backends": [
            { "type": "opencode", "name": "OpenCode", "capabilities": { "streaming": true } },
            { "type": "novelty", "capabilities": { "streaming": false, "flying": 1 }, "extra": 2 },
        ],
        "timestamp": "2026-01-01T00:00:00Z",
    });
    service.always(BACKENDS, Answer::Json(200, catalog));
    let client = service.client();
    let backends = client.list_backends().await.unwrap();
    assert_eq!(backends.len(), 2);
    let novelty = client.backend("novelty").await.unwrap().unwrap();
    assert_eq!(novelty, backends[1]);
    assert_eq!(novelty.extra["extra"], 2);
    assert_eq!(client.backend("absent").await.unwrap(), None);
}

#[tokio::test]
async fn wire_5_2_a_catalogue_that_cannot_be_read_is_not_an_empty_one() {
    for answer in [
        Answer::Json(200, json!({ "timestamp": "2026-01-01T00:00:00Z" })),
        Answer::Json(200, json!({ "backends": [{ "name": "x" }] })),
        Answer::Json(200, json!([])),
        Answer::Whole(200, "", b"<html>".to_vec()),
        Answer::Whole(200, "", Vec::new()),
    ] {
        let service = Service::start().await;
        service.always(BACKENDS, answer);
        let error = service.client().list_backends().await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidBackendRegistry);
        assert!(matches!(error, Error::Catalog(_)));
        assert!(!error.is_retryable());
        let error = service.client().backend("opencode").await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidBackendRegistry);
    }
}

#[tokio::test]
async fn a_refused_catalogue_is_passed_on_unchanged() {
    let service = Service::start().await;
    service.always(BACKENDS, refusal(403, "FORBIDDEN", json!({})));
    let error = service.client().list_backends().await.unwrap_err();
    assert_eq!(error.code(), Code::Forbidden);
    assert_eq!(error.failure().unwrap().status(), Some(403));
}

#[tokio::test]
async fn health_needs_no_more_than_a_status() {
    let service = Service::start().await;
    service.always("GET /health", Answer::Json(200, json!({ "status": "ok" })));
    let health = service.client().health().await.unwrap();
    assert_eq!(serde_json::to_value(&health).unwrap()["status"], "ok");
}
