//! The command line on input that a person really has: what the contracts say comes out, and nothing of the user's
//! tree changes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing step fails the test")]

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tests::cli::{command, fix, run};
use tests::home::{Home, model, processes_of, wait_until};
use tests::sample::Sample;

#[test]
fn a_fix_is_printed_and_applied_only_when_asked() {
    let (home, sample) = (Home::new(), Sample::cart());
    let hash = sample.hash();
    let ended = run(&mut fix(&home, &sample.root(), &[]));
    let report = ended.json();
    assert_eq!((ended.code, &report["outcome"]), (Some(0), &"fixed".into()), "{ended:?}");
    assert_eq!(report["tests"][0]["id"], "tests/test_cart.py::test_total");
    assert_eq!(
        (&report["tests"][0]["before"], &report["tests"][0]["after"]),
        (&"failed".into(), &"passed".into())
    );
    assert_eq!(report["regressions"], serde_json::json!([]));
    assert!(report["patch"].as_str().unwrap().starts_with("--- a/cart.py\n+++ b/cart.py\n@@ "), "{report}");
    for number in ["samples", "prompt_tokens", "generated_tokens", "seconds"] {
        assert!(report[number].as_f64().unwrap() > 0.0, "{number}: {report}");
    }
    assert!(report["generation"].is_null() && report["strategy"] == "repair", "{report}");
    assert_eq!(sample.hash(), hash, "nothing was written");
    let applied = run(&mut fix(&home, &sample.root(), &["--test", "test_cart.py::test_total", "--apply"]));
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(sample.read("cart.py").contains("result += price"), "{}", sample.read("cart.py"));
    let again = run(&mut fix(&home, &sample.root(), &[]));
    assert_eq!((again.code, &again.json()["outcome"]), (Some(0), &"nothing_to_fix".into()));
    assert_eq!(again.json()["patch"], "");
}

#[test]
fn what_cannot_be_tried_ends_with_one_line_and_nothing_changed() {
    let home = Home::new();
    let cases: [(Sample, &[&str], &str); 3] = [
        (
            Sample::cart(),
            &["--test", "tests/test_cart.py::test_totl"],
            "did you mean tests/test_cart.py::test_total",
        ),
        (Sample::of(&[("notes.txt", "no tests here\n")]), &[], "no tests"),
        (Sample::of(&[(".tadpole.toml", "[tests]\nframwork = \"pytest\"\n"), ("a.py", "")]), &[], "framwork"),
    ];
    for (sample, args, says) in cases {
        let hash = sample.hash();
        let ended = run(&mut fix(&home, &sample.root(), args));
        assert_eq!(ended.code, Some(2), "{says}: {ended:?}");
        assert!(ended.error().contains(says), "{says}: {ended:?}");
        assert_eq!(sample.hash(), hash);
    }
    let sample = Sample::cart();
    for (path, says) in [("cart.py", "not a directory"), ("missing", "No such file or directory")] {
        let ended = run(&mut fix(&home, &sample.path(path), &[]));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.error().contains(says), "{ended:?}");
    }
    let untrusted = run(command(&home, &["fix", "--json", "--repo"]).arg(sample.root()));
    assert_eq!(untrusted.code, Some(2));
    assert!(untrusted.error().contains("--trust"), "{untrusted:?}");
}

#[test]
fn without_a_model_the_next_step_is_named() {
    let (home, sample) = (Home::without_models(), Sample::cart());
    let ended = run(&mut fix(&home, &sample.root(), &[]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.error().contains("tadpole models pull"), "{ended:?}");
}

#[test]
fn a_file_that_is_no_model_gets_one_clear_line() {
    let (home, sample) = (Home::new(), Sample::cart());
    let whole = std::fs::read(model("smollm2-135m")).unwrap();
    let file = home.path().join("other.gguf");
    for (bytes, says) in [(b"not a model".as_slice(), "GGUF"), (&whole[..whole.len() / 2], "cut off")] {
        std::fs::write(&file, bytes).unwrap();
        let ended = run(fix(&home, &sample.root(), &[]).env("TADPOLE_MODEL", &file));
        assert_eq!(ended.code, Some(2), "{says}: {ended:?}");
        assert!(ended.error().contains(says), "{says}: {ended:?}");
    }
}

#[test]
fn a_model_that_does_not_fit_into_memory_is_refused() {
    let (home, sample) = (Home::new(), Sample::cart());
    let whole = fix(&home, &sample.root(), &[]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -v 1500000; exec \"$0\" \"$@\""])
        .arg(whole.get_program())
        .args(whole.get_args());
    limited.envs(whole.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = run(&mut limited);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.error().contains("memory"), "{ended:?}");
}

