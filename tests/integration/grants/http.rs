//! HTTP grants, as an operator and a client see them. The upstreams are real servers on loopback, with and without TLS,
//! over HTTP/1.1 and HTTP/2. A refusal names the command that would allow the request. belljar refuses an impossible
//! grant before it runs a provider.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio as Pipe};

use belljar_tests::Era;
use belljar_upstream::{Authority, DnsServer, Upstream, answer, echo};

use crate::support::{serve, site, stdout_and_stderr};

/// The URI that makes the hostile guest send the requests of `order`. `tests/guests/hostile/src/fetch.rs` describes the
/// form of an order.
pub(crate) fn fetch(order: &str) -> String {
    attack("fetch", order)
}

/// The URI that makes the hostile guest run `verb` with `argument`.
pub(crate) fn attack(verb: &str, argument: &str) -> String {
    // Encodes each byte twice: the host refuses some characters that are encoded once.
    let twice = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        byte => format!("%25{byte:02X}"),
    };
    format!("belljar://hostile/{verb}/{}", argument.bytes().map(twice).collect::<String>())
}

/// The table of the mount `hostile` with these grants.
pub(crate) fn mount(grants: &str) -> String {
    format!("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n{grants}\n")
}

#[test]
fn granted_requests_are_sent_as_checked_and_are_recorded() {
    let upstream = Upstream::plain(echo);
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    let grant = format!(
        "http = [{{ origin = \"{origin}\", paths = [\"/api/**\"], query = {{ key = \"${{secret:api}}\" }}, headers = {{ x-own = \"fixed\" }} }}]"
    );
    let mut site = site(&format!("[secrets]\napi = {{ file = \"token\" }}\n{}", mount(&grant)));
    let token = site.write("token", "tok+en/with spaces\n");
    std::fs::set_permissions(token, PermissionsExt::from_mode(0o600)).unwrap();
    site.env("HTTP_PROXY", "http://127.0.0.1:1");
    let mut client = serve(&site);
    let text = client.text(&fetch(&format!("GET {origin}/api/a%62c/caf%c3%a9?x=1%202&y|header accept: text/plain")));
    assert!(text.starts_with("status 200"), "{text}");
    let request = upstream.requests().remove(0);
    assert_eq!(request.path(), "/api/abc/caf%C3%A9?x=1%202&y&key=tok%2Ben%2Fwith%20spaces");
    assert_eq!(request.header("x-own"), Some("fixed"));
    assert_eq!(request.header("accept"), Some("text/plain"));
    assert!(request.header("user-agent").unwrap().starts_with("belljar/"));
    assert!(!text.contains("tok%2Ben") && text.contains("****"), "{text}");
    // A provider must not set this parameter itself, in any spelling of its name.
    for query in ["key=mine", "KEY=mine", "k%65y=mine", "a=b&key"] {
        let text = client.text(&fetch(&format!("GET {origin}/api/?{query}")));
        assert!(text.contains("HttpRequestDenied"), "{query}: {text}");
    }
    assert_eq!(upstream.connections(), 1);
    client.close();
    let records = site.audit();
    let record = records.iter().find(|record| record["mount"] == "hostile").unwrap();
    assert_eq!(record["grants"][0]["what"], format!("GET {origin}"), "{record}");
    assert!(!record.to_string().contains("tok"), "{record}");
}

#[test]
fn each_refusal_names_the_command_that_allows_the_request() {
    let upstream = Upstream::plain(echo);
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    let names = DnsServer::start(&[("inside.test", &["127.0.0.1"])]);
    let inside = format!("http://inside.test:{}", upstream.port());
    let grants = format!("http = [{{ origin = \"{origin}\", paths = [\"/a\"] }}, {{ origin = \"{inside}\" }}]");
    let site = site(&format!("[network]\ndns = [\"{}\"]\n{}", names.address(), mount(&grants)));
    for era in [Era::Stateless, Era::Session] {
        let mut client = site.stdio(era);
        for (order, attempt, cure) in [
            (
                "GET https://api.example/x".to_owned(),
                "GET https://api.example",
                "run: belljar grant hostile --http https://api.example".to_owned(),
            ),
            (
                format!("POST {origin}/a"),
                "POST http://127",
                format!("run: belljar grant hostile --http {origin} --method POST"),
            ),
            (
                format!("GET {origin}/b'c"),
                "GET http://127",
                format!("run: belljar grant hostile --http {origin} --path '/b'\\''c'"),
            ),
            (
                format!("GET {inside}/"),
                "connect http://inside",
                format!("run: belljar grant hostile --http {inside} --network 127.0.0.1"),
            ),
            (
                "GET https://user@api.example/".to_owned(),
                "a request to a malformed URI",
                "nothing allows this: a user".to_owned(),
            ),
        ] {
            let error = client.read(&fetch(&format!("{order}|fail"))).unwrap_err();
            assert_eq!(error.data["kind"], "denied", "{order}: {error}");
            assert_eq!(error.data["mount"], "hostile", "{error}");
            assert!(error.message.contains(attempt), "{order}: {error}");
            assert!(error.data["hint"].as_str().unwrap().contains(&cure), "{order}: {error}");
        }
        client.close();
    }
    assert_eq!(upstream.connections(), 0);
}

/// A Node server with HTTP/2, which echoes the request: its process and its port.
struct Node(Child, u16);

