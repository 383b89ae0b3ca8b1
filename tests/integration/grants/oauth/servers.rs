//! Authorization servers that lie, and endpoints that the operator would not expect.

use belljar_tests::Site;
use belljar_upstream::issuer::{Issuer, json, refusal, token};
use belljar_upstream::{Upstream, answer, echo};

use super::{bearers, confidential, origin};
use crate::grants::http::fetch;
use crate::support::{serve, site};

/// A site with one mount of the hostile guest for each table `oauth`, which all use `upstream`.
fn site_with_mounts(origin: &str, tables: &[String]) -> Site {
    let mut config = "[secrets]\nclient = { env = \"CLIENT\" }\n".to_owned();
    for (number, oauth) in tables.iter().enumerate() {
        config += &format!(
            "[mounts.m{number}]\ncomponent = \"hostile.wasm\"\nhttp = [{{ origin = \"{origin}\", oauth = {{ {oauth} }} }}]\n"
        );
    }
    let mut site = site(&config);
    site.env("CLIENT", "a-long-secret");
    site
}

/// The URI of a fetch by the mount with this number.
fn fetch_by(number: usize, order: &str) -> String {
    fetch(order).replace("belljar://hostile/", &format!("belljar://m{number}/"))
}

#[test]
fn a_token_endpoint_that_lies_gets_no_token_sent() {
    let elsewhere = Upstream::plain(|_| token("token-from-elsewhere", 3600));
    let redirect = format!("location: http://127.0.0.1:{}/token\r\n", elsewhere.port());
    let huge = format!(
        "{{\"access_token\":\"a-token-after-all\",\"token_type\":\"Bearer\",\"x\":\"{}\"}}",
        "y".repeat(300 << 10)
    );
    let object = |members: &str| json(&format!("{{{members}}}"));
    let lies: Vec<(Vec<u8>, &str)> = vec![
        (answer("302 Found", &redirect, ""), "the response is a redirect"),
        (answer("307 Temporary Redirect", &redirect, ""), "the response is a redirect"),
        (json(&huge), "has more than 262144 bytes"),
        (answer("200 OK", "", "access_token=a-token-after-all&token_type=bearer"), "is not a JSON object"),
        (object("\"access_token\":\"a-token-after-all\",\"token_type\":\"mac\""), "\\\"token_type\\\" is not"),
        (object("\"access_token\":\"a-token\\r\\nx: y\",\"token_type\":\"Bearer\""), "\\\"access_token\\\" is missing"),
        (object("\"access_token\":\"short\",\"token_type\":\"Bearer\""), "\\\"access_token\\\" is missing"),
        (object("\"access_token\":\"a-token-after-all\",\"token_type\":\"Bearer\",\"expires_in\":\"1\""), "expires_in"),
        (object("\"error\":\"a-long-secret\""), "another error"),
        (refusal("invalid_scope"), "invalid_scope; check  scopes  of  oauth"),
        (refusal("unauthorized_client"), "unauthorized_client; allow the client"),
        (answer("404 Not Found", "", ""), "answers with the status 404"),
    ];
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let issuers: Vec<Issuer> = lies
        .iter()
        .map(|(lie, _)| {
            let lie = lie.clone();
            Issuer::start(move |_, _| lie.clone())
        })
        .collect();
    let tables: Vec<String> = issuers.iter().map(|issuer| confidential(&issuer.url())).collect();
    let site = site_with_mounts(&origin, &tables);
    let mut client = serve(&site);
    for (number, (_, says)) in lies.iter().enumerate() {
        let error = client.read(&fetch_by(number, &format!("GET {origin}/|fail"))).unwrap_err();
        assert_eq!(error.data["kind"], "denied", "{says}: {error}");
        let hint = error.data["hint"].to_string();
        assert!(hint.contains(says), "{says}: {error}");
        assert!(!error.to_string().contains("a-long-secret") && !error.to_string().contains("a-token"), "{error}");
    }
    assert_eq!((upstream.connections(), elsewhere.connections()), (0, 0));
    client.close();
}

