//! The templates of `belljar new` must behave alike in all languages. One table has the expected results, and real clients
//! read from the real server.
//!
//! `cargo xtask languages` has created, built and unit-tested the projects before. Each component is mounted twice: with a
//! grant of the directory that it needs, and without.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_tests::{Client, Era, Site, Wire, places, process};
use serde_json::{Value, json};

use crate::clients::programs::{Reach, Report, node, python};

/// The contents of `dot.png`, as base64.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The name that `cargo xtask languages` gives to the projects.
const NAME: &str = "month-shelf";

const MONTHS: [(&str, u32); 12] = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
];

/// The files in the granted directory, as references in the expected order of the list.
const FILES: [(&str, &str, &[u8]); 6] = [
    ("files/%C3%BCber.txt", "über.txt", "Üb’ immer Treu und Redlichkeit\n".as_bytes()),
    ("files/Z.txt", "Z.txt", b"last of the alphabet, first of the bytes"),
    ("files/a%20b.md", "a b.md", b"# A name with a space\n"),
    ("files/bin.dat", "bin.dat", &[0, 159, 146, 150, 255]),
    ("files/empty.txt", "empty.txt", b""),
    ("files/notes.md", "notes.md", b"# Notes\n"),
];

/// Every language with a template and with its tools on this machine. `cargo xtask test` reports missing tools.
pub(super) fn languages() -> Vec<(String, PathBuf)> {
    let sdks = places::repository().join("sdk-guest");
    let mut all: Vec<String> = fs::read_dir(sdks)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("language.toml").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    all.sort();
    assert!(all.len() >= 8, "{all:?}");
    all.into_iter().filter_map(|lang| Some((lang.clone(), places::language(&lang)?))).collect()
}

/// A site with each language mounted as `LANG` with its grant, and as `LANG-bare` without. All components are compiled in
/// advance, because a component with an interpreter takes half a minute.
fn site(languages: &[(String, PathBuf)]) -> Site {
    let mut site = Site::new();
    site.share(&places::target().join("tmp/languages"));
    for (_, name, bytes) in FILES {
        site.write(format!("data/{name}"), bytes);
    }
    site.write("data/folder/below.txt", "not listed");
    let mut config = String::new();
    for (lang, component) in languages {
        site.drop_in(&format!("{lang}.wasm"), fs::read(component).unwrap());
        config += &format!(
            "[mounts.{lang}]\nfs = {{ \"/data\" = \"data\" }}\n[mounts.{lang}-bare]\ncomponent = \"{lang}.wasm\"\n"
        );
    }
    site.config(&config);
    compile(&site);
    site
}

