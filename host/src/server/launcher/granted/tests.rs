//! Requests for directories and ports that the configuration on disk grants, and for others.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

/// A configuration with a mount in a worker process and one in belljar's own.
struct Place {
    _temp: tempfile::TempDir,
    root: PathBuf,
    at: LocationArgs,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for directory in ["plugins", "granted/below", "other", "own"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        symlink("granted", root.join("link")).unwrap();
        let at = LocationArgs { config: Some(root.join("belljar.toml")), ..LocationArgs::default() };
        let place = Self { _temp: temp, root, at };
        place.configure("fs = { \"/data\" = \"granted\" }\ntcp = [\"db.example:5432\"]");
        place
    }

    /// Writes the grants of the mount in a worker process.
    fn configure(&self, grants: &str) {
        let text = format!(
            "[mounts.worker]\nisolation = \"mount\"\n{grants}\n[mounts.here]\nisolation = \"none\"\nfs = {{ \"/data\" = \"own\" }}\ntcp = [\"db.example:5433\"]\n"
        );
        fs::write(self.root.join("belljar.toml"), text).unwrap();
    }

    fn open(&self, directory: &str) -> Result<OwnedFd, NotOpened> {
        open_directory(&self.at, &self.root.join(directory))
    }
}

#[test]
fn only_the_granted_directories_of_mounts_in_workers_are_opened() {
    let place = Place::new();
    fs::write(place.root.join("granted/a.txt"), "a").unwrap();
    let opened = place.open("granted").unwrap();
    assert!(rustix::fs::openat(&opened, c"a.txt", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).is_ok());
    for refused in ["", "other", "own", "plugins", "granted/below", "link", "granted/../other", "granted/.."] {
        let error = place.open(refused).unwrap_err();
        assert!(matches!(error, NotOpened::Directory(_)), "{refused}: {error}");
        assert_eq!((error.errno(), error.is_refusal()), (Errno::ACCESS.raw_os_error(), true));
    }
    assert!(open_directory(&place.at, Path::new("granted")).is_err(), "a relative path");
    assert!(open_directory(&place.at, Path::new("/proc/self")).is_err());
}

#[test]
fn the_configuration_on_disk_counts_at_the_moment_of_the_request() {
    let place = Place::new();
    place.configure("fs = { \"/data\" = \"other\" }");
    assert!(place.open("other").is_ok() && place.open("granted").is_err());
    // A replaced directory is another one at a granted path.
    fs::remove_dir(place.root.join("other")).unwrap();
    assert!(matches!(place.open("other"), Err(NotOpened::Directory(_))), "nothing is there");
    symlink(&place.root, place.root.join("other")).unwrap();
    assert!(place.open("other").is_err(), "a link leads elsewhere");
    fs::remove_file(place.root.join("other")).unwrap();
    fs::create_dir(place.root.join("other")).unwrap();
    assert!(place.open("other").is_ok());
    fs::write(place.root.join("belljar.toml"), "[mounts.worker").unwrap();
    assert!(matches!(place.open("other"), Err(NotOpened::Configuration(_))), "it cannot be read");
    fs::remove_file(place.root.join("belljar.toml")).unwrap();
    assert!(matches!(place.open("other"), Err(NotOpened::Configuration(_))), "it is gone");
}

#[test]
fn a_grant_may_name_its_directory_by_a_link() {
    let place = Place::new();
    place.configure("fs = { \"/data\" = \"link\" }");
    assert!(place.open("granted").is_ok());
    assert!(place.open("link").is_err(), "the front sends the path without links");
}

#[test]
fn a_grant_of_what_is_never_granted_opens_nothing() {
    let place = Place::new();
    for never in ["/", "/proc", ".", "plugins"] {
        place.configure(&format!("fs = {{ \"/data\" = \"{never}\" }}"));
        let real = fs::canonicalize(place.root.join(never)).unwrap();
        assert!(open_directory(&place.at, &real).is_err(), "{never}");
    }
}

#[test]
fn only_the_granted_ports_of_mounts_in_workers_are_connected_to() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let refused = begin_connection(&place.at, address).unwrap_err();
    assert!(matches!(refused, NotOpened::Port(port) if port == address.port()), "{refused}");
    let of_other = begin_connection(&place.at, "127.0.0.1:5433".parse().unwrap());
    assert!(matches!(of_other, Err(NotOpened::Port(5433))), "the port of a mount in belljar's own process");
    place.configure(&format!("tcp = [\"127.0.0.1:{}\"]", address.port()));
    let socket = std::net::TcpStream::from(begin_connection(&place.at, address).unwrap());
    let (_, peer) = listener.accept().unwrap();
    assert_eq!(peer, socket.local_addr().unwrap());
}
