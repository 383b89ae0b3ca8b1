//! Uploads: what reaches the registry, in which order, and what a hostile registry can do.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_fetch_protocol::{Event, Failure, FailureKind, Request, Task, UploadRequest, Uploaded};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::program::{is_clear, request, run, run_with};
use crate::support::registry::{INDEX, MANIFEST};
use crate::support::samples::{digest, sample};
use crate::support::server::{Asked, Reply, Server, Then};

use FailureKind::{Address, Content, Denied, Exists, Network, NotFound, Size, Time};

/// A part of the path of an upload.
const PLACE: &str = "/v2/acme/tides/blobs/uploads/1?state=x";

/// What a registry holds: manifests by tags and digests, and the digests and sizes of blobs.
#[derive(Default)]
struct Stored {
    manifests: BTreeMap<String, String>,
    blobs: BTreeMap<String, u64>,
}

/// A registry that takes uploads. `lists`: it keeps lists of referrers itself.
fn answer(stored: &Mutex<Stored>, asked: &Asked, lists: bool) -> Reply {
    let mut stored = stored.lock().unwrap();
    let path = asked.path.strip_prefix("/v2/acme/tides/").unwrap_or_default();
    let missing = || Reply::new(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#);
    match (asked.method.as_str(), path.split_once('/').unwrap_or((path, ""))) {
        ("HEAD", ("blobs", name)) => match stored.blobs.get(name) {
            Some(size) => Reply::new(200, "").claiming(*size),
            None => missing(),
        },
        ("POST", ("blobs", "uploads/")) => Reply::new(202, "").with("Location", PLACE),
        ("PUT", ("blobs", place)) => {
            let (_, hex) = place.split_once("&digest=sha256%3A").unwrap();
            let size = asked.header("content-length").unwrap().parse().unwrap();
            stored.blobs.insert(format!("sha256:{hex}"), size);
            Reply::new(201, "").with("Docker-Content-Digest", format!("sha256:{hex}"))
        }
        ("GET", ("manifests", name)) => match stored.manifests.get(name) {
            Some(text) => Reply::new(200, text.as_str()).with("Content-Type", MANIFEST),
            None => missing(),
        },
        ("PUT", ("manifests", name)) => {
            let parsed: Value = serde_json::from_str(&asked.body).unwrap();
            for name in [name, &digest(asked.body.as_bytes())] {
                stored.manifests.insert(name.to_owned(), asked.body.clone());
            }
            let reply = Reply::new(201, "").with("Docker-Content-Digest", digest(asked.body.as_bytes()));
            match parsed["subject"]["digest"].as_str().filter(|_| lists) {
                Some(subject) => reply.with("OCI-Subject", subject),
                None => reply,
            }
        }
        _ => missing(),
    }
}

/// Starts a registry whose answers `change` may replace.
fn registry(
    lists: bool,
    change: impl Fn(&Asked, &Reply) -> Option<Reply> + Send + Sync + 'static,
) -> (Server, Arc<Mutex<Stored>>) {
    let stored = Arc::new(Mutex::new(Stored::default()));
    let own = Arc::clone(&stored);
    let server = Server::start(move |asked| {
        // A change that breaks off must not look like an upload that was stored.
        let usual = answer(&own, asked, lists);
        change(asked, &usual).unwrap_or(usual)
    });
    (server, stored)
}

/// A directory with these blobs.
fn blobs(all: &[&[u8]]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for bytes in all {
        std::fs::write(directory.path().join(&digest(bytes)[7..]), bytes).unwrap();
    }
    directory
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() })
}

/// The manifest of the samples, and one that refers to it.
fn manifests() -> (String, String) {
    let main = String::from_utf8(sample("manifest.json")).unwrap();
    let referrer = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "text/markdown",
        "config": descriptor("application/vnd.oci.empty.v1+json", b"{}"),
        "layers": [descriptor("text/markdown", b"# Tides")],
        "annotations": { "title": "README.md" }, "subject": descriptor(MANIFEST, main.as_bytes()),
    });
    (main, referrer.to_string())
}

