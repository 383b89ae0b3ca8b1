//! `belljar inspect` on files that cannot be mounted. The command names the kind of the file, the reason and the cure. belljar
//! refuses a file of the same kind in the plugin directory, with the same reason. The tests run the real commands.

use std::fs;

use belljar_tests::places;
use serde_json::Value;

use crate::support::component::{HandWritten, assemble};
use crate::support::{assert_clean, isolated_site, serve, site, stdout_and_stderr};

/// Files that are not providers: the name, the bytes, and the words that the refusal must contain.
fn unmountable_files() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let whole = fs::read(places::component("clock")).unwrap();
    let fixture = fs::read(places::component("guest_fixture")).unwrap();
    let mut odd = whole.clone();
    odd[4] = 0x7f;
    let version = r#"(component (instance $i) (export "belljar:provider/resource-provider@0.9.0" (instance $i)))"#;
    let command = r#"(component (instance $i) (export "wasi:cli/run@0.2.0" (instance $i)))"#;
    let foreign = r#"(component
        (import "wasi:nn/graph@0.2.0" (instance $n))
        (export "belljar:provider/resource-provider@0.1.0" (instance $n)))"#;
    let wrong = r#"(component
        (core module $m (func (export "read") (result i32) (i32.const 1)))
        (core instance $m (instantiate $m))
        (func $read (result u32) (canon lift (core func $m "read")))
        (instance $i (export "read" (func $read)))
        (export "belljar:provider/resource-provider@0.1.0" (instance $i)))"#;
    vec![
        ("empty", Vec::new(), &["an empty file"]),
        ("begun", b"\0asm".to_vec(), &["first bytes of a WebAssembly file"]),
        ("module", assemble("(module (func (export \"run\")))"), &["a core WebAssembly module", "wasm32-wasip2"]),
        ("text", b"(component)".to_vec(), &["WebAssembly text", "wasm-tools parse"]),
        ("prose", b"Dear reader, this is no WebAssembly.".to_vec(), &["a text file", "Dear reader"]),
        ("controls", b"\x1b[2Jcleared\x07 and more".to_vec(), &["text"]),
        (
            "garbage",
            (0..4000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80).collect(),
            &["not WebAssembly"],
        ),
        ("archive", b"PK\x03\x04\x14\0\0\0\x08\0".repeat(20), &["ZIP", "unpack"]),
        ("elf", fs::read(places::host()).unwrap()[..4096].to_vec(), &["ELF"]),
        ("script", b"#!/bin/sh\nexit 0\n".to_vec(), &["a script"]),
        ("future", odd, &["unknown binary version"]),
        ("cut", whole[..whole.len() - 1].to_vec(), &["truncated"]),
        ("half", whole[..whole.len() / 2].to_vec(), &["truncated"]),
        ("header", whole[..8].to_vec(), &["exports nothing", "belljar:provider/resource-provider@0.1.0"]),
        ("flipped", damaged(&fixture), &["cannot be mounted"]),
        (
            "command",
            assemble(command),
            &["not a provider", "wasi:cli/run@0.2.0", "belljar:provider/resource-provider@0.1.0"],
        ),
        ("later", assemble(version), &["resource-provider@0.9.0", "0.1."]),
        ("foreign", assemble(foreign), &["wasi:nn/graph@0.2.0", "WASI 0.2"]),
        ("wrong", assemble(wrong), &["does not fit the interface"]),
    ]
}

/// A component with 64 damaged bytes in its code, at one third of the file. No instruction begins with the byte 0xff.
fn damaged(whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let start = bytes.len() / 3;
    for byte in &mut bytes[start..start + 64] {
        *byte = 0xff;
    }
    bytes
}

