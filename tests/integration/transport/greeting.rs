//! The first answers to a client: the server's name, its protocol revisions and its mounts. Also the suggestions for a
//! URI of no resource, and the notices about mounts that are not served. Runs the real `belljar` binary with real
//! providers.

use belljar_tests::{Client, Era};
use serde_json::{Value, json};

use crate::support::{assert_clean, kind, serve, site, stdout_and_stderr};

const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// A site with two mounts of `files`. The directory of the mount `gone` does not exist.
fn notes() -> belljar_tests::Site {
    let site = site(
        "[mounts.notes]\ncomponent = \"files.wasm\"\nfs = { \"/notes\" = \"notes\" }\n[mounts.gone]\ncomponent = \"files.wasm\"\nfs = { \"/notes\" = \"not-there\" }\n",
    );
    site.write("notes/plan.md", "# The plan\n");
    site
}

#[test]
fn each_result_for_a_stateless_client_names_the_server() {
    let site = notes();
    let server = site.http();
    let plan = json!({ "uri": "belljar://notes/plan.md" });
    let asked = [
        ("server/discover", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", plan.clone()),
        // An unknown parameter excludes the fast path: rmcp serves this request.
        ("resources/read", json!({ "uri": "belljar://notes/plan.md", "extra": 1 })),
        ("resources/list", json!({ "extra": 1 })),
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "read_resource", "arguments": plan })),
        ("tools/call", json!({ "name": "read_resource", "arguments": {} })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": "belljar://notes/{+path}" }, "argument": { "name": "path", "value": "p" } }),
        ),
    ];
    let mut line = site.stdio(Era::Stateless);
    let mut http = server.client(Era::Stateless);
    let version = line.greeting["_meta"][SERVER]["version"].clone();
    assert!(version.is_string(), "{}", line.greeting);
    let expected = json!({ "name": "belljar", "version": version });
    for (method, params) in &asked {
        for result in [line.request(method, params.clone()), http.request(method, params.clone())] {
            let result = result.unwrap_or_else(|error| panic!("{method} {params}: {error}"));
            assert_eq!(result["_meta"][SERVER], expected, "{method} {params}: {result}");
        }
    }
    let mut older = site.stdio(Era::Session);
    for (method, params) in asked.iter().filter(|(method, _)| *method != "server/discover") {
        let result = older.request(method, params.clone()).unwrap_or_else(|error| panic!("{method}: {error}"));
        assert_eq!(result["_meta"][SERVER], Value::Null, "{method} {params}: {result}");
    }
}

#[test]
fn a_revision_with_batches_is_answered_with_a_supported_one() {
    let site = site("");
    let greet = |version: &str| {
        let mut client = Client::connect_silently(site.silent_stdio(), Era::Session);
        let info = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info });
        client.request("initialize", params).unwrap()["protocolVersion"].as_str().unwrap().to_owned()
    };
    for spoken in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        assert_eq!(greet(spoken), spoken);
    }
    for other in ["2025-03-26", "1999-01-01", "2026-07-28"] {
        assert_eq!(greet(other), "2025-11-25", "{other}");
    }
    let mut client = serve(&site);
    let supported = client.request("server/discover", json!({})).unwrap()["supportedVersions"].clone();
    assert_eq!(supported, json!(["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"]));
    let server = site.http();
    let usual = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let headers = [usual[0], usual[1], ("MCP-Protocol-Version", "2025-03-26")];
    let answer = server.exchange("POST", "/mcp", &headers, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32022)), "{}", answer.text());
    assert_eq!(answer.json()["error"]["data"]["supported"], supported);
}

#[test]
fn the_greeting_names_the_mounts() {
    let site = notes();
    let server = site.http();
    for era in Era::ALL {
        for greeting in [site.stdio(era).greeting, server.client(era).greeting.clone()] {
            let instructions = greeting["instructions"].as_str().unwrap();
            assert!(instructions.ends_with(" Mounts: clock, notes (files)."), "{instructions}");
            assert!(instructions.contains("not instructions"), "{instructions}");
        }
    }
}

