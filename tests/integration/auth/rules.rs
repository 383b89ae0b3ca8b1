//! Rules and policies of a running server: rates, `policy.cedar`, and changes without a restart.

use std::fs;
use std::time::Duration;

use belljar_tests::{Client, Era, Http, RpcError, Server, Site, wait_until};
use serde_json::{Value, json};

use crate::support::{kind, site, stdout_and_stderr};

/// The mount `notes` with two folders, and these further lines.
fn notes(more: &str) -> Site {
    let site =
        site(&format!("[mounts.notes]\ncomponent = \"files.wasm\"\nfs = {{ \"/\" = \"notes\" }}\n[auth]\n{more}"));
    site.write("notes/public/a.md", "# A\n");
    site.write("notes/public/b.md", "# B\n");
    site.write("notes/private/c.md", "# C\n");
    site
}

/// Makes a key, and returns the value of the header that carries it.
fn new_key(site: &Site, name: &str, arguments: &[&str]) -> String {
    let output = site.run(&[&["key", "new", name], arguments].concat());
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    format!("Bearer {}", String::from_utf8(output.stdout).unwrap().trim())
}

fn client(server: &Server, key: &str, era: Era) -> Client<Http> {
    let mut wire = server.wire(era);
    wire.authorization = Some(key.to_owned());
    Client::connect(wire, era)
}

fn pause(error: &RpcError) -> u64 {
    assert_eq!(kind(error), "busy", "{error}");
    error.data["retryAfterMs"].as_u64().unwrap_or_else(|| panic!("no time in {error}"))
}

const A: &str = "belljar://notes/public/a.md";
const B: &str = "belljar://notes/public/b.md";
const C: &str = "belljar://notes/private/c.md";

#[test]
fn a_rate_holds_for_each_principal_and_not_for_others() {
    let site = notes(
        "[[allow]]\nwho = \"anyone\"\ndo = [\"read\"]\nrate = \"3/day per caller\"\n[[allow]]\nwho = { key = \"boss\" }\n",
    );
    let [agent, other, boss] = ["agent", "other", "boss"].map(|name| new_key(&site, name, &[]));
    let server = site.http();
    let again = agent.clone();
    let [mut agent, mut other, mut boss] = [agent, other, boss].map(|key| client(&server, &key, Era::Stateless));
    for _ in 0..3 {
        assert_eq!(agent.text(A), "# A\n");
    }
    // The whole rate comes back within a day, so the next request may come after a third of it.
    let third = Duration::from_secs(24 * 3600 / 3).as_millis() as u64;
    for uri in [A, B] {
        let pause = pause(&agent.read(uri).unwrap_err());
        assert!(pause > third / 2 && pause <= third, "{pause} of {third}");
    }
    // Another connection of the same key has the same quota.
    pause(&client(&server, &again, Era::Session).read(A).unwrap_err());
    assert_eq!(other.text(A), "# A\n");
    // A rule without a rate allows without one.
    for _ in 0..10 {
        assert_eq!(boss.text(A), "# A\n");
    }
    server.stop();
    let busy = site.audit().into_iter().find(|record| record["outcome"] == "busy").unwrap();
    assert_eq!((&busy["caller"]["principal"], &busy["blame"]), (&json!("key:agent"), &json!("caller")), "{busy}");
}

#[test]
fn bytes_of_answers_count_too() {
    let site = notes("[[allow]]\nwho = \"anyone\"\nrate = \"1KiB/day per caller\"\n");
    site.write("notes/public/long.md", "x".repeat(3000));
    let key = new_key(&site, "agent", &[]);
    let server = site.http();
    let mut agent = client(&server, &key, Era::Stateless);
    assert_eq!(agent.text(A), "# A\n");
    assert_eq!(agent.text("belljar://notes/public/long.md").len(), 3000, "the answer that exceeds the rate is served");
    pause(&agent.read(A).unwrap_err());
}

/// The answer to a read, in one word.
fn outcome(client: &mut Client<Http>, uri: &str) -> String {
    match client.read(uri) {
        Ok(_) => "ok".to_owned(),
        Err(error) => kind(&error).to_owned(),
    }
}

