//! Attempts on processes: the front, other workers, and new ones.

use std::io;

use super::kernel::{
    Attempt, AttemptArguments, Attempted, address, call, descriptor, in_child, negative, plain, waited,
};

/// The attempts on processes. The first argument of most is the number of the process.
pub(super) const LIST: &[(&str, Attempt)] = &[
    ("read-memory", |a| {
        let bytes = [0_u8; 8];
        let own = [address(&bytes), bytes.len()];
        let theirs = [a.number(1), bytes.len()];
        plain(libc::SYS_process_vm_readv, &[a.number(0), address(&own), 1, address(&theirs), 1, 0])
    }),
    ("trace", |a| in_child(|| plain(libc::SYS_ptrace, &[0x4206, a.number(0), 0, 0]))),
    ("be-traced", |_| in_child(|| plain(libc::SYS_ptrace, &[0, 0, 0, 0]))),
    ("pidfd", |a| descriptor(libc::SYS_pidfd_open, &[a.number(0), 0])),
    ("pidfd-steal", |a| on_pidfd(a, |pidfd| descriptor(libc::SYS_pidfd_getfd, &[pidfd, a.number(1), 0]))),
    ("pidfd-signal", |a| on_pidfd(a, |pidfd| plain(libc::SYS_pidfd_send_signal, &[pidfd, 0, 0, 0]))),
    ("pidfd-of-socket", |_| {
        // The kernel gives a handle of the process at the other end of a socket. Without further calls, it is of no use.
        let (pidfd, length) = ([-1_i32; 1], [4_u32; 1]);
        call(libc::SYS_getsockopt, &[0, 1, 77, address(&pidfd), address(&length)])?;
        let pidfd = std::hint::black_box(pidfd).first().copied().unwrap_or(-1);
        let stolen = descriptor(libc::SYS_pidfd_getfd, &[negative(pidfd), 2, 0]);
        let _ = call(libc::SYS_close, &[negative(pidfd)]);
        stolen
    }),
    // Signal 0 only asks for the permission.
    ("kill", |a| plain(libc::SYS_kill, &[a.number(0), 0])),
    ("kill-all", |_| plain(libc::SYS_kill, &[0, 0])),
    ("kill-thread", |a| plain(libc::SYS_tgkill, &[a.number(0), a.number(0), 0])),
    ("kill-thread-old", |a| plain(libc::SYS_tkill, &[a.number(0), 0])),
    ("queue-signal", |a| {
        // The code "from `sigqueue`", and signal 0.
        let info =
            [0_u32, 0, u32::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        plain(libc::SYS_rt_sigqueueinfo, &[a.number(0), 0, address(&info)])
    }),
    ("signal-by-socket", signal_by_socket),
    ("limits", |a| {
        let limits = [0_u64; 2];
        plain(libc::SYS_prlimit64, &[a.number(0), 7, 0, address(&limits)])
    }),
    ("set-limits", |a| {
        // The limits that the process has.
        let limits = [0_u64; 2];
        call(libc::SYS_prlimit64, &[a.number(0), 7, 0, address(&limits)])?;
        plain(libc::SYS_prlimit64, &[a.number(0), 7, address(&limits), 0])
    }),
    ("set-affinity", |a| {
        let mask = [0_u64; 16];
        call(libc::SYS_sched_getaffinity, &[a.number(0), 128, address(&mask)])?;
        plain(libc::SYS_sched_setaffinity, &[a.number(0), 128, address(&mask)])
    }),
    ("set-scheduler", |a| {
        let priority = [0_i32; 1];
        plain(libc::SYS_sched_setscheduler, &[a.number(0), 0, address(&priority)])
    }),
    ("set-priority", |a| plain(libc::SYS_setpriority, &[0, a.number(0), 0])),
    ("set-disk-priority", |a| plain(libc::SYS_ioprio_set, &[1, a.number(0), 0])),
    ("compare", |a| plain(libc::SYS_kcmp, &[a.number(0), a.number(0), 0, 0, 0])),
    ("fork", |_| forked(raw_fork()?)),
    ("vfork", |_| raw_vfork()),
    ("clone", |_| forked(call(libc::SYS_clone, &[negative(libc::SIGCHLD)])?)),
    ("clone3", |_| {
        let arguments = [0_u64, 0, 0, 0, 17, 0, 0, 0];
        forked(call(libc::SYS_clone3, &[address(&arguments), size_of_val(&arguments)])?)
    }),
    ("clone-in-namespace", |a| thread_with(a.number(0))),
    ("execute", |a| {
        in_child(|| {
            let arguments = [a.pointer(0), a.pointer(1), 0];
            let none = [0_usize; 1];
            plain(libc::SYS_execve, &[a.pointer(0), address(&arguments), address(&none)])
        })
    }),
    ("execute-at", |a| {
        in_child(|| {
            let arguments = [a.pointer(0), a.pointer(1), 0];
            let none = [0_usize; 1];
            let here = negative(libc::AT_FDCWD);
            plain(libc::SYS_execveat, &[here, a.pointer(0), address(&arguments), address(&none), 0])
        })
    }),
    ("execute-memory", |_| {
        in_child(|| {
            let file = call(libc::SYS_memfd_create, &[c"x".as_ptr() as usize, 0])?;
            let script = b"#!/bin/true\n";
            call(libc::SYS_write, &[file, address(script), script.len()])?;
            let (arguments, none) = ([c"x".as_ptr() as usize, 0], [0_usize; 1]);
            plain(libc::SYS_execveat, &[file, c"".as_ptr() as usize, address(&arguments), address(&none), 0x1000])
        })
    }),
];

fn on_pidfd(arguments: &AttemptArguments, work: impl FnOnce(usize) -> Attempted) -> Attempted {
    let pidfd = call(libc::SYS_pidfd_open, &[arguments.number(0), 0])?;
    let done = work(pidfd);
    let _ = call(libc::SYS_close, &[pidfd]);
    done
}

/// Makes the front the owner of a descriptor, so that the kernel sends it a signal when bytes arrive there. The signal is
/// one that the process ignores: "window size changed".
fn signal_by_socket(arguments: &AttemptArguments) -> Attempted {
    call(libc::SYS_fcntl, &[0, 8, arguments.number(0)])?;
    plain(libc::SYS_fcntl, &[0, 10, negative(libc::SIGWINCH)])
}

#[cfg(target_arch = "x86_64")]
fn raw_fork() -> io::Result<usize> {
    call(libc::SYS_fork, &[])
}

#[cfg(not(target_arch = "x86_64"))]
fn raw_fork() -> io::Result<usize> {
    call(libc::SYS_clone, &[negative(libc::SIGCHLD)])
}

/// Ends the child, and waits for it in the parent.
fn forked(child: usize) -> Attempted {
    if child == 0 {
        let _ = call(libc::SYS_exit_group, &[0]);
    }
    waited(i32::try_from(child).unwrap_or_default())
}

/// `vfork`: the child uses the memory of this process, and ends at once.
#[cfg(target_arch = "x86_64")]
fn raw_vfork() -> Attempted {
    let result: i64;
    #[expect(unsafe_code, reason = "a child of vfork must not return from the function that makes the call")]
    // SAFETY: the child makes one system call, and touches no memory.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, 231",
            "xor edi, edi",
            "syscall",
            "2:",
            inout("rax") libc::SYS_vfork => result,
            out("rdi") _, out("rcx") _, out("r11") _,
        );
    }
    match i32::try_from(result) {
        Ok(child @ 1..) => waited(child),
        Ok(error) => Err(io::Error::from_raw_os_error(-error)),
        Err(_) => Err(io::ErrorKind::Other.into()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn raw_vfork() -> Attempted {
    forked(raw_fork()?)
}

/// Starts a thread with further flags, such as one for a namespace of its own.
fn thread_with(flags: usize) -> Attempted {
    extern "C" fn end(_: *mut libc::c_void) -> libc::c_int {
        let _ = call(libc::SYS_exit, &[0]);
        0
    }
    // The thread may use its stack after this function has returned.
    let stack = Box::leak(vec![0_u64; 4096].into_boxed_slice());
    let flags = i32::try_from(flags).unwrap_or_default() | libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND;
    #[expect(unsafe_code, reason = "an attacker starts a thread")]
    // SAFETY: the thread has a stack of its own, and makes one system call.
    let started = unsafe { libc::clone(end, stack.as_mut_ptr_range().end.cast(), flags, std::ptr::null_mut()) };
    if started < 0 { Err(io::Error::last_os_error()) } else { Ok(format!("thread {started}")) }
}
