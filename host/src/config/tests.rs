//! The configuration as operators write it, right and wrong.

use super::*;

fn read(text: &str) -> Result<Config, String> {
    let directory = PathBuf::from("/srv/belljar");
    Config::read(Given {
        file: Some((directory.join(FILE), text.to_owned())),
        directory,
        home: Some("/home/op".into()),
        cache: "/c".into(),
        state: "/s".into(),
        plugins: None,
    })
}

fn error(text: &str) -> String {
    read(text).err().unwrap_or_else(|| panic!("accepted: {text}"))
}

#[test]
fn everything_is_optional() {
    let config = read("").unwrap();
    assert_eq!(config.plugins, PathBuf::from("/srv/belljar/plugins"));
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.audit, Audit::State);
    assert!(config.mounts.is_empty());
    for own in ["/srv/belljar/plugins", "/srv/belljar/belljar.toml", "/srv/belljar/belljar.lock", "/c", "/s"] {
        assert!(config.ambient.reserved.contains(&own.into()), "{own}");
    }
}

#[test]
fn the_example_of_the_design() {
    let config = read(
        r#"
        plugins = "~/plugins"
        audit = "audit.jsonl"
        [limits]
        time = "5s"
        memory = "64MiB"
        [mounts.notes]
        component = "files.wasm"
        uri = "notes:///"
        env = { TITLE = "My notes" }
        fs = { "/notes" = "~/notes" }
        [mounts.weather.limits]
        time = "15s"
        "#,
    )
    .unwrap();
    assert_eq!(config.plugins, PathBuf::from("/home/op/plugins"));
    assert_eq!(config.audit, Audit::File("/srv/belljar/audit.jsonl".into()));
    let notes = &config.mounts[&MountName::new("notes").unwrap()];
    assert_eq!(notes.component.as_deref(), Some("files.wasm"));
    assert_eq!(notes.uri.as_deref(), Some("notes:///"));
    assert_eq!(notes.grants.describe().len(), 2);
    let weather = &config.mounts[&MountName::new("weather").unwrap()];
    assert_eq!(weather.limits.time, Duration::from_secs(15));
    assert_eq!(weather.limits.memory, 64 << 20);
}

#[test]
fn no_mount_alone_can_take_every_turn() {
    let config = read("calls = 6\n[mounts.a.limits]\nconcurrency = 100").unwrap();
    assert_eq!(config.limits.concurrency, 3);
    assert_eq!(config.mounts[&MountName::new("a").unwrap()].limits.concurrency, 3);
    assert_eq!(read("calls = 1").unwrap().limits.concurrency, 1);
}

#[test]
fn no_mount_alone_can_take_all_memory() {
    assert_eq!(read("").unwrap().total_memory, 512 << 20);
    assert_eq!(read("[mounts.a.limits]\nmemory = '1GiB'").unwrap().total_memory, 2 << 30);
    assert_eq!(read("total-memory = '128MiB'").unwrap().total_memory, 128 << 20);
    let why = error("total-memory = '1GiB'\n[mounts.a.limits]\nmemory = '1GiB'");
    assert!(
        why.contains("mounts.a.limits.memory is \"1GiB\"") && why.contains("set  total-memory = \"2GiB\""),
        "{why}"
    );
}

#[test]
fn unknown_keys_name_their_path_and_the_nearest_valid_one() {
    assert_eq!(
        error("plugin = 'x'"),
        "/srv/belljar/belljar.toml: line 1, column 1: unknown key \"plugin\"; did you mean \"plugins\"?"
    );
    assert!(error("[mounts.a]\nevn = {}").contains("unknown key \"mounts.a.evn\"; did you mean \"env\"?"));
    assert!(error("[mounts.a.limits]\nmemroy = 1").contains("\"mounts.a.limits.memroy\"; did you mean \"memory\"?"));
    assert!(error("[limits]\nzzz = 1").contains("the keys here are component, concurrency"));
    assert!(
        error("[mounts.a]\nzzz = 1")
            .contains("the keys here are ask, cache, cache-scope, component, env, fs, http, limits, search, uri")
    );
}

