//! From a command's policy to bubblewrap's arguments, as a pure function of the policy and the layout of the system.
//!
//! The order matters, as a later mount hides an earlier one: system directories, `/proc`, `/dev` and `/tmp`; then what the
//! command may write; then what it may only read (which may lie within what it may write, as a virtual
//! environment lies in a project); last the root itself becomes read-only.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Command, INNER, SandboxError, has_link};

/// Where a trustworthy bubblewrap lies. Never in the search path, which may lead into a repository.
const PLACES: &[&str] =
    &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// Read-only parts of the system. Of `/etc` only what programs need to start, resolve names and check certificates.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];

/// Size of the private `/tmp`, in bytes.
const TMP_SIZE: u64 = 1 << 30;

/// Where our own binary is inside.
pub(super) const HELPER_DIR: &str = "/run/tadpole";

/// The home directory inside.
pub(super) const HOME: &str = "/tmp/home";

/// The bubblewrap of this machine.
pub(super) fn find() -> Result<PathBuf, SandboxError> {
    if !cfg!(target_os = "linux") {
        return Err(SandboxError::Unavailable(
            "there is no sandbox for this system yet, so no test can be run; use Linux, or WSL2 on Windows"
                .into(),
        ));
    }
    let trustworthy = |path: &&Path| {
        std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.uid() == 0 && it.mode() & 0o022 == 0)
    };
    let found = PLACES.iter().map(Path::new).find(trustworthy);
    found.map(Path::to_owned).ok_or_else(|| {
        SandboxError::Unavailable(
            "bubblewrap is not installed, so no test can be run; install it (Debian, Ubuntu: apt install bubblewrap)".into(),
        )
    })
}

/// All arguments of bubblewrap for `command`, run by `helper` inside.
pub(super) fn arguments(helper: &Path, command: &Command) -> Vec<OsString> {
    let mut argv = Argv::default();
    argv.add(["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--clearenv"]);
    argv.add(["--cap-drop", "ALL", "--hostname", "tadpole", "--disable-userns"]);
    for place in SYSTEM.iter().map(Path::new) {
        match std::fs::read_link(place) {
            Ok(target) if !place.starts_with("/etc") => {
                argv.add([OsStr::new("--symlink"), target.as_ref(), place.as_ref()])
            }
            _ if place.exists() => argv.bind("--ro-bind", place, place),
            _ => {}
        }
    }
    argv.add(["--proc", "/proc", "--dev", "/dev"]);
    argv.add(["--size", &TMP_SIZE.to_string(), "--tmpfs", "/tmp", "--dir", HOME]);
    argv.add(["--dir", "/var", "--symlink", "../tmp", "/var/tmp"]);
    for bind in &command.writable {
        argv.bind("--bind", &bind.host, &bind.inside);
    }
    for bind in &command.read_only {
        argv.bind("--ro-bind-try", &bind.host, &bind.inside);
    }
    let inside = argv.helper(helper);
    argv.add(["--remount-ro", "/"]);
    for (name, value) in environment(command) {
        argv.add([OsStr::new("--setenv"), name.as_ref(), value.as_ref()]);
    }
    argv.add([OsStr::new("--chdir"), command.cwd.as_ref(), "--".as_ref(), inside.as_ref(), INNER.as_ref()]);
    argv.add(["--file-size", &command.limits.file_size.to_string()]);
    argv.add(["--processes", &command.limits.processes.to_string()]);
    for bind in &command.writable {
        argv.add([OsStr::new("--write"), bind.inside.as_ref()]);
    }
    argv.add(["--"]);
    argv.add(&command.argv);
    argv.0
}

/// The first host path of `command` that may not be bound for writing, as it is reached through a link.
pub(super) fn linked(command: &Command) -> Option<&Path> {
    command.writable.iter().map(|bind| bind.host.as_path()).find(|host| has_link(host))
}

