//! `plugins/web` against a real upstream on loopback: feeds, pages, JSON, and an upstream that misbehaves. An origin without
//! a grant gets no request.

use std::net::TcpListener;
use std::time::Duration;

use belljar_tests::{Client, Era, Site, Stdio, wait_until};
use belljar_upstream::{Authority, DnsServer, ReceivedRequest, Upstream, answer, echo, request};
use serde_json::Value;

use crate::support::{kind, serve, site, stdout_and_stderr, witness};

const TOKEN: &str = "token-9f3c5b7d1e";

const FEED: &str = include_str!("../../../plugins/web/fixtures/rss2.xml");

/// A site with the provider `web`, these settings, and a grant of `upstream`. `UP` in the settings stands for the origin of
/// `upstream`. The lines `more` follow the grant.
fn mounted(upstream: &Upstream, settings: &str, more: &str) -> Site {
    let settings = settings.replace("UP", &origin(upstream));
    site(&format!(
        "[mounts.web]\ncomponent = \"web.wasm\"\nenv = {{ WEB = '''\n{settings}\n''' }}\n\n\
         [[mounts.web.http]]\norigin = \"{}\"\nnetworks = [\"127.0.0.1\"]\n{more}\n",
        origin(upstream)
    ))
}

fn origin(upstream: &Upstream) -> String {
    format!("http://{}", upstream.address())
}

/// An answer with status 200 and this media type.
fn ok(media: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &format!("content-type: {media}\r\n"), body)
}

fn not_found() -> Vec<u8> {
    answer("404 Not Found", "", "")
}

fn feed() -> Vec<u8> {
    ok("application/rss+xml", FEED)
}

fn redirect(location: &str) -> Vec<u8> {
    answer("302 Found", &format!("location: {location}\r\n"), "")
}

/// Returns `bytes` after a minute.
fn after_a_minute(bytes: Vec<u8>) -> Vec<u8> {
    std::thread::sleep(Duration::from_secs(60));
    bytes
}

/// Asserts that the text contains all parts.
fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        // belljar quotes the provider's message, and escapes quotation marks in it.
        assert!(text.replace("\\\"", "\"").contains(part), "no {part:?} in:\n{text}");
    }
}

/// The kind of the error of a read, and the message with the hint.
fn read_error(client: &mut Client<Stdio>, uri: &str) -> (String, String) {
    let error = client.read(uri).unwrap_err();
    let hint = error.data["hint"].as_str().unwrap_or_default().to_owned();
    (kind(&error).to_owned(), format!("{} {hint}", error.message))
}

#[test]
fn json_feeds_items_pages_and_templates_are_read() {
    let upstream = Upstream::plain(|asked| match asked.path() {
        "/api" => answer(
            "200 OK",
            "content-type: application/json\r\ncache-control: max-age=90\r\nage: 30\r\n",
            include_str!("../../../plugins/web/fixtures/api.json"),
        ),
        "/feed" => feed(),
        "/docs/tides" => ok("text/html", include_str!("../../../plugins/web/fixtures/page.html")),
        "/users/ann%2Fbob?full=yes" => ok("application/json; charset=utf-8", "{\"id\":\"ann/bob\"}"),
        "/pixel" => ok("image/png", b"\x89PNG\r\n\x1a\n\0".as_slice()),
        _ => not_found(),
    });
    let site = mounted(
        &upstream,
        "page = 'UP/docs/tides'\npixel = 'UP/pixel'\nuser = 'UP/users/{id}{?full}'\napi = 'UP/api'\nwrong = 'api.example'\n\
         [name]\nurl = 'UP/api'\nselect = '/data/0/name'\n[news]\nurl = 'UP/feed'\nitems = true",
        "",
    );
    let mut client = serve(&site);
    let uris = client.uris();
    let of_web: Vec<&str> = uris.iter().filter_map(|uri| uri.strip_prefix("belljar://web/")).collect();
    let items: Vec<&str> = of_web.iter().filter(|uri| uri.starts_with("news/items/")).copied().collect();
    assert_eq!(items.len(), 3, "{of_web:?}");
    assert_eq!(of_web.iter().filter(|uri| !items.contains(uri)).count(), 6, "{of_web:?}");
    assert!(client.templates().contains(&"belljar://web/user/{id}{?full}".to_owned()));

    let mut text = |reference: &str| client.text(&format!("belljar://web/{reference}"));
    assert_contains(&text("api"), &["\"id\": 9007199254740993,", "\"balance\": 1.10"]);
    assert_eq!(text("name"), "Ann");
    assert_contains(&text("user/ann%2Fbob?full=yes"), &["\"id\": \"ann/bob\""]);
    assert_contains(
        &text("page"),
        &["# Tide tables", "| Tuesday | 04:01 | 10:25 |", &format!("({}/docs/pier.html#north)", origin(&upstream))],
    );
    assert_contains(&text("news"), &["# Harbour & Tide", &format!("[text]({})", items[0])]);
    assert_contains(&text(items[0]), &["# New buoys at the north pier", "- north pier\n  - green"]);
    assert_eq!(client.blob("belljar://web/pixel"), b"\x89PNG\r\n\x1a\n\0");
    // The upstream allows 60 s of caching (`max-age` 90 s, `age` 30 s). Less is left, because an earlier read cached
    // the answer.
    let asked = upstream.requests().len();
    let left = client.read("belljar://web/api").unwrap()["ttlMs"].as_u64().unwrap();
    assert!((1..60_000).contains(&left), "{left}");
    assert_eq!(upstream.requests().len(), asked, "the upstream got a request although the answer is fresh");

    let agent = upstream.requests()[0].header("user-agent").map(str::to_owned);
    assert!(agent.is_some_and(|agent| agent.starts_with("belljar-web/")));
    assert!(upstream.requests().iter().all(|asked| asked.line.starts_with("GET ")));
    let (kind, why) = read_error(&mut client, "belljar://web/wrong");
    assert_eq!(kind, "failed");
    assert_contains(&why, &["\"wrong\" of WEB", "write it as https://host"]);
    witness(&mut client);
}

