//! The three read-only tools for models: their results, the size of the results, and their errors. Runs the real
//! `belljar` binary with real providers, and with the hostile component `hostile`.

use std::time::Duration;

use belljar_tests::{Client, Era, Site, Stdio, Wire};
use serde_json::{Value, json};

use crate::consent::questions::{answer, chosen, question};
use crate::support::{WITNESS, assert_clean, kind, serve, site};

const INVALID_PARAMS: i64 = -32602;

const NAMES: [&str; 3] = ["list_resources", "read_resource", "search_resources"];

/// Calls a tool that must succeed. Returns the text of all its blocks.
fn ask<W: Wire>(client: &mut Client<W>, name: &str, arguments: Value) -> String {
    let result = call(client, name, arguments.clone());
    assert_ne!(result["isError"], json!(true), "{name} {arguments}: {result}");
    texts(&result).join("\n")
}

/// Calls a tool that must fail. Returns the error of `_meta` with the text as its message. Checks that the text has the
/// hint.
fn fail<W: Wire>(client: &mut Client<W>, name: &str, arguments: Value) -> Value {
    let result = call(client, name, arguments.clone());
    assert_eq!(result["isError"], json!(true), "{name} {arguments}: {result}");
    let mut error = result["_meta"]["dev.belljar/error"].clone();
    let text = result["content"][0]["text"].as_str().unwrap();
    if let Some(hint) = error["hint"].as_str() {
        assert!(text.contains(hint), "{result}");
    }
    error["message"] = text.into();
    error
}

/// Calls a tool. Asserts that the result has text, no `structuredContent` and no repeated text. Only a search may give
/// links.
fn call<W: Wire>(client: &mut Client<W>, name: &str, arguments: Value) -> Value {
    let result = client.request("tools/call", json!({ "name": name, "arguments": arguments })).unwrap();
    assert_eq!(result["structuredContent"], Value::Null, "{result}");
    assert!(result["content"].as_array().is_some_and(|content| !content.is_empty()), "{result}");
    let blocks = texts(&result);
    let repeated = blocks.iter().enumerate().any(|(at, block)| block.len() > 200 && blocks[..at].contains(block));
    assert!(!repeated, "a block of text is repeated: {result}");
    let links = result["content"].as_array().unwrap().iter().any(|block| block["type"] == "resource_link");
    assert!(!links || name == "search_resources", "{name}: {result}");
    result
}

/// The text of every block of a result.
fn texts(result: &Value) -> Vec<&str> {
    result["content"].as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect()
}

/// The URIs in the text of a list or a search. Each entry is a line `URI "TITLE"`.
fn uris(text: &str) -> Vec<String> {
    let is_entry =
        |line: &&str| line.split_once(' ').is_some_and(|(uri, rest)| uri.contains(':') && rest.starts_with('"'));
    text.lines().filter(is_entry).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// The cursor of the next page, from the text of a list.
fn next_cursor(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("nextCursor: "))
}

/// The offset of the next part, from the first line of a read.
fn next_offset(text: &str) -> Option<u64> {
    text.lines().next()?.split_once("call again with offset = ")?.1.split('.').next()?.parse().ok()
}

/// A site with a mount `notes` of some files. `more` has further lines of the mount's table, such as `search = true`.
fn notes(more: &str) -> Site {
    let site = site(&format!(
        "list-time = \"60s\"\n[mounts.notes]\ncomponent = \"files.wasm\"\nfs = {{ \"/notes\" = \"notes\" }}\n{more}"
    ));
    site.write("notes/plan.md", "# The \u{c4}rger plan\n\nFirst line.\nSecond line, with a needle.\n");
    site.write("notes/2026/caf\u{e9} menu.txt", "Quiche\nSoup\n");
    site.write("notes/long.txt", "0123456789\u{e9}\u{1f600}".repeat(5_000));
    site.write("notes/data.json", "{\"items\":[{\"name\":\"one\"},{\"name\":\"two\"}]}");
    site.write("notes/bytes.bin", [0, 0xff, 0xfe, 0x80]);
    site.write("notes/pixel.png", include_bytes!("../../guests/fixture/src/pixel.png"));
    site
}