#[test]
fn inspect_names_the_kind_of_each_foreign_file() {
    let site = isolated_site();
    for (name, bytes, expected) in unmountable_files() {
        let path = site.write(format!("{name}.wasm"), &bytes);
        let path = path.to_str().unwrap();
        let output = site.run(&["inspect", path]);
        let text = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        assert!(text.contains("It cannot be mounted: "), "{name}: {text}");
        for part in expected {
            assert!(text.contains(part), "{name}: no {part:?} in {text}");
        }
        assert!(text.contains("sha256:") && !text.contains("panicked"), "{name}: {text}");
        text.lines().for_each(assert_clean);

        let output = site.run(&["inspect", path, "--json"]);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((output.status.code(), &json["mountable"]), (Some(1), &Value::Bool(false)), "{name}: {json}");
        let reason = json["reason"].as_str().unwrap();
        for part in expected.iter().filter(|part| **part != "cannot be mounted") {
            assert!(reason.contains(part), "{name}: no {part:?} in {reason}");
        }
    }
}

/// `inspect` refuses a component that is truncated at any place.
#[test]
fn a_component_cut_at_any_byte_is_refused() {
    let whole = HandWritten::default().assemble();
    let site = isolated_site();
    let mut cuts: Vec<usize> = (0..whole.len()).step_by(whole.len() / 24).collect();
    cuts.extend([1, 7, 9, whole.len() - 2]);
    for cut in cuts {
        let path = site.write("cut.wasm", &whole[..cut]);
        let output = site.run(&["inspect", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "cut at {cut} of {}: {}", whole.len(), stdout_and_stderr(&output));
    }
    let path = site.write("whole.wasm", &whole);
    assert_eq!(site.run(&["inspect", path.to_str().unwrap()]).status.code(), Some(0));
}

#[test]
fn inspect_reports_missing_and_special_files() {
    let site = isolated_site();
    fs::create_dir(site.path("dir.wasm")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, site.path("fifo.wasm"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    for (path, expected) in
        [("dir.wasm", "not a regular file"), ("fifo.wasm", "not a regular file"), ("absent.wasm", "cannot read")]
    {
        let output = site.run(&["inspect", site.path(path).to_str().unwrap()]);
        let text = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{path}: {text}");
        assert!(text.contains(expected) && text.contains(path), "{path}: {text}");
    }
    assert_eq!(site.run(&["inspect"]).status.code(), Some(2));
}

/// belljar refuses each of these files in the plugin directory, with its name and the same reason. It serves the witness.
#[test]
fn foreign_files_in_the_plugin_directory_are_refused_by_name() {
    let site = site("");
    let unmountable_files = unmountable_files();
    for (name, bytes, _) in &unmountable_files {
        site.drop_in(&format!("{name}.wasm"), bytes);
    }
    let plugins = site.path("plugins");
    fs::create_dir(plugins.join("dir.wasm")).unwrap();
    std::os::unix::fs::symlink("clock.wasm", plugins.join("link.wasm")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        plugins.join("fifo.wasm"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    site.drop_in("no name!.wasm", b"x");
    site.drop_in("one-name.wasm", b"x");
    site.drop_in("ONE_NAME.wasm", b"x");
    site.drop_in(".hidden.wasm", b"x");
    site.drop_in("notes.txt", b"x");

    let checked = site.run(&["check", "--json"]);
    assert_eq!(checked.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let refused = json["refused"].as_array().unwrap();
    let odd = [
        ("dir", "not a regular file"),
        ("link", "not a regular file"),
        ("fifo", "not a regular file"),
        ("no name!", "does not make a mount name"),
        ("one-name", "a text file"),
    ];
    let expected = unmountable_files.iter().map(|(name, _, parts)| (*name, parts[0])).chain(odd);
    let mut count = 0;
    for (name, part) in expected {
        let found = refused
            .iter()
            .find(|one| one["name"].as_str().unwrap().trim_end_matches(".wasm").eq_ignore_ascii_case(name));
        let reason = found.unwrap_or_else(|| panic!("{name} is not refused: {json}"))["reason"].as_str().unwrap();
        assert!(reason.contains(part) || part == "cannot be mounted", "{name}: {reason}");
        assert_clean(reason);
        count += 1;
    }
    // Two files have the mount name `one-name`. One gets the name, and the refusal of the other names the first.
    let taken =
        refused.iter().filter(|one| one["reason"].as_str().unwrap().contains("its name \"one-name\" is taken by"));
    assert_eq!((refused.len(), taken.count()), (count + 1, 1), "{json}");
    let mut client = serve(&site);
    assert_eq!(client.uris(), ["belljar://clock/utc"]);
}
