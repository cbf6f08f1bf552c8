//! The decoder of server-sent events against a corpus, in every cut (wire protocol, 7.3).

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use proptest::prelude::*;
use tangle_sandbox::transport::sse::{Decoder, Frames, MAX_FIELD_UNITS, ReadError, SseError};

type Event = (String, Option<String>, Option<String>);
type Outcome = (Vec<Event>, Option<SseError>, bool);

fn decode(limit: usize, chunks: &[&[u8]]) -> Outcome {
    let mut decoder = Decoder::new(limit);
    let mut events = Vec::new();
    for chunk in chunks {
        let mut input = *chunk;
        loop {
            match decoder.next(&mut input) {
                Ok(Some(frame)) => events.push((
                    frame.data().to_owned(),
                    frame.event().map(str::to_owned),
                    frame.id().map(str::to_owned),
                )),
                Ok(None) => break,
                Err(error) => return (events, Some(error), decoder.is_mid_frame()),
            }
        }
        assert!(input.is_empty());
    }
    (events, None, decoder.is_mid_frame())
}

/// Decodes `body` whole, byte by byte, in chunks of several sizes and cut at each one and two places.
fn every_cut(name: &str, limit: usize, body: &[u8]) -> Outcome {
    let whole = decode(limit, &[body]);
    for size in [1, 2, 3, 5, 7, 16] {
        let chunks: Vec<_> = body.chunks(size).collect();
        assert_eq!(decode(limit, &chunks), whole, "{name}: chunks of {size}");
    }
    for first in 0..=body.len() {
        for second in first..=body.len() {
            let cut = [&body[..first], &body[first..second], &body[second..]];
            assert_eq!(
                decode(limit, &cut),
                whole,
                "{name}: cut at {first}, {second}"
            );
        }
    }
    whole
}

fn event(data: &str) -> Event {
    (data.into(), None, None)
}

fn named(data: &str, name: &str) -> Event {
    (data.into(), Some(name.into()), None)
}

fn with_id(data: &str, id: &str) -> Event {
    (data.into(), None, Some(id.into()))
}

