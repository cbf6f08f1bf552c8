//! What the transport must hold: bounds, order, and lines that are no messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::{Bounds, CallError, Connection, Ended, Inbound, Inbox, Peer, connect};

struct Ours {
    peer: Peer,
    inbound: Inbox,
    _connection: Connection,
    to_us: DuplexStream,
    from_us: DuplexStream,
}

fn ours(bounds: Bounds) -> Ours {
    let (to_us, input) = tokio::io::duplex(1024);
    let (output, from_us) = tokio::io::duplex(1024);
    let (peer, inbound, connection) = connect(input, output, bounds);
    Ours {
        peer,
        inbound,
        _connection: connection,
        to_us,
        from_us,
    }
}

#[tokio::test]
async fn an_escaped_method_is_the_same_method() {
    let mut ours = ours(Bounds::default());
    ours.to_us
        .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"session\\/update\",\"params\":{}}\n")
        .await
        .unwrap();
    let Some(Inbound::Notification { method, .. }) = ours.inbound.recv().await else {
        panic!()
    };
    assert_eq!(method, "session/update");
}

#[tokio::test]
async fn a_stray_line_does_not_disturb_what_follows() {
    let mut ours = ours(Bounds::default());
    ours.to_us
        .write_all(b"Welcome!\n[1]\n{}\n{\"method\":\"x\",\"id\":\"a\"}\n")
        .await
        .unwrap();
    for expected in ["Welcome!", "[1]", "{}"] {
        let Some(Inbound::Stray(line)) = ours.inbound.recv().await else {
            panic!()
        };
        assert_eq!(line, expected);
    }
    let Some(Inbound::Request { id, .. }) = ours.inbound.recv().await else {
        panic!()
    };
    assert_eq!(id.get(), "\"a\"");
}

#[tokio::test]
async fn a_line_over_the_bound_ends_the_connection_and_its_calls() {
    let mut ours = ours(Bounds {
        line: 100,
        ..Bounds::default()
    });
    let peer = ours.peer.clone();
    let call = tokio::spawn(async move { peer.call::<_, Value>("wait", &json!({})).await });
    let mut line = [0; 10];
    ours.from_us.read_exact(&mut line).await.unwrap();
    ours.to_us.write_all(&[b'x'; 101]).await.unwrap();
    assert!(matches!(
        call.await.unwrap(),
        Err(CallError::Ended(Ended::LineTooLong))
    ));
    assert!(ours.inbound.recv().await.is_none());
    assert!(matches!(
        ours.peer.call::<_, Value>("late", &json!({})).await,
        Err(CallError::Ended(_))
    ));
}

#[tokio::test]
async fn a_line_of_exactly_the_bound_passes() {
    let mut ours = ours(Bounds {
        line: 100,
        ..Bounds::default()
    });
    ours.to_us
        .write_all(&[&[b'x'; 100][..], b"\n"].concat())
        .await
        .unwrap();
    assert!(matches!(ours.inbound.recv().await, Some(Inbound::Stray(line)) if line.len() == 100));
}

#[tokio::test]
async fn a_dropped_call_is_forgotten_and_its_late_answer_dropped() {
    let mut ours = ours(Bounds::default());
    {
        let nothing = json!({});
        let call = ours.peer.call::<_, Value>("slow", &nothing);
        tokio::pin!(call);
        let mut line = vec![0; 44];
        tokio::select! {
            _ = &mut call => panic!("nobody answered"),
            read = ours.from_us.read_exact(&mut line) => { read.unwrap(); }
        }
    }
    assert!(super::lock(&ours.peer.waiting).calls.is_empty());
    ours.to_us
        .write_all(b"{\"id\":0,\"result\":1}\nnext\n")
        .await
        .unwrap();
    assert!(matches!(ours.inbound.recv().await, Some(Inbound::Stray(line)) if line == "next"));
}

#[tokio::test]
async fn a_full_queue_slows_the_sender_down_and_loses_nothing() {
    let mut ours = ours(Bounds {
        inbound: 2,
        ..Bounds::default()
    });
    let mut to_us = ours.to_us;
    let sender = tokio::spawn(async move {
        for n in 0..5000 {
            to_us
                .write_all(format!("{{\"method\":\"m{n}\"}}\n").as_bytes())
                .await
                .unwrap();
        }
    });
    tokio::task::yield_now().await;
    for n in 0..5000 {
        let Some(Inbound::Notification { method, .. }) = ours.inbound.recv().await else {
            panic!()
        };
        assert_eq!(method, format!("m{n}"));
    }
    sender.await.unwrap();
}

#[tokio::test]
async fn acp_12_2_waiting_messages_are_bounded_in_bytes_and_none_is_lost() {
    const LINE: usize = 100_000;
    let mut ours = ours(Bounds {
        inbound_bytes: 10 * LINE,
        ..Bounds::default()
    });
    let sent = Arc::<AtomicUsize>::default();
    let (mut to_us, counter) = (ours.to_us, sent.clone());
    let sender = tokio::spawn(async move {
        for n in 0..40 {
            let line = format!("{n} {}\n", "x".repeat(LINE - 10));
            to_us.write_all(line.as_bytes()).await.unwrap();
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut before = usize::MAX;
    while before != sent.load(Ordering::Relaxed) {
        before = sent.load(Ordering::Relaxed);
        for _ in 0..10_000 {
            tokio::task::yield_now().await; // everything is in memory, so that this is until all of it waits
        }
    }
    // Ten in the queue, one that waits for room, and what the pipe's buffers take of the next one.
    assert!((10..=12).contains(&before), "{before}");
    for n in 0..40 {
        let Some(Inbound::Stray(line)) = ours.inbound.recv().await else {
            panic!()
        };
        assert!(line.starts_with(&format!("{n} ")));
    }
    sender.await.unwrap();
}

#[tokio::test]
async fn a_line_larger_than_the_budget_of_waiting_bytes_passes_alone() {
    let mut ours = ours(Bounds {
        inbound_bytes: 10,
        ..Bounds::default()
    });
    ours.to_us
        .write_all(&[&[b'x'; 100][..], b"\nnext\n"].concat())
        .await
        .unwrap();
    for length in [100, 4] {
        assert!(
            matches!(ours.inbound.recv().await, Some(Inbound::Stray(line)) if line.len() == length)
        );
    }
}
