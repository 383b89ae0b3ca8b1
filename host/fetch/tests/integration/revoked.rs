//! Lists of revoked versions: what is read, and what is refused. A list that is there and cannot be read is a failure.

use belljar_fetch_protocol::{Event, Failure, FailureKind, RevokedList, RevokedRequest, RevokedVersions, Task};
use serde_json::{Value, json};

use crate::support::program::{request, resolve, result, source};
use crate::support::registry::{Contents, INDEX, MANIFEST};
use crate::support::samples::{digest, unsigned};
use crate::support::server::{Asked, Reply, Server, Then};

use FailureKind::{Address, Content, Network, Size, Time};

/// A list with one entry, whose texts would change a terminal.
const LIST: &str =
    r#"{"revoked":[{"version":">=1.0.0, <1.2.0","reason":"leaks\n\u001b[31m\u202ekeys","instead":"1.2.0"}]}"#;

fn ask(source: &str) -> Result<RevokedList, Failure> {
    match result(&request(Task::Revoked(RevokedRequest { source: source.to_owned() })))? {
        Event::Revoked(list) => Ok(list),
        other => panic!("{other:?}"),
    }
}

/// Asks for this list.
fn list(text: &str) -> Result<RevokedList, Failure> {
    let mut contents = Contents::tides();
    contents.revoke(text.as_bytes());
    ask(&source(contents.start().port))
}

/// Asks for a list with another manifest.
fn changed(change: impl FnOnce(&mut Value)) -> Result<RevokedList, Failure> {
    let mut contents = Contents::tides();
    let mut manifest = contents.revoking(LIST.as_bytes());
    change(&mut manifest);
    contents.manifest("revoked", MANIFEST, &serde_json::to_vec(&manifest).unwrap());
    ask(&source(contents.start().port))
}

/// Asks for a list while the registry misbehaves.
fn answering(change: impl Fn(&Asked, &Reply) -> Option<Reply> + Send + Sync + 'static) -> Result<RevokedList, Failure> {
    let mut contents = Contents::tides();
    contents.revoke(LIST.as_bytes());
    ask(&source(contents.start_with(change).port))
}

#[test]
fn a_list_is_read_alone_and_with_what_is_resolved() {
    let mut contents = Contents::tides();
    contents.revoke(LIST.as_bytes());
    let server = contents.start();
    let list = ask(&source(server.port)).unwrap();
    assert!(list.is_there);
    assert_eq!(list.entries[0].what, RevokedVersions::Version(">=1.0.0, <1.2.0".to_owned()));
    assert_eq!(list.entries[0].reason.as_deref(), Some("leaks [31mkeys"));
    assert_eq!(list.entries[0].instead.as_deref(), Some("1.2.0"));
    assert_eq!(resolve(&source(server.port), unsigned()).unwrap().revoked, list);
}

#[test]
fn a_repository_without_a_list_says_nothing() {
    let server = Contents::tides().start();
    assert_eq!(ask(&source(server.port)).unwrap(), RevokedList::default());
    assert!(!resolve(&source(server.port), unsigned()).unwrap().revoked.is_there);
}

#[test]
fn a_file_has_its_list_beside_it() {
    let bytes = b"\0asm\x0d\0\x01\0";
    let server = Server::start(|asked| match asked.path.as_str() {
        "/dl/x.wasm?key=1" => Reply::new(200, *bytes),
        "/dl/x.wasm.revoked.json?key=1" => Reply::new(200, LIST),
        "/dl/broken.wasm.revoked.json" => Reply::new(200, "<html>"),
        "/dl/failing.wasm.revoked.json" => Reply::new(500, ""),
        _ => Reply::new(404, ""),
    });
    let url = |path: &str| format!("http://127.0.0.1:{}/{path}#sha256={}", server.port, &digest(bytes)[7..]);
    assert_eq!(ask(&url("dl/x.wasm?key=1")).unwrap().entries.len(), 1);
    assert!(resolve(&url("dl/x.wasm?key=1"), unsigned()).unwrap().revoked.is_there);
    assert!(!ask(&url("dl/other.wasm")).unwrap().is_there);
    assert_eq!(ask(&url("dl/broken.wasm")).unwrap_err().kind, Content);
    let failing = ask(&url("dl/failing.wasm")).unwrap_err();
    assert!(failing.kind == Network && failing.problem.contains("answers 500"), "{failing:?}");
}

