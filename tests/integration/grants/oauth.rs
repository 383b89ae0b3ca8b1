//! Access tokens for HTTP grants (OAuth 2.0): client credentials and logins, with a real authorization server; and what
//! belljar does with servers that lie.

mod login;
mod provider;
mod servers;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belljar_tests::{Client, Era, Site, Stdio, wait_until};
use belljar_upstream::issuer::{Issuer, token};
use belljar_upstream::{ReceivedRequest, Upstream, answer, echo};
use serde_json::json;

use crate::grants::http::{fetch, mount};
use crate::support::{serve, site, stdout_and_stderr};
use provider::Provider;

/// The mount `hostile` with a grant of `origin`, and the keys `oauth` of it.
fn grant(origin: &str, oauth: &str) -> String {
    mount(&format!("http = [{{ origin = \"{origin}\", methods = [\"GET\", \"POST\"], oauth = {{ {oauth} }} }}]"))
}

/// A site whose mount `hostile` has this `oauth`, with the secret `client`.
fn site_with(origin: &str, oauth: &str, secret: &str) -> Site {
    let site = site(&format!("[secrets]\nclient = {{ file = \"client\" }}\n{}", grant(origin, oauth)));
    let file = site.write("client", secret);
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    site
}

/// The keys of a client with a secret.
fn confidential(issuer: &str) -> String {
    format!("issuer = \"{issuer}\", client = \"belljar-service\", secret = \"${{secret:client}}\"")
}

fn origin(upstream: &Upstream) -> String {
    format!("http://127.0.0.1:{}", upstream.port())
}

/// The token of a request.
fn bearer(request: &ReceivedRequest) -> String {
    request.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or("none").to_owned()
}

/// The tokens that the upstream got, in order.
fn bearers(upstream: &Upstream) -> Vec<String> {
    upstream.requests().iter().map(bearer).collect()
}

/// Asserts that none of `secrets` is in the record, the log or the configuration's directory.
fn assert_hidden(site: &Site, client: &Client<Stdio>, secrets: &[String]) {
    let log = client.wire_ref().process.stderr();
    let record = site.audit_text_with("hostile");
    for secret in secrets {
        assert!(!log.contains(secret.as_str()), "the log: {log}");
        assert!(!record.contains(secret.as_str()), "the record: {record}");
    }
}

#[test]
fn client_credentials_are_added_and_masked() {
    for (methods, basic) in
        [(json!(["client_secret_basic", "none"]), true), (json!(["client_secret_post", "none"]), false)]
    {
        let Some(provider) = Provider::start(&json!({ "methods": methods })) else { return };
        let upstream = Upstream::plain(echo);
        let origin = origin(&upstream);
        let oauth = format!("{}, scopes = [\"forecast:read\"]", confidential(provider.issuer()));
        let site = site_with(&origin, &oauth, provider.secret());
        let mut client = serve(&site);
        let text = client.text(&fetch(&format!("GET {origin}/a|sent")));
        assert!(text.starts_with("sent") || text.starts_with("status 200"), "{text}");
        assert!(text.contains("****"), "{text}");
        client.text(&fetch(&format!("GET {origin}/b")));
        let sent = bearers(&upstream);
        assert!(sent.len() == 2 && sent[0] == sent[1] && provider.knows(&sent[0]), "{sent:?}");
        assert!(!text.contains(&sent[0]), "{text}");
        assert_eq!(provider.asked(), [("client_credentials".to_owned(), basic, 200)]);
        // The provider must not set the header itself, and does not see it.
        let text = client.text(&fetch(&format!("GET {origin}/c|header authorization: Bearer mine")));
        assert!(text.starts_with("refused: header"), "{text}");
        assert_hidden(&site, &client, &[sent[0].clone(), provider.secret().to_owned()]);
        client.close();
    }
}

#[test]
fn a_token_is_renewed_before_it_ends() {
    let Some(provider) = Provider::start(&json!({ "seconds": 1 })) else { return };
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let oauth = format!("{}, scopes = [\"forecast:read\"]", confidential(provider.issuer()));
    let site = site_with(&origin, &oauth, provider.secret());
    let mut client = serve(&site);
    let mut number = 0;
    wait_until("three tokens", || {
        number += 1;
        let text = client.text(&fetch(&format!("GET {origin}/{number}")));
        assert!(text.contains("****"), "{text}");
        let mut sent = bearers(&upstream);
        sent.dedup();
        if sent.len() >= 3 { Ok(()) } else { Err(sent.len()) }
    });
    assert_hidden(&site, &client, &bearers(&upstream));
    client.close();
}

