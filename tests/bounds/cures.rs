//! Every command that belljar prints as a cure is pasted into a shell, in a directory that has nothing to do with belljar, by
//! somebody who answers "y"; and what was refused is allowed then.

use std::io::Write as _;
use std::process::{Command, Stdio};

use belljar_tests::{Client, Era, RpcError, Site};
use belljar_upstream::{Names, Upstream, echo};
use serde_json::Value;

use crate::http::{fetch, mount};
use crate::place::{bare, kind, said, site};
use crate::trust::answering;

/// The command of a cure: all that follows the last `run: `.
fn command(cure: &str) -> &str {
    let (_, command) = cure.rsplit_once("run: ").unwrap_or_else(|| panic!("no command in {cure:?}"));
    command.lines().next().unwrap_or_default()
}

/// Pastes a command at a terminal, somewhere else, and answers "y".
fn paste(site: &Site, cure: &str) -> String {
    let elsewhere = site.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::create_dir_all(site.path("home")).unwrap();
    let pasted = site.write("pasted", format!("set -e\n{}\n", command(cure)));
    let mut script = Command::new("script");
    script.args(["-qec", &format!("sh {}", pasted.display()), "/dev/null"]).env_clear().envs(site.environment());
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(&elsewhere);
    let mut child = script.spawn().expect("script, of util-linux");
    child.stdin.as_mut().unwrap().write_all(b"y\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{cure}\n{}", said(&output));
    let left: Vec<_> = std::fs::read_dir(&elsewhere).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "the command did something else: {left:?}: {cure}");
    said(&output)
}

/// Serves, with everything compiled: a read waits for no compiler.
fn served(site: &Site) -> Client<belljar_tests::Stdio> {
    site.run(&["check"]);
    site.stdio(Era::Modern)
}

/// The hint of an error, which names no path of the host's but a program's.
fn hint(site: &Site, error: &RpcError) -> String {
    let hint = error.data["hint"].as_str().unwrap_or_else(|| panic!("no hint: {error}")).to_owned();
    assert!(!hint.contains(site.path("").to_str().unwrap().trim_end_matches('/')), "a path of the host: {hint}");
    hint
}

#[test]
fn a_directory() {
    let site = site("[mounts.files]\ncomponent = \"files.wasm\"\n");
    site.write("home/files/a.md", "# A");
    let error = served(&site).read("belljar://files/a.md").unwrap_err();
    assert_eq!(kind(&error), "denied", "{error}");
    paste(&site, &hint(&site, &error));
    assert_eq!(served(&site).text("belljar://files/a.md"), "# A");
}

/// Also where there is no configuration yet, and no such directory.
#[test]
fn a_directory_without_a_configuration() {
    let site = bare();
    site.mount("files");
    let error = served(&site).read("belljar://files/a.md").unwrap_err();
    paste(&site, &hint(&site, &error));
    site.write("home/files/a.md", "# A");
    let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    assert_eq!(written, "[mounts.files]\nfs = { \"/data\" = \"~/files\" }\n");
    assert_eq!(served(&site).text("belljar://files/a.md"), "# A");
}

/// What a terminal is told works there, too: with what the operator typed.
#[test]
fn at_a_terminal() {
    let site = site("[mounts.files]\ncomponent = \"files.wasm\"\n");
    let told = said(&site.run(&["read", "belljar://files/a.md"]));
    assert!(command(&told).contains("--config"), "{told}");
    paste(&site, &told);
    site.write("home/files/a.md", "# A");
    assert_eq!(said(&site.run(&["read", "belljar://files/a.md"])).trim(), "# A");
}

/// The provider says which path it looks for; another one does not help it, and belljar says so.
#[test]
fn a_directory_under_the_path_that_the_provider_declares() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\nfs = { \"/data\" = \"data\" }\n");
    site.write("data/x", "x");
    let needs = site.write("needs.toml", "[[fs]]\npath = '/mail'\nwhy = 'mailboxes'\n");
    let imp = site.path("plugins/imp.wasm");
    let declared = site.command(["declare".as_ref(), imp.as_os_str(), needs.as_os_str()]).output().unwrap();
    assert!(declared.status.success(), "{}", said(&declared));
    let checked = said(&site.run(&["check"]));
    assert!(checked.contains("needs    fs \"/mail\": \"mailboxes\"  (not granted"), "{checked}");
    let error = served(&site).read("belljar://imp/errors/denied/plain").unwrap_err();
    assert!(error.message.contains("the mount was not granted fs \"/mail\""), "{error}");
    paste(&site, &hint(&site, &error));
    let checked = said(&site.run(&["check"]));
    assert!(checked.contains("needs    fs \"/mail\": \"mailboxes\"  (granted)"), "{checked}");
    let error = served(&site).read("belljar://imp/errors/denied/plain").unwrap_err();
    assert_eq!(error.data["hint"], Value::Null, "it has all that it needs: {error}");
}