#[test]
fn wrong_values_say_what_was_expected() {
    assert!(error("[limits]\nmemory = 'lots'").contains("limits.memory = \"lots\": expected a size such as \"64MiB\""));
    assert!(error("[limits]\ntime = 5").contains("limits.time = 5: expected a time such as \"5s\""));
    assert!(error("[limits]\ntime = '0s'").contains("expected 1ms to"));
    assert!(error("[limits]\nmemory = '8GiB'").contains("expected 64KiB to 4GiB"));
    assert!(error("[limits]\nfuel = -1").contains("limits.fuel = -1: expected a number"));
    assert!(error("mounts = 3").contains("mounts: expected a table"));
    assert!(error("[mounts]\na = 3").contains("mounts.a: expected a table"));
    assert!(error("[mounts.A]").contains("not a mount name"));
    assert!(error("[mounts.a]\nuri = 'a://b'").contains("does not end in \"/\"; add one"));
    assert!(error("[mounts.a]\ncomponent = '../x.wasm'").contains("without a path"));
    assert!(error("[mounts.a]\nfs = ['/x']").contains("expected something like  fs = { \"/data\" = \"DIR\" }"));
    assert!(error("[limits]\ncpu = 50").contains("expected a part of a processor such as \"50%\""));
    assert!(error("[limits]\ncpu = '0%'").contains("limits.cpu: expected \"1%\" to"));
    assert!(error("[limits]\ncpu = '50'").contains("\"%\" is missing"));
    assert_eq!(read("[limits]\ncpu = '150%'").unwrap().limits.cpu, 150);
    assert!(error("calls = 0").contains("expected 1 to 1024"));
    assert!(!error("a = \x1b[31m").contains('\x1b'));
    assert!(error("a = ").contains("line 1"), "{}", error("a = "));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, expected) in [
        ("\n[mounts.a]\n  evn = {}", "line 3, column 3: unknown key \"mounts.a.evn\""),
        ("[limits]\n# why\nmemory = 'lots'", "line 3, column 1: limits.memory = \"lots\": expected a size"),
        ("mounts = { a = { limits = { time = 5 } } }", "line 1, column 29: mounts.a.limits.time = 5: expected a time"),
        ("[mounts.a]\nfs = 3", "line 2, column 1: mounts.a.fs: "),
        ("\ncalls = 0", "line 2, column 1: calls = 0: expected 1 to 1024"),
        ("[limits]\ntime = '0s'", "line 2, column 1: limits.time: expected 1ms to"),
        ("[mounts]\na = 3", "line 2, column 1: mounts.a: expected a table"),
        ("[network]\ndns = 3", "line 2, column 1: network.dns = 3"),
    ] {
        assert!(error(text).contains(expected), "{text}: {}", error(text));
    }
}

#[test]
fn text_without_quotation_marks_is_told_so() {
    for (text, cure) in [
        ("plugins = foo", "plugins = \"foo\""),
        ("plugins = true-ly # x", "plugins = \"true-ly\""),
        ("[limits]\ntime = none", "time = \"none\""),
        ("plugins = ~/plugins", "plugins = \"~/plugins\""),
        ("plugins = /srv", "plugins = \"/srv\""),
    ] {
        let why = error(text);
        assert!(why.contains("quotation marks") && why.contains(cure) && why.contains("line "), "{text}: {why}");
    }
}

#[test]
fn no_type_of_the_program_is_shown() {
    for text in [
        "[mounts.a]\nhttp = ['x']",
        "[mounts.a]\nhttp = 'x'",
        "[mounts.a]\nhttp = [{ orign = 'x' }]",
        "[mounts.a]\nfs = { '/a' = 3 }",
        "[mounts.a]\nfs = { '/a' = { pth = 'x' } }",
        "[mounts.a]\nenv = { A = [] }",
        "[secrets]\na = { env = 3 }",
        "[secrets]\na = 'x'",
    ] {
        let why = error(text);
        assert!(!why.contains("struct ") && !why.contains("enum ") && why.contains("expected"), "{text}: {why}");
    }
    assert!(error("[mounts.a]\nhttp = ['x']").contains("a table such as { origin ="));
    assert!(error("[limits]\nmemory = 'lots'").contains("MiB is 1,048,576 bytes; M and MB are 1,000,000"));
}

#[test]
fn the_wall_is_one_of_three() {
    assert_eq!(read("").unwrap().wall, Wall::BestEffort);
    assert_eq!(read("wall = \"best-effort\"").unwrap().wall, Wall::BestEffort);
    assert_eq!(read("wall = \"require\"").unwrap().wall, Wall::Require);
    assert_eq!(read("wall = \"off\"").unwrap().wall, Wall::Off);
    for wrong in ["wall = \"on\"", "wall = false"] {
        assert!(error(wrong).contains("expected \"best-effort\", \"require\" or \"off\""), "{}", error(wrong));
    }
}