#[test]
fn metadata_do_not_lead_to_an_endpoint_that_the_operator_would_not_expect() {
    let victim = Upstream::plain(|_| token("token-of-the-victim", 3600));
    let port = victim.port();
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let never = |_: &_, _| -> Vec<u8> { panic!("nobody asks") };
    let issuers = [
        // The metadata of another issuer.
        Issuer::with_metadata(
            |issuer| format!("{{\"issuer\":\"{issuer}/\",\"token_endpoint\":\"{issuer}/token\"}}"),
            never,
        ),
        // Another port of this machine.
        Issuer::with_metadata(
            move |issuer| format!("{{\"issuer\":\"{issuer}\",\"token_endpoint\":\"http://127.0.0.1:{port}/token\"}}"),
            never,
        ),
        // Another private host.
        Issuer::with_metadata(
            move |issuer| format!("{{\"issuer\":\"{issuer}\",\"token_endpoint\":\"http://localhost:{port}/token\"}}"),
            never,
        ),
        // Not encrypted.
        Issuer::with_metadata(
            |issuer| format!("{{\"issuer\":\"{issuer}\",\"token_endpoint\":\"http://login.example/token\"}}"),
            never,
        ),
        // No endpoint.
        Issuer::with_metadata(|issuer| format!("{{\"issuer\":\"{issuer}\"}}"), never),
        Issuer::with_metadata(|_| "<html>".to_owned(), never),
    ];
    let says = [
        "those of another issuer; write  issuer  of  oauth",
        &format!("add  token-endpoint = \"http://127.0.0.1:{port}/token\"  to  oauth"),
        "which is not public",
        "it is not encrypted",
        "name no \"token_endpoint\"",
        "are not a JSON object",
    ];
    let mut tables: Vec<String> = issuers.iter().map(|issuer| confidential(&issuer.url())).collect();
    // The operator names the endpoint, so the second wall lets belljar connect to its port.
    tables.push(format!("{}, token-endpoint = \"http://127.0.0.1:{port}/token\"", tables[1]));
    let named = tables.len() - 1;
    // Without any metadata.
    tables.push(format!(
        "client = \"c\", secret = \"${{secret:client}}\", token-endpoint = \"http://127.0.0.1:{port}/token\""
    ));
    let site = site_with_mounts(&origin, &tables);
    let mut client = serve(&site);
    for (number, says) in says.iter().enumerate() {
        let error = client.read(&fetch_by(number, &format!("GET {origin}/|fail"))).unwrap_err();
        assert_eq!(error.data["kind"], "denied", "{says}: {error}");
        assert!(error.data["hint"].as_str().unwrap().contains(says), "{says}: {error}");
    }
    assert_eq!((upstream.connections(), victim.connections()), (0, 0));
    for number in [named, named + 1] {
        let text = client.text(&fetch_by(number, &format!("GET {origin}/")));
        assert!(text.starts_with("status 200"), "{text}");
    }
    assert_eq!(bearers(&upstream), ["token-of-the-victim"; 2]);
    client.close();
}

#[test]
fn a_private_address_of_the_server_must_be_named() {
    let names = belljar_upstream::DnsServer::start(&[("login.test", &["127.0.0.1"])]);
    let upstream = Upstream::plain(echo);
    let origin = origin(&upstream);
    let authority = belljar_upstream::Authority::new();
    let server = Upstream::tls(authority.server(&["login.test"]), |_| token("token-over-tls", 3600));
    let url = format!("https://login.test:{}/token", server.port());
    let table = format!("client = \"c\", secret = \"${{secret:client}}\", token-endpoint = \"{url}\"");
    let named = format!("{table}, networks = [\"127.0.0.1\"]");
    let config = |oauth: &str| {
        format!(
            "[network]\ndns = [\"{}\"]\nca = \"ca.pem\"\n[secrets]\nclient = {{ env = \"CLIENT\" }}\n{}",
            names.address(),
            super::grant(&origin, oauth)
        )
    };
    for (oauth, is_allowed) in [(&table, false), (&named, true)] {
        let mut site = site(&config(oauth));
        site.write("ca.pem", authority.pem());
        site.env("CLIENT", "a-long-secret");
        let mut client = serve(&site);
        let read = client.read(&fetch(&format!("GET {origin}/|fail")));
        match is_allowed {
            true => assert!(read.is_ok(), "{read:?}"),
            false => {
                let error = read.unwrap_err();
                let says = "add  networks = [\"127.0.0.1\"]  to  oauth";
                assert!(error.data["hint"].as_str().unwrap().contains(says), "{error}");
            }
        }
        client.close();
    }
    assert_eq!(bearers(&upstream), ["token-over-tls"]);
}
