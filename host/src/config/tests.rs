//! The configuration as operators write it, right and wrong.

use super::*;
use crate::grants::KINDS;

fn read(text: &str) -> Result<Config, Error> {
    let directory = PathBuf::from("/srv/belljar");
    Config::read(ConfigInput {
        file: Some((directory.join(FILE), text.to_owned())),
        directory,
        home: Some("/home/op".into()),
        cache: "/c".into(),
        state: "/s".into(),
        plugins: None,
    })
}

fn error(text: &str) -> String {
    read(text).err().unwrap_or_else(|| panic!("accepted: {text}")).to_string()
}

#[test]
fn everything_is_optional() {
    let config = read("").unwrap();
    assert_eq!(config.plugins, PathBuf::from("/srv/belljar/plugins"));
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.audit, Audit::State);
    assert!(config.mounts.is_empty());
    for own in ["plugins", "belljar.toml", "belljar.lock", "keys.toml", "/c", "/s"] {
        let own = PathBuf::from("/srv/belljar").join(own);
        assert!(config.ambient.reserved.contains(&own), "{}", own.display());
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
    let own =
        ["ask", "cache", "cache-scope", "component", "isolation", "limits", "search", "skills", "tool-prefix", "uri"];
    let mut keys: Vec<&str> = KINDS.iter().map(|kind| kind.name).chain(own).collect();
    keys.sort_unstable();
    assert!(error("[mounts.a]\nzzz = 1").contains(&format!("the keys here are {}", keys.join(", "))));
}

#[test]
fn wrong_values_say_what_was_expected() {
    assert!(error("[limits]\nmemory = 'lots'").contains("limits.memory = \"lots\": expected a size such as \"64MiB\""));
    assert!(error("[limits]\ntime = 5").contains("limits.time = 5: expected a time such as \"5s\""));
    assert!(error("[limits]\ntime = '0s'").contains("expected 1ms to"));
    assert!(error("[limits]\nmemory = '8GiB'").contains("expected 64KiB to 4GiB"));
    assert!(error("[limits]\nfuel = -1").contains("limits.fuel = -1: expected a number, 1 to"));
    assert!(error("mounts = 3").contains("mounts: expected a table"));
    assert!(error("[mounts]\na = 3").contains("mounts.a: expected a table"));
    assert!(error("[mounts.A]").contains("not a mount name"));
    assert!(error("[mounts.a]\nuri = 'a://b'").contains("does not end in \"/\"; add one"));
    assert!(error("[mounts.a]\ncomponent = '../x.wasm'").contains("without a path"));
    assert!(error("[mounts.a]\nfs = ['/x']").contains("for example  fs = { \"/data\" = \"DIR\" }"));
    assert!(error("[limits]\ncpu = 50").contains("expected a part of a processor such as \"50%\""));
    assert!(error("[limits]\ncpu = '0%'").contains("limits.cpu = \"0%\": expected \"1%\" to"));
    assert!(error("[limits]\ncpu = '50'").contains("\"%\" is missing"));
    assert_eq!(read("[limits]\ncpu = '150%'").unwrap().limits.cpu, 150);
    assert!(error("calls = 0").contains("expected 1 to 1024"));
    assert!(!error("a = \x1b[31m").contains('\x1b'));
    assert!(error("a = ").contains("line 1"), "{}", error("a = "));
}

#[test]
fn errors_name_the_line_and_column_of_the_value() {
    for (text, expected) in [
        ("\n[mounts.a]\n  evn = {}", "line 3, column 3: unknown key \"mounts.a.evn\""),
        ("[limits]\n# why\nmemory = 'lots'", "line 3, column 1: limits.memory = \"lots\": expected a size"),
        ("mounts = { a = { limits = { time = 5 } } }", "line 1, column 29: mounts.a.limits.time = 5: expected a time"),
        ("[mounts.a]\nfs = 3", "line 2, column 1: mounts.a.fs = 3: expected a table"),
        ("[mounts.a]\nfs = { '/a' = 3 }", "line 2, column 8: mounts.a.fs./a = 3: expected a directory, or { path"),
        (
            "[mounts.a]\nhttp = [\n{ origin = 'x' },\n{ orign = 'x' }]",
            "line 4, column 3: unknown key \"mounts.a.http.orign\"; did you mean \"origin\"?",
        ),
        (
            "[[mounts.a.http]]\nmethods = ['GET']",
            "line 1, column 1: mounts.a.http: the key \"origin\" is missing; for example  http = [{",
        ),
        (
            "[network]\ndns = ['9.9.9.9', 'x']",
            "line 2, column 19: network.dns = \"x\": \"x\" is not the address of a name server",
        ),
        ("[mounts.a]\nuri = 'a://b'", "line 2, column 1: mounts.a.uri = \"a://b\": "),
        ("[callers]\nrate = 0", "line 2, column 1: callers.rate = 0: expected 1 to 1000000"),
        ("[callers]\nconcurrency = 0", "line 2, column 1: callers.concurrency = 0: expected 1 to 1024"),
        ("[callers]\nrates = 5", "line 2, column 1: unknown key \"callers.rates\"; did you mean \"rate\"?"),
        ("[watch]\npoll = '1ms'", "line 2, column 1: watch.poll = \"1ms\": expected 100ms to 1day"),
        ("tools = 'yes'", "line 1, column 1: tools = \"yes\": expected true or false"),
        ("tools = 1979-05-27", "line 1, column 1: tools = 1979-05-27: expected true or false"),
        ("plugins = 5", "line 1, column 1: plugins = 5: expected a path in quotation marks"),
        ("calls = 1.5", "line 1, column 1: calls = 1.5: expected a number, 1 to 1024"),
        (
            "[mounts.a]\nask = 'maybe'",
            "line 2, column 1: mounts.a.ask = \"maybe\": expected true, false or \"persist\"",
        ),
        ("\ncalls = 0", "line 2, column 1: calls = 0: expected 1 to 1024"),
        ("[limits]\ntime = '0s'", "line 2, column 1: limits.time = \"0s\": expected 1ms to 1h"),
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
        ("[mounts.a]\nfs = { \"/a\" = ~/notes }", "\"~/notes\""),
        ("[mounts.a]\nenv = { A = \"x\", B = word }", "B = \"word\""),
        ("[[mounts.a.http]]\nmethods = [GET]", "\"GET\""),
    ] {
        let why = error(text);
        assert!(
            why.contains("put quotation marks around the text") && why.contains(cure) && why.contains("line "),
            "{text}: {why}"
        );
    }
}