/// Compiles all components of a site.
pub(super) fn compile(site: &Site) {
    let compiled = process::run(site.command(site.arguments(&["check", "--compile"])), Duration::from_secs(600));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// The references that a provider without its grant lists, in order, with their names.
fn without_grant() -> Vec<(String, String)> {
    let months = MONTHS.iter().enumerate().map(|(at, (name, _))| (format!("months/{}", at + 1), (*name).to_owned()));
    [("hello.txt", "hello.txt"), ("dot.png", "dot.png")]
        .into_iter()
        .map(|(reference, name)| (reference.to_owned(), name.to_owned()))
        .chain(months)
        .collect()
}

/// The reads with their expected results: the body as text or base64, and the MIME type.
fn readings() -> Vec<(String, Value)> {
    let text =
        |reference: &str, mime: &str, text: &str| (reference.to_owned(), json!({ "mimeType": mime, "text": text }));
    let blob =
        |reference: &str, mime: &str, blob: &str| (reference.to_owned(), json!({ "mimeType": mime, "blob": blob }));
    let mut all =
        vec![text("hello.txt", "text/plain", &format!("Hello from {NAME}.\n")), blob("dot.png", "image/png", DOT)];
    for (at, (name, days)) in MONTHS.iter().enumerate() {
        let month = at + 1;
        let body = format!("{{\"month\":{month},\"name\":\"{name}\",\"days\":{days}}}");
        all.push(text(&format!("months/{month}"), "application/json", &body));
    }
    for (reference, name, bytes) in FILES {
        all.push(match std::str::from_utf8(bytes) {
            Ok(body) if name.ends_with(".md") => text(reference, "text/markdown", body),
            Ok(body) => text(reference, "text/plain", body),
            Err(_) => blob(reference, "application/octet-stream", &STANDARD.encode(bytes)),
        });
    }
    all
}

/// The reads that fail: the reference, the kind of the error, and a part of its message.
const FAILURES: [(&str, &str, &str); 9] = [
    ("months/13", "not-found", ""),
    ("months/0", "not-found", ""),
    ("months/x", "invalid", "a month is a number from 1 to 12, not \\\"x\\\""),
    ("nothing-here", "not-found", ""),
    ("", "not-found", ""),
    ("files/none.txt", "not-found", ""),
    ("files/folder", "not-found", ""),
    ("files/folder%2Fbelow.txt", "not-found", ""),
    ("files/%E0%A4%A", "bad-uri", ""),
];

#[test]
fn each_language_follows_the_table() {
    let languages = languages();
    let site = site(&languages);
    for era in Era::ALL {
        let mut client = site.stdio(era);
        for (lang, _) in &languages {
            check_lists(&mut client, lang);
            check_reads(&mut client, lang);
            check_tool(&mut client, lang);
            check_prompt(&mut client, lang);
        }
        client.close();
    }
}

fn check_lists<W: Wire>(client: &mut Client<W>, lang: &str) {
    let all = client.resources();
    for (mount, files) in [(lang.to_owned(), FILES.as_slice()), (format!("{lang}-bare"), &[])] {
        let base = format!("belljar://{mount}/");
        let of_mount = all.iter().filter(|entry| entry["uri"].as_str().unwrap().starts_with(&base));
        let listed: Vec<(String, String)> = of_mount
            .clone()
            .map(|entry| {
                (entry["uri"].as_str().unwrap()[base.len()..].to_owned(), entry["name"].as_str().unwrap().to_owned())
            })
            .collect();
        let mut expected = without_grant();
        let mut names: Vec<_> = files.iter().collect();
        names.sort_by_key(|(_, name, _)| name.as_bytes());
        expected.extend(names.iter().map(|(reference, name, _)| ((*reference).to_owned(), (*name).to_owned())));
        assert_eq!(listed, expected, "{mount}");
        for (entry, (_, name, bytes)) in of_mount.skip(without_grant().len()).zip(names) {
            assert_eq!(entry["size"], bytes.len(), "{mount} {name}: {entry}");
        }
    }
    let templates = client.templates();
    for template in ["months/{month}", "files/{name}"] {
        assert!(templates.contains(&format!("belljar://{lang}/{template}")), "{lang}: {templates:?}");
    }
}

fn check_reads<W: Wire>(client: &mut Client<W>, lang: &str) {
    for (reference, expected) in readings() {
        let uri = format!("belljar://{lang}/{reference}");
        let read = client.read(&uri).unwrap_or_else(|error| panic!("{uri}: {error:?}"));
        let contents = &read["contents"][0];
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&contents[key], value, "{uri}: {contents}");
        }
    }
    let all = client.read(&format!("belljar://{lang}/files/")).unwrap_or_else(|error| panic!("{lang}: {error:?}"));
    let mut files = FILES;
    files.sort_by_key(|(_, name, _)| name.as_bytes());
    let expected = files.map(|(reference, _, _)| format!("belljar://{lang}/{reference}"));
    let uris: Vec<_> = all["contents"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, expected, "{lang}");
    for (reference, kind, words) in FAILURES {
        let uri = format!("belljar://{lang}/{reference}");
        let error = client.read(&uri).expect_err(&uri);
        let data = error.data;
        // "Not found" has a code of its own. Clients with sessions get the code without data.
        let is_kind = data["kind"] == kind || (kind == "not-found" && error.code == client.era().not_found());
        assert!(is_kind, "{uri}: {} {data}", error.message);
        assert!(
            error.message.contains(&words.replace("\\\"", "\"")) || error.message.contains(words),
            "{uri}: {}",
            error.message
        );
    }
    for reference in ["files/notes.md", "files/none.txt", "files/"] {
        let uri = format!("belljar://{lang}-bare/{reference}");
        let error = client.read(&uri).expect_err(&uri);
        let data = error.data;
        assert_eq!(data["kind"], "denied", "{uri}: {} {data}", error.message);
        assert!(error.message.contains("which was not granted"), "{uri}: {}", error.message);
        assert!(data["hint"].to_string().contains(&format!("belljar grant {lang}-bare --fs")), "{uri}: {data}");
    }
    let hello = client.text(&format!("belljar://{lang}-bare/hello.txt"));
    assert_eq!(hello, format!("Hello from {NAME}.\n"));
}

/// The entry of a list with this name.
fn named<W: Wire>(client: &mut Client<W>, method: &str, key: &str, name: &str) -> Value {
    let all = client.pages(method, key).concat();
    let found = all.iter().find(|entry| entry["name"] == name);
    found.unwrap_or_else(|| panic!("{method} has no {name}: {all:?}")).clone()
}

