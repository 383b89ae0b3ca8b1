//! The part of the second wall that Landlock has no rule for: system calls that belljar never makes, and that whoever broke
//! out of a sandbox could do harm with. The kernel refuses them (`EPERM`), to this process and to all that it starts.
//!
//! Landlock decides which files can be opened and changed in content. It has no rule for modes, owners, times and attributes
//! of whatever the user owns, nor for other processes' memory, name spaces, keys or shared memory.
//!
//! A list of what is refused, and not of what is allowed: the engine, the allocator and the C library may call something new
//! with any update, and a call that is missing from a list of allowed ones ends the process.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Which sockets can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    /// TCP and UDP, as belljar uses them: to upstreams and to name servers.
    Internet,
    /// None: nothing is connected to.
    None,
}

/// Modes, owners, times, attributes: no belljar that serves changes one.
const OF_FILES: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    libc::SYS_fanotify_init,
];

/// Other processes: their memory, their descriptors, their turns at the processor; and memory shared with them.
const OF_PROCESSES: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    PROCESS_MADVISE,
    PROCESS_MRELEASE,
    PIDFD_GETFD,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_ioprio_set,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// What a process is and sees, and the parts of the kernel in which most ways out of it were found.
const OF_THE_SYSTEM: &[libc::c_long] = &[
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_personality,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    OPEN_TREE,
    MOVE_MOUNT,
    FSOPEN,
    FSCONFIG,
    FSMOUNT,
    FSPICK,
    MOUNT_SETATTR,
    OPEN_TREE_ATTR,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    IO_URING_SETUP,
    IO_URING_ENTER,
    IO_URING_REGISTER,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    // Landlock has a rule for binding, and a socket that was never bound listens all the same.
    libc::SYS_listen,
];

// Calls that are newer than the C library's list; since Linux 5.1 they have one number everywhere.
const IO_URING_SETUP: libc::c_long = 425;
const IO_URING_ENTER: libc::c_long = 426;
const IO_URING_REGISTER: libc::c_long = 427;
const OPEN_TREE: libc::c_long = 428;
const MOVE_MOUNT: libc::c_long = 429;
const FSOPEN: libc::c_long = 430;
const FSCONFIG: libc::c_long = 431;
const FSMOUNT: libc::c_long = 432;
const FSPICK: libc::c_long = 433;
const CLONE3: libc::c_long = 435;
const PIDFD_GETFD: libc::c_long = 438;
const PROCESS_MADVISE: libc::c_long = 440;
const MOUNT_SETATTR: libc::c_long = 442;
const QUOTACTL_FD: libc::c_long = 443;
const PROCESS_MRELEASE: libc::c_long = 448;
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const OPEN_TREE_ATTR: libc::c_long = 467;
const FILE_SETATTR: libc::c_long = 469;

/// Older names of the same, and what only this architecture has.
#[cfg(target_arch = "x86_64")]
const OF_THIS_ARCHITECTURE: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_uselib,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
];
#[cfg(target_arch = "aarch64")]
const OF_THIS_ARCHITECTURE: &[libc::c_long] = &[libc::SYS_kexec_file_load];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OF_THIS_ARCHITECTURE: &[libc::c_long] = &[];

/// Commands to descriptors: flags of files, which are attributes by another way; and letters typed for whoever sits at a
/// terminal that was inherited.
const COMMANDS: [u64; 9] = [
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // the same of 32 bits
    0x4008_7602, // FS_IOC_SETVERSION
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
    0x4b4e,      // KDSIGACCEPT
];

/// New name spaces, as `clone` is asked for them.
const NAME_SPACES: [u64; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];

/// Calls by the numbers of the x32 ABI, which are other numbers of the same architecture.
const X32: libc::c_long = 0x4000_0000;

/// The x32 ABI's own numbers of: ioctl, sendmsg, ptrace, mq_notify, kexec_load, move_pages, sendmmsg, process_vm_readv,
/// process_vm_writev, execveat.
const X32_OWN: [libc::c_long; 10] = [514, 518, 521, 527, 528, 533, 538, 539, 540, 545];

/// Rules for one call: any of them refuses it; none refuse it always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refuses what belljar never calls, to this thread and to all that it starts.
///
/// # Errors
/// Says why this system has no such filter.
pub(super) fn raise(sockets: Sockets) -> Result<(), String> {
    apply(serving(sockets)?, libc::EPERM)?;
    // Its flags lie in memory, where no filter sees them. The C library does without where it is told that there is none.
    apply(BTreeMap::from([(CLONE3, Vec::new())]), libc::ENOSYS)
}

/// The same for a process that makes no connections, starts nothing, and has all that it needs in its hands.
///
/// # Errors
/// As [`raise`].
pub(super) fn raise_strict() -> Result<(), String> {
    alone(serving(Sockets::None)?)
}