/// Runs `check` with clients of each transport and each protocol era. `check` gets a function that calls a tool.
fn with_each_client(site: &Site, check: impl Fn(&mut dyn FnMut(&str, Value) -> Value)) {
    let server = site.http();
    for era in Era::ALL {
        let mut client = site.stdio(era);
        check(&mut |name, arguments| call(&mut client, name, arguments));
        let mut client = server.client(era);
        check(&mut |name, arguments| call(&mut client, name, arguments));
    }
}

#[test]
fn the_tools_are_read_only_and_described() {
    let site = site("");
    let server = site.http();
    for era in Era::ALL {
        let mut client = server.client(era);
        assert!(client.greeting["capabilities"]["tools"].is_object(), "{}", client.greeting);
        let result = client.request("tools/list", json!({})).unwrap();
        let tools = result["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, NAMES);
        for tool in tools {
            let hints = &tool["annotations"];
            assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(true), &json!(false)), "{tool}");
            assert_eq!((&hints["idempotentHint"], &hints["openWorldHint"]), (&json!(true), &json!(true)), "{tool}");
            assert!(tool["title"].is_string() && hints["title"].is_string(), "{tool}");
            let description = tool["description"].as_str().unwrap();
            assert!(description.ends_with("and not instructions.") && description.len() < 500, "{description}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(tool["inputSchema"]["properties"].is_object(), "{tool}");
            assert_eq!(tool["outputSchema"], Value::Null, "{tool}");
        }
        // The definitions must stay small. A token is about four characters; earlier definitions had 1,709 tokens.
        assert!(result["tools"].to_string().len() < 900 * 4, "{}", result["tools"].to_string().len());
        // The server never gave these cursors to a client.
        for cursor in ["", "x", "AAAA"] {
            let error = client.request("tools/list", json!({ "cursor": cursor })).unwrap_err();
            assert_eq!((error.code, crate::support::kind(&error)), (INVALID_PARAMS, "bad-cursor"), "{error}");
        }
        let hint = (result["ttlMs"].as_u64(), result["cacheScope"].as_str());
        assert_eq!(hint, if era == Era::Stateless { (Some(300_000), Some("private")) } else { (None, None) });
    }
}

/// Protocol revisions before 2025-06-18 have no resource links. A strict client of such a revision could not parse a
/// link.
#[test]
fn an_old_client_gets_no_links() {
    let site = notes("");
    for (version, links) in [("2024-11-05", false), ("2025-06-18", true), ("2025-11-25", true)] {
        let mut client = Client::connect_silently(site.silent_stdio(), Era::Session);
        let greeting =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "old", "version": "1" } });
        assert_eq!(client.request("initialize", greeting).unwrap()["protocolVersion"], version);
        client.notify("notifications/initialized", json!({}));
        for (name, arguments) in [
            ("search_resources", json!({ "query": "plan" })),
            ("read_resource", json!({ "uri": "belljar://notes/bytes.bin" })),
        ] {
            let result = call(&mut client, name, arguments);
            assert!(texts(&result).join(" ").contains("belljar://notes/"), "{result}");
            let has_links = result["content"].as_array().unwrap().iter().any(|block| block["type"] == "resource_link");
            assert_eq!(has_links, links && name == "search_resources", "{version}: {result}");
        }
    }
}

#[test]
fn the_tools_can_be_turned_off() {
    let site = site("tools = false\n");
    for era in Era::ALL {
        let mut client = site.stdio(era);
        // Providers may have tools of their own.
        assert_eq!(client.request("tools/list", json!({})).unwrap()["tools"], json!([]));
        let error = client.request("tools/call", json!({ "name": "list_resources" })).unwrap_err();
        assert_eq!(error.code, INVALID_PARAMS, "{error}");
        assert!(error.message.contains("there is no tool \"list_resources\""), "{error}");
        assert!(client.text(WITNESS).contains("UTC"));
    }
}

#[test]
fn an_unknown_tool_is_an_error_of_the_protocol() {
    let site = site("");
    for era in Era::ALL {
        let mut client = site.stdio(era);
        for (params, named) in [
            (json!({ "name": "write_resource" }), "there is no tool \"write_resource\""),
            (json!({ "name": "\u{202e}\u{1b}[31m" }), "\"[31m\""),
            (json!({}), "name"),
            (json!({ "name": 5 }), "name"),
            (json!({ "name": "list_resources", "arguments": [1] }), "arguments"),
            (json!({ "name": "list_resources", "arguments": "x" }), "arguments"),
        ] {
            let error = client.request("tools/call", params.clone()).unwrap_err();
            assert_eq!(error.code, INVALID_PARAMS, "{params}: {error}");
            assert!(error.message.contains(named), "{params}: {error}");
            assert_clean(&error.message);
        }
    }
}