#[test]
fn wire_7_1_a_frame_cut_at_any_byte_parses_to_the_same_event() {
    let a = || vec![event("a")];
    let ab = || vec![event("a"), event("b")];
    let cases: Vec<(&str, &[u8], Vec<Event>)> = vec![
        ("line feeds", b"data: a\n\ndata: b\n\n", ab()),
        ("crlf", b"data: a\r\n\r\ndata: b\r\n\r\n", ab()),
        ("bare cr", b"data: a\r\rdata: b\r\r", ab()),
        ("mixed line ends", b"data: a\r\n\ndata: b\r\r\n", ab()),
        ("mark", b"\xEF\xBB\xBFdata: a\n\n", a()),
        ("mark before a cr", b"\xEF\xBB\xBF\rdata: a\r\r", a()),
        (
            "two marks",
            b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n",
            vec![event("b")],
        ),
        (
            "half a mark",
            b"\xEF\xBBdata: a\n\ndata: b\n\n",
            vec![event("b")],
        ),
        ("mark alone", b"\xEF\xBB\xBF", vec![]),
        (
            "three data lines",
            b"data: a\ndata: b\ndata:c\n\n",
            vec![event("a\nb\nc")],
        ),
        (
            "crlf data lines",
            b"data: a\r\ndata\r\ndata: c\r\n\r\n",
            vec![event("a\n\nc")],
        ),
        (
            "data lines around a field",
            b"data: a\nevent: e\ndata: b\n\n",
            vec![named("a\nb", "e")],
        ),
        (
            "empty data",
            b"data\n\ndata:\n\ndata: \n\n",
            vec![event(""), event(""), event("")],
        ),
        ("two empty data lines", b"data\ndata\n\n", vec![event("\n")]),
        ("no space", b"data:a\n\n", a()),
        ("two spaces", b"data:  a\n\n", vec![event(" a")]),
        ("no data", b"event: x\n\nid: 4\n\ndata: a\n\n", a()),
        ("comments", b": hi\n\n:\n:x\ndata: a\n: between\n\n", a()),
        (
            "a colon in the value",
            b"data: a:b: c\n\n",
            vec![event("a:b: c")],
        ),
        (
            "other fields",
            b"datax: 1\ndat: 2\nidx: 3\neventual: 4\nx\ndata: a\n\n",
            a(),
        ),
        (
            "id is its own frame's",
            b"id: 1\ndata: a\n\ndata: b\n\n",
            vec![with_id("a", "1"), event("b")],
        ),
        ("id without data is not kept", b"id: 1\n\ndata: a\n\n", a()),
        ("id with nul", b"id: a\0b\ndata: a\n\n", a()),
        (
            "id with nul after an id",
            b"id: 1\nid: \0\ndata: a\n\n",
            vec![with_id("a", "1")],
        ),
        ("empty id", b"id: 1\nid\ndata: a\n\n", a()),
        (
            "event is its own frame's",
            b"event: e\ndata: a\n\ndata: b\n\n",
            vec![named("a", "e"), event("b")],
        ),
        (
            "the last event wins",
            b"event: long-name\nevent: e\ndata: a\n\n",
            vec![named("a", "e")],
        ),
        ("bad retry", b"retry: 1x\ndata: a\n\nretry: 7\n\n", a()),
        ("many blank lines", b"\n\r\n\r\rdata: a\n\n\n\n", a()),
        (
            "cut characters",
            "data: n\u{e9}\u{2014}\u{1F600}\n\n".as_bytes(),
            vec![event("n\u{e9}\u{2014}\u{1F600}")],
        ),
        ("last cr cr", b"data: a\r\r", a()),
        ("nothing", b"", vec![]),
    ];
    assert!(cases.len() >= 18);
    for (name, body, expected) in cases {
        let (events, error, _) = every_cut(name, 1 << 20, body);
        assert_eq!((events, error), (expected, None), "{name}");
    }
}

#[test]
fn wire_7_2_id_is_not_inherited() {
    let (events, ..) = every_cut("ids", 1 << 20, b"id: 41\ndata: a\n\ndata: b\n\n");
    assert_eq!(events, [with_id("a", "41"), event("b")]);
}

#[test]
fn wire_7_3_a_partial_frame_at_the_end_is_dropped_and_seen() {
    for body in [
        "data: {\"a\":1}",
        "data: {\"a\":1}\n",
        "data: {\"a\":1}\r\n",
        "da",
    ] {
        let (events, error, mid_frame) = every_cut(body, 1 << 20, body.as_bytes());
        assert_eq!((events, error, mid_frame), (vec![], None, true), "{body:?}");
    }
    for body in [
        "",
        "data: a\n\n",
        "data: a\r\n\r\n",
        ": x\n\n",
        ": x\n",
        "event: x\n\n",
    ] {
        let (.., mid_frame) = every_cut(body, 1 << 20, body.as_bytes());
        assert!(!mid_frame, "{body:?}");
    }
}

#[test]
fn what_is_not_utf8_ends_the_stream() {
    for body in [
        &b"data: a\n\ndata: \xff\n\ndata: b\n\n"[..],
        b"data: a\n\ndata: b\nevent: \xc3\n\n",
        b"data: a\n\ndata: b\nid: \xa9\n\n",
        b"data: a\n\ndata: x\xc3\nevent: \xa9\n\n",
        b"data: a\n\ndata: x\xc3\ndata: \xa9\n\n",
    ] {
        let (events, error, _) = every_cut("utf-8", 1 << 20, body);
        assert_eq!((events, error), (vec![event("a")], Some(SseError::Utf8)));
    }
}