#[test]
fn a_syntax_error_is_mended_or_honestly_left() {
    let (home, sample) = (Home::new(), Sample::cart());
    sample.write(
        "cart.py",
        &sample
            .read("cart.py")
            .replace("-= price", "+= price")
            .replace("def total(prices):", "def total(prices)"),
    );
    let hash = sample.hash();
    let ended = run(&mut fix(&home, &sample.root(), &[]));
    let report = ended.json();
    match ended.code {
        Some(0) => assert!(report["patch"].as_str().unwrap().contains("+def total(prices):"), "{report}"),
        Some(1) => assert_eq!((&report["outcome"], &report["patch"]), (&"not_fixed".into(), &"".into())),
        _ => panic!("{ended:?}"),
    }
    assert_eq!(report["tests"][0]["before"], "error", "{report}");
    assert_eq!(sample.hash(), hash);
}

#[test]
fn a_flaky_test_is_told_apart_and_a_hanging_one_is_ended() {
    let (home, sample) = (Home::new(), Sample::cart());
    sample.write("cart.py", &sample.read("cart.py").replace("-=", "+="));
    // It fails in the first run only.
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() + 4.0;
    sample.write(
        "tests/test_flaky.py",
        &format!("import time\n\n\ndef test_now_and_then():\n    late = time.time() > {soon}\n    time.sleep(4)\n    assert late\n"),
    );
    let hash = sample.hash();
    let ended = run(&mut fix(&home, &sample.root(), &[]));
    let report = ended.json();
    assert_eq!((ended.code, &report["outcome"]), (Some(0), &"nothing_to_fix".into()), "{ended:?}");
    let note = report["note"].as_str().unwrap_or_default();
    assert!(note.contains("flaky") && note.contains("tests/test_flaky.py::test_now_and_then"), "{report}");
    assert_eq!(sample.hash(), hash);
    let hanging = Sample::cart();
    hanging.write("cart.py", "def total(prices):\n    while prices:\n        pass\n    return 0\n");
    hanging.write(".tadpole.toml", "[tests]\ntimeout_seconds = 8\n");
    let hash = hanging.hash();
    let started = Instant::now();
    let ended = run(&mut fix(&home, &hanging.root(), &["--samples", "2"]));
    let report = ended.json();
    assert_eq!(report["tests"][0]["id"], "tests/test_cart.py::test_total", "{ended:?}");
    assert!(matches!(ended.code, Some(0 | 1)) && started.elapsed() < Duration::from_secs(200), "{ended:?}");
    assert_eq!(hanging.hash(), hash);
}

#[test]
fn a_directory_that_cannot_be_written_is_read_all_the_same() {
    let (home, sample) = (Home::new(), Sample::cart());
    let files: Vec<_> = everything(&sample);
    for path in &files {
        let mode = if path.is_dir() { 0o555 } else { 0o444 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let hash = sample.hash();
    let ended = run(&mut fix(&home, &sample.root(), &[]));
    assert_eq!((ended.code, &ended.json()["outcome"]), (Some(0), &"fixed".into()), "{ended:?}");
    assert_eq!(sample.hash(), hash);
    for path in &files {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn everything(sample: &Sample) -> Vec<std::path::PathBuf> {
    ["cart.py", "tests/test_cart.py", "tests", "pyproject.toml", ""]
        .iter()
        .map(|it| sample.path(it))
        .collect()
}

#[test]
fn an_interrupt_stops_everything_within_a_second() {
    let (home, sample) = (Home::new(), Sample::cart());
    sample.write("tests/test_cart.py", "import time\n\n\ndef test_slow():\n    time.sleep(60)\n");
    let hash = sample.hash();
    let child =
        fix(&home, &sample.root(), &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let own = child.id() as i32;
    let started = || processes_of(&sample.root()).into_iter().filter(|id| *id != own).collect::<Vec<_>>();
    assert!(wait_until(Duration::from_secs(20), || !started().is_empty()), "the tests run");
    let interrupted = Instant::now();
    // SAFETY: a signal to a process of this test's own.
    unsafe { libc::kill(own, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    wait_until(Duration::from_secs(1).saturating_sub(interrupted.elapsed()), || started().is_empty());
    assert!(interrupted.elapsed() < Duration::from_secs(1), "it took {:?}", interrupted.elapsed());
    assert_eq!(started(), Vec::<i32>::new());
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(sample.hash(), hash);
}

#[test]
fn an_engine_that_is_killed_is_started_once_more() {
    let (home, sample) = (Home::new(), Sample::cart());
    // The kernels of this machine are settled first, so that only our own kill is seen below.
    assert_eq!(run(&mut fix(&home, &sample.root(), &[])).code, Some(0));
    let mut command = fix(&home, &sample.root(), &[]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let engines = home.engines();
    assert_eq!(engines.len(), 1, "the engine of the first request is still there");
    let busy = Instant::now() + Duration::from_secs(60);
    let time = |id: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|it| it.split_whitespace().nth(11)?.parse::<u64>().ok()).unwrap_or(0)
    };
    let before = time(engines[0]);
    while time(engines[0]) < before + 20 && Instant::now() < busy {
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: a signal to a process of this test's own.
    unsafe { libc::kill(engines[0], libc::SIGKILL) };
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("the engine stopped unexpectedly; it is started once more"), "{stderr}");
    assert_eq!(home.engines().len(), 1);
    assert_ne!(home.engines(), engines);
}
