//! The registry of Debian, which has no list of referrers: signatures lie under a tag.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::program::{download, download_request, resolve, source, tags};
use crate::support::registry::{INDEX, MANIFEST};
use crate::support::samples::{digest, keyless, sample, trust};

const PROGRAM: &str = "/usr/bin/docker-registry";

/// A running registry. Dropping this value ends it.
struct Registry {
    process: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the registry. `None` if `BELLJAR_SKIP` says that this machine lacks it.
fn start() -> Option<Registry> {
    let skipped = std::env::var("BELLJAR_SKIP").unwrap_or_default();
    if skipped.split(',').any(|name| name == "docker-registry") {
        return None;
    }
    assert!(std::path::Path::new(PROGRAM).exists(), "{PROGRAM} is missing: run `apt-get install docker-registry`");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let directory = tempfile::tempdir().unwrap();
    let config = format!(
        "version: 0.1\nlog: {{ level: error, accesslog: {{ disabled: true }} }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: 127.0.0.1:{port} }}\n",
        directory.path().join("data").display()
    );
    let file = directory.path().join("config.yml");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(PROGRAM);
    let process = command.arg("serve").arg(file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let registry = Registry { process, port, _directory: directory };
    let end = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "the registry does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(registry)
}

impl Registry {
    /// Sends a request, and returns the head of the answer.
    fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 20"), "{method} {path}: {answer}");
        answer
    }

    fn blob(&self, bytes: &[u8]) {
        let answer = self.send("POST", "/v2/acme/tides/blobs/uploads/", "application/octet-stream", b"");
        let location = answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap().trim();
        let path = location.split_once(&format!(":{}", self.port)).map_or(location, |(_, path)| path);
        let digest = digest(bytes).replace(':', "%3A");
        self.send("PUT", &format!("{path}&digest={digest}"), "application/octet-stream", bytes);
    }

    fn manifest(&self, tag: &str, kind: &str, bytes: &[u8]) {
        self.send("PUT", &format!("/v2/acme/tides/manifests/{tag}"), kind, bytes);
    }
}

#[test]
fn a_signed_component_comes_from_debians_registry() {
    let Some(registry) = start() else { return };
    let (component, manifest, bundle) = (sample("component.wasm"), sample("manifest.json"), sample("good.bundle.json"));
    for blob in [&component, &sample("config.json"), &bundle, &b"{}".to_vec()] {
        registry.blob(blob);
    }
    registry.manifest("1.2", MANIFEST, &manifest);
    const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let referrer = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE,
        "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(b"{}"), "size": 2 },
        "layers": [{ "mediaType": BUNDLE, "digest": digest(&bundle), "size": bundle.len() }],
        "subject": { "mediaType": MANIFEST, "digest": digest(&manifest), "size": manifest.len() },
    });
    let referrer = serde_json::to_vec(&referrer).unwrap();
    registry.manifest("signature", MANIFEST, &referrer);
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [
        { "mediaType": MANIFEST, "digest": digest(&referrer), "size": referrer.len(), "artifactType": BUNDLE },
    ]});
    let tag = digest(&manifest).replace(':', "-");
    registry.manifest(&tag, INDEX, &serde_json::to_vec(&index).unwrap());

    let resolved = resolve(&source(registry.port), trust(registry.port, keyless())).unwrap();
    assert_eq!(resolved.signatures.len(), 1, "{resolved:?}");
    let directory = tempfile::tempdir().unwrap();
    let downloaded = download(download_request(registry.port, directory.path())).unwrap();
    assert_eq!(std::fs::read(directory.path().join(downloaded.file)).unwrap(), component);
    let tags = tags(&format!("127.0.0.1:{}/acme/tides", registry.port)).unwrap();
    assert_eq!(tags.tags, ["1.2", "signature"]);
}
