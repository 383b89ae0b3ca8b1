//! Raw system calls, and child processes for attempts whose success would harm later ones.

use std::ffi::{CStr, CString};
use std::io;

/// The result of an attempt: a description of the success, or the kernel's refusal.
pub(in crate::sandbox) type Attempted = io::Result<String>;

/// One attempt.
pub(in crate::sandbox) type Attempt = fn(&AttemptArguments) -> Attempted;

/// The arguments of an attempt.
pub(in crate::sandbox) struct AttemptArguments(Vec<CString>);

impl AttemptArguments {
    /// The arguments from hexadecimal digits: one on each line.
    pub(in crate::sandbox) fn from_hex(digits: &str) -> Self {
        let bytes: Vec<u8> = digits
            .as_bytes()
            .chunks(2)
            .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        Self(bytes.split(|byte| *byte == b'\n').filter_map(|line| CString::new(line).ok()).collect())
    }

    /// The argument at this position. Empty if there is none.
    pub(in crate::sandbox) fn path(&self, at: usize) -> &CStr {
        self.0.get(at).map_or(c"", CString::as_c_str)
    }

    /// The address of the argument at this position.
    pub(in crate::sandbox) fn pointer(&self, at: usize) -> usize {
        self.path(at).as_ptr() as usize
    }

    /// The argument at this position as a number. 0 if it is none.
    pub(in crate::sandbox) fn number(&self, at: usize) -> usize {
        self.path(at).to_str().ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// Makes a system call with these arguments; the rest are 0.
pub(in crate::sandbox) fn call(number: libc::c_long, arguments: &[usize]) -> io::Result<usize> {
    let at = |n: usize| arguments.get(n).copied().unwrap_or_default();
    #[expect(unsafe_code, reason = "an attacker makes any system call")]
    // SAFETY: all callers pass pointers to values that live until the call returns. This is code for tests.
    let result = unsafe { libc::syscall(number, at(0), at(1), at(2), at(3), at(4), at(5)) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Makes a system call, and closes the descriptor that it returns.
pub(in crate::sandbox) fn descriptor(number: libc::c_long, arguments: &[usize]) -> Attempted {
    let file = call(number, arguments)?;
    let _ = call(libc::SYS_close, &[file]);
    Ok(format!("descriptor {file}"))
}

/// Makes a system call.
pub(in crate::sandbox) fn plain(number: libc::c_long, arguments: &[usize]) -> Attempted {
    call(number, arguments).map(|result| format!("the call returned {result}"))
}

/// The number of a negative argument, such as `AT_FDCWD`.
pub(in crate::sandbox) fn negative(value: i32) -> usize {
    usize::from_ne_bytes(i64::from(value).to_ne_bytes())
}

/// The address of a value.
pub(in crate::sandbox) fn address<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// The first open descriptor whose type of file is this one. An attacker finds what it holds by `fstat`.
pub(in crate::sandbox) fn held(kind: libc::mode_t) -> io::Result<usize> {
    #[expect(unsafe_code, reason = "a struct of the kernel that the call fills")]
    // SAFETY: all zero is a valid value.
    let status: libc::stat = unsafe { std::mem::zeroed() };
    (3..64)
        .find(|file| {
            call(libc::SYS_fstat, &[*file, address(&status)]).is_ok() && mode_of(&status) & libc::S_IFMT == kind
        })
        .ok_or_else(|| io::Error::other("it holds no such descriptor"))
}

/// The mode that the kernel wrote.
fn mode_of(status: &libc::stat) -> libc::mode_t {
    #[expect(unsafe_code, reason = "the kernel writes through a shared reference")]
    // SAFETY: the reference is valid.
    unsafe {
        std::ptr::read_volatile(&raw const status.st_mode)
    }
}

/// The exit codes of a child that failed: this number and the number of the error.
const FAILED: i32 = 100;

/// Runs `work` in a child process, so that a success harms no later attempt. Runs it here if no process can be started.
pub(in crate::sandbox) fn in_child(work: impl FnOnce() -> Attempted) -> Attempted {
    #[expect(unsafe_code, reason = "an attacker starts a process")]
    // SAFETY: the child only makes system calls and ends.
    match unsafe { libc::fork() } {
        0 => {
            let code = work().map_or_else(|error| FAILED + error.raw_os_error().unwrap_or_default(), |_| 0);
            let _ = call(libc::SYS_exit_group, &[negative(code)]);
            work_is_over()
        }
        child if child > 0 => waited(child),
        _ => work(),
    }
}

/// Never reached: the process has ended.
fn work_is_over() -> Attempted {
    Err(io::ErrorKind::Other.into())
}

/// The result of a child process.
pub(in crate::sandbox) fn waited(child: i32) -> Attempted {
    let mut status = 0;
    #[expect(unsafe_code, reason = "the end of a process")]
    // SAFETY: the call writes only into the given variable.
    unsafe {
        libc::waitpid(child, &raw mut status, 0);
    }
    match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
        Some(code) if code >= FAILED => Err(io::Error::from_raw_os_error(code - FAILED)),
        _ => Ok(format!("a child process ran, and ended with status {status}")),
    }
}
