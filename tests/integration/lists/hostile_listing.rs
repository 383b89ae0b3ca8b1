//! Rows of the hostile table (`tests/integration/hostile`) about lists: entries that belong to another mount, lists
//! without an end, and misleading entries.

use std::time::Duration;

use belljar_tests::SharedStdio;
use serde_json::{Value, json};

use crate::expect::{cut, is_clean, kind};
use crate::row::{Guest, Row, RunMode, Stops, assembled, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{check, deadline, listed, read_text, within};

/// A row with a hostile guest whose lists attack as `how` says, in a process of its own.
fn lists(id: &'static str, attack: &'static str, how: &str) -> Row {
    hostile_guest(id, attack).config(&format!("env = {{ {how} }}")).run_mode(RunMode::Stdio).time(2000)
}

/// The references that the row's mount lists.
fn own_references(context: &RowContext<'_>, pages: usize) -> Vec<String> {
    let base = context.uri("");
    relative(&listed(context.stdio(), "resources/list", "resources", pages), "uri", &base)
}

/// The URIs or templates of the entries below `base`, without `base`.
fn relative(entries: &[Value], key: &str, base: &str) -> Vec<String> {
    let all = entries.iter().filter_map(|entry| entry[key].as_str());
    all.filter_map(|uri| uri.strip_prefix(base)).map(str::to_owned).collect()
}

/// The entry of the row's mount with this reference.
fn entry(context: &RowContext<'_>, reference: &str) -> Value {
    let uri = context.uri(reference);
    let all = listed(context.stdio(), "resources/list", "resources", 10);
    all.into_iter().find(|entry| entry["uri"] == *uri).unwrap_or_else(|| panic!("{uri} is not listed"))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        lists("CAT-01", "a provider lists names that belong to other mounts", "HOSTILE_LIST = \"spoof\"")
            .mount("inner", Guest::Built("guest_hostile"))
            .config("uri = \"belljar://cat-01/inner/\"")
            .act(|context| {
                let all = listed(context.stdio(), "resources/list", "resources", 10);
                let entries: Vec<_> =
                    all.iter().filter(|entry| entry["_meta"]["dev.belljar/mount"] == "cat-01").collect();
                let uris: Vec<_> = entries.iter().filter_map(|entry| entry["uri"].as_str()).collect();
                assert_eq!(uris, ["belljar://cat-01/own"], "the mount lists more than its own name");
                "only its own entry".to_owned()
            })
            .stopped_by(&["namespace", "reference"]),
        lists("CAT-02", "a list without an end", "HOSTILE_LIST = \"endless\"")
            .limits("resources = 3000")
            .settings("list-time = \"2s\"")
            .keeps(64)
            .act(|context| {
                let all = own_references(context, 12);
                assert!(all.len() <= 3000, "{} entries", all.len());
                let is_logged = || {
                    let log = context.running.process().stderr();
                    log.contains("more than 3000 resources") && log.contains("[mounts.cat-02.limits]")
                };
                assert!(within(Duration::from_secs(10), is_logged), "the log does not name the cure");
                format!("cut at {} entries", all.len())
            })
            .stopped_by(&["entries"]),
        lists("CAT-03", "cursors that repeat, are too long, or are forged", "HOSTILE_LIST = \"echo\"")
            .mount("long", Guest::Built("guest_hostile"))
            .config("env = { HOSTILE_LIST = \"long-cursor\" }")
            .act(cursors)
            .stopped_by(&["cursor", "seal"]),
        lists(
            "CAT-15",
            "lists with repeated pages, or with endless pages that have no new entry",
            "HOSTILE_LIST = \"circle\"",
        )
        .mount("large", Guest::Built("guest_hostile"))
        .config("env = { HOSTILE_LIST = \"large-circle\" }")
        .mount("empty", Guest::Built("guest_hostile"))
        .config("env = { HOSTILE_LIST = \"endless-empty\" }")
        .mount("unfit", Guest::Built("guest_hostile"))
        .config("env = { HOSTILE_LIST = \"endless-unfit\" }")
        .mount("same", Guest::Built("guest_hostile"))
        .config("env = { HOSTILE_LIST = \"endless-same\" }")
        .mount("trickle", Guest::Built("guest_hostile"))
        .config("env = { HOSTILE_LIST = \"trickle\" }")
        .settings("list-time = \"20s\"")
        .keeps(64)
        .act(lists_without_progress)
        .stopped_by(&["cursor"]),
        lists("CAT-04", "the same name again and again", "HOSTILE_LIST = \"duplicates\"")
            .act(|context| {
                let all = own_references(context, 10);
                assert_eq!(all, ["first", "twice", "last"], "the listed references");
                "each name once".to_owned()
            })
            .stopped_by(&["duplicates"]),
        lists(
            "CAT-05",
            "names that are no valid references: spaces, control characters, other schemes, a megabyte",
            "HOSTILE_LIST = \"garbage\"",
        )
        .act(|context| {
            assert_eq!(own_references(context, 10), ["good/first", "good/last"], "the listed references");
            "only the two valid names".to_owned()
        })
        .stopped_by(&["reference"]),
        lists(
            "CAT-06",
            "terminal commands and hidden characters in names and descriptions",
            "HOSTILE_LIST = \"dressed\", HOSTILE_DESCRIBE = \"dressed\"",
        )
        .act(|context| {
            let entry = entry(context, "dressed");
            for key in ["name", "title", "description"] {
                let text = entry[key].as_str().unwrap_or_default();
                assert!(text.starts_with("visible") && is_clean(text), "{key}: {}", cut(&format!("{text:?}")));
            }
            let log = context.stdio().process.stderr();
            assert!(
                !log.contains('\u{1b}') && !log.contains('\u{202e}'),
                "the log has characters that control a terminal"
            );
            "cleaned".to_owned()
        })
        .stopped_by(&["sanitising"]),
        lists("CAT-07", "a description of 100,000 characters, a name of 5,000", "HOSTILE_LIST = \"dressed\"")
            .act(|context| {
                let entry = entry(context, "dressed");
                let length = |key: &str| entry[key].as_str().map_or(0, |text| text.chars().count());
                let (name, description) = (length("name"), length("description"));
                assert!(name <= 256 && description <= 4096, "a name of {name}, a description of {description}");
                format!("cut to {name} and {description}")
            })
            .stopped_by(&["sanitising"]),
        lists("CAT-08", "templates that match all names, or names of other mounts", "HOSTILE_TEMPLATES = \"capture\"")
            .mount("inner", Guest::Built("guest_hostile"))
            .config("uri = \"belljar://cat-08/inner/\"")
            .act(|context| {
                assert_eq!(templates(context), ["mine/{id}"], "the listed templates");
                let uri = "belljar://witness/static-text";
                assert!(read_text(context.stdio(), uri).starts_with("This is the content"));
                "only templates below its own base".to_owned()
            })
            .stopped_by(&["reference", "namespace"]),
        lists("CAT-09", "a template with 500 variables, a list of 2,000 templates", "HOSTILE_TEMPLATES = \"long\"")
            .mount("many", Guest::Built("guest_hostile"))
            .config("env = { HOSTILE_TEMPLATES = \"many\" }")
            .act(|context| {
                assert_eq!(templates(context), ["{ok}"], "the listed templates");
                let many = listed(context.stdio(), "resources/templates/list", "resourceTemplates", 10);
                let many = relative(&many, "uriTemplate", &context.uri_of("many", ""));
                assert!(many.len() <= 1000, "{} templates", many.len());
                "one template; the list of 2,000 templates is left out".to_owned()
            })
            .stopped_by(&["reference", "entries"]),
        lists(
            "CAT-10",
            "instructions to the model in descriptions and contents",
            "HOSTILE_LIST = \"dressed\", HOSTILE_DESCRIBE = \"dressed\"",
        )
        .act(|context| {
            let id = context.send("server/discover", json!({}));
            let greeting = context.wait(id).expect("a greeting").to_string();
            assert!(!greeting.contains("visible") && greeting.contains("not instructions"), "{}", cut(&greeting));
            assert_eq!(entry(context, "dressed")["_meta"]["dev.belljar/mount"], context.name(""));
            let answer = context.read("ok").expect("an answer");
            let meta = &answer["contents"][0]["_meta"];
            assert_eq!(meta["dev.belljar/mount"], context.name(""));
            assert!(meta["dev.belljar/digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:")));
            "passed on as data, with the mount and the digest".to_owned()
        })
        .stopped(Stops::Structure("the server's own texts never contain texts of a provider")),
        lists("CAT-12", "invalid sizes, types, icons and dates", "HOSTILE_LIST = \"dressed\"")
            .act(|context| {
                let entry = entry(context, "dressed");
                assert_eq!(
                    (&entry["size"], &entry["mimeType"]),
                    (&Value::Null, &Value::Null),
                    "{}",
                    cut(&entry.to_string())
                );
                let icons = entry["icons"].as_array().map_or(0, Vec::len);
                assert!(icons <= 8 && !entry.to_string().contains("javascript:"), "{icons} icons");
                assert!(entry["annotations"]["lastModified"].is_null());
                "left out".to_owned()
            })
            .stopped_by(&["fields", "mime"]),
        hostile_guest("CAT-13", "files whose names are paths, terminal commands, or look like another name")
            .prepare(|site| {
                for name in BAD_NAMES {
                    site.drop_in(name, "not looked at");
                }
            })
            .run_mode(RunMode::Unstarted)
            .act(|context| {
                let checked = check(context);
                let refused = checked["refused"].as_array().cloned().unwrap_or_default();
                let count = |why: &str| {
                    refused.iter().filter(|r| r["reason"].as_str().is_some_and(|r| r.contains(why))).count()
                };
                assert!(
                    refused.len() == BAD_NAMES.len() && count("mount name") == BAD_NAMES.len(),
                    "{}",
                    cut(&checked.to_string())
                );
                assert!(
                    refused.iter().all(|r| is_clean(r["name"].as_str().unwrap_or("\u{1b}"))),
                    "{}",
                    cut(&checked.to_string())
                );
                context.site().config("[mounts.\"../x\"]\ncomponent = \"guest_hostile.wasm\"");
                let (is_accepted, _) = crate::tools::run(context, &["check"]);
                assert!(!is_accepted, "a mount \"../x\" is accepted");
                format!("{} refused by name", refused.len())
            })
            .stopped_by(&["name", "sanitising"]),
        hostile_guest("CAT-14", "a provider uses names below the base of another mount that lies inside its own base")
            .config("env = { HOSTILE_TEMPLATES = \"below\", HOSTILE_COMPLETE = \"below\" }")
            .mount("inner", Guest::Built("guest_hostile"))
            .config("uri = \"belljar://cat-14/below/x/\"")
            .mount("broken", assembled(|| b"no component".to_vec()))
            .config("uri = \"belljar://cat-14/below/y/\"")
            .run_mode(RunMode::Stdio)
            .act(nested)
            .stopped_by(&["namespace"]),
    ]
}