/// The request for the samples, and the directory of their blobs.
fn wanted(port: u16, force: bool) -> (UploadRequest, TempDir) {
    let (manifest, referrer) = manifests();
    let directory = blobs(&[&sample("component.wasm"), &sample("config.json"), b"{}", b"# Tides"]);
    let target = format!("127.0.0.1:{port}/acme/tides:1.2");
    let request =
        UploadRequest { target, manifest, referrers: vec![referrer], directory: directory.path().to_owned(), force };
    (request, directory)
}

fn result(events: Vec<Event>) -> Result<Uploaded, Failure> {
    match events.into_iter().last().unwrap() {
        Event::Uploaded(uploaded) => Ok(uploaded),
        Event::Failed(failure) => Err(failure),
        other => panic!("{other:?}"),
    }
}

/// Uploads the samples.
fn upload(port: u16, force: bool) -> Result<Uploaded, Failure> {
    let (wanted, _directory) = wanted(port, force);
    result(run(&request(Task::Upload(wanted))))
}

#[test]
fn the_tag_comes_last_and_a_second_upload_sends_nothing() {
    let (server, stored) = registry(true, |_, _| None);
    let first = upload(server.port, false).unwrap();
    let bytes = sample("component.wasm").len() + sample("config.json").len() + "{}".len() + "# Tides".len();
    assert_eq!((first.sent, first.before), (bytes as u64, None));
    let (main, referrer) = manifests();
    assert_eq!(first.manifest_digest, digest(main.as_bytes()));
    assert_eq!(stored.lock().unwrap().manifests["1.2"], main);
    let puts = |asked: Vec<Asked>| {
        let puts = asked.into_iter().filter(|asked| asked.method == "PUT" && asked.path.contains("/manifests/"));
        puts.map(|asked| asked.path.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let order = [digest(main.as_bytes()), digest(referrer.as_bytes()), "1.2".to_owned()];
    assert_eq!(puts(server.asked()), order);
    assert!(server.asked().iter().any(|asked| asked.method == "PUT" && asked.body.contains("# Tides")));
    let second = upload(server.port, false).unwrap();
    assert_eq!((second.sent, second.before.as_deref()), (0, Some(first.manifest_digest.as_str())));
    assert_eq!(server.asked().iter().filter(|asked| asked.method == "POST").count(), 4);
}

#[test]
fn a_registry_without_lists_of_referrers_gets_one_that_keeps_its_entries() {
    let (server, stored) = registry(false, |_, _| None);
    let (main, referrer) = manifests();
    let tag = digest(main.as_bytes()).replace(':', "-");
    let other =
        json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [{ "digest": "sha256:other", "size": 1 }] });
    stored.lock().unwrap().manifests.insert(tag.clone(), other.to_string());
    for _ in 0..2 {
        upload(server.port, false).unwrap();
        let list: Value = serde_json::from_str(&stored.lock().unwrap().manifests[&tag]).unwrap();
        let entries = list["manifests"].as_array().unwrap();
        assert_eq!((entries.len(), &entries[0]["digest"]), (2, &"sha256:other".into()));
        assert_eq!(
            (&entries[1]["digest"], &entries[1]["artifactType"]),
            (&digest(referrer.as_bytes()).into(), &"text/markdown".into())
        );
        assert_eq!(entries[1]["annotations"]["title"], "README.md");
    }
}

#[test]
fn other_content_is_replaced_by_force_alone() {
    let (server, stored) = registry(true, |_, _| None);
    stored.lock().unwrap().manifests.insert("1.2".to_owned(), "{}".to_owned());
    let failure = upload(server.port, false).unwrap_err();
    assert!(failure.kind == Exists && failure.cure.contains("--force"), "{failure:?}");
    assert!(server.asked().iter().all(|asked| asked.method == "GET"), "nothing is sent");
    let uploaded = upload(server.port, true).unwrap();
    assert_eq!(uploaded.before, Some(digest(b"{}")));
    assert_eq!(stored.lock().unwrap().manifests["1.2"], manifests().0);
}

