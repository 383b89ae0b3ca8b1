//! The attempts on files, processes, sockets and the kernel, as rows.

/// What happens without a wall.
#[derive(Clone, Copy)]
pub(super) enum Without {
    /// The attempt succeeds.
    Succeeds,
    /// It succeeds for root, and may fail for another user.
    RootSucceeds,
    /// It depends on the kernel, its settings or the file system. The kernel may refuse it, but not as the wall does.
    Depends,
    /// It depends on the rights of belljar on this machine. Nothing is asserted.
    Varies,
    /// It cannot succeed here even without a wall: the reason.
    Never(&'static str),
}

/// What happens behind the wall.
#[derive(Clone, Copy)]
pub(super) enum Behind {
    /// The kernel refuses the attempt.
    Refused,
    /// The attempt succeeds, and the documentation says so: the reason why this harms nothing.
    Harmless(&'static str),
}

/// One attempt.
pub(super) struct Row {
    /// The class of the attempt.
    pub(super) class: &'static str,
    /// The name of the function in the worker.
    pub(super) attempt: &'static str,
    /// Its arguments, one on each line. Words in braces stand for paths and numbers of the site.
    pub(super) arguments: &'static str,
    /// What must come of it behind the wall.
    pub(super) behind: Behind,
    /// What must come of it without a wall.
    pub(super) without: Without,
}

const fn row(class: &'static str, attempt: &'static str, arguments: &'static str) -> Row {
    Row { class, attempt, arguments, behind: Behind::Refused, without: Without::Succeeds }
}

impl Row {
    const fn root(self) -> Row {
        Row { without: Without::RootSucceeds, ..self }
    }

    /// `_`: the reason, for the reader of the table.
    const fn depends(self, _: &'static str) -> Row {
        Row { without: Without::Depends, ..self }
    }

    /// `_`: the reason, for the reader of the table.
    const fn varies(self, _: &'static str) -> Row {
        Row { without: Without::Varies, ..self }
    }

    const fn never(self, why: &'static str) -> Row {
        Row { without: Without::Never(why), ..self }
    }

