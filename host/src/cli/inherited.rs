//! Descriptors that whoever started belljar left open: it needs none of them but its standard streams, and they would lead
//! past the second wall.

/// Closes them, unless one is named on the command line (`--config /dev/fd/63`). Called before anything is opened.
pub(super) fn close() {
    #[expect(clippy::disallowed_methods, reason = "whether a descriptor is named")]
    let is_named = std::env::args_os().any(|argument| {
        let argument = argument.to_string_lossy();
        argument.contains("/dev/fd/") || argument.contains("/proc/self/fd/")
    });
    if is_named {
        return;
    }
    #[expect(unsafe_code, reason = "descriptors that nobody in this process has")]
    // SAFETY: nothing was opened yet, so that no value of this process stands for any of them.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}
