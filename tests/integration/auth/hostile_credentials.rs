//! Hostile rows about the front door: requests without a credential, with a wrong one, with several, in the wrong place,
//! and floods of failures. Each row runs the real `belljar` binary on HTTP, with `[auth]`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use belljar_tests::{Response, Server};
use belljar_upstream::{Upstream, answer};
use serde_json::json;

use crate::cases::{Case, new_key, prepare, row, run, site_row};
use crate::mint::{ISSUER, URL, now};
use crate::prove;
use crate::row::{Row, RunMode, Stops};
use crate::running_site::{RowContext, WITNESS_KEY};
use crate::tools::{deadline, within};

/// More failed authentications than belljar answers at once.
const MANY: usize = 40;

/// Requests without a usable credential in the flood.
const MALFORMED: usize = 2000;

/// Random opaque tokens at once.
const TOKENS: usize = 200;

/// Longer than the header of any credential.
const LONG: usize = 20 << 10;

/// Longer than all headers of a request may be.
const HUGE: usize = 1 << 20;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("MCP-12", "requests without a credential, with a malformed one, with several, or in the wrong place", "")
            .act(|context| {
                let refused = run(context, &unusable(&key(context)));
                assert_accepted(context);
                refused
            })
            .stopped_by(&["authentication"]),
        row("MCP-12", "API keys that are unknown, revoked, expired, or differ from a good key in one place", "")
            .act(|context| run(context, &wrong_keys(context)))
            .stopped_by(&["authentication"]),
        row("MCP-12", "a good key, and a forged Host, Origin or forwarded name", "")
            .act(|context| run(context, &forged_names(&key(context))))
            .stopped_by(&["origin"]),
        row("MCP-12", "headers of 1 MiB, and more headers than any client has", "")
            .act(oversized)
            .stopped(Stops::Structure("hyper reads at most 64 KiB and 64 headers")),
        row("MCP-12", "one client guesses keys without a pause, behind a proxy that others use, too", "")
            .act(guesses)
            .stopped_by(&["authentication"]),
        site_row("MCP-12", "one client guesses keys, and each request names another address in X-Forwarded-For")
            .settings("[auth]\nkeys = \"keys.toml\"")
            .run_mode(RunMode::Http)
            .act(forged_addresses)
            .stopped_by(&["authentication"]),
        row(
            "MCP-12",
            "one client sends thousands of requests without a usable credential, as a link on a page could",
            "",
        )
        .act(malformed_flood)
        .stopped_by(&["authentication"]),
        random_tokens(),
    ]
}

/// The key of the witness: a good one.
fn key(context: &RowContext<'_>) -> String {
    let header = std::fs::read_to_string(context.site().path(WITNESS_KEY)).expect("the key of the witness");
    header.strip_prefix("Bearer ").expect("a header").to_owned()
}