#[test]
fn a_hostile_list_is_refused() {
    let is_list = |asked: &Asked| asked.path.ends_with("/manifests/revoked");
    let many = format!(r#"{{"revoked":[{}]}}"#, vec![r#"{"version":"1"}"#; 257].join(","));
    let long = format!(r#"{{"revoked":[{{"version":"{}"}}]}}"#, "1".repeat(101));
    let rows: Vec<(&str, Result<RevokedList, Failure>, FailureKind, &str)> = vec![
        ("no JSON", list("<html>"), Content, "cannot be read"),
        ("another type", list("[1]"), Content, "cannot be read"),
        (
            "10000 arrays in each other",
            list(&format!(r#"{{"revoked":{}"#, "[".repeat(10_000))),
            Content,
            "cannot be read",
        ),
        ("a list of numbers", list(r#"{"revoked":[1]}"#), Content, "cannot be read"),
        ("an entry about nothing", list(r#"{"revoked":[{"reason":"x"}]}"#), Content, "entry 1"),
        ("an entry about two things", list(r#"{"revoked":[{"version":"1","component":"x"}]}"#), Content, "entry 1"),
        ("a digest of a weak kind", list(r#"{"revoked":[{"manifest":"md5:00"}]}"#), Content, "entry 1"),
        ("a version with a control character", list(r#"{"revoked":[{"version":"1\u001b"}]}"#), Content, "entry 1"),
        ("a version of 101 letters", list(&long), Content, "entry 1"),
        ("257 entries", list(&many), Content, "257 entries"),
        ("2 MiB", list(&format!("{LIST}{}", " ".repeat(2 << 20))), Size, "has 2097"),
        (
            "10 GiB by its word",
            changed(|manifest| manifest["layers"][0]["size"] = (10_u64 << 30).into()),
            Size,
            "has 10737418240 bytes",
        ),
        ("no layer", changed(|manifest| manifest["layers"] = json!([])), Content, "has 0 layers"),
        (
            "a component under the tag",
            changed(|manifest| manifest["artifactType"] = "application/wasm".into()),
            Content,
            "its type is",
        ),
        (
            "a layer of another type",
            changed(|manifest| manifest["layers"][0]["mediaType"] = "text/html".into()),
            Content,
            "its type is",
        ),
        (
            "an index that names itself",
            {
                let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [{ "digest": digest(b"x"), "size": 1 }] });
                let mut contents = Contents::tides();
                contents.manifest("revoked", INDEX, &serde_json::to_vec(&index).unwrap());
                ask(&source(contents.start().port))
            },
            Content,
            "is an index",
        ),
        (
            "redirects in a circle",
            answering(move |asked, _| {
                is_list(asked).then(|| Reply::new(307, "").with("Location", "/v2/acme/tides/manifests/revoked"))
            }),
            Address,
            "redirects more than 3 times",
        ),
        (
            "a redirect to a private address",
            answering(move |asked, _| {
                is_list(asked).then(|| Reply::new(307, "").with("Location", "https://10.0.0.1/list"))
            }),
            Address,
            "is not public",
        ),
        (
            "a registry that says nothing",
            answering(move |asked, _| is_list(asked).then(|| Reply::new(200, "").claiming(9).then(Then::Silence))),
            Time,
            "sends nothing",
        ),
        (
            "a registry that fails",
            answering(move |asked, _| is_list(asked).then(|| Reply::new(503, ""))),
            Network,
            "503",
        ),
        (
            "another list than its digest says",
            answering(|asked, usual| {
                asked.path.contains("/blobs/").then(|| Reply::new(200, vec![b' '; usual.body.len()]))
            }),
            Content,
            "is not the one with the digest",
        ),
    ];
    for (name, failure, kind, problem) in rows {
        let failure = failure.expect_err(name);
        assert!(failure.kind == kind && failure.problem.contains(problem), "{name}: {failure:?}");
        assert!(!failure.cure.is_empty() && !failure.problem.contains('\n'), "{name}: {failure:?}");
    }
}

/// Whoever damages the list would otherwise bring the versions back.
#[test]
fn nothing_is_resolved_beside_a_list_that_cannot_be_read() {
    let mut contents = Contents::tides();
    contents.revoke(b"{}");
    let failure = resolve(&source(contents.start().port), unsigned()).unwrap_err();
    assert!(failure.kind == Content && failure.problem.contains("revoked versions cannot be read"), "{failure:?}");
}