/// The outer of two nested mounts must not serve names of the inner one.
fn nested(context: &RowContext<'_>) -> String {
    let refused = |reference: &str, kinds: &[&str]| match context.read(reference) {
        Err(error) if kinds.contains(&kind(&error)) => {}
        other => panic!("{reference}: {other:?}"),
    };
    // It may answer for names below its own names, but not below those of another mount, even if that mount is not
    // served.
    let own = context.read("below/z").expect("contents of its own");
    assert_eq!(own["contents"][0]["uri"], context.uri("below/z/q"));
    refused("below/x", &["bad-output"]);
    refused("below/y", &["bad-output"]);
    // The outer mount must not answer for other spellings of the inner mount's names.
    for encoded in ["b%65low/x/below/q", "below/%78/q", "%62%65low/y/q", "below/%79/"] {
        refused(encoded, &["bad-uri", "not-found"]);
    }
    assert_eq!(templates(context), ["{+any}", "below/{any}"], "templates of its own");
    let template = context.uri("{+any}");
    let params = json!({
        "ref": { "type": "ref/resource", "uri": template }, "argument": { "name": "any", "value": "" },
    });
    let suggestions = context.request("completion/complete", params).expect("suggestions");
    assert_eq!(suggestions["completion"]["values"], json!(["below/x", "own"]), "suggestions of its own");
    "only its own names".to_owned()
}

