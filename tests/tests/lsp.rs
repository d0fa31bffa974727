//! The language server with a scripted client: the real server, the real model, real tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing step fails the test")]

use std::time::{Duration, Instant};

use serde_json::json;
use tests::home::{Home, processes_of, wait_until};
use tests::lsp::{Client, capabilities, uri};
use tests::sample::Sample;

const TESTS: &str = "tests/test_cart.py";
const CODE: &str = "cart.py";

/// A fault that a small model mends, in a file with Windows line ends, tabs and characters outside of the basic plane.
fn cart() -> Sample {
    Sample::of(&[
        (
            CODE,
            "\"\"\"Carts \u{1F6D2}.\"\"\"\r\nLABEL = '\u{1F600}\u{1F600}'; SIGN = '\u{20AC}'\r\n\r\n\r\ndef total(prices):\r\n\t\"\"\"The sum of all prices \u{1F600}.\"\"\"\r\n\tresult = 0\r\n\tfor price in prices:\r\n\t\tresult -= price\r\n\treturn result\r\n\r\n\r\ndef count(prices):\r\n\treturn len(prices)\r\n",
        ),
        (
            TESTS,
            "from cart import count, total\n\n\ndef test_count():\n    assert count([1, 2]) == 2\n\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n",
        ),
        ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = [\".\"]\n"),
    ])
}

#[test]
fn a_fix_reaches_buffers_that_nobody_has_saved() {
    let (home, sample) = (Home::new(), cart());
    let mut client = Client::start(&home, &sample.root(), capabilities());
    let (code, tests) = (sample.path(CODE), sample.path(TESTS));
    // What is on the disk is fine; the fault and the test that shows it are only in the buffers.
    let faulty = sample.read(CODE);
    sample.write(CODE, &faulty.replace("-=", "+="));
    let hash = sample.hash();
    client.open(&code, &faulty);
    client.edit(&code, "SIGN = '\u{20AC}'", "SIGN = '\u{20AC}\u{1F4B6}'");
    client.open(&tests, &sample.read(TESTS));
    client.edit(&tests, "def test_total", "def test_sum\u{FC}_of_all");
    let actions = client.actions(&tests, "_of_all", json!([]));
    let action = actions.last().expect("there is an action on the test");
    assert_eq!(action["kind"], "quickfix");
    assert!(action.get("isPreferred").is_none() && action.get("edit").is_none(), "{action}");
    assert_eq!(action["command"]["command"], "tadpole.fixTest");
    let job = client.command("tadpole.fixTest", action["command"]["arguments"][0].clone());
    let finished = client.finished(&job);
    assert_eq!(finished["outcome"], "fixed", "{finished}");
    assert_eq!(finished["report"]["tests"][0]["id"], "tests/test_cart.py::test_sum\u{FC}_of_all");
    let edited = faulty.replace("SIGN = '\u{20AC}'", "SIGN = '\u{20AC}\u{1F4B6}'");
    let lines = |text: &str| text.split("\r\n").map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(&edited), lines(client.text(&code)));
    assert_eq!(after[..6], before[..6], "what the fix does not touch stays");
    assert_eq!(after[after.len() - 4..], before[before.len() - 4..]);
    assert!(!client.text(&code).replace("\r\n", "").contains('\n'), "Windows line ends stay");
    assert!(!client.text(&code).contains("result -= price"));
    assert!(client.text(&code).contains('\t'));
    assert_eq!(sample.hash(), hash, "nothing was written to the disk");
    // The client's text passes the test, as the report says.
    sample.write(CODE, client.text(&code));
    sample.write(TESTS, client.text(&tests));
    let pytest = std::process::Command::new(tests::tool("python/bin/python"))
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .current_dir(sample.root())
        .output()
        .unwrap();
    assert!(pytest.status.success(), "{}", String::from_utf8_lossy(&pytest.stdout));
}

#[test]
fn progress_is_shown_and_a_cancel_stops_everything_within_a_second() {
    let (home, sample) = (Home::new(), cart());
    sample.write(TESTS, "import time\n\n\ndef test_slow():\n    time.sleep(60)\n    assert False\n");
    let hash = sample.hash();
    let mut client = Client::start(&home, &sample.root(), capabilities());
    let tests = sample.path(TESTS);
    client.open(&tests, &sample.read(TESTS));
    let job = client.command("tadpole.fixAllFailing", json!({ "uri": uri(&tests) }));
    let second = client.command("tadpole.fixAllFailing", json!({ "uri": uri(&tests) }));
    let begin = client.wait(|it| it["method"] == "$/progress" && it["params"]["value"]["kind"] == "begin");
    assert_eq!(begin["params"]["value"]["cancellable"], true);
    client.wait(|it| {
        it["params"]["value"]["message"].as_str().is_some_and(|it| it.starts_with("running the tests"))
    });
    let status = client.command("tadpole.status", json!({}));
    assert_eq!(status["jobs"].as_array().unwrap().len(), 2, "{status}");
    assert_eq!(status["jobs"][1]["place"], 1);
    let of_the_job = || processes_of(&sample.root());
    assert!(wait_until(Duration::from_secs(20), || !of_the_job().is_empty()), "the tests run");
    let cancelled = Instant::now();
    client.notify("window/workDoneProgress/cancel", json!({ "token": begin["params"]["token"] }));
    client.command("tadpole.cancel", second.clone());
    assert_eq!(client.finished(&job)["outcome"], "cancelled");
    assert_eq!(client.finished(&second)["outcome"], "cancelled");
    wait_until(Duration::from_secs(1).saturating_sub(cancelled.elapsed()), || of_the_job().is_empty());
    assert!(cancelled.elapsed() < Duration::from_secs(1), "it took {:?}", cancelled.elapsed());
    assert_eq!(of_the_job(), Vec::<i32>::new());
    assert_eq!(sample.hash(), hash);
    client.wait(|it| it["params"]["value"]["kind"] == "end");
}

