//! Logins of a person: `belljar login`, the stored refresh token, its rotation, and `belljar logout`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use belljar_tests::process::Ended;
use belljar_tests::{Process, Site, wait_until};
use belljar_upstream::issuer::{Issuer, json, refusal};
use belljar_upstream::{Upstream, echo};

use super::provider::Provider;
use super::{assert_hidden, bearers, grant, origin};
use crate::grants::http::fetch;
use crate::support::{serve, shared, site, stdout_and_stderr};

/// The longest wait for the end of `belljar login`.
const END: Duration = Duration::from_secs(60);

/// Starts `belljar login`, and returns the page and the code that it shows.
fn begin_login(site: &Site) -> (Process, String, String) {
    let mut process = Process::start(site.command(site.arguments(&["login", "hostile"])));
    let value =
        |name: &'static str| move |line: &str| line.trim().strip_prefix(name).map(|rest| rest.trim().to_owned());
    let page = process.await_stderr(END, value("page "));
    let code = process.await_stderr(END, value("code "));
    (process, page, code)
}

/// The files of logins of a site with a state directory of its own.
fn login_files(site: &Site) -> Vec<PathBuf> {
    let directories = fs::read_dir(site.path("state/belljar/logins")).into_iter().flatten().flatten();
    let files = directories.flat_map(|directory| fs::read_dir(directory.path()).unwrap().flatten());
    files.map(|file| file.path()).collect()
}

/// A site whose mount needs a login at `issuer`, with a state directory of its own.
fn site_with_login(origin: &str, issuer: &str, more: &str) -> Site {
    let oauth = format!("issuer = \"{issuer}\", client = \"belljar-device\"{more}");
    let mut site = site(&format!("{}\n[mounts.hostile.limits]\ntime = \"60s\"\n", grant(origin, &oauth)));
    site.own_state(shared());
    site
}

#[test]
fn a_person_logs_in_and_the_refresh_token_is_replaced_at_each_use() {
    let Some(provider) = Provider::start(&serde_json::json!({})) else { return };
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let site = site_with_login(&origin, provider.issuer(), ", scopes = [\"openid\", \"forecast:read\"]");
    let read = |number: usize| fetch(&format!("GET {origin}/{number}|fail"));

    let mut client = serve(&site);
    let error = client.read(&read(0)).unwrap_err();
    assert_eq!(error.data["kind"], "denied", "{error}");
    let hint = error.data["hint"].as_str().unwrap();
    assert!(hint.contains("nobody has logged in yet; run: belljar login hostile"), "{error}");
    let checked = stdout_and_stderr(&site.run(&["check"]));
    assert!(checked.contains("nobody has logged in; run:") && checked.contains("login hostile"), "{checked}");

    let (process, page, code) = begin_login(&site);
    provider.enter(&page, &code);
    let Ended { status, stderr } = process.wait(END);
    assert!(status.success() && stderr.contains("Logged in at http://127.0.0.1"), "{stderr}");
    let [file] = login_files(&site).try_into().unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let token = |file: &PathBuf| {
        let login: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        login["refresh-token"].as_str().unwrap_or_default().to_owned()
    };
    let first = token(&file);
    assert!(!first.is_empty() && !stderr.contains(&first));

    // The running server uses the login at once, behind its wall, and stores each new refresh token.
    provider.set_seconds(1);
    let mut number = 1;
    let mut stored = vec![first];
    wait_until("three refresh tokens", || {
        number += 1;
        client.read(&read(number)).unwrap();
        stored.push(token(&file));
        stored.dedup();
        if stored.len() >= 4 { Ok(()) } else { Err(stored.len()) }
    });
    let sent = bearers(&upstream);
    assert!(provider.knows(sent.last().unwrap()) || sent.len() > 1, "{sent:?}");

    // Another process takes turns with the server: no refresh token is used twice.
    for _ in 0..2 {
        let output = site.run(&["read", &read(number)]);
        assert!(output.status.success(), "{}", stdout_and_stderr(&output));
        number += 1;
        client.read(&read(number)).unwrap();
    }
    let asked = provider.asked();
    assert!(asked.iter().all(|(grant, _, status)| *status == 200 || grant == "device_code"), "{asked:?}");
    let checked = site.run_json(&["check"]);
    let mount = checked["mounts"].as_array().unwrap().iter().find(|mount| mount["name"] == "hostile").unwrap();
    assert_eq!(mount["logins"][0]["valid"], true, "{mount}");
    stored.extend(bearers(&upstream));
    assert_hidden(&site, &client, &stored);

    // The server ends the login.
    provider.revoke();
    let error = wait_until("the end of the login", || {
        number += 1;
        client.read(&read(number)).map_or_else(Ok, |_| Err("a token is still valid"))
    });
    assert!(
        error.data["hint"].as_str().unwrap().contains("the login has ended; run: belljar login hostile"),
        "{error}"
    );
    let checked = stdout_and_stderr(&site.run(&["check"]));
    assert!(checked.contains("the login has ended"), "{checked}");
    client.close();
}

