//! The helper inside: it runs as the first program of the sandbox, gives up what is left, and becomes the command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
    path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::INNER;

type Failure = Box<dyn std::error::Error>;

/// Exit codes with a meaning for the other side: set-up failed, or the command cannot be executed.
const SETUP_FAILED: i32 = 126;
const CANNOT_EXECUTE: i32 = 127;

/// How far commands stand back behind what a person works with.
const NICENESS: i32 = 5;

struct Policy {
    file_size: u64,
    processes: u64,
    writable: Vec<PathBuf>,
    command: Vec<OsString>,
}

/// Applies what `args` say and executes the command.
pub(super) fn main(args: &[OsString]) -> ! {
    if args.first().is_some_and(|it| it == super::probe::FLAG) {
        super::probe::inside(&args[1..]);
    }
    // The editor and the language server go first. Where that is refused, it runs as it is.
    let _ = rustix::process::nice(NICENESS);
    let confined = parse(args).and_then(|policy| confine(&policy).map(|()| policy));
    let policy = match confined {
        Ok(policy) => policy,
        Err(error) => {
            eprintln!("{INNER}: {error}");
            std::process::exit(SETUP_FAILED)
        }
    };
    let error = std::process::Command::new(&policy.command[0]).args(&policy.command[1..]).exec();
    eprintln!("{INNER}: {error}");
    std::process::exit(CANNOT_EXECUTE)
}

fn parse(args: &[OsString]) -> Result<Policy, Failure> {
    let mut policy =
        Policy { file_size: u64::MAX, processes: u64::MAX, writable: Vec::new(), command: Vec::new() };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        if name == "--" {
            policy.command = args.cloned().collect();
            break;
        }
        let value = args.next().ok_or("an option has no value")?;
        let number = || value.to_string_lossy().parse::<u64>();
        match name.to_str() {
            Some("--file-size") => policy.file_size = number()?,
            Some("--processes") => policy.processes = number()?,
            Some("--write") => policy.writable.push(value.into()),
            _ => return Err("an unknown option".into()),
        }
    }
    if policy.command.is_empty() { Err("no command".into()) } else { Ok(policy) }
}

fn confine(policy: &Policy) -> Result<(), Failure> {
    close_descriptors()?;
    limits(policy)?;
    landlock(&policy.writable)?;
    for program in filters()? {
        seccompiler::apply_filter(&program)?;
    }
    Ok(())
}

/// Descriptors above standard error close when the command is executed: bubblewrap passes on what it inherited.
fn close_descriptors() -> std::io::Result<()> {
    // SAFETY: the call only sets a flag on descriptors; none of them is used by this thread afterwards.
    let result = unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn limits(policy: &Policy) -> rustix::io::Result<()> {
    let both = |value| Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(Resource::Core, both(0))?;
    setrlimit(Resource::Fsize, both(policy.file_size))?;
    setrlimit(Resource::Nproc, both(policy.processes))?;
    Ok(())
}

/// A second line behind the view: writes only where they are meant to go, no signals and abstract sockets to the
/// outside. Best effort, as the view alone keeps the promise.
fn landlock(writable: &[PathBuf]) -> Result<(), Failure> {
    let abi = ABI::V6;
    let writes = AccessFs::from_write(abi);
    let places =
        writable.iter().map(PathBuf::as_path).chain(["/tmp", "/dev", "/proc"].map(std::path::Path::new));
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writes)?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(places, writes))?
        .restrict_self()?;
    Ok(())
}

/// System calls that no build or test needs and that reach beyond the sandbox, its descriptors or the kernel's safer parts.
const DENIED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_fanotify_init,
];

fn filters() -> Result<Vec<BpfProgram>, Failure> {
    let equal = |index, value| SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    let differs = |value| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value);
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|&call| (call, Vec::new())).collect();
    // Typing into a terminal that someone else reads.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| equal(1, request));
    let typing: Result<Vec<_>, _> = typing.into_iter().map(|it| SeccompRule::new(vec![it?])).collect();
    rules.insert(libc::SYS_ioctl, typing?);
    // Only the families that programs use among themselves; the rest (vsock, packet, alg, ...) reach further.
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let others: Result<Vec<_>, _> = families.into_iter().map(|family| differs(family as u64)).collect();
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(others?)?]);
    // New user namespaces give power over more of the kernel.
    let new_user = SeccompCmpOp::MaskedEq(libc::CLONE_NEWUSER as u64);
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, new_user, libc::CLONE_NEWUSER as u64)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![condition])?]);
    let denied = filter(rules, libc::EPERM)?;
    // Its flags lie in memory where a filter cannot look; C libraries fall back to clone.
    let unknown = filter([(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS)?;
    Ok(vec![denied, unknown])
}

fn filter(
    rules: std::collections::BTreeMap<i64, Vec<SeccompRule>>,
    error: i32,
) -> Result<BpfProgram, Failure> {
    let (otherwise, matched) = (SeccompAction::Allow, SeccompAction::Errno(error as u32));
    Ok(SeccompFilter::new(rules, otherwise, matched, std::env::consts::ARCH.try_into()?)?.try_into()?)
}
