//! The part of the second wall for which Landlock has no rule: a seccomp filter of system calls.
//!
//! It refuses calls that belljar never makes, and that would be useful after an escape from the sandbox. The kernel
//! answers them with `EPERM`, in this process and in all processes that it starts.
//!
//! Landlock decides which files can be opened, and whether their contents can change. It has no rule for modes, owners,
//! times and attributes of the user's files, nor for other processes' memory, namespaces, keys or shared memory.
//!
//! This is a list of refused calls and not of allowed ones. An update of the engine, the allocator or the C library may
//! use a new call. A list of allowed calls would refuse it, and belljar would fail.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// The sockets that can be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    /// TCP and UDP, as belljar uses them: to upstreams and to name servers.
    Internet,
    /// No sockets: no grant needs a connection.
    None,
}

/// Calls that change modes, owners, times, attributes or quotas of files, or open files past Landlock's rules. A serving
/// belljar needs none.
const FILE_CALLS: &[libc::c_long] = &[
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

/// Calls that reach other processes: their memory, their descriptors, their scheduling, and shared memory.
const PROCESS_CALLS: &[libc::c_long] = &[
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

/// Calls that change the identity or the view of a process, and parts of the kernel with a history of vulnerabilities.
const IDENTITY_AND_KERNEL_CALLS: &[libc::c_long] = &[
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
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
    // Landlock has a rule for binding, but a socket that was never bound can listen too.
    libc::SYS_listen,
];

// Calls that the C library's list lacks. Calls added since Linux 5.1 have the same number on every architecture.
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

/// Older variants of the calls above, and calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE_CALLS: &[libc::c_long] = &[
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
/// `kexec_file_load` by its number: the crate libc has no name for it in musl of this architecture.
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE_CALLS: &[libc::c_long] = &[294];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE_CALLS: &[libc::c_long] = &[];

/// Refused `ioctl` commands: flags of files, which are attributes too; and commands that simulate input on an inherited
/// terminal.
const IOCTL_COMMANDS: [u64; 9] = [
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC_SETFLAGS, 32 bits
    0x4008_7602, // FS_IOC_SETVERSION
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
    0x4b4e,      // KDSIGACCEPT
];

/// The flags of `clone` for new namespaces.
const NAMESPACES: [u64; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];

/// The bit that marks the numbers of the x32 ABI, a second set of numbers for the calls of x86-64.
const X32: libc::c_long = 0x4000_0000;

/// Calls with a special number in the x32 ABI: ioctl, sendmsg, ptrace, mq_notify, kexec_load, move_pages, sendmmsg,
/// process_vm_readv, process_vm_writev, execveat.
const X32_SPECIAL: [libc::c_long; 10] = [514, 518, 521, 527, 528, 533, 538, 539, 540, 545];

/// The rules of each call. One matching rule refuses the call. An empty list always refuses it.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Why the filter of system calls cannot be installed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    /// The rules cannot be compiled.
    #[error(transparent)]
    Rules(#[from] BackendError),
    /// The kernel refuses the filter.
    #[error(transparent)]
    Kernel(#[from] seccompiler::Error),
}

/// Installs the filter for this thread and all threads and processes that it starts.
///
/// # Errors
/// If this system does not support the filter.
pub(super) fn raise(sockets: Sockets) -> Result<(), FilterError> {
    apply(base_rules(sockets)?, libc::EPERM)?;
    // The flags of `clone3` are in memory, which a filter cannot read. With ENOSYS, the C library falls back to
    // `clone`.
    apply(BTreeMap::from([(CLONE3, Vec::new())]), libc::ENOSYS)
}

/// The filter of the compiler process, which starts no program, opens no connection and uses only its open pipes.
///
/// # Errors
/// As [`raise`].
pub(super) fn raise_for_compiler() -> Result<(), FilterError> {
    apply_isolated(base_rules(Sockets::None)?)
}

/// The filter of the helper process, which starts no program, but sets the owner and mode of the operator's files.
///
/// # Errors
/// As [`raise`].
pub(super) fn raise_for_helper() -> Result<(), FilterError> {
    let mut rules = base_rules(Sockets::None)?;
    for own in [libc::SYS_fchmod, libc::SYS_fchown] {
        rules.remove(&own);
    }
    apply_isolated(rules)
}

/// The filter of the launcher process, and so of the workers that it starts. It connects by TCP alone.
///
/// # Errors
/// As [`raise`].
pub(super) fn raise_for_launcher() -> Result<(), FilterError> {
    let mut rules = base_rules(Sockets::Internet)?;
    refuse(&mut rules, &[libc::SYS_bind]);
    let datagram = condition(1, SeccompCmpOp::MaskedEq(0xf), number(libc::SOCK_DGRAM))?;
    rules.entry(libc::SYS_socket).or_default().push(rule(vec![datagram])?);
    apply(rules, libc::EPERM)?;
    apply(BTreeMap::from([(CLONE3, Vec::new())]), libc::ENOSYS)
}

/// Installs `rules`, and also refuses every call that starts a program or connects to one.
fn apply_isolated(mut rules: Rules) -> Result<(), FilterError> {
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

/// The rules that every process of belljar has.
fn base_rules(sockets: Sockets) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    for calls in [FILE_CALLS, PROCESS_CALLS, IDENTITY_AND_KERNEL_CALLS, ARCHITECTURE_CALLS] {
        refuse(&mut rules, calls);
    }
    if cfg!(target_arch = "x86_64") {
        for call in X32_SPECIAL {
            // Old kernels also accept these numbers without the x32 bit.
            rules.insert(call | X32, Vec::new());
            rules.insert(call, Vec::new());
        }
    }
    let equal = |at, value| condition(at, SeccompCmpOp::Eq, value);
    let unequal = |at, value| condition(at, SeccompCmpOp::Ne, value);
    let commands = IOCTL_COMMANDS.map(|command| rule(vec![equal(1, command)?]));
    rules.insert(libc::SYS_ioctl, commands.into_iter().collect::<Result<_, _>>()?);
    let spaces = NAMESPACES.map(|space| rule(vec![condition(0, SeccompCmpOp::MaskedEq(space), space)?]));
    rules.insert(libc::SYS_clone, spaces.into_iter().collect::<Result<_, _>>()?);
    if cfg!(target_arch = "x86_64") {
        for call in [libc::SYS_clone, CLONE3, libc::SYS_prlimit64, libc::SYS_setpriority] {
            rules.insert(call | X32, Vec::new());
        }
    }
    // A process may change its own limits and priority (process id 0), and not those of another.
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![unequal(0, 0)?])?]);
    rules.insert(libc::SYS_setpriority, vec![rule(vec![unequal(0, 0)?])?, rule(vec![unequal(1, 0)?])?]);
    match sockets {
        Sockets::None => refuse(&mut rules, &[libc::SYS_socket]),
        Sockets::Internet => {
            let (v4, v6) = (number(libc::AF_INET), number(libc::AF_INET6));
            let (stream, datagram) = (number(libc::SOCK_STREAM), number(libc::SOCK_DGRAM));
            let kind = |kind| condition(1, SeccompCmpOp::MaskedEq(0xf), kind);
            let mut all = vec![
                // Only IPv4 and IPv6. In particular no Unix sockets: Landlock has no rule for connecting to one by its
                // path.
                rule(vec![unequal(0, v4)?, unequal(0, v6)?])?,
                // Only plain TCP and UDP: Landlock's rules for TCP do not cover other protocols, such as Multipath TCP.
                rule(vec![kind(stream)?, unequal(2, 0)?, unequal(2, number(libc::IPPROTO_TCP))?])?,
                rule(vec![kind(datagram)?, unequal(2, 0)?, unequal(2, number(libc::IPPROTO_UDP))?])?,
            ];
            for raw in (0..=0xf).filter(|raw| *raw != stream && *raw != datagram) {
                all.push(rule(vec![kind(raw)?])?);
            }
            rules.insert(libc::SYS_socket, all);
            // TCP Fast Open connects while sending, and Landlock's rule for connecting does not see it.
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

/// Converts a constant of the C library to the type of the filter's operands.
fn number(constant: libc::c_int) -> u64 {
    u64::try_from(constant).unwrap_or_default()
}

/// A condition on the argument with this index: its low 32 bits, compared with `value`.
fn condition(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
}

/// A rule that matches a call if all conditions are true.
fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

fn apply(rules: Rules, refusal: libc::c_int) -> Result<(), FilterError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let refusal = SeccompAction::Errno(u32::try_from(refusal).unwrap_or_default());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, architecture);
    let program = filter.and_then(BpfProgram::try_from)?;
    Ok(seccompiler::apply_filter(&program)?)
}
