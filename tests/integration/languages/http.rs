//! The SDKs send requests alike. `cargo xtask languages` has built the same small provider in each language, from
//! `tests/sdk/http`. It reads from the server that the setting `UPSTREAM` names; the first segment of a reference is the order:
//! `text` gives status and body, `count` the status and the length of the body, `post` posts `one two three`, `send` posts it
//! in three pieces, `soon` waits for at most 100 ms. Each request has the header `x-own`.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use belljar_tests::{Client, Era, RpcError, Site, Stdio, places};
use belljar_upstream::{Upstream, answer, request, until_closed};
use serde_json::json;

use super::templates::{compile, languages};

/// The secret that the host adds to each request.
const SECRET: &str = "a-secret-of-the-operator";

/// The length of the large body. No sandbox of these tests has room for it.
const LARGE: usize = 40 << 20;

/// The memory of a sandbox. Python needs a third of it for itself.
const LIMITS: &str = "limits = { memory = \"36MiB\", download = \"64MiB\", time = \"120s\" }";

/// The languages, and the component of each that sends requests.
fn components() -> Vec<(String, PathBuf)> {
    let all = languages().into_iter();
    all.filter_map(|(lang, _)| Some((lang.clone(), places::language(&format!("{lang}-http"))?))).collect()
}

/// A server that describes each request in its answer, with some special paths. `second` is another origin.
fn upstream(second: &str, third: &str) -> Upstream {
    let moved = |to: &str| answer("302 Found", &format!("location: {to}\r\n"), "moved");
    let (to_second, to_third) = (moved(&format!("{second}/moved")), moved(&format!("{third}/moved")));
    Upstream::plain(move |asked| match asked.path() {
        "/gone" => answer("404 Not Found", "", "there is nothing"),
        "/hop" => moved("echo?x=1"),
        "/a/b/up" => moved("../c/./echo%20x?y=/../z#end"),
        "/a/b/query" => moved("?y=2"),
        "/away" => to_second.clone(),
        "/out" => to_third.clone(),
        "/loop" => moved("/loop"),
        "/large" => answer("200 OK", "", vec![b'x'; LARGE]),
        path => {
            let authorization = asked.header("authorization").unwrap_or("none");
            let own = asked.header("x-own").unwrap_or("none");
            answer("200 OK", "", format!("saw {path}, authorization {authorization}, own {own}"))
        }
    })
}

fn origin(upstream: &Upstream) -> String {
    format!("http://127.0.0.1:{}", upstream.port())
}

/// The servers of a test, and a site with each language in several mounts.
struct Scene {
    languages: Vec<String>,
    first: Upstream,
    second: Upstream,
    /// No mount has a grant for it.
    third: Upstream,
    site: Site,
}

impl Scene {
    /// `mounts` writes the mounts of a language: its name, and the origins of the servers.
    fn new(mounts: impl Fn(&str, [&str; 3]) -> String) -> Scene {
        let (second, third) = (upstream("", ""), upstream("", ""));
        let first = upstream(&origin(&second), &origin(&third));
        let mut site = Site::new();
        site.share(&places::target().join("tmp/languages"));
        let token = site.write("token", SECRET);
        fs::set_permissions(token, PermissionsExt::from_mode(0o600)).unwrap();
        let mut config = "[secrets]\napi = { file = \"token\" }\n".to_owned();
        let components = components();
        for (lang, component) in &components {
            site.drop_in(&format!("{lang}.wasm"), fs::read(component).unwrap());
            config += &mounts(lang, [&origin(&first), &origin(&second), &origin(&third)]);
        }
        site.config(&config);
        {
            // The first scene compiles the components, and the others find the compiled code.
            static FIRST: Mutex<()> = Mutex::new(());
            let _first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
            compile(&site);
        }
        let languages = components.into_iter().map(|(lang, _)| lang).collect();
        Scene { languages, first, second, third, site }
    }
}

/// A mount that reads from `upstream`, with the grants `http`.
fn mount(lang: &str, suffix: &str, upstream: &str, http: &str) -> String {
    format!(
        "[mounts.{lang}{suffix}]\ncomponent = \"{lang}.wasm\"\nenv = {{ UPSTREAM = \"{upstream}\" }}\nhttp = [{http}]\n{LIMITS}\n"
    )
}

/// A grant of an origin, with the secret.
fn grant(origin: &str) -> String {
    let headers = "headers = { authorization = \"Bearer ${secret:api}\" }";
    format!("{{ origin = \"{origin}\", methods = [\"GET\", \"POST\"], {headers} }}")
}

/// The error of a read that must fail, with the kind.
fn refused(client: &mut Client<Stdio>, uri: &str, kind: &str) -> RpcError {
    let error = client.read(uri).expect_err(uri);
    assert_eq!(error.data["kind"], kind, "{uri}: {error}");
    error
}

/// The last request that a server received.
fn last(upstream: &Upstream) -> belljar_upstream::ReceivedRequest {
    upstream.requests().pop().expect("a request")
}

