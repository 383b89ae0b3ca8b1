//! The catalog: what a provider lists that is not its own, has no end, or is made to mislead.

use std::time::Duration;

use belljar_tests::Line;
use serde_json::{Value, json};

use crate::expect::{cut, is_clean, kind};
use crate::row::{Guest, Row, Stops, Way, hand, imp};
use crate::scene::Scene;
use crate::tools::{check, listed, read_text};

/// A row about the imp that lists as `how` says, in a process of its own.
fn lists(id: &'static str, attack: &'static str, how: &str) -> Row {
    imp(id, attack).config(&format!("env = {{ {how} }}")).way(Way::Stdio).time(2000)
}

/// The URIs that the row's mount lists.
fn own(scene: &Scene<'_>, pages: usize) -> Vec<String> {
    let base = scene.uri("");
    of(&listed(scene.line(), "resources/list", "resources", pages), "uri", &base)
}

fn of(entries: &[Value], key: &str, base: &str) -> Vec<String> {
    let all = entries.iter().filter_map(|entry| entry[key].as_str());
    all.filter_map(|uri| uri.strip_prefix(base)).map(str::to_owned).collect()
}

/// The entry of the row's mount with this reference.
fn entry(scene: &Scene<'_>, reference: &str) -> Value {
    let uri = scene.uri(reference);
    let all = listed(scene.line(), "resources/list", "resources", 10);
    all.into_iter().find(|entry| entry["uri"] == *uri).unwrap_or_else(|| panic!("{uri} is not listed"))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        lists("CAT-01", "a provider lists names that belong to others", "IMP_LIST = \"spoof\"")
            .mount("inner", Guest::Built("guest_imp"))
            .config("uri = \"belljar://cat-01/inner/\"")
            .act(|scene| {
                let all = listed(scene.line(), "resources/list", "resources", 10);
                let theirs: Vec<_> =
                    all.iter().filter(|entry| entry["_meta"]["dev.belljar/mount"] == "cat-01").collect();
                let uris: Vec<_> = theirs.iter().filter_map(|entry| entry["uri"].as_str()).collect();
                assert_eq!(uris, ["belljar://cat-01/own"], "what it lists");
                "its own entry only".to_owned()
            })
            .stopped_by(&["namespace", "reference"]),
        lists("CAT-02", "a listing without an end", "IMP_LIST = \"endless\"")
            .limits("resources = 3000")
            .settings("list-time = \"2s\"")
            .keeps(64)
            .act(|scene| {
                let all = own(scene, 12);
                assert!(all.len() <= 3000, "{} entries", all.len());
                format!("cut at {} entries", all.len())
            })
            .stopped_by(&["entries"]),
        lists("CAT-03", "cursors that lead in a circle, are too long, or are made up", "IMP_LIST = \"echo\"")
            .mount("long", Guest::Built("guest_imp"))
            .config("env = { IMP_LIST = \"long-cursor\" }")
            .act(cursors)
            .stopped_by(&["cursor", "seal"]),
        lists("CAT-15", "lists that go in circles, or forward for ever with nothing new", "IMP_LIST = \"circle\"")
            .mount("large", Guest::Built("guest_imp"))
            .config("env = { IMP_LIST = \"large-circle\" }")
            .mount("empty", Guest::Built("guest_imp"))
            .config("env = { IMP_LIST = \"endless-empty\" }")
            .mount("unfit", Guest::Built("guest_imp"))
            .config("env = { IMP_LIST = \"endless-unfit\" }")
            .mount("same", Guest::Built("guest_imp"))
            .config("env = { IMP_LIST = \"endless-same\" }")
            .mount("trickle", Guest::Built("guest_imp"))
            .config("env = { IMP_LIST = \"trickle\" }")
            .settings("list-time = \"20s\"")
            .keeps(64)
            .act(barren)
            .stopped_by(&["cursor"]),
        lists("CAT-04", "the same name again and again", "IMP_LIST = \"duplicates\"")
            .act(|scene| {
                let all = own(scene, 10);
                assert_eq!(all, ["first", "twice", "last"], "what is listed");
                "each once".to_owned()
            })
            .stopped_by(&["duplicates"]),
        lists(
            "CAT-05",
            "names that are no references: spaces, controls, other schemes, a megabyte",
            "IMP_LIST = \"garbage\"",
        )
        .act(|scene| {
            assert_eq!(own(scene, 10), ["good/first", "good/last"], "what is listed");
            "the two good ones".to_owned()
        })
        .stopped_by(&["reference"]),
        lists(
            "CAT-06",
            "terminal commands and hidden letters in names and descriptions",
            "IMP_LIST = \"dressed\", IMP_DESCRIBE = \"dressed\"",
        )
        .act(|scene| {
            let entry = entry(scene, "dressed");
            for key in ["name", "title", "description"] {
                let text = entry[key].as_str().unwrap_or_default();
                assert!(text.starts_with("visible") && is_clean(text), "{key}: {}", cut(&format!("{text:?}")));
            }
            let log = scene.line().process.stderr();
            assert!(!log.contains('\u{1b}') && !log.contains('\u{202e}'), "in the log");
            "cleaned".to_owned()
        })
        .stopped_by(&["words"]),
        lists("CAT-07", "a description of 100,000 characters, a name of 5,000", "IMP_LIST = \"dressed\"")
            .act(|scene| {
                let entry = entry(scene, "dressed");
                let length = |key: &str| entry[key].as_str().map_or(0, |text| text.chars().count());
                let (name, description) = (length("name"), length("description"));
                assert!(name <= 256 && description <= 4096, "a name of {name}, a description of {description}");
                format!("cut to {name} and {description}")
            })
            .stopped_by(&["words"]),
        lists("CAT-08", "templates that match everything, or the names of others", "IMP_TEMPLATES = \"capture\"")
            .mount("inner", Guest::Built("guest_imp"))
            .config("uri = \"belljar://cat-08/inner/\"")
            .act(|scene| {
                assert_eq!(templates(scene), ["mine/{id}"], "what is offered");
                let uri = "belljar://witness/static-text";
                assert!(read_text(scene.line(), uri).starts_with("This is the content"));
                "below its own base only".to_owned()
            })
            .stopped_by(&["reference", "namespace"]),
        lists("CAT-09", "a template with 500 variables, a list of 2,000 templates", "IMP_TEMPLATES = \"long\"")
            .mount("many", Guest::Built("guest_imp"))
            .config("env = { IMP_TEMPLATES = \"many\" }")
            .act(|scene| {
                assert_eq!(templates(scene), ["{ok}"], "what is offered");
                let many = listed(scene.line(), "resources/templates/list", "resourceTemplates", 10);
                let many = of(&many, "uriTemplate", &scene.uri_of("many", ""));
                assert!(many.len() <= 1000, "{} templates", many.len());
                "one; the list of 2,000 is left out".to_owned()
            })
            .stopped_by(&["reference", "entries"]),
        lists(
            "CAT-10",
            "instructions to the model in descriptions and contents",
            "IMP_LIST = \"dressed\", IMP_DESCRIBE = \"dressed\"",
        )
        .act(|scene| {
            let id = scene.send("server/discover", json!({}));
            let greeting = scene.wait(id).expect("a greeting").to_string();
            assert!(!greeting.contains("visible") && greeting.contains("not instructions"), "{}", cut(&greeting));
            assert_eq!(entry(scene, "dressed")["_meta"]["dev.belljar/mount"], scene.name(""));
            let answer = scene.read("ok").expect("an answer");
            let meta = &answer["contents"][0]["_meta"];
            assert_eq!(meta["dev.belljar/mount"], scene.name(""));
            assert!(meta["dev.belljar/digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:")));
            "told as data, with where it comes from".to_owned()
        })
        .stopped(Stops::Structure("the server's own words never hold a provider's")),
        lists("CAT-12", "sizes, types, icons and dates that cannot be", "IMP_LIST = \"dressed\"")
            .act(|scene| {
                let entry = entry(scene, "dressed");
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
        imp("CAT-13", "files whose names are paths, terminal commands or another's name")
            .prepare(|site| {
                for name in BAD_NAMES {
                    site.drop_in(name, "not looked at");
                }
            })
            .way(Way::Unstarted)
            .act(|scene| {
                let checked = check(scene);
                let refused = checked["refused"].as_array().cloned().unwrap_or_default();
                let told = |why: &str| {
                    refused.iter().filter(|r| r["reason"].as_str().is_some_and(|r| r.contains(why))).count()
                };
                assert!(
                    refused.len() == BAD_NAMES.len() && told("mount name") == BAD_NAMES.len(),
                    "{}",
                    cut(&checked.to_string())
                );
                assert!(
                    refused.iter().all(|r| is_clean(r["name"].as_str().unwrap_or("\u{1b}"))),
                    "{}",
                    cut(&checked.to_string())
                );
                scene.site().config("[mounts.\"../x\"]\ncomponent = \"guest_imp.wasm\"");
                let (fine, _) = crate::tools::run(scene, &["check"]);
                assert!(!fine, "a mount \"../x\" is accepted");
                format!("{} refused by name", refused.len())
            })
            .stopped_by(&["name", "words"]),
        imp("CAT-14", "a provider answers, lists, offers and completes below another's base, which lies in its own")
            .config("env = { IMP_TEMPLATES = \"below\", IMP_COMPLETE = \"below\" }")
            .mount("inner", Guest::Built("guest_imp"))
            .config("uri = \"belljar://cat-14/below/x/\"")
            .mount("broken", hand(|| b"no component".to_vec()))
            .config("uri = \"belljar://cat-14/below/y/\"")
            .way(Way::Stdio)
            .act(nested)
            .stopped_by(&["namespace"]),
    ]
}