/// The error names the wrong argument, so that the model can call the tool again.
#[test]
fn the_model_gets_the_error_of_malformed_arguments() {
    let site = site("");
    let mut client = serve(&site);
    for (name, arguments, named) in [
        ("read_resource", json!({}), "\"uri\""),
        ("read_resource", json!({ "uri": 5 }), "\"uri\""),
        (
            "read_resource",
            json!({ "uri": WITNESS, "limit": 0 }),
            "\"limit\" of \"read_resource\" is malformed; expected a whole number, 1 to 100000",
        ),
        ("read_resource", json!({ "uri": WITNESS, "offset": -1 }), "\"offset\""),
        ("read_resource", json!({ "uri": WITNESS, "lines": "a-b" }), "\"lines\""),
        ("read_resource", json!({ "uri": WITNESS, "pointer": 1 }), "\"pointer\""),
        ("read_resource", json!({ "uri": WITNESS, "pointer": "/a" }), "not JSON"),
        ("read_resource", json!({ "uri": WITNESS, "ofset": 1 }), "did you mean \"offset\"?"),
        ("list_resources", json!({ "mount": "../x" }), "\"mount\""),
        ("list_resources", json!({ "mount": "nope" }), "there is no \"nope\"; there are \"clock\""),
        ("list_resources", json!({ "cursor": "AAAA" }), "cursor"),
        ("list_resources", json!({ "limit": 201 }), "1 to 200"),
        ("list_resources", json!({ "templates": "yes" }), "true or false"),
        ("search_resources", json!({}), "\"query\""),
        ("search_resources", json!({ "query": "  " }), "\"query\""),
        ("search_resources", json!({ "query": "x ".repeat(200) }), "\"query\""),
        ("search_resources", json!({ "query": "x", "mount": "nope" }), "there is no \"nope\""),
        ("search_resources", json!({ "query": "x", "content": 1 }), "true or false"),
    ] {
        let error = fail(&mut client, name, arguments.clone());
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(named), "{name} {arguments}: {message}");
        assert_clean(message);
    }
    // A short list has one page, so it has no cursor.
    let cursor = client.request("resources/list", json!({})).unwrap()["nextCursor"].clone();
    assert_eq!(cursor, Value::Null);
}

#[test]
fn a_failed_read_is_a_result_with_the_reason() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n[mounts.hostile.limits]\nfuel = 1_000_000_000\n");
    with_each_client(&site, |call| {
        for (uri, kind, hint) in [
            ("belljar://hostile/nothing", "not-found", Some("search_resources")),
            ("belljar://nowhere/x", "not-found", None),
            ("no uri", "bad-uri", None),
            ("belljar://hostile/../x", "bad-uri", None),
            ("belljar://hostile/errors/failed%2Fcontrols", "failed", None),
            ("belljar://hostile/trap", "trap", None),
            ("belljar://hostile/spin", "limit", Some("set fuel =")),
            ("belljar://hostile/empty", "bad-output", None),
        ] {
            let result = call("read_resource", json!({ "uri": uri }));
            assert_eq!(result["isError"], json!(true), "{uri}: {result}");
            let error = &result["_meta"]["dev.belljar/error"];
            assert_eq!(error["kind"], kind, "{uri}: {error}");
            let actual = error["hint"].as_str();
            assert!(hint.is_none_or(|hint| actual.is_some_and(|actual| actual.contains(hint))), "{uri}: {error}");
            assert_clean(&texts(&result).join(" ").replace('\n', " "));
        }
    });
}

