//! A real registry of containers on loopback (`docker-registry` of Debian), with what a test pushes.

mod front;
mod token;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio as Pipe};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::front::{Referrers, Service, Slowness};
use self::token::TokenKey;
use crate::debian;
use crate::net::free_port;
use crate::places;
use crate::process::Process;
use crate::wait::wait_until;

/// The type of a manifest.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The type of a list of manifests.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The type of the configuration of a component.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// The password of the user of a private registry.
pub const PASSWORD: &str = "s3cret-pa55word";

/// The name of that user.
pub const USER: &str = "acme";

/// The hash of [`PASSWORD`] by bcrypt, at its lowest cost.
const HASH: &str = "$2b$04$uLCziu3gOpxXc59P3aP3Nu/11eHrI6SQCc5KHphi3ghFrv5AhMV0G";

/// A registry with a port of its own. Dropping this value kills it.
#[derive(Debug)]
pub struct Registry {
    _process: Process,
    directory: TempDir,
    /// The port of the program, and the port that clients use.
    ports: [u16; 2],
    /// What refers to a manifest, if this registry lists it.
    referrers: Option<Referrers>,
    slowness: Option<Arc<Slowness>>,
    access: Access,
}

/// Who may use a registry.
#[derive(Clone, Debug)]
enum Access {
    Everybody,
    /// The user of the tests, with the password in each request.
    Password,
    /// The same user, with tokens of a server.
    Tokens(Arc<TokenKey>),
}

/// A component as its publisher describes it.
#[derive(Clone, Debug, Default)]
pub struct Artifact {
    /// The bytes of the component.
    pub component: Vec<u8>,
    /// The annotation with its version.
    pub version: String,
    /// The exports in its configuration.
    pub exports: Vec<String>,
    /// The imports in its configuration.
    pub imports: Vec<String>,
    /// Further annotations.
    pub annotations: BTreeMap<String, String>,
}

