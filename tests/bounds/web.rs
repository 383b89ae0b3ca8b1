//! `plugins/web`, the real component in the real binary, against a real upstream on loopback: what it makes of feeds,
//! pages and JSON, what it makes of an upstream that misbehaves, and that nobody is asked who was not granted.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, Site, Stdio};
use belljar_upstream::{Asked, Authority, Names, Upstream, answer, echo, request};
use serde_json::Value;

use crate::place::{SLACK, kind, said, serve, site, witness};

const TOKEN: &str = "token-9f3c5b7d1e";

const FEED: &str = include_str!("../../plugins/web/fixtures/rss2.xml");

/// `web`, with these settings, granted `upstream`; `more` goes into that grant and behind it.
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

/// An answer that is fine, of this type.
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

/// Says it after a minute.
fn late(bytes: Vec<u8>) -> Vec<u8> {
    std::thread::sleep(Duration::from_secs(60));
    bytes
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        // A provider's words stand in quotation marks of belljar's, with its own escaped.
        assert!(text.replace("\\\"", "\"").contains(part), "no {part:?} in:\n{text}");
    }
}

/// The kind of the error of a read, and its words.
fn refused(client: &mut Client<Stdio>, uri: &str) -> (String, String) {
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
            include_str!("../../plugins/web/fixtures/api.json"),
        ),
        "/feed" => feed(),
        "/docs/tides" => ok("text/html", include_str!("../../plugins/web/fixtures/page.html")),
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
    has(&text("api"), &["\"id\": 9007199254740993,", "\"balance\": 1.10"]);
    assert_eq!(text("name"), "Ann");
    has(&text("user/ann%2Fbob?full=yes"), &["\"id\": \"ann/bob\""]);
    has(
        &text("page"),
        &["# Tide tables", "| Tuesday | 04:01 | 10:25 |", &format!("({}/docs/pier.html#north)", origin(&upstream))],
    );
    has(&text("news"), &["# Harbour & Tide", &format!("[text]({})", items[0])]);
    has(&text(items[0]), &["# New buoys at the north pier", "- north pier\n  - green"]);
    assert_eq!(client.blob("belljar://web/pixel"), b"\x89PNG\r\n\x1a\n\0");
    // The time that is left of what upstream said: belljar has kept the answer for a part of it.
    let asked = upstream.asked().len();
    let left = client.read("belljar://web/api").unwrap()["ttlMs"].as_u64().unwrap();
    assert!((30_000..60_000).contains(&left), "{left}");
    assert_eq!(upstream.asked().len(), asked, "upstream was asked for what is fresh");

    let agent = upstream.asked()[0].header("user-agent").map(str::to_owned);
    assert!(agent.is_some_and(|agent| agent.starts_with("belljar-web/")));
    assert!(upstream.asked().iter().all(|asked| asked.line.starts_with("GET ")));
    let (kind, why) = refused(&mut client, "belljar://web/wrong");
    assert_eq!(kind, "failed");
    has(&why, &["\"wrong\" of WEB", "write it as https://host"]);
    witness(&mut client);
}

#[test]
fn a_token_is_seen_by_upstream_and_by_nobody_else() {
    // An upstream that tells everybody what it was told.
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
    let told = client.text("belljar://web/echo");
    has(&told.to_ascii_lowercase(), &["user-agent: belljar-web/", "authorization: "]);
    assert!(!told.contains(TOKEN), "{told}");
    assert_eq!(upstream.asked()[0].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));

    let (kind, why) = refused(&mut client, "belljar://web/forbidden");
    assert_eq!(kind, "denied");
    has(&why, &["403 (forbidden)", "may not"]);
    assert!(!why.contains(TOKEN), "{why}");
    let (_, why) = refused(&mut client, "belljar://web/own");
    has(&why, &["holds no credentials", "http grant"]);
    let ended = client.close();
    assert!(!format!("{}{:?}", ended.stderr, site.audit()).contains(TOKEN));
}

/// What the README promises to whoever never saw belljar.
#[test]
fn one_command_grants_an_api_and_the_next_reads_it() {
    let upstream = Upstream::plain(|_| ok("application/json", "{\"up\":true}"));
    let site = site("# beside it lies web.wasm\n");
    let setting = format!("WEB=status = \"{}/v1/status\"", origin(&upstream));
    let granted = site.run(&[
        "grant",
        "web",
        "--env",
        &setting,
        "--http",
        &origin(&upstream),
        // Not what anybody needs for the public internet.
        "--network",
        "127.0.0.1",
        "--yes",
    ]);
    assert!(granted.status.success(), "{}", said(&granted));
    let read = site.run(&["read", "belljar://web/status"]);
    assert_eq!(String::from_utf8_lossy(&read.stdout), "{\n  \"up\": true\n}\n", "{}", said(&read));
    assert_eq!(upstream.connections(), 1);
}