#[test]
fn the_error_for_an_unknown_uri_suggests_the_nearest_one() {
    let site = notes();
    let server = site.http();
    for era in Era::ALL {
        let mut client = server.client(era);
        // belljar caches this list. The suggestions come from the cached list.
        assert!(client.uris().contains(&"belljar://notes/plan.md".to_owned()));
        for (uri, message, hint) in [
            ("belljar://note/plan.md", "no mount \"note\"; did you mean \"notes\"?", "belljar://notes/plan.md"),
            ("belljar://notes", "the mount \"notes\" begins at \"belljar://notes/\"", "belljar://notes/"),
            ("belljar://NOTES/plan.md", "the mount \"notes\" begins at", "belljar://notes/plan.md"),
            ("belljar://notes/Plan.md", "did you mean \"belljar://notes/plan.md\"?", "belljar://notes/plan.md"),
            ("belljar://else/x", "no mount \"else\"; there are \"clock\", \"notes\"", ""),
            ("belljar://notes/other.md", "resource not found: \"belljar://notes/other.md\"", ""),
        ] {
            let error = client.read(uri).unwrap_err();
            assert_eq!((error.code, kind(&error)), (era.not_found(), "not-found"), "{error}");
            assert_eq!(error.data["uri"], uri, "{error}");
            assert!(error.message.contains(message), "{uri}: {error}");
            assert!(error.data["hint"].as_str().unwrap_or_default().contains(hint), "{uri}: {error}");
            assert_clean(&error.message);
        }
    }
}

#[test]
fn clients_get_the_reason_why_a_mount_is_not_served() {
    let site = notes();
    site.drop_in("broken.wasm", b"\0asm\x01\0\0\0 no component");
    let mut client = serve(&site);
    let notices = client.request("resources/list", json!({})).unwrap()["_meta"]["dev.belljar/notices"].clone();
    let reason = |name: &str| {
        let all = notices.as_array().unwrap().iter();
        all.clone().find(|one| one["mount"] == name).unwrap_or_else(|| panic!("{notices}"))["reason"].to_string()
    };
    assert!(
        reason("gone").contains("not served: something that it was granted does not exist or cannot be opened"),
        "{notices}"
    );
    for method in ["tools/list", "prompts/list", "skills/list"] {
        let other = client.request(method, json!({})).unwrap()["_meta"]["dev.belljar/notices"].clone();
        assert_eq!(other, notices, "{method}");
    }
    assert!(reason("broken").contains("not served: its component cannot be loaded"), "{notices}");
    for (uri, mount) in [("belljar://gone/x", "gone"), ("belljar://broken/x", "broken")] {
        let error = client.read(uri).unwrap_err();
        assert_eq!((kind(&error), &error.data["mount"]), ("unavailable", &json!(mount)), "{error}");
        assert!(error.message.contains(&format!("unavailable: mount \"{mount}\" is not served: ")), "{error}");
        let wire = format!("{notices}{error}{}", error.data);
        assert!(!wire.contains("not-there") && !wire.contains(site.path("").to_str().unwrap()), "{wire}");
    }
    let listed = client.request("tools/call", json!({ "name": "list_resources", "arguments": {} })).unwrap();
    assert!(listed["content"][0]["text"].as_str().unwrap().contains("mount \"gone\": not served"), "{listed}");
    // After the directory exists, a new server serves the mount.
    std::fs::create_dir(site.path("not-there")).unwrap();
    site.write("not-there/one.md", "one");
    let config = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    drop(client);
    site.config(&config);
    assert_eq!(serve(&site).text("belljar://gone/one.md"), "one");
}

#[test]
fn an_address_may_be_a_port_or_the_name_localhost() {
    let site = site("");
    for fine in ["localhost:0", "0", ":0", "127.0.0.1:0"] {
        let server = belljar_tests::Server::start(site.command(["serve", "--http", fine]));
        assert!(server.address().ip().is_loopback(), "{fine}");
        assert!(server.client(Era::Stateless).text(crate::support::WITNESS).contains("UTC"), "{fine}");
    }
    for (bad, why) in [
        ("evil.example:80", "expected an address"),
        ("localhost", "expected an address"),
        ("0.0.0.0:0", "authentication"),
    ] {
        let output = site.run(&["serve", "--http", bad]);
        assert!(
            !output.status.success() && stdout_and_stderr(&output).contains(why),
            "{bad}: {}",
            stdout_and_stderr(&output)
        );
    }
}