/// Variables that every command has unless its own environment says otherwise.
const DEFAULTS: &[(&str, &str)] = &[
    ("HOME", HOME),
    ("TMPDIR", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    ("CI", "1"),
    ("NO_COLOR", "1"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
];

fn environment(command: &Command) -> Vec<(String, OsString)> {
    let mut env = command.env.clone();
    for (name, value) in DEFAULTS {
        env.entry((*name).to_owned()).or_insert_with(|| value.into());
    }
    env.into_iter().collect()
}

/// Whether a variable is one that the sandbox itself sets.
pub(super) fn is_own_variable(name: &OsStr) -> bool {
    name == "PWD" || DEFAULTS.iter().any(|(own, _)| name == *own)
}

#[derive(Default)]
struct Argv(Vec<OsString>);

impl Argv {
    fn add<T: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = T>) {
        self.0.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
    }

    fn bind(&mut self, kind: &str, host: &Path, inside: &Path) {
        self.add([OsStr::new(kind), host.as_ref(), inside.as_ref()]);
    }

    /// Shows our binary and the libraries beside it that it is linked against; where it is inside.
    fn helper(&mut self, helper: &Path) -> PathBuf {
        let directory = Path::new(HELPER_DIR);
        let inside = directory.join(helper.file_name().unwrap_or(OsStr::new("tadpole")));
        self.bind("--ro-bind", helper, &inside);
        let beside = helper.parent().and_then(|parent| std::fs::read_dir(parent).ok());
        for entry in beside.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let text = name.to_string_lossy();
            let linked = text.starts_with("lib") && text.contains(".so") && !text.contains("-cpu-");
            if linked && entry.path().exists() {
                self.bind("--ro-bind", &entry.path(), &directory.join(&name));
            }
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bind, Limits};
    use super::*;

    fn command() -> Command {
        let bind = |path: &str| Bind { host: path.into(), inside: path.into() };
        Command {
            argv: vec!["true".into()],
            cwd: "/w".into(),
            env: [("HOME".to_owned(), "/elsewhere".into())].into(),
            writable: vec![Bind { host: "/pool/0/tree".into(), inside: "/w".into() }],
            read_only: vec![bind("/w/.venv")],
            limits: Limits::default(),
        }
    }

    fn position(argv: &[OsString], wanted: &[&str]) -> Option<usize> {
        argv.windows(wanted.len()).position(|window| window.iter().zip(wanted).all(|(a, b)| a == b))
    }

    #[test]
    fn what_is_read_only_is_mounted_over_what_is_writable_and_the_root_is_closed_last() {
        let argv = arguments(Path::new("/opt/tadpole"), &command());
        let tree = position(&argv, &["--bind", "/pool/0/tree", "/w"]);
        let environment = position(&argv, &["--ro-bind-try", "/w/.venv", "/w/.venv"]);
        let close = position(&argv, &["--remount-ro", "/"]);
        assert!(tree.is_some() && tree < environment && environment < close);
        assert!(position(&argv, &["--tmpfs", "/tmp"]) < tree);
    }

    #[test]
    fn neither_home_nor_the_whole_of_etc_is_shown() {
        let argv = arguments(Path::new("/opt/tadpole"), &command());
        for hidden in ["/", "/home", "/root", "/etc", "/var", "/run", "/etc/shadow", "/etc/ssh"] {
            assert_eq!(position(&argv, &["--ro-bind", hidden, hidden]), None, "{hidden}");
        }
        assert!(position(&argv, &["--unshare-all"]).is_some() && position(&argv, &["--clearenv"]).is_some());
    }

    #[test]
    fn a_given_variable_wins_over_the_default() {
        let argv = arguments(Path::new("/opt/tadpole"), &command());
        assert!(position(&argv, &["--setenv", "HOME", "/elsewhere"]).is_some());
        assert!(position(&argv, &["--setenv", "CI", "1"]).is_some());
    }
}
