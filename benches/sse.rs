//! The decoder of server-sent events against others, and against a bare search for line ends.
//!
//! Prints MB/s and ratios as the median of eleven interleaved rounds: `cargo bench --bench sse`.

#[path = "support/rounds.rs"]
mod rounds;

use std::convert::Infallible;
use std::hint::black_box;

use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use tangle_sandbox::transport::sse::{Decoder, Frames};

/// Events of about `size` bytes, as the run stream has them.
fn body(size: usize, total: usize) -> Bytes {
    let mut body = Vec::with_capacity(total + size);
    let mut number = 0;
    while body.len() < total {
        number += 1;
        let start = body.len();
        let head = format!(
            "id: {number}\nevent: message.part.updated\ndata: {{\"part\":{{\"id\":\"prt_{number}\",\"type\":\"text\"}},\"delta\":\""
        );
        body.extend_from_slice(head.as_bytes());
        let end = "\"}\n\n";
        let text = "The quick brown fox jumps over the lazy dog \u{2014} ".as_bytes();
        while body.len() - start + text.len() + end.len() <= size {
            body.extend_from_slice(text);
        }
        while body.len() - start + end.len() < size {
            body.push(b'x');
        }
        body.extend_from_slice(end.as_bytes());
    }
    body.into()
}

fn chunks(body: &Bytes, size: usize) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
    let body = body.clone();
    let end = body.len();
    stream::iter(
        (0..end)
            .step_by(size)
            .map(move |at| Ok(body.slice(at..(at + size).min(end)))),
    )
}

/// Reads a stream that is always ready.
fn count<S: Stream + Unpin>(mut events: S) -> usize {
    let mut found = 0;
    while let Some(event) = events.next().now_or_never().expect("always ready") {
        black_box(&event);
        found += 1;
    }
    found
}

/// Prints one row and gives the MB/s of each decoder over a body of `total` MiB.
fn measure(size: usize, chunk: usize, total: usize) -> Vec<f64> {
    let body = body(size, total << 20);
    let found = std::cell::Cell::new([0usize; 3]);
    let note = |index: usize, count: usize| {
        let mut all = found.get();
        all[index] = count;
        found.set(all);
    };
    let mut ours = || {
        note(
            0,
            count(Frames::new(chunks(&body, chunk), Decoder::default())),
        )
    };
    let mut sse = || {
        note(
            1,
            count(sse_stream::SseByteStream::new(chunks(&body, chunk))),
        )
    };
    let mut eventsource = || note(2, count(chunks(&body, chunk).eventsource()));
    let mut scan = || {
        for chunk in body.chunks(chunk) {
            black_box(memchr::memchr_iter(b'\n', chunk).count());
        }
    };
    let times = rounds::interleaved(
        &mut [
            ("ours", &mut ours),
            ("sse-stream", &mut sse),
            ("eventsource-stream", &mut eventsource),
            ("memchr", &mut scan),
        ],
        rounds::ROUNDS,
    );
    let [a, b, c] = found.get();
    assert!(a == b && b == c, "the decoders disagree: {a} {b} {c}");
    let speeds: Vec<f64> = times
        .iter()
        .map(|time| body.len() as f64 / 1e6 / time.as_secs_f64())
        .collect();
    println!(
        "{size:>8} B in {chunk:>6} B | ours {:>6.0} | sse-stream {:>6.0} | eventsource-stream {:>6.0} | memchr {:>6.0} MB/s | {:>5.2}x sse-stream, {:>6.2}x eventsource-stream",
        speeds[0],
        speeds[1],
        speeds[2],
        speeds[3],
        speeds[0] / speeds[1],
        speeds[0] / speeds[2],
    );
    speeds
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let small = measure(240, 16 << 10, 16);
    let medium = measure(2048, 16 << 10, 16);
    measure(1 << 20, 16 << 10, 8);
    let medium_cut = measure(2048, 1400, 16);
    // Small, since the time of eventsource-stream grows with the square of the event.
    let large_cut = measure(1 << 20, 1400, 2);
    println!(
        "240-byte events: {:.2}x sse-stream (at least 0.90), {:.2}x eventsource-stream (at least 3.50)",
        small[0] / small[1],
        small[0] / small[2],
    );
    println!(
        "linear: 1 MiB events in 1,400-byte reads take {:.2}x the time of 2 KB events (at most 3.00); 2 KB events in 16 KiB reads run at {:.0} MB/s",
        medium_cut[0] / large_cut[0],
        medium[0],
    );
}
