//! The SDKs give parts alike. `cargo xtask languages` has added the interface to the projects of five languages; the tests of
//! `tests/guests/parts` stand for Rust. C shares its code with C++ and Zig, and TypeScript shares it with JavaScript.

use std::fs;

use belljar_tests::{Client, Era, Site, Stdio, places};
use serde_json::{Value, json};

use super::templates::{compile, languages};

/// The languages whose projects have the interface.
const LANGUAGES: [&str; 5] = ["cpp", "go", "javascript", "python", "zig"];

/// A query and its answer: the text or the base64, the first and last position, and the next query.
type Answer = (&'static str, &'static str, Option<(u64, u64)>, Option<&'static str>);

/// What each language answers to a query.
#[rustfmt::skip]
const PARTS: [Answer; 9] = [
    ("t.txt?bytes=0-2", "one", Some((0, 2)), Some("t.txt?bytes=3-5")),
    // A range inside a character gives this character.
    ("t.txt?bytes=7-7", "\u{f6}", Some((6, 7)), Some("t.txt?bytes=8-8")),
    ("t.txt?bytes=-3", "our", Some((18, 20)), None),
    ("t.txt?lines=2-3", "zw\u{f6}lf\nthree\n", Some((2, 3)), Some("t.txt?lines=4-5")),
    ("t.txt?lines=3-", "three\nfour", Some((3, 4)), None),
    ("t.txt?lines=-1", "four", Some((4, 4)), None),
    ("t.txt?lines=9-", "", None, None),
    ("b.bin?bytes=1-1", "nw==", Some((1, 1)), Some("b.bin?bytes=2-2")),
    ("b.bin?bytes=3-9", "", None, None),
];

/// The queries that each language refuses, with a part of the words.
const REFUSED: [(&str, &str); 3] = [
    ("files/b.bin?lines=1-1", "is not text and has no lines"),
    ("files/?lines=1-2", "has 3 contents and no parts"),
    ("files/large.txt?lines=1-1", "line 1 has 70000 bytes; the limit of a read is "),
];

fn languages_with_parts() -> Vec<String> {
    let there = languages().into_iter().map(|(lang, _)| lang);
    there.filter(|lang| LANGUAGES.contains(&lang.as_str())).collect()
}

fn site(languages: &[String]) -> Site {
    let mut site = Site::new();
    site.share(&places::target().join("tmp/languages"));
    site.write("data/t.txt", "one\nzw\u{f6}lf\nthree\nfour");
    site.write("data/b.bin", [0, 0x9f, 0xff]);
    site.write("data/large.txt", "x".repeat(69_999) + "\nsecond\n");
    let mut config = String::new();
    for lang in languages {
        site.drop_in(&format!("{lang}.wasm"), fs::read(places::language(lang).unwrap()).unwrap());
        config += &format!(
            "[mounts.{lang}]\nfs = {{ \"/data\" = \"data\" }}\nlimits = {{ result = \"64KiB\", time = \"60s\" }}\n"
        );
    }
    site.config(&config);
    compile(&site);
    site
}

fn read(client: &mut Client<Stdio>, uri: &str) -> Value {
    client.read(uri).unwrap_or_else(|error| panic!("{uri}: {error:?}"))
}

#[test]
fn each_language_reads_parts() {
    let languages = languages_with_parts();
    let site = site(&languages);
    let mut client = site.stdio(Era::Stateless);
    for lang in &languages {
        let base = format!("belljar://{lang}/files/");
        for (query, body, positions, next) in PARTS {
            let result = read(&mut client, &format!("{base}{query}"));
            let one = &result["contents"][0];
            let given = one["text"].as_str().or(one["blob"].as_str());
            assert_eq!(given, Some(body), "{lang} {query}: {one}");
            let part = &one["_meta"]["dev.belljar/part"];
            assert_eq!(part["first"], json!(positions.map(|(first, _)| first)), "{lang} {query}: {part}");
            assert_eq!(part["last"], json!(positions.map(|(_, last)| last)), "{lang} {query}: {part}");
            assert_eq!(part["next"], json!(next.map(|next| format!("{base}{next}"))), "{lang} {query}: {part}");
        }
        for (query, words) in REFUSED {
            let error = client.read(&format!("belljar://{lang}/{query}")).expect_err(query);
            assert!(error.message.contains(words), "{lang} {query}: {error}");
        }
    }
    client.close();
}

#[test]
fn each_language_gives_the_first_part_of_what_is_too_large() {
    let languages = languages_with_parts();
    let site = site(&languages);
    let mut client = site.stdio(Era::Stateless);
    for lang in &languages {
        let (mut joined, mut uri) = (String::new(), format!("belljar://{lang}/files/large.txt"));
        let mut reads = 0;
        while reads < 10 {
            let result = read(&mut client, &uri);
            let one = &result["contents"][0];
            joined += one["text"].as_str().unwrap();
            reads += 1;
            let Some(next) = one["_meta"]["dev.belljar/part"]["next"].as_str() else { break };
            uri = next.to_owned();
        }
        assert_eq!((joined.len(), joined.lines().last()), (70_007, Some("second")), "{lang}");
        assert_eq!(reads, 2, "{lang}");
    }
    client.close();
}

#[test]
fn each_language_lists_below_a_reference() {
    let languages = languages_with_parts();
    let site = site(&languages);
    for lang in &languages {
        let base = format!("belljar://{lang}/");
        let listed = site.run(&["list", "--below", &base, "--json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_else(|_| panic!("{lang}: {listed:?}"));
        let text = listed.to_string();
        assert!(text.contains("hello.txt") && text.contains("files/t.txt"), "{lang}: {text}");
        let absent = site.run(&["list", "--below", &format!("{base}none/")]);
        let words = String::from_utf8_lossy(&absent.stderr);
        assert!(!absent.status.success() && words.contains("not found"), "{lang}: {words}");
    }
}