#[test]
fn each_language_sends_granted_requests() {
    let scene = Scene::new(|lang, [first, second, _]| {
        mount(lang, "", first, &format!("{}, {{ origin = \"{second}\" }}", grant(first)))
    });
    let Scene { languages, first, second, third, site } = &scene;
    let masked = "*".repeat(SECRET.len());
    let mut client = site.stdio(Era::Stateless);
    for lang in languages {
        let mut text = |order: &str| client.text(&format!("belljar://{lang}/{order}"));
        let echo = |path: &str| format!("200 saw {path}, authorization Bearer {masked}, own mine");
        // The host adds the secret, and masks it in the answer. The provider never sees it.
        assert_eq!(text("text/echo"), echo("/echo"), "{lang}");
        assert_eq!(last(first).header("authorization"), Some(format!("Bearer {SECRET}").as_str()), "{lang}");
        // A status is an answer.
        assert_eq!(text("text/gone"), "404 there is nothing", "{lang}");
        for (order, end) in
            [("text/hop", "/echo?x=1"), ("text/a/b/up", "/a/c/echo%20x?y=/../z"), ("text/a/b/query", "/a/b/query?y=2")]
        {
            assert_eq!(text(order), echo(end), "{lang}");
        }
        // A redirect to another origin takes neither the secret nor the header of the provider with it.
        assert_eq!(text("text/away"), "200 saw /moved, authorization none, own none", "{lang}");
        assert_eq!(last(second).header("x-own"), None, "{lang}");
        assert_eq!(text("send/echo"), echo("/echo"), "{lang}");
        let sent = last(first);
        assert_eq!(sent.line, "POST /echo HTTP/1.1", "{lang}");
        let body = String::from_utf8_lossy(&sent.start).into_owned();
        assert!(["one ", "two ", "three"].iter().all(|piece| body.contains(piece)), "{lang}: {body}");
        assert_eq!(text("post/echo"), echo("/echo"), "{lang}");
        let sent = last(first);
        assert_eq!(
            (sent.header("content-length"), sent.start.as_slice()),
            (Some("13"), &b"one two three"[..]),
            "{lang}"
        );
        assert_eq!(text("count/large"), format!("200 {LARGE}"), "{lang}");
        let error = refused(&mut client, &format!("belljar://{lang}/text/loop"), "failed");
        assert!(error.message.contains("redirect"), "{lang}: {error}");
        let error = refused(&mut client, &format!("belljar://{lang}/text/out"), "denied");
        let cure = format!("belljar grant {lang} --http {}", origin(third));
        assert!(error.data["hint"].as_str().is_some_and(|hint| hint.contains(&cure)), "{lang}: {error}");
    }
    assert_eq!(third.connections(), 0);
    client.close();
}

#[test]
fn each_language_names_the_missing_grant() {
    let scene = Scene::new(|lang, [first, second, third]| {
        let bare = mount(lang, "-bare", first, "");
        bare + &mount(lang, "-other", third, &format!("{{ origin = \"{second}\" }}"))
    });
    let mut client = scene.site.stdio(Era::Stateless);
    for lang in &scene.languages {
        for (suffix, server) in [("bare", &scene.first), ("other", &scene.third)] {
            let origin = origin(server);
            let error = refused(&mut client, &format!("belljar://{lang}-{suffix}/text/echo"), "denied");
            assert!(
                error.message.contains(&format!("no request to \\\"{origin}/echo\\\" was granted")),
                "{lang}: {error}"
            );
            let cure = format!("belljar grant {lang}-{suffix} --http {origin}");
            assert!(error.data["hint"].as_str().is_some_and(|hint| hint.contains(&cure)), "{lang}: {error}");
            assert_eq!(server.connections(), 0, "{lang}");
        }
    }
    client.close();
}

#[test]
fn each_language_reports_servers_that_do_not_answer() {
    let silent = Upstream::raw(|stream| {
        if request(stream).is_some() {
            until_closed(stream, Duration::from_secs(120));
        }
    });
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let down = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let slow = origin(&silent);
    let scene = Scene::new(|lang, _| {
        let waits = mount(lang, "-slow", &slow, &grant(&slow)).replace("120s", "2s");
        let mounts = mount(lang, "-down", &down, &grant(&down)) + &mount(lang, "-soon", &slow, &grant(&slow));
        mounts + &waits
    });
    let mut client = scene.site.stdio(Era::Stateless);
    for lang in &scene.languages {
        let error = refused(&mut client, &format!("belljar://{lang}-down/text/echo"), "unavailable");
        assert!(error.message.contains("it refused the connection"), "{lang}: {error}");
        let error = refused(&mut client, &format!("belljar://{lang}-soon/soon/echo"), "unavailable");
        assert!(error.message.contains("it took too long"), "{lang}: {error}");
    }
    // The time limit ends all these calls at once.
    let uri = |lang: &str| format!("belljar://{lang}-slow/text/echo");
    let asked: Vec<_> =
        scene.languages.iter().map(|lang| (lang, client.send("resources/read", json!({ "uri": uri(lang) })))).collect();
    for (lang, id) in asked {
        let error = client.wait(id).expect_err(lang);
        assert_eq!((&error.data["kind"], &error.data["limit"]), (&"limit".into(), &"time".into()), "{lang}: {error}");
        assert!(error.message.contains("the time limit was reached"), "{lang}: {error}");
    }
    assert!(silent.all_closed_within(Duration::from_secs(60)), "a connection is still open");
    client.close();
}

/// A component imports `wasi:http` only if its provider sends requests.
#[test]
fn only_providers_that_send_requests_import_http() {
    // `belljar inspect` compiles the component first, which takes long. The name of an import is a text of the file.
    let imports_http = |component: PathBuf| {
        let bytes = fs::read(component).unwrap();
        let name = b"wasi:http/outgoing-handler@0.2";
        bytes.windows(name.len()).any(|window| window == name)
    };
    for (lang, component) in components() {
        assert!(imports_http(component), "{lang}");
        assert!(!imports_http(places::language(&lang).unwrap()), "{lang}");
    }
}