#[test]
fn a_login_without_a_refresh_token_and_with_a_slow_person() {
    let issuer = Issuer::start(|request, number| match (request.path(), number) {
        ("/device", _) => json(
            "{\"device_code\":\"the-device-code\",\"user_code\":\"AB-CD\",\"verification_uri\":\"https://login.example/d\",\"expires_in\":600,\"interval\":1}",
        ),
        (_, 1) => refusal("authorization_pending"),
        // By five seconds (RFC 8628, 3.5).
        (_, 2) => refusal("slow_down"),
        _ => json("{\"access_token\":\"a-lasting-token\",\"token_type\":\"bearer\"}"),
    });
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let site = site_with_login(&origin, &issuer.url(), "");
    let mut client = serve(&site);
    let (process, page, code) = begin_login(&site);
    assert_eq!((page.as_str(), code.as_str()), ("https://login.example/d", "AB-CD"));
    let Ended { status, stderr } = process.wait(END);
    assert!(status.success() && !stderr.contains("a-lasting-token"), "{stderr}");
    assert_eq!(issuer.requests("/token").len(), 3);
    client.read(&fetch(&format!("GET {origin}/|fail"))).unwrap();
    assert_eq!(bearers(&upstream), ["a-lasting-token"]);
    // After `logout`, the running server no longer uses the token.
    let forgotten = site.run(&["logout", "hostile"]);
    assert!(forgotten.status.success() && login_files(&site).is_empty(), "{}", stdout_and_stderr(&forgotten));
    let error = client.read(&fetch(&format!("GET {origin}/2|fail"))).unwrap_err();
    assert!(error.to_string().contains("run: belljar login hostile"), "{error}");
    assert_eq!(upstream.connections(), 1);
    let again = stdout_and_stderr(&site.run(&["logout", "hostile"]));
    assert!(again.contains("does not exist"), "{again}");
    client.close();
}

#[test]
fn a_login_that_fails_says_why() {
    let device = "{\"device_code\":\"the-device-code\",\"user_code\":\"AB\",\"verification_uri\":\"https://login.example/d\",\"expires_in\":600,\"interval\":1}";
    let upstream = Upstream::plain(echo);
    for (first, second, says) in [
        (json(device), refusal("access_denied"), "the login was refused in the browser"),
        (json(device), refusal("expired_token"), "nobody entered the code in time"),
        (json(device), json("{}"), "its \"access_token\" is missing"),
        (json(&device.replace("600", "1")), refusal("authorization_pending"), "nobody entered the code in time"),
        (json(&device.replace("AB", "\\u001b[31mAB")), json("{}"), "its \"user_code\" is missing or malformed"),
        (refusal("invalid_client"), json("{}"), "invalid_client; check  client  and  secret"),
    ] {
        let issuer =
            Issuer::start(move |request, _| if request.path() == "/device" { first.clone() } else { second.clone() });
        let site = site_with_login(&origin(&upstream), &issuer.url(), "");
        let output = site.run(&["login", "hostile"]);
        let shown = stdout_and_stderr(&output);
        assert!(output.status.code() == Some(1) && shown.contains(says), "{says}: {shown}");
        assert!(!shown.contains("the-device-code") && !shown.contains('\u{1b}'), "{shown}");
        assert!(login_files(&site).is_empty());
    }
    let site = site("");
    let output = stdout_and_stderr(&site.run(&["login", "clock"]));
    assert!(output.contains("\"clock\" has no grant that needs a login"), "{output}");
}