#[test]
fn twenty_reads_make_one_request_for_a_token() {
    let issuer = Issuer::start(|_, number| {
        // Long enough for the other reads to come.
        std::thread::sleep(Duration::from_millis(500));
        token(&format!("token-number-{number}"), 3600)
    });
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let limits = "\n[mounts.hostile.limits]\ntime = \"60s\"\nqueue = \"60s\"\nconcurrency = 16\n";
    let config =
        format!("[secrets]\nclient = {{ env = \"CLIENT\" }}\n{}{limits}", grant(&origin, &confidential(&issuer.url())));
    let mut site = site(&config);
    site.env("CLIENT", "a-long-secret");
    let mut client = serve(&site);
    let ids: Vec<u64> = (0..20)
        .map(|number| client.send("resources/read", json!({ "uri": fetch(&format!("GET {origin}/{number}")) })))
        .collect();
    for id in ids {
        client.wait(id).unwrap();
    }
    assert_eq!(issuer.requests("/token").len(), 1);
    assert_eq!(bearers(&upstream), vec!["token-number-0"; 20]);
    client.close();
}

#[test]
fn a_refused_token_is_replaced_once_and_only_for_requests_that_change_nothing() {
    let issuer = Issuer::start(|_, number| token(&format!("token-number-{number}"), 3600));
    let upstream = Upstream::plain(|request| match bearer(request).as_str() {
        "token-number-0" => answer("401 Unauthorized", "www-authenticate: Bearer\r\n", "again"),
        _ if request.path().starts_with("/never") => answer("401 Unauthorized", "", "never"),
        _ => echo(request),
    });
    let origin = origin(&upstream);
    let site = site_with(&origin, &confidential(&issuer.url()), "a-long-secret");
    let mut client = serve(&site);
    // A request that may change something is not repeated. The next one has another token.
    let text = client.text(&fetch(&format!("POST {origin}/post|body 3")));
    assert!(text.starts_with("status 401"), "{text}");
    assert_eq!(bearers(&upstream), ["token-number-0"]);
    let text = client.text(&fetch(&format!("GET {origin}/a")));
    assert!(text.starts_with("status 200"), "{text}");
    assert_eq!(bearers(&upstream), ["token-number-0", "token-number-1"]);
    // An upstream that refuses every token does not get one after the other.
    for number in 0..5 {
        let text = client.text(&fetch(&format!("GET {origin}/never?{number}")));
        assert!(text.starts_with("status 401") && text.contains("never"), "{text}");
    }
    assert_eq!(issuer.requests("/token").len(), 2);
    client.close();

    // A read is repeated, once.
    upstream.forget();
    let issuer = Issuer::start(|_, number| token(&format!("token-number-{number}"), 3600));
    let site = site_with(&origin, &confidential(&issuer.url()), "a-long-secret");
    let mut client = serve(&site);
    let text = client.text(&fetch(&format!("GET {origin}/b|header accept: text/plain|times 2")));
    assert_eq!(text.matches("status 200").count(), 2, "{text}");
    assert_eq!(bearers(&upstream), ["token-number-0", "token-number-1", "token-number-1"]);
    assert!(upstream.requests().iter().all(|request| request.header("accept") == Some("text/plain")));
    assert_hidden(&site, &client, &["token-number-0".to_owned(), "token-number-1".to_owned()]);
    client.close();
}

#[test]
fn the_error_of_a_wrong_secret_has_the_cure_and_no_secret() {
    let Some(provider) = Provider::start(&json!({})) else { return };
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let secret = "a-wrong-secret";
    let site = site_with(&origin, &confidential(provider.issuer()), secret);
    let mut client = serve(&site);
    let error = client.read(&fetch(&format!("GET {origin}/|fail"))).unwrap_err();
    assert_eq!(error.data["kind"], "denied", "{error}");
    let hint = error.data["hint"].as_str().unwrap();
    let says = "invalid_client; check  client  and  secret  of  oauth";
    assert!(hint.contains(says) && hint.contains("[mounts.hostile]"), "{error}");
    assert!(!error.to_string().contains(secret), "{error}");
    assert_hidden(&site, &client, &[secret.to_owned()]);
    client.close();
    assert_eq!(upstream.connections(), 0);
}

