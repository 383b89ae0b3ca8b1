//! The commands that belljar prints as a cure, in errors and in its output. The tests paste each command into a real
//! shell, in another directory, and answer "y". Afterwards belljar must allow the refused action.

use std::io::Write as _;
use std::process::{Command, Stdio};

use belljar_tests::{Client, Era, RpcError, Site};
use belljar_upstream::{DnsServer, Upstream, echo};
use serde_json::Value;

use crate::grants::http::{fetch, mount};
use crate::support::{empty, kind, site, stdout_and_stderr};
use crate::trust::digests::answering;

/// The command in a text of belljar: the rest of the line after the last `run: `.
fn command(cure: &str) -> &str {
    let (_, command) = cure.rsplit_once("run: ").unwrap_or_else(|| panic!("no command in {cure:?}"));
    command.lines().next().unwrap_or_default()
}

/// Runs the command of `cure` at a pseudo-terminal in another directory, and answers "y". Returns its output.
fn paste(site: &Site, cure: &str) -> String {
    let elsewhere = site.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::create_dir_all(site.path("home")).unwrap();
    let pasted = site.write("pasted", format!("set -e\n{}\n", command(cure)));
    let mut script = Command::new("script");
    script.args(["-qec", &format!("sh {}", pasted.display()), "/dev/null"]).env_clear().envs(site.environment());
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(&elsewhere);
    let mut child = script.spawn().expect("start `script`, of util-linux");
    child.stdin.as_mut().unwrap().write_all(b"y\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{cure}\n{}", stdout_and_stderr(&output));
    let left: Vec<_> = std::fs::read_dir(&elsewhere).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "the command created files: {left:?}: {cure}");
    stdout_and_stderr(&output)
}

/// Compiles all components, and then starts the server. So a read waits for no compiler.
fn serve_compiled(site: &Site) -> Client<belljar_tests::Stdio> {
    site.run(&["check"]);
    site.stdio(Era::Stateless)
}

/// Returns the hint of an error. Asserts that the hint contains no path of the host, except the path of belljar.
fn hint(site: &Site, error: &RpcError) -> String {
    let hint = error.data["hint"].as_str().unwrap_or_else(|| panic!("no hint: {error}")).to_owned();
    assert!(
        !hint.contains(site.path("").to_str().unwrap().trim_end_matches('/')),
        "the hint contains a host path: {hint}"
    );
    hint
}

#[test]
fn the_suggested_command_grants_a_directory() {
    let site = site("[mounts.files]\ncomponent = \"files.wasm\"\n");
    site.write("home/files/a.md", "# A");
    let error = serve_compiled(&site).read("belljar://files/a.md").unwrap_err();
    assert_eq!(kind(&error), "denied", "{error}");
    paste(&site, &hint(&site, &error));
    assert_eq!(serve_compiled(&site).text("belljar://files/a.md"), "# A");
}

/// The printed command works also without a configuration and without the directory.
#[test]
fn the_suggested_command_works_without_a_configuration() {
    let site = empty();
    site.mount("files");
    let error = serve_compiled(&site).read("belljar://files/a.md").unwrap_err();
    paste(&site, &hint(&site, &error));
    site.write("home/files/a.md", "# A");
    let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    assert_eq!(written, "[mounts.files]\nfs = { \"/data\" = \"~/files\" }\n");
    assert_eq!(serve_compiled(&site).text("belljar://files/a.md"), "# A");
}

/// If the operator gave arguments such as `--config`, the printed command contains them.
#[test]
fn the_suggested_command_contains_the_arguments_of_the_operator() {
    let site = site("[mounts.files]\ncomponent = \"files.wasm\"\n");
    let output = stdout_and_stderr(&site.run(&["read", "belljar://files/a.md"]));
    assert!(command(&output).contains("--config"), "{output}");
    paste(&site, &output);
    site.write("home/files/a.md", "# A");
    assert_eq!(stdout_and_stderr(&site.run(&["read", "belljar://files/a.md"])).trim(), "# A");
}