#[test]
fn list_resources_gives_the_same_entries_as_resources_list() {
    let site = site(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\nenv = { HOSTILE_LIST = \"large\", HOSTILE_TEMPLATES = \"verbs\" }\n",
    );
    for era in Era::ALL {
        let mut client = site.stdio(era);
        let (mut all, mut pages) = (Vec::new(), 0);
        let mut arguments = json!({ "limit": 170 });
        loop {
            let page = ask(&mut client, "list_resources", arguments.clone());
            let listed = uris(&page);
            assert!(listed.len() <= 170);
            all.extend(listed);
            pages += 1;
            match next_cursor(&page) {
                None => break,
                Some(next) => arguments["cursor"] = next.into(),
            }
        }
        assert_eq!(all, client.uris());
        // The list has 10,001 entries. Some pages of the tool have less than 170, because the page of the catalog
        // ended.
        assert!((60..75).contains(&pages), "{pages} pages");

        let one = ask(&mut client, "list_resources", json!({ "mount": "clock" }));
        assert_eq!(uris(&one), [WITNESS]);
        let first = ask(&mut client, "list_resources", json!({ "mount": "hostile", "limit": 1 }));
        assert_eq!(uris(&first), ["belljar://hostile/n/0"]);
        let second = ask(&mut client, "list_resources", json!({ "cursor": next_cursor(&first), "limit": 1 }));
        assert_eq!(uris(&second), ["belljar://hostile/n/1"], "the cursor knows the mount");
        assert_eq!(uris(&ask(&mut client, "list_resources", json!({}))).len(), 50);

        let templates = ask(&mut client, "list_resources", json!({ "templates": true }));
        assert_eq!(uris(&templates), client.templates());
        // A cursor is refused with other arguments: templates, another mount, another limit. Changed cursors are
        // refused, too.
        let cursor = next_cursor(&first).unwrap();
        let all_mounts = ask(&mut client, "list_resources", json!({ "limit": 1 }));
        let cursor_of_all = next_cursor(&all_mounts);
        let cursor_of_method = client.request("resources/list", json!({})).unwrap()["nextCursor"].clone();
        for other in [
            json!({ "cursor": cursor, "templates": true }),
            json!({ "cursor": cursor, "mount": "clock" }),
            json!({ "cursor": cursor, "mount": "clock", "limit": 1 }),
            json!({ "cursor": cursor_of_all, "mount": "hostile", "limit": 1 }),
            json!({ "cursor": cursor, "mount": "hostile", "limit": 2 }),
            json!({ "cursor": cursor, "mount": "hostile", "limit": 50 }),
            json!({ "cursor": cursor_of_method }),
            json!({ "cursor": format!("A{cursor}") }),
            json!({ "cursor": &cursor[..cursor.len() / 2] }),
        ] {
            let error = fail(&mut client, "list_resources", other.clone()).to_string();
            assert!(error.contains("bad-cursor") && error.contains("from the start"), "{other}: {error}");
        }
        let repeated = json!({ "cursor": cursor, "mount": "hostile", "limit": 1 });
        assert_eq!(uris(&ask(&mut client, "list_resources", repeated)), ["belljar://hostile/n/1"]);
        let error = client.request("tools/list", json!({ "cursor": cursor })).expect_err("a cursor of another list");
        assert_eq!((error.code, kind(&error)), (-32602, "bad-cursor"), "{error}");
    }
}

#[test]
fn a_mount_whose_list_fails_is_named() {
    let site = site("[mounts.bad]\ncomponent = \"hostile.wasm\"\nenv = { HOSTILE_LIST = \"trap\" }\n");
    let mut client = serve(&site);
    let result = call(&mut client, "list_resources", json!({}));
    let text = texts(&result)[0];
    assert_eq!(uris(text), [WITNESS]);
    assert!(text.contains("left out: mount \"bad\": left out: ") && text.contains("trapped"), "{text}");
    let gaps = ask(&mut client, "search_resources", json!({ "query": "utc" }));
    assert!(gaps.contains("bad"), "{gaps}");
}

#[test]
fn a_search_links_its_matches() {
    let site = notes("");
    let mut client = serve(&site);
    let listed = ask(&mut client, "list_resources", json!({ "mount": "notes" }));
    assert!(listed.contains("belljar://notes/plan.md \"The \u{c4}rger plan\" (text/markdown, "), "{listed}");
    assert!(listed.contains("\nmount notes:\n"), "{listed}");
    let result = call(&mut client, "search_resources", json!({ "query": "plan", "mount": "notes" }));
    let links: Vec<_> =
        result["content"].as_array().unwrap().iter().filter(|block| block["type"] == "resource_link").collect();
    assert_eq!(links.len(), uris(texts(&result)[0]).len());
    let plan = links.iter().find(|link| link["uri"] == "belljar://notes/plan.md").unwrap();
    assert_eq!((&plan["mimeType"], &plan["title"]), (&json!("text/markdown"), &json!("The \u{c4}rger plan")));
}

#[test]
fn a_long_text_is_read_in_parts() {
    let site = notes("");
    let mut client = serve(&site);
    let whole = client.text("belljar://notes/long.txt");
    let (mut read, mut calls) = (String::new(), 0);
    let mut arguments = json!({ "uri": "belljar://notes/long.txt" });
    loop {
        let part = call(&mut client, "read_resource", arguments.clone());
        let [head, text] = texts(&part)[..] else { panic!("{part}") };
        assert!(head.contains(" of 60000.") && head.contains("mount \"notes\""), "{head}");
        assert!(text.chars().count() <= 20_000);
        read += text;
        calls += 1;
        match next_offset(head) {
            None => break,
            Some(next) => arguments["offset"] = next.into(),
        }
    }
    assert_eq!((read, calls), (whole, 3));
    let result =
        call(&mut client, "read_resource", json!({ "uri": "belljar://notes/long.txt", "offset": 10, "limit": 3 }));
    assert_eq!(texts(&result)[1], "\u{e9}\u{1f600}0");
    assert!(
        texts(&result)[0].contains("Characters 10 to 13 of 60000. To read on, call again with offset = 13."),
        "{result}"
    );
}

#[test]
fn a_part_is_chosen_by_lines_or_by_a_pointer() {
    let site = notes("");
    with_each_client(&site, |call| {
        let mut text = |arguments: Value| {
            let result = call("read_resource", arguments);
            texts(&result).get(1).unwrap_or_else(|| panic!("{result}")).to_string()
        };
        assert_eq!(text(json!({ "uri": "belljar://notes/plan.md", "lines": "3-3" })), "First line.\n");
        assert_eq!(text(json!({ "uri": "belljar://notes/plan.md", "lines": "-1" })), "Second line, with a needle.\n");
        assert_eq!(text(json!({ "uri": "belljar://notes/data.json", "pointer": "/items/1/name" })), "two");
        let result = call("read_resource", json!({ "uri": "belljar://notes/data.json", "pointer": "/items/7" }));
        assert!(texts(&result)[0].contains("an array of 2"), "{result}");
    });
}

#[test]
fn binary_contents_are_described_and_images_are_attached() {
    let site = notes("");
    with_each_client(&site, |call| {
        let result = call("read_resource", json!({ "uri": "belljar://notes/bytes.bin" }));
        let [_, about] = texts(&result)[..] else { panic!("{result}") };
        assert_eq!(about, "belljar://notes/bytes.bin: binary, application/octet-stream, 4B; not shown as text");
        let picture = call("read_resource", json!({ "uri": "belljar://notes/pixel.png" }));
        let image = picture["content"].as_array().unwrap().iter().find(|block| block["type"] == "image");
        let image = image.unwrap_or_else(|| panic!("{picture}"));
        assert_eq!(image["mimeType"], "image/png");
    });
}

#[test]
fn a_search_names_the_field_of_a_match() {
    let site = notes("");
    with_each_client(&site, |call| {
        let mut search = |arguments: Value| texts(&call("search_resources", arguments)).join("\n");
        let found = search(json!({ "query": "\u{e4}RGER plan" }));
        assert_eq!(uris(&found), ["belljar://notes/plan.md"]);
        assert!(found.contains("\n  in its title: "), "{found}");
        let found = search(json!({ "query": "CAF\u{c9} 2026" }));
        assert_eq!(uris(&found), ["belljar://notes/2026/caf%C3%A9%20menu.txt"]);
        assert!(search(json!({ "query": "plan absent" })).starts_with("No matches."));
        // belljar does not search contents without the operator's permission, and the result says so.
        let found = search(json!({ "query": "needle", "content": true }));
        assert!(found.starts_with("No matches.") && found.contains("into the contents of 0."), "{found}");
        assert!(found.contains("search = true under [mounts.NAME]"), "{found}");
    });
}

#[test]
fn contents_are_searched_where_the_operator_allows_it() {
    let site = notes("search = true\n");
    with_each_client(&site, |call| {
        let mut search = |arguments: Value| texts(&call("search_resources", arguments)).join("\n");
        assert!(
            search(json!({ "query": "needle" })).starts_with("No matches."),
            "contents are searched only with content = true"
        );
        // One word is in the title, and the other word is in the text.
        let found = search(json!({ "query": "plan NEEDLE", "content": true }));
        assert_eq!(uris(&found), ["belljar://notes/plan.md"]);
        let snippet = "\n  in its contents: # The \u{c4}rger plan First line. Second line, with a needle.\n";
        assert!(found.contains(snippet), "{found}");
        let quiche = search(json!({ "query": "quiche", "content": true, "mount": "notes" }));
        assert_eq!(uris(&quiche), ["belljar://notes/2026/caf%C3%A9%20menu.txt"]);
        let none = search(json!({ "query": "quiche", "content": true, "mount": "clock" }));
        assert!(none.starts_with("No matches."), "{none}");
    });
    let records = site.audit();
    assert!(
        records.iter().any(|record| record["operation"] == "read" && record["mount"] == "notes"),
        "the record contains the reads of the search"
    );
}

/// A site with a mount `hostile` that lists the references in `lines`. `more` has further lines of the configuration.
fn site_with_list(lines: &str, more: &str) -> Site {
    let site = site(&format!(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\nsearch = true\nenv = {{ HOSTILE_LIST = \"/list/list\" }}\nfs = {{ \"/list\" = \"list\" }}\n{more}"
    ));
    site.write("list/list", lines);
    site
}

#[test]
fn a_search_ends_in_time_and_names_its_gaps() {
    // Half of the resources sleep for 500 seconds, and the others answer at once.
    let lines: String =
        (0..300).map(|n| if n % 2 == 0 { format!("sleep/{}\n", 500_000 + n) } else { format!("text/{n}\n") }).collect();
    let site = site_with_list(&lines, "[mounts.hostile.limits]\ntime = \"600s\"\nconcurrency = 4\n");
    let mut client = serve(&site);
    // A sleeping resource takes longer than the deadline of the test. So the search must end without it.
    let found = ask(&mut client, "search_resources", json!({ "query": "xx", "content": true }));
    assert!(
        found.contains("there was no time") && found.contains("contents of 100 resources: one search reads 200"),
        "{found}"
    );

    // Half of the resources crash. The result says so, and contains the others.
    let lines: String =
        (0..60).map(|n| if n % 2 == 0 { format!("trap/{n}\n") } else { format!("text/{n}\n") }).collect();
    let site = site_with_list(&lines, "");
    let mut client = serve(&site);
    let found = ask(&mut client, "search_resources", json!({ "query": "xxxxx", "content": true, "limit": 50 }));
    assert!(found.contains("they could not be read") && !uris(&found).is_empty(), "{found}");
}

/// The text of a provider cannot end its own quotation, and its size in a result is bounded.
#[test]
fn text_of_a_hostile_provider_is_quoted_and_bounded() {
    for how in ["dressed", "garbage", "spoof", "duplicates"] {
        let site = site(&format!(
            "[mounts.bad]\ncomponent = \"hostile.wasm\"\nsearch = true\nenv = {{ HOSTILE_LIST = {how:?} }}\n"
        ));
        let mut client = serve(&site);
        for (name, arguments) in [
            ("list_resources", json!({ "limit": 200 })),
            ("search_resources", json!({ "query": "visible", "content": true })),
            ("search_resources", json!({ "query": "\u{202e}\u{1b}[31m" })),
        ] {
            let result = call(&mut client, name, arguments);
            for text in texts(&result) {
                text.lines().for_each(assert_clean);
            }
            if name == "list_resources" {
                let text = texts(&result)[0];
                let bad =
                    text.split_once("mount bad:").map_or("", |(_, bad)| bad.split("mount clock:").next().unwrap());
                assert!(!uris(bad).iter().any(|uri| uri.starts_with("belljar://clock/")), "{text}");
            }
        }
        if how == "dressed" {
            let listed = ask(&mut client, "list_resources", json!({ "mount": "bad" }));
            let line = listed.lines().find(|line| line.starts_with("belljar://bad/")).unwrap();
            let title = line.split_once(" \"").unwrap().1;
            assert!(title.starts_with("visible") && title.chars().count() <= 122, "{line:?}");
        }
        let read = call(&mut client, "read_resource", json!({ "uri": "belljar://bad/dressed" }));
        let [head, text] = texts(&read)[..] else { panic!("{read}") };
        text.lines().for_each(assert_clean);
        assert!(text.starts_with("visible[31m") && text.ends_with("end"), "{text:?}");
        let (before, _) = head.split_once(" characters that hide").unwrap();
        assert!(before.rsplit(' ').next().unwrap().parse::<u64>().unwrap() >= 9, "{head}");
    }
    // Use the longest possible entries, and the highest limit.
    let site = site_with_list(&(0..400).map(|n| format!("{n}{}\n", "x".repeat(2000))).collect::<String>(), "");
    let mut client = serve(&site);
    let result = call(&mut client, "list_resources", json!({ "limit": 200, "mount": "hostile" }));
    assert!(result.to_string().len() < 400_000, "{}", result.to_string().len());
    assert!(next_cursor(texts(&result)[0]).is_some());
    let many = call(&mut client, "read_resource", json!({ "uri": "belljar://hostile/many/9000" }));
    assert!(many.to_string().len() < 50_000, "{}", many.to_string().len());
    assert!(texts(&many)[0].ends_with(" 8950 more contents are not shown."), "{}", texts(&many)[0]);
    let long = call(&mut client, "read_resource", json!({ "uri": "belljar://hostile/text/4000000", "limit": 100_000 }));
    assert!(long.to_string().len() < 300_000, "{}", long.to_string().len());
}

/// A read by a tool asks for consent like any other read, and has the same record.
#[test]
fn a_read_asks_for_consent() {
    let site = site(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = true\nfs = { \"/notes\" = { path = \"notes\", ask = true } }\n",
    );
    site.write("notes/plan", "the plan");
    let mut client = serve(&site);
    let uri = "belljar://hostile/need/%252Fnotes%252Fplan";
    let with_elicitation = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let params = json!({ "name": "read_resource", "arguments": { "uri": uri }, "_meta": with_elicitation });
    let asked = question(&client.request("tools/call", params.clone()).unwrap());
    assert!(asked.message.contains(uri), "{}", asked.message);
    let mut again = params;
    let answered = answer(uri, &asked.state, chosen("once"));
    again["requestState"] = answered["requestState"].clone();
    again["inputResponses"] = answered["inputResponses"].clone();
    let result = client.request("tools/call", again.clone()).unwrap();
    assert_eq!(texts(&result)[1], "the plan", "{result}");
    // belljar accepts a `requestState` once.
    let second = client.request("tools/call", again).unwrap();
    assert_eq!(second["_meta"]["dev.belljar/error"]["kind"], "bad-state", "{second}");

    // A client without elicitation cannot ask its user. It gets an error with the command for the operator.
    let params = json!({ "name": "read_resource", "arguments": { "uri": uri } });
    let denied = client.request("tools/call", params).expect_err("a client without elicitation");
    assert_eq!((denied.code, kind(&denied)), (-32021, "denied"), "{denied}");
    assert!(denied.data["hint"].as_str().unwrap().contains("belljar grant hostile"), "{denied}");
    client.close();
    let reads: Vec<_> = site.audit().into_iter().filter(|record| record["mount"] == "hostile").collect();
    assert!(reads.iter().all(|record| record["operation"] == "read"), "{reads:?}");
    assert!(
        reads.iter().all(|record| record["caller"]["client"].as_str().unwrap().starts_with("belljar-tests")),
        "{reads:?}"
    );
}

/// Cancelling a search ends its calls of the provider.
#[test]
fn a_search_can_be_cancelled() {
    let lines: String = (0..8).map(|n| format!("sleep/{}\n", 500_000 + n)).collect();
    let site = site_with_list(&lines, "[mounts.hostile.limits]\ntime = \"600s\"\nqueue = \"600s\"\nconcurrency = 4\n");
    let mut client: Client<Stdio> = serve(&site);
    let id = client
        .send("tools/call", json!({ "name": "search_resources", "arguments": { "query": "slept", "content": true } }));
    std::thread::sleep(Duration::from_millis(500));
    client.cancel(id);
    // The mount can run four calls at once, and the search used all of them. Without the cancellation, its calls would
    // sleep for longer than the deadline of the test.
    for _ in 0..4 {
        assert_eq!(client.text("belljar://hostile/ok"), "fine");
    }
}
