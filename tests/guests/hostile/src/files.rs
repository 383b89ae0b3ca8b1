//! Attempts to open files: through the standard library, as a program does, and with raw paths to the WASI functions, as an
//! attacker does.

use std::io::Read;
use std::time::Duration;

use belljar_guest::Error;
use wasip2::cli::stdin::get_stdin;
use wasip2::cli::stdout::get_stdout;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags};
use wasip2::io::streams::StreamError;

/// The most bytes of a file that an answer shows.
const HEAD: u64 = 64;

/// Opens a path as a program does.
pub(crate) fn open(path: &str) -> String {
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    match read {
        Ok(_) => format!("read {:?}", String::from_utf8_lossy(&head)),
        Err(error) => format!("refused: {:?}: {error}", error.kind()),
    }
}

/// Reads files; the paths are separated by spaces. Fails with the error of the first one that cannot be read, as an honest
/// provider does.
pub(crate) fn need(paths: &str) -> Result<String, Error> {
    let read = |path: &str| {
        std::fs::read_to_string(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NotFound,
            _ => Error::denied(format_args!("cannot open {path}")),
        })
    };
    paths.split(' ').map(read).collect()
}

/// Lists a directory as a program does.
pub(crate) fn readdir(path: &str) -> String {
    let list = || -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    };
    list().map_or_else(|error| format!("refused: {:?}: {error}", error.kind()), |names| format!("listed {names:?}"))
}

/// Opens and reads an unchanged path in every granted directory. Returns the outcome of each.
pub(crate) fn raw(path: &str) -> String {
    each(|directory| {
        let file = directory.open_at(PathFlags::SYMLINK_FOLLOW, path, OpenFlags::empty(), DescriptorFlags::READ)?;
        let (head, _) = file.read(HEAD, 0)?;
        Ok(format!("read {:?}", String::from_utf8_lossy(&head)))
    })
}

/// Returns the target of a link, in every granted directory.
pub(crate) fn link(path: &str) -> String {
    each(|directory| Ok(format!("leads to {:?}", directory.readlink_at(path)?)))
}

/// Calls `stat-at` with a path in every granted directory.
pub(crate) fn stat(path: &str) -> String {
    each(|directory| {
        let stat = directory.stat_at(PathFlags::SYMLINK_FOLLOW, path)?;
        Ok(format!("{:?} of {} bytes", stat.type_, stat.size))
    })
}

/// Runs an operation on every granted directory. Returns a line for each.
fn each(operation: impl Fn(&Descriptor) -> Result<String, ErrorCode>) -> String {
    let outcome = |(directory, guest): &(Descriptor, String)| {
        format!("{guest}: {}", operation(directory).unwrap_or_else(|code| format!("refused: {}", code.name())))
    };
    let all: Vec<String> = get_directories().iter().map(outcome).collect();
    if all.is_empty() { "no directory is granted".to_owned() } else { all.join("\n") }
}

/// `FUNCTION/PATH`: calls a function of `wasi:filesystem` in every granted directory, with the path or with the opened file.
pub(crate) fn call(argument: &str) -> String {
    let (function, path) = argument.split_once('/').unwrap_or((argument, ""));
    each(|directory| one(directory, function, path))
}

/// `PATH`: calls every function of `wasi:filesystem` that takes a path. Returns a line for each.
pub(crate) fn calls(path: &str) -> String {
    let outcome = |function: &&str| format!("{function}: {}", call(&format!("{function}/{path}")));
    PATHS.iter().map(outcome).collect::<Vec<_>>().join("\n")
}

/// The functions that take a path.
const PATHS: &[&str] = &[
    "open",
    "open-dir",
    "stat",
    "stat-link",
    "hash",
    "hash-link",
    "readlink",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "link",
    "symlink",
    "set-times-at",
];