/// A failing server is not asked for each request.
#[test]
fn a_server_that_fails_is_asked_again_after_a_pause() {
    let failures = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&failures);
    let issuer = Issuer::start(move |_, number| {
        if number < 2 {
            own.fetch_add(1, Ordering::SeqCst);
            return answer("503 Service Unavailable", "", "");
        }
        token("token-at-last", 3600)
    });
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let site = site_with(&origin, &confidential(&issuer.url()), "a-long-secret");
    let mut client = serve(&site);
    let error = client.text(&fetch(&format!("GET {origin}/|times 5")));
    assert_eq!(error.matches("DestinationUnavailable").count(), 5, "{error}");
    assert!(issuer.requests("/token").len() <= 2);
    let mut number = 0;
    wait_until("a token", || {
        number += 1;
        let text = client.text(&fetch(&format!("GET {origin}/{number}")));
        if text.starts_with("status 200") { Ok(()) } else { Err(text) }
    });
    assert_eq!((failures.load(Ordering::SeqCst), bearers(&upstream)), (2, vec!["token-at-last".to_owned()]));
    client.close();
}

#[test]
fn the_command_grant_writes_the_table() {
    let issuer = Issuer::start(|_, _| token("token-by-command", 3600));
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let mut site = site(&format!("[secrets]\nclient = {{ env = \"CLIENT\" }}\n{}", mount("")));
    site.env("CLIENT", "a-long-secret");
    let flags = ["--oauth", &issuer.url(), "--oauth-client", "belljar", "--oauth-secret", "${secret:client}"];
    let granted = site.run(&[&["grant", "hostile", "--yes", "--http", &origin][..], &flags].concat());
    let shown = stdout_and_stderr(&granted);
    assert!(granted.status.success() && shown.contains("token of http://127.0.0.1"), "{shown}");
    assert!(!shown.contains("a-long-secret"), "{shown}");
    let checked = stdout_and_stderr(&site.run(&["check"]));
    assert!(checked.contains("as \"belljar\" (by client credentials)"), "{checked}");
    let mut client = serve(&site);
    assert!(client.text(&fetch(&format!("GET {origin}/"))).starts_with("status 200"));
    assert_eq!(bearers(&upstream), ["token-by-command"]);
    client.close();
    let revoked = site.run(&["revoke", "hostile", "--http", &origin, "--yes"]);
    assert!(revoked.status.success(), "{}", stdout_and_stderr(&revoked));
    assert!(!std::fs::read_to_string(site.path("belljar.toml")).unwrap().contains("oauth"));
}

#[test]
fn impossible_tables_are_refused_before_anything_runs() {
    let oauth = "oauth = { issuer = \"https://login.example\", client = \"c\" }";
    for (grant, says) in [
        (format!("origin = \"http://a.example\", {oauth}"), "without TLS"),
        (
            format!("origin = \"https://a.example\", {oauth}, headers = {{ Authorization = \"x\" }}"),
            "oauth adds the header",
        ),
        (
            format!("origin = \"https://a.example\", {oauth}, allow-headers = [\"authorization\"]"),
            "oauth adds the header",
        ),
        ("origin = \"https://a.example\", oauth = { client = \"c\" }".to_owned(), "name the authorization server"),
        (
            "origin = \"https://a.example\", oauth = { issuer = \"http://login.example\", client = \"c\" }".to_owned(),
            "issuer: it is not encrypted",
        ),
    ] {
        let site = site(&mount(&format!("http = [{{ {grant} }}]")));
        let checked = site.run(&["check", "--json"]);
        let output = stdout_and_stderr(&checked);
        assert!(!checked.status.success() && output.contains(says), "{grant}: {output}");
    }
}

/// Each principal with a secret of its own has tokens of its own.
#[test]
fn tokens_belong_to_the_principal_whose_secret_they_are_for() {
    let issuer = Issuer::start(|request, _| {
        let client = request.header("authorization").unwrap_or_default();
        token(&format!("token-for-{}", client.len()), 3600)
    });
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let config = format!(
        "[auth]\n[secrets]\nclient = {{ file = \"s/{{principal}}/client\" }}\n{}",
        grant(&origin, &confidential(&issuer.url()))
    );
    let site = site(&config);
    for (name, secret) in [("one", "secret-of-one"), ("two", "another-secret-of-two")] {
        let file = site.write(format!("s/key%3a{name}/client"), secret);
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    }
    let keys = ["one", "two"].map(|name| {
        let made = site.run(&["key", "new", name]);
        assert!(made.status.success(), "{}", stdout_and_stderr(&made));
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    });
    let server = site.http();
    for key in &keys {
        let mut wire = server.wire(Era::Stateless);
        wire.authorization = Some(format!("Bearer {key}"));
        let mut client = Client::connect(wire, Era::Stateless);
        for path in ["a", "b"] {
            assert!(client.text(&fetch(&format!("GET {origin}/{path}"))).contains("****"));
        }
    }
    let sent = bearers(&upstream);
    assert!(sent[0] == sent[1] && sent[2] == sent[3] && sent[0] != sent[2], "{sent:?}");
    assert_eq!(issuer.requests("/token").len(), 2);
    server.stop();
}