/// The provider declares the guest path that it needs. If another path is granted, belljar names the right one.
#[test]
fn the_suggested_command_grants_the_path_that_the_provider_declares() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nfs = { \"/data\" = \"data\" }\n");
    site.write("data/x", "x");
    let needs = site.write("needs.toml", "[[fs]]\npath = '/mail'\nwhy = 'mailboxes'\n");
    let hostile = site.path("plugins/hostile.wasm");
    let declared = site.command(["declare".as_ref(), hostile.as_os_str(), needs.as_os_str()]).output().unwrap();
    assert!(declared.status.success(), "{}", stdout_and_stderr(&declared));
    let checked = stdout_and_stderr(&site.run(&["check"]));
    assert!(checked.contains("needs    fs \"/mail\": \"mailboxes\"  (not granted"), "{checked}");
    let error = serve_compiled(&site).read("belljar://hostile/errors/denied/plain").unwrap_err();
    assert!(error.message.contains("the mount was not granted fs \"/mail\""), "{error}");
    paste(&site, &hint(&site, &error));
    let checked = stdout_and_stderr(&site.run(&["check"]));
    assert!(checked.contains("needs    fs \"/mail\": \"mailboxes\"  (granted)"), "{checked}");
    let error = serve_compiled(&site).read("belljar://hostile/errors/denied/plain").unwrap_err();
    assert_eq!(error.data["hint"], Value::Null, "a hint, although the mount has every grant: {error}");
}

#[test]
fn suggested_commands_grant_an_origin_a_method_a_path_and_a_network() {
    let upstream = Upstream::plain(echo);
    let port = upstream.port();
    let names = DnsServer::start(&[("inside.test", &["127.0.0.1"]), ("a.wide.test", &["127.0.0.1"])]);
    let wide = format!("http://*.wide.test:{port}");
    let grants = format!(
        "http = [{{ origin = \"http://localhost:{port}\", paths = [\"/a\"] }}, {{ origin = \"{wide}\", paths = [\"/w\"] }}]"
    );
    let site = site(&format!("[network]\ndns = [\"{}\"]\n{}", names.address(), mount(&grants)));
    for (order, most_commands) in [
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
            let answered = serve_compiled(&site).read(&fetch(&format!("{order}|fail")));
            let error = match answered {
                Ok(read) => {
                    assert!(read.to_string().contains("status 200"), "{order}: {read}");
                    break;
                }
                Err(error) => error,
            };
            assert!(pasted < most_commands, "{order}: still refused after {pasted} commands: {error}");
            paste(&site, &hint(&site, &error));
            pasted += 1;
        }
        assert!(pasted > 0, "{order} was allowed from the beginning");
    }
    // If no grant can allow a request, the hint has no command.
    let error = serve_compiled(&site).read(&fetch(&format!("`id` http://localhost:{port}/a|fail"))).unwrap_err();
    assert!(hint(&site, &error).starts_with("nothing allows this: "), "{error}");
}

#[test]
fn suggested_commands_grant_a_variable_and_then_the_origin_that_it_names() {
    let site = site("[mounts.web]\ncomponent = \"web.wasm\"\n");
    let error = serve_compiled(&site).read("belljar://web/status").unwrap_err();
    assert!(error.message.contains("the mount was not granted env \"WEB\""), "{error}");
    paste(&site, &hint(&site, &error));
    let error = serve_compiled(&site).read("belljar://web/status").unwrap_err();
    let next = hint(&site, &error);
    assert!(next.contains("--http https://api.example"), "the hint does not name the origin: {error}");
    paste(&site, &next);
    let error = serve_compiled(&site).read("belljar://web/status").unwrap_err();
    assert_ne!(kind(&error), "denied", "the granted request is refused: {error}");
}

#[test]
fn the_suggested_command_declares_a_secret() {
    let mut site = site("[mounts.clock]\nenv = { A = \"${secret:api-key}\" }\n");
    let check = |site: &Site| -> Value { serde_json::from_slice(&site.run(&["check", "--json"]).stdout).unwrap() };
    let reason = check(&site)["refused"][0]["reason"].as_str().unwrap().to_owned();
    paste(&site, &reason);
    site.env("API_KEY", "0123456789");
    assert_eq!(check(&site)["refused"], Value::Array(Vec::new()));
}

#[test]
fn the_suggested_command_raises_a_limit() {
    for (limit, uri) in [
        ("fuel = 2000000", "belljar://hostile/spin"),
        ("time = \"300ms\"", "belljar://hostile/sleep/60000"),
        ("memory = \"2MiB\"", "belljar://hostile/grow/640"),
        ("result = \"4KiB\"", "belljar://hostile/text/8000"),
    ] {
        let site = site(&format!("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n[mounts.hostile.limits]\n{limit}\n"));
        let error = serve_compiled(&site).read(uri).unwrap_err();
        let cap = error.data["cap"].as_u64().unwrap();
        paste(&site, &hint(&site, &error));
        match serve_compiled(&site).read(uri) {
            Ok(_) => {}
            Err(again) => assert!(again.data["cap"].as_u64().unwrap() >= 2 * cap, "{limit}: {error}, then {again}"),
        }
    }
}

