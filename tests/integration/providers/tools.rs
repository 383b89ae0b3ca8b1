//! The tools and prompts of the real providers, in the real binary. Where another program reads the same files, its output
//! is compared.

use std::path::Path;
use std::process::Command;

use belljar_tests::{Client, Era, Site, Stdio};
use belljar_upstream::{Upstream, answer};
use serde_json::{Value, json};

use crate::providers::support::{self, lacks_build_tools, over_data};

/// Calls a tool that must succeed.
fn call(client: &mut Client<Stdio>, name: &str, arguments: Value) -> Value {
    let result = client.request("tools/call", json!({ "name": name, "arguments": arguments })).unwrap();
    assert_ne!(result["isError"], json!(true), "{name}: {result}");
    result
}

/// Calls a tool that must fail. Returns the text of the error.
fn fail(client: &mut Client<Stdio>, name: &str, arguments: Value) -> String {
    let result = client.request("tools/call", json!({ "name": name, "arguments": arguments })).unwrap();
    assert_eq!(result["isError"], json!(true), "{name}: {result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The first text of a result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// The definition of a tool.
fn definition(client: &mut Client<Stdio>, name: &str) -> Value {
    let listed = client.pages("tools/list", "tools").concat();
    listed.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {listed:?}")).clone()
}

/// Asserts that the hints of a tool say that it only reads.
fn assert_reads(client: &mut Client<Stdio>, name: &str, open_world: bool) {
    let hints = definition(client, name)["annotations"].take();
    assert_eq!(hints["readOnlyHint"], json!(true), "{name}: {hints}");
    assert_eq!(hints["openWorldHint"], json!(open_world), "{name}: {hints}");
}

/// Runs a program in a directory. Returns its output without the last line break.
fn output(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.current_dir(directory).args(arguments);
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@example.com");
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR");
    String::from_utf8(support::run(command, b"")).unwrap().trim_end().to_owned()
}

/// The texts of the messages of a prompt.
fn prompt(client: &mut Client<Stdio>, name: &str, arguments: Value) -> String {
    let result = client.request("prompts/get", json!({ "name": name, "arguments": arguments })).unwrap();
    let messages = result["messages"].as_array().unwrap().iter();
    let of = |message: &Value| {
        let content = &message["content"];
        content["text"].as_str().or(content["resource"]["text"].as_str()).unwrap_or_default().to_owned()
    };
    messages.map(of).collect::<Vec<_>>().join("\n")
}

fn shop() -> Site {
    let site = over_data("sqlite", "");
    let create = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript('''
CREATE TABLE orders (id INTEGER PRIMARY KEY, buyer TEXT, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO orders SELECT i, 'buyer ' || (i % 7), i * 0.5 FROM n;''')";
    output(&site.path("data"), "python3", &["-c", create, "shop.db"]);
    site
}

#[test]
fn a_database_is_queried_and_never_changed() {
    if lacks_build_tools() {
        return;
    }
    let site = shop();
    let before = std::fs::read(site.path("data").join("shop.db")).unwrap();
    let mut client = site.stdio(Era::Stateless);
    assert_reads(&mut client, "sqlite_query", false);

    let sql = "SELECT buyer, count(*) AS n, sum(price) FROM orders WHERE id <= ? GROUP BY buyer ORDER BY buyer";
    let result = call(&mut client, "sqlite_query", json!({ "sql": sql, "parameters": [70] }));
    let found = &result["structuredContent"];
    assert_eq!(found["columns"], json!(["buyer", "n", "sum(price)"]), "{found}");
    assert_eq!(found["rows"][1], json!(["buyer 1", 10, 162.5]), "{found}");
    assert_eq!(found["rows"].as_array().unwrap().len(), 7);
    assert_eq!(found["truncated"], json!(false));
    assert!(text(&result).contains("buyer 6"), "the text stands alone: {result}");

    let named =
        json!({ "sql": "SELECT id FROM orders WHERE buyer = :who", "parameters": { "who": "buyer 3" }, "limit": 5 });
    let result = call(&mut client, "sqlite_query", named);
    assert_eq!(result["structuredContent"]["rows"], json!([[3], [10], [17], [24], [31]]));
    assert_eq!(result["structuredContent"]["truncated"], json!(true));

    for sql in [
        "DELETE FROM orders",
        "INSERT INTO orders VALUES (9000, 'x', 1)",
        "SELECT 1; DROP TABLE orders",
        "PRAGMA user_version = 7",
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "CREATE TEMP TABLE t (x)",
        "SELECT load_extension('x')",
        "SELECT nothing FROM nowhere",
        "",
    ] {
        let error = fail(&mut client, "sqlite_query", json!({ "sql": sql }));
        assert!(error.contains("sql"), "{sql}: {error}");
    }
    // A query without an end stops at a limit, and the next one is answered.
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let error = fail(&mut client, "sqlite_query", json!({ "sql": endless }));
    assert!(error.contains("the query was stopped"), "{error}");
    let one = call(&mut client, "sqlite_query", json!({ "sql": "SELECT max(id) FROM orders" }));
    assert_eq!(one["structuredContent"]["rows"], json!([[3000]]));
    // The host checks the arguments before the provider runs.
    let wrong = fail(&mut client, "sqlite_query", json!({ "sql": 7 }));
    assert!(wrong.contains("/sql"), "{wrong}");

    assert!(prompt(&mut client, "sqlite_explore", json!({ "table": "orders" })).contains("buyer"));
    assert_eq!(std::fs::read(site.path("data").join("shop.db")).unwrap(), before, "the database changed");
    let names: Vec<_> = std::fs::read_dir(site.path("data")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["shop.db"]);
}

#[test]
fn commits_and_differences_are_those_of_git() {
    let repository = support::empty_directory("git-tools");
    let git = |arguments: &[&str]| output(&repository, "git", arguments);
    git(&["init", "-q", "-b", "main"]);
    for (at, subject) in ["Add the tide table", "Correct Dover", "Name the source of the heights"].iter().enumerate() {
        std::fs::write(repository.join("tides.txt"), format!("Dover {at}\nHull 4\n")).unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", subject]);
    }
    let site = support::site("git", &format!("fs = {{ \"/repo\" = {repository:?} }}"));
    let mut client = site.stdio(Era::Stateless);
    assert_reads(&mut client, "git_log", false);
    assert_reads(&mut client, "git_diff", false);

    let log = call(&mut client, "git_log", json!({ "limit": 2 }));
    let lines = text(&log);
    for line in git(&["log", "-2", "--format=%h %s"]).lines() {
        let (id, subject) = line.split_once(' ').unwrap();
        assert!(lines.contains(id) && lines.contains(subject), "no {line} in {lines}");
    }
    assert!(!lines.contains("Add the tide table"), "{lines}");
    let found = call(&mut client, "git_log", json!({ "text": "dover" }));
    assert!(text(&found).contains("Correct Dover") && !text(&found).contains("source"), "{found}");

    let diff = call(&mut client, "git_diff", json!({ "from": "HEAD~2", "to": "HEAD" }));
    for line in git(&["diff", "HEAD~2", "HEAD"]).lines().filter(|line| line.starts_with(['+', '-', '@'])) {
        assert!(text(&diff).contains(line), "no {line} in {diff}");
    }
    let error = fail(&mut client, "git_diff", json!({ "from": "no-such-branch" }));
    assert!(error.contains("no-such-branch"), "{error}");
    assert!(prompt(&mut client, "git_review", json!({ "revision": "HEAD" })).contains("Name the source"));
}

#[test]
fn logs_files_and_tables_are_searched() {
    let site = over_data("logs", "");
    let lines: String = (0..5000)
        .map(|n| {
            format!(
                "2026-03-01T{:02}:{:02}:00Z {} request {n} of a boat\n",
                n / 60 % 24,
                n % 60,
                if n % 500 == 3 { "ERROR" } else { "INFO" }
            )
        })
        .collect();
    site.write("data/app.log", &lines);
    let mut client = site.stdio(Era::Stateless);
    assert_reads(&mut client, "logs_search", false);
    let errors = call(&mut client, "logs_search", json!({ "level": "error", "limit": 4 }));
    assert!(text(&errors).contains("request 4503 ") && text(&errors).contains("request 3003 "), "{errors}");
    assert!(!text(&errors).contains("INFO") && !text(&errors).contains("request 2503 "), "{errors}");
    assert!(text(&call(&mut client, "logs_search", json!({ "text": "REQUEST 1234 " }))).contains("request 1234 of"));
    assert!(prompt(&mut client, "logs_explain", json!({})).contains("log"));

    let site = over_data("files", "");
    site.write("data/harbours/dover.md", "# Dover\n\nThe western entrance silts up in spring.\n");
    site.write("data/harbours/hull.md", "# Hull\n\nLocks on the Humber.\n");
    let mut client = site.stdio(Era::Stateless);
    assert_reads(&mut client, "files_search", false);
    let found = call(&mut client, "files_search", json!({ "words": "SILTS entrance" })).to_string();
    assert!(found.contains("dover.md") && !found.contains("hull.md"), "{found}");
    assert!(found.contains("belljar://files/harbours/dover.md"), "a reference that a client can read: {found}");
    let none = call(&mut client, "files_search", json!({ "words": "silts", "paths": "*.txt" })).to_string();
    assert!(!none.contains("dover.md"), "{none}");

    let site = over_data("tables", "");
    let rows: String = (1..=250).map(|n| format!("{n},Boat {n},{}\n", n * 2)).collect();
    site.write("data/boats.csv", format!("id,name,length\n{rows}"));
    let mut client = site.stdio(Era::Stateless);
    assert_reads(&mut client, "tables_query", false);
    let asked = json!({ "table": "boats.csv", "columns": "name,length", "rows": "101-103" });
    let page = call(&mut client, "tables_query", asked)["structuredContent"].take();
    assert_eq!(page["columns"], json!(["name", "length"]), "{page}");
    assert_eq!(page["rows"].as_array().unwrap().len(), 3, "{page}");
    assert_eq!(page["rows"][0][0], json!("Boat 101"), "{page}");
    let missing = fail(&mut client, "tables_query", json!({ "table": "ships.csv" }));
    assert!(missing.contains("ships.csv"), "{missing}");
    // The view of the tool is a page of the provider, and may use no network.
    let uri = definition(&mut client, "tables_query")["_meta"]["ui"]["resourceUri"].as_str().unwrap().to_owned();
    let contents = client.read(&uri).unwrap()["contents"][0].take();
    assert_eq!(contents["mimeType"], "text/html;profile=mcp-app", "{uri}");
    assert!(contents["text"].as_str().unwrap().starts_with("<!doctype html>"), "{uri}");
    assert!(contents["_meta"]["ui"].is_null(), "{contents}");
}

#[test]
fn the_tool_of_the_web_gets_what_is_granted_and_nothing_else() {
    let upstream =
        Upstream::plain(|_| answer("200 OK", "content-type: text/html\r\n", "<h1>Tides</h1><p>High at noon.</p>"));
    let other = Upstream::plain(|_| answer("200 OK", "content-type: text/html\r\n", "not granted"));
    let (granted, refused) = (format!("http://{}", upstream.address()), format!("http://{}", other.address()));
    let site = support::site(
        "web",
        &format!(
            "env = {{ WEB = '''\ntides = '{granted}/tides'\nother = '{refused}/x'\n''' }}\n\
             [[mounts.web.http]]\norigin = \"{granted}\"\nnetworks = [\"127.0.0.1\"]\n"
        ),
    );
    let mut client = site.stdio(Era::Stateless);
    assert_reads(&mut client, "web_get", true);
    let page = call(&mut client, "web_get", json!({ "url": "tides" }));
    assert!(text(&page).contains("High at noon."), "{page}");
    let denied = fail(&mut client, "web_get", json!({ "url": "other" }));
    assert!(denied.contains("belljar") && denied.contains(&refused), "the grant to add: {denied}");
    let foreign = fail(&mut client, "web_get", json!({ "url": format!("{refused}/y") }));
    assert!(foreign.contains("tides"), "the configured names: {foreign}");
    assert_eq!(other.requests().len(), 0, "a request without a grant");
}

#[test]
fn the_provider_of_skills_serves_a_directory() {
    let site = over_data("skills", "");
    let skill = "---\nname: greeting\ndescription: How to greet.\n---\nSay hello.\n";
    site.write("data/greeting/SKILL.md", skill);
    site.write("data/greeting/words/english.md", "hello\n");
    site.write("data/stray.md", "not a skill\n");
    let mut client = site.stdio(Era::Stateless);
    let listed = client.request("skills/list", json!({})).unwrap();
    let listed = listed["skills"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert!(listed[0].to_string().contains("skill://skills/greeting/"), "{listed:?}");
    assert_eq!(client.text("skill://skills/greeting/SKILL.md"), skill);
    assert_eq!(client.text("belljar://skills/greeting/words/english.md"), "hello\n");
    client.read("belljar://skills/stray.md").expect_err("a file outside of skills");
}