#[test]
fn only_the_upstream_sees_a_token() {
    // The upstream echoes the secret in its answers.
    let upstream = Upstream::plain(|asked| match asked.path() {
        "/echo" => echo(asked),
        _ => {
            let token = asked.header("authorization").unwrap_or("nobody");
            answer("403 No", "content-type: application/json\r\n", format!("{{\"message\": \"{token} may not\"}}"))
        }
    });
    let mut site = mounted(
        &upstream,
        "echo = 'UP/echo'\nforbidden = 'UP/forbidden'\n[own]\nurl = 'UP/echo'\nheaders = { Authorization = 'Bearer mine' }",
        "headers = { authorization = \"Bearer ${secret:api}\" }\n\n[secrets]\napi = { env = \"API_TOKEN\" }\n",
    );
    site.env("API_TOKEN", TOKEN);
    let mut client = serve(&site);
    let echoed = client.text("belljar://web/echo");
    assert_contains(&echoed.to_ascii_lowercase(), &["user-agent: belljar-web/", "authorization: "]);
    assert!(!echoed.contains(TOKEN), "{echoed}");
    assert_eq!(upstream.requests()[0].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));

    let (kind, why) = read_error(&mut client, "belljar://web/forbidden");
    assert_eq!(kind, "denied");
    assert_contains(&why, &["403 (forbidden)", "may not"]);
    assert!(!why.contains(TOKEN), "{why}");
    let (_, why) = read_error(&mut client, "belljar://web/own");
    assert_contains(&why, &["holds no credentials", "http grant"]);
    let ended = client.close();
    assert!(!format!("{}{:?}", ended.stderr, site.audit()).contains(TOKEN));
}

/// The example of the provider's README works.
#[test]
fn one_command_grants_an_api_and_the_next_one_reads_the_api() {
    let upstream = Upstream::plain(|_| ok("application/json", "{\"up\":true}"));
    let site = site("# web.wasm\n");
    let setting = format!("WEB=status = \"{}/v1/status\"", origin(&upstream));
    let granted = site.run(&[
        "grant",
        "web",
        "--env",
        &setting,
        "--http",
        &origin(&upstream),
        // Only tests need these keys: the upstream is on loopback.
        "--network",
        "127.0.0.1",
        "--yes",
    ]);
    assert!(granted.status.success(), "{}", stdout_and_stderr(&granted));
    let read = site.run(&["read", "belljar://web/status"]);
    assert_eq!(String::from_utf8_lossy(&read.stdout), "{\n  \"up\": true\n}\n", "{}", stdout_and_stderr(&read));
    assert_eq!(upstream.connections(), 1);
}

