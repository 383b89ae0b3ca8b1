//! What the process can still do behind its wall. Both parts of the wall are of one thread, so a thread of the test raises them.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

use super::*;

/// True if an operation is refused, and not for another reason.
fn is_refused<T>(result: std::io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test tries what the wall refuses")]
fn the_wall_leaves_the_directory_and_the_named_ports() {
    let directory = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in"), "in").unwrap();
    let handle = std::fs::File::open(directory.path()).unwrap();
    let servers = [TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap()];
    let [named, other] = servers.each_ref().map(|server| server.local_addr().unwrap());
    let socket = outside.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let walled = || {
        let status = restrict(Some(handle.as_fd()), &[named.port()]).unwrap();
        assert_eq!(gaps(&status), None);
        let path = |name: &str| directory.path().join(name);
        assert_eq!(std::fs::read(path("in")).unwrap(), b"in");
        std::fs::write(path("new"), "new").unwrap();
        std::fs::rename(path("new"), path("newer")).unwrap();
        std::fs::remove_file(path("newer")).unwrap();
        assert!(is_refused(std::fs::read("/etc/passwd")));
        assert!(is_refused(std::fs::read_dir("/proc")));
        assert!(is_refused(std::fs::write(outside.path().join("x"), "x")));
        TcpStream::connect(named).unwrap();
        assert!(is_refused(TcpStream::connect(other)));
        assert!(is_refused(TcpListener::bind("127.0.0.1:0")));
        calls::allow_only_own().unwrap();
        TcpStream::connect(named).unwrap();
        UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(std::fs::read(path("in")).unwrap(), b"in");
        assert!(is_refused(UnixStream::connect(&socket)));
        assert!(is_refused(Command::new("/bin/true").status()));
        assert!(is_refused(std::thread::Builder::new().spawn(|| ())));
        // Changes the mode of a file.
        let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
        assert!(is_refused(std::fs::set_permissions(path("in"), open)));
    };
    std::thread::scope(|scope| scope.spawn(walled).join().unwrap());
}
