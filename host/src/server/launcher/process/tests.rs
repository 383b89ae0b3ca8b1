//! Forged requests, and requests that are none.

use std::path::Path;
use std::thread::JoinHandle;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::*;

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// A launcher on a thread, for a configuration that grants one directory.
struct Running {
    temp: tempfile::TempDir,
    front: OwnedFd,
    thread: JoinHandle<()>,
}

impl Running {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for directory in ["plugins", "granted", "other"] {
            std::fs::create_dir(root.join(directory)).unwrap();
        }
        let config = root.join("belljar.toml");
        std::fs::write(&config, "[mounts.a]\nisolation = \"mount\"\nfs = { \"/data\" = \"granted\" }\n").unwrap();
        let at = Arc::new(LocationArgs { config: Some(config), ..LocationArgs::default() });
        let (front, own) = pair();
        let mut launching =
            Launching { at, wall: WorkerWall::Required, workers: HashMap::new(), opening: Arc::default() };
        let thread = std::thread::spawn(move || launching.serve(own.as_fd()));
        Self { temp, front, thread }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.temp.path().canonicalize().unwrap().join(name)
    }

    /// The reply to a request, and the number of descriptors that come with it.
    fn ask(&self, request: &LauncherRequest) -> (LauncherReply, usize) {
        let (own, lent) = pair();
        let bytes = postcard::to_stdvec(request).unwrap();
        packet::send(&self.front, &bytes, &[lent.as_fd()], SendFlags::empty()).unwrap();
        drop(lent);
        let mut buffer = [0; MAX_MESSAGE_BYTES];
        let (length, files) = packet::receive(&own, &mut buffer).unwrap();
        (postcard::from_bytes(&buffer[..length]).unwrap(), files.len())
    }

    fn open(&self, path: &Path) -> (LauncherReply, usize) {
        self.ask(&LauncherRequest::OpenDirectory(path.to_owned()))
    }
}

#[test]
fn a_forged_request_gets_nothing() {
    let running = Running::new();
    assert_eq!(running.open(&running.path("granted")), (LauncherReply::Opened, 1));
    let refused = (LauncherReply::Failed(Errno::ACCESS.raw_os_error()), 0);
    for forged in [running.path("other"), running.path(""), running.path("granted/.."), "/etc".into(), "/".into()] {
        assert_eq!(running.open(&forged), refused, "{}", forged.display());
    }
    assert_eq!(running.ask(&LauncherRequest::Connect("127.0.0.1:22".parse().unwrap())), refused);
    // Processes that it did not start.
    let own = std::process::id();
    packet::send(&running.front, &postcard::to_stdvec(&LauncherRequest::Kill(own)).unwrap(), &[], SendFlags::empty())
        .unwrap();
    for id in [own, 1, 0, u32::MAX] {
        assert_eq!(running.ask(&LauncherRequest::End(id)), (LauncherReply::Ended(None), 0));
    }
}

#[test]
fn what_is_no_request_is_ignored_and_the_end_of_the_socket_ends_it() {
    let running = Running::new();
    let start = postcard::to_stdvec(&LauncherRequest::Start).unwrap();
    for message in [&[0xff; 3][..], &[3, 0xff, 0xff], &start] {
        packet::send(&running.front, message, &[], SendFlags::empty()).unwrap();
    }
    assert_eq!(running.open(&running.path("granted")), (LauncherReply::Opened, 1), "it goes on");
    drop(running.front);
    running.thread.join().unwrap();
}
