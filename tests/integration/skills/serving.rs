//! Skills of the real server, from the provider `files` and from a guest that names its skills, in both eras over both
//! transports. Every digest is compared with the bytes that a client reads.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_tests::{Client, Era, Site, Wire};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::support::{self, kind};

const INVALID_PARAMS: i64 = -32602;

/// The frontmatter of a skill, with every type of value.
const FRONT: &str = "name: pdf\ndescription: >-\n  Reads PDF files\n  and more\nlicense: MIT\nmetadata:\n  version: \"1.0\"\n  level: 3\n  tags: [a, b]\n  draft: false\n  none:\n";

/// A site with a directory of skills, mounted as `notes`, and the guest, mounted as `guest`.
fn site() -> Site {
    let site = support::site(
        "[mounts.notes]\ncomponent = \"files.wasm\"\nfs = { \"/d\" = \"tree\" }\nskills = true\n\n[mounts.guest]\ncomponent = \"skills.wasm\"\n",
    );
    site.mount_as("guest_skills", "skills.wasm");
    for (file, text) in [
        ("tools/pdf/SKILL.md", format!("---\n{FRONT}---\n# PDF\n")),
        ("tools/pdf/scripts/run.py", "print(1)\n".to_owned()),
        ("tools/pdf/scripts/deep/x.txt", "x".to_owned()),
        ("tools/pdf/n\u{e4}me 1.txt", "\u{e4}\r\n\u{feff}".to_owned()),
        ("tools/bad/SKILL.md", "---\nname: bad\ndescription: &a b\n---\n".to_owned()),
        ("tools/other/SKILL.md", "---\nname: another\ndescription: b\n---\n".to_owned()),
        ("plain.txt", "no skill".to_owned()),
    ] {
        site.write(format!("tree/{file}"), text);
    }
    site.write("tree/tools/pdf/data.bin", [0, 255, 1, 254]);
    site
}

fn skills<W: Wire>(client: &mut Client<W>) -> Vec<Value> {
    client.pages("skills/list", "skills").concat()
}

fn uris(skills: &[Value]) -> Vec<&str> {
    skills.iter().map(|skill| skill["uri"].as_str().unwrap()).collect()
}

/// Reads each file of a skill, and compares its size and digest.
fn assert_digests<W: Wire>(client: &mut Client<W>, skill: &Value) {
    for file in skill["resources"].as_array().unwrap() {
        let uri = file["uri"].as_str().unwrap();
        let reading = client.read(uri).unwrap_or_else(|error| panic!("{uri}: {error}"));
        let [contents] = reading["contents"].as_array().unwrap().as_slice() else { panic!("{reading}") };
        assert_eq!(contents["uri"], uri);
        let bytes = match contents["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => STANDARD.decode(contents["blob"].as_str().unwrap()).unwrap(),
        };
        let digest: String = digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(file["digest"], format!("sha256:{digest}"), "{uri}");
        assert_eq!(file["size"], bytes.len(), "{uri}");
    }
}

fn refused<W: Wire>(client: &mut Client<W>, method: &str, params: Value) -> (i64, String) {
    let error = client.request(method, params.clone()).err().unwrap_or_else(|| panic!("{method} accepts {params}"));
    (error.code, error.message)
}

