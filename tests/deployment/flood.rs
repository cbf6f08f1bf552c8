//! Turns with many events: nothing is lost, and the wire stays small.

use std::time::Duration;

use tangle_sandbox::sandbox::EventKind;

use crate::support::deployed::{Deployed, assert_whole, finish, text};
use crate::support::proxy::Proxy;
use crate::within;

const DELTAS: usize = 20_000;

pub fn wire_7_14_a_reader_that_stalls_gets_every_frame() {
    within(Duration::from_secs(120), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let mut run = sandbox.stream(format!("flood {DELTAS}")).await.unwrap();
        let mut events = Vec::new();
        while events.len() < 100 {
            events.push(run.next().await.unwrap().unwrap());
        }
        // The stall itself is what is tested: nothing is waited for.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (rest, result) = finish(run).await;
        events.extend(rest);
        assert_whole(&events);
        let whole: String = (0..DELTAS).map(|n| format!("{n} ")).collect();
        assert_eq!(text(&events), whole);
        assert!(result.success() && result.text() == whole);
        deployed.stop().await;
    });
}

pub fn wire_7_13_twenty_thousand_deltas_stay_small_on_the_wire() {
    within(Duration::from_secs(120), async {
        let deployed = Deployed::start().await;
        let proxy = Proxy::start(deployed.local.base_url()).await;
        let sandbox = deployed.sandbox().await;
        let through = deployed.seen_through(&proxy.base, &sandbox).await;
        let mut script = String::new();
        for number in 0..DELTAS {
            script.push_str(&format!("say {number:063}.\n"));
        }
        let run = through.stream(script).await.unwrap();
        let (events, result) = finish(run).await;
        assert_whole(&events);
        let deltas = events.iter().filter_map(|event| event.text_delta());
        let deltas: Vec<_> = deltas.collect();
        assert_eq!(deltas.len(), DELTAS);
        assert!(deltas.iter().all(|delta| delta.len() == 64));
        let whole: String = deltas.concat();
        let last = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::PartUpdated(update) if update.part.type_ == "text" => Some(update),
            _ => None,
        });
        assert!(last.unwrap().part.text.as_deref() == Some(&*whole));
        assert!(result.text() == whole);
        // The whole text also comes once in the last part and once in the result.
        let deltas_only = proxy.stream_bytes() - 2 * whole.len() as u64;
        let each = deltas_only / DELTAS as u64;
        println!("{each} bytes a delta of 64 bytes");
        assert!(each <= 300, "{each} bytes a delta");
        deployed.stop().await;
    });
}
