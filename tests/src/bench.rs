//! What benchmarks write: `target/bench/NAME.json` with every figure, the machine and the commit.

use std::process::Command;

use serde_json::{Value, json};

use crate::repository;

/// Writes the figures of the benchmark `name`.
pub fn write(name: &str, figures: Value) {
    let file = repository().join("target/bench").join(format!("{name}.json"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let report = json!({ "bench": name, "commit": commit(), "machine": machine(), "figures": figures });
    std::fs::write(&file, serde_json::to_string_pretty(&report).unwrap() + "\n").unwrap();
    println!("written: target/bench/{name}.json");
}

fn commit() -> String {
    let output =
        Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(repository()).output();
    output.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned()).unwrap_or_default()
}

fn machine() -> Value {
    let first = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    json!({
        "cpu": first("/proc/cpuinfo", "model name"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": first("/proc/meminfo", "MemTotal"),
    })
}

/// The Wilson score interval (95 %) of `good` out of `all`.
pub fn wilson(good: usize, all: usize) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    let (n, p) = (all as f64, good as f64 / all as f64);
    let middle = p + Z * Z / (2.0 * n);
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    ((middle - spread) / scale, (middle + spread) / scale)
}