/// The usual case: a host name, TLS, and a certificate that belljar checks.
#[test]
fn a_page_is_read_over_tls_only_with_a_trusted_certificate() {
    let authority = Authority::new();
    let page = |_: &ReceivedRequest| ok("text/html", "<main><p>See <a href=more>more</a></p></main>");
    let upstream = Upstream::tls(authority.server(&["api.test"]), page);
    let stranger = Upstream::tls(Authority::stranger(&["stranger.test"]), page);
    let names = DnsServer::start(&[("api.test", &["127.0.0.1"]), ("stranger.test", &["127.0.0.1"])]);
    let (trusted, untrusted) =
        (format!("https://api.test:{}", upstream.port()), format!("https://stranger.test:{}", stranger.port()));
    let grant = |origin: &str| format!("{{ origin = \"{origin}\", networks = [\"127.0.0.1\"] }}");
    let site = site(&format!(
        "[network]\ndns = [\"{}\"]\nca = \"ca.pem\"\n\n[mounts.web]\ncomponent = \"web.wasm\"\n\
         env = {{ WEB = \"own = '{trusted}/a/'\\nother = '{untrusted}/'\" }}\nhttp = [{}, {}]\n",
        names.address(),
        grant(&trusted),
        grant(&untrusted),
    ));
    site.write("ca.pem", authority.pem());
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://web/own"), format!("See [more]({trusted}/a/more)\n"));
    let (kind, why) = read_error(&mut client, "belljar://web/other");
    assert_eq!(kind, "failed");
    assert_contains(&why, &["certificate is not trusted"]);
    assert!(stranger.requests().is_empty());
}

#[test]
fn redirects_go_to_granted_origins_only() {
    let forbidden = Upstream::plain(|_| ok("text/plain", "secret"));
    let forbidden_origin = origin(&forbidden);
    let upstream = Upstream::plain(move |asked| match asked.path() {
        "/old" => redirect("/new"),
        "/new" => ok("text/plain", "arrived"),
        "/round" => redirect("/round"),
        _ => redirect(&format!("{forbidden_origin}/admin?from=here")),
    });
    let site = mounted(&upstream, "old = 'UP/old'\naway = 'UP/away'\nround = 'UP/round'", "");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://web/old"), "arrived");
    let (kind, why) = read_error(&mut client, "belljar://web/away");
    assert_eq!(kind, "denied");
    let cure = format!("belljar grant web --http {}", origin(&forbidden));
    assert_contains(&why, &[&format!("redirects to \"{}/admin\"", origin(&forbidden)), "granted", &cure]);
    assert_eq!(forbidden.connections(), 0);
    let (kind, why) = read_error(&mut client, "belljar://web/round");
    assert_eq!(kind, "failed");
    assert_contains(&why, &["after 5 redirects"]);
    assert_eq!(upstream.requests().iter().filter(|asked| asked.path() == "/round").count(), 6);
}