/// The usual way: a name, TLS, and a certificate that is checked.
#[test]
fn a_page_is_read_over_tls_and_not_from_a_stranger() {
    let authority = Authority::new();
    let page = |_: &Asked| ok("text/html", "<main><p>See <a href=more>more</a></p></main>");
    let upstream = Upstream::tls(authority.server(&["api.test"]), page);
    let stranger = Upstream::tls(Authority::stranger(&["stranger.test"]), page);
    let names = Names::start(&[("api.test", &["127.0.0.1"]), ("stranger.test", &["127.0.0.1"])]);
    let (own, other) =
        (format!("https://api.test:{}", upstream.port()), format!("https://stranger.test:{}", stranger.port()));
    let grant = |origin: &str| format!("{{ origin = \"{origin}\", networks = [\"127.0.0.1\"] }}");
    let site = site(&format!(
        "[network]\ndns = [\"{}\"]\nca = \"ca.pem\"\n\n[mounts.web]\ncomponent = \"web.wasm\"\n\
         env = {{ WEB = \"own = '{own}/a/'\\nother = '{other}/'\" }}\nhttp = [{}, {}]\n",
        names.address(),
        grant(&own),
        grant(&other),
    ));
    site.write("ca.pem", authority.pem());
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://web/own"), format!("See [more]({own}/a/more)\n"));
    let (kind, why) = refused(&mut client, "belljar://web/other");
    assert_eq!(kind, "failed");
    has(&why, &["certificate is not trusted"]);
    assert!(stranger.asked().is_empty());
}

#[test]
fn redirects_go_where_it_was_granted_and_nowhere_else() {
    let forbidden = Upstream::plain(|_| ok("text/plain", "secret"));
    let there = origin(&forbidden);
    let upstream = Upstream::plain(move |asked| match asked.path() {
        "/old" => redirect("/new"),
        "/new" => ok("text/plain", "arrived"),
        "/round" => redirect("/round"),
        _ => redirect(&format!("{there}/admin?from=here")),
    });
    let site = mounted(&upstream, "old = 'UP/old'\naway = 'UP/away'\nround = 'UP/round'", "");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://web/old"), "arrived");
    let (kind, why) = refused(&mut client, "belljar://web/away");
    assert_eq!(kind, "denied");
    let cure = format!("belljar grant web --http {}", origin(&forbidden));
    has(&why, &[&format!("redirects to \"{}/admin\"", origin(&forbidden)), "granted", &cure]);
    assert_eq!(forbidden.connections(), 0);
    let (kind, why) = refused(&mut client, "belljar://web/round");
    assert_eq!(kind, "failed");
    has(&why, &["after 5 redirects"]);
    assert_eq!(upstream.asked().iter().filter(|asked| asked.path() == "/round").count(), 6);
}

#[test]
fn without_a_grant_nobody_is_asked_and_the_cure_is_said() {
    let upstream = Upstream::plain(|_| ok("text/plain", "here"));
    let origin = origin(&upstream);
    let site = site(&format!("[mounts.web]\ncomponent = \"web.wasm\"\nenv = {{ WEB = \"it = '{origin}/x'\" }}\n"));
    let mut client = serve(&site);
    let (kind, why) = refused(&mut client, "belljar://web/it");
    assert_eq!(kind, "denied");
    has(&why, &[&format!("\"{origin}/x\""), &format!("belljar grant web --http {origin}")]);
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn failures_of_upstream_are_told_by_their_kind() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let upstream = Upstream::plain(|asked| match asked.path() {
        "/gone" => answer("410 Gone", "", "gone"),
        "/broken" => answer("500 Oh", "content-type: text/plain\r\n", "boom"),
        "/busy" => answer("429 Later", "retry-after: 120\r\n", ""),
        "/gzip" => answer("200 OK", "content-encoding: gzip\r\n", "\u{1f}"),
        "/nojson" => ok("application/json", "{\"a\":"),
        "/large" => ok("text/plain", vec![b'x'; 9 << 20]),
        _ => not_found(),
    });
    let names = ["none", "gone", "broken", "busy", "gzip", "nojson", "large"];
    let settings: String = names.iter().map(|name| format!("{name} = 'UP/{name}'\n")).collect();
    let more = format!(
        "\n[[mounts.web.http]]\norigin = \"http://127.0.0.1:{port}\"\nnetworks = [\"127.0.0.1\"]\n\n[mounts.web.limits]\ntime = \"30s\"\n"
    );
    // One that ends its answer before it is complete, and one whose answer has no length and hardly an end.
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
    let site = mounted(&upstream, &format!("nobody = 'http://127.0.0.1:{port}/'\n{settings}"), &more);
    let mut client = serve(&site);
    for (name, kind, parts) in [
        ("none", "not-found", &[][..]),
        ("gone", "not-found", &[]),
        ("broken", "unavailable", &["500 (internal server error): boom"]),
        ("busy", "unavailable", &["429 (too many requests); try again in 2m"]),
        ("cut", "unavailable", &["ended"]),
        ("gzip", "failed", &["content encoding \"gzip\""]),
        ("nojson", "failed", &["not JSON"]),
        ("flood", "failed", &["larger than the 8388608 bytes"]),
        ("large", "failed", &["larger than the 8388608 bytes"]),
        ("nobody", "unavailable", &["refused the connection"]),
    ] {
        let (got, why) = refused(&mut client, &format!("belljar://web/{name}"));
        assert_eq!(got, kind, "{name}: {why}");
        has(&why, parts);
        witness(&mut client);
    }
}