/// `sha256:` and the hexadecimal digits of the hash of `bytes`.
pub fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Registry {
    /// Starts a registry. `None` if none is installed, and `BELLJAR_SKIP` says so.
    pub fn start() -> Option<Registry> {
        Registry::start_with(Access::Everybody, None)
    }

    /// A registry that wants the password of [`USER`] in each request.
    pub fn with_password() -> Option<Registry> {
        Registry::start_with(Access::Password, None)
    }

    /// A registry that wants tokens. A server on the same port gives them to [`USER`].
    pub fn with_tokens() -> Option<Registry> {
        let key = Arc::new(TokenKey::new());
        let service = Service::Tokens { key: Arc::clone(&key), login: format!("{USER}:{PASSWORD}") };
        Registry::start_with(Access::Tokens(key), Some(service))
    }

    /// A registry that lists what refers to a manifest (OCI distribution 1.1).
    pub fn with_referrers() -> Option<Registry> {
        let referrers = Referrers::default();
        let registry = Registry::start_with(Access::Everybody, Some(Service::Referrers(Arc::clone(&referrers))))?;
        Some(Registry { referrers: Some(referrers), ..registry })
    }

    /// A registry whose large blobs come byte by byte, until [`Registry::hurry`].
    pub fn slow() -> Option<Registry> {
        let slowness = Arc::new(Slowness::default());
        let registry = Registry::start_with(Access::Everybody, Some(Service::Slow(Arc::clone(&slowness))))?;
        Some(Registry { slowness: Some(slowness), ..registry })
    }

    /// Lets a slow registry send at its usual speed.
    pub fn hurry(&self) {
        self.slowness.iter().for_each(|slowness| slowness.is_over.store(true, Ordering::Relaxed));
    }

    /// The ranges of blobs that a slow registry was asked for.
    pub fn ranges(&self) -> Vec<String> {
        let ranges = |slowness: &Arc<Slowness>| slowness.ranges.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.slowness.as_ref().map(ranges).unwrap_or_default()
    }

    fn start_with(access: Access, service: Option<Service>) -> Option<Registry> {
        let program = places::program(&debian::REGISTRY)?;
        let (port, directory) = (free_port(), TempDir::with_prefix("registry-").expect("a temporary directory"));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let shown = service.map_or(port, |service| front::start(address, service));
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a writable directory");
            path
        };
        let auth = match &access {
            Access::Everybody => String::new(),
            Access::Password => {
                let users = write("users", &format!("{USER}:{HASH}\n"));
                format!("auth:\n  htpasswd:\n    realm: tests\n    path: {}\n", users.display())
            }
            Access::Tokens(key) => {
                let [issuer, service] = token::NAMES;
                format!(
                    "auth:\n  token:\n    realm: http://127.0.0.1:{shown}/token\n    service: {service}\n    issuer: {issuer}\n    rootcertbundle: {}\n",
                    write("tokens.pem", &key.pem).display()
                )
            }
        };
        let storage = directory.path().join("storage");
        let text = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\n{auth}",
            storage.display()
        );
        let mut command = Command::new(program);
        command.arg("serve").arg(write("config.yml", &text)).stdin(Pipe::null()).stdout(Pipe::null());
        let process = Process::start(command);
        wait_until("the registry", || {
            TcpStream::connect(address).map(drop).map_err(|error| format!("{error}: {}", process.stderr()))
        });
        Some(Registry { _process: process, directory, ports: [port, shown], referrers: None, slowness: None, access })
    }

    /// The name of the registry: its address and port.
    pub fn name(&self) -> String {
        format!("127.0.0.1:{}", self.ports[1])
    }

    /// The reference of a tag, or of a repository if `tag` is empty.
    pub fn reference(&self, name: &str, tag: &str) -> String {
        let colon = if tag.is_empty() { "" } else { ":" };
        format!("{}/{name}{colon}{tag}", self.name())
    }

    /// Pushes a component under a tag, as `wkg` does. Returns the digest of the manifest.
    pub fn push(&self, name: &str, tag: &str, artifact: &Artifact) -> String {
        let layer = self.blob(name, &artifact.component);
        let config = json!({
            "created": "2026-11-01T00:00:00Z", "architecture": "wasm", "os": "wasip2", "layerDigests": [layer],
            "component": { "exports": artifact.exports, "imports": artifact.imports, "target": null },
        })
        .to_string();
        let mut annotations = artifact.annotations.clone();
        annotations.insert("org.opencontainers.image.version".to_owned(), artifact.version.clone());
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": { "mediaType": CONFIG, "digest": self.blob(name, config.as_bytes()), "size": config.len() },
            "layers": [{ "mediaType": "application/wasm", "digest": layer, "size": artifact.component.len() }],
            "annotations": annotations,
        });
        self.manifest(name, tag, &manifest)
    }

    /// Pushes a signature of the manifest `subject`. A registry of [`Registry::with_referrers`] lists it. In others, it is under
    /// the tag by which clients find it.
    pub fn push_signature(&self, name: &str, subject: &str, bundle: &str) {
        const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
        let layer = self.blob(name, bundle.as_bytes());
        let empty = self.blob(name, b"{}");
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE,
            "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2 },
            "layers": [{ "mediaType": BUNDLE, "digest": layer, "size": bundle.len() }],
            "subject": { "mediaType": MANIFEST, "digest": subject, "size": 0 },
        });
        let digest = self.manifest(name, "a-signature", &manifest);
        let size = manifest.to_string().len();
        let descriptor = json!({ "mediaType": MANIFEST, "digest": digest, "size": size, "artifactType": BUNDLE });
        if let Some(referrers) = &self.referrers {
            let mut all = referrers.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(subject.to_owned()).or_default().push(descriptor);
            return;
        }
        let index = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [descriptor],
        });
        self.manifest(name, &subject.replace(':', "-"), &index);
    }

    /// The manifest or the list with this tag or digest.
    pub fn document(&self, name: &str, tag: &str) -> Value {
        let body = self.get(&format!("/v2/{name}/manifests/{tag}"));
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    /// The text of a blob.
    pub fn blob_text(&self, name: &str, digest: &str) -> String {
        self.get(&format!("/v2/{name}/blobs/{digest}"))
    }

    fn get(&self, path: &str) -> String {
        let (status, head, body) = self.exchange("GET", path, "application/json", b"");
        assert_eq!(status, 200, "{head}");
        body
    }

    /// Pushes a list of revoked versions.
    pub fn push_revoked(&self, name: &str, list: &Value) {
        const REVOKED: &str = "application/vnd.belljar.revoked.v1+json";
        let list = list.to_string();
        let (empty, layer) = (self.blob(name, b"{}"), self.blob(name, list.as_bytes()));
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": REVOKED,
            "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2 },
            "layers": [{ "mediaType": REVOKED, "digest": layer, "size": list.len() }],
        });
        self.manifest(name, "revoked", &manifest);
    }

    /// Removes a tag, which this registry's API cannot.
    pub fn remove_tag(&self, name: &str, tag: &str) {
        let repository = self.directory.path().join("storage/docker/registry/v2/repositories").join(name);
        std::fs::remove_dir_all(repository.join("_manifests/tags").join(tag)).expect("a tag");
    }

    /// Puts a manifest under a tag. Returns its digest.
    fn manifest(&self, name: &str, tag: &str, manifest: &Value) -> String {
        let (body, kind) = (manifest.to_string(), manifest["mediaType"].as_str().expect("a type"));
        let (status, _) = self.send("PUT", &format!("/v2/{name}/manifests/{tag}"), kind, body.as_bytes());
        assert_eq!(status, 201, "{body}");
        sha256(body.as_bytes())
    }

    /// Pushes a blob. Returns its digest.
    fn blob(&self, name: &str, bytes: &[u8]) -> String {
        let (status, head) = self.send("POST", &format!("/v2/{name}/blobs/uploads/"), "application/octet-stream", b"");
        assert_eq!(status, 202, "{head}");
        let location = head.lines().find_map(|line| line.strip_prefix("Location: ")).expect("a place to upload to");
        let path = location.find("/v2/").and_then(|at| location.get(at..)).expect("a path");
        let digest = sha256(bytes);
        let sign = if path.contains('?') { '&' } else { '?' };
        let to = format!("{path}{sign}digest={}", digest.replace(':', "%3A"));
        let (status, head) = self.send("PUT", &to, "application/octet-stream", bytes);
        assert_eq!(status, 201, "{head}");
        digest
    }

    /// Sends a request. Returns the status and the head of the answer.
    fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String) {
        let (status, head, _) = self.exchange(method, path, kind, body);
        (status, head)
    }

    /// The same, with the body of the answer.
    fn exchange(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String, String) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.ports[0]));
        let mut stream = TcpStream::connect(address).expect("a registry that accepts");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let repository =
            path.strip_prefix("/v2/").and_then(|path| path.rsplit_once("/manifests/").or(path.split_once("/blobs/")));
        let scope = || format!("repository:{}:pull,push", repository.map_or("", |(name, _)| name));
        let authorization = match &self.access {
            Access::Everybody => String::new(),
            Access::Password => format!("authorization: Basic {}\r\n", STANDARD.encode(format!("{USER}:{PASSWORD}"))),
            Access::Tokens(key) => format!("authorization: Bearer {}\r\n", key.sign(&scope())),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{authorization}accept: {MANIFEST}, {INDEX}, */*\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("a registry that reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, head.to_owned(), body.to_owned())
    }
}
