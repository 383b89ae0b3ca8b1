//! What a hostile registry can do: nothing is accepted, and the error says what to do.

use belljar_fetch_protocol::{Failure, FailureKind, Request, ResolveRequest, Signer, Task, Trust};
use serde_json::{Value, json};

use crate::support::program::{LIMITS, download, download_request, is_clear, request, resolve, result, source, tags};
use crate::support::registry::{Contents, INDEX, MANIFEST, manifest};
use crate::support::samples::{digest, keyless, sample, text, trust, unsigned};
use crate::support::server::{Asked, Reply, Server, Then, names};

use FailureKind::{Address, Content, Network, Signature, Size, Time};

/// One row: what the registry does, and a part of the error.
struct Row {
    name: &'static str,
    failure: Result<(), Failure>,
    kind: FailureKind,
    problem: &'static str,
}

/// Resolves the sample after its manifest was changed.
fn changed(change: impl FnOnce(&mut Value)) -> Result<(), Failure> {
    let mut contents = Contents::tides();
    contents.manifest("1.2", MANIFEST, &manifest(change));
    resolve(&source(contents.start().port), unsigned()).map(drop)
}

/// Resolves the sample by its tag, or by its digest, with changed answers.
fn answering(
    by_digest: bool,
    change: impl Fn(&Asked, &Reply) -> Option<Reply> + Send + Sync + 'static,
) -> Result<(), Failure> {
    let server = Contents::tides().start_with(change);
    let source = match by_digest {
        true => format!("127.0.0.1:{}/acme/tides@{}", server.port, digest(&sample("manifest.json"))),
        false => source(server.port),
    };
    resolve(&source, unsigned()).map(drop)
}

/// Downloads the sample with changed answers. Nothing stays in the directory that a later start would take for a component.
fn downloading(change: impl Fn(&Asked, &Reply) -> Option<Reply> + Send + Sync + 'static) -> Result<(), Failure> {
    let server = Contents::tides().start_with(change);
    let directory = tempfile::tempdir().unwrap();
    let result = download(download_request(server.port, directory.path())).map(drop);
    assert!(!directory.path().join(format!("{}.wasm", &digest(&sample("component.wasm"))[7..])).exists());
    result
}

/// Downloads a blob that has the promised digest and is no component.
fn blob(bytes: &[u8]) -> Result<(), Failure> {
    let mut contents = Contents::default();
    contents.blob(bytes);
    let server = contents.start();
    let directory = tempfile::tempdir().unwrap();
    let mut wanted = download_request(server.port, directory.path());
    (wanted.component_digest, wanted.size) = (digest(bytes), Some(bytes.len() as u64));
    let result = download(wanted).map(drop);
    assert_eq!(
        std::fs::read_dir(directory.path())
            .unwrap()
            .filter(|file| file.as_ref().unwrap().path().extension().unwrap() == "wasm")
            .count(),
        0
    );
    result
}

/// Resolves the signed sample with changed answers. A signature is required.
fn signed(
    bundles: &[&str],
    change: impl Fn(&Asked, &Reply) -> Option<Reply> + Send + Sync + 'static,
) -> Result<(), Failure> {
    let server = Contents::signed(bundles).start_with(change);
    resolve(&source(server.port), trust(server.port, keyless())).map(drop)
}

fn is_manifest(asked: &Asked) -> bool {
    asked.path.contains("/manifests/1.2") || asked.path.contains("/manifests/sha256:")
}

fn redirect(to: impl Into<String>) -> Reply {
    Reply::new(307, "").with("Location", to)
}