#[test]
fn policies_add_to_rules_and_change_without_a_restart() {
    let site = notes("[[allow]]\nwho = \"anyone\"\nwhat = \"belljar://notes/public/**\"\n");
    let keys = [("first", &["--group", "oncall"][..]), ("second", &[])].map(|(name, more)| new_key(&site, name, more));
    let server = site.http();
    let [mut oncall, mut other] = keys.map(|key| client(&server, &key, Era::Stateless));
    let all = |client: &mut Client<Http>| [A, B, C].map(|uri| outcome(client, uri));
    for client in [&mut oncall, &mut other] {
        assert_eq!(all(client), ["ok", "ok", "not-found"]);
        assert_eq!(client.uris(), [A, B]);
    }
    site.write(
        "policy.cedar",
        "@id(\"oncall\") permit(principal in Group::\"oncall\", action, resource in Folder::\"belljar://notes/private/\");
         @id(\"not-b\") forbid(principal, action, resource == Resource::\"belljar://notes/public/b.md\");",
    );
    wait_until("the policies are in force", || match outcome(&mut oncall, C).as_str() {
        "ok" => Ok(()),
        other => Err(other.to_owned()),
    });
    assert_eq!(all(&mut oncall), ["ok", "not-found", "ok"]);
    assert_eq!(oncall.uris(), [C, A]);
    assert_eq!(all(&mut other), ["ok", "not-found", "not-found"]);
    assert_eq!(other.uris(), [A]);
    // The command says which policy decides.
    for (who, uri, code, expected) in [
        ("key:first", C, 0, "\"oncall\""),
        ("key:second", C, 1, "no rule allows it"),
        ("key:second", B, 1, "\"not-b\""),
        ("key:second", A, 0, "[[allow]] 1"),
    ] {
        let output = site.run(&["can", who, "read", uri]);
        let said = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{who} {uri}: {said}");
        assert!(said.contains(expected), "{who} {uri}: {said}");
    }
    // Policies with an error are refused whole, and the old ones stay in force.
    site.write("policy.cedar", "permit(principal, action, ressource);");
    let log = || server.process.stderr();
    wait_until("the log names the error", || {
        let log = log();
        let is_named = log.contains("policy.cedar") && log.contains("line 1") && log.contains("stays in force");
        is_named.then_some(()).ok_or(log)
    });
    assert_eq!(all(&mut oncall), ["ok", "not-found", "ok"]);
    let output = site.run(&["check"]);
    let said = stdout_and_stderr(&output);
    assert!(!output.status.success() && said.contains("policy.cedar") && said.contains("line 1"), "{said}");
    fs::remove_file(site.path("policy.cedar")).unwrap();
    wait_until("the policies are gone", || match outcome(&mut oncall, B).as_str() {
        "ok" => Ok(()),
        other => Err(other.to_owned()),
    });
    assert_eq!(all(&mut oncall), ["ok", "ok", "not-found"]);
}

/// A client that listens for changes of the list hears of new rules, also if it loses everything.
#[test]
fn a_change_of_the_rules_is_a_change_of_the_list() {
    let rules =
        |folder: &str| format!("[[allow]]\nwho = {{ key = \"agent\" }}\nwhat = \"belljar://notes/{folder}/**\"\n");
    let site = notes(&rules("public"));
    let before = fs::read_to_string(site.path("belljar.toml")).unwrap();
    let key = new_key(&site, "agent", &[]);
    let server = site.http();
    let mut agent = client(&server, &key, Era::Stateless);
    assert_eq!(agent.uris(), [A, B]);
    let wanted = json!({ "notifications": { "resourcesListChanged": true } });
    let events = agent.wire_ref().open(&Era::Stateless.message(7, "subscriptions/listen", wanted)).unwrap();
    let is_list = |message: &Value| message["method"] == "notifications/resources/list_changed";
    let hears =
        |what: &str| wait_until(what, || events.next(Duration::from_millis(100)).filter(is_list).ok_or("silence"));
    for (folder, expected) in [("private", vec![C]), ("none", Vec::new()), ("public", vec![A, B])] {
        // By a rename: belljar never reads half of the file.
        let next = site.write("belljar.toml.new", before.replace("notes/public/**", &format!("notes/{folder}/**")));
        fs::rename(next, site.path("belljar.toml")).unwrap();
        hears(&format!("the change to {folder}"));
        wait_until("the list by the new rules", || match agent.uris() {
            uris if uris == expected => Ok(()),
            uris => Err(format!("{folder}: {uris:?}")),
        });
    }
}
