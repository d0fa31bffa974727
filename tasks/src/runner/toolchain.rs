//! The toolchain that a person runs a project's tests with: found on the host without running anything of the repository,
//! and shown at the same paths inside the sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Environment, Framework, TestConfig};
use crate::sandbox::{Bind, scrub};
use crate::snapshot::Snapshot;

/// Where the sandbox has its home directory.
const HOME: &str = "/tmp/home";

/// The environment of the project in `dir`. A tool that is missing is named in the description, and found missing when run.
pub(super) fn find(
    snapshot: &Snapshot,
    dir: &Path,
    framework: Framework,
    config: &TestConfig,
) -> Environment {
    let project = snapshot.root().join(dir);
    let mut environment = match framework {
        Framework::Pytest | Framework::Unittest => python(snapshot, dir, config),
        Framework::Cargo => cargo(&project, config),
        Framework::Nextest => {
            let mut environment = cargo(&project, config);
            environment.show_nextest();
            environment
        }
        Framework::Go => go(config),
        Framework::Vitest | Framework::Jest | Framework::Node => node(config),
    };
    environment.read_only.extend(snapshot.dependencies().iter().map(|path| same(path)));
    environment.env.extend(config.env.iter().map(|(name, value)| (name.clone(), value.into())));
    scrub(&mut environment.env);
    environment
}

/// Whether pytest lies in the interpreter that is used for `dir`.
pub(super) fn has_pytest(snapshot: &Snapshot, dir: &Path, config: &TestConfig) -> bool {
    interpreter(snapshot, dir, config).is_some_and(|python| {
        let packages = |prefix: &Path| {
            let libraries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
            libraries.map(|it| it.path()).any(|lib| {
                ["site-packages", "dist-packages"].iter().any(|it| lib.join(it).join("pytest").is_dir())
            })
        };
        packages(&python.prefix) || (python.venv.is_none() && packages(Path::new("/usr")))
    })
}

/// cargo-nextest on the host.
pub(super) fn nextest() -> Option<PathBuf> {
    on_path("cargo-nextest")
        .or_else(|| Some(cargo_home().join("bin/cargo-nextest")).filter(|it| it.is_file()))
}

/// An interpreter of Python.
struct Python {
    program: PathBuf,
    version: String,
    /// Where its library is.
    prefix: PathBuf,
    /// The virtual environment, if it is one.
    venv: Option<PathBuf>,
    /// The installation behind the virtual environment.
    base: PathBuf,
}

fn python(snapshot: &Snapshot, dir: &Path, config: &TestConfig) -> Environment {
    let Some(python) = interpreter(snapshot, dir, config) else {
        return missing(
            "python3",
            "install Python, or name an interpreter as `program` under [tests] in .tadpole.toml",
        );
    };
    let mut environment = Environment {
        description: format!("Python {} at {}", python.version, python.program.display()),
        ..Environment::default()
    };
    environment.show(&python.base);
    environment.path(python.program.parent().unwrap_or(Path::new("/usr/bin")));
    if let Some(venv) = &python.venv {
        environment.show(venv);
        environment.env.insert("VIRTUAL_ENV".to_owned(), venv.into());
    }
    environment.program = python.program;
    environment
}

/// The interpreter by configuration, the nearest virtual environment, the active one, or the search path.
fn interpreter(snapshot: &Snapshot, dir: &Path, config: &TestConfig) -> Option<Python> {
    if let Some(program) = &config.program {
        let program = snapshot.root().join(program);
        return from_program(&program, snapshot.root());
    }
    let near = snapshot.root().join(dir);
    let above = near.ancestors().take_while(|it| it.starts_with(snapshot.root()));
    let environments = above.flat_map(|it| [".venv", "venv", "env"].map(|name| it.join(name)));
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    environments.chain(active).find_map(|it| from_prefix(&it)).or_else(|| {
        let program = on_path("python3").or_else(|| on_path("python"))?;
        // Directories of the search path may lie in the repository, and nothing of it is run here.
        (!program.starts_with(snapshot.root())).then(|| ask(&program)).flatten()
    })
}

fn from_program(program: &Path, root: &Path) -> Option<Python> {
    let prefix = program.parent()?.parent()?;
    if prefix.join("pyvenv.cfg").is_file() {
        return from_prefix(prefix).map(|python| Python { program: program.to_owned(), ..python });
    }
    let outside = program.canonicalize().is_ok_and(|it| !it.starts_with(root));
    if outside { ask(program) } else { None }
}