/// Somebody takes the tag between the first look and the end.
#[test]
fn a_tag_that_is_taken_meanwhile_is_not_overwritten() {
    let gets = Mutex::new(0);
    let (server, stored) = registry(true, move |asked, _| {
        let is_tag = asked.method == "GET" && asked.path.ends_with("/manifests/1.2");
        let mut gets = gets.lock().unwrap();
        *gets += u32::from(is_tag);
        (is_tag && *gets > 1).then(|| Reply::new(200, "{}"))
    });
    assert_eq!(upload(server.port, false).unwrap_err().kind, Exists);
    assert!(!stored.lock().unwrap().manifests.contains_key("1.2"));
}

#[test]
fn a_broken_upload_goes_on_with_what_is_there() {
    let broken = Mutex::new(true);
    let (server, _) = registry(true, move |asked, _| {
        let is_last = asked.method == "PUT" && asked.path.contains("/manifests/1.2");
        let mut broken = broken.lock().unwrap();
        (is_last && std::mem::take(&mut *broken)).then(|| Reply::new(503, ""))
    });
    let failure = upload(server.port, true).unwrap_err();
    assert!(failure.kind == Network && failure.cure.contains("run the same command again"), "{failure:?}");
    assert_eq!(upload(server.port, true).unwrap().sent, 0);
}