/// File names from which no mount can be made.
const BAD_NAMES: [&str; 7] = [
    "a b.wasm",
    "-x.wasm",
    "\u{1b}[31mred.wasm",
    "caf\u{e9}.wasm",
    "x\\y.wasm",
    "x\u{202e}y.wasm",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.wasm",
];

/// The templates that the row's mount lists.
fn templates(context: &RowContext<'_>) -> Vec<String> {
    let all = listed(context.stdio(), "resources/templates/list", "resourceTemplates", 10);
    relative(&all, "uriTemplate", &context.uri(""))
}

/// Wrong cursors of providers, and forged cursors of a client.
fn cursors(context: &RowContext<'_>) -> String {
    assert_eq!(own_references(context, 20), ["ok"], "the list with repeated cursors");
    let all = listed(context.stdio(), "resources/list", "resources", 20);
    assert_eq!(relative(&all, "uri", &context.uri_of("long", "")), ["ok"], "the list with a long cursor");
    let long = "A".repeat(100_000);
    // A forged cursor in belljar's format: base64 of a JSON list, and sixteen bytes in place of the authentication tag.
    let forged = "WyJjYXQtMDMiLG51bGwsMCwwLDAsMCwwXQAAAAAAAAAAAAAAAAAAAAA";
    for cursor in ["", "x", "AAAA", "\u{0}", "../..", forged, &long] {
        assert_cursor_refused(context.stdio(), cursor);
    }
    "lists are cut, forged cursors are refused".to_owned()
}