/// A virtual environment, read from its `pyvenv.cfg`, or a whole installation such as conda's.
fn from_prefix(prefix: &Path) -> Option<Python> {
    let program =
        [prefix.join("bin/python"), prefix.join("bin/python3")].into_iter().find(|it| it.exists())?;
    let Ok(settings) = std::fs::read_to_string(prefix.join("pyvenv.cfg")) else {
        let version = prefix.join("conda-meta").is_dir().then(|| "of conda".to_owned())?;
        return Some(Python {
            program,
            version,
            prefix: prefix.to_owned(),
            venv: None,
            base: prefix.to_owned(),
        });
    };
    let setting = |names: &[&str]| {
        settings
            .lines()
            .filter_map(|line| line.split_once('='))
            .find_map(|(name, value)| names.contains(&name.trim()).then(|| value.trim().to_owned()))
    };
    // The link leads to the real installation even where `home` is a directory of shims.
    let real = program.canonicalize().ok()?;
    let base = real.parent()?.parent()?.to_owned();
    let version = setting(&["version", "version_info"]).unwrap_or_default();
    Some(Python { program, version, prefix: prefix.to_owned(), venv: Some(prefix.to_owned()), base })
}

/// Asks an interpreter outside of the repository about itself; a shim answers with what it leads to.
fn ask(program: &Path) -> Option<Python> {
    const QUESTION: &str = "import platform, sys; print(sys.executable, sys.prefix, sys.base_prefix, platform.python_version(), sep='\\n')";
    let answer = output(Command::new(program).args(["-I", "-c", QUESTION]).current_dir("/"))?;
    let mut lines = answer.lines();
    let (executable, prefix, base) =
        (lines.next()?, PathBuf::from(lines.next()?), PathBuf::from(lines.next()?));
    let venv = prefix.join("pyvenv.cfg").is_file().then(|| prefix.clone());
    Some(Python { program: executable.into(), version: lines.next()?.to_owned(), prefix, venv, base })
}

fn cargo(project: &Path, config: &TestConfig) -> Environment {
    let Some(rustc) =
        on_path("rustc").or_else(|| Some(cargo_home().join("bin/rustc")).filter(|it| it.is_file()))
    else {
        return missing("cargo", "install Rust");
    };
    // Asked in the project, as a toolchain file may choose; nothing is installed by that.
    let sysroot = |cwd: &Path| {
        let mut command = Command::new(&rustc);
        output(command.args(["--print", "sysroot"]).env("RUSTUP_AUTO_INSTALL", "0").current_dir(cwd))
    };
    let Some(sysroot) =
        sysroot(project).or_else(|| sysroot(Path::new("/"))).map(|it| PathBuf::from(it.trim()))
    else {
        return missing("rustc", "check it with `rustc --version` in the repository");
    };
    let mut environment = Environment::default();
    environment.show(&sysroot);
    environment.path(&sysroot.join("bin"));
    environment.program = config.program.clone().unwrap_or_else(|| sysroot.join("bin/cargo"));
    if !environment.program.is_file() {
        // Debian's package has cargo beside rustc.
        environment.program = on_path("cargo").unwrap_or_else(|| "cargo".into());
    }
    let version = output(Command::new(sysroot.join("bin/rustc")).arg("--version").current_dir("/"));
    let version = version.map(|it| it.trim().to_owned()).unwrap_or_default();
    environment.description = format!("{version} at {}", sysroot.display());
    let home = Path::new(HOME).join("cargo");
    for part in ["registry", "git"] {
        let host = cargo_home().join(part);
        if host.is_dir() {
            environment.read_only.push(Bind { host, inside: home.join(part) });
        }
    }
    environment.read_only.extend(configuration().map(|host| Bind { host, inside: home.join("config.toml") }));
    let settings = [
        ("CARGO_HOME", home.into_os_string()),
        ("CARGO_NET_OFFLINE", "true".into()),
        ("CARGO_TERM_COLOR", "never".into()),
        // A compiler cache of the person is not there.
        ("CARGO_BUILD_RUSTC_WRAPPER", "".into()),
    ];
    environment.env.extend(settings.map(|(name, value)| (name.to_owned(), value)));
    environment
}

