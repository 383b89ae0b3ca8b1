//! Raises the wall, with the rules of the product, around a thread of the test, and tries allowed and forbidden actions
//! there.

use std::fs;
use std::io::ErrorKind::PermissionDenied;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use super::*;
use crate::config::{ConfigInput, FILE};
use crate::server::keys::SharedCode;
use crate::server::location::LocationArgs;

/// A temporary directory with a plugin directory and others, and a configuration with `lines`. The directory "granted"
/// is for grants.
fn setup(lines: &str) -> (tempfile::TempDir, Config) {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    for dir in ["plugins", "granted", "granted/below", "beside", "home"] {
        fs::create_dir_all(root.join(dir)).unwrap();
        fs::write(root.join(dir).join("file"), dir).unwrap();
    }
    let config = Config::read(ConfigInput {
        file: Some((root.join(FILE), lines.to_owned())),
        directory: root.clone(),
        home: Some(root.join("home")),
        cache: root.join("cache"),
        state: root.join("state"),
        plugins: None,
    });
    (temp, config.unwrap())
}

/// The keys of the configuration, for a process with this access to shared code.
fn keys(config: &Config, shared: SharedCode) -> Keys {
    let at = LocationArgs { config: config.file.clone(), ..LocationArgs::default() };
    Keys::read(&at, config, shared).ok().unwrap()
}

/// The paths that are allowed while components are served.
fn serving(config: &Config, output: Option<&Path>) -> AllowedPaths {
    allowed_paths(config, &keys(config, SharedCode::Use), output)
}

/// Runs `probe` in a new thread behind a wall that allows `open`.
fn inside<T: Send>(open: &AllowedPaths, probe: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let walled = scope.spawn(|| {
            // As in the product, handles keep the inodes of procfs while the wall stands.
            let mut pinned = Vec::new();
            let status = enforce(open, &[], &mut pinned).unwrap();
            assert!(
                matches!(status.landlock, LandlockStatus::Available { .. }),
                "these tests need a kernel with Landlock: {:?}",
                status.landlock
            );
            probe()
        });
        walled.join().unwrap()
    })
}

/// The result of an attempt, with the kind of its error.
fn tried<T>(result: std::io::Result<T>) -> Result<(), std::io::ErrorKind> {
    result.map(drop).map_err(|error| error.kind())
}

#[test]
fn only_the_allowed_paths_can_be_opened() {
    let (temp, config) = setup("audit = \"audit.jsonl\"\n[mounts.a]\nfs = { \"/\" = \"granted\" }");
    let root = temp.path().canonicalize().unwrap();
    let read = |path: &str| tried(fs::read(root.join(path)));
    let write = |path: &str| tried(fs::write(root.join(path), "x"));
    let append = |path: &str| tried(fs::OpenOptions::new().append(true).open(root.join(path)));
    let before = [read("beside/file"), read("home/file"), tried(fs::read("/etc/passwd")), write("beside/new")];
    assert_eq!(before, [Ok(()); 4], "without a wall all of that works");
    let own = keys(&config, SharedCode::Use).own_code(&config);
    let own = |name: &str| format!("{}/{name}", own.strip_prefix(&root).unwrap().display());
    inside(&serving(&config, None), || {
        assert_eq!([read("plugins/file"), read("granted/file"), read("granted/below/file")], [Ok(()); 3]);
        assert_eq!(tried(fs::read_dir(root.join("granted/below"))), Ok(()));
        assert_eq!([write(&own("a")), append("audit.jsonl")], [Ok(()); 2]);
        assert_eq!(tried(fs::rename(root.join(own("a")), root.join(own("b")))), Ok(()));
        assert_eq!(tried(fs::read("/proc/self/mountinfo")), Ok(()));
        let denied = Err(PermissionDenied);
        for path in ["beside/file", "home/file", "audit.jsonl", "/etc/passwd", "/etc/hostname", "/proc/self/environ"] {
            assert_eq!(read(path), denied, "{path}");
        }
        // Shared code can be read; the secret of the installation cannot.
        assert_eq!((tried(fs::read_dir(root.join("cache"))), read("state/key")), (Ok(()), denied));
        for path in
            ["cache/a", "state/a", "plugins/file", "granted/file", "granted/new", "beside/new", "audit.jsonl", "new"]
        {
            assert_eq!(write(path), denied, "{path}");
        }
        for path in ["/", "/etc", "/proc", "/dev"] {
            assert_eq!(tried(fs::read_dir(path)), denied, "{path}");
        }
        assert_eq!(tried(fs::remove_file(root.join("plugins/file"))), denied);
        assert_eq!(tried(std::process::Command::new("/bin/sh").arg("-c").arg(":").output()), denied);
    });
}

#[test]
fn a_process_that_runs_no_component_writes_shared_code() {
    let (temp, config) = setup("");
    let root = temp.path().canonicalize().unwrap();
    inside(&allowed_paths(&config, &keys(&config, SharedCode::Sign), None), || {
        assert_eq!(tried(fs::write(root.join("cache/a"), "x")), Ok(()));
        assert_eq!(tried(fs::read(root.join("state/key"))), Err(PermissionDenied));
    });
}

#[test]
fn no_socket_can_connect_or_listen() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = SocketAddr::from_abstract_name(format!("belljar-wall-{}", std::process::id())).unwrap();
    let _abstract = UnixListener::bind_addr(&name).unwrap();
    let connect = || tried(TcpStream::connect(listener.local_addr().unwrap()));
    let bind = || tried(TcpListener::bind("127.0.0.1:0"));
    let speak = || tried(UnixStream::connect_addr(&name));
    assert_eq!([connect(), bind(), speak()], [Ok(()); 3], "without a wall all of that works");
    let (_temp, config) = setup("");
    inside(&serving(&config, None), || assert_eq!([connect(), bind(), speak()], [Err(PermissionDenied); 3]));
}

