//! Attempts on files: those of other mounts, of belljar and of the system, and changes of granted ones.

use std::io;

use super::kernel::{Attempt, AttemptArguments, Attempted, address, call, descriptor, held, negative, plain};

/// The attempts on files.
pub(super) const LIST: &[(&str, Attempt)] = &[
    ("open-read", |a| read_all(open(a, libc::O_RDONLY)?)),
    ("open-up", |a| read_all(call(libc::SYS_openat, &[held(libc::S_IFDIR)?, a.pointer(0), 0])?)),
    ("open2-up", |a| {
        let how = [0_u64; 3];
        read_all(call(libc::SYS_openat2, &[held(libc::S_IFDIR)?, a.pointer(0), address(&how), size_of_val(&how)])?)
    }),
    ("list-directory", |a| {
        let directory = open(a, libc::O_RDONLY | libc::O_DIRECTORY)?;
        let entries = [0_u8; 4096];
        let listed = plain(libc::SYS_getdents64, &[directory, address(&entries), entries.len()]);
        let _ = call(libc::SYS_close, &[directory]);
        listed
    }),
    ("open-write", |a| closed(open(a, libc::O_WRONLY)?)),
    ("open-read-write", |a| closed(open(a, libc::O_RDWR)?)),
    ("open-append", |a| closed(open(a, libc::O_WRONLY | libc::O_APPEND)?)),
    ("open-truncate", |a| closed(open(a, libc::O_RDONLY | libc::O_TRUNC)?)),
    ("open-create", |a| closed(open(a, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?)),
    ("open-temporary", |a| closed(open(a, libc::O_WRONLY | libc::O_TMPFILE)?)),
    ("write", |a| {
        let file = open(a, libc::O_WRONLY | libc::O_APPEND)?;
        let written = plain(libc::SYS_write, &[file, address(b"x"), 1]);
        let _ = call(libc::SYS_close, &[file]);
        written
    }),
    ("mkdir", |a| plain(libc::SYS_mkdirat, &[negative(libc::AT_FDCWD), a.pointer(0), 0o755])),
    ("unlink", |a| plain(libc::SYS_unlinkat, &[negative(libc::AT_FDCWD), a.pointer(0), 0])),
    ("rmdir", |a| plain(libc::SYS_unlinkat, &[negative(libc::AT_FDCWD), a.pointer(0), bits(libc::AT_REMOVEDIR)])),
    ("rename", |a| {
        let here = negative(libc::AT_FDCWD);
        plain(libc::SYS_renameat2, &[here, a.pointer(0), here, a.pointer(1), 0])
    }),
    ("link", |a| {
        let here = negative(libc::AT_FDCWD);
        plain(libc::SYS_linkat, &[here, a.pointer(0), here, a.pointer(1), 0])
    }),
    ("symlink", |a| plain(libc::SYS_symlinkat, &[a.pointer(0), negative(libc::AT_FDCWD), a.pointer(1)])),
    ("mknod-fifo", |a| mknod(a, libc::S_IFIFO | 0o600, 0)),
    ("mknod-device", |a| mknod(a, libc::S_IFCHR | 0o600, 0x103)),
    ("truncate", |a| plain(libc::SYS_truncate, &[a.pointer(0), 1])),
    ("truncate-code", |_| plain(libc::SYS_ftruncate, &[held(libc::S_IFREG)?, 0])),
    ("write-code", |_| {
        let file = held(libc::S_IFREG)?;
        // A write over the limit of a file's size must not end this process.
        let ignored = [libc::SIG_IGN, 0, 0, 0];
        let _ = call(libc::SYS_rt_sigaction, &[bits(libc::SIGXFSZ), address(&ignored), 0, 8]);
        let _ = call(libc::SYS_lseek, &[file, 0, 0]);
        plain(libc::SYS_write, &[file, address(b"x"), 1])
    }),
    ("map-code-writable", |_| {
        let access = bits(libc::PROT_READ | libc::PROT_WRITE);
        plain(libc::SYS_mmap, &[0, 4096, access, bits(libc::MAP_SHARED), held(libc::S_IFREG)?, 0])
    }),
    ("reopen-code", |_| {
        let path = std::ffi::CString::new(format!("/proc/self/fd/{}", held(libc::S_IFREG)?))?;
        let flags = bits(libc::O_RDWR);
        closed(call(libc::SYS_openat, &[negative(libc::AT_FDCWD), path.as_ptr() as usize, flags])?)
    }),
    ("allocate-code", |_| plain(libc::SYS_fallocate, &[held(libc::S_IFREG)?, 0, 0, 4096])),
    ("chmod", |a| plain(libc::SYS_fchmodat, &[negative(libc::AT_FDCWD), a.pointer(0), 0o644])),
    ("chmod-directory", |_| plain(libc::SYS_fchmod, &[held(libc::S_IFDIR)?, 0o755])),
    ("chown", |a| {
        // No change of the owner: the one who is allowed nothing else may do this.
        let same = negative(-1);
        plain(libc::SYS_fchownat, &[negative(libc::AT_FDCWD), a.pointer(0), same, same, 0])
    }),
    ("set-times", |a| plain(libc::SYS_utimensat, &[negative(libc::AT_FDCWD), a.pointer(0), 0, 0])),
    ("set-attribute", |a| set_attribute(a)),
    ("remove-attribute", |a| plain(libc::SYS_removexattr, &[a.pointer(0), c"user.belljar".as_ptr() as usize])),
    ("read-attribute", |a| {
        let value = [0_u8; 64];
        let name = c"user.belljar".as_ptr() as usize;
        plain(libc::SYS_getxattr, &[a.pointer(0), name, address(&value), value.len()])
    }),
    ("set-flags", |_| {
        // The flags that the directory has, so a success changes nothing.
        let directory = held(libc::S_IFDIR)?;
        let flags = [0_u64; 1];
        call(libc::SYS_ioctl, &[directory, 0x8008_6601, address(&flags)])?;
        plain(libc::SYS_ioctl, &[directory, 0x4008_6602, address(&flags)])
    }),
    ("lock", |a| {
        locked(a, |file| {
            // A lock for reading: it keeps writers of databases waiting.
            let lock = libc::flock { l_type: 0, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
            plain(libc::SYS_fcntl, &[file, bits(libc::F_SETLK), address(&lock)])
        })
    }),
    ("flock", |a| locked(a, |file| plain(libc::SYS_flock, &[file, bits(libc::LOCK_SH | libc::LOCK_NB)]))),
    ("lease", |a| {
        locked(a, |file| {
            // A lease: whoever opens the file for writing waits for its end.
            plain(libc::SYS_fcntl, &[file, 1024, 0])
        })
    }),
    ("directory-signals", |_| {
        let directory = held(libc::S_IFDIR)?;
        let asked = plain(libc::SYS_fcntl, &[directory, 1026, 2]);
        // Without a wall, the next change would send a signal to this process.
        let _ = call(libc::SYS_fcntl, &[directory, 1026, 0]);
        asked
    }),
    ("watch", |a| {
        let watcher = call(libc::SYS_inotify_init1, &[0])?;
        let watched = plain(libc::SYS_inotify_add_watch, &[watcher, a.pointer(0), 0x2]);
        let _ = call(libc::SYS_close, &[watcher]);
        watched
    }),
    ("watch-all", |_| descriptor(libc::SYS_fanotify_init, &[0, 0])),
    ("access", |a| plain(libc::SYS_faccessat, &[negative(libc::AT_FDCWD), a.pointer(0), 4])),
    ("stat", |a| {
        let status = [0_u8; 512];
        plain(libc::SYS_newfstatat, &[negative(libc::AT_FDCWD), a.pointer(0), address(&status), 0])
    }),
    ("read-link", |a| {
        let target = [0_u8; 256];
        plain(libc::SYS_readlinkat, &[negative(libc::AT_FDCWD), a.pointer(0), address(&target), target.len()])
    }),
    ("open-handle", open_handle),
    ("copy-range", |a| {
        let file = open(a, libc::O_RDONLY)?;
        let copied = plain(libc::SYS_copy_file_range, &[file, 0, file, 0, 0]);
        let _ = call(libc::SYS_close, &[file]);
        copied
    }),
    ("sync", |_| plain(libc::SYS_syncfs, &[held(libc::S_IFDIR)?])),
];

/// An `i32` of flags as an argument.
fn bits(flags: i32) -> usize {
    negative(flags)
}

fn open(arguments: &AttemptArguments, flags: i32) -> io::Result<usize> {
    call(libc::SYS_openat, &[negative(libc::AT_FDCWD), arguments.pointer(0), bits(flags), 0o600])
}

fn closed(file: usize) -> Attempted {
    call(libc::SYS_close, &[file])?;
    Ok(format!("descriptor {file}"))
}

fn read_all(file: usize) -> Attempted {
    let bytes = [0_u8; 64];
    let read = plain(libc::SYS_read, &[file, address(&bytes), bytes.len()]);
    let _ = call(libc::SYS_close, &[file]);
    read
}

fn mknod(arguments: &AttemptArguments, mode: libc::mode_t, device: usize) -> Attempted {
    let mode = usize::try_from(mode).unwrap_or_default();
    plain(libc::SYS_mknodat, &[negative(libc::AT_FDCWD), arguments.pointer(0), mode, device])
}

fn set_attribute(arguments: &AttemptArguments) -> Attempted {
    let name = c"user.belljar".as_ptr() as usize;
    plain(libc::SYS_setxattr, &[arguments.pointer(0), name, address(b"x"), 1, 0])
}

/// Opens a file for reading, and locks it by `lock`. The lock ends with the descriptor.
fn locked(arguments: &AttemptArguments, lock: impl FnOnce(usize) -> Attempted) -> Attempted {
    let file = open(arguments, libc::O_RDONLY)?;
    let locked = lock(file);
    let _ = call(libc::SYS_close, &[file]);
    locked
}

/// Opens a file by its handle, which passes by all directories.
fn open_handle(arguments: &AttemptArguments) -> Attempted {
    let mut handle = [0_u32; 34];
    if let Some(length) = handle.first_mut() {
        *length = 128;
    }
    let here = negative(libc::AT_FDCWD);
    let (handle, mount) = (std::hint::black_box(handle), [0_i32; 1]);
    call(libc::SYS_name_to_handle_at, &[here, arguments.pointer(0), address(&handle), address(&mount), 0])?;
    descriptor(libc::SYS_open_by_handle_at, &[held(libc::S_IFDIR)?, address(&handle), 0])
}