#[test]
fn nothing_runs_in_a_repository_that_is_not_trusted() {
    let (home, sample) = (Home::new(), cart());
    sample.write("conftest.py", "raise SystemExit('it was run')\n");
    let mut client = Client::start(&home, &sample.root(), capabilities());
    client.answers = vec!["Not now".into()];
    let job = client.command("tadpole.fixAllFailing", json!({ "uri": uri(&sample.path(TESTS)) }));
    let finished = client.finished(&job);
    assert_eq!(finished["outcome"], "cancelled");
    assert!(finished["message"].as_str().unwrap().contains("not trusted"), "{finished}");
    let status = client.command("tadpole.status", json!({}));
    assert_eq!(status["trusted"], json!([]));
}

#[test]
fn a_buffer_that_changed_where_the_fix_changes_it_is_left_alone() {
    let (home, sample) = (Home::new(), cart());
    let mut client = Client::start(&home, &sample.root(), capabilities());
    let code = sample.path(CODE);
    client.open(&code, &sample.read(CODE));
    let job = client.command("tadpole.fixAllFailing", json!({ "uri": uri(&code) }));
    client.wait(|it| {
        it["params"]["value"]["message"].as_str().is_some_and(|it| it.starts_with("running the tests"))
    });
    client.edit(&code, "result -= price", "result -= price * 2");
    let finished = client.finished(&job);
    assert_eq!(finished["outcome"], "failed", "{finished}");
    assert!(finished["message"].as_str().unwrap().contains("has changed"), "{finished}");
    assert!(client.text(&code).contains("result -= price * 2"));
}

#[test]
fn lenses_stand_on_tests_and_run_gives_diagnostics() {
    let (home, sample) = (Home::new(), cart());
    let mut client = Client::start(&home, &sample.root(), capabilities());
    let tests = sample.path(TESTS);
    client.open(&tests, &sample.read(TESTS));
    let lenses = client.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri(&tests) } }));
    let lines: Vec<u64> =
        lenses.as_array().unwrap().iter().map(|it| it["range"]["start"]["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 3, 7, 7]);
    let lens = client.request("codeLens/resolve", lenses[3].clone());
    assert_eq!(lens["command"]["command"], "tadpole.runTest");
    let job = client.command("tadpole.runTest", lens["command"]["arguments"][0].clone());
    let finished = client.finished(&job);
    assert_eq!(finished["outcome"], "failed_tests", "{finished}");
    let published = client.wait(|it| {
        it["method"] == "textDocument/publishDiagnostics"
            && it["params"]["diagnostics"].as_array().is_some_and(|it| !it.is_empty())
    });
    let diagnostic = &published["params"]["diagnostics"][0];
    assert_eq!(diagnostic["source"], "tadpole");
    assert_eq!(diagnostic["range"]["start"]["line"], 7, "it stands on the name of the test");
    assert!(diagnostic["message"].as_str().unwrap().contains("assert"), "{diagnostic}");
}

#[test]
fn bad_commands_are_refused_in_one_line() {
    let (home, sample) = (Home::new(), cart());
    let mut client = Client::start(&home, &sample.root(), capabilities());
    for (command, arguments, says) in [
        ("tadpole.fixTest", json!({}), "needs an argument"),
        ("tadpole.fixIssue", json!({ "text": "  " }), "needs an argument"),
        ("tadpole.explode", json!({}), "no command of tadpole"),
        ("tadpole.fixTest", json!({ "test": 7 }), "wrong arguments"),
        ("tadpole.fixAllFailing", json!({ "uri": "untitled:1" }), "is no file"),
    ] {
        let params = json!({ "command": command, "arguments": [arguments] });
        let answer = client.ask("workspace/executeCommand", params);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(says) && message.lines().count() == 1, "{command}: {answer}");
    }
}

#[test]
fn without_a_model_the_action_says_why() {
    let (home, sample) = (Home::without_models(), cart());
    let mut client = Client::start(&home, &sample.root(), capabilities());
    let tests = sample.path(TESTS);
    client.open(&tests, &sample.read(TESTS));
    let actions = client.actions(&tests, "def test_total", json!([]));
    let reason = actions[0]["disabled"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("tadpole models pull"), "{actions:?}");
    assert!(actions[0].get("command").is_none());
}