/// Calls one function on a path in a directory.
fn one(dir: &Descriptor, function: &str, path: &str) -> Result<String, ErrorCode> {
    let (follow, none) = (PathFlags::SYMLINK_FOLLOW, PathFlags::empty());
    let now = NewTimestamp::Now;
    let opened = || dir.open_at(follow, path, OpenFlags::empty(), DescriptorFlags::READ);
    let hash = |hash: wasip2::filesystem::types::MetadataHashValue| format!("hash {:x}{:x}", hash.lower, hash.upper);
    let stat = |stat: wasip2::filesystem::types::DescriptorStat| {
        format!("{:?} of {} bytes, read at {:?}", stat.type_, stat.size, stat.data_access_timestamp.map(|t| t.seconds))
    };
    let done = |()| "done".to_owned();
    match function {
        "open" => opened().map(|_| "opened".to_owned()),
        "open-dir" => {
            dir.open_at(follow, path, OpenFlags::DIRECTORY, DescriptorFlags::READ).map(|_| "opened".to_owned())
        }
        "stat" => dir.stat_at(follow, path).map(stat),
        "stat-link" => dir.stat_at(none, path).map(stat),
        "hash" => dir.metadata_hash_at(follow, path).map(hash),
        "hash-link" => dir.metadata_hash_at(none, path).map(hash),
        "readlink" => dir.readlink_at(path).map(|target| format!("leads to {target:?}")),
        // `readlink` in the directory that the first part of the path names.
        "readlink-inside" => {
            let (inner, path) = path.split_once('/').unwrap_or((".", path));
            let inner = dir.open_at(follow, inner, OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
            inner.readlink_at(path).map(|target| format!("leads to {target:?}"))
        }
        "mkdir" => dir.create_directory_at(path).map(done),
        "rmdir" => dir.remove_directory_at(path).map(done),
        "unlink" => dir.unlink_file_at(path).map(done),
        "rename" => dir.rename_at(path, dir, "renamed").map(done),
        "link" => dir.link_at(none, path, dir, "linked").map(done),
        "symlink" => dir.symlink_at("anywhere", path).map(done),
        "set-times-at" => dir.set_times_at(follow, path, now, now).map(done),
        "fd-stat" => opened()?.stat().map(stat),
        "fd-hash" => opened()?.metadata_hash().map(hash),
        "fd-type" => opened()?.get_type().map(|kind| format!("{kind:?}")),
        "fd-flags" => opened()?.get_flags().map(|flags| format!("{flags:?}")),
        "fd-same" => Ok(format!("{} {}", opened()?.is_same_object(&opened()?), opened()?.is_same_object(dir))),
        "fd-sync" => opened()?.sync().map(done),
        "fd-sync-data" => opened()?.sync_data().map(done),
        "fd-advise" => opened()?.advise(0, 1 << 40, wasip2::filesystem::types::Advice::WillNeed).map(done),
        // Enough calls that a test notices if each of them writes to the disk.
        "fd-syncs" => {
            let file = opened()?;
            (0..400).try_for_each(|_| file.sync().and_then(|()| file.sync_data())).map(done)
        }
        "fd-read" => opened()?.read(HEAD, 0).map(|(head, _)| format!("read {:?}", String::from_utf8_lossy(&head))),
        "fd-stream" => opened()?.read_via_stream(0).map(|stream| match stream.blocking_read(HEAD) {
            Ok(head) => format!("read {:?}", String::from_utf8_lossy(&head)),
            Err(error) => format!("refused: {error:?}"),
        }),
        // Waits for the bytes as an event loop does.
        "fd-poll" => opened()?.read_via_stream(0).map(|stream| {
            stream.subscribe().block();
            stream.read(HEAD).map_or_else(|error| format!("refused: {error:?}"), |head| format!("{} bytes", head.len()))
        }),
        "fd-entries" => {
            let listed = opened()?.read_directory()?;
            let mut names = Vec::new();
            while let Some(entry) = listed.read_directory_entry()? {
                names.push(entry.name);
            }
            names.sort();
            Ok(format!("listed {names:?}"))
        }
        "fd-set-times" => opened()?.set_times(now, now).map(done),
        "fd-set-size" => opened()?.set_size(0).map(done),
        "fd-write" => opened()?.write(b"altered", 0).map(|count| format!("done, {count}")),
        "fd-write-stream" => opened()?.write_via_stream(0).map(|_| "done".to_owned()),
        "fd-append" => opened()?.append_via_stream().map(|_| "done".to_owned()),
        _ => Ok(format!("no function {function:?}")),
    }
}

/// `COUNT/PATH`: opens a path up to `COUNT` times, keeps the handles, and then sleeps for two seconds.
pub(crate) fn hoard(argument: &str) -> String {
    let (count, path) = argument.split_once('/').unwrap_or((argument, ""));
    let count = count.parse().unwrap_or(0);
    let directories = get_directories();
    let Some((directory, _)) = directories.first() else { return "no directory is granted".to_owned() };
    let open = || directory.open_at(PathFlags::empty(), path, OpenFlags::empty(), DescriptorFlags::READ);
    let mut hoard = Vec::new();
    let mut end = "enough".to_owned();
    while hoard.len() < count {
        match open() {
            Ok(file) => hoard.push(file),
            Err(code) => {
                end = code.name().to_owned();
                break;
            }
        }
    }
    std::thread::sleep(Duration::from_secs(2));
    format!("{} files, then {end}", hoard.len())
}

/// `COUNT/PATH`: lists a directory `COUNT` times, reads one entry of each list, and keeps the handles of all lists.
pub(crate) fn lists(argument: &str) -> String {
    let (count, path) = argument.split_once('/').unwrap_or((argument, ""));
    let count = count.parse().unwrap_or(0);
    let directories = get_directories();
    let Some((directory, _)) = directories.first() else { return "no directory is granted".to_owned() };
    let list = || {
        let listed = directory
            .open_at(PathFlags::empty(), path, OpenFlags::DIRECTORY, DescriptorFlags::READ)?
            .read_directory()?;
        listed.read_directory_entry().map(|_| listed)
    };
    let mut kept = Vec::new();
    while kept.len() < count {
        match list() {
            Ok(listed) => kept.push(listed),
            Err(code) => return format!("{} lists, then {}", kept.len(), code.name()),
        }
    }
    format!("{} lists", kept.len())
}

/// Counts the entries of a directory.
pub(crate) fn entries(path: &str) -> String {
    each(|directory| {
        let listed = directory
            .open_at(PathFlags::empty(), path, OpenFlags::DIRECTORY, DescriptorFlags::READ)?
            .read_directory()?;
        let mut count = 0;
        while listed.read_directory_entry()?.is_some() {
            count += 1;
        }
        Ok(format!("{count} entries"))
    })
}

/// Requests more bytes at once than exist: from a file, from streams, and from standard input.
pub(crate) fn gorge(path: &str) -> String {
    each(|directory| {
        let file = directory.open_at(PathFlags::empty(), path, OpenFlags::empty(), DescriptorFlags::READ)?;
        let mut lines = Vec::new();
        let mut record = |what: &str, bytes: Result<u64, String>| lines.push(format!("{what}: {bytes:?}"));
        let length = |bytes: Result<(Vec<u8>, bool), ErrorCode>| {
            bytes.map(|(bytes, _)| bytes.len() as u64).map_err(|code| code.name().to_owned())
        };
        record("read", length(file.read(u64::MAX, 0)));
        record("read behind the end", length(file.read(u64::MAX, u64::MAX)));
        let input = file.read_via_stream(0)?;
        let of = |bytes: Result<Vec<u8>, StreamError>| {
            bytes.map(|bytes| bytes.len() as u64).map_err(|error| format!("{error:?}"))
        };
        record("stream", of(input.blocking_read(u64::MAX)));
        record("skip", input.blocking_skip(u64::MAX).map_err(|error| format!("{error:?}")));
        record(
            "stream behind the end",
            file.read_via_stream(u64::MAX)
                .map_err(|code| code.name().to_owned())
                .and_then(|input| of(input.blocking_read(u64::MAX))),
        );
        record("standard input", of(get_stdin().blocking_read(u64::MAX)));
        let output = get_stdout();
        record("splice", output.blocking_splice(&input, u64::MAX).map_err(|error| format!("{error:?}")));
        record("splice an idle stream", output.splice(&get_stdin(), u64::MAX).map_err(|error| format!("{error:?}")));
        Ok(lines.join("\n"))
    })
}

/// Attempts to change a file and its neighbours in every granted directory. Returns a line for each attempt.
pub(crate) fn alter(path: &str) -> String {
    let directories = get_directories();
    let lines = directories.iter().flat_map(|(directory, _)| attempts(directory, path));
    lines.collect::<Vec<_>>().join("\n")
}

/// Attempts to change `path` and its neighbours in one directory.
fn attempts(dir: &Descriptor, path: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut record = |what: &str, done: Result<(), ErrorCode>| {
        lines.push(match done {
            Ok(()) => format!("{what}: done"),
            Err(code) => format!("{what}: {}", code.name()),
        });
    };
    let follow = PathFlags::SYMLINK_FOLLOW;
    let open = |path: &str, how: OpenFlags, flags: DescriptorFlags| dir.open_at(follow, path, how, flags);
    let (read, write) = (DescriptorFlags::READ, DescriptorFlags::WRITE);
    let none = OpenFlags::empty();
    record("open to create", open("new", OpenFlags::CREATE, write).map(drop));
    record("open to create without writing", open("new", OpenFlags::CREATE, read).map(drop));
    record("open to create anew", open("new", OpenFlags::CREATE | OpenFlags::EXCLUSIVE, write).map(drop));
    record("open to truncate", open(path, OpenFlags::TRUNCATE, write).map(drop));
    record("open to truncate without writing", open(path, OpenFlags::TRUNCATE, read).map(drop));
    record("open to write", open(path, none, read | write).map(drop));
    record(
        "open to change a directory",
        open(".", OpenFlags::DIRECTORY, read | DescriptorFlags::MUTATE_DIRECTORY).map(drop),
    );
    record("create a directory", dir.create_directory_at("new-dir"));
    record("remove a directory", dir.remove_directory_at("sub"));
    record("remove a file", dir.unlink_file_at(path));
    record("rename", dir.rename_at(path, dir, "renamed"));
    record("link", dir.link_at(PathFlags::empty(), path, dir, "linked"));
    record("link symbolically", dir.symlink_at(path, "linked"));
    let now = NewTimestamp::Now;
    record("set times", dir.set_times_at(follow, path, now, now));
    record("set times of the directory", dir.set_times(now, now));
    if let Ok(file) = open(path, none, read) {
        record("set times of an open file", file.set_times(now, now));
        record("set size", file.set_size(0));
        record("write", file.write(b"altered", 0).map(drop));
        // The host may return a stream and refuse only the write.
        let stream = |stream: Result<wasip2::io::streams::OutputStream, ErrorCode>| {
            stream.and_then(|stream| stream.blocking_write_and_flush(b"altered").map_err(|_| ErrorCode::NotPermitted))
        };
        record("write through a stream", stream(file.write_via_stream(0)));
        record("append", stream(file.append_via_stream()));
    }
    lines
}