#[test]
fn without_a_grant_no_request_is_sent_and_the_error_names_the_cure() {
    let upstream = Upstream::plain(|_| ok("text/plain", "here"));
    let origin = origin(&upstream);
    let site = site(&format!("[mounts.web]\ncomponent = \"web.wasm\"\nenv = {{ WEB = \"it = '{origin}/x'\" }}\n"));
    let mut client = serve(&site);
    let (kind, why) = read_error(&mut client, "belljar://web/it");
    assert_eq!(kind, "denied");
    assert_contains(&why, &[&format!("\"{origin}/x\""), &format!("belljar grant web --http {origin}")]);
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn failures_of_the_upstream_are_reported_by_kind() {
    // A port without a listener.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let upstream = Upstream::plain(|asked| match asked.path() {
        "/gone" => answer("410 Gone", "", "gone"),
        "/broken" => answer("500 Oh", "content-type: text/plain\r\n", "boom"),
        "/busy" => answer("429 Later", "retry-after: 120\r\n", ""),
        "/brotli" => answer("200 OK", "content-encoding: br\r\n", "\u{1f}"),
        "/nojson" => ok("application/json", "{\"a\":"),
        "/large" => ok("text/plain", vec![b'x'; 9 << 20]),
        _ => not_found(),
    });
    let names = ["none", "gone", "broken", "busy", "brotli", "nojson", "large"];
    let settings: String = names.iter().map(|name| format!("{name} = 'UP/{name}'\n")).collect();
    let more = format!(
        "\n[[mounts.web.http]]\norigin = \"http://127.0.0.1:{port}\"\nnetworks = [\"127.0.0.1\"]\n\n[mounts.web.limits]\ntime = \"30s\"\n"
    );
    // `cut` closes the connection before its answer is complete. `flood` sends an answer without a length and without an end.
    let cut = Upstream::raw(|stream| {
        if request(stream).is_some() {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n012345").ok();
        }
    });
    let flood = Upstream::raw(|stream| {
        if request(stream).is_some() {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").ok();
            while stream.write_all(&[b'x'; 64 << 10]).is_ok() {}
        }
    });
    let grant = |upstream: &Upstream| {
        format!("\n[[mounts.web.http]]\norigin = \"{}\"\nnetworks = [\"127.0.0.1\"]\n", origin(upstream))
    };
    let more = format!("{}{}{more}", grant(&cut), grant(&flood));
    let settings = format!("cut = '{}'\nflood = '{}'\n{settings}", origin(&cut), origin(&flood));
    let site = mounted(&upstream, &format!("closed = 'http://127.0.0.1:{port}/'\n{settings}"), &more);
    let mut client = serve(&site);
    for (name, kind, parts) in [
        ("none", "not-found", &[][..]),
        ("gone", "not-found", &[]),
        ("broken", "unavailable", &["500 (internal server error): boom"]),
        ("busy", "unavailable", &["429 (too many requests); try again in 2m"]),
        ("cut", "unavailable", &["ended"]),
        ("brotli", "failed", &["content encoding \"br\"", "decodes gzip"]),
        ("nojson", "failed", &["not JSON"]),
        ("flood", "failed", &["larger than the 8388608 bytes"]),
        ("large", "failed", &["larger than the 8388608 bytes"]),
        ("closed", "unavailable", &["refused the connection"]),
    ] {
        let (actual, why) = read_error(&mut client, &format!("belljar://web/{name}"));
        assert_eq!(actual, kind, "{name}: {why}");
        assert_contains(&why, parts);
        witness(&mut client);
    }
}

#[test]
fn a_slow_upstream_is_stopped_by_a_time_limit() {
    let upstream = Upstream::plain(|_| after_a_minute(ok("text/plain", "late")));
    let site = mounted(&upstream, "slow = 'UP/slow'", "\n[mounts.web.limits]\ntime = \"1s\"\n");
    let mut client = serve(&site);
    let error = client.read("belljar://web/slow").unwrap_err();
    // Either the provider's own time limit or the host's deadline ends the request.
    assert!(kind(&error) == "unavailable" || (kind(&error) == "limit" && error.data["limit"] == "time"), "{error}");
    witness(&mut client);
}

#[test]
fn a_slow_feed_is_listed_without_its_items_and_delays_no_other_feed() {
    let upstream = Upstream::plain(|asked| match asked.path() {
        "/slow" => after_a_minute(feed()),
        _ => feed(),
    });
    let settings = "[quick]\nurl = 'UP/quick'\nitems = true\n[slow]\nurl = 'UP/slow'\nitems = true";
    let site = mounted(&upstream, settings, "");
    let mut client = serve(&site);
    let below = |resources: &[Value], start: &str| -> Vec<Value> {
        let start = format!("belljar://web/{start}");
        let is_below = |resource: &&Value| resource["uri"].as_str().unwrap().starts_with(&start);
        resources.iter().filter(is_below).cloned().collect()
    };
    // On a busy machine the quick feed may miss the provider's deadline as well.
    let resources = wait_until("the items of the quick feed", || {
        let resources = client.resources();
        if below(&resources, "quick").len() == 4 { Ok(resources) } else { Err(format!("{resources:?}")) }
    });
    let of = |start: &str| below(&resources, start);
    assert_eq!(of("slow").len(), 1, "{resources:?}");
    assert_contains(of("slow")[0]["description"].as_str().unwrap(), &["Its items are not listed", "longer than 1.0 s"]);
    assert_eq!(of("quick/items/")[0]["annotations"]["lastModified"], "2026-07-28T09:30:00Z");
}

#[test]
fn a_missing_setting_is_named_in_the_log_and_in_errors() {
    let site = site("[mounts.web]\ncomponent = \"web.wasm\"\n");
    let mut client = serve(&site);
    let (kind, why) = read_error(&mut client, "belljar://web/x");
    assert_eq!(kind, "denied");
    assert_contains(&why, &["variable WEB", "status = \"https://api.example/status\""]);
    drop(client);
    assert_contains(&stdout_and_stderr(&site.run(&["list"])), &["variable WEB"]);
}