fn manifests() -> Vec<Row> {
    let row = |name, failure, kind, problem| Row { name, failure, kind, problem };
    let other = || Reply::new(200, manifest(|manifest| manifest["annotations"] = json!({})));
    vec![
        row(
            "moved tag, while the digest is named",
            answering(true, move |asked, _| is_manifest(asked).then(other)),
            Content,
            "sends a manifest with the digest",
        ),
        row(
            "another digest in the header",
            answering(false, |asked, usual| {
                is_manifest(asked).then(|| usual.clone().with("Docker-Content-Digest", digest(b"x")))
            }),
            Content,
            "and says",
        ),
        row(
            "manifest that is not JSON",
            answering(false, |asked, _| is_manifest(asked).then(|| Reply::new(200, "<html>"))),
            Content,
            "the manifest is not one",
        ),
        row(
            "manifest of 2 MiB",
            answering(false, |asked, _| is_manifest(asked).then(|| Reply::new(200, vec![b' '; 2 << 20]))),
            Size,
            "has more than 1048576 bytes",
        ),
        row(
            "manifest that claims 10 GiB",
            answering(false, |asked, usual| {
                is_manifest(asked).then(|| usual.clone().claiming(10 << 30).then(Then::Close))
            }),
            Size,
            "has more than 1048576 bytes",
        ),
        row(
            "manifest without an end",
            answering(false, |asked, _| {
                is_manifest(asked).then(|| Reply::new(200, vec![b' '; 64 << 10]).then(Then::Flood))
            }),
            Size,
            "has more than 1048576 bytes",
        ),
        row(
            "manifest with 10000 arrays in each other",
            answering(false, |asked, _| {
                is_manifest(asked)
                    .then(|| Reply::new(200, format!("{{\"schemaVersion\":2,\"x\":{}", "[".repeat(10_000))))
            }),
            Content,
            "the manifest is not one",
        ),
        row("schema version 1", changed(|manifest| manifest["schemaVersion"] = 1.into()), Content, "schema version 1"),
        row(
            "component that claims 10 GiB",
            changed(|manifest| manifest["layers"][0]["size"] = (10_u64 << 30).into()),
            Size,
            "has 10737418240 bytes",
        ),
        row(
            "component of negative size",
            changed(|manifest| manifest["layers"][0]["size"] = (-1).into()),
            Content,
            "the manifest is not one",
        ),
        row(
            "digest that names a path",
            changed(|manifest| manifest["layers"][0]["digest"] = "sha256:../../etc/passwd".into()),
            Content,
            "only sha256 is supported",
        ),
        row(
            "digest of a weak kind",
            changed(|manifest| manifest["layers"][0]["digest"] = "md5:00".into()),
            Content,
            "only sha256 is supported",
        ),
        row("no layer", changed(|manifest| manifest["layers"] = json!([])), Content, "has 0 layers"),
        row(
            "two layers",
            changed(|manifest| manifest["layers"] = json!([manifest["layers"][0], manifest["layers"][0]])),
            Content,
            "has 2 layers",
        ),
        row(
            "container image",
            changed(|manifest| {
                manifest["layers"][0]["mediaType"] = "application/vnd.oci.image.layer.v1.tar+gzip".into()
            }),
            Content,
            "expected \"application/wasm\"",
        ),
        row(
            "configuration with another digest",
            answering(false, |asked, usual| {
                (asked.path.contains("/blobs/")).then(|| Reply::new(200, vec![b' '; usual.body.len()]))
            }),
            Content,
            "is not the one with the digest",
        ),
        row(
            "configuration that claims 10 GiB",
            changed(|manifest| manifest["config"]["size"] = (10_u64 << 30).into()),
            Size,
            "the configuration has 10737418240 bytes",
        ),
        row(
            "configuration of another component",
            changed(|manifest| manifest["layers"][0]["digest"] = digest(b"other").into()),
            Content,
            "describes another component",
        ),
        row(
            "index that names itself",
            {
                let mut contents = Contents::tides();
                let inner = contents.manifest("inner", INDEX, &serde_json::to_vec(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [{ "digest": digest(b"x"), "size": 1 }] })).unwrap());
                contents.manifest("1.2", INDEX, &serde_json::to_vec(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [{ "digest": inner, "size": 1 }] })).unwrap());
                resolve(&source(contents.start().port), unsigned()).map(drop)
            },
            Content,
            "the index names another index",
        ),
        row(
            "index with two components",
            {
                let mut contents = Contents::tides();
                let entry = |name: &[u8]| json!({ "mediaType": MANIFEST, "digest": digest(name), "size": 1, "platform": { "architecture": "wasm", "os": "wasip2" } });
                contents.manifest(
                    "1.2",
                    INDEX,
                    &serde_json::to_vec(
                        &json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(b"1"), entry(b"2")] }),
                    )
                    .unwrap(),
                );
                resolve(&source(contents.start().port), unsigned()).map(drop)
            },
            Content,
            "has several components",
        ),
    ]
}

