//! `belljar key`, the file of API keys, and how a running server follows the file. The tests run the real commands.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Output;
use std::thread;

use belljar_tests::{Server, Site, wait_until};
use serde_json::Value;

use crate::support::{isolated_site, site, stdout_and_stderr};

/// A site with `[auth]` and these further lines.
fn site_with_auth(more: &str) -> Site {
    site(&format!("{more}\n[auth]\n"))
}

/// The text of the keys file.
fn keys(site: &Site) -> String {
    fs::read_to_string(site.path("keys.toml")).unwrap_or_default()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command that must succeed.
fn succeeds(site: &Site, verb: &[&str]) -> Output {
    let output = site.run(verb);
    assert!(output.status.success(), "{verb:?}: {}", stdout_and_stderr(&output));
    output
}

/// Runs a command that must fail with this code, and returns its output.
fn fails(site: &Site, code: i32, verb: &[&str]) -> String {
    let output = site.run(verb);
    assert_eq!(output.status.code(), Some(code), "{verb:?}: {}", stdout_and_stderr(&output));
    let shown = stdout_and_stderr(&output);
    assert!(!shown.contains("panicked"), "{shown}");
    shown
}

/// Makes a key, and returns it.
fn new_key(site: &Site, arguments: &[&str]) -> String {
    let output = succeeds(site, &[&["key", "new"], arguments].concat());
    stdout(&output).trim_end().to_owned()
}

/// True for `bj_` and 49 letters and digits.
fn is_key(text: &str) -> bool {
    let body = text.strip_prefix("bj_").unwrap_or_default();
    body.len() == 49 && body.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[test]
fn a_new_key_is_shown_once_and_stored_as_its_hash() {
    let site = site_with_auth("");
    let output = succeeds(&site, &["key", "new", "ci", "--scope", "notes:read", "--scope", "a", "--group", "on call"]);
    let (shown, said) = (stdout(&output), stderr(&output));
    let key = shown.strip_suffix('\n').unwrap();
    assert!(is_key(key), "{shown}");
    assert!(said.contains("keys.toml") && said.contains("shown only now") && !said.contains(key), "{said}");
    let file = keys(&site);
    assert!(!file.contains(&key[3..]) && file.contains("scopes = [\"notes:read\", \"a\"]"), "{file}");
    assert!(file.contains("groups = [\"on call\"]"), "{file}");
    assert_eq!(fs::metadata(site.path("keys.toml")).unwrap().mode() & 0o777, 0o600);
    // The list shows what is stored.
    let list = site.run_json(&["key", "list"]);
    let one = &list["keys"][0];
    let sha256 = one["sha256"].as_str().unwrap();
    assert!(sha256.len() == 64 && file.contains(sha256), "{list}");
    assert_eq!((one["name"].as_str(), one["expired"].as_bool()), (Some("ci"), Some(false)));
    assert_eq!(one["scopes"], serde_json::json!(["notes:read", "a"]));
    let text = stdout(&succeeds(&site, &["key", "list"]));
    for part in ["ci", &sha256[..8], "scopes notes:read a", "groups on call", "expires at 2"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains(&sha256[..9]), "{text}");
    // As JSON, too, the key is on standard output only.
    let made = site.run(&["key", "new", "json", "--expires", "never", "--json"]);
    let value: Value = serde_json::from_slice(&made.stdout).unwrap();
    let key = value["key"].as_str().unwrap();
    assert!(is_key(key) && !stderr(&made).contains(key), "{value}");
    assert_eq!((value["name"].as_str(), &value["expires"]), (Some("json"), &Value::Null));
    assert!(stderr(&made).contains("It never expires"), "{}", stderr(&made));
}

#[test]
fn the_time_of_a_key_begins_now() {
    let site = site_with_auth("");
    for (name, time, days) in [("a", None, 90), ("b", Some("12h"), 0), ("c", Some("400d"), 400)] {
        let expires = time.map(|time| vec!["--expires", time]).unwrap_or_default();
        new_key(&site, &[&[name][..], &expires].concat());
        let list = site.run_json(&["key", "list"]);
        let one = list["keys"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        let day = |key: &str| days_since_1970(one[key].as_str().unwrap());
        let found = day("expires") - day("created");
        assert!((days..=days + 1).contains(&found), "{one}");
    }
}

/// The days from 1970 to the date of a time such as `2027-01-31T12:00:00Z`.
fn days_since_1970(time: &str) -> i64 {
    let number = |range| time.get(range).and_then(|part: &str| part.parse::<i64>().ok()).unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    // From Howard Hinnant, "chrono-compatible low-level date algorithms".
    let year = if month <= 2 { year - 1 } else { year };
    let era = year / 400;
    let of_era = year - era * 400;
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[test]
fn a_revoked_key_is_gone_and_the_rest_stays() {
    let site = site_with_auth("");
    for name in ["one", "two", "three"] {
        new_key(&site, &[name]);
    }
    let mine = keys(&site).replace("name = \"two\"", "name = \"two\" # mine");
    site.write("keys.toml", &mine);
    let shown = stdout(&succeeds(&site, &["key", "revoke", "one"]));
    assert!(shown.contains("The key \"one\" is revoked"), "{shown}");
    let after = keys(&site);
    assert!(
        !after.contains("\"one\"") && after.contains("name = \"two\" # mine") && after.contains("\"three\""),
        "{after}"
    );
    assert!(mine.ends_with(after.split_once("# mine").unwrap().1), "{after}");
    assert!(fails(&site, 1, &["key", "revoke", "one"]).contains("there is no key \"one\"; the keys are two, three"));
    assert!(fails(&site, 1, &["key", "new", "two"]).contains("there is already a key \"two\"; choose another name"));
    assert_eq!(keys(&site), after);
    succeeds(&site, &["key", "revoke", "two"]);
    succeeds(&site, &["key", "revoke", "three"]);
    assert!(stdout(&succeeds(&site, &["key", "list"])).contains("to make one, run: "));
    new_key(&site, &["two"]);
}

#[test]
fn wrong_arguments_change_nothing() {
    let site = site_with_auth("");
    for (arguments, expected) in [
        (&["key", "new"][..], "NAME"),
        (&["key", "new", "a b"], "is not the name of a key"),
        (&["key", "new", "a", "--scope", "a b"], "is not a scope"),
        (&["key", "new", "a", "--group", ""], "is not a group"),
        (&["key", "new", "a", "--scope", "a:read,b:read"], "\"a:read,b:read\" has a comma"),
        (&["key", "new", "a", "--group", "dev,ops"], "give --scope or --group once for each"),
        (&["key", "new", "a", "--expires", "soon"], "expected a time such as 90d or 12h, or \"never\""),
        (&["key", "new", "a", "--expires", "0s"], "expected a time"),
        (&["key", "new", "a", "--expires", "9000y"], "after the year 9999"),
        (&["key", "revoke", "a/b"], "is not the name of a key"),
        (&["key", "frob"], "unrecognized subcommand"),
    ] {
        let shown = fails(&site, 2, arguments);
        assert!(shown.contains(expected), "{arguments:?}: {shown}");
    }
    assert!(fails(&site, 1, &["key", "revoke", "a"]).contains("there are no keys"));
    assert!(!site.path("keys.toml").exists());
}

#[test]
fn a_bad_file_is_neither_used_nor_changed() {
    let site = site_with_auth("");
    let key = new_key(&site, &["ci"]);
    let good = keys(&site);
    for (bad, expected) in [
        (format!("{good}\n[[key]]\nname = \"x\"\n"), "the key \"sha256\" is missing"),
        (good.replace("scopes", "scope"), "did you mean \"scopes\"?"),
        (format!("{good}{good}"), "there are two keys \"ci\""),
        (good.replace("sha256 = \"", &format!("sha256 = \"{key}")), "line 6, column 1: key.sha256"),
    ] {
        site.write("keys.toml", &bad);
        for verb in [&["key", "new", "y"][..], &["key", "list"], &["key", "revoke", "ci"], &["check"]] {
            let shown = fails(&site, 1, verb);
            assert!(shown.contains(expected) && !shown.contains(&key[3..]), "{verb:?}: {shown}");
        }
        assert_eq!(keys(&site), bad);
    }
    site.write("keys.toml", &good);
    let mode = |mode| fs::set_permissions(site.path("keys.toml"), PermissionsExt::from_mode(mode)).unwrap();
    for bad in [0o622, 0o660, 0o602] {
        mode(bad);
        for verb in [&["key", "new", "y"][..], &["key", "revoke", "ci"], &["check"]] {
            let shown = fails(&site, 1, verb);
            assert!(shown.contains("other users can change") && shown.contains("chmod go-w"), "{bad:o}: {shown}");
        }
    }
    // The permissions that the operator chose stay.
    mode(0o640);
    new_key(&site, &["y"]);
    assert_eq!(fs::metadata(site.path("keys.toml")).unwrap().mode() & 0o777, 0o640);
}

#[test]
fn the_configuration_names_the_file() {
    let site = site("[auth]\nkeys = \"below/mine.toml\"\n");
    fs::create_dir(site.path("below")).unwrap();
    let shown = fails(&site, 1, &["check"]);
    assert!(shown.contains("[auth]: there is no keys file") && shown.contains("key new NAME"), "{shown}");
    new_key(&site, &["ci"]);
    assert!(site.path("below/mine.toml").exists() && !site.path("keys.toml").exists());
    let check = site.run_json(&["check"]);
    assert_eq!((&check["keys"]["valid"], &check["keys"]["expired"]), (&1.into(), &0.into()), "{check}");
    assert!(stdout(&succeeds(&site, &["check"])).contains("below/mine.toml (1 API key)"));
    // `--keys` names another file, and needs no configuration.
    site.config("this is not a configuration");
    new_key(&site, &["other", "--keys", "other.toml"]);
    let list = site.run_json(&["key", "list", "--keys", "other.toml"]);
    assert_eq!(list["keys"][0]["name"], "other");
    succeeds(&site, &["key", "revoke", "other", "--keys", "other.toml"]);
    // Without `[auth]`, the command says what is missing.
    site.config("");
    let output = succeeds(&site, &["key", "new", "unused"]);
    assert!(stderr(&output).contains("add the table  [auth]"), "{}", stderr(&output));
    assert!(site.path("keys.toml").exists());
    // A link to the file stays a link.
    fs::rename(site.path("keys.toml"), site.path("below/real.toml")).unwrap();
    symlink("below/real.toml", site.path("keys.toml")).unwrap();
    new_key(&site, &["linked"]);
    assert!(site.path("keys.toml").is_symlink() && keys(&site).contains("\"linked\""));
}

#[test]
fn no_grant_covers_the_keys() {
    let site = site("[auth]\nkeys = \"below/keys.toml\"\n");
    site.mount("files");
    fs::create_dir(site.path("below")).unwrap();
    new_key(&site, &["ci"]);
    let shown = fails(&site, 1, &["grant", "files", "--fs", "/data=below", "--yes"]);
    assert!(shown.contains("below"), "{shown}");
    assert!(!fs::read_to_string(site.path("belljar.toml")).unwrap().contains("[mounts.files]"), "{shown}");
}

#[test]
fn concurrent_commands_lose_no_key() {
    let site = site_with_auth("");
    thread::scope(|scope| {
        for n in 0..8 {
            let site = &site;
            scope.spawn(move || new_key(site, &[&format!("key-{n}")]));
        }
    });
    assert_eq!(site.run_json(&["key", "list"])["keys"].as_array().unwrap().len(), 8);
}

/// Waits until the log contains `text`.
fn await_log(server: &Server, text: &str) {
    wait_until(&format!("{text:?} in the log"), || {
        let log = server.process.stderr();
        log.contains(text).then_some(()).ok_or(log)
    });
}

#[test]
fn a_running_server_follows_the_keys() {
    // Not even with `reload = false`, and with a wrong configuration, is a revocation delayed.
    for more in ["", "[watch]\nreload = false\n", "wall = \"off\"\n"] {
        let site = site_with_auth(more);
        new_key(&site, &["first"]);
        let server = site.http();
        await_log(&server, "has 1 API key");
        let made = succeeds(&site, &["key", "new", "second"]);
        assert!(stderr(&made).contains("uses it from the next request on"), "{}", stderr(&made));
        await_log(&server, "has 2 API keys");
        let good = fs::read_to_string(site.path("belljar.toml")).unwrap();
        site.config("calls = \"wrong\"");
        let output = succeeds(&site, &["key", "list", "--keys", "keys.toml"]);
        assert!(stdout(&output).contains("second"), "{}", stdout(&output));
        succeeds(&site, &["key", "revoke", "second", "--keys", "keys.toml"]);
        wait_until("the revocation in the log", || {
            let log = server.process.stderr();
            (log.matches("has 1 API key").count() == 2).then_some(()).ok_or(log)
        });
        site.config(&good);
        // A wrong file changes nothing, and the log says why.
        let keys = keys(&site);
        site.write("keys.toml", "[[key]]\nname = 3\n");
        await_log(&server, "the new API keys are refused, the old ones stay in force");
        await_log(&server, "line 2, column 1: key.name = 3");
        site.write("keys.toml", keys);
        wait_until("the good keys in the log", || {
            let log = server.process.stderr();
            // The file is written in place, and may be read twice.
            (log.matches("has 1 API key").count() >= 3).then_some(()).ok_or(log)
        });
        fs::remove_file(site.path("keys.toml")).unwrap();
        await_log(&server, "is gone, and with it every API key");
        await_log(&server, "has 0 API keys");
    }
}

#[test]
fn a_server_without_keys_does_not_start() {
    let site = isolated_site();
    site.mount("clock");
    site.config("[auth]\n");
    let shown = fails(&site, 1, &["serve", "--http", "127.0.0.1:0"]);
    assert!(shown.contains("[auth]: there is no keys file") && shown.contains("belljar key new NAME"), "{shown}");
    site.write("keys.toml", "keyz = 1");
    let shown = fails(&site, 1, &["serve", "--http", "127.0.0.1:0"]);
    assert!(shown.contains("did you mean \"key\"?"), "{shown}");
}
