//! How many of the seeded bugs of a sample repository `repair` mends with 16 answers, against the same model asked once
//! greedily. `bench-repair [REPOSITORY]`, Python by default.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the benchmark")]

use serde_json::{Value, json};
use tests::home::Home;
use tests::sample::{Sample, bugs};
use tests::{bench, cli};

fn main() {
    let repository = std::env::args().nth(1).unwrap_or_else(|| "python".to_owned());
    let home = Home::new();
    let mut cases = Vec::new();
    println!(
        "{:<24}{:<20}{:>8}{:>12}{:>10}{:>10}",
        "bug", "kind", "greedy", "16 answers", "answers", "seconds"
    );
    for bug in bugs(&repository) {
        let sample = Sample::new(&repository);
        sample.seed(&bug);
        let greedy = fix(&home, &sample, "1");
        let sampled = fix(&home, &sample, "16");
        let solved = |report: &Value| report["outcome"] == "fixed";
        println!(
            "{:<24}{:<20}{:>8}{:>12}{:>10}{:>10.1}",
            bug.name,
            bug.kind,
            solved(&greedy),
            solved(&sampled),
            sampled["samples"].as_u64().unwrap_or(0),
            sampled["seconds"].as_f64().unwrap_or(f64::NAN)
        );
        cases.push(json!({ "bug": bug.name, "kind": bug.kind, "greedy": greedy, "sampled": sampled }));
    }
    let count = |which: &str| cases.iter().filter(|it| it[which]["outcome"] == "fixed").count();
    let mut figures = json!({ "repository": repository, "bugs": cases.len() });
    for which in ["greedy", "sampled"] {
        let (low, high) = bench::wilson(count(which), cases.len());
        println!("{which}: {} of {} (95 % interval {low:.2} to {high:.2})", count(which), cases.len());
        figures[which] = json!({ "solved": count(which), "wilson_95": [low, high] });
    }
    figures["cases"] = cases.into();
    bench::write(&format!("repair-{repository}"), figures);
}

/// The report of one fix, without what is only for people.
fn fix(home: &Home, sample: &Sample, samples: &str) -> Value {
    let ended = cli::run(&mut cli::fix(home, &sample.root(), &["--samples", samples]));
    let mut report = ended.json();
    if let Some(report) = report.as_object_mut() {
        report.remove("tests");
    }
    report
}