fn servers() -> Vec<Row> {
    let row = |name, failure, kind, problem| Row { name, failure, kind, problem };
    let inside = Server::start(|_| Reply::new(200, "a secret of this machine"));
    let port = inside.port;
    let to = |url: String| answering(false, move |asked, _| is_manifest(asked).then(|| redirect(url.clone())));
    let rows = vec![
        row(
            "redirect to a service on this machine",
            to(format!("http://127.0.0.1:{port}/")),
            Address,
            "which is not HTTPS",
        ),
        row(
            "redirect to that service by HTTPS",
            to(format!("https://127.0.0.1:{port}/")),
            Address,
            "whose port is neither 443",
        ),
        row(
            "redirect to a private address",
            to("https://10.0.0.1/latest".into()),
            Address,
            "whose address 10.0.0.1 is not public",
        ),
        row(
            "redirect to the metadata of a cloud",
            to("https://169.254.169.254/latest/meta-data/".into()),
            Address,
            "is not public",
        ),
        row("redirect to a wrapped private address", to("https://[::ffff:10.0.0.1]/".into()), Address, "is not public"),
        row("redirect to this machine by its name", to("https://localhost/".into()), Address, "is not public"),
        row(
            "redirect to a name with a private address",
            {
                let server = Contents::tides()
                    .start_with(|asked, _| is_manifest(asked).then(|| redirect("https://storage.example/blob")));
                let task = Task::Resolve(ResolveRequest {
                    source: source(server.port),
                    kind: <_>::default(),
                    trust: unsigned(),
                });
                let network = belljar_fetch_protocol::Network { dns: vec![names([10, 0, 0, 1])], roots: None };
                result(&Request { network, ..request(task) }).map(drop)
            },
            Address,
            "whose address 10.0.0.1 is not public",
        ),
        row("redirect to a file", to("file:///etc/passwd".into()), Content, "redirects to no plain URL"),
        row(
            "redirect with a login in the URL",
            to("https://user@10.0.0.1/".into()),
            Content,
            "redirects to no plain URL",
        ),
        row("redirects in a circle", to("/v2/acme/tides/manifests/1.2".into()), Address, "redirects more than 3 times"),
        row(
            "redirect of the component to a private address",
            downloading(|_, _| Some(redirect("https://192.168.0.1/blob"))),
            Address,
            "is not public",
        ),
        row(
            "token server on a private address",
            answering(false, |_, _| {
                Some(Reply::new(401, "").with("WWW-Authenticate", "Bearer realm=\"https://10.0.0.1:444/t\""))
            }),
            Address,
            "whose port is neither 443",
        ),
        row(
            "token that would add a header",
            {
                let server = Server::start(|asked| match asked.path.starts_with("/t") {
                    true => Reply::new(200, "{\"token\":\"x\\r\\nX-Evil: 1\"}"),
                    false => Reply::new(401, "").with(
                        "WWW-Authenticate",
                        format!("Bearer realm=\"http://{}/t\"", asked.header("host").unwrap()),
                    ),
                });
                resolve(&source(server.port), unsigned()).map(drop)
            },
            Content,
            "sends no token",
        ),
        row(
            "registry that says nothing",
            answering(false, |_, _| Some(Reply::new(200, "").claiming(10).then(Then::Silence))),
            Time,
            "sends nothing for 2 s",
        ),
        row(
            "registry that answers for ever",
            answering(false, |_, _| Some(Reply::new(200, "").claiming(100_000).then(Then::Drip))),
            Time,
            "needs more than 8 s",
        ),
        row(
            "download that never ends",
            downloading(|_, _| Some(Reply::new(200, "\0asm").claiming(8).then(Then::Silence))),
            Time,
            "sends nothing for 2 s",
        ),
        row(
            "head with 1000 fields",
            answering(false, |_, usual| {
                let mut reply = usual.clone();
                reply.headers.extend((0..1000).map(|at| (format!("x-{at}"), "y".to_owned())));
                Some(reply)
            }),
            Network,
            "does not speak HTTP",
        ),
        row(
            "head of 1 MiB",
            answering(false, |_, usual| Some(usual.clone().with("x", "y".repeat(1 << 20)))),
            Network,
            "does not speak HTTP",
        ),
        row(
            "error that colours the terminal",
            answering(false, |_, _| Some(Reply::new(500, "\u{1b}[31m"))),
            Network,
            "answers 500",
        ),
        row(
            "limit on requests",
            answering(false, |_, _| Some(Reply::new(429, ""))),
            Network,
            "allows no more requests",
        ),
    ];
    assert!(inside.asked().is_empty(), "{:?}", inside.asked());
    rows
}

