//! Latency of the language server: `initialize` when it starts, and code actions while a fix runs.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the benchmark")]

use std::time::{Duration, Instant};

use serde_json::json;
use tests::bench;
use tests::home::Home;
use tests::lsp::{Client, capabilities, uri};
use tests::sample::Sample;

const STARTS: usize = 30;
const ROUND_TRIPS: usize = 500;

fn main() {
    let home = Home::new();
    let sample = Sample::with_bug("python", "heaviest-order");
    let starts: Vec<f64> = (0..STARTS).map(|_| start(&home, &sample)).collect();
    let mut client = Client::start(&home, &sample.root(), capabilities());
    let test = sample.path("tests/test_routes.py");
    client.open(&test, &sample.read("tests/test_routes.py"));
    let idle = round_trips(&mut client, &test, |_| true);
    let job = client.command("tadpole.fixAllFailing", json!({ "uri": uri(&test) }));
    // Only what was measured before the job ended counts.
    let running = |client: &Client| !client.inbox.iter().any(|it| it["method"] == "tadpole/finished");
    let busy = round_trips(&mut client, &test, running);
    client.command("tadpole.cancel", json!({}));
    client.finished(&job);
    println!("{:<44}{:>6}{:>10}{:>10}", "milliseconds", "n", "median", "p99");
    let mut figures = json!({});
    for (name, mut times) in
        [("initialize", starts), ("codeAction, idle", idle), ("codeAction, while a fix runs", busy)]
    {
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times[((times.len() - 1) as f64 * part).ceil() as usize];
        println!("{name:<44}{:>6}{:>10.2}{:>10.2}", times.len(), at(0.5), at(0.99));
        figures[name] = json!({ "n": times.len(), "median_ms": at(0.5), "p99_ms": at(0.99) });
    }
    bench::write("lsp", figures);
}

/// From the start of the process to the answer, in milliseconds.
fn start(home: &Home, sample: &Sample) -> f64 {
    let started = Instant::now();
    let mut client = Client::spawn(home);
    client.initialize(&sample.root(), capabilities());
    started.elapsed().as_secs_f64() * 1e3
}

/// Times of code actions, in milliseconds, at the pace of a person who moves the cursor.
fn round_trips(client: &mut Client, test: &std::path::Path, wanted: impl Fn(&Client) -> bool) -> Vec<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let started = Instant::now();
        let actions = client.actions(test, "def test_", json!([]));
        let time = started.elapsed().as_secs_f64() * 1e3;
        assert!(!actions.is_empty());
        if !wanted(client) {
            break;
        }
        times.push(time);
        std::thread::sleep(Duration::from_millis(20));
    }
    times
}