#[test]
fn an_origin_a_method_a_path_and_a_network() {
    let upstream = Upstream::plain(echo);
    let port = upstream.port();
    let names = Names::start(&[("inside.test", &["127.0.0.1"]), ("a.wide.test", &["127.0.0.1"])]);
    let wide = format!("http://*.wide.test:{port}");
    let grants = format!(
        "http = [{{ origin = \"http://localhost:{port}\", paths = [\"/a\"] }}, {{ origin = \"{wide}\", paths = [\"/w\"] }}]"
    );
    let site = site(&format!("[network]\ndns = [\"{}\"]\n{}", names.address(), mount(&grants)));
    for (order, most) in [
        (format!("GET http://127.0.0.1:{port}/x"), 1),
        (format!("POST http://127.0.0.1:{port}/x"), 1),
        (format!("POST http://localhost:{port}/b'c"), 1),
        (format!("GET http://localhost:{port}/$(touch${{IFS}}pwned)/*"), 1),
        (format!("GET http://localhost:{port}/{}", "long/".repeat(100)), 1),
        (format!("GET http://inside.test:{port}/"), 2),
        (format!("PUT http://a.wide.test:{port}/other"), 2),
    ] {
        let mut pasted = 0;
        loop {
            let answered = served(&site).read(&fetch(&format!("{order}|fail")));
            let error = match answered {
                Ok(read) => {
                    assert!(read.to_string().contains("status 200"), "{order}: {read}");
                    break;
                }
                Err(error) => error,
            };
            assert!(pasted < most, "{order}: still refused after {pasted} commands: {error}");
            paste(&site, &hint(&site, &error));
            pasted += 1;
        }
        assert!(pasted > 0, "{order} was allowed from the beginning");
    }
    // What no grant can say has no command.
    let error = served(&site).read(&fetch(&format!("`id` http://localhost:{port}/a|fail"))).unwrap_err();
    assert!(hint(&site, &error).starts_with("nothing allows this: "), "{error}");
}

#[test]
fn a_variable_and_then_what_it_leads_to() {
    let site = site("[mounts.web]\ncomponent = \"web.wasm\"\n");
    let error = served(&site).read("belljar://web/status").unwrap_err();
    assert!(error.message.contains("the mount was not granted env \"WEB\""), "{error}");
    paste(&site, &hint(&site, &error));
    let error = served(&site).read("belljar://web/status").unwrap_err();
    let next = hint(&site, &error);
    assert!(next.contains("--http https://api.example"), "the variable is there: {error}");
    paste(&site, &next);
    let error = served(&site).read("belljar://web/status").unwrap_err();
    assert_ne!(kind(&error), "denied", "it may ask, and nobody answers: {error}");
}

#[test]
fn a_secret() {
    let mut site = site("[mounts.clock]\nenv = { A = \"${secret:api-key}\" }\n");
    let refused = |site: &Site| -> Value { serde_json::from_slice(&site.run(&["check", "--json"]).stdout).unwrap() };
    let reason = refused(&site)["refused"][0]["reason"].as_str().unwrap().to_owned();
    paste(&site, &reason);
    site.env("API_KEY", "0123456789");
    assert_eq!(refused(&site)["refused"], Value::Array(Vec::new()));
}

#[test]
fn a_limit() {
    for (limit, uri) in [
        ("fuel = 2000000", "belljar://imp/spin"),
        ("time = \"300ms\"", "belljar://imp/sleep/60000"),
        ("memory = \"2MiB\"", "belljar://imp/grow/640"),
        ("result = \"4KiB\"", "belljar://imp/text/8000"),
    ] {
        let site = site(&format!("[mounts.imp]\ncomponent = \"imp.wasm\"\n[mounts.imp.limits]\n{limit}\n"));
        let error = served(&site).read(uri).unwrap_err();
        let cap = error.data["cap"].as_u64().unwrap();
        paste(&site, &hint(&site, &error));
        match served(&site).read(uri) {
            Ok(_) => {}
            Err(again) => assert!(again.data["cap"].as_u64().unwrap() >= 2 * cap, "{limit}: {error}, then {again}"),
        }
    }
}

#[test]
fn trust() {
    let site = site("[mounts.swap]\nenv = { A = \"b\" }\n");
    site.drop_in("swap.wasm", answering("AAAA"));
    assert_eq!(served(&site).text("belljar://swap/x"), "AAAA");
    site.drop_in("swap.wasm", answering("BBBB"));
    let error = served(&site).read("belljar://swap/x").unwrap_err();
    let shown = paste(&site, &hint(&site, &error));
    assert!(shown.contains("old      sha256:"), "{shown}");
    assert_eq!(served(&site).text("belljar://swap/x"), "BBBB");
}

