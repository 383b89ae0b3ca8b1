//! A front that was taken over sends files to get a worker that reads more than the front.

use std::os::fd::OwnedFd;

use super::*;

fn files<'a>(code: &'a OwnedFd, directories: &'a [OwnedFd]) -> WorkerFiles<'a> {
    WorkerFiles { code: std::slice::from_ref(code), directories }
}

fn open(path: &str, flags: OFlags) -> OwnedFd {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, rustix::fs::Mode::empty()).unwrap()
}

#[test]
fn a_file_that_is_not_open_for_reading_is_refused() {
    let temp = tempfile::NamedTempFile::new().unwrap();
    let path = temp.path().to_str().unwrap();
    let (code, directory) = (open(path, OFlags::RDONLY), open("/etc", OFlags::RDONLY | OFlags::DIRECTORY));
    let granted = [directory];
    check(&files(&code, &granted)).unwrap();
    check(&files(&open(path, OFlags::RDWR), &granted)).unwrap();
    for other in [open("/", OFlags::PATH), open("/", OFlags::PATH | OFlags::DIRECTORY), open(path, OFlags::WRONLY)] {
        assert!(check(&files(&other, &granted)).is_err(), "as code");
        // The wall would stay around this process, so the check comes first here, too.
        let directories = [other];
        assert!(check(&files(&code, &directories)).is_err(), "as a directory");
        assert!(raise(&files(&code, &directories), WorkerWall::Required).is_err());
    }
}

#[test]
fn a_file_without_a_rule_leaves_the_rest_of_the_wall() {
    let (pipe, _writer) = rustix::pipe::pipe().unwrap();
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("a"), "a").unwrap();
    let granted = open(temp.path().to_str().unwrap(), OFlags::RDONLY | OFlags::DIRECTORY);
    let code = open("/proc/self/exe", OFlags::RDONLY);
    let directories = [pipe, granted];
    let read = |path: &std::path::Path| std::fs::read(path).map(drop).map_err(|error| error.kind());
    let (own, other) = std::thread::scope(|scope| {
        let walled = || {
            restrict_files(&files(&code, &directories)).unwrap();
            (read(&temp.path().join("a")), read("/etc/passwd".as_ref()))
        };
        scope.spawn(walled).join().unwrap()
    });
    assert_eq!((own, other), (Ok(()), Err(io::ErrorKind::PermissionDenied)));
}

#[test]
fn the_words_of_the_command_line_are_read_back() {
    for wall in [WorkerWall::Off, WorkerWall::BestEffort, WorkerWall::Required] {
        assert_eq!(<WorkerWall as clap::ValueEnum>::from_str(wall.word(), false), Ok(wall));
    }
}