fn serves<W: Wire>(client: &mut Client<W>) {
    let era = client.era();
    let page = client.request("skills/list", json!({})).unwrap();
    let all = page["skills"].as_array().unwrap();
    assert_eq!(
        uris(all),
        ["skill://guest/a/pdf/SKILL.md", "skill://guest/b/SKILL.md", "skill://notes/tools/pdf/SKILL.md"]
    );
    let is_cached = (page["ttlMs"].is_number(), page["cacheScope"].is_string());
    assert_eq!(is_cached, (era == Era::Stateless, era == Era::Stateless), "{page}");
    let notices = page["_meta"]["dev.belljar/notices"].to_string();
    assert!(notices.contains("line 3: anchors and aliases") && notices.contains("2 of its entries"), "{notices}");
    all.iter().for_each(|skill| assert_digests(client, skill));

    let pdf = &all[2];
    let expected = json!({
        "name": "pdf", "description": "Reads PDF files and more", "license": "MIT",
        "metadata": { "version": "1.0", "level": 3, "tags": ["a", "b"], "draft": false, "none": null },
    });
    assert_eq!(pdf["frontmatter"], expected);
    let files: Vec<_> = pdf["resources"].as_array().unwrap().iter().map(|file| file["uri"].as_str().unwrap()).collect();
    let base = "skill://notes/tools/pdf";
    let below = ["SKILL.md", "data.bin", "n%C3%A4me%201.txt", "scripts/deep/x.txt", "scripts/run.py"];
    assert_eq!(files, below.map(|file| format!("{base}/{file}")));

    for uri in uris(all).into_iter().chain(["skill://guest/unlisted/SKILL.md"]) {
        let given = client.request("skills/get", json!({ "uri": uri })).unwrap();
        assert_eq!(given["skill"]["uri"], uri);
        assert_eq!(given["ttlMs"].is_number(), era == Era::Stateless);
        assert_digests(client, &given["skill"]);
    }
    for uri in [
        "skill://notes/tools/none/SKILL.md",
        "skill://notes/tools/%70df/SKILL.md",
        "skill://notes/tools/bad/SKILL.md",
        "skill://absent/tools/pdf/SKILL.md",
        "skill://clock/utc/SKILL.md",
        "belljar://notes/tools/pdf/SKILL.md",
        "skill://notes/tools/pdf",
        "",
    ] {
        assert_eq!(refused(client, "skills/get", json!({ "uri": uri })).0, INVALID_PARAMS, "{uri}");
    }
    let (_, why) = refused(client, "skills/get", json!({ "uri": "skill://notes/tools/bad/SKILL.md" }));
    assert!(why.contains("line 3"), "{why}");

    let children = client.request("resources/directory/read", json!({ "uri": base })).unwrap();
    assert_eq!(children["ttlMs"].is_number(), era == Era::Stateless, "{children}");
    assert_eq!(children["cacheScope"].is_string(), era == Era::Stateless, "{children}");
    let one = |child: &Value| format!("{} {}", child["uri"].as_str().unwrap(), child["mimeType"].as_str().unwrap());
    let children: Vec<_> = children["resources"].as_array().unwrap().iter().map(one).collect();
    assert_eq!(children[0], format!("{base}/SKILL.md text/markdown"));
    assert_eq!(children[3], format!("{base}/scripts inode/directory"));
    assert_eq!(children.len(), 4, "{children:?}");
    for uri in [
        "skill://notes/tools",
        "skill://notes/tools/pdf/",
        "skill://notes/tools/pdf/data.bin",
        "skill://notes/tools/pdf/scripts/../..",
        "skill://absent/x",
        "belljar://clock/utc",
    ] {
        assert_eq!(refused(client, "resources/directory/read", json!({ "uri": uri })).0, INVALID_PARAMS, "{uri}");
    }
    for (method, params) in [
        ("skills/list", json!({ "cursor": 1 })),
        ("skills/list", json!({ "cursor": "AAAA" })),
        ("skills/get", json!({})),
        ("skills/get", json!({ "uri": 1 })),
        ("resources/directory/read", json!({ "cursor": "x" })),
        ("resources/directory/read", json!({ "uri": base, "cursor": "x" })),
    ] {
        assert_eq!(refused(client, method, params.clone()).0, INVALID_PARAMS, "{method} {params}");
    }
    let error = client.read("skill://notes/tools/none").unwrap_err();
    assert_eq!((error.code, kind(&error)), (era.not_found(), "not-found"));

    let listed = client.resources();
    let entry = listed.iter().find(|entry| entry["uri"] == "belljar://notes/tools/pdf/SKILL.md").unwrap();
    assert_eq!((&entry["name"], &entry["description"]), (&json!("pdf"), &json!("Reads PDF files and more")));
}

#[test]
fn skills_are_served_in_both_eras_over_both_transports() {
    let site = site();
    let server = site.http();
    for era in Era::ALL {
        let mut stdio = site.stdio(era);
        serves(&mut stdio);
        assert!(stdio.close().status.success());
        serves(&mut server.client(era));
    }
}

#[test]
fn the_capability_is_declared_with_the_reading_of_directories() {
    let site = site();
    for era in Era::ALL {
        let mut client = site.stdio(era);
        let (method, params) = era.greeting();
        if era == Era::Stateless {
            let greeting = client.request(method, params).unwrap();
            let skills = &greeting["capabilities"]["extensions"]["io.modelcontextprotocol/skills"];
            assert_eq!(*skills, json!({ "directoryRead": true }));
        }
    }
    // Without reload and without any mount with skills, there is none.
    let plain = support::site("[watch]\nreload = false\n");
    let mut client = plain.stdio(Era::Stateless);
    // Waits until all components are loaded.
    client.resources();
    let greeting = client.request("server/discover", json!({})).unwrap();
    assert!(greeting["capabilities"]["extensions"]["io.modelcontextprotocol/skills"].is_null(), "{greeting}");
    let error = client.request("skills/list", json!({})).unwrap_err();
    assert_eq!(error.code, -32601);
}

