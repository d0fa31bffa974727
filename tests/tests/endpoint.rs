//! Another inference server behind the OpenAI API: llama.cpp's own, from a package.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing step fails the test")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use tests::cli::{fix, run};
use tests::home::{Home, model};
use tests::sample::Sample;
use tests::tool;

const SERVER: &str = r#"
import sys, threading
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.hostnames, params.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
params.n_ctx, params.n_parallel = 4096, 1
server = xllamacpp.Server(params)
print("ready", flush=True)
threading.Event().wait()
"#;

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(tool("python/bin/python"))
            .args(["-c", SERVER])
            .arg(model("qwen2.5-coder-1.5b"))
            .arg(port.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"), "the server did not start");
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configure(home: &Home, port: u16) {
    home.configure(&format!("[endpoint]\nurl = \"http://127.0.0.1:{port}/v1\"\nmodel = \"coder\"\n"));
}

#[test]
fn a_fix_comes_from_another_server_without_an_engine() {
    let server = Server::start();
    let (home, sample) = (Home::without_models(), Sample::cart());
    configure(&home, server.port);
    let ended = run(&mut fix(&home, &sample.root(), &[]));
    let report = ended.json();
    assert_eq!((ended.code, &report["outcome"]), (Some(0), &"fixed".into()), "{ended:?}");
    assert_eq!(report["model"], "coder");
    assert!(
        report["prompt_tokens"].as_u64() > Some(0) && report["generated_tokens"].as_u64() > Some(0),
        "{report}"
    );
    assert_eq!(home.engines(), Vec::<i32>::new());
}

#[test]
fn a_server_that_is_not_there_gets_one_line() {
    let (home, sample) = (Home::without_models(), Sample::cart());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    configure(&home, port);
    let ended = run(&mut fix(&home, &sample.root(), &[]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.error().contains(&format!("127.0.0.1:{port}")), "{ended:?}");
}