/// The schema of a number, as all languages give it: `type` and bounds. Ignores words for people.
fn is_number(schema: &Value, bounds: Option<(i64, i64)>) -> bool {
    let bound = |key: &str| schema[key].as_f64();
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let is_optional = kinds.contains(&json!("null"));
    kinds.contains(&json!("integer"))
        && bounds.is_none_or(|(low, high)| {
            !is_optional && (bound("minimum"), bound("maximum")) == (Some(low as f64), Some(high as f64))
        })
}

/// The calls of `month_days`: arguments, text, structured result.
fn calls() -> [(Value, &'static str, Value); 4] {
    [
        (json!({ "month": 2, "year": 2024 }), "February 2024 has 29 days.", json!({ "month": "February", "days": 29 })),
        (json!({ "month": 2, "year": 1900 }), "February 1900 has 28 days.", json!({ "month": "February", "days": 28 })),
        (json!({ "month": 2 }), "February has 28 days.", json!({ "month": "February", "days": 28 })),
        (
            json!({ "month": 12, "year": 2024 }),
            "December 2024 has 31 days.",
            json!({ "month": "December", "days": 31 }),
        ),
    ]
}

/// The calls of `month_days` with arguments that break its schema, and parts of the message: the place and the bound.
fn refused_calls() -> [(Value, [&'static str; 2]); 4] {
    [
        (json!({ "month": 13 }), ["/month", "12"]),
        (json!({ "month": 0 }), ["/month", "1"]),
        (json!({ "month": "May" }), ["/month", "integer"]),
        (json!({}), ["month", "required"]),
    ]
}

fn check_tool<W: Wire>(client: &mut Client<W>, lang: &str) {
    let name = format!("{lang}_month_days");
    let tool = named(client, "tools/list", "tools", &name);
    assert_eq!(tool["description"], "How many days a month has.", "{lang}");
    let (input, output) = (&tool["inputSchema"], &tool["outputSchema"]);
    assert_eq!((&input["type"], &input["required"]), (&json!("object"), &json!(["month"])), "{lang}: {input}");
    let properties: Vec<_> = input["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["month", "year"], "{lang}: {input}");
    assert!(is_number(&input["properties"]["month"], Some((1, 12))), "{lang}: {input}");
    assert!(is_number(&input["properties"]["year"], None), "{lang}: {input}");
    assert_eq!(output["type"], "object", "{lang}: {output}");
    assert_eq!(output["properties"]["month"]["type"], "string", "{lang}: {output}");
    assert!(is_number(&output["properties"]["days"], None), "{lang}: {output}");
    let mut required: Vec<_> =
        output["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    required.sort_unstable();
    assert_eq!(required, ["days", "month"], "{lang}: {output}");
    // The component declares no HTTP, so its world is closed, and it can only read.
    let hints = &tool["annotations"];
    assert_eq!((&hints["readOnlyHint"], &hints["openWorldHint"]), (&json!(true), &json!(false)), "{lang}: {hints}");

    let mut call = |arguments: &Value| {
        let result = client.request("tools/call", json!({ "name": name, "arguments": arguments }));
        result.unwrap_or_else(|error| panic!("{lang} {arguments}: {error}"))
    };
    for (arguments, text, structured) in calls() {
        let result = call(&arguments);
        assert_ne!(result["isError"], json!(true), "{lang} {arguments}: {result}");
        assert_eq!(result["content"][0]["text"], text, "{lang} {arguments}");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{lang} {arguments}: {result}");
        assert_eq!(result["structuredContent"], structured, "{lang} {arguments}");
    }
    for (arguments, parts) in refused_calls() {
        let result = call(&arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(result["isError"], json!(true), "{lang} {arguments}: {result}");
        assert_eq!(result["structuredContent"], Value::Null, "{lang} {arguments}: {result}");
        assert!(parts.iter().all(|part| text.contains(part)), "{lang} {arguments}: {text}");
    }
}

fn check_prompt<W: Wire>(client: &mut Client<W>, lang: &str) {
    let name = format!("{lang}_plan_month");
    let prompt = named(client, "prompts/list", "prompts", &name);
    assert_eq!(prompt["description"], "A plan for a month.", "{lang}");
    let arguments = prompt["arguments"].as_array().unwrap().iter();
    let arguments: Vec<_> = arguments.map(|one| (one["name"].clone(), one["required"] == json!(true))).collect();
    assert_eq!(arguments, [(json!("month"), true), (json!("goal"), false)], "{lang}: {prompt}");
    assert_eq!(prompt["arguments"][0]["description"], "The name of the month", "{lang}");

    let mut get = |arguments: Value| client.request("prompts/get", json!({ "name": name, "arguments": arguments }));
    for (arguments, text) in [
        (json!({ "month": "May" }), "Make a plan for May, which has 31 days."),
        (json!({ "month": "May", "goal": "rest" }), "Make a plan for May, which has 31 days. My goal: rest."),
    ] {
        let result = get(arguments).unwrap_or_else(|error| panic!("{lang}: {error}"));
        assert_eq!(result["description"], "A plan for May", "{lang}");
        let expected = json!([{ "role": "user", "content": { "type": "text", "text": text } }]);
        assert_eq!(result["messages"], expected, "{lang}");
    }
    let unknown = get(json!({ "month": "X" })).expect_err(lang);
    let words = "a month is one of January to December, not \"X\"";
    // The message has the provider's words in quotes, so those of the words themselves are escaped.
    assert!(unknown.message.replace("\\\"", "\"").contains(words), "{lang}: {unknown}");
    let missing = get(json!({})).expect_err(lang);
    assert!(missing.code == -32602 && missing.message.contains("month"), "{lang}: {missing}");

    for (argument, value, expected) in
        [("month", "Ma", json!(["March", "May"])), ("month", "x", json!([])), ("goal", "Ma", json!([]))]
    {
        let reference = json!({ "type": "ref/prompt", "name": name });
        let params = json!({ "ref": reference, "argument": { "name": argument, "value": value } });
        let result = client.request("completion/complete", params).unwrap_or_else(|error| panic!("{lang}: {error}"));
        assert_eq!(result["completion"]["values"], expected, "{lang}: {argument} {value}");
    }
}

/// The real clients get the same results, from one list of all languages.
#[test]
fn real_clients_read_each_language() {
    let languages = languages();
    let site = site(&languages);
    let mut reads = Vec::new();
    for (lang, _) in &languages {
        reads.extend(readings().into_iter().map(|(reference, _)| format!("belljar://{lang}/{reference}")));
        reads.extend([format!("belljar://{lang}/months/13"), format!("belljar://{lang}-bare/files/notes.md")]);
    }
    let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
    let reach = Reach::Stdio(&site);
    for report in [python(2, &reach, "auto", &reads), node("sdk_1.mjs", &reach, "", &reads)].into_iter().flatten() {
        for (lang, _) in &languages {
            check_report(&report, lang);
        }
    }
}

fn check_report(report: &Report, lang: &str) {
    let of_mount = |mount: &str| {
        let base = format!("belljar://{mount}/");
        report.resources.iter().filter(|entry| entry["uri"].as_str().unwrap().starts_with(&base)).count()
    };
    let bare = without_grant().len();
    assert_eq!((of_mount(lang), of_mount(&format!("{lang}-bare"))), (bare + FILES.len(), bare), "{}", report.client);
    for (reference, expected) in readings() {
        let seen = &report.reads[&format!("belljar://{lang}/{reference}")];
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&seen["contents"][0][key], value, "{}: {lang} {reference}: {seen}", report.client);
        }
    }
    for uri in [format!("belljar://{lang}/months/13"), format!("belljar://{lang}-bare/files/notes.md")] {
        assert!(report.reads[&uri]["error"].is_object(), "{}: {uri}: {}", report.client, report.reads[&uri]);
    }
}

/// `belljar check --conformance` finds no violation in any language, with the grant and without.
#[test]
fn each_language_passes_the_conformance_check() {
    let languages = languages();
    let site = site(&languages);
    for (lang, _) in &languages {
        let mut command = site.command(["check", "--conformance"]);
        command
            .arg(site.path(format!("plugins/{lang}.wasm")))
            .arg("--config")
            .arg(site.path("belljar.toml"))
            .arg("--json");
        let output = process::run(command, Duration::from_secs(120));
        let reports: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{lang}: {}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(reports.as_array().unwrap().len(), 2, "with the grant and without");
        for report in reports.as_array().unwrap() {
            let violations: Vec<_> = report["checks"]
                .as_array()
                .unwrap()
                .iter()
                // Ignore `bin.dat`. The list derives the MIME type from the name, but the file is binary.
                .filter(|check| matches!(check["verdict"].as_str(), Some("failed" | "warning")))
                .filter(|check| !check["said"].to_string().contains("bin.dat"))
                .collect();
            assert!(violations.is_empty(), "{}: {violations:#?}", report["mount"]);
        }
    }
}