#[test]
fn a_change_of_a_file_changes_its_digest() {
    let site = site();
    let mut client = site.stdio(Era::Stateless);
    let before = skills(&mut client);
    site.write("tree/tools/pdf/scripts/run.py", "print(2)\n# longer");
    let until = Instant::now() + Duration::from_secs(20);
    let after = loop {
        let after = skills(&mut client);
        if after != before || Instant::now() > until {
            break after;
        }
    };
    let file = |skills: &[Value]| skills[2]["resources"][4].clone();
    assert_ne!(file(&before), file(&after));
    assert_eq!(before[2]["resources"][0], after[2]["resources"][0]);
    assert_digests(&mut client, &after[2]);
    // A new skill, and one that is gone.
    site.write("tree/new/SKILL.md", "---\nname: new\ndescription: b\n---\n");
    fs::remove_file(site.path("tree/tools/pdf/SKILL.md")).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let now = skills(&mut client);
        let names = uris(&now);
        if names.last() == Some(&"skill://notes/new/SKILL.md") && names.len() == 3 {
            break;
        }
        assert!(Instant::now() < until, "{names:?}");
    }
}

#[test]
fn a_repository_serves_skills_at_its_last_commit() {
    let site = support::empty();
    site.mount("git");
    let tree = site.path("repo");
    site.write("repo/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: b\n---\n");
    site.write("repo/skills/pdf/x/y.txt", "one");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&tree).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    site.config(&support::patient("[mounts.git]\nfs = { \"/repo\" = \"repo\" }\nskills = true\n"));
    let mut client = site.stdio(Era::Stateless);
    let before = skills(&mut client);
    assert_eq!(uris(&before), ["skill://git/tree/HEAD/skills/pdf/SKILL.md"]);
    assert_digests(&mut client, &before[0]);
    // A change that is not committed is none.
    site.write("repo/skills/pdf/x/y.txt", "two");
    assert_eq!(skills(&mut client), before);
    git(&["commit", "-q", "-a", "-m", "two"]);
    let until = Instant::now() + Duration::from_secs(20);
    while skills(&mut client) == before {
        assert!(Instant::now() < until, "the commit changed nothing");
    }
    let after = skills(&mut client);
    assert_digests(&mut client, &after[0]);
}

#[test]
fn the_command_lists_and_verifies_skills() {
    let site = site();
    let run = |arguments: &[&str]| {
        let output = site.run(arguments);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            support::stdout_and_stderr(&output),
        )
    };
    let (code, listed, _) = run(&["skills"]);
    assert_eq!(code, Some(0), "{listed}");
    assert!(listed.contains("skill://notes/tools/pdf/SKILL.md") && listed.contains("line 3"), "{listed}");
    let (code, listed, _) = run(&["skills", "--mount", "notes", "--verify", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((code, listed["skills"].as_array().unwrap().len()), (Some(0), 1), "{listed}");
    assert_eq!(listed["skills"][0]["files"][0]["difference"], Value::Null);
    let (code, _, said) = run(&["skills", "--mount", "clock"]);
    assert!(code == Some(1) && said.contains("belljar set 'mounts.clock.skills = true'"), "{said}");
    let (code, _, said) = run(&["skills", "--mount", "absent"]);
    assert!(code == Some(1) && said.contains("there is no mount \"absent\""), "{said}");

    let config = fs::read_to_string(site.path("belljar.toml")).unwrap();
    let flips = "[mounts.guest]\nenv = { SKILLS = \"flip\" }\n";
    site.config(&config.replace("[mounts.guest]\n", flips));
    let (code, listed, _) = run(&["skills", "--dev", "--mount", "guest", "--verify"]);
    assert_eq!(code, Some(1), "{listed}");
    assert!(listed.contains("a/pdf/x.txt") && listed.contains("differs: its digest is"), "{listed}");
}

#[test]
fn the_largest_skill_is_listed_within_the_limits_of_calls() {
    let site = support::empty();
    site.mount("files");
    site.config("[mounts.files]\nfs = { \"/d\" = \"tree\" }\nskills = true\n");
    let front = "---\nname: big\ndescription: b\n---\n";
    site.write("tree/big/SKILL.md", front);
    // 511 files of 32,832 bytes, and the rest of 16 MiB in one more.
    let one = vec![b'x'; ((16 << 20) - front.len()) / 511];
    (0..511).for_each(|n| drop(site.write(format!("tree/big/f/{n}"), &one)));
    let mut client = site.stdio(Era::Stateless);
    let all = skills(&mut client);
    assert_eq!(uris(&all), ["skill://files/big/SKILL.md"]);
    assert_eq!(all[0]["resources"].as_array().unwrap().len(), 512);
    // One file more is too many.
    site.write("tree/big/f/more", "x");
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let page = client.request("skills/list", json!({})).unwrap();
        if page["skills"] == json!([]) {
            let notices = page["_meta"]["dev.belljar/notices"].to_string();
            assert!(notices.contains("it has 513 files; the limit is 512"), "{notices}");
            break;
        }
        assert!(Instant::now() < until, "{page}");
    }
}
