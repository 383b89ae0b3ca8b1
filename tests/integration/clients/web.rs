//! The real provider `plugins/web` through the Python and the TypeScript client. They read a feed, an item, a page, and an API
//! that needs a token. The API gets the token; the client does not.

use belljar_tests::Site;
use belljar_upstream::{ReceivedRequest, Upstream, answer, echo};

use crate::clients::programs::{Reach, Report, node, python};

/// The token that belljar adds to requests.
const TOKEN: &str = "token-9f3c5b7d1e";

/// The first item of the feed. The provider names an item by the hash of its id.
const ITEM: &str = "belljar://web/news/items/0eaf77077ec1edae";

/// The URIs that the clients read. The last one does not exist.
const READS: &[&str] =
    &["belljar://web/news", ITEM, "belljar://web/tides", "belljar://web/echo/me", "belljar://web/tides/none"];

/// A server with the feed, the page and the API. The API echoes the request.
fn upstream() -> Upstream {
    let typed = |media: &str, body: &str| answer("200 OK", &format!("content-type: {media}\r\n"), body);
    Upstream::plain(move |request: &ReceivedRequest| match request.path() {
        "/feed" => typed("application/rss+xml", include_str!("../../../plugins/web/fixtures/rss2.xml")),
        "/tides" => typed("text/html", include_str!("../../../plugins/web/fixtures/page.html")),
        _ => echo(request),
    })
}

/// A site whose mount `web` may send requests to `upstream`.
fn site(upstream: &Upstream) -> Site {
    let origin = format!("http://{}", upstream.address());
    let mut site = crate::support::empty();
    site.mount("web");
    site.env("API_TOKEN", TOKEN);
    site.config(&format!(
        "list-time = \"60s\"\n[secrets]\napi = {{ env = \"API_TOKEN\" }}\n\n[mounts.web]\nenv.WEB = '''\n\
         news = {{ url = \"{origin}/feed\", items = true }}\ntides = \"{origin}/tides\"\necho = \"{origin}/echo/{{who}}\"\n'''\n\n\
         [[mounts.web.http]]\norigin = \"{origin}\"\nnetworks = [\"127.0.0.1\"]\n\
         headers = {{ authorization = \"Bearer ${{secret:api}}\" }}\n"
    ));
    site
}

/// Checks the report of a client, and the requests that the upstream got.
fn check(report: Option<Report>, upstream: &Upstream) {
    // `None`: `cargo xtask test` has already reported that this machine lacks the client.
    let Some(report) = report else { return };
    let text = |uri: &str| {
        let seen = &report.reads[uri];
        seen["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{}: {uri}: {seen}", report.client)).to_owned()
    };
    assert!(text(READS[0]).starts_with("# Harbour & Tide\n"), "{}", text(READS[0]));
    assert!(text(ITEM).contains("Three *green* buoys & one red were laid out."), "{}", text(ITEM));
    assert!(text(READS[2]).contains("| Tuesday | 04:01 | 10:25 |"), "{}", text(READS[2]));
    assert!(text(READS[3]).starts_with("GET /echo/me HTTP/1.1\n"), "{}", text(READS[3]));
    assert!(report.reads[READS[4]]["error"].is_object(), "{}", report.reads[READS[4]]);

    let listed: Vec<&str> = report.resources.iter().filter_map(|resource| resource["uri"].as_str()).collect();
    assert!(listed.contains(&ITEM) && listed.len() == 5, "{listed:?}");
    assert_eq!(report.templates.len(), 1, "{:?}", report.templates);

    let expected = format!("Bearer {TOKEN}");
    let requests = upstream.requests();
    assert!(
        !requests.is_empty() && requests.iter().all(|request| request.header("authorization") == Some(&expected)),
        "{requests:?}"
    );
    assert!(!format!("{:?}", report.reads).contains(TOKEN), "{:?}", report.reads);
}

#[test]
fn the_python_client_reads_the_web() {
    let upstream = upstream();
    let site = site(&upstream);
    check(python(2, &Reach::Stdio(&site), "auto", READS), &upstream);
}

#[test]
fn the_typescript_client_reads_the_web() {
    let upstream = upstream();
    let site = site(&upstream);
    let server = site.http();
    check(node("client_2.mjs", &Reach::Http(&server), "auto", READS), &upstream);
    assert!(server.stop().status.success());
}
