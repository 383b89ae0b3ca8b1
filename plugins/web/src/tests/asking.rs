//! Tests of requests, redirects and errors.

use super::*;

const SETTINGS: &str = "it = \"https://a.example/x\"";

fn error(recording: Recording) -> Error {
    recording.web(SETTINGS).read("it").unwrap_err()
}

fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Error {
    error(Recording::new().answer("https://a.example/x", status, headers, body))
}

fn words(error: Error) -> (&'static str, String) {
    match error {
        Error::NotFound => ("not-found", String::new()),
        Error::Invalid(why) => ("invalid", why),
        Error::Denied(why) => ("denied", why),
        Error::Unavailable(why) => ("unavailable", why),
        Error::Failed(why) => ("failed", why),
    }
}

#[test]
fn each_status_is_an_error_of_its_kind() {
    let json = [("content-type", "application/problem+json")];
    for (got, kind, parts) in [
        (status(404, &[], "gone fishing"), "not-found", &[][..]),
        (status(410, &[], ""), "not-found", &[]),
        (status(401, &json, r#"{"message": "Bad\u0007 credentials"}"#), "denied", &["401 (unauthorized): Bad"]),
        (status(403, &json, r#"{"error": {"message": "No scope"}}"#), "denied", &["403 (forbidden): No scope"]),
        (status(403, &[("content-type", "text/html")], "<h1>No"), "denied", &["\"https://a.example/x\" answered 403"]),
        (status(429, &[("retry-after", "90")], ""), "unavailable", &["429 (too many", "; try again in 1m 30s"]),
        (
            status(503, &[("retry-after", "Tue, 28 Jul 2026 12:30:00 GMT")], ""),
            "unavailable",
            &["503", "; try again after 2026-07-28T12:30:00Z"],
        ),
        (
            status(500, &[("content-type", "text/plain")], "boom\nat line 3"),
            "unavailable",
            &["500", ": boom at line 3"],
        ),
        (status(400, &json, r#"{"detail": "no such field"}"#), "failed", &["400 (bad request): no such field"]),
        (status(418, &[], ""), "failed", &["answered 418"]),
        (status(304, &[], ""), "failed", &["304"]),
        (status(302, &[], ""), "failed", &["without a location header"]),
    ] {
        let (got, why) = words(got);
        assert_eq!(got, kind, "{why}");
        has(&why, parts);
    }
    let long = "word ".repeat(1_000);
    let (_, why) = words(status(403, &[("content-type", "text/plain")], &long));
    assert!(why.len() < 300 && why.ends_with('\u{2026}'), "{why}");
}

#[test]
fn a_missing_answer_is_an_error_with_the_reason() {
    let of = |failure| words(error(Recording::new().fails("https://a.example/x", failure)));
    assert_eq!(of(Failure::Denied), ("denied", "no request to \"https://a.example/x\" was granted".to_owned()));
    let (kind, why) = of(Failure::Unavailable("it refused the connection".to_owned()));
    assert_eq!(kind, "unavailable");
    has(&why, &["\"https://a.example/x\": it refused the connection"]);
    assert_eq!(of(Failure::Failed("TLS failed".to_owned())).0, "failed");
}

#[test]
fn bodies_that_contradict_their_headers_are_errors() {
    let (kind, why) = words(status(200, &[("content-length", "10")], "short"));
    assert_eq!(
        (kind, why.as_str()),
        ("unavailable", "the answer of \"https://a.example/x\" ended after 5 of 10 bytes")
    );
    let (kind, why) = words(status(200, &[("content-length", "3")], "longer"));
    assert_eq!(kind, "failed");
    has(&why, &["more than the 3 bytes"]);
    let (kind, why) = words(status(200, &[("content-encoding", "br")], "\u{1f}"));
    assert_eq!(kind, "failed");
    has(&why, &["content encoding \"br\""]);
}

#[test]
fn a_query_is_not_repeated_in_an_error() {
    let settings = "it = \"https://a.example/x{?q}\"";
    let (_, why) = words(Recording::new().web(settings).read("it?q=private").unwrap_err());
    has(&why, &["https://a.example/x"]);
    has_not(&why, &["private"]);
}

#[test]
fn each_redirect_is_followed_by_a_request_of_its_own() {
    let recording = Recording::new()
        .answer("https://a.example/x", 301, &[("location", "/y#part")], "")
        .answer("https://a.example/y", 307, &[("location", "//b.example/z?a=1")], "")
        .with("https://b.example/z?a=1", "text/html", "<a href=w>w</a>");
    // Links are relative to the final URL.
    assert_eq!(markdown(&recording.web(SETTINGS), "it"), "[w](https://b.example/w)\n");
    assert_eq!(recording.urls(), ["https://a.example/x", "https://a.example/y", "https://b.example/z?a=1"]);
}

#[test]
fn a_redirect_without_a_grant_names_both_urls() {
    let recording = Recording::new().answer("https://a.example/x", 302, &[("location", "http://10.0.0.1/admin")], "");
    let (kind, why) = words(error(recording));
    assert_eq!(kind, "denied");
    assert_eq!(
        why,
        "\"https://a.example/x\" redirects to \"http://10.0.0.1/admin\", and no request to there was granted"
    );
}

#[test]
fn endless_and_invalid_redirects_are_errors() {
    let looping = Recording::new().answer("https://a.example/x", 302, &[("location", "/x")], "");
    let (kind, why) = words(error(looping.clone()));
    assert_eq!(kind, "failed");
    has(&why, &["once more after 5 redirects"]);
    assert_eq!(looping.urls().len(), 6);
    for location in ["file:///etc/passwd", "ftp://a.example/", "http://", "javascript:1", "https://[::"] {
        let (kind, why) = words(status(302, &[("location", location)], ""));
        assert_eq!(kind, "failed", "{location}");
        has(&why, &["not an http or https URL", location]);
    }
}

#[test]
fn headers_are_sent_to_the_first_host_only() {
    let settings =
        "[it]\nurl = \"https://a.example/x\"\nkind = \"json\"\nheaders = { X-Client = \"7\", Accept = \"a/b\" }";
    let recording = Recording::new()
        .answer("https://a.example/x", 302, &[("location", "https://user:pw@b.example/y")], "")
        .with("https://b.example/y", "application/json", "{}");
    recording.web(settings).read("it").unwrap();
    let asked = recording.asked.borrow();
    let names =
        |request: &Request| request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
    let agent = format!("user-agent: {USER_AGENT}");
    assert_eq!(names(&asked[0]), ["accept-encoding: identity", &agent, "accept: a/b", "x-client: 7"]);
    assert_eq!(names(&asked[1]), [&agent, "accept: a/b"]);
    assert_eq!(asked[1].url.as_str(), "https://b.example/y");
}

#[test]
fn redirects_limit_the_lifetime_of_an_answer() {
    let fresh = |first: &[(&str, &str)], code, last: &[(&str, &str)]| {
        let first = [first, &[("location", "/y")]].concat();
        let recording = Recording::new().answer("https://a.example/x", code, &first, "").answer(
            "https://a.example/y",
            200,
            last,
            "",
        );
        recording.web(SETTINGS).read("it").unwrap().fresh_for.map(|time| time.as_secs())
    };
    let (five, nine) = (("cache-control", "max-age=5"), ("cache-control", "max-age=9"));
    assert_eq!(fresh(&[], 301, &[nine]), Some(9));
    assert_eq!(fresh(&[five], 301, &[nine]), Some(5));
    assert_eq!(fresh(&[nine], 302, &[five]), Some(5));
    // A temporary redirect without a lifetime is not cacheable.
    assert_eq!(fresh(&[], 302, &[nine]), None);
    assert_eq!(fresh(&[("cache-control", "no-store")], 301, &[nine]), None);
    assert_eq!(fresh(&[nine], 302, &[]), None);
}

#[test]
fn the_configured_lifetime_overrides_the_answer() {
    let headers = [("content-type", "text/plain"), ("cache-control", "no-store")];
    let recording = Recording::new().answer("https://a.example/x", 200, &headers, "x");
    let web = recording.web("[it]\nurl = \"https://a.example/x\"\nfresh = \"5m\"");
    assert_eq!(web.read("it").unwrap().fresh_for, Some(Duration::from_secs(300)));
    let web = recording.web("[it]\nurl = \"https://a.example/x\"\nfresh = \"0s\"");
    assert_eq!(web.read("it").unwrap().fresh_for, None);
}

#[test]
fn outside_of_a_sandbox_no_request_is_sent() {
    let web = Web { entries: config::parse(Some(SETTINGS)).unwrap(), upstream: crate::http::upstream() };
    assert!(matches!(web.read("it"), Err(Error::Denied(_))));
}

#[test]
fn revisions_prefer_head_requests() {
    let settings = "a = \"https://a.example/a\"\nb = \"https://a.example/b\"\nc = \"https://a.example/c\"\nbad = 1";
    let recording = Recording::new()
        .head("https://a.example/a", 200, &[("etag", "\"1\"")])
        .head("https://a.example/b", 200, &[("last-modified", "Tue, 28 Jul 2026 12:30:00 GMT")])
        .answer("https://a.example/c", 200, &[], "body");
    let web = recording.web(settings);
    let wanted = ["a", "b", "c", "a", "bad", "none"].map(str::to_owned);
    let got = web.resource_revisions(&wanted);
    assert_eq!(
        recording.urls(),
        ["HEAD https://a.example/a", "HEAD https://a.example/b", "HEAD https://a.example/c", "https://a.example/c"]
    );
    let kinds: Vec<_> =
        got.iter().map(|one| one.as_ref().map(|text| text.split('-').next().unwrap_or_default())).collect();
    assert_eq!(kinds[..4], [Ok("tag"), Ok("time"), Ok("hash"), Ok("tag")]);
    assert_eq!(got[0], got[3]);
    assert!(matches!(got[4], Err(Error::Failed(_))));
    assert_eq!(got[5], Err(Error::NotFound));

    let changed = Recording::new().head("https://a.example/a", 200, &[("etag", "\"2\"")]).answer(
        "https://a.example/c",
        200,
        &[],
        "other",
    );
    let later = changed.web(settings).resource_revisions(&wanted);
    assert_ne!(later[0], got[0]);
    assert_ne!(later[2], got[2]);
    assert!(matches!(later[1], Err(Error::Denied(_))), "{:?}", later[1]);
}

#[test]
fn revisions_of_several_items_send_one_request() {
    let feed_of = |second: &str| {
        let item = |id: &str, text: &str| format!("<item><title>{text}</title><guid>{id}</guid></item>");
        let items = format!("{}{}", item("1", "One"), item("2", second));
        format!("<rss version=\"2.0\"><channel><title>T</title>{items}</channel></rss>")
    };
    let settings = "f = \"https://a.example/f\"";
    let id = |id: &str| format!("f/items/{:016x}", feed::hash(&[id]));
    let wanted = [id("1"), id("2"), "f".to_owned(), id("3")];
    let of = |body: &str| {
        let recording = Recording::new().answer("https://a.example/f", 200, &[("etag", body)], feed_of(body));
        let got = recording.web(settings).resource_revisions(&wanted);
        assert_eq!(recording.urls(), ["https://a.example/f"]);
        got
    };
    let (before, after) = (of("Two"), of("Too"));
    assert!(before[0].is_ok());
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
    assert_ne!(before[2], after[2]);
    assert_eq!(after[3], Err(Error::NotFound));
}