#[test]
fn a_raw_frame_above_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let refused = Some(SseError::FrameTooLarge { limit: 16 });
    let at_limit = b"data: 123456789\n: a comment 23\n\ndata: a\r\ndata: b\r\n\r\n";
    let (events, error, _) = every_cut("at the limit", 16, at_limit);
    assert_eq!((events.len(), error), (2, None));
    for body in [
        &b"data: a\n\ndata: 1234567890\n\n"[..],
        b"data: a\n\ndata: 12345678901234567890",
        b"data: a\n\ndata: a\ndata: b\ndata: c\n\n",
        b"data: a\n\n: an endless comment without any end",
        b"data: a\n\n: a comment that is too long\ndata: b\n\n",
        b"data: a\n\nzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
        b"data: a\n\nevent: 12345678901234567890",
    ] {
        let (events, error, _) = every_cut("above the limit", 16, body);
        assert_eq!((events, error), (vec![event("a")], refused));
    }
}

#[test]
fn keep_alives_do_not_add_up_to_a_frame() {
    let body = b": keep-alive\n".repeat(1000);
    let (events, error, mid_frame) = decode(16, &[&body]);
    assert_eq!((events, error, mid_frame), (vec![], None, false));
}

#[test]
fn type_and_id_are_bounded_in_utf16_units() {
    for (field, error) in [
        ("event", SseError::EventTooLong),
        ("id", SseError::IdTooLong),
    ] {
        for text in ["a", "\u{e9}", "\u{20ac}"] {
            let body = |units| format!("{field}: {}\ndata: a\n\n", text.repeat(units));
            let fits = decode(1 << 20, &[body(MAX_FIELD_UNITS).as_bytes()]);
            assert_eq!((fits.0.len(), fits.1), (1, None), "{field} {text}");
            let over = decode(1 << 20, &[body(MAX_FIELD_UNITS + 1).as_bytes()]);
            assert_eq!((over.0.len(), over.1), (0, Some(error)), "{field} {text}");
        }
        let body = format!("{field}: {}\ndata: a\n\n", "\u{1F600}".repeat(257));
        assert_eq!(decode(1 << 20, &[body.as_bytes()]).1, Some(error));
    }
}

#[test]
fn after_an_error_everything_is_swallowed() {
    let mut decoder = Decoder::new(1 << 20);
    assert!(decoder.next(&mut &b"data: \xff\n\n"[..]).is_err());
    let mut input = &b"data: a\n\n"[..];
    assert_eq!(decoder.next(&mut input), Ok(None));
    assert!(input.is_empty());
}

#[tokio::test]
async fn a_stream_of_chunks_gives_its_frames_and_says_where_it_was_cut() {
    let chunks = ["data: a\n", "\ndata: b\n\nda", "ta: c"];
    let body = stream::iter(chunks.map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk))));
    let mut frames = Frames::new(body, Decoder::default());
    let mut seen = Vec::new();
    while let Some(frame) = frames.next().await {
        seen.push(frame.unwrap().into_data());
    }
    assert_eq!(seen, ["a", "b"]);
    assert!(frames.is_mid_frame());
}

#[tokio::test]
async fn a_failing_body_ends_the_stream_once() {
    let body = stream::iter([Ok(Bytes::from("data: a\n\n")), Err("reset"), Ok("x".into())]);
    let mut frames = Frames::new(body, Decoder::default());
    assert!(frames.next().await.unwrap().is_ok());
    let error = frames.next().await.unwrap().unwrap_err();
    assert!(matches!(error, ReadError::Body("reset")));
    assert!(frames.next().await.is_none());
}

/// Bytes that look like server-sent events more often than chance would have it.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data: ".to_vec()),
        Just(b"data".to_vec()),
        Just(b"event:".to_vec()),
        Just(b"id: ".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b": ".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just("\u{e9}\u{1F600}".as_bytes().to_vec()),
        "[a-z:]{0,24}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_events(
        body in body(),
        limit in 8usize..200,
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.push(0);
        cuts.push(body.len());
        cuts.sort_unstable();
        let chunks: Vec<_> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
        prop_assert_eq!(decode(limit, &chunks), decode(limit, &[&body]));
        let bytes: Vec<_> = body.chunks(1).collect();
        prop_assert_eq!(decode(limit, &bytes), decode(limit, &[&body]));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        decode(64, &[&bytes]);
    }
}
