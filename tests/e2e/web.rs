//! The provider of the web through the Python and the TypeScript client: a feed, an item of it, a page, and an API that
//! wants a token, which the API sees and the client does not.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use belljar_tests::Site;
use belljar_upstream::{Asked, Upstream, answer, echo};

use crate::clients::{Reach, Report, node, python};

const TOKEN: &str = "token-9f3c5b7d1e";

/// The first item of the feed, by the hash of its own id.
const ITEM: &str = "belljar://web/news/items/0eaf77077ec1edae";

const READS: &[&str] =
    &["belljar://web/news", ITEM, "belljar://web/tides", "belljar://web/echo/me", "belljar://web/tides/none"];

fn upstream() -> Upstream {
    let typed = |media: &str, body: &str| answer("200 OK", &format!("content-type: {media}\r\n"), body);
    Upstream::plain(move |asked: &Asked| match asked.path() {
        "/feed" => typed("application/rss+xml", include_str!("../../plugins/web/fixtures/rss2.xml")),
        "/tides" => typed("text/html", include_str!("../../plugins/web/fixtures/page.html")),
        _ => echo(asked),
    })
}

/// Compiled before: how long that takes on a busy machine is not what is tested here.
fn compiled() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-web");
        Site::compile(&place, &["web"]);
        place
    })
}

fn site(upstream: &Upstream) -> Site {
    let origin = format!("http://{}", upstream.address());
    let mut site = Site::new();
    site.mount("web");
    site.share(compiled());
    site.env("API_TOKEN", TOKEN);
    site.config(&format!(
        "list-time = \"60s\"\n[secrets]\napi = {{ env = \"API_TOKEN\" }}\n\n[mounts.web]\nenv.WEB = '''\n\
         news = {{ url = \"{origin}/feed\", items = true }}\ntides = \"{origin}/tides\"\necho = \"{origin}/echo/{{who}}\"\n'''\n\n\
         [[mounts.web.http]]\norigin = \"{origin}\"\nnetworks = [\"127.0.0.1\"]\n\
         headers = {{ authorization = \"Bearer ${{secret:api}}\" }}\n"
    ));
    site
}

fn check(report: Option<Report>, upstream: &Upstream) {
    // A client that this machine cannot have was told of by set-up.
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
    let asked = upstream.asked();
    assert!(
        !asked.is_empty() && asked.iter().all(|asked| asked.header("authorization") == Some(&expected)),
        "{asked:?}"
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