#[test]
fn a_refused_grant_allows_no_path() {
    let (temp, config) =
        setup("[mounts.a]\nfs = { \"/\" = \"/\", \"/p\" = \"/proc\", \"/s\" = \".\", \"/g\" = \"granted\" }");
    let granted = temp.path().canonicalize().unwrap().join("granted");
    let directories: Vec<_> = config.mounts.values().flat_map(|m| m.grants.directories(&config.ambient)).collect();
    assert_eq!(directories, [granted]);
}

#[test]
fn a_system_grant_opens_the_kernel_files_of_its_parts_only() {
    let read = |path: &str| tried(fs::read(path));
    let (_temp, config) = setup("[mounts.a]\nsystem = [\"memory\", \"network\"]");
    inside(&serving(&config, None), || {
        assert_eq!([read("/proc/meminfo"), read("/proc/self/net/dev")], [Ok(()); 2]);
        for path in ["/proc/loadavg", "/proc/self/environ", "/proc/1/stat", "/sys/fs/cgroup/cgroup.procs"] {
            assert_ne!(read(path), Ok(()), "{path}");
        }
    });
    let (_temp, config) = setup("[mounts.a]\nsystem = [\"processes\", \"command-lines\"]");
    inside(&serving(&config, None), || {
        assert_eq!([read("/proc/1/stat"), read("/proc/1/cmdline")], [Ok(()); 2]);
        // The kernel lets nobody behind a wall look into a process outside of it.
        assert_eq!(read("/proc/1/environ"), Err(PermissionDenied));
        assert_eq!(tried(fs::OpenOptions::new().write(true).open("/proc/self/comm")), Err(PermissionDenied));
    });
}

#[test]
fn the_output_file_can_be_written() {
    let (temp, config) = setup("");
    for (output, other) in [("beside/file", "beside/new"), ("home/new", "home/file")] {
        let (output, other) = (temp.path().join(output), temp.path().join(other));
        inside(&serving(&config, Some(&output)), || {
            assert_eq!(tried(fs::write(&output, "x")), Ok(()), "{}", output.display());
            assert_eq!(tried(fs::read(&output)), Err(PermissionDenied), "{}", output.display());
            assert_eq!(tried(fs::write(&other, "x")), Err(PermissionDenied), "{}", other.display());
        });
    }
}

#[test]
fn the_compiler_can_open_no_file() {
    inside(&Vec::new(), || {
        for path in ["/etc/passwd", "/proc/self/exe", "/proc/self/maps", "/etc/ld.so.cache"] {
            assert_eq!(tried(fs::read(path)), Err(PermissionDenied), "{path}");
        }
    });
}

#[test]
fn the_launcher_reads_files_and_starts_programs_and_writes_nothing() {
    let (temp, _config) = setup("");
    let root = temp.path().canonicalize().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _unix = UnixListener::bind(root.join("socket")).unwrap();
    let actions = || {
        let allowed = [
            tried(fs::read(root.join("granted/file"))),
            tried(fs::read_dir("/")),
            tried(fs::File::open("/proc/self/pagemap")),
            tried(TcpStream::connect(listener.local_addr().unwrap())),
            tried(std::process::Command::new("/bin/sh").args(["-c", ":"]).stdin(std::process::Stdio::piped()).output()),
        ];
        let refused = [
            tried(fs::write(root.join("granted/file"), "x")),
            tried(fs::write(root.join("granted/new"), "x")),
            tried(fs::remove_file(root.join("beside/file"))),
            tried(fs::create_dir(root.join("granted/directory"))),
            tried(fs::set_permissions(root.join("granted"), fs::Permissions::from_mode(0o755))),
            tried(TcpListener::bind("127.0.0.1:0")),
            tried(UdpSocket::bind("127.0.0.1:0")),
            tried(UnixStream::connect(root.join("socket"))),
        ];
        (allowed, refused)
    };
    let walled = || {
        raise_for_launcher();
        actions()
    };
    let (allowed, refused) = std::thread::scope(|scope| scope.spawn(walled).join().unwrap());
    assert_eq!((allowed, refused), ([Ok(()); 5], [Err(PermissionDenied); 8]));
    let (allowed, refused) = actions();
    assert_eq!((allowed, refused), ([Ok(()); 5], [Ok(()); 8]), "without a wall all of that works");
}

#[test]
fn the_status_names_what_is_missing() {
    let available = |abi: ABI| LandlockStatus::Available { effective_abi: abi, kernel_abi: None };
    let newer = LandlockStatus::Available { effective_abi: ABI::V9, kernel_abi: Some(12) };
    assert_eq!(status_on(&available(ABI::V6), true), WallStatus::Full { abi: 6 });
    assert_eq!(status_on(&newer, true), WallStatus::Full { abi: 12 });
    let old = status_on(&available(ABI::V4), true);
    assert_eq!(
        old.to_string(),
        "partial (Landlock ABI 4), without: commands to devices, signals and abstract Unix sockets"
    );
    assert_eq!(status_on(&available(ABI::V1), true).missing().len(), SINCE.len());
    assert_eq!(status_on(&available(ABI::V7), false).word(), "partial");
    for none in [LandlockStatus::NotEnabled, LandlockStatus::NotImplemented] {
        let status = status_on(&none, true);
        assert_eq!((status.word(), status.abi()), ("none", None));
    }
}