#[test]
fn messages_name_types_of_toml_only() {
    for text in [
        "[mounts.a]\nhttp = ['x']",
        "[mounts.a]\nhttp = 'x'",
        "[mounts.a]\nhttp = [{ orign = 'x' }]",
        "[mounts.a]\nfs = { '/a' = 3 }",
        "[mounts.a]\nfs = { '/a' = { pth = 'x' } }",
        "[mounts.a]\nenv = { A = [] }",
        "[secrets]\na = { env = 3 }",
        "[secrets]\na = 'x'",
        "tools = 1",
        "calls = true",
        "plugins = []",
        "wall = {}",
        "limits = 3",
        "[mounts]\na = []",
        "[network]\ndns = 'x'",
        "[mounts.a]\nask = 3",
        "[mounts.a]\ncomponent = 3",
        "[mounts.a]\nenv = { A = 3 }",
        "[[mounts.a.http]]\norigin = 3",
        "[[mounts.a.http]]\norigin = 'x'\nown-ports = 'x'",
    ] {
        let why = error(text);
        let words = ["struct ", "enum ", "a map", "a sequence", "u64", "a boolean", "field", "variant", "invalid type"];
        let word = words.iter().find(|word| why.contains(*word));
        assert!(word.is_none(), "{text}: {word:?} is no word of TOML: {why}");
        assert!(why.contains("expected") || why.contains("unknown key"), "{text}: {why}");
    }
    assert!(error("[mounts.a]\nhttp = ['x']").contains("a table such as { origin ="));
    assert!(error("[limits]\nmemory = 'lots'").contains("MiB is 1,048,576 bytes; M and MB are 1,000,000"));
}

#[test]
fn the_keys_file_is_beside_the_configuration_or_where_it_says() {
    let config = read("").unwrap();
    assert_eq!((config.auth, config.api_keys), (None, PathBuf::from("/srv/belljar/keys.toml")));
    let config = read("[auth]").unwrap();
    assert!(config.auth.is_some_and(|auth| auth.keys.is_none() && auth.needs_keys_file()));
    assert_eq!(config.api_keys, PathBuf::from("/srv/belljar/keys.toml"));
    for (written, path) in [("k.toml", "/srv/belljar/k.toml"), ("~/k.toml", "/home/op/k.toml"), ("/k.toml", "/k.toml")]
    {
        let config = read(&format!("[auth]\nkeys = \"{written}\"")).unwrap();
        assert_eq!(config.api_keys, PathBuf::from(path));
        assert!(config.ambient.reserved.contains(&config.api_keys), "{path}");
    }
    assert!(error("[auth]\nkey = 'k.toml'").contains("unknown key \"auth.key\"; did you mean \"keys\"?"));
    assert!(error("[auth]\nkeys = 3").contains("auth.keys = 3: expected a path in quotation marks"));
    assert!(error("auth = true").contains("auth: expected a table, [auth]"));
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

#[test]
fn the_scheme_of_skills_is_reserved() {
    let why = error("[mounts.a]\nuri = 'skill://b/'");
    assert!(why.contains("mounts.a.uri") && why.contains("uri = \"skill://a/\""), "{why}");
    assert!(error("[mounts.a]\nuri = 'skill://'").contains("names of skills"));
    let config = read("[mounts.a]\nuri = 'skill://a/'\nskills = true").unwrap();
    assert!(config.mounts.values().all(|mount| mount.skills));
}
