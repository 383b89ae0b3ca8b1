//! The filter of system calls: a list of those that a request makes. The kernel answers all others with `EPERM`.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Calls that are allowed with any arguments.
const ANY: &[libc::c_long] = &[
    // Files in the directory, and standard output.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_openat,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_flock,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    // Sockets.
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
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
    // The process itself.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_sched_getaffinity,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
];

/// Commands of `ioctl`: nonblocking mode, and bytes to read.
const IOCTL_COMMANDS: [u64; 2] = [0x5421, 0x541b];

/// Commands of `fcntl`: copies of descriptors, and their flags.
const FCNTL_COMMANDS: [u64; 6] = [0, 1, 2, 3, 4, 1030];

/// Why the filter cannot be installed.
#[derive(Debug)]
pub(super) enum CallFilterError {
    /// The rules cannot be compiled.
    Rules(BackendError),
    /// The kernel refuses the filter.
    Kernel(seccompiler::Error),
}

impl std::fmt::Display for CallFilterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rules(error) => error.fmt(f),
            Self::Kernel(error) => error.fmt(f),
        }
    }
}

impl From<BackendError> for CallFilterError {
    fn from(error: BackendError) -> Self {
        Self::Rules(error)
    }
}

/// Installs the filter for this thread.
///
/// # Errors
/// If this system does not support the filter.
pub(super) fn allow_only_own() -> Result<(), CallFilterError> {
    let condition = |at, is, value| SeccompCondition::new(at, SeccompCmpArgLen::Dword, is, value);
    let one_of = |at, values: &[u64]| {
        let rule = |value: &u64| SeccompRule::new(vec![condition(at, SeccompCmpOp::Eq, *value)?]);
        values.iter().map(rule).collect::<Result<Vec<_>, BackendError>>()
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ANY.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_ioctl, one_of(1, &IOCTL_COMMANDS)?);
    rules.insert(libc::SYS_fcntl, one_of(1, &FCNTL_COMMANDS)?);
    // Plain TCP and UDP: Landlock's rules for TCP do not cover other protocols, such as Multipath TCP.
    let mut sockets = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        for (kind, protocol) in [(libc::SOCK_STREAM, libc::IPPROTO_TCP), (libc::SOCK_DGRAM, libc::IPPROTO_UDP)] {
            for protocol in [0, protocol] {
                sockets.push(SeccompRule::new(vec![
                    condition(0, SeccompCmpOp::Eq, number(family))?,
                    condition(1, SeccompCmpOp::MaskedEq(0xf), number(kind))?,
                    condition(2, SeccompCmpOp::Eq, number(protocol))?,
                ])?);
            }
        }
    }
    rules.insert(libc::SYS_socket, sockets);
    // TCP Fast Open connects while sending, and Landlock's rule for connecting does not see it.
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        let plain = condition(flags, SeccompCmpOp::MaskedEq(number(libc::MSG_FASTOPEN)), 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![plain])?]);
    }
    // A process ends itself after a panic.
    rules.insert(libc::SYS_tgkill, one_of(0, &[u64::from(std::process::id())])?);
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let refusal = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap_or_default());
    let filter = SeccompFilter::new(rules, refusal, SeccompAction::Allow, architecture)?;
    let program = BpfProgram::try_from(filter)?;
    seccompiler::apply_filter(&program).map_err(CallFilterError::Kernel)
}

/// Converts a constant of the C library to the type of the filter's operands.
fn number(constant: libc::c_int) -> u64 {
    u64::try_from(constant).unwrap_or_default()
}