/// Requests without one usable credential. The key in them is good.
fn unusable(key: &str) -> Vec<Case> {
    let with = |name: &str, value: &str| Case::new(name).header("Authorization", value).secret(key).malformed();
    let elsewhere = |name: &str, header: &str, value: &str| Case::new(name).header(header, value).secret(key);
    let in_query = |name: &str, query: &str| Case::new(name).target(&format!("/mcp?{query}")).secret(key).malformed();
    let bearer = format!("Bearer {key}");
    vec![
        Case::new("no header"),
        with("an empty header", ""),
        with("two equal headers", &bearer).header("Authorization", &bearer),
        with("two headers, the first one good", &bearer).header("Authorization", "Basic YTpi"),
        with("two headers, the second one good", "Basic YTpi").header("authorization", &bearer),
        with("the scheme Basic", "Basic YTpi"),
        with("the scheme Basic with the key", &format!("Basic {key}")),
        with("the scheme DPoP", &format!("DPoP {key}")),
        with("the scheme Digest", &format!("Digest username=\"a\", response=\"{key}\"")),
        with("the scheme Negotiate", &format!("Negotiate {key}")),
        with("the key without a scheme", key),
        with("no space after the scheme", &format!("Bearer{key}")),
        with("a tab after the scheme", &format!("Bearer\t{key}")),
        with("a scheme alone", "Bearer"),
        with("a colon after the scheme", &format!("Bearer: {key}")),
        with("two keys with a comma", &format!("Bearer {key},{key}")),
        with("two keys with a space", &format!("Bearer {key} {key}")),
        with("two credentials in one header", &format!("Bearer {key}, Basic YTpi")),
        with("the key in quotation marks", &format!("Bearer \"{key}\"")),
        with("the key as a parameter", &format!("Bearer token={key}")),
        with("letters of another script", "Bearer kl\u{e9}"),
        with("a header of 20 KiB", &format!("Bearer {}", "a".repeat(LONG))),
        in_query("the key in the query", &format!("access_token={key}")),
        in_query("the key in the query, encoded", &format!("access%5ftoken={key}")),
        in_query("the key in the query, in capitals", &format!("x=1&ACCESS_TOKEN={key}")),
        in_query("the key in the query, after a semicolon", &format!("x=1;access_token={key}")),
        in_query("the key in the query and in the header", &format!("access_token={key}"))
            .header("Authorization", &bearer),
        Case::new("the key in the query, by another name").target(&format!("/mcp?token={key}")).secret(key),
        elsewhere("the key in X-Api-Key", "X-Api-Key", key),
        elsewhere("the key in Proxy-Authorization", "Proxy-Authorization", &bearer),
        elsewhere("the key in a cookie", "Cookie", &format!("access_token={key}")),
        elsewhere("the key in X-Forwarded-Authorization", "X-Forwarded-Authorization", &bearer),
        elsewhere("the user in a header of a proxy", "X-Forwarded-User", "key:witness"),
        elsewhere("a certificate in a header of a proxy", "X-Forwarded-Client-Cert", "Subject=\"CN=witness\""),
    ]
}

/// Asserts that each spelling of the scheme is accepted, and that belljar serves a good key.
fn assert_accepted(context: &RowContext<'_>) {
    let key = key(context);
    for (at, value) in [format!("bearer {key}"), format!("BEARER {key}"), format!("Bearer   {key}")].iter().enumerate()
    {
        let answer = Case::new("good").header("Authorization", value).send(context, context.server(), 9000 + at);
        assert_eq!(answer.status, 200, "a good key is refused: {}", answer.text());
    }
}