#[test]
fn a_login_gets_a_token_for_writing_this_repository_alone() {
    let stored = Mutex::new(Stored::default());
    let server = Server::start(move |asked| {
        let port = asked.header("host").unwrap().rsplit(':').next().unwrap().to_owned();
        if asked.path.starts_with("/token") {
            return Reply::new(200, r#"{"token":"t0ken"}"#);
        }
        if asked.header("authorization") == Some("Bearer t0ken") {
            return answer(&stored, asked, true);
        }
        let challenge = format!(r#"Bearer realm="http://127.0.0.1:{port}/token",scope="repository:acme/other:delete""#);
        Reply::new(401, "{}").with("WWW-Authenticate", challenge)
    });
    let home = tempfile::tempdir().unwrap();
    let login = STANDARD.encode("acme:s3cret");
    let config = format!(r#"{{"auths":{{"127.0.0.1:{}":{{"auth":"{login}"}}}}}}"#, server.port);
    std::fs::write(home.path().join("config.json"), config).unwrap();
    let (wanted, _directory) = wanted(server.port, false);
    let request = Request { credentials: true, ..request(Task::Upload(wanted)) };
    let mut command = Command::new(env!("CARGO_BIN_EXE_belljar-fetch"));
    command.env("DOCKER_CONFIG", home.path()).env("HOME", home.path()).env_remove("REGISTRY_AUTH_FILE");
    result(run_with(&request, &mut command)).unwrap();
    let asked = server.asked();
    let tokens: Vec<&Asked> = asked.iter().filter(|asked| asked.path.starts_with("/token")).collect();
    assert_eq!(tokens.len(), 1);
    assert!(tokens[0].path.contains("scope=repository%3Aacme%2Ftides%3Apull%2Cpush"), "{}", tokens[0].path);
}

/// Uploads to a registry with changed answers. The tag is not there afterwards.
fn hostile(change: impl Fn(&Asked, &Reply) -> Option<Reply> + Send + Sync + 'static) -> Failure {
    let (server, _) = registry(true, change);
    upload(server.port, false).unwrap_err()
}

fn is_put(asked: &Asked, of: &str) -> bool {
    asked.method == "PUT" && asked.path.contains(of)
}

fn is_post(asked: &Asked) -> bool {
    asked.method == "POST"
}

#[test]
fn hostile_registries_get_nothing_more_and_are_named() {
    let thief = Server::start(|_| Reply::new(201, ""));
    let elsewhere = format!("http://127.0.0.1:{}/take", thief.port);
    let place = |to: &str| {
        let to = to.to_owned();
        hostile(move |asked, _| is_post(asked).then(|| Reply::new(202, "").with("Location", to.clone())))
    };
    let redirect = |of: &'static str| {
        let to = elsewhere.clone();
        hostile(move |asked, _| is_put(asked, of).then(|| Reply::new(307, "").with("Location", to.clone())))
    };
    let status = |of: &'static str, status: u16| {
        hostile(move |asked, _| {
            is_put(asked, of).then(|| Reply::new(status, r#"{"errors":[{"code":"BLOB_UPLOAD_INVALID"}]}"#))
        })
    };
    let other = || Reply::new(201, "").with("Docker-Content-Digest", digest(b"other"));
    let rows: Vec<(&str, Failure, FailureKind, &str)> = vec![
        ("upload at another host", place(&elsewhere), Address, "another server"),
        ("upload at another scheme", place("https://127.0.0.1/v2/x"), Address, "another server"),
        ("upload at no URL", place("file:///etc/passwd"), Content, "no plain URL"),
        ("upload at a host without a scheme", place("//127.0.0.1:1/x"), Content, "no plain URL"),
        ("upload nowhere", hostile(|asked, _| is_post(asked).then(|| Reply::new(202, ""))), Content, "no plain URL"),
        ("upload at an endless URL", place(&format!("/v2/{}", "x".repeat(9000))), Content, "no plain URL"),
        ("redirected blob", redirect("/blobs/"), Address, "is not followed"),
        ("redirected manifest", redirect("/manifests/"), Address, "is not followed"),
        (
            "redirected beginning",
            {
                let to = elsewhere.clone();
                hostile(move |asked, _| is_post(asked).then(|| Reply::new(307, "").with("Location", to.clone())))
            },
            Address,
            "is not followed",
        ),
        (
            "blob stored with another digest",
            hostile(move |asked, _| is_put(asked, "/blobs/").then(other)),
            Content,
            "says that it stored",
        ),
        (
            "manifest stored with another digest",
            hostile(move |asked, _| is_put(asked, "/manifests/").then(other)),
            Content,
            "says that it stored",
        ),
        (
            "tag that holds another manifest after all",
            {
                let gets = Mutex::new(0);
                hostile(move |asked, _| {
                    let is_tag = asked.method == "GET" && asked.path.ends_with("/manifests/1.2");
                    let mut gets = gets.lock().unwrap();
                    *gets += u32::from(is_tag);
                    (is_tag && *gets > 2).then(|| Reply::new(200, "{}"))
                })
            },
            Content,
            "holds another one",
        ),
        ("blob refused", status("/blobs/", 400), Network, "answers 400 (BLOB_UPLOAD_INVALID)"),
        ("blob too large", status("/blobs/", 413), Size, "larger than the registry allows"),
        ("upload forgotten", status("/blobs/", 404), NotFound, "forgot the upload"),
        ("no right to write", status("/manifests/", 403), Denied, "does not let you write"),
        (
            "login wanted again and again",
            hostile(|_, _| Some(Reply::new(401, "{}").with("WWW-Authenticate", "Basic"))),
            Denied,
            "does not show \"acme/tides\" to you",
        ),
        (
            "tokens that are never enough",
            hostile(|asked, _| {
                let port = asked.header("host").unwrap().rsplit(':').next().unwrap().to_owned();
                Some(match asked.path.starts_with("/token") {
                    true => Reply::new(200, r#"{"token":"t"}"#),
                    false => Reply::new(401, "{}")
                        .with("WWW-Authenticate", format!(r#"Bearer realm="http://127.0.0.1:{port}/token""#)),
                })
            }),
            Denied,
            "does not let you write",
        ),
        (
            "silence instead of a place",
            hostile(|asked, _| is_post(asked).then(|| Reply::new(202, "").claiming(9).then(Then::Silence))),
            Content,
            "no plain URL",
        ),
        (
            "closed instead of an answer",
            hostile(|asked, _| is_put(asked, "/blobs/").then(|| Reply::new(500, "x").then(Then::Close))),
            Network,
            "answers 500",
        ),
        (
            "answer that never ends",
            hostile(|asked, _| is_put(asked, "/manifests/").then(|| Reply::new(201, "").then(Then::Drip))),
            Time,
            "takes more than",
        ),
        (
            "list of referrers that is none",
            {
                let (server, stored) = registry(false, |_, _| None);
                let tag = digest(manifests().0.as_bytes()).replace(':', "-");
                stored.lock().unwrap().manifests.insert(tag, "[]".to_owned());
                upload(server.port, false).unwrap_err()
            },
            Content,
            "holds no list of referrers",
        ),
        (
            "list of referrers that forgets",
            {
                let (server, _) = registry(false, |asked, _| {
                    (asked.method == "GET" && asked.path.contains("/manifests/sha256-")).then(|| Reply::new(404, ""))
                });
                upload(server.port, false).unwrap_err()
            },
            Content,
            "does not keep what is added",
        ),
        (
            "tag of 2 MiB",
            hostile(|asked, _| {
                (asked.method == "GET" && asked.path.contains("/manifests/"))
                    .then(|| Reply::new(200, vec![b' '; 2 << 20]))
            }),
            Size,
            "more than 1048576 bytes",
        ),
    ];
    let wrong = rows.into_iter().filter_map(|(name, failure, kind, problem)| {
        (!is_clear(&failure, kind, problem)).then(|| format!("{name}: {failure:?}"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(thief.asked().is_empty(), "nothing goes to another server");
}

#[test]
fn files_that_are_not_what_the_manifest_names_are_not_sent() {
    let (server, _) = registry(true, |_, _| None);
    let spoiled = |spoil: &dyn Fn(&Path)| {
        let (wanted, directory) = wanted(server.port, false);
        spoil(&directory.path().join(&digest(&sample("component.wasm"))[7..]));
        result(run(&request(Task::Upload(wanted)))).unwrap_err()
    };
    let size = sample("component.wasm").len();
    for (name, failure, problem) in [
        ("absent", spoiled(&|file| std::fs::remove_file(file).unwrap()), "cannot read"),
        ("shorter", spoiled(&|file| std::fs::write(file, "x").unwrap()), "it is no file of"),
        ("changed", spoiled(&|file| std::fs::write(file, vec![0; size]).unwrap()), "was changed"),
        (
            "link",
            spoiled(&|file| {
                std::fs::remove_file(file).unwrap();
                std::os::unix::fs::symlink("/etc/passwd", file).unwrap();
            }),
            "cannot read",
        ),
    ] {
        assert!(failure.kind == FailureKind::Directory && failure.problem.contains(problem), "{name}: {failure:?}");
    }
    let changed = |change: &dyn Fn(&mut UploadRequest)| {
        let (mut wanted, _directory) = wanted(server.port, false);
        change(&mut wanted);
        result(run(&request(Task::Upload(wanted)))).unwrap_err().problem
    };
    let subject = digest(manifests().0.as_bytes());
    for (problem, said) in [
        (changed(&|wanted| wanted.target = "127.0.0.1:1/acme/tides".to_owned()), "an upload needs a tag"),
        (changed(&|wanted| wanted.manifest = "{}".to_owned()), "the manifest is not one"),
        (changed(&|wanted| wanted.referrers = vec![wanted.manifest.clone()]), "does not refer to the one with the tag"),
        (
            changed(&|wanted| wanted.referrers[0] = wanted.referrers[0].replace(&subject, &digest(b"x"))),
            "does not refer",
        ),
        (changed(&|wanted| wanted.referrers = vec![wanted.referrers[0].clone(); 16]), "more than 16 manifests"),
    ] {
        assert!(problem.contains(said), "{said}: {problem}");
    }
    let sent = server
        .asked()
        .into_iter()
        .filter(|asked| asked.body.contains("root:") || asked.path.contains("/manifests/sha256"));
    assert_eq!(sent.count(), 0);
}