/// What the outer one of two nested mounts says of the inner one's names.
fn nested(scene: &Scene<'_>) -> String {
    let refused = |reference: &str, kinds: &[&str]| match scene.read(reference) {
        Err(error) if kinds.contains(&kind(&error)) => {}
        other => panic!("{reference}: {other:?}"),
    };
    // Below its own names it may; below those of another, served or not, it may not.
    let own = scene.read("below/z").expect("contents of its own");
    assert_eq!(own["contents"][0]["uri"], scene.uri("below/z/q"));
    refused("below/x", &["bad-output"]);
    refused("below/y", &["bad-output"]);
    // The same names in other letters: nobody but their owner answers to them.
    for disguised in ["b%65low/x/below/q", "below/%78/q", "%62%65low/y/q", "below/%79/"] {
        refused(disguised, &["bad-uri", "not-found"]);
    }
    assert_eq!(templates(scene), ["{+any}", "below/{any}"], "templates of its own");
    let template = scene.uri("{+any}");
    let params = json!({
        "ref": { "type": "ref/resource", "uri": template }, "argument": { "name": "any", "value": "" },
    });
    let offered = scene.request("completion/complete", params).expect("suggestions");
    assert_eq!(offered["completion"]["values"], json!(["below/x", "own"]), "suggestions of its own");
    "its own names only".to_owned()
}

