//! Inherited file descriptors. belljar needs only the three standard streams; the second wall would not restrict the
//! others.

/// Closes all inherited descriptors above 2, unless the command line names one (`--config /dev/fd/63`). Called before
/// any file is opened.
pub(crate) fn close() {
    #[expect(clippy::disallowed_methods, reason = "the command line may name a descriptor")]
    let is_named = std::env::args_os().any(|argument| {
        let argument = argument.to_string_lossy();
        argument.contains("/dev/fd/") || argument.contains("/proc/self/fd/")
    });
    if is_named {
        return;
    }
    #[expect(unsafe_code, reason = "closes descriptors that no value of this process owns")]
    // SAFETY: this process has opened no file yet, so no value owns a descriptor above 2.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}
