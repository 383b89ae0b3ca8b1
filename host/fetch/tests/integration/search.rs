//! Search in indexes of each kind, honest and hostile.

use belljar_fetch_protocol::{Event, Failure, FailureKind, SearchIndex, SearchRequest, SearchResult, Task};
use serde_json::{Value, json};

use crate::support::program::{request, result};
use crate::support::registry::Contents;
use crate::support::server::{Reply, Server, Then, names};

use FailureKind::{Address, Content, Denied, Network, Request, Size, Time};

fn search(index: SearchIndex, word: &str) -> Result<SearchResult, Failure> {
    match result(&request(Task::Search(SearchRequest { index, word: word.to_owned() })))? {
        Event::Found(found) => Ok(found),
        other => panic!("{other:?}"),
    }
}

fn json_index(server: &Server) -> SearchIndex {
    SearchIndex::Json { url: format!("http://127.0.0.1:{}/index.json", server.port) }
}

fn text(list: &Value) -> SearchIndex {
    SearchIndex::Text { text: list.to_string() }
}

/// Searches at an index that gives this answer to everything.
fn answering(reply: Reply) -> Result<SearchResult, Failure> {
    search(json_index(&Server::start(move |_| reply.clone())), "tides")
}

fn references(result: &SearchResult) -> Vec<&str> {
    result.found.iter().map(|one| one.reference.as_str()).collect()
}

#[test]
fn a_list_is_searched_in_a_file_and_behind_a_url() {
    let list = json!({ "made": "by acme", "components": [
        { "name": "Tides", "version": "1.2.0", "description": "high\nwater\u{202e}", "reference": "ghcr.io/acme/sea:1.2.0", "x": {} },
        { "name": "moon", "description": "makes the TIDES", "reference": "ghcr.io/acme/moon:1.0.0" },
        { "name": "wind", "reference": "ghcr.io/acme/wind:1.0.0" },
    ] });
    let body = list.to_string();
    let server = Server::start(move |_| Reply::new(200, body.clone()));
    for index in [text(&list), json_index(&server)] {
        let result = search(index, "tides").unwrap();
        assert_eq!(references(&result), ["ghcr.io/acme/sea:1.2.0", "ghcr.io/acme/moon:1.0.0"]);
        assert_eq!(result.found[0].description.as_deref(), Some("high water"));
        assert_eq!(result.notes, [""; 0]);
    }
    assert_eq!(search(text(&list), "sea").unwrap().found.len(), 1, "a word of the reference");
    assert_eq!(search(text(&list), "sun").unwrap(), SearchResult::default());
}

/// The contents of a registry with a list of its repositories. Only "acme/tides" has tags.
fn registry(catalog: &'static str) -> Server {
    let contents = Contents::tides();
    Server::start(move |asked| match asked.path.starts_with("/v2/_catalog") {
        true => Reply::new(200, catalog),
        false => contents.answer(asked),
    })
}

fn namespace(server: &Server, path: &str) -> SearchIndex {
    SearchIndex::Oci { namespace: format!("127.0.0.1:{}{path}", server.port) }
}

#[test]
fn a_registry_lists_its_components_below_a_namespace() {
    let names = r#"{"repositories":["acme/tides","acme/tidesless","acme/BAD tides","evil/tides","acme-evil/tides","acme/wind"]}"#;
    let server = registry(names);
    let result = search(namespace(&server, "/acme"), "TIDES").unwrap();
    assert_eq!(references(&result), [format!("127.0.0.1:{}/acme/tides:1.2", server.port)]);
    assert_eq!(result.found[0].version.as_deref(), Some("1.2.0"), "the annotation of the manifest");
    let notes = result.notes.join("; ");
    assert!(notes.contains("1 entry has no name") && notes.contains("under their newest tag: 1;"), "{notes}");
    assert!(
        server.asked().iter().all(|asked| !asked.path.contains("evil") && !asked.path.contains("wind")),
        "not asked for"
    );
    // The whole registry.
    let result = search(namespace(&server, ""), "tides").unwrap();
    assert_eq!(result.found.len(), 1);
    assert!(server.asked().iter().any(|asked| asked.path.contains("evil")));
}

#[test]
fn a_registry_that_lists_nothing_says_so() {
    for status in [401, 403, 404] {
        let server = Server::start(move |_| Reply::new(status, ""));
        let failure = search(namespace(&server, "/acme"), "tides").unwrap_err();
        assert!(failure.kind == Denied && failure.problem.contains("does not list its repositories"), "{failure:?}");
        assert!(failure.cure.contains("an index of another kind"), "{failure:?}");
    }
}