/// The most calls for one list. An honest list of this length needs fewer.
const MAX_CALLS: u64 = 400;

/// Fetches the list and runs a search. Counts the calls of each mount, and their lines in the record.
fn lists_without_progress(context: &RowContext<'_>) -> String {
    let base = context.uri("");
    let mut pages = 0u64;
    let (mut params, mut notices) = (json!({}), Vec::new());
    loop {
        let id = context.stdio().send("resources/list", params);
        let (page, _) = context.stdio().wait(id, deadline(Duration::from_secs(60))).expect("a page");
        let page = page.unwrap_or_else(|error| panic!("{error}"));
        pages += 1;
        notices.extend(page["_meta"]["dev.belljar/notices"].as_array().cloned().unwrap_or_default());
        match &page["nextCursor"] {
            Value::Null => break,
            _ if pages >= 20 => panic!("the list has no end"),
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    let arguments = json!({ "name": "search_resources", "arguments": { "query": "nowhere" } });
    let id = context.stdio().send("tools/call", arguments);
    context.stdio().wait(id, deadline(Duration::from_secs(60))).expect("an answer").0.expect("a result");
    let mut most = 0;
    for suffix in ["", "large", "empty", "unfit", "same", "trickle"] {
        let uri = if suffix.is_empty() { base.clone() } else { context.uri_of(suffix, "") };
        let name = uri.trim_start_matches("belljar://").trim_end_matches('/').to_owned();
        let records = || -> Vec<Value> {
            let own = |record: &Value| record["mount"] == *name && record["operation"] == "list-resources";
            context.site().audit().into_iter().filter(own).collect()
        };
        // belljar writes a record shortly after it sends the answer.
        assert!(within(Duration::from_secs(20), || records().iter().any(|record| record["outcome"] == "bad-output")));
        let records = records();
        let calls: u64 = records.iter().map(|record| record["calls"].as_u64().unwrap_or(1)).sum();
        // The search may fetch the list a second time.
        assert!(calls <= 2 * MAX_CALLS, "{name}: {calls} calls");
        assert!(records.len() as u64 <= pages + 1, "{name}: {} lines for {pages} pages and a search", records.len());
        let is_own = |notice: &&Value| {
            notice["mount"] == *name
                && notice["reason"].as_str().is_some_and(|why| why.starts_with("cut: list-resources"))
        };
        assert!(notices.iter().any(|notice| is_own(&notice)), "{name}: {notices:?}");
        most = most.max(calls);
    }
    format!("cut after at most {most} calls, with a notice for each list")
}

/// Asserts that belljar refuses a client's cursor.
fn assert_cursor_refused(line: &SharedStdio, cursor: &str) {
    let id = line.send("resources/list", json!({ "cursor": cursor }));
    let (answer, _) = line.wait(id, deadline(Duration::from_secs(20))).expect("an answer");
    let error = answer.expect_err("a forged cursor was accepted");
    assert!(error.code == -32602 && kind(&error) == "bad-cursor", "{error}");
}
