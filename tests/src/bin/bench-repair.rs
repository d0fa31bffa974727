//! How many of the seeded bugs of a sample repository `repair` mends with 16 answers, for each format that the model can be
//! asked for, against the same model asked once greedily. `bench-repair [REPOSITORY [FORMAT]...]`, Python and all formats
//! by default.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the benchmark")]

use serde_json::{Value, json};
use tests::home::Home;
use tests::sample::{Sample, bugs};
use tests::{bench, cli};

const FORMATS: [&str; 3] = ["function", "lines", "search-replace"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let repository = arguments.next().unwrap_or_else(|| "python".to_owned());
    let chosen: Vec<String> = arguments.collect();
    let formats = FORMATS.into_iter().filter(|it| chosen.is_empty() || chosen.iter().any(|one| one == it));
    println!(
        "{:<16}{:<24}{:<20}{:>8}{:>12}{:>10}{:>10}",
        "format", "bug", "kind", "greedy", "16 answers", "answers", "seconds"
    );
    let mut figures = json!({ "repository": repository, "bugs": bugs(&repository).len() });
    for format in formats {
        figures[format] = measure(&repository, format);
        // After each format, so that a benchmark that is stopped has not run for nothing.
        bench::write(&format!("repair-{repository}"), figures.clone());
    }
}

fn measure(repository: &str, format: &str) -> Value {
    let home = Home::new();
    home.configure(&format!("edit_format = \"{format}\"\n"));
    let mut cases = Vec::new();
    for bug in bugs(repository) {
        let sample = Sample::with_bug(repository, &bug.name);
        let greedy = fix(&home, &sample, "1");
        let sampled = fix(&home, &sample, "16");
        // One that changed nothing is asked again; that is no longer once.
        let greedy_solved = greedy["outcome"] == "fixed" && greedy["samples"] == 1;
        let solved = sampled["outcome"] == "fixed";
        println!(
            "{format:<16}{:<24}{:<20}{greedy_solved:>8}{solved:>12}{:>10}{:>10.1}",
            bug.name,
            bug.kind,
            sampled["samples"].as_u64().unwrap_or(0),
            sampled["seconds"].as_f64().unwrap_or(f64::NAN)
        );
        cases.push(json!({
            "bug": bug.name,
            "kind": bug.kind,
            "greedy": { "solved": greedy_solved, "report": greedy },
            "sampled": { "solved": solved, "report": sampled },
        }));
    }
    let mut figures = json!({});
    for which in ["greedy", "sampled"] {
        let solved = cases.iter().filter(|it| it[which]["solved"] == true).count();
        let (low, high) = bench::wilson(solved, cases.len());
        println!("{format}, {which}: {solved} of {} (95 % interval {low:.2} to {high:.2})", cases.len());
        figures[which] = json!({ "solved": solved, "wilson_95": [low, high] });
    }
    figures["cases"] = cases.into();
    figures
}

/// The report of one fix, without what is only for people.
fn fix(home: &Home, sample: &Sample, samples: &str) -> Value {
    let ended = cli::run(&mut cli::fix(home, &sample.root(), &["--samples", samples]));
    let mut report = ended.json();
    if let Some(report) = report.as_object_mut() {
        report.remove("tests");
        report.remove("patch");
    }
    report
}