impl Environment {
    /// Shows cargo-nextest beside cargo.
    fn show_nextest(&mut self) {
        let Some(host) = nextest() else { return };
        let bin = Path::new(HOME).join("nextest");
        self.read_only.push(Bind { host, inside: bin.join("cargo-nextest") });
        self.path(&bin);
        self.description.push_str(", with nextest");
    }

    /// Shows a directory at its own path, unless the sandbox shows it anyway.
    fn show(&mut self, path: &Path) {
        let shown = ["/usr", "/bin", "/lib", "/lib64", "/nix/store"].iter().any(|it| path.starts_with(it));
        if !shown {
            self.read_only.push(same(path));
        }
    }

    /// Puts `dir` first on the search path.
    fn path(&mut self, dir: &Path) {
        let old = self.env.remove("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut new = OsString::from(dir);
        new.push(":");
        new.push(old);
        self.env.insert("PATH".to_owned(), new);
    }
}

/// The person's configuration of cargo, which says where crates come from; not shown if it may hold a secret.
fn configuration() -> Option<PathBuf> {
    let files = [cargo_home().join("config.toml"), cargo_home().join("config")];
    let file = files.into_iter().find(|file| file.is_file())?;
    let text = std::fs::read_to_string(&file).ok()?;
    (!["token", "secret", "password", "[env"].iter().any(|it| text.contains(it))).then_some(file)
}

fn cargo_home() -> PathBuf {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(home()?.join(".cargo")))
        .unwrap_or_default()
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

fn go(config: &TestConfig) -> Environment {
    let Some(program) = config.program.clone().or_else(|| on_path("go")) else {
        return missing("go", "install Go");
    };
    let answer = output(
        Command::new(&program)
            .args(["env", "GOROOT", "GOMODCACHE", "GOVERSION"])
            .env("GOTOOLCHAIN", "local")
            .current_dir("/"),
    );
    let Some(answer) = answer else { return missing("go", "check it with `go version`") };
    let mut lines = answer.lines();
    let mut next = || lines.next().unwrap_or_default().to_owned();
    let (root, modules, version) = (PathBuf::from(next()), next(), next());
    let mut environment = Environment {
        program,
        description: format!("{version} at {}", root.display()),
        ..Environment::default()
    };
    environment.show(&root);
    environment.path(&root.join("bin"));
    environment.show(Path::new(&modules));
    let settings = [
        ("GOPATH", format!("{HOME}/go")),
        ("GOMODCACHE", modules),
        ("GOPROXY", "off".to_owned()),
        ("GOTOOLCHAIN", "local".to_owned()),
        ("GOTELEMETRY", "off".to_owned()),
        ("GOFLAGS", "-buildvcs=false".to_owned()),
    ];
    environment.env.extend(settings.map(|(name, value)| (name.to_owned(), value.into())));
    environment
}

fn node(config: &TestConfig) -> Environment {
    let Some(program) = config.program.clone().or_else(|| on_path("node")) else {
        return missing("node", "install Node.js");
    };
    let program = program.canonicalize().unwrap_or(program);
    let version = output(Command::new(&program).arg("--version").current_dir("/")).unwrap_or_default();
    let mut environment = Environment {
        description: format!("Node.js {} at {}", version.trim(), program.display()),
        ..Environment::default()
    };
    if let Some(prefix) = program.parent().and_then(Path::parent) {
        environment.show(prefix);
    }
    environment.path(program.parent().unwrap_or(Path::new("/usr/bin")));
    environment.program = program;
    environment
}

fn missing(program: &str, advice: &str) -> Environment {
    Environment {
        program: program.into(),
        description: format!("{program} was not found; {advice}"),
        ..Environment::default()
    }
}

fn same(path: &Path) -> Bind {
    Bind { host: path.to_owned(), inside: path.to_owned() }
}

/// The program of that name on the search path.
fn on_path(name: &str) -> Option<PathBuf> {
    let path =
        std::env::var_os("PATH").unwrap_or_else(|| OsStr::new("/usr/local/bin:/usr/bin:/bin").to_owned());
    std::env::split_paths(&path).filter(|it| it.is_absolute()).map(|it| it.join(name)).find(|it| it.is_file())
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