#[test]
fn a_slow_upstream_meets_the_time_of_the_mount() {
    let upstream = Upstream::plain(|_| late(ok("text/plain", "late")));
    let site = mounted(&upstream, "slow = 'UP/slow'", "\n[mounts.web.limits]\ntime = \"1s\"\n");
    let mut client = serve(&site);
    let began = Instant::now();
    let error = client.read("belljar://web/slow").unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(1) + SLACK, "{:?}", began.elapsed());
    // Its own time or the host's deadline for the request, whichever is noticed first.
    assert!(kind(&error) == "unavailable" || (kind(&error) == "limit" && error.data["limit"] == "time"), "{error}");
    witness(&mut client);
}

#[test]
fn a_slow_feed_is_listed_without_its_items_and_holds_up_nobody() {
    let upstream = Upstream::plain(|asked| match asked.path() {
        "/slow" => late(feed()),
        _ => feed(),
    });
    let settings = "[quick]\nurl = 'UP/quick'\nitems = true\n[slow]\nurl = 'UP/slow'\nitems = true";
    let site = mounted(&upstream, settings, "");
    let mut client = serve(&site);
    let began = Instant::now();
    let resources = client.resources();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let of = |start: &str| -> Vec<&Value> {
        let start = format!("belljar://web/{start}");
        resources.iter().filter(|resource| resource["uri"].as_str().unwrap().starts_with(&start)).collect()
    };
    assert_eq!(of("quick").len(), 4, "{resources:?}");
    assert_eq!(of("slow").len(), 1, "{resources:?}");
    has(of("slow")[0]["description"].as_str().unwrap(), &["Its items are not listed", "longer than 1.0 s"]);
    assert_eq!(of("quick/items/")[0]["annotations"]["lastModified"], "2026-07-28T09:30:00Z");
}

#[test]
fn what_is_not_configured_is_said_in_the_log_and_on_demand() {
    let site = site("[mounts.web]\ncomponent = \"web.wasm\"\n");
    let mut client = serve(&site);
    let (kind, why) = refused(&mut client, "belljar://web/x");
    assert_eq!(kind, "denied");
    has(&why, &["variable WEB", "status = \"https://api.example/status\""]);
    drop(client);
    has(&said(&site.run(&["list"])), &["variable WEB"]);
}

/// What a parser could be made to do by hostile bytes: it ends, as a reading or as an error, never as a trap.
#[test]
fn strange_documents_trap_nobody() {
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
        has(&client.text(&format!("belljar://web/n/{at}")), &["begin"]);
    }
    has(&client.text("belljar://web/n/long"), &["one **two** [three]("]);
    has(&client.text("belljar://web/n/items"), &["## A99\n", "4900 older items"]);
    for name in ["rss", "json"] {
        let (kind, why) = refused(&mut client, &format!("belljar://web/n/{name}"));
        assert_eq!(kind, "failed", "{why}");
        has(&why, &["not"]);
    }
}

/// A provider is one for every client, and every call a fresh one.
#[test]
fn many_reads_at_once_each_ask_once() {
    let upstream = Upstream::plain(|asked| {
        std::thread::sleep(Duration::from_millis(20));
        ok("text/plain", asked.path())
    });
    let site = mounted(&upstream, "n = 'UP/n/{id}'", "\n[mounts.web.limits]\nqueue = \"30s\"\ntime = \"30s\"\n");
    let mut client = site.stdio(Era::Modern);
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
    assert_eq!(upstream.asked().len(), 100);
}
