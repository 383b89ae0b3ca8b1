//! The file layer of each language closes what it opens: one call reads 10,000 files, ten times as many as a call may hold open.

use std::fs;
use std::time::Duration;

use belljar_tests::{Site, places, process};
use serde_json::Value;

use super::templates::{compile, languages};

/// The files that one call opens. The host serves at most so many contents.
const FILES: usize = 10_000;

/// `files/` of each provider is all files of its directory. The limit of handles is the default, 1024; the other limits are
/// larger: an interpreter takes longer than the default, and the test must not depend on the speed of the machine.
const LIMITS: &str = r#"limits = { time = "9m", fuel = 50000000000, memory = "256MiB" }"#;

#[test]
fn one_call_opens_10_000_files_in_each_language() {
    let languages = languages();
    let mut site = Site::new();
    site.share(&places::target().join("tmp/languages"));
    for number in 0..FILES {
        site.write(format!("many/{number:05}.txt"), number.to_string());
    }
    let mut config = format!("audit = {:?}\n", site.path("audit.jsonl"));
    for (lang, component) in &languages {
        site.drop_in(&format!("{lang}.wasm"), fs::read(component).unwrap());
        config += &format!("[mounts.{lang}]\nfs = {{ \"/data\" = \"many\" }}\n{LIMITS}\n");
    }
    site.config(&config);
    compile(&site);
    for (lang, _) in &languages {
        // The command lists nothing. A server would list all mounts, in a thousand pages each.
        let uri = format!("belljar://{lang}/files/");
        let command = site.command(site.arguments(&["read", &uri, "--json"]));
        let output = process::run(command, Duration::from_secs(600));
        assert!(output.status.success(), "{lang}: {}", String::from_utf8_lossy(&output.stderr));
        let read: Value = serde_json::from_slice(&output.stdout).unwrap();
        let contents = read["contents"].as_array().unwrap();
        assert_eq!(contents.len(), FILES, "{lang}");
        for (number, one) in contents.iter().enumerate() {
            assert_eq!(one["text"], number.to_string(), "{lang}");
            assert_eq!(one["uri"], format!("belljar://{lang}/files/{number:05}.txt"), "{lang}");
        }
    }
    // A look at ".." would be refused, and its hint would then be shown with any failure of the call.
    let records = site.audit();
    assert!(records.len() >= languages.len(), "{records:?}");
    for record in records {
        assert!(record["denials"].as_array().is_some_and(Vec::is_empty), "{record}");
    }
}