#[test]
fn the_suggested_command_trusts_a_changed_component() {
    let site = site("[mounts.swap]\nenv = { A = \"b\" }\n");
    site.drop_in("swap.wasm", answering("AAAA"));
    assert_eq!(serve_compiled(&site).text("belljar://swap/x"), "AAAA");
    site.drop_in("swap.wasm", answering("BBBB"));
    let error = serve_compiled(&site).read("belljar://swap/x").unwrap_err();
    let shown = paste(&site, &hint(&site, &error));
    assert!(shown.contains("old      sha256:"), "{shown}");
    assert_eq!(serve_compiled(&site).text("belljar://swap/x"), "BBBB");
}

/// If a grant needs consent and the client cannot ask, the printed command changes the grant into one without consent.
#[test]
fn the_suggested_command_grants_without_consent() {
    let site = site(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = true\nfs = { \"/notes\" = { path = \"notes\", ask = true } }\n",
    );
    site.write("notes/plan", "the plan");
    let uri = "belljar://hostile/need/%252Fnotes%252Fplan";
    let error = serve_compiled(&site).read(uri).unwrap_err();
    paste(&site, &hint(&site, &error));
    assert!(serve_compiled(&site).text(uri).contains("the plan"));
    let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    assert!(written.contains("fs = { \"/notes\" = \"notes\" }"), "{written}");
}

/// `set` refuses to change grants, and names `belljar grant`.
#[test]
fn set_changes_no_grants() {
    let site = site("[mounts.clock]\nenv = { A = \"b\" }\n");
    let before = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    for line in [
        "mounts.clock.env.B = c",
        "mounts.clock.fs = { '/' = '.' }",
        "mounts.clock = {}",
        "mounts.x.http = [{ origin = 'https://x.example' }]",
    ] {
        let output = site.run(&["set", line, "--yes"]);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stdout_and_stderr(&output));
        assert!(stdout_and_stderr(&output).contains("belljar grant"), "{line}: {}", stdout_and_stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(site.path("belljar.toml")).unwrap(), before);
    assert!(site.run(&["set", "mounts.clock.limits.time = 9s", "--yes"]).status.success());
    let output = site.run(&["set", "mounts.clock.limits.tmie = 9s", "--yes"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout_and_stderr(&output));
    assert!(stdout_and_stderr(&output).contains("did you mean \"time\"?"), "{}", stdout_and_stderr(&output));
}

/// Hints of the command line name no hidden command, and every help text lists the exit codes.
#[test]
fn hidden_verbs_are_not_offered() {
    let site = empty();
    for typed in ["compile", "compile-componen", "outsid", "compile-component2"] {
        let output = stdout_and_stderr(&site.command([typed]).output().unwrap());
        assert!(!output.contains("compile-component'") && !output.contains("'outside'"), "{typed}: {output}");
    }
    let help = stdout_and_stderr(&site.command(["--help"]).output().unwrap());
    assert!(!help.contains("compile-component") && !help.contains("outside"), "{help}");
    for verb in ["list", "check", "grant", "read", "set"] {
        let help = stdout_and_stderr(&site.command([verb, "--help"]).output().unwrap());
        assert!(help.contains("Exit codes: 0 success, 1 failure"), "{verb}: {help}");
    }
}

/// `list` fails like `check` if a mount is not served.
#[test]
fn list_and_check_have_the_same_exit_code() {
    let site = empty();
    site.mount("clock");
    let codes = |site: &Site| ["list", "check"].map(|verb| site.run(&[verb]).status.code());
    assert_eq!(codes(&site), [Some(0), Some(0)]);
    site.drop_in("broken.wasm", "no component");
    assert_eq!(codes(&site), [Some(1), Some(1)]);
    assert_eq!(site.run(&["list", "--mount", "clock"]).status.code(), Some(0), "the requested mount is served");
}

/// With `--json`, these commands report the changes that they made.
#[test]
fn commands_report_changes_as_json() {
    let site = empty();
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

/// Output is coloured only at a terminal, and not with `NO_COLOR`.
#[test]
fn output_is_coloured_only_at_a_terminal() {
    let mut site = empty();
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
    for setting in ["NO_COLOR=1", "CLICOLOR=0"] {
        let shown = at_terminal(&site, setting);
        assert!(shown.contains("clock") && !shown.contains("\u{1b}[1m"), "{setting}: {shown:?}");
    }
    assert!(!stdout_and_stderr(&site.run(&["list"])).contains('\u{1b}'), "the output to a pipe is coloured");
}