#[test]
fn wasm_directory_is_asked_as_it_wants_to_be() {
    let server = Server::start(|_| {
        Reply::new(
            200,
            json!([
                { "registry": "ghcr.io", "repository": "acme/tides", "kind": "component", "description": "A tool",
                  "tags": ["1.0.0", "v1.2.0", "latest"], "wit_namespace": "acme", "wit_name": "tides" },
                { "registry": "ghcr.io", "repository": "acme/wit", "kind": "interface", "tags": ["1.0.0"] },
                { "registry": "ghcr.io", "repository": "acme/bare" },
                { "registry": "../..", "repository": "acme/evil" },
                { "registry": "ghcr.io", "repository": "acme/../evil" },
                { "registry": "ghcr.io", "repository": "acme/evil", "tags": ["1 --yes"] },
            ])
            .to_string(),
        )
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    let result = search(SearchIndex::WasmDirectory { url }, "a&b").unwrap();
    assert_eq!(references(&result), ["ghcr.io/acme/tides:v1.2.0", "ghcr.io/acme/bare"]);
    assert_eq!((result.found[0].name.as_str(), result.found[1].name.as_str()), ("acme:tides", "acme/bare"));
    assert_eq!(server.asked()[0].path, "/v1/search?q=a%26b&offset=0&limit=100");
    assert!(result.notes.iter().any(|note| note.contains("belljar add refuses")), "{result:?}");
    assert!(result.notes.iter().any(|note| note.starts_with("3 entries")), "{result:?}");
}

#[test]
fn the_mcp_registry_gives_only_images_that_are_components() {
    let contents = Contents::tides();
    let server = Server::start(move |asked| {
        let own = asked.header("host").unwrap();
        let package = |kind: &str, identifier: &str| json!({ "registryType": kind, "identifier": identifier });
        let servers = json!({ "servers": [
            { "server": { "name": "io.acme/tides", "description": "tides", "version": "1.2.0",
                          "packages": [package("npm", "tides"), package("oci", &format!("{own}/acme/tides:1.2"))] } },
            { "server": { "name": "io.acme/image", "packages": [package("oci", &format!("{own}/acme/none:1"))] } },
            { "server": { "name": "io.acme/python", "packages": [package("pypi", "tides")] } },
            { "server": { "name": "io.acme/remote" } },
        ], "metadata": { "count": 4 } });
        match asked.path.starts_with("/api/v0/servers?") {
            true => Reply::new(200, servers.to_string()),
            false => contents.answer(asked),
        }
    });
    let url = format!("http://127.0.0.1:{}/api/", server.port);
    let result = search(SearchIndex::McpRegistry { url }, "tides").unwrap();
    assert_eq!(references(&result), [format!("127.0.0.1:{}/acme/tides:1.2", server.port)]);
    assert_eq!(result.found[0].name, "io.acme/tides");
    assert!(result.notes[0].starts_with("servers that fit and are no component: 3;"), "{result:?}");
    assert_eq!(server.asked()[0].path, "/api/v0/servers?search=tides&limit=100&version=latest");
}

/// The operator named the index, and not the registries in it.
#[test]
fn an_index_sends_to_no_service_of_this_machine() {
    let inside = Server::start(|_| Reply::new(200, "a secret of this machine"));
    let port = inside.port;
    let server = Server::start(move |_| {
        let package = |identifier: String| json!({ "registryType": "oci", "identifier": identifier });
        let images =
            [format!("127.0.0.1:{port}/acme/tides:1"), format!("localhost:{port}/a/b:1"), "10.0.0.1/a/b:1".to_owned()];
        let packages: Vec<Value> = images.into_iter().map(package).collect();
        Reply::new(200, json!({ "servers": [{ "server": { "name": "x", "packages": packages } }] }).to_string())
    });
    let result = search(SearchIndex::McpRegistry { url: format!("http://127.0.0.1:{}", server.port) }, "x").unwrap();
    assert!(result.found.is_empty(), "{result:?}");
    assert!(inside.asked().is_empty(), "{:?}", inside.asked());
}

#[test]
fn a_hostile_index_is_refused() {
    let server = Server::start(|_| Reply::new(200, "[]"));
    let mcp = SearchIndex::McpRegistry { url: format!("http://127.0.0.1:{}", server.port) };
    let reply = |body: &str| answering(Reply::new(200, body));
    let redirect = |to: &str| answering(Reply::new(302, "").with("Location", to));
    let rows: Vec<(&str, Result<SearchResult, Failure>, FailureKind, &str)> = vec![
        ("no JSON", reply("<html>"), Content, "the index cannot be read"),
        ("another type", reply("[]"), Content, "the index cannot be read"),
        ("entries of another type", reply(r#"{"components":[1]}"#), Content, "the index cannot be read"),
        ("a list of another kind of index", search(mcp, "x"), Content, "the answer cannot be read"),
        (
            "10000 arrays in each other",
            reply(&format!(r#"{{"components":{}"#, "[".repeat(10_000))),
            Content,
            "cannot be read",
        ),
        ("5 MiB", answering(Reply::new(200, vec![b' '; 5 << 20])), Size, "has more than 4194304 bytes"),
        (
            "10 GiB by its word",
            answering(Reply::new(200, "{}").claiming(10 << 30).then(Then::Close)),
            Size,
            "has more than",
        ),
        ("no end", answering(Reply::new(200, vec![b' '; 64 << 10]).then(Then::Flood)), Size, "has more than"),
        ("silence", answering(Reply::new(200, "").claiming(10).then(Then::Silence)), Time, "sends nothing for 2 s"),
        (
            "a byte now and then",
            answering(Reply::new(200, "").claiming(100_000).then(Then::Drip)),
            Time,
            "needs more than 8 s",
        ),
        ("an error", answering(Reply::new(500, "\u{1b}[31m")), Network, "answers 500"),
        ("a redirect to a private address", redirect("https://10.0.0.1/index.json"), Address, "is not public"),
        ("a redirect without TLS", redirect("http://a.example/index.json"), Address, "which is not HTTPS"),
        ("a redirect to a file", redirect("file:///etc/passwd"), Content, "redirects to no plain URL"),
        ("a redirect in a circle", redirect("/index.json"), Address, "redirects more than 3 times"),
        (
            "a redirect to a name with a private address",
            {
                let server = Server::start(|_| Reply::new(302, "").with("Location", "https://index.example/"));
                let task = Task::Search(SearchRequest { index: json_index(&server), word: "x".into() });
                let network = belljar_fetch_protocol::Network { dns: vec![names([10, 0, 0, 1])], roots: None };
                match result(&belljar_fetch_protocol::Request { network, ..request(task) }) {
                    Ok(event) => panic!("{event:?}"),
                    Err(failure) => Err(failure),
                }
            },
            Address,
            "whose address 10.0.0.1 is not public",
        ),
        (
            "a list of repositories that is none",
            search(namespace(&registry("<"), ""), "x"),
            Content,
            "list of repositories cannot be read",
        ),
        (
            "an index without TLS",
            search(SearchIndex::Json { url: "http://a.example/".into() }, "x"),
            Request,
            "is not the URL of an index",
        ),
        (
            "a file as a URL",
            search(SearchIndex::Json { url: "file:///etc/passwd".into() }, "x"),
            Request,
            "is not the URL of an index",
        ),
        (
            "a namespace with a tag",
            search(SearchIndex::Oci { namespace: "ghcr.io/acme:1".into() }, "x"),
            Request,
            "not a namespace",
        ),
        (
            "a namespace without a registry",
            search(SearchIndex::Oci { namespace: "acme".into() }, "x"),
            Request,
            "not a namespace",
        ),
        (
            "a word with a control character",
            search(text(&json!({ "components": [] })), "a\u{1b}"),
            Request,
            "cannot be searched for",
        ),
        ("no word", search(text(&json!({ "components": [] })), ""), Request, "cannot be searched for"),
    ];
    for (name, failure, kind, problem) in rows {
        let failure = failure.expect_err(name);
        assert!(failure.kind == kind && failure.problem.contains(problem), "{name}: {failure:?}");
        assert!(!failure.cure.is_empty() && !failure.problem.contains('\u{1b}'), "{name}: {failure:?}");
    }
}

#[test]
fn a_long_list_is_cut_and_says_so() {
    let entry = |at: usize| json!({ "name": format!("tides-{at}"), "reference": format!("ghcr.io/acme/tides-{at}:1.0.0"), "description": "x".repeat(5000) });
    let list = json!({ "components": (0..130).map(entry).collect::<Vec<_>>() });
    let result = search(text(&list), "tides").unwrap();
    assert_eq!(result.found.len(), 100);
    assert!(result.found[0].description.as_ref().unwrap().chars().count() <= 201);
    assert!(result.notes[0].contains("there is more than these 100"), "{result:?}");
}