fn components() -> Vec<Row> {
    let row = |name, failure, kind, problem| Row { name, failure, kind, problem };
    vec![
        row(
            "component with another digest",
            {
                let other = b"\0asm\x0d\0\x01\0\0\x02\x01x".to_vec();
                let server = Server::start(move |_| Reply::new(200, other.clone()));
                let directory = tempfile::tempdir().unwrap();
                let mut wanted = download_request(server.port, directory.path());
                wanted.size = Some(12);
                let result = download(wanted).map(drop);
                assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
                result
            },
            Content,
            "has the digest",
        ),
        row(
            "another file of the same size",
            downloading(|_, _| Some(Reply::new(200, "12345678"))),
            Content,
            "is no WebAssembly",
        ),
        row(
            "truncated component",
            downloading(|_, _| Some(Reply::new(200, b"\0asm\x0d".to_vec()))),
            Content,
            "has 5 bytes, expected 8",
        ),
        row(
            "component that breaks off",
            downloading(|_, _| Some(Reply::new(200, b"\0asm".to_vec()).claiming(8).then(Then::Close))),
            Network,
            "broke off",
        ),
        row(
            "component with more bytes than promised",
            downloading(|_, _| Some(Reply::new(200, b"\0asm\x0d\0\x01\0more".to_vec()))),
            Size,
            "sends 12 bytes",
        ),
        row(
            "component that claims 10 GiB in the download",
            downloading(|_, _| Some(Reply::new(200, b"\0asm\x0d\0\x01\0".to_vec()).claiming(10 << 30))),
            Size,
            "sends 10737418240 bytes",
        ),
        row(
            "component without an end",
            downloading(|_, _| Some(Reply::new(200, b"\0asm\x0d\0\x01\0".to_vec()).then(Then::Flood))),
            Size,
            "at most 8 are expected",
        ),
        row(
            "native library",
            blob(b"\x7fELF\x02\x01\x01\0\0\0\0\0"),
            Content,
            "is a native program or library for Linux",
        ),
        row(
            "component that arrives byte by byte",
            {
                let head = b"\0asm\x0d\0\x01\0".to_vec();
                let server = Server::start(move |_| Reply::new(200, head.clone()).claiming(100_000).then(Then::Drip));
                let directory = tempfile::tempdir().unwrap();
                let mut wanted = download_request(server.port, directory.path());
                wanted.size = Some(100_000);
                download(wanted).map(drop)
            },
            Time,
            "takes more than 8 s",
        ),
        row("core module", blob(b"\0asm\x01\0\0\0"), Content, "is a core module"),
        row("archive", blob(b"PK\x03\x04aaaaaaaa"), Content, "is a ZIP archive"),
        row("web page", blob(b"<!DOCTYPE html>"), Content, "is a web page"),
        row("empty component", blob(b""), Content, "is no WebAssembly"),
        row(
            "wrong bytes of a range",
            {
                let mut bytes = sample("component.wasm");
                bytes.extend([0, 3, 1, b'x', 1]);
                let mut contents = Contents::default();
                contents.blob(&bytes);
                let server = contents.start_with(|_, usual| {
                    (usual.status == 206).then(|| {
                        let mut reply = usual.clone();
                        reply.headers.retain(|(name, _)| name != "Content-Range");
                        reply.with("Content-Range", "bytes 0-5/13")
                    })
                });
                let directory = tempfile::tempdir().unwrap();
                std::fs::write(directory.path().join(format!("{}.part", &digest(&bytes)[7..])), &bytes[..9]).unwrap();
                let mut wanted = download_request(server.port, directory.path());
                (wanted.component_digest, wanted.size) = (digest(&bytes), Some(bytes.len() as u64));
                download(wanted).map(drop)
            },
            Content,
            "sends other bytes",
        ),
        row(
            "more bytes than are allowed",
            {
                let server = Contents::tides().start();
                let directory = tempfile::tempdir().unwrap();
                let mut wanted = download_request(server.port, directory.path());
                wanted.size = Some(LIMITS.component_bytes + 1);
                download(wanted).map(drop)
            },
            Size,
            "at most 1048576 are allowed",
        ),
    ]
}