/// Hostile bytes for the parsers of the provider: each read ends with a result or an error, never with a trap.
#[test]
fn hostile_documents_do_not_trap() {
    let nested = |tag: &str| format!("<p>begin</p>{}deep", format!("<{tag}>").repeat(600));
    let tags = ["div", "blockquote", "ul><li", "table><tr><td", "b", "span", "svg", "select"];
    let upstream = Upstream::plain(move |asked| match asked.path().strip_prefix("/n/").unwrap_or_default() {
        "rss" => ok("text/xml", format!("<rss version=\"2.0\"><channel><title>T</title>{}", "<a>".repeat(50_000))),
        "json" => ok("application/json", "[".repeat(1 << 20)),
        "long" => ok("text/html", "<p>one <b>two</b> <a href=x>three</a></p>".repeat(5_000)),
        "items" => {
            let item = "<item><title>A</title><description>&lt;p&gt;x&lt;/p&gt;</description></item>";
            let items: String = (0..5_000).map(|n| item.replace("A", &format!("A{n}"))).collect();
            ok("text/xml", format!("<rss version=\"2.0\"><channel>{items}</channel></rss>"))
        }
        at => ok("text/html", nested(tags[at.parse::<usize>().unwrap()])),
    });
    let site = mounted(&upstream, "n = 'UP/n/{id}'", "\n[mounts.web.limits]\ntime = \"30s\"\n");
    let mut client = serve(&site);
    for at in 0..tags.len() {
        assert_contains(&client.text(&format!("belljar://web/n/{at}")), &["begin"]);
    }
    assert_contains(&client.text("belljar://web/n/long"), &["one **two** [three]("]);
    assert_contains(&client.text("belljar://web/n/items"), &["## A99\n", "4900 older items"]);
    assert_contains(&client.text("belljar://web/n/rss"), &["The answer ends in the middle of the feed"]);
    let (kind, why) = read_error(&mut client, "belljar://web/n/json");
    assert_eq!(kind, "failed", "{why}");
    assert_contains(&why, &["not"]);
}

/// Each read has an instance of its own, and gets its own answer.
#[test]
fn each_of_many_concurrent_reads_sends_one_request() {
    let upstream = Upstream::plain(|asked| {
        std::thread::sleep(Duration::from_millis(20));
        ok("text/plain", asked.path())
    });
    let site = mounted(&upstream, "n = 'UP/n/{id}'", "\n[mounts.web.limits]\nqueue = \"120s\"\ntime = \"120s\"\n");
    let mut client = site.stdio(Era::Stateless);
    let ids: Vec<(u64, String)> = (0..100)
        .map(|n| {
            let uri = format!("belljar://web/n/{n}");
            (client.send("resources/read", serde_json::json!({ "uri": uri })), format!("/n/{n}"))
        })
        .collect();
    for (id, target) in ids {
        let answer = client.wait(id).unwrap();
        assert_eq!(answer["contents"][0]["text"], target.as_str());
    }
    assert_eq!(upstream.requests().len(), 100);
}

/// The largest answers that the README promises. Fuel and memory have their default limits; the time is long, for busy
/// machines.
#[test]
fn the_largest_answers_are_read_within_the_default_limits() {
    let upstream = Upstream::plain(|asked| {
        let row = "{\"id\":1,\"name\":\"Anna\",\"tags\":[\"a\",{\"b\":null}],\"value\":1.50}";
        let item = "<item><title>A</title><description>Some &lt;b&gt;words&lt;/b&gt;</description></item>";
        match asked.path() {
            "/json" => {
                ok("application/json", format!("[{}]", vec![row; ((8 << 20) - (16 << 10)) / (row.len() + 1)].join(",")))
            }
            "/feed" => ok(
                "application/rss+xml",
                format!("<rss version=\"2.0\"><channel>{}</channel></rss>", item.repeat((8 << 20) / item.len() - 1)),
            ),
            "/page" => ok("text/html", "<p>Some <b>words</b> and <a href=x>a link</a>.</p>\n".repeat(40_000)),
            _ => not_found(),
        }
    });
    let settings = "json = 'UP/json'\nfeed = 'UP/feed'\npage = 'UP/page'";
    let site = mounted(&upstream, settings, "\n[mounts.web.limits]\ntime = \"60s\"\n");
    let mut client = serve(&site);
    assert!(client.text("belljar://web/json").len() > 8_300_000);
    assert_contains(
        &client.text("belljar://web/feed"),
        &["## A", "more items than are read", "older items are not shown"],
    );
    assert!(client.text("belljar://web/page").len() > 1_300_000);
    client.close();
}