/// Keys that are wrong.
fn wrong_keys(context: &RowContext<'_>) -> Vec<Case> {
    let site = context.site();
    let good = key(context);
    let revoked = new_key(site, "revoked");
    let output = site.run(&["key", "revoke", "revoked", "--keys", "keys.toml"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expired = new_key(site, "expired");
    let file = std::fs::read_to_string(site.path("keys.toml")).expect("the keys");
    let hash = sha256_of(&file, "witness");
    let (before, own) = file.split_at(file.find("name = \"expired\"").expect("the key"));
    let at = own.find("expires = \"").expect("a time") + "expires = \"".len();
    let own = format!("{}2001-01-01T00:00:00Z{}", &own[..at], &own[at + own[at..].find('"').expect("its end")..]);
    site.write("keys.toml", format!("{before}{own}"));
    // belljar reads the file soon. The expired key is known from then on.
    let is_read = || context.server().process.stderr().contains("1 of them expired");
    assert!(within(Duration::from_secs(10), is_read), "{}", context.server().process.stderr());
    let (head, last) = good.split_at(good.len() - 1);
    let other = if last == "a" { "b" } else { "a" };
    let middle: String = good.chars().enumerate().map(|(at, c)| if at == 20 { swapped(c) } else { c }).collect();
    vec![
        Case::bearer("a key that nobody issued", "bj_0000000000000000000000000000000000000000000000000"),
        Case::bearer("a revoked key", &revoked),
        Case::bearer("an expired key", &expired),
        Case::bearer("a key with a wrong checksum", &format!("{head}{other}")),
        Case::bearer("a key with another character", &middle),
        Case::bearer("a key without its last character", head),
        Case::bearer("a key and one more character", &format!("{good}0")),
        Case::bearer("a key twice", &format!("{good}{good}")),
        Case::bearer("a key in small letters", &good.to_lowercase()),
        Case::bearer("a key with another prefix", &good.replace("bj_", "BJ_")),
        Case::bearer("a key without its prefix", good.trim_start_matches("bj_")),
        Case::bearer("a key with padding", &format!("{good}=")),
        Case::bearer("the hash of a key", &hash),
        Case::bearer("the hash of a key with the prefix", &format!("bj_{hash}")),
        Case::bearer("the name of a key", "witness-witness"),
    ]
}

/// The SHA-256 of a key in the text of the keys file.
fn sha256_of(file: &str, name: &str) -> String {
    let own = file.split("[[key]]").find(|own| own.contains(&format!("name = \"{name}\""))).expect("the key");
    own.split("sha256 = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("its hash").to_owned()
}

fn swapped(c: char) -> char {
    if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { 'x' }
}

/// Requests with a good key from clients that were led here by another name.
fn forged_names(key: &str) -> Vec<Case> {
    let bearer = format!("Bearer {key}");
    let named = |name: &str, header: &str, value: &str| {
        Case::new(name).header(header, value).header("Authorization", &bearer).secret(key).status(403)
    };
    vec![
        named("a foreign Host", "Host", "evil.example"),
        named("a foreign Host with the port", "Host", "evil.example:8808"),
        named("the own name as a prefix", "Host", "mcp.example.evil.example"),
        named("the own name as a suffix", "Host", "evil-mcp.example"),
        named("an address of the network", "Host", "10.0.0.1"),
        named("a foreign Origin", "Origin", "https://evil.example"),
        named("the Origin null", "Origin", "null"),
        named("the own Origin without TLS", "Origin", "http://mcp.example"),
        named("a foreign Host that a proxy reports, too", "Host", "evil.example")
            .header("X-Forwarded-Host", "mcp.example"),
    ]
}

/// Sends headers that are too large, or too many. Each connection is refused, and the server goes on.
fn oversized(context: &RowContext<'_>) -> String {
    let server = context.server();
    let request =
        |headers: &str| format!("POST /mcp HTTP/1.1\r\nHost: mcp.example\r\n{headers}Content-Length: 2\r\n\r\n{{}}");
    let long = "a".repeat(HUGE);
    let many: String = (0..500).map(|at| format!("X-{at}: {at}\r\n")).collect();
    let memory = context.memory();
    let cases = [
        ("a token of 1 MiB", request(&format!("Authorization: Bearer {long}\r\n"))),
        ("another header of 1 MiB", request(&format!("X-Long: {long}\r\n"))),
        ("a name of 1 MiB", request(&format!("{long}: x\r\n"))),
        ("500 headers", request(&many)),
        ("a query of 1 MiB", request("").replace("/mcp", &format!("/mcp?access_token={long}"))),
    ];
    for (name, request) in &cases {
        for _ in 0..20 {
            let answer =
                String::from_utf8_lossy(&server.raw_within(request.as_bytes(), Duration::from_secs(20))).into_owned();
            let is_refused =
                ["HTTP/1.1 431", "HTTP/1.1 414", "HTTP/1.1 400"].iter().any(|begin| answer.starts_with(begin));
            assert!(is_refused || answer.is_empty(), "{name}: {answer}");
            assert!(!answer.contains("aaaaaaaa"), "{name}: the answer repeats the header");
        }
    }
    assert!(context.memory() < memory + (64 << 20), "the headers stay in memory");
    let log = server.process.stderr();
    assert!(!log.contains("aaaaaaaa"), "the log repeats a header");
    format!("{} cases refused: {}", cases.len(), cases.map(|(name, _)| name).join("; "))
}

/// A request with this wrong key, from the client at `address` behind the proxy.
fn guess(context: &RowContext<'_>, at: usize, address: &str, credential: &str) -> Response {
    let case = Case::bearer("a guess", credential).header("X-Forwarded-For", address);
    case.send(context, context.server(), at)
}

/// Asserts that guesses are answered with 401 first and then with 429 and a time to wait.
fn assert_slowed_down(answers: &[Response], how: &str) {
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert!(statuses.iter().all(|status| matches!(status, 401 | 429)), "{how}: {statuses:?}");
    let slowed: Vec<&Response> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(statuses[0] == 401 && !slowed.is_empty(), "{how}: {MANY} guesses at once, and all were checked");
    for answer in slowed {
        let wait = answer.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
        assert!(wait.is_some_and(|wait| wait > 0), "{how}: no time to wait: {:?}", answer.headers);
        assert_eq!(answer.json()["error"]["data"]["kind"], "busy", "{how}: {}", answer.text());
    }
}

/// One client behind the proxy guesses, with claims of other addresses before its own. Others are served.
fn guesses(context: &RowContext<'_>) -> String {
    let (good, fresh) = (key(context), new_key(context.site(), "fresh"));
    let server = context.server();
    let is_read = || server.process.stderr().contains("has 2 API keys");
    assert!(within(Duration::from_secs(10), is_read), "{}", server.process.stderr());
    let bad = |at: usize| format!("bj_guess{at}");
    // 127.0.0.1 is the proxy itself, so the address before it counts.
    let spellings: [fn(usize) -> String; 3] = [
        |_| "198.51.100.7".to_owned(),
        |at| format!("203.0.113.{at}, 198.51.100.7"),
        |at| format!("unknown, 10.9.8.{at}:1234, 198.51.100.7, 127.0.0.1"),
    ];
    let answers: Vec<Response> = (0..MANY).map(|at| guess(context, at, &spellings[at % 3](at), &bad(at))).collect();
    if prove::is_running() {
        assert!(answers.iter().any(|answer| answer.status != 200), "guesses are served");
        return "guesses are refused without the guard".to_owned();
    }
    assert_slowed_down(&answers, "one address");
    let known = guess(context, 1000, "198.51.100.7", &good);
    assert_eq!(known.status, 200, "a client that was served lately is shut out by its neighbour: {}", known.text());
    let elsewhere = guess(context, 1001, "198.51.100.8", &fresh);
    assert_eq!(elsewhere.status, 200, "a client at another address is shut out: {}", elsewhere.text());
    let wrong = guess(context, 1002, "198.51.100.9", &bad(0));
    assert_eq!(wrong.status, 401, "another address starts anew: {}", wrong.text());
    let records = context.records();
    let refused = records.lines().filter(|line| line.contains("\"authenticate\"")).count();
    assert!(refused < MANY, "each guess of a closed address is recorded: {refused} records");
    assert!(!server.process.stderr().contains("bj_guess") && !records.contains("bj_guess"), "a guess is on record");
    "40 guesses in 3 spellings of X-Forwarded-For slowed down; others are served".to_owned()
}

/// Without a proxy, the header is a claim of the client: all guesses are of one address.
fn forged_addresses(context: &RowContext<'_>) -> String {
    let header = |at: usize| format!("203.0.{}.{}", at % 200, at % 250 + 1);
    let answers: Vec<Response> =
        (0..MANY).map(|at| guess(context, at, &header(at), &format!("bj_guess{at}"))).collect();
    if prove::is_running() {
        assert!(answers.iter().any(|answer| answer.status != 200), "guesses are served");
        return "guesses are refused without the guard".to_owned();
    }
    assert_slowed_down(&answers, "forged addresses");
    let records = context.records();
    assert!(!records.contains("203.0."), "a forged address is on record");
    let forwarded = |server: &Server| {
        let headers = [("Forwarded", "for=192.0.2.60"), ("X-Real-IP", "192.0.2.60"), ("Authorization", "Bearer bj_x")];
        server.exchange("POST", "/mcp", &headers, b"{}").status
    };
    let closed = within(deadline(Duration::from_secs(5)), || forwarded(context.server()) == 429);
    assert!(closed, "Forwarded or X-Real-IP opens another count");
    "40 guesses with 40 forged addresses slowed down as one client".to_owned()
}

/// Malformed requests of one address must neither fill the record nor close the address for others.
fn malformed_flood(context: &RowContext<'_>) -> String {
    let good = new_key(context.site(), "neighbour");
    let server = context.server();
    let is_read = || server.process.stderr().contains("has 2 API keys");
    assert!(within(deadline(Duration::from_secs(10)), is_read), "{}", server.process.stderr());
    let address = "198.51.100.20";
    let send = |at: usize| {
        let case = Case::new("a malformed request").header("X-Forwarded-For", address);
        let case = match at % 3 {
            0 => case.header("Authorization", "Basic YTpi"),
            1 => case.target("/mcp?access_token=x"),
            _ => case,
        };
        case.send(context, server, at)
    };
    let answers: Vec<Response> = (0..MALFORMED).map(send).collect();
    if prove::is_running() {
        assert!(answers.iter().any(|answer| answer.status != 200), "malformed requests are served");
        return "malformed requests are refused without the guard".to_owned();
    }
    assert!(
        answers.iter().all(|answer| matches!(answer.status, 400 | 401)),
        "a malformed request is answered otherwise"
    );
    let neighbour = Case::bearer("a good key", &good).header("X-Forwarded-For", address);
    let answer = neighbour.send(context, server, MALFORMED);
    assert_eq!(answer.status, 200, "a neighbour is shut out by requests that guessed nothing: {}", answer.text());
    let records = context.records();
    let lines = records.lines().filter(|line| line.contains("\"authenticate\"") && line.contains(address)).count();
    // Thirteen a minute; the flood may last longer than one.
    assert!((1..=39).contains(&lines), "{lines} lines of the record for {MALFORMED} requests");
    format!("{MALFORMED} requests, {lines} lines of the record; a neighbour is served")
}

/// The token that the issuer of [`random_tokens`] knows.
const KNOWN: &str = "opaque-token-of-otto";

/// One client sends many random opaque tokens at once. Each would be a question to the issuer, which answers slowly.
fn random_tokens() -> Row {
    let issuer = Upstream::plain(|request| {
        thread::sleep(Duration::from_millis(300));
        let is_known = String::from_utf8_lossy(&request.start).contains(KNOWN);
        let claims = json!({ "active": is_known, "iss": ISSUER, "sub": "otto", "aud": URL, "exp": now() + 600 });
        answer("200 OK", "content-type: application/json\r\n", claims.to_string())
    });
    let introspect = format!(
        "introspect = {{ url = \"http://127.0.0.1:{}/introspect\", client-id = \"belljar\", client-secret = \"issuer\" }}",
        issuer.port()
    );
    site_row("MCP-12", "one client sends 200 random opaque tokens at once, and the issuer answers slowly")
        .settings(&format!(
            "[serve]\nurl = \"{URL}\"\nbehind = \"proxy\"\ntrusted = [\"127.0.0.1\"]\n[secrets]\nissuer = {{ file = \"issuer.secret\" }}\n[auth]\nkeys = \"keys.toml\"\nissuers = [{{ issuer = \"{ISSUER}\", jwks = \"jwks.json\", {introspect} }}]"
        ))
        .prepare(|site| {
            prepare(site);
            let file = site.write("issuer.secret", "a-password-of-belljar\n");
            fs::set_permissions(file, PermissionsExt::from_mode(0o600)).expect("a file of our own");
        })
        .run_mode(RunMode::Http)
        .act(move |context| {
            issuer.forget();
            let attack = |at: usize| guess(context, at, "198.51.100.30", &format!("random-token-{at}"));
            let (answers, honest) = thread::scope(|scope| {
                let attacks: Vec<_> = (0..TOKENS).map(|at| scope.spawn(move || attack(at))).collect();
                let asked = || !issuer.requests().is_empty();
                if !prove::is_running() {
                    assert!(within(deadline(Duration::from_secs(10)), asked), "the issuer is not asked");
                }
                let honest = guess(context, 9000, "198.51.100.31", KNOWN);
                let answers: Vec<Response> = attacks.into_iter().map(|one| one.join().expect("an answer")).collect();
                (answers, honest)
            });
            if prove::is_running() {
                assert!(answers.iter().any(|answer| answer.status != 200), "random tokens are served");
                return "random tokens are refused without the guard".to_owned();
            }
            assert_eq!(honest.status, 200, "a client at another address is shut out: {}", honest.text());
            assert!(answers.iter().all(|answer| matches!(answer.status, 401 | 429 | 503)), "a random token is served");
            let questions = issuer.requests().len();
            assert!(questions < TOKENS / 2, "{TOKENS} random tokens lead to {questions} questions to the issuer");
            format!("{TOKENS} random tokens, {questions} questions to the issuer; another client is served")
        })
        .stopped_by(&["authentication"])
}
