//! Downloads: checked, resumed, and kept by digest.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_fetch_protocol::{
    DownloadRequest, Event, FailureKind, Required, SignatureKind, Signer, Task, Trust, TrustRule,
};

use crate::support::program::{download, download_request, request, resolve, run};
use crate::support::registry::Contents;
use crate::support::samples::{digest, sample, text, unsigned};
use crate::support::server::{Reply, Server, Then};

/// A component with a custom section that makes it large.
fn large() -> Vec<u8> {
    let mut bytes = sample("component.wasm");
    bytes.extend([0, 0x84, 0x80, 0x18, 1, b'x']);
    bytes.extend((0..393_218_u32).map(|at| (at % 251) as u8));
    bytes
}

/// A request for bytes that a registry holds.
fn wanted(port: u16, bytes: &[u8], directory: &std::path::Path) -> DownloadRequest {
    DownloadRequest {
        component_digest: digest(bytes),
        size: Some(bytes.len() as u64),
        ..download_request(port, directory)
    }
}

#[test]
fn a_component_is_downloaded_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Contents::tides().start();
    let component = sample("component.wasm");
    let name = format!("{}.wasm", &digest(&component)[7..]);
    for cached in [false, true] {
        let downloaded = download(download_request(server.port, directory.path())).unwrap();
        assert_eq!((downloaded.file.as_str(), downloaded.size, downloaded.cached), (name.as_str(), 8, cached));
    }
    assert_eq!(std::fs::read(directory.path().join(&name)).unwrap(), component);
    let mode = std::fs::metadata(directory.path().join(&name)).unwrap().permissions().mode();
    assert_eq!(mode & 0o133, 0, "{mode:o}");
    assert_eq!(server.asked().len(), 1);
    // A changed file is fetched again.
    std::fs::write(directory.path().join(&name), b"changed").unwrap();
    assert!(!download(download_request(server.port, directory.path())).unwrap().cached);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn progress_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = large();
    let mut contents = Contents::default();
    contents.blob(&bytes);
    let server = contents.start();
    let events = run(&request(Task::Download(wanted(server.port, &bytes, directory.path()))));
    assert_eq!(events[0], Event::Wall { missing: Vec::new() });
    let Event::Progress(first) = events[1] else { panic!("{events:?}") };
    assert!(first.bytes > 0 && first.total == Some(bytes.len() as u64), "{first:?}");
    assert!(matches!(events.last(), Some(Event::Downloaded(_))), "{events:?}");
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = large();
    let mut contents = Contents::default();
    contents.blob(&bytes);
    // Each answer breaks off in its middle.
    let server = contents.start_with(|_, usual| {
        let mut broken = usual.clone();
        let half = usual.body.len().div_ceil(2).max(usual.body.len().min(100_000));
        broken.body.truncate(half);
        (half < usual.body.len()).then(|| broken.claiming(usual.body.len() as u64).then(Then::Close))
    });
    download(wanted(server.port, &bytes, directory.path())).unwrap();
    let ranges: Vec<_> = server.asked().iter().map(|asked| asked.header("range").map(str::to_owned)).collect();
    assert!(ranges.len() > 2 && ranges[0].is_none() && ranges[1..].iter().all(Option::is_some), "{ranges:?}");
    let name = format!("{}.wasm", &digest(&bytes)[7..]);
    assert_eq!(std::fs::read(directory.path().join(name)).unwrap(), bytes);
}

#[test]
fn a_later_request_resumes_and_checks_what_is_there() {
    let bytes = large();
    let mut contents = Contents::default();
    contents.blob(&bytes);
    let server = contents.start();
    let part = format!("{}.part", &digest(&bytes)[7..]);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(&part), &bytes[..1000]).unwrap();
    download(wanted(server.port, &bytes, directory.path())).unwrap();
    assert_eq!(server.asked()[0].header("range"), Some("bytes=1000-"));
    // Wrong bytes of an earlier download are found, and removed for the next one.
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(&part), vec![7; 1000]).unwrap();
    let failure = download(wanted(server.port, &bytes, directory.path())).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Content, "{failure:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    // More bytes than the component has.
    std::fs::write(directory.path().join(&part), vec![7; bytes.len() + 1]).unwrap();
    download(wanted(server.port, &bytes, directory.path())).unwrap();
}

#[test]
fn a_server_without_ranges_starts_again() {
    let bytes = large();
    let mut contents = Contents::default();
    contents.blob(&bytes);
    let whole = bytes.clone();
    let server = contents.start_with(move |_, _| Some(Reply::new(200, whole.clone())));
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(format!("{}.part", &digest(&bytes)[7..])), &bytes[..1000]).unwrap();
    download(wanted(server.port, &bytes, directory.path())).unwrap();
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let server = Contents::tides().start();
    let failure = download(download_request(server.port, std::path::Path::new("/nonexistent/x"))).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Directory);
    assert!(failure.problem.contains("\"/nonexistent/x\""), "{failure:?}");
    // A link in the place of a file is not followed.
    let directory = tempfile::tempdir().unwrap();
    let target = tempfile::NamedTempFile::new().unwrap();
    let part = directory.path().join(format!("{}.part", &digest(&sample("component.wasm"))[7..]));
    std::os::unix::fs::symlink(target.path(), &part).unwrap();
    let failure = download(download_request(server.port, directory.path())).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Directory, "{failure:?}");
    assert_eq!(std::fs::read(target.path()).unwrap(), b"");
    std::fs::remove_file(&part).unwrap();
    // Another download has the lock.
    let file = std::fs::File::create(&part).unwrap();
    file.lock().unwrap();
    let failure = download(download_request(server.port, directory.path())).unwrap_err();
    assert!(failure.problem.contains("another download"), "{failure:?}");
}

