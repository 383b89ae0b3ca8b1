//! Hostile rows about access tokens: providers that want them, upstreams that echo or refuse them, and authorization servers
//! that lie.

use std::sync::Arc;

use belljar_upstream::issuer::{Issuer, json, token};
use belljar_upstream::{Upstream, answer, echo};

use crate::expect::Answer;
use crate::http_grants::{answer_text, fetch};
use crate::row::{Row, Stops, hostile_guest};
use crate::tools::within;

/// The access token in the rows below.
const TOKEN: &str = "aCCess-t0ken+of/the-r0w";

/// The whole answer, or the whole error with its hint.
fn whole(answer: &Answer) -> String {
    answer.as_ref().map_or_else(ToString::to_string, ToString::to_string)
}

/// A row with a granted upstream, whose access tokens come from `issuer`.
fn row(id: &'static str, attack: &'static str, upstream: &Upstream, issuer: &Issuer) -> Row {
    let origin = origin(upstream);
    let oauth = format!("{{ issuer = \"{}\", client = \"c\", secret = \"${{secret:client}}\" }}", issuer.url());
    hostile_guest(id, attack)
        .config(&format!("http = [{{ origin = \"{origin}\", oauth = {oauth} }}]"))
        .settings("[secrets]\nclient = { env = \"CLIENT\" }")
        .shell("export CLIENT='the-secret-of-the-client'")
}

fn origin(upstream: &Upstream) -> String {
    format!("http://127.0.0.1:{}", upstream.port())
}

pub(crate) fn rows() -> Vec<Row> {
    vec![echoed(), wrong_endpoint(), wrong_issuer(), wrong_type(), huge(), refused(), redirected()]
}

/// An upstream returns the token in headers and in the body, and the provider shows it everywhere.
fn echoed() -> Row {
    let upstream = Arc::new(Upstream::plain(echo));
    let issuer = Issuer::start(|_, _| token(TOKEN, 3600));
    let origin = origin(&upstream);
    row("SEC-10", "a provider shows an access token that its upstream echoes", &upstream, &issuer)
        .act(move |context| {
            let _alive = &issuer;
            let leaks = |text: &str| text.to_lowercase().contains("t0ken");
            for order in [format!("GET {origin}/|sent"), format!("GET {origin}/|header authorization: x")] {
                let reply = answer_text(&context.read(&fetch(&order)));
                assert!(!leaks(&reply), "{order}: {reply}");
            }
            let failed = whole(&context.read(&fetch(&format!("GET {origin}/$TOKEN|fail"))));
            assert!(!leaks(&failed), "{failed}");
            assert_eq!(upstream.requests()[0].header("authorization"), Some(&*format!("Bearer {TOKEN}")));
            let records = context.records();
            assert!(!leaks(&records), "the records: {records}");
            assert!(!leaks(&context.running.process().stderr()), "the log");
            "masked in answers, errors, the log and the records".to_owned()
        })
        .stopped_by(&["redact"])
}

/// Metadata name an endpoint on a port that belljar may use for requests, but not for its secret.
fn wrong_endpoint() -> Row {
    let upstream = Arc::new(Upstream::plain(|_| token(TOKEN, 3600)));
    let victim = origin(&upstream);
    let issuer = Issuer::with_metadata(
        move |issuer| format!("{{\"issuer\":\"{issuer}\",\"token_endpoint\":\"{victim}/token\"}}"),
        |_, _| answer("404 Not Found", "", ""),
    );
    let own = origin(&upstream);
    row(
        "SEC-11",
        "an authorization server sends belljar, with its secret, to another service of this machine",
        &upstream,
        &issuer,
    )
    .act(move |context| {
        let _alive = &issuer;
        let said = whole(&context.read(&fetch(&format!("GET {own}/|fail"))));
        let asked: Vec<_> = upstream.requests().iter().map(|request| request.line.clone()).collect();
        assert!(asked.is_empty(), "{asked:?}: {said}");
        assert!(said.contains("a port that the configuration does not name"), "{said}");
        "refused, with the key that names the endpoint".to_owned()
    })
    .stopped_by(&["access-token"])
}