/// What a person is asked for each time is allowed for good.
#[test]
fn what_is_asked_for() {
    let site = site(
        "[mounts.imp]\ncomponent = \"imp.wasm\"\nask = true\nfs = { \"/notes\" = { path = \"notes\", ask = true } }\n",
    );
    site.write("notes/plan", "the plan");
    let uri = "belljar://imp/need/%252Fnotes%252Fplan";
    let error = served(&site).read(uri).unwrap_err();
    paste(&site, &hint(&site, &error));
    assert!(served(&site).text(uri).contains("the plan"));
    let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    assert!(written.contains("fs = { \"/notes\" = \"notes\" }"), "{written}");
}

/// `set` gives nobody anything.
#[test]
fn settings_are_no_grants() {
    let site = site("[mounts.clock]\nenv = { A = \"b\" }\n");
    let before = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    for line in [
        "mounts.clock.env.B = c",
        "mounts.clock.fs = { '/' = '.' }",
        "mounts.clock = {}",
        "mounts.x.http = [{ origin = 'https://x.example' }]",
    ] {
        let output = site.run(&["set", line, "--yes"]);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", said(&output));
        assert!(said(&output).contains("belljar grant"), "{line}: {}", said(&output));
    }
    assert_eq!(std::fs::read_to_string(site.path("belljar.toml")).unwrap(), before);
    assert!(site.run(&["set", "mounts.clock.limits.time = 9s", "--yes"]).status.success());
    let output = site.run(&["set", "mounts.clock.limits.tmie = 9s", "--yes"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("did you mean \"time\"?"), "{}", said(&output));
}

/// A tip names no verb that is none of the user's; each help tells its exit codes.
#[test]
fn hidden_verbs_are_not_offered() {
    let site = bare();
    for typed in ["compile", "compile-componen", "outsid", "compile-component2"] {
        let told = said(&site.command([typed]).output().unwrap());
        assert!(!told.contains("compile-component'") && !told.contains("'outside'"), "{typed}: {told}");
    }
    let help = said(&site.command(["--help"]).output().unwrap());
    assert!(!help.contains("compile-component") && !help.contains("outside"), "{help}");
    for verb in ["list", "check", "grant", "read", "set"] {
        let help = said(&site.command([verb, "--help"]).output().unwrap());
        assert!(help.contains("Exit codes: 0 fine, 1 failed"), "{verb}: {help}");
    }
}

/// As `check` does, `list` fails when something is not served.
#[test]
fn list_and_check_agree() {
    let site = bare();
    site.mount("clock");
    let codes = |site: &Site| ["list", "check"].map(|verb| site.run(&[verb]).status.code());
    assert_eq!(codes(&site), [Some(0), Some(0)]);
    site.drop_in("broken.wasm", "no component");
    assert_eq!(codes(&site), [Some(1), Some(1)]);
    assert_eq!(site.run(&["list", "--mount", "clock"]).status.code(), Some(0), "what was asked for is served");
}

/// Data about changes, for programs.
#[test]
fn changes_are_told_as_json() {
    let site = bare();
    site.mount("clock");
    let changed = |verb: &[&str]| site.run_json(&[verb, &["--yes"]].concat());
    let granted = changed(&["grant", "clock", "--env", "A=b"]);
    assert_eq!((&granted["written"], &granted["mount"]), (&Value::Bool(true), &Value::from("clock")), "{granted}");
    assert_eq!(granted["granted"][0], "env: A", "{granted}");
    assert_eq!(changed(&["grant", "clock", "--env", "A=b"])["written"], false);
    assert_eq!(changed(&["set", "list-time = 4s"])["written"], true);
    assert_eq!(changed(&["trust", "clock"])["trusted"], Value::Array(Vec::new()));
    assert_eq!(changed(&["revoke", "clock", "--all"])["granted"], Value::Array(Vec::new()));
}

/// Colours are for terminals, and not for whoever wants none.
#[test]
fn colours_are_for_terminals() {
    let mut site = bare();
    site.mount("clock");
    site.env("TERM", "xterm");
    let at_terminal = |site: &Site, before: &str| {
        let belljar = site.command(site.arguments(&["list"]));
        let words: Vec<String> = std::iter::once(belljar.get_program())
            .chain(belljar.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let mut script = Command::new("script");
        script
            .args(["-qec", &format!("{before} {}", words.join(" ")), "/dev/null"])
            .env_clear()
            .envs(site.environment());
        let output = script.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    site.run(&["list"]);
    assert!(at_terminal(&site, "").contains("\u{1b}[1mclock"), "{:?}", at_terminal(&site, ""));
    for none in ["NO_COLOR=1", "CLICOLOR=0"] {
        let shown = at_terminal(&site, none);
        assert!(shown.contains("clock") && !shown.contains("\u{1b}[1m"), "{none}: {shown:?}");
    }
    assert!(!said(&site.run(&["list"])).contains('\u{1b}'), "a pipe");
}