fn signatures() -> Vec<Row> {
    let row = |name, failure, kind, problem| Row { name, failure, kind, problem };
    let usual = |_: &Asked, _: &Reply| None;
    vec![
        row("unsigned", signed(&[], usual), Signature, "is not signed"),
        row(
            "signatures hidden by the registry (downgrade)",
            signed(&["good"], |asked, _| {
                asked.path.contains("/referrers/").then(|| Reply::new(200, r#"{"schemaVersion":2,"manifests":[]}"#))
            }),
            Signature,
            "is not signed",
        ),
        row(
            "signatures that cannot be listed",
            signed(&["good"], |asked, _| asked.path.contains("/referrers/").then(|| Reply::new(500, ""))),
            Network,
            "answers 500",
        ),
        row(
            "list of signatures that is not JSON",
            signed(&["good"], |asked, _| asked.path.contains("/referrers/").then(|| Reply::new(200, "<"))),
            Content,
            "the list of signatures is not one",
        ),
        row(
            "signature that is not a bundle",
            {
                let mut contents = Contents::tides();
                contents.sign(&digest(&sample("manifest.json")), b"{\"mediaType\":1}");
                let server = contents.start();
                resolve(&source(server.port), trust(server.port, keyless())).map(drop)
            },
            Signature,
            "it is not a Sigstore bundle",
        ),
        row(
            "signature that belongs to another manifest",
            {
                let mut contents = Contents::tides();
                contents.sign(&digest(b"another"), &sample("good.bundle.json"));
                let moved = contents.referrers.remove(&digest(b"another")).unwrap();
                contents.referrers.insert(digest(&sample("manifest.json")), moved);
                let server = contents.start();
                resolve(&source(server.port), trust(server.port, keyless())).map(drop)
            },
            Signature,
            "it belongs to another manifest",
        ),
        row(
            "good signature for a manifest that was changed later",
            {
                let bytes = manifest(|manifest| manifest["annotations"]["x"] = "y".into());
                let mut contents = Contents::tides();
                contents.manifest("1.2", MANIFEST, &bytes);
                contents.sign(&digest(&bytes), &sample("good.bundle.json"));
                let server = contents.start();
                resolve(&source(server.port), trust(server.port, keyless())).map(drop)
            },
            Signature,
            "it is about another manifest",
        ),
        row(
            "signature by a key for a manifest that was changed later",
            {
                let bytes = manifest(|manifest| manifest["annotations"]["x"] = "y".into());
                let mut contents = Contents::tides();
                contents.manifest("1.2", MANIFEST, &bytes);
                contents.sign(&digest(&bytes), &sample("key.bundle.json"));
                let server = contents.start();
                let signer = Signer::Key { pem: text("key.pem"), root: None };
                resolve(&source(server.port), trust(server.port, signer)).map(drop)
            },
            Signature,
            "it is about another manifest",
        ),
        row(
            "bundle with another digest",
            signed(&["good"], |asked, usual| {
                (asked.path.contains("/blobs/") && usual.body.len() > 1000).then(|| Reply::new(200, "x"))
            }),
            Signature,
            "is not the one with the digest",
        ),
        row(
            "17 signatures of strangers, then a good one",
            {
                let mut contents = Contents::tides();
                let manifest = digest(&sample("manifest.json"));
                for at in 0..17 {
                    contents.sign(&manifest, format!("{{\"x\":{at}}}").as_bytes());
                }
                contents.sign(&manifest, &sample("good.bundle.json"));
                let server = contents.start();
                resolve(&source(server.port), trust(server.port, keyless())).map(drop)
            },
            Signature,
            "is refused",
        ),
        row(
            "signature in the form of cosign 2",
            {
                let mut contents = Contents::tides();
                let tag = format!("{}.sig", digest(&sample("manifest.json")).replace(':', "-"));
                contents.manifest(&tag, MANIFEST, b"{}");
                let server = contents.start();
                resolve(&source(server.port), trust(server.port, keyless())).map(drop)
            },
            Signature,
            "has the form of cosign 2",
        ),
        row(
            "bundle that claims 10 GiB",
            {
                let mut contents = Contents::signed(&["good"]);
                contents.change_bundles(|manifest| manifest["layers"][0]["size"] = (10_u64 << 30).into());
                let server = contents.start();
                resolve(&source(server.port), trust(server.port, keyless())).map(drop)
            },
            Signature,
            "has 10737418240 bytes",
        ),
        row(
            "list of signatures without an end",
            signed(&["good"], |asked, _| {
                asked.path.contains("/referrers/").then(|| Reply::new(200, vec![b' '; 64 << 10]).then(Then::Flood))
            }),
            Size,
            "has more than 1048576 bytes",
        ),
        row(
            "trusted signer of another namespace",
            {
                let server = Contents::signed(&["good"]).start();
                let mut trust = trust(server.port, keyless());
                trust.rules[0].scope = format!("127.0.0.1:{}/acm", server.port);
                resolve(&source(server.port), trust).map(drop)
            },
            Signature,
            "is refused",
        ),
        row(
            "signature by default",
            resolve(&source(Contents::tides().start().port), Trust::default()).map(drop),
            Signature,
            "is not signed",
        ),
    ]
}

/// Lists the tags with changed answers.
fn listing(change: impl Fn() -> Reply + Send + Sync + 'static) -> Result<(), Failure> {
    let server = Contents::tides().start_with(move |_, _| Some(change()));
    tags(&format!("127.0.0.1:{}/acme/tides", server.port)).map(drop)
}

fn lists() -> Vec<Row> {
    let row = |name, failure, kind, problem| Row { name, failure, kind, problem };
    let many = || serde_json::to_vec(&json!({ "tags": vec!["1.0.0"; 200_000] })).unwrap();
    vec![
        row("tags that are not JSON", listing(|| Reply::new(200, "<")), Content, "the list of tags is not one"),
        row(
            "tags that are numbers",
            listing(|| Reply::new(200, r#"{"tags":[1]}"#)),
            Content,
            "the list of tags is not one",
        ),
        row("200000 tags", listing(move || Reply::new(200, many())), Size, "has more than 1048576 bytes"),
        row(
            "tags without an end",
            listing(|| Reply::new(200, vec![b' '; 64 << 10]).then(Then::Flood)),
            Size,
            "has more than 1048576 bytes",
        ),
        row(
            "tags at a private address",
            listing(|| redirect("https://10.0.0.1/")),
            Address,
            "whose address 10.0.0.1 is not public",
        ),
        row("no list of tags", listing(|| Reply::new(500, "")), Network, "answers 500"),
    ]
}

/// Checks all rows, and names those that are wrong.
fn check(rows: Vec<Row>, least: usize) {
    assert!(rows.len() >= least, "{}", rows.len());
    let wrong = rows.into_iter().filter_map(|Row { name, failure, kind, problem }| {
        let Err(failure) = failure else { return Some(format!("{name}: ACCEPTED")) };
        (!is_clear(&failure, kind, problem)).then(|| format!("{name}: {failure:?}"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn hostile_manifests_are_refused() {
    check(manifests(), 20);
}

#[test]
fn hostile_servers_are_refused() {
    check(servers(), 20);
}

#[test]
fn hostile_components_are_refused() {
    check(components(), 15);
}

#[test]
fn hostile_signatures_are_refused() {
    check(signatures(), 15);
}

#[test]
fn hostile_lists_are_refused() {
    check(lists(), 6);
}
