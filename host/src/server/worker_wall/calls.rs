//! The filter of system calls of a worker: a list of those that it makes. The kernel answers all others with `EPERM`.
//!
//! A worker is small: it reads files below the granted directories, talks over the sockets that the front gave it,
//! manages its memory and its threads, and reads the clocks. It starts no program, opens no socket, and names no file
//! outside of Landlock's rules.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Calls that are allowed with any arguments.
const ANY: &[libc::c_long] = &[
    // Open files, and files below the granted directories.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstatfs,
    libc::SYS_getdents64,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_readlinkat,
    libc::SYS_fadvise64,
    libc::SYS_dup,
    // The sockets that the front gave it.
    libc::SYS_recvmsg,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_ppoll,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    // Threads, and signals to itself: the engine turns faults of guests into traps.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // What it is, and what time it is.
    libc::SYS_geteuid,
    libc::SYS_getuid,
    libc::SYS_getegid,
    libc::SYS_getgid,
    libc::SYS_getpriority,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
    // How musl opens, describes and reads what it names. Landlock decides about the files, as with the calls above.
    #[cfg(all(target_arch = "x86_64", target_env = "musl"))]
    libc::SYS_open,
    #[cfg(all(target_arch = "x86_64", target_env = "musl"))]
    libc::SYS_stat,
    #[cfg(all(target_arch = "x86_64", target_env = "musl"))]
    libc::SYS_lstat,
    #[cfg(all(target_arch = "x86_64", target_env = "musl"))]
    libc::SYS_readlink,
];

/// Commands of `ioctl`: nonblocking mode, bytes to read, and which pages were written (`PAGEMAP_SCAN`).
const IOCTL_COMMANDS: [u64; 3] = [0x5421, 0x541b, 0xc060_6610];

/// Commands of `fcntl`: copies of descriptors, and their flags. Others lock files, or send signals to other processes.
const FCNTL_COMMANDS: [u64; 6] = [0, 1, 2, 3, 4, 1030];

/// Commands of `prctl`: names of threads and of memory.
const PRCTL_COMMANDS: [u64; 3] = [15, 16, 0x5356_4d41];

/// The flag of `clone` for a thread. Without it, the call starts a process.
const THREAD: u64 = 0x0001_0000;

/// The flags of `clone` for new namespaces.
const NAMESPACES: u64 = 0x7e02_0000;

/// The lowest priority of a thread. Compared without a sign, every higher priority than the usual one is larger.
const LOWEST_PRIORITY: u64 = 19;

/// The system call `clone3`, whose flags a filter cannot read.
const CLONE3: i64 = 435;

/// Why the filter cannot be installed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallFilterError {
    /// The rules cannot be compiled.
    #[error(transparent)]
    Rules(#[from] BackendError),
    /// The kernel refuses the filter.
    #[error(transparent)]
    Kernel(#[from] seccompiler::Error),
}

/// Installs the filter for this thread and all threads that it starts.
///
/// # Errors
/// If this system does not support the filter.
pub(super) fn allow_only_own() -> Result<(), CallFilterError> {
    let equal = |at, value| SeccompCondition::new(at, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    let one_of = |at, values: &[u64]| {
        values.iter().map(|value| SeccompRule::new(vec![equal(at, *value)?])).collect::<Result<Vec<_>, _>>()
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ANY.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_ioctl, one_of(1, &IOCTL_COMMANDS)?);
    rules.insert(libc::SYS_fcntl, one_of(1, &FCNTL_COMMANDS)?);
    rules.insert(libc::SYS_prctl, one_of(0, &PRCTL_COMMANDS)?);
    // Its own limits and priority, and not those of another process.
    rules.insert(libc::SYS_prlimit64, one_of(0, &[0])?);
    let is_low = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Le, LOWEST_PRIORITY)?;
    rules.insert(libc::SYS_setpriority, vec![SeccompRule::new(vec![equal(0, 0)?, equal(1, 0)?, is_low])?]);
    rules.insert(libc::SYS_tgkill, one_of(0, &[u64::from(std::process::id())])?);
    let flags = SeccompCmpOp::MaskedEq(THREAD | NAMESPACES);
    let is_thread = SeccompCondition::new(0, SeccompCmpArgLen::Dword, flags, THREAD)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    // With ENOSYS, the C library falls back to `clone`.
    apply(BTreeMap::from([(CLONE3, Vec::new())]), SeccompAction::Allow, refusal(libc::ENOSYS))?;
    rules.insert(CLONE3, Vec::new());
    apply(rules, refusal(libc::EPERM), SeccompAction::Allow)
}

fn refusal(errno: libc::c_int) -> SeccompAction {
    SeccompAction::Errno(u32::try_from(errno).unwrap_or_default())
}

fn apply(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    matching: SeccompAction,
) -> Result<(), CallFilterError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, others, matching, architecture);
    let program = filter.and_then(BpfProgram::try_from)?;
    Ok(seccompiler::apply_filter(&program)?)
}
