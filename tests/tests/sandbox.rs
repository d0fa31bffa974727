//! Attempts to break out of the sandbox, each beside a control that shows that the attempt would work where it is allowed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing step fails the test")]

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tasks::sandbox::{Bind, Command, Exit, Limits, Output, Sandbox};
use tokio_util::sync::CancellationToken;

struct Cage {
    sandbox: Sandbox,
    root: tempfile::TempDir,
    limits: Limits,
}

impl Cage {
    fn new() -> Self {
        let sandbox = Sandbox::probe(tests::tadpole()).expect("the sandbox works on this machine");
        let root = tempfile::Builder::new().prefix("cage ").tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        std::fs::write(root.path().join("secret"), "s3cret").unwrap();
        Self { sandbox, root, limits: Limits { wall: Duration::from_secs(20), ..Limits::default() } }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn command(&self, argv: &[&str]) -> Command {
        let work = self.path("work");
        Command {
            argv: argv.iter().map(Into::into).collect(),
            cwd: work.clone(),
            env: BTreeMap::new(),
            writable: vec![Bind { host: work.clone(), inside: work }],
            read_only: Vec::new(),
            limits: self.limits.clone(),
        }
    }

    async fn run(&self, argv: &[&str]) -> Output {
        self.sandbox.run(&self.command(argv), &CancellationToken::new()).await.unwrap()
    }

    async fn shell(&self, script: &str) -> Output {
        self.run(&["bash", "-c", script]).await
    }

    async fn python(&self, script: &str) -> Output {
        self.run(&["python3", "-c", script]).await
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Processes of this machine whose command line holds `mark`.
fn alive(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let own = std::process::id().to_string();
    entries
        .filter(|it| it.file_name() != *own)
        .filter_map(|it| std::fs::read(it.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(mark))
        .count()
}

async fn gone_within(mark: &str, limit: Duration) -> bool {
    let started = Instant::now();
    while started.elapsed() < limit {
        if alive(mark) == 0 {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn files_outside_are_neither_read_nor_written_and_the_workspace_is_both() {
    let cage = Cage::new();
    let secret = cage.path("secret");
    let output = cage
        .shell(&format!("echo in > f && cat f; cat '{0}'; echo x > '{0}'; chmod 777 '{0}'", secret.display()))
        .await;
    assert!(text(&output).starts_with("in\n"), "{}", text(&output));
    assert!(!text(&output).contains("s3cret"));
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "s3cret");
    assert_eq!(std::fs::read_to_string(cage.path("work/f")).unwrap(), "in\n");
    for hidden in ["/etc/shadow", "/root/.bashrc", "/proc/1/root/etc/shadow"] {
        let output = cage.run(&["cat", hidden]).await;
        assert_ne!(output.exit, Exit::Code(0), "{hidden}: {}", text(&output));
    }
}

#[tokio::test]
async fn a_link_out_of_the_workspace_leads_nowhere() {
    let cage = Cage::new();
    std::os::unix::fs::symlink(cage.path("secret"), cage.path("work/link")).unwrap();
    let output = cage.shell("cat link; echo x > link; echo done").await;
    assert!(text(&output).contains("done") && !text(&output).contains("s3cret"));
    assert_eq!(std::fs::read_to_string(cage.path("secret")).unwrap(), "s3cret");
}

#[tokio::test]
async fn a_workspace_behind_a_link_is_refused() {
    let cage = Cage::new();
    std::os::unix::fs::symlink("/etc", cage.path("planted")).unwrap();
    let mut command = cage.command(&["true"]);
    command.writable.push(Bind { host: cage.path("planted"), inside: cage.path("planted") });
    assert!(cage.sandbox.run(&command, &CancellationToken::new()).await.is_err());
}

#[tokio::test]
async fn the_network_is_a_private_loopback() {
    let cage = Cage::new();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let script = format!(
        "import socket\n\
         s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); c=socket.create_connection(s.getsockname()); print('own ok')\n\
         u=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); u.sendto(b'x',('127.0.0.1',{udp})); print('sent')\n\
         try:\n  socket.create_connection(('127.0.0.1',{tcp}),2); print('ESCAPED')\n\
         except OSError as e: print('refused')\n\
         for f in (socket.AF_VSOCK, socket.AF_PACKET, socket.AF_ALG):\n\
         \x20 try: socket.socket(f, socket.SOCK_STREAM if f!=socket.AF_PACKET else socket.SOCK_RAW); print('ESCAPED', f)\n\
         \x20 except PermissionError: print('denied')\n",
        tcp = tcp.local_addr().unwrap().port(),
        udp = udp.local_addr().unwrap().port()
    );
    let output = cage.python(&script).await;
    assert_eq!(text(&output), "own ok\nsent\nrefused\ndenied\ndenied\ndenied\n");
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram came out");
}

#[tokio::test]
async fn sockets_of_the_host_cannot_be_reached() {
    let cage = Cage::new();
    let path = cage.path("host.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let name = format!("tadpole-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let script = format!(
        "import socket\n\
         for p in ('{path}', '\\0{name}'):\n\
         \x20 s=socket.socket(socket.AF_UNIX)\n\
         \x20 try: s.connect(p); print('ESCAPED')\n\
         \x20 except OSError: print('no')\n\
         s=socket.socket(socket.AF_UNIX); s.bind('own'); s.listen(); socket.socket(socket.AF_UNIX).connect('own'); print('own ok')\n",
        path = path.display()
    );
    assert_eq!(text(&cage.python(&script).await), "no\nno\nown ok\n");
}

#[tokio::test]
async fn other_processes_descriptors_and_secrets_are_invisible() {
    let cage = Cage::new();
    // SAFETY: duplicating descriptor 2 to 57, which nothing uses, without close-on-exec: what a careless host leaks.
    assert_eq!(unsafe { libc::dup2(2, 57) }, 57);
    // SAFETY: no other thread of this test binary reads the environment by pointer.
    unsafe { std::env::set_var("MY_API_KEY", "s3cret") };
    let output = cage
        .shell("env; ls /proc | grep -c '^[0-9]'; ls /proc/self/fd; kill -0 1 && echo; cat /proc/*/environ")
        .await;
    let text = text(&output);
    assert!(!text.contains("s3cret") && text.contains("TMPDIR=/tmp"), "{text}");
    assert!(!text.lines().any(|line| line == "57"), "{text}");
    let count: usize = text.lines().find_map(|line| line.parse().ok()).unwrap();
    assert!(count <= 6, "{text}");
}

#[tokio::test]
async fn dangerous_system_calls_are_denied_and_ordinary_ones_work() {
    let cage = Cage::new();
    let script = "import ctypes, os, fcntl, multiprocessing, threading, pty\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        def denied(*a):\n  r = libc.syscall(*a); e = ctypes.get_errno(); return r == -1 and e in (1, 38)\n\
        print(denied(425, 4, 0), denied(101, 0, 0, 0, 0), denied(272, 0x10000000), denied(250, 0, 0, 0, 0))\n\
        m, s = pty.openpty()\n\
        try: fcntl.ioctl(s, 0x5412, b'x'); print('ESCAPED')\n\
        except PermissionError: print('denied')\n\
        t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n\
        l = multiprocessing.Lock()\n\
        p = multiprocessing.Process(target=lambda: print('process', flush=True)); p.start(); p.join()\n";
    let output = cage.python(script).await;
    let expected =
        if cfg!(target_arch = "x86_64") { "True True True True\ndenied\nthread\nprocess\n" } else { return };
    let mut lines: Vec<String> = text(&output).lines().map(str::to_owned).collect();
    lines.sort_by_key(|line| {
        ["True", "denied", "thread", "process"].iter().position(|it| line.starts_with(it))
    });
    assert_eq!(lines.join("\n") + "\n", expected);
}

#[tokio::test]
async fn a_daemon_ends_with_its_command() {
    let cage = Cage::new();
    let output = cage
        .shell(
            "setsid sh -c 'sleep 7171 & sleep 7171' >/dev/null 2>&1 & (setsid sleep 7171 &) ; echo started",
        )
        .await;
    assert_eq!(text(&output), "started\n");
    assert!(output.elapsed < Duration::from_secs(5));
    assert!(gone_within("sleep\u{0}7171", Duration::from_secs(1)).await);
}

#[tokio::test]
async fn cancel_ends_everything_within_a_second_also_a_fork_storm() {
    let cage = Cage::new();
    let cancel = CancellationToken::new();
    let command =
        cage.command(&["bash", "-c", "trap '' TERM INT HUP; while :; do sleep 7272 & sleep 0.01; done"]);
    let running = cage.sandbox.run(&command, &cancel);
    tokio::pin!(running);
    tokio::select! {
        output = &mut running => panic!("ended early: {output:?}"),
        () = tokio::time::sleep(Duration::from_millis(500)) => {}
    }
    assert!(alive("sleep\u{0}7272") > 5);
    let started = Instant::now();
    cancel.cancel();
    let output = running.await.unwrap();
    assert_eq!(output.exit, Exit::Cancelled);
    assert!(gone_within("sleep\u{0}7272", Duration::from_secs(1).saturating_sub(started.elapsed())).await);
}

#[tokio::test]
async fn a_dropped_run_ends_too() {
    let cage = Cage::new();
    let command = cage.command(&["sleep", "7373"]);
    let none = CancellationToken::new();
    let timed = tokio::time::timeout(Duration::from_millis(400), cage.sandbox.run(&command, &none)).await;
    assert!(timed.is_err());
    assert!(gone_within("sleep\u{0}7373", Duration::from_secs(1)).await);
}

#[tokio::test]
async fn limits_stop_time_memory_processes_and_files() {
    let mut cage = Cage::new();
    cage.limits = Limits {
        wall: Duration::from_millis(700),
        memory: 200 << 20,
        processes: 40,
        file_size: 1 << 20,
        ..Limits::default()
    };
    assert_eq!(cage.run(&["sleep", "60"]).await.exit, Exit::TimedOut);
    cage.limits.wall = Duration::from_secs(20);
    let hog = "x = bytearray(600 << 20)\nimport time\ntime.sleep(9)";
    assert_eq!(cage.python(hog).await.exit, Exit::Limit("memory".into()));
    assert_eq!(cage.python("x = bytearray(50 << 20); print(len(x))").await.exit, Exit::Code(0));
    let bomb = cage.shell("for i in $(seq 200); do sleep 5 & done; wait").await;
    assert_ne!(bomb.exit, Exit::Code(0), "{}", text(&bomb));
    let big = cage.shell("head -c 3000000 /dev/zero > big; stat -c %s big").await;
    assert!(text(&big).contains("1048576"), "{}", text(&big));
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_and_keeps_both_ends() {
    let mut cage = Cage::new();
    cage.limits.output = 1000;
    let output = cage.shell("echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last").await;
    let text = text(&output);
    assert!(text.len() < 1200 && text.starts_with("first\n") && text.ends_with("last\n"), "{text}");
    assert!(text.contains("bytes left out"));
}

#[tokio::test]
async fn a_missing_program_is_named_and_exit_codes_come_through() {
    let cage = Cage::new();
    let error =
        cage.sandbox.run(&cage.command(&["no-such-program"]), &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot start no-such-program: "), "{error}");
    assert_eq!(cage.shell("exit 7").await.exit, Exit::Code(7));
    assert_eq!(cage.shell("kill -9 $$").await.exit, Exit::Signal(9));
}

#[tokio::test]
async fn what_is_bound_read_only_stays_so_within_the_workspace() {
    let cage = Cage::new();
    std::fs::create_dir(cage.path("venv")).unwrap();
    std::fs::write(cage.path("venv/lib"), "1").unwrap();
    let mut command = cage.command(&["bash", "-c", "cat .venv/lib; echo 2 > .venv/lib; echo x > y"]);
    command.read_only.push(Bind { host: cage.path("venv"), inside: cage.path("work/.venv") });
    let output = cage.sandbox.run(&command, &CancellationToken::new()).await.unwrap();
    assert!(text(&output).starts_with('1'), "{}", text(&output));
    assert_eq!(std::fs::read_to_string(cage.path("venv/lib")).unwrap(), "1");
    assert!(Path::new(&cage.path("work/y")).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_at_any_moment_of_the_start_leaves_nothing() {
    let cage = Cage::new();
    for moment in 0..60 {
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_micros(moment * 250)).await;
            later.cancel();
        });
        let command = cage.command(&["sleep", "60"]);
        let ended = cage.sandbox.run(&command, &cancel);
        tokio::time::timeout(Duration::from_secs(5), ended).await.expect("it ends at once").unwrap();
    }
    let left = || tests::home::processes_of(&cage.path("work"));
    tests::home::wait_until(Duration::from_secs(1), || left().is_empty());
    assert_eq!(left(), Vec::<i32>::new());
}