/// The same for the process that writes the operator's files: it gives them their owner and modes, and starts nothing.
///
/// # Errors
/// As [`raise`].
pub(super) fn raise_outside() -> Result<(), String> {
    let mut rules = serving(Sockets::None)?;
    for own in [libc::SYS_fchmod, libc::SYS_fchown] {
        rules.remove(&own);
    }
    alone(rules)
}

/// Refuses these, and whatever starts a program or reaches one.
fn alone(mut rules: Rules) -> Result<(), String> {
    let more = [libc::SYS_execve, libc::SYS_execveat, libc::SYS_socketpair, libc::SYS_connect, libc::SYS_bind];
    refuse(&mut rules, &more);
    apply(rules, libc::EPERM)?;
    apply(BTreeMap::from([(CLONE3, Vec::new())]), libc::ENOSYS)
}

fn refuse(rules: &mut Rules, calls: &[libc::c_long]) {
    for call in calls {
        rules.insert(*call, Vec::new());
        if cfg!(target_arch = "x86_64") {
            rules.insert(*call | X32, Vec::new());
        }
    }
}

fn serving(sockets: Sockets) -> Result<Rules, String> {
    let mut rules = Rules::new();
    for calls in [OF_FILES, OF_PROCESSES, OF_THE_SYSTEM, OF_THIS_ARCHITECTURE] {
        refuse(&mut rules, calls);
    }
    if cfg!(target_arch = "x86_64") {
        for call in X32_OWN {
            // Old kernels took them without the mark too.
            rules.insert(call | X32, Vec::new());
            rules.insert(call, Vec::new());
        }
    }
    let equal = |at, value| condition(at, SeccompCmpOp::Eq, value);
    let other = |at, value| condition(at, SeccompCmpOp::Ne, value);
    let commands = COMMANDS.map(|command| rule(vec![equal(1, command)?]));
    rules.insert(libc::SYS_ioctl, commands.into_iter().collect::<Result<_, _>>()?);
    let spaces = NAME_SPACES.map(|space| rule(vec![condition(0, SeccompCmpOp::MaskedEq(space), space)?]));
    rules.insert(libc::SYS_clone, spaces.into_iter().collect::<Result<_, _>>()?);
    if cfg!(target_arch = "x86_64") {
        for call in [libc::SYS_clone, CLONE3, libc::SYS_prlimit64, libc::SYS_setpriority] {
            rules.insert(call | X32, Vec::new());
        }
    }
    // Limits and turns of its own, and of nobody else.
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![other(0, 0)?])?]);
    rules.insert(libc::SYS_setpriority, vec![rule(vec![other(0, 0)?])?, rule(vec![other(1, 0)?])?]);
    match sockets {
        Sockets::None => refuse(&mut rules, &[libc::SYS_socket]),
        Sockets::Internet => {
            let (v4, v6) = (number(libc::AF_INET), number(libc::AF_INET6));
            let (stream, datagram) = (number(libc::SOCK_STREAM), number(libc::SOCK_DGRAM));
            let kind = |kind| condition(1, SeccompCmpOp::MaskedEq(0xf), kind);
            let mut all = vec![
                // No socket of the machine's own: other programs' doors are files, and Landlock has no rule for them.
                rule(vec![other(0, v4)?, other(0, v6)?])?,
                // Nothing that goes round Landlock's rules for TCP, such as TCP over several paths.
                rule(vec![kind(stream)?, other(2, 0)?, other(2, number(libc::IPPROTO_TCP))?])?,
                rule(vec![kind(datagram)?, other(2, 0)?, other(2, number(libc::IPPROTO_UDP))?])?,
            ];
            for raw in (0..=0xf).filter(|raw| *raw != stream && *raw != datagram) {
                all.push(rule(vec![kind(raw)?])?);
            }
            rules.insert(libc::SYS_socket, all);
            // A connection that begins with its first bytes, which no rule for connecting sees.
            for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
                let fast = number(libc::MSG_FASTOPEN);
                rules.insert(call, vec![rule(vec![condition(flags, SeccompCmpOp::MaskedEq(fast), fast)?])?]);
            }
            if cfg!(target_arch = "x86_64") {
                for call in [libc::SYS_socket, libc::SYS_sendto, libc::SYS_sendmmsg] {
                    rules.insert(call | X32, Vec::new());
                }
            }
        }
    }
    Ok(rules)
}

/// A small constant of the C library.
fn number(constant: libc::c_int) -> u64 {
    u64::try_from(constant).unwrap_or_default()
}

fn condition(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value).map_err(|error| error.to_string())
}

/// A call that all of these are true of.
fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

fn apply(rules: Rules, refusal: libc::c_int) -> Result<(), String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let refusal = SeccompAction::Errno(u32::try_from(refusal).unwrap_or_default());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, architecture);
    let program = filter.and_then(BpfProgram::try_from).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}