    const fn harmless(self, why: &'static str) -> Row {
        Row { behind: Behind::Harmless(why), ..self }
    }
}

const READ: &str = "files: read";
const CHANGE: &str = "files: change";
const PROCESS: &str = "processes";
const NEW_PROCESS: &str = "new processes";
const SOCKET: &str = "sockets";
const POWER: &str = "powers";
const KERNEL: &str = "kernel";

/// The kernel of this machine may lack it.
const OPTIONAL: &str = "the kernel may be built without it, or its settings may forbid it";

/// Every attempt.
pub(super) const ROWS: &[Row] = &[
    row(READ, "open-read", "{other}/secret.txt"),
    row(READ, "open-up", "../other/secret.txt"),
    row(READ, "open-up", "../../belljar.toml"),
    row(READ, "open-up", "../../../../../../../../../../etc/passwd"),
    row(READ, "open2-up", "../other/secret.txt"),
    row(READ, "open-read", "{own}/leads-out"),
    row(READ, "open-read", "{site}/belljar.toml"),
    row(READ, "open-read", "{site}/belljar.lock"),
    row(READ, "open-read", "{site}/audit.jsonl"),
    row(READ, "open-read", "{site}/plugins/hostile.wasm"),
    row(READ, "open-read", "{key}"),
    row(READ, "open-read", "{code}"),
    row(READ, "open-read", "/etc/passwd"),
    row(READ, "open-read", "/dev/null"),
    row(READ, "open-read", "/proc/{front}/mem").never("address 0 is not mapped; the row below opens the file"),
    row(READ, "open-read-write", "/proc/{front}/mem"),
    row(READ, "open-read", "/proc/{front}/environ"),
    row(READ, "open-read", "/proc/{front}/cmdline"),
    row(READ, "open-read", "/proc/{front}/maps"),
    row(READ, "list-directory", "/proc/{front}/root"),
    row(READ, "open-read", "/proc/{front}/cwd/belljar.toml"),
    row(READ, "open-read", "/proc/{sibling}/environ"),
    row(READ, "open-read", "/proc/self/environ"),
    row(READ, "open-read-write", "/proc/self/mem"),
    row(READ, "open-read", "/proc/self/maps"),
    row(READ, "open-read", "/proc/1/environ").varies("process 1 may have more capabilities than belljar"),
    row(READ, "open-read", "/proc/1/cmdline"),
    row(READ, "open-read", "/proc/net/tcp"),
    row(READ, "list-directory", "/proc/{front}/fd"),
    row(READ, "list-directory", "/proc/self/fd"),
    row(READ, "list-directory", "{site}/plugins"),
    row(READ, "list-directory", "{other}"),
    row(READ, "list-directory", "/"),
    row(READ, "read-link", "/proc/{front}/exe"),
    row(READ, "read-link", "/proc/{front}/cwd"),
    row(READ, "read-link", "/proc/{front}/fd/0"),
    row(READ, "read-link", "{other}/link")
        .harmless("Landlock does not restrict names: the target of a link is visible"),
    row(READ, "stat", "{other}/secret.txt").harmless("Landlock does not restrict names: size and times are visible"),
    row(READ, "access", "{other}/secret.txt"),
    row(READ, "read-attribute", "{own}/attribute.txt").never("the file has no attribute yet; the rows below set one"),
    row(READ, "open-handle", "{other}/secret.txt").root(),
    row(READ, "watch", "{other}/secret.txt"),
    row(READ, "watch", "{own}/file.txt"),
    row(READ, "watch-all", "").root(),
    row(READ, "directory-signals", ""),
    row(CHANGE, "open-write", "{own}/file.txt"),
    row(CHANGE, "open-read-write", "{own}/file.txt"),
    row(CHANGE, "open-append", "{own}/file.txt"),
    row(CHANGE, "write", "{own}/file.txt"),
    row(CHANGE, "open-create", "{own}/created"),
    row(CHANGE, "open-create", "{site}/created"),
    row(CHANGE, "open-temporary", "{own}").depends("the file system may not have files without names"),
    row(CHANGE, "truncate", "{own}/file.txt"),
    row(CHANGE, "open-truncate", "{own}/file.txt"),
    row(CHANGE, "open-write", "{site}/belljar.toml"),
    row(CHANGE, "open-write", "{code}"),
    row(CHANGE, "open-create", "{site}/plugins/new.wasm"),
    row(CHANGE, "unlink", "{site}/plugins/new.wasm"),
    row(CHANGE, "open-write", "{other}/secret.txt"),
    row(CHANGE, "mkdir", "{own}/made"),
    row(CHANGE, "rmdir", "{own}/made"),
    row(CHANGE, "rename", "{own}/victim.txt\n{own}/renamed.txt"),
    row(CHANGE, "link", "{own}/file.txt\n{own}/second-name"),
    row(CHANGE, "symlink", "/etc/passwd\n{own}/soft-link"),
    row(CHANGE, "unlink", "{own}/removed.txt"),
    row(CHANGE, "mknod-fifo", "{own}/fifo"),
    row(CHANGE, "mknod-device", "{own}/device").root(),
    row(CHANGE, "chmod", "{own}/file.txt"),
    row(CHANGE, "chmod-directory", "").depends("the descriptor may be for paths only"),
    row(CHANGE, "chown", "{own}/file.txt"),
    row(CHANGE, "set-times", "{own}/file.txt"),
    row(CHANGE, "set-attribute", "{own}/attribute.txt").depends("the file system may have no attributes of users"),
    row(CHANGE, "read-attribute", "{own}/attribute.txt").depends("the file system may have no attributes of users"),
    row(CHANGE, "remove-attribute", "{own}/attribute.txt").depends("the file system may have no attributes of users"),
    row(CHANGE, "set-flags", "").depends("the file system may have no flags"),
    row(CHANGE, "lock", "{own}/file.txt"),
    row(CHANGE, "flock", "{own}/file.txt"),
    row(CHANGE, "lease", "{own}/file.txt"),
    row(CHANGE, "sync", ""),
    row(CHANGE, "copy-range", "{own}/file.txt").never("the file is not opened for writing"),
    row(CHANGE, "truncate-code", "").never("the descriptor is for reading only"),
    row(CHANGE, "write-code", "").never("the descriptor is for reading only"),
    row(CHANGE, "map-code-writable", "").never("the descriptor is for reading only"),
    row(CHANGE, "allocate-code", "").never("the descriptor is for reading only"),
    row(CHANGE, "reopen-code", ""),
    row(PROCESS, "read-memory", "{front}\n{address}"),
    row(PROCESS, "trace", "{front}"),
    row(PROCESS, "trace", "{sibling}"),
    row(PROCESS, "be-traced", ""),
    row(PROCESS, "pidfd", "{front}"),
    row(PROCESS, "pidfd-steal", "{front}\n2"),
    row(PROCESS, "pidfd-signal", "{front}"),
    row(PROCESS, "pidfd-of-socket", "").depends("Linux 6.5 and newer"),
    row(PROCESS, "kill", "{front}"),
    row(PROCESS, "kill", "{sibling}"),
    row(PROCESS, "kill", "1").root(),
    row(PROCESS, "kill-all", ""),
    row(PROCESS, "kill-thread", "{front}"),
    row(PROCESS, "kill-thread", "{sibling}"),
    row(PROCESS, "kill-thread-old", "{front}"),
    row(PROCESS, "queue-signal", "{front}"),
    row(PROCESS, "signal-by-socket", "{front}"),
    row(PROCESS, "limits", "{front}"),
    row(PROCESS, "set-limits", "{front}"),
    row(PROCESS, "set-affinity", "{front}"),
    row(PROCESS, "set-scheduler", "{front}"),
    row(PROCESS, "set-priority", "{front}"),
    row(PROCESS, "set-disk-priority", "{front}"),
    row(PROCESS, "compare", "{front}").depends(OPTIONAL),
    row(NEW_PROCESS, "fork", ""),
    row(NEW_PROCESS, "vfork", ""),
    row(NEW_PROCESS, "clone", ""),
    row(NEW_PROCESS, "clone3", ""),
    row(NEW_PROCESS, "execute", "/proc/self/exe\n--version"),
    row(NEW_PROCESS, "execute", "/bin/sh\n--version"),
    row(NEW_PROCESS, "execute-at", "/proc/self/exe\n--version"),
    row(NEW_PROCESS, "execute-memory", ""),
    // CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER.
    row(NEW_PROCESS, "clone-in-namespace", "1073741824").root(),
    row(NEW_PROCESS, "clone-in-namespace", "131072").root(),
    row(NEW_PROCESS, "clone-in-namespace", "268435456").never("a thread cannot have a user namespace of its own"),
    row(SOCKET, "socket", "2\n1\n0"),
    row(SOCKET, "socket", "2\n2\n0"),
    row(SOCKET, "socket", "2\n3\n1").root(),
    row(SOCKET, "socket", "10\n1\n0").depends(OPTIONAL),
    row(SOCKET, "socket", "1\n1\n0"),
    row(SOCKET, "socket", "16\n3\n0"),
    row(SOCKET, "socket", "17\n3\n0").depends(OPTIONAL),
    row(SOCKET, "socket", "38\n5\n0").depends(OPTIONAL),
    row(SOCKET, "socket", "40\n1\n0").depends(OPTIONAL),
    row(SOCKET, "connect-tcp", "{port}"),
    row(SOCKET, "connect-unix", "{unix}"),
    row(SOCKET, "connect-abstract", "{abstract}"),
    row(SOCKET, "socketpair", ""),
    row(SOCKET, "listen", ""),
    row(SOCKET, "accept", "").never("the socket to the front does not listen"),
    row(SOCKET, "set-option", ""),
    row(SOCKET, "socket-x32", "").depends("few kernels have the ABI x32"),
    // CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWUTS.
    row(POWER, "unshare", "268435456").depends("the settings of the kernel may forbid it"),
    row(POWER, "unshare", "131072").root(),
    row(POWER, "unshare", "1073741824").root(),
    row(POWER, "unshare", "67108864").root(),
    row(POWER, "join-namespace", "").root(),
    row(POWER, "join-namespace-of-directory", "").never("a directory is no namespace"),
    row(POWER, "change-root", "").root(),
    row(POWER, "change-directory", "{other}"),
    row(POWER, "mount", "{own}").root(),
    row(POWER, "mount-here", "{own}").never("the target does not exist, so that a success harms nothing"),
    row(POWER, "unmount", "{own}").never("nothing is mounted there"),
    row(POWER, "pivot-root", "{own}").never("the directory is no mount point"),
    row(POWER, "new-file-system", "").root(),
    row(POWER, "clone-mounts", "").root(),
    row(POWER, "set-user", "").root(),
    row(POWER, "set-group", "").root(),
    row(POWER, "set-groups", "").root(),
    row(POWER, "set-capabilities", ""),
    row(POWER, "be-dumpable", ""),
    row(POWER, "allow-tracer", "").depends("only the Yama module has it"),
    row(POWER, "filter-by-prctl", ""),
    row(POWER, "filter", ""),
    row(POWER, "own-landlock", "").depends(OPTIONAL),
    row(POWER, "grow-files", ""),
    row(POWER, "dump-core", "")
        .varies("belljar gives up core dumps without a wall, too; CAP_SYS_RESOURCE gets them back"),
    row(POWER, "more-files", "").varies("needs CAP_SYS_RESOURCE, which root may lack in a container"),
    row(POWER, "go-first", "").root(),
    row(POWER, "personality", ""),
    row(KERNEL, "poison-memory", "").depends(OPTIONAL),
    row(KERNEL, "shared-memory", ""),
    row(KERNEL, "message-queue", "").depends(OPTIONAL),
    row(KERNEL, "semaphores", "").depends(OPTIONAL),
    row(KERNEL, "posix-queue", "").depends(OPTIONAL),
    row(KERNEL, "memory-file", ""),
    row(KERNEL, "secret-memory", "").depends(OPTIONAL),
    row(KERNEL, "io-uring", "").depends(OPTIONAL),
    row(KERNEL, "aio", "").depends(OPTIONAL),
    row(KERNEL, "bpf", "").depends(OPTIONAL),
    row(KERNEL, "userfaultfd", "").depends(OPTIONAL),
    row(KERNEL, "perf", "").depends(OPTIONAL),
    row(KERNEL, "add-key", "").depends(OPTIONAL),
    row(KERNEL, "keys", "").depends(OPTIONAL),
    row(KERNEL, "kernel-log", "").root(),
    row(KERNEL, "pipe", ""),
    row(KERNEL, "splice", ""),
    row(KERNEL, "protection-keys", "").depends("the processor may lack them"),
];