/// Names that make no mount.
const BAD_NAMES: [&str; 7] = [
    "a b.wasm",
    "-x.wasm",
    "\u{1b}[31mred.wasm",
    "caf\u{e9}.wasm",
    "x\\y.wasm",
    "x\u{202e}y.wasm",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.wasm",
];

fn templates(scene: &Scene<'_>) -> Vec<String> {
    let all = listed(scene.line(), "resources/templates/list", "resourceTemplates", 10);
    of(&all, "uriTemplate", &scene.uri(""))
}

/// Cursors of providers, and of clients.
fn cursors(scene: &Scene<'_>) -> String {
    assert_eq!(own(scene, 20), ["ok"], "a circle");
    let all = listed(scene.line(), "resources/list", "resources", 20);
    assert_eq!(of(&all, "uri", &scene.uri_of("long", "")), ["ok"], "a long cursor");
    let long = "A".repeat(100_000);
    // A position, as belljar writes one, that nobody sealed: in base64 of a list, with sixteen bytes behind it.
    let made = "WyJjYXQtMDMiLG51bGwsMCwwLDAsMCwwXQAAAAAAAAAAAAAAAAAAAAA";
    for cursor in ["", "x", "AAAA", "\u{0}", "../..", made, &long] {
        refused(scene.line(), cursor);
    }
    "cut, and refused".to_owned()
}

/// Calls that a good list of that many entries never needs.
const TOO_MANY: u64 = 400;

/// Lists, searches, and counts the calls that came of it, and the lines on record.
fn barren(scene: &Scene<'_>) -> String {
    let base = scene.uri("");
    let mut pages = 0u64;
    let (mut params, mut notices) = (json!({}), Vec::new());
    loop {
        let id = scene.line().send("resources/list", params);
        let (page, _) = scene.line().wait(id, Duration::from_secs(60)).expect("a page");
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
    let id = scene.line().send("tools/call", arguments);
    scene.line().wait(id, Duration::from_secs(60)).expect("an answer").0.expect("a result");
    let mut most = 0;
    for suffix in ["", "large", "empty", "unfit", "same", "trickle"] {
        let uri = if suffix.is_empty() { base.clone() } else { scene.uri_of(suffix, "") };
        let name = uri.trim_start_matches("belljar://").trim_end_matches('/').to_owned();
        let walks = || -> Vec<Value> {
            let own = |record: &Value| record["mount"] == *name && record["operation"] == "list-resources";
            scene.site().audit().into_iter().filter(own).collect()
        };
        // A record is written a moment after its answer.
        assert!(crate::tools::within(Duration::from_secs(20), || walks()
            .iter()
            .any(|one| one["outcome"] == "bad-output")));
        let walks = walks();
        let calls: u64 = walks.iter().map(|walk| walk["calls"].as_u64().unwrap_or(1)).sum();
        // The search may list once more.
        assert!(calls <= 2 * TOO_MANY, "{name}: {calls} calls");
        assert!(walks.len() as u64 <= pages + 1, "{name}: {} lines for {pages} pages and a search", walks.len());
        let is_own = |notice: &&Value| {
            notice["mount"] == *name
                && notice["reason"].as_str().is_some_and(|why| why.starts_with("cut: list-resources"))
        };
        assert!(notices.iter().any(|notice| is_own(&notice)), "{name}: {notices:?}");
        most = most.max(calls);
    }
    format!("cut after at most {most} calls, each told")
}

fn refused(line: &Line, cursor: &str) {
    let id = line.send("resources/list", json!({ "cursor": cursor }));
    let (answer, _) = line.wait(id, Duration::from_secs(20)).expect("an answer");
    let error = answer.expect_err("a made-up cursor is taken");
    assert!(error.code == -32602 && kind(&error) == "bad-cursor", "{error}");
}