impl Node {
    fn start(site: &belljar_tests::Site, certificate: &str, key: &str) -> Node {
        let script = format!(
            "const s = require('http2').createSecureServer({{cert: {certificate:?}, key: {key:?}}}, (q, r) => {{
               r.setHeader('x-version', q.httpVersion);
               r.end(q.httpVersion + ' ' + q.method + ' ' + q.url + ' ' + q.headers[':authority'] + ' ' + (q.headers.authorization || 'none') + 'x'.repeat(300000));
             }}).listen(0, '127.0.0.1', () => console.log(s.address().port));"
        );
        let script = site.write("h2.js", script);
        let mut node = Command::new("node").arg(script).stdout(Pipe::piped()).spawn().expect("start node");
        let mut line = String::new();
        BufReader::new(node.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Node(node, line.trim().parse().expect("the Node server prints its port"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn tls_verifies_the_host_name_over_http_1_and_http_2() {
    let authority = Authority::new();
    let one = Upstream::tls(authority.server(&["one.test"]), |request| answer("200 OK", "", &request.line));
    let place = crate::support::isolated_site();
    let (certificate, key) = authority.pair(&["two.test"]);
    let two = Node::start(&place, &certificate, &key);
    let names = DnsServer::start(&[("one.test", &["127.0.0.1"]), ("two.test", &["127.0.0.1", "::1"])]);
    let (first, second) = (format!("https://one.test:{}", one.port()), format!("https://two.test:{}", two.1));
    let more = "networks = [\"127.0.0.0/8\", \"::1\"], headers = { authorization = \"Bearer ${secret:api}\" }";
    let grants = format!("http = [{{ origin = \"{first}\", {more} }}, {{ origin = \"{second}\", {more} }}]");
    let mut site = site(&format!(
        "[secrets]\napi = {{ env = \"API\" }}\n[network]\ndns = [\"{}\"]\nca = \"ca.pem\"\n{}",
        names.address(),
        mount(&grants)
    ));
    site.write("ca.pem", authority.pem());
    site.env("API", "a-long-enough-token");
    let mut client = serve(&site);
    let text = client.text(&fetch(&format!("GET {first}/x")));
    assert!(text.starts_with("status 200") && text.contains("GET /x HTTP/1.1"), "{text}");
    for _ in 0..3 {
        let text = client.text(&fetch(&format!("GET {second}/x?y=1|show 200")));
        let expected = format!("2.0 GET /x?y=1 two.test:{} Bearer *******************x", two.1);
        assert!(text.contains(&expected) && text.contains("bytes"), "{text}");
        assert!(text.contains("got x-version: 2.0"), "{text}");
    }
    // Without the certificate of the authority, belljar refuses the connection.
    site.config(&std::fs::read_to_string(site.path("belljar.toml")).unwrap().replace("ca = \"ca.pem\"\n", ""));
    client.close();
    let mut client = serve(&site);
    let text = client.text(&fetch(&format!("GET {second}/")));
    assert!(text.contains("TlsCertificateError"), "{text}");
}

/// The error for an impossible grant names the key, the expected value and the cure. The mount is not served.
#[test]
fn impossible_grants_are_refused_before_anything_runs() {
    for (grant, says) in [
        ("http = [{ origin = \"api.example\" }]", "write \\\"https://\\\""),
        ("http = [{ origin = \"https://api.example/v1\" }]", "paths = [\\\"/v1\\\"]"),
        ("http = [{ origin = \"https://*.com\" }]", "top-level"),
        ("http = [{ origin = \"https://user@api.example\" }]", "user"),
        ("http = [{ origin = \"https://a.example\", methods = [\"get\"] }]", "in capitals"),
        ("http = [{ origin = \"https://a.example\", methods = [\"CONNECT\"] }]", "never allowed"),
        ("http = [{ origin = \"https://a.example\", methods = [] }]", "methods is empty"),
        ("http = [{ origin = \"https://a.example\", paths = [\"a\"] }]", "does not begin with"),
        ("http = [{ origin = \"https://a.example\", headers = { host = \"b\" } }]", "made by belljar"),
        ("http = [{ origin = \"https://a.example\", headers = { x = \"${secret:nope}\" } }]", "no secret \\\"nope\\\""),
        ("http = [{ origin = \"https://a.example\", headers = { x = \"${secret:gone}\" } }]", "is not set"),
        ("http = [{ origin = \"http://a.example\", headers = { x = \"${secret:fine}\" } }]", "without TLS"),
    ] {
        let secrets = "[secrets]\ngone = { env = \"GONE\" }\nfine = { env = \"FINE\" }\n";
        let mut site = site(&format!("{secrets}{}", mount(grant)));
        site.env("FINE", "long-enough-for-a-secret");
        let checked = site.run(&["check", "--json"]);
        let output = stdout_and_stderr(&checked);
        assert!(
            !checked.status.success() && output.contains("\"hostile\"") && output.contains(says),
            "{grant}: {output}"
        );
    }
    for (config, says) in [
        ("http = { origin = \"https://a.example\" }", "http"),
        ("http = [{ origin = \"https://a.example\", netwroks = [] }]", "netwroks"),
        ("http = [{ origin = \"https://a.example\", networks = [\"10.0.0.0/33\"] }]", "10.0.0.0/33"),
        ("http = [{ origin = \"https://a.example\", headers = { x = \"${secret:a b}\" } }]", "${secret:NAME}"),
    ] {
        let site = site(&mount(config));
        let output = stdout_and_stderr(&site.run(&["check"]));
        assert!(output.contains(says) && output.contains("mounts.hostile.http"), "{config}: {output}");
    }
    for (config, says) in [
        ("[secrets]\napi = \"the-secret-itself\"\n", "the secret itself is never written here"),
        ("[secrets]\n\"a b\" = { env = \"X\" }\n", "not the name of a secret"),
        ("[network]\ndns = [\"nine\"]\n", "network.dns"),
        ("[network]\nproxy = \"x\"\n", "unknown key"),
    ] {
        let site = site(config);
        let output = stdout_and_stderr(&site.run(&["check"]));
        assert!(output.contains(says) && !output.contains("the-secret-itself"), "{config}: {output}");
    }
}