#[test]
fn a_download_waits_for_another_one_of_the_same_bytes() {
    let server = Contents::tides().start();
    let directory = tempfile::tempdir().unwrap();
    let hex = digest(&sample("component.wasm"))[7..].to_owned();
    let part = directory.path().join(format!("{hex}.part"));
    std::fs::write(&part, sample("component.wasm")).unwrap();
    let file = std::fs::File::open(&part).unwrap();
    file.lock().unwrap();
    let request = download_request(server.port, directory.path());
    let waiting = std::thread::spawn(move || download(request));
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!waiting.is_finished(), "it waits");
    std::fs::rename(&part, directory.path().join(format!("{hex}.wasm"))).unwrap();
    drop(file);
    assert!(waiting.join().unwrap().unwrap().cached);
}

/// A server of one file, with or without a minisign signature.
fn files(signature: Option<&'static str>) -> Server {
    Server::start(move |asked| match (asked.path.as_str(), signature) {
        ("/tides.wasm", _) => Reply::new(200, sample("component.wasm")),
        ("/tides.wasm.minisig", Some(signature)) => Reply::new(200, sample(signature)),
        _ => Reply::new(404, "no"),
    })
}

fn minisign(port: u16) -> Trust {
    let key = text("minisign.pub").lines().nth(1).unwrap().to_owned();
    let rules = vec![TrustRule { scope: format!("127.0.0.1:{port}"), signer: Signer::Minisign { key } }];
    Trust { required: Required::Signature, rules }
}

fn file_request(port: u16, trust: Trust, directory: &std::path::Path) -> DownloadRequest {
    let component = sample("component.wasm");
    let source = format!("http://127.0.0.1:{port}/tides.wasm#sha256={}", &digest(&component)[7..]);
    DownloadRequest {
        source,
        component_digest: digest(&component),
        kind: <_>::default(),
        size: None,
        directory: directory.to_owned(),
        trust,
    }
}

#[test]
fn a_file_is_resolved_and_its_minisign_signature_checked() {
    let directory = tempfile::tempdir().unwrap();
    let server = files(Some("component.wasm.minisig"));
    let wanted = file_request(server.port, minisign(server.port), directory.path());
    let resolved = resolve(&wanted.source, minisign(server.port)).unwrap();
    assert_eq!(
        (resolved.pinned.as_str(), resolved.size, resolved.manifest_digest),
        (wanted.source.as_str(), Some(8), None)
    );
    let announced = resolved.minisign.unwrap();
    assert_eq!(
        (announced.trusted_key.as_deref(), announced.comment.as_str()),
        (Some("EFCDAB8967452301"), "timestamp:1732752000 file:tides.wasm")
    );
    for cached in [false, true] {
        let downloaded = download(wanted.clone()).unwrap();
        let signature = downloaded.signature.unwrap();
        assert_eq!(
            (downloaded.cached, signature.kind, signature.signer.as_str()),
            (cached, SignatureKind::Minisign, "EFCDAB8967452301")
        );
    }
}

#[test]
fn a_file_without_a_good_minisign_signature_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let server = files(None);
    let wanted = file_request(server.port, minisign(server.port), directory.path());
    let failure = resolve(&wanted.source, minisign(server.port)).unwrap_err();
    assert!(failure.problem.contains("there is no") && failure.kind == FailureKind::Signature, "{failure:?}");
    assert_eq!(download(wanted).unwrap_err().kind, FailureKind::Signature);
    let server = files(Some("another.wasm.minisig"));
    let wanted = file_request(server.port, minisign(server.port), directory.path());
    let failure = download(wanted).unwrap_err();
    assert!(failure.problem.contains("does not fit the file") && failure.kind == FailureKind::Signature, "{failure:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    // Without rules, the key is a stranger's.
    let trust = Trust { required: Required::Signature, rules: Vec::new() };
    let failure = download(file_request(server.port, trust, directory.path())).unwrap_err();
    assert!(failure.problem.contains("which no rule names"), "{failure:?}");
    // Not required, not checked.
    let downloaded = download(file_request(server.port, unsigned(), directory.path())).unwrap();
    assert_eq!(downloaded.signature, None);
}

#[test]
fn two_downloads_of_one_component_do_not_mix() {
    let bytes = large();
    let mut contents = Contents::default();
    contents.blob(&bytes);
    let server = contents.start();
    let directory = tempfile::tempdir().unwrap();
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| match download(wanted(server.port, &bytes, directory.path())) {
                Ok(_) => drop(done.fetch_add(1, Ordering::Relaxed)),
                Err(failure) => assert_eq!(failure.kind, FailureKind::Directory, "{failure:?}"),
            });
        }
    });
    assert!(done.into_inner() > 0);
    assert_eq!(std::fs::read(directory.path().join(format!("{}.wasm", &digest(&bytes)[7..]))).unwrap(), bytes);
}
