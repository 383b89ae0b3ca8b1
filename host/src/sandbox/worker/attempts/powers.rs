//! Attempts to gain power: namespaces, users, capabilities, mounts, and rarely used parts of the kernel.

use super::kernel::{Attempt, address, call, descriptor, held, in_child, negative, plain};

/// The attempts to gain power.
pub(super) const LIST: &[(&str, Attempt)] = &[
    ("unshare", |a| in_child(|| plain(libc::SYS_unshare, &[a.number(0)]))),
    ("join-namespace", |_| {
        in_child(|| {
            let here = negative(libc::AT_FDCWD);
            let namespace = call(libc::SYS_openat, &[here, c"/proc/self/ns/uts".as_ptr() as usize, 0])?;
            plain(libc::SYS_setns, &[namespace, 0])
        })
    }),
    ("join-namespace-of-directory", |_| plain(libc::SYS_setns, &[held(libc::S_IFDIR)?, 0])),
    ("change-root", |_| in_child(|| plain(libc::SYS_chroot, &[c"/".as_ptr() as usize]))),
    ("change-directory", |a| in_child(|| plain(libc::SYS_chdir, &[a.pointer(0)]))),
    ("mount", |a| {
        in_child(|| {
            call(libc::SYS_unshare, &[0x0002_0000])?;
            let none = c"none".as_ptr() as usize;
            call(libc::SYS_mount, &[none, c"/".as_ptr() as usize, 0, (1 << 18) | (1 << 14), 0])?;
            plain(libc::SYS_mount, &[none, a.pointer(0), c"tmpfs".as_ptr() as usize, 0, 0])
        })
    }),
    ("mount-here", |a| plain(libc::SYS_mount, &[a.pointer(0), c"/nowhere".as_ptr() as usize, 0, 4096, 0])),
    ("unmount", |a| plain(libc::SYS_umount2, &[a.pointer(0), 0])),
    ("pivot-root", |a| in_child(|| plain(libc::SYS_pivot_root, &[a.pointer(0), a.pointer(0)]))),
    ("new-file-system", |_| descriptor(libc::SYS_fsopen, &[c"tmpfs".as_ptr() as usize, 0])),
    ("clone-mounts", |_| descriptor(libc::SYS_open_tree, &[held(libc::S_IFDIR)?, c"".as_ptr() as usize, 0x1001])),
    ("set-user", |_| in_child(|| plain(libc::SYS_setresuid, &[0, 0, 0]))),
    ("set-group", |_| in_child(|| plain(libc::SYS_setresgid, &[0, 0, 0]))),
    ("set-groups", |_| in_child(|| plain(libc::SYS_setgroups, &[0, 0]))),
    ("set-capabilities", |_| {
        in_child(|| {
            // Those that the thread has: nothing is added.
            let (header, sets) = ([0x2008_0522_u32, 0], [0_u32; 6]);
            call(libc::SYS_capget, &[address(&header), address(&sets)])?;
            plain(libc::SYS_capset, &[address(&header), address(&sets)])
        })
    }),
    ("be-dumpable", |_| in_child(|| plain(libc::SYS_prctl, &[4, 1]))),
    ("allow-tracer", |_| in_child(|| plain(libc::SYS_prctl, &[0x5961_6d61, negative(-1)]))),
    ("filter-by-prctl", |_| {
        in_child(|| {
            // A filter that allows everything.
            let program = allow_all();
            call(libc::SYS_prctl, &[38, 1, 0, 0, 0])?;
            plain(libc::SYS_prctl, &[22, 2, address(&program)])
        })
    }),
    ("filter", |_| {
        in_child(|| {
            let program = allow_all();
            call(libc::SYS_prctl, &[38, 1, 0, 0, 0])?;
            plain(libc::SYS_seccomp, &[1, 0, address(&program)])
        })
    }),
    ("own-landlock", |_| descriptor(libc::SYS_landlock_create_ruleset, &[address(&[1_u64]), 8, 0])),
    ("grow-files", |_| in_child(|| plain(libc::SYS_prlimit64, &[0, 1, address(&[1_u64 << 30, 1 << 30]), 0]))),
    ("dump-core", |_| in_child(|| plain(libc::SYS_prlimit64, &[0, 4, address(&[1_u64 << 30, 1 << 30]), 0]))),
    ("more-files", |_| in_child(|| plain(libc::SYS_prlimit64, &[0, 7, address(&[1_u64 << 20, 1 << 20]), 0]))),
    ("go-first", |_| in_child(|| plain(libc::SYS_setpriority, &[0, 0, negative(-19)]))),
    ("poison-memory", |_| {
        in_child(|| {
            // Advice 101 takes a page back from the machine softly. Asks for none.
            plain(libc::SYS_madvise, &[4096, 0, 101])
        })
    }),
    ("personality", |_| in_child(|| plain(libc::SYS_personality, &[0x0004_0000]))),
    ("shared-memory", |_| plain(libc::SYS_shmget, &[0, 4096, 0o1600])),
    ("message-queue", |_| plain(libc::SYS_msgget, &[0, 0o1600])),
    ("semaphores", |_| plain(libc::SYS_semget, &[0, 1, 0o1600])),
    ("posix-queue", |_| {
        let opened = descriptor(libc::SYS_mq_open, &[c"belljar-attempt".as_ptr() as usize, 0o100, 0o600, 0]);
        let _ = call(libc::SYS_mq_unlink, &[c"belljar-attempt".as_ptr() as usize]);
        opened
    }),
    ("memory-file", |_| descriptor(libc::SYS_memfd_create, &[c"x".as_ptr() as usize, 0])),
    ("secret-memory", |_| descriptor(libc::SYS_memfd_secret, &[0])),
    ("io-uring", |_| {
        let parameters = [0_u8; 120];
        descriptor(libc::SYS_io_uring_setup, &[1, address(&parameters)])
    }),
    ("aio", |_| {
        let context = [0_usize; 1];
        plain(libc::SYS_io_setup, &[1, address(&context)])
    }),
    ("bpf", |_| {
        // A map: an array of one value of 4 bytes.
        let attributes = [2_u32, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        descriptor(libc::SYS_bpf, &[0, address(&attributes), size_of_val(&attributes)])
    }),
    ("userfaultfd", |_| descriptor(libc::SYS_userfaultfd, &[0])),
    ("perf", |_| {
        // A counter in software, of this thread.
        let attributes = [1_u32, 112, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        descriptor(libc::SYS_perf_event_open, &[address(&attributes), 0, negative(-1), negative(-1), 0])
    }),
    ("add-key", |_| {
        let (kind, name) = (c"user".as_ptr() as usize, c"belljar".as_ptr() as usize);
        plain(libc::SYS_add_key, &[kind, name, address(b"x"), 1, negative(-1)])
    }),
    ("keys", |_| plain(libc::SYS_keyctl, &[0, negative(-3), 1])),
    ("kernel-log", |_| plain(libc::SYS_syslog, &[10, 0, 0])),
    ("pipe", |_| {
        let pipe = [0_i32; 2];
        plain(libc::SYS_pipe2, &[address(&pipe), 0])
    }),
    ("splice", |_| plain(libc::SYS_splice, &[0, 0, 0, 0, 0, 0])),
    ("protection-keys", |_| plain(libc::SYS_pkey_alloc, &[0, 0])),
];

/// A program of one instruction that allows every call: its length, and its address.
fn allow_all() -> [usize; 2] {
    static ALLOW: [u32; 2] = [0x06, 0x7fff_0000];
    [1, ALLOW.as_ptr() as usize]
}
