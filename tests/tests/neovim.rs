//! The plugin in a real headless Neovim, with the real server and model.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing step fails the test")]

use std::collections::BTreeMap;

use serde_json::Value;
use tests::home::Home;
use tests::sample::Sample;
use tests::{cli, repository, tadpole, tool};

const FAULTY: &str = "def total(prices):\n    \"\"\"The sum of all prices.\"\"\"\n    result = 0\n    for price in prices:\n        result -= price\n    return result";

#[test]
fn a_failing_test_is_fixed_under_the_cursor() {
    let sample = Sample::of(&[
        ("cart.py", &format!("{FAULTY}\n")),
        (
            "tests/test_cart.py",
            "from cart import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n",
        ),
        ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = [\".\"]\n"),
        (".tadpole.toml", ""),
    ]);
    let home = Home::new();
    let results = home.path().join("results");
    let plugin = repository().join("editors/neovim");
    // Its environment is the one of the command line's tests; the program is Neovim.
    let environment = cli::command(&home, &[]);
    let mut command = std::process::Command::new(tool("python/bin/nvim"));
    command.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.args(["--headless", "--clean"]);
    command.arg("--cmd").arg(format!("set runtimepath^={}", plugin.display()));
    command.arg("-S").arg(plugin.join("tests/session.lua"));
    command.env("RESULTS", &results).env("TADPOLE", tadpole()).env("XDG_STATE_HOME", home.path());
    command.env("TERM", "dumb").current_dir(sample.root());
    let ended = cli::run(&mut command);
    let text = std::fs::read_to_string(&results).unwrap_or_default();
    let recorded: BTreeMap<String, Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|it| (it["name"].as_str().unwrap().to_owned(), it["value"].clone()))
        .collect();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{text}");
    assert!(recorded["status"].as_str().unwrap().contains("idle"), "{text}");
    assert_eq!(recorded["finished"]["outcome"], "fixed", "{text}");
    assert_eq!(recorded["finished"]["report"]["tests"][0]["after"], "passed");
    let asked: Vec<&str> =
        recorded["questions"].as_array().unwrap().iter().filter_map(|it| it["titles"][0].as_str()).collect();
    assert_eq!(asked, ["Trust", "Apply"]);
    assert!(!recorded["code"].as_str().unwrap().contains("-= price"), "{text}");
    assert_eq!(recorded["modified"], true);
    assert_eq!(recorded["undone"], FAULTY, "one undo takes it back");
    assert_eq!(recorded["cancelled"]["outcome"], "cancelled");
    assert_eq!(recorded["lenses"], 2);
    let health = recorded["health"].to_string();
    assert!(health.contains("The server is") && health.contains("sandbox:"), "{health}");
    assert!(!health.contains("failed"), "{health}");
    assert!(recorded["unknown"].as_str().unwrap().contains("cancel, fix, fix-all, issue, status"), "{text}");
    assert_eq!(sample.read("cart.py"), format!("{FAULTY}\n"), "nothing was written to the disk");
}