/// The metadata are those of another server (mix-up).
fn wrong_issuer() -> Row {
    let upstream = Arc::new(Upstream::plain(echo));
    let issuer = Issuer::with_metadata(
        |issuer| format!("{{\"issuer\":\"https://login.example\",\"token_endpoint\":\"{issuer}/token\"}}"),
        |_, _| token(TOKEN, 3600),
    );
    let origin = origin(&upstream);
    row("SEC-12", "an authorization server has the metadata of another one", &upstream, &issuer)
        .act(move |context| {
            let said = whole(&context.read(&fetch(&format!("GET {origin}/|fail"))));
            assert_eq!((issuer.requests("/token").len(), upstream.connections()), (0, 0), "{said}");
            assert!(said.contains("those of another issuer"), "{said}");
            "no secret and no request is sent".to_owned()
        })
        .stopped_by(&["access-token"])
}

/// A token that belljar cannot use as a bearer token, and one that it could not mask.
fn wrong_type() -> Row {
    let upstream = Arc::new(Upstream::plain(echo));
    let issuer = Issuer::start(|_, number| match number % 2 {
        0 => json(&format!("{{\"access_token\":\"{TOKEN}\",\"token_type\":\"DPoP\"}}")),
        _ => json("{\"access_token\":\"t0ken\",\"token_type\":\"Bearer\"}"),
    });
    let origin = origin(&upstream);
    row(
        "SEC-13",
        "an authorization server gives a token that is bound to a key, or too short to be masked",
        &upstream,
        &issuer,
    )
    .act(move |context| {
        let _alive = &issuer;
        let ask = |number: usize| whole(&context.read(&fetch(&format!("GET {origin}/{number}|fail"))));
        let said = ask(0);
        assert!(upstream.connections() == 0 && said.contains("token_type"), "{said}");
        // The server is asked again after a pause.
        let mut number = 0;
        let mut last = String::new();
        let is_asked = within(std::time::Duration::from_secs(20), || {
            number += 1;
            last = ask(number);
            last.contains("access_token")
        });
        assert!(is_asked && upstream.connections() == 0, "{last}");
        "neither is sent to the upstream".to_owned()
    })
    .stopped_by(&["access-token"])
}

/// The response of a token endpoint is large.
fn huge() -> Row {
    let upstream = Arc::new(Upstream::plain(echo));
    let members = format!("\"access_token\":\"{TOKEN}\",\"token_type\":\"Bearer\"");
    let body = format!("{{{members},\"x\":\"{}\"}}", "y".repeat(4 << 20));
    let issuer = Issuer::start(move |_, _| json(&body));
    let origin = origin(&upstream);
    row("SEC-14", "an authorization server answers with 4 MiB", &upstream, &issuer)
        .act(move |context| {
            let _alive = &issuer;
            let said = whole(&context.read(&fetch(&format!("GET {origin}/|fail"))));
            assert!(upstream.connections() == 0 && said.contains("has more than"), "{said}");
            "the response is dropped at its limit".to_owned()
        })
        .stopped_by(&["token"])
}

/// An upstream refuses every token.
fn refused() -> Row {
    let upstream = Arc::new(Upstream::plain(|_| answer("401 Unauthorized", "", "no")));
    let issuer = Issuer::start(|_, number| token(&format!("{TOKEN}-{number}"), 3600));
    let origin = origin(&upstream);
    row(
        "SEC-15",
        "an upstream refuses every token, so that belljar asks for another one at each request",
        &upstream,
        &issuer,
    )
    .act(move |context| {
        let _alive = &upstream;
        for number in 0..10 {
            let reply = answer_text(&context.read(&fetch(&format!("GET {origin}/{number}"))));
            assert!(reply.starts_with("status 401"), "{reply}");
        }
        let asked = issuer.requests("/token").len();
        assert!(asked <= 3, "{asked} requests for tokens");
        format!("{asked} requests for tokens in 10 reads")
    })
    .stopped_by(&["access-token"])
}

/// A token endpoint redirects to another server.
fn redirected() -> Row {
    let elsewhere = Arc::new(Upstream::plain(|_| token(TOKEN, 3600)));
    let upstream = Arc::new(Upstream::plain(echo));
    let location = format!("location: {}/token\r\n", origin(&elsewhere));
    let issuer = Issuer::start(move |_, _| answer("307 Temporary Redirect", &location, ""));
    let origin = origin(&upstream);
    row("SEC-16", "a token endpoint redirects belljar, with its secret, to another server", &upstream, &issuer)
        .act(move |context| {
            let _alive = &issuer;
            let said = whole(&context.read(&fetch(&format!("GET {origin}/|fail"))));
            assert_eq!((elsewhere.connections(), upstream.connections()), (0, 0), "{said}");
            assert!(said.contains("is a redirect"), "{said}");
            "the redirect is not followed".to_owned()
        })
        .stopped(Stops::Structure("belljar's own requests follow no redirect"))
}
