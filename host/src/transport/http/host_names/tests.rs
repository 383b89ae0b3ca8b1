//! Tests of the checks of Host and Origin.

use super::*;
use crate::config::serve::TlsFiles;

/// The status that refuses a request with these headers, or 200 if it passes.
fn judged_by(own: &HostNames, target: &str, headers: &[(&str, &str)]) -> u16 {
    let mut head = http::Request::post(target);
    for (name, value) in headers {
        head = head.header(*name, *value);
    }
    let (parts, ()) = head.body(()).unwrap().into_parts();
    own.check(&parts, false).map_or_else(|(status, _)| status.as_u16(), |()| 200)
}

/// The same for a server on this port of loopback, without `[serve]`.
fn judged(port: u16, target: &str, headers: &[(&str, &str)]) -> u16 {
    let own = HostNames::new(SocketAddr::from(([127, 0, 0, 1], port)), &ServeConfig::default());
    judged_by(&own, target, headers)
}

#[test]
fn a_host_is_a_name_of_this_server_with_its_port() {
    for own in ["127.0.0.1:8877", "localhost:8877", "LocalHost:8877"] {
        assert_eq!(judged(8877, PATH, &[("Host", own)]), 200, "{own}");
        assert_eq!(judged(8877, &format!("http://{own}{PATH}"), &[("Host", own)]), 200, "{own}");
        assert_eq!(judged(8877, PATH, &[("Host", own), ("X-Forwarded-Host", "evil.example")]), 200);
    }
    for foreign in [
        "",
        "localhost",
        "127.0.0.1",
        "localhost:",
        "localhost:1",
        "localhost:80",
        "127.0.0.1:9999",
        "127.0.0.1:8877.evil.com",
        "127.0.0.1:88770",
        "127.0.0.1:08877",
        "127.0.0.1:+8877",
        "127.0.0.1.:8877",
        "localhost.:8877",
        "evil@127.0.0.1:8877",
        "127.0.0.1:8877@evil",
        "127.0.0.1:8877, evil.example",
        "127.0.0.1:8877/",
        "127.0.0.1:8877#",
        "127.0.0.1:8877 ",
        "127.1:8877",
        "2130706433:8877",
        "0x7f.0.0.1:8877",
        "0.0.0.0:8877",
        "127.0.0.2:8877",
        "[::1]:8877",
        "[::ffff:127.0.0.1]:8877",
        "a.localhost:8877",
        "localhost.evil.example:8877",
        "evil.example:8877",
    ] {
        assert_eq!(judged(8877, PATH, &[("Host", foreign)]), 403, "{foreign}");
        let forwarded = [("Host", foreign), ("X-Forwarded-Host", "127.0.0.1:8877")];
        assert_eq!(judged(8877, PATH, &forwarded), 403, "{foreign}");
    }
    let own = ("Host", "127.0.0.1:8877");
    assert_eq!(judged(8877, PATH, &[]), 400);
    assert_eq!(judged(8877, PATH, &[own, own]), 400);
    assert_eq!(judged(8877, PATH, &[own, ("Host", "evil.example")]), 400);
    for target in [
        "http://evil.example/mcp",
        "http://localhost:8877/mcp",
        "https://127.0.0.1:8877/mcp",
        "http://evil@127.0.0.1:8877/mcp",
        "http://127.0.0.1/mcp",
    ] {
        assert_eq!(judged(8877, target, &[own]), 400, "{target}");
    }
    assert_eq!(judged(8877, "http://evil.example/mcp", &[("Host", "evil.example")]), 403);
    assert_eq!(judged(8877, "/mcp?x=1", &[own]), 200);
}

#[test]
fn port_80_may_be_omitted() {
    for own in ["localhost", "127.0.0.1", "localhost:80", "127.0.0.1:80"] {
        assert_eq!(judged(80, PATH, &[("Host", own)]), 200, "{own}");
        assert_eq!(judged(80, PATH, &[("Host", own), ("Origin", &format!("http://{own}"))]), 200, "{own}");
    }
    let names = HostNames::new("[::1]:80".parse().unwrap(), &ServeConfig::default()).hosts;
    assert_eq!(names, ["[::1]:80", "localhost:80", "[::1]", "localhost"]);
}

#[test]
fn an_origin_is_that_of_this_server() {
    let host = ("Host", "127.0.0.1:8877");
    for own in ["http://127.0.0.1:8877", "http://localhost:8877"] {
        assert_eq!(judged(8877, PATH, &[host, ("Origin", own)]), 200, "{own}");
        for second in ["http://evil.example", "null", own] {
            assert_eq!(judged(8877, PATH, &[host, ("Origin", own), ("Origin", second)]), 403, "{second}");
            assert_eq!(judged(8877, PATH, &[host, ("Origin", second), ("Origin", own)]), 403, "{second}");
        }
    }
    for foreign in [
        "",
        "null",
        "NULL",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://127.0.0.1:8877/",
        "http://127.0.0.1:8877.evil.com",
        "http://evil@127.0.0.1:8877",
        "https://127.0.0.1:8877",
        "HTTP://127.0.0.1:8877",
        "http://LOCALHOST:8877",
        "http://localhost.:8877",
        "http://localhost:8877 http://evil.example",
        "http://localhost:8877, http://evil.example",
        "127.0.0.1:8877",
        "file://",
        "http://evil.example",
    ] {
        assert_eq!(judged(8877, PATH, &[host, ("Origin", foreign)]), 403, "{foreign}");
    }
}

/// The names of a server on `address` with this `[serve]`.
fn served(address: &str, url: Option<&str>, hosts: &[&str], has_tls: bool) -> HostNames {
    let tls = has_tls.then(|| TlsFiles { cert: "c".into(), key: "k".into() });
    let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let url = url.map(|url| url.parse().unwrap());
    HostNames::new(address.parse().unwrap(), &ServeConfig { url, hosts, tls, ..ServeConfig::default() })
}

#[test]
fn a_server_for_others_has_the_names_of_its_configuration_only() {
    let own = served(
        "0.0.0.0:8808",
        Some("https://mcp.example/mcp"),
        &["a.example", "b.example:9000", "c.example:443"],
        true,
    );
    let host = |host: &str| judged_by(&own, PATH, &[("Host", host)]);
    for fine in [
        "mcp.example",
        "MCP.example",
        "mcp.example:443",
        "a.example",
        "a.example:443",
        "a.example:80",
        "a.example:8808",
        "b.example:9000",
        "c.example",
        "c.example:443",
    ] {
        assert_eq!(host(fine), 200, "{fine}");
    }
    for foreign in [
        "0.0.0.0:8808",
        "127.0.0.1:8808",
        "localhost:8808",
        "localhost",
        "mcp.example:8808",
        "mcp.example.",
        "x.mcp.example",
        "mcp.example.evil.com",
        "a.example:1",
        "b.example",
        "b.example:443",
        "c.example:9000",
        "evil.example",
        "",
    ] {
        assert_eq!(host(foreign), 403, "{foreign}");
        assert_eq!(judged_by(&own, PATH, &[("Host", foreign), ("X-Forwarded-Host", "mcp.example")]), 403, "{foreign}");
    }
    assert_eq!(judged_by(&own, "https://mcp.example/mcp", &[("Host", "mcp.example")]), 200);
    assert_eq!(judged_by(&own, "http://mcp.example/mcp", &[("Host", "mcp.example")]), 400, "the listener has TLS");
    let origin = |origin: &str| judged_by(&own, PATH, &[("Host", "mcp.example"), ("Origin", origin)]);
    assert_eq!(origin("https://mcp.example"), 200);
    for foreign in
        ["http://mcp.example", "https://a.example", "https://mcp.example:443", "https://mcp.example/", "null"]
    {
        assert_eq!(origin(foreign), 403, "{foreign}");
    }
}

#[test]
fn a_server_on_loopback_has_the_configured_names_beside_its_own() {
    let own = served("127.0.0.1:8808", Some("https://mcp.example/tools/mcp"), &[], false);
    for fine in ["127.0.0.1:8808", "localhost:8808", "mcp.example"] {
        assert_eq!(judged_by(&own, PATH, &[("Host", fine)]), 200, "{fine}");
    }
    let own = served("127.0.0.1:443", None, &[], true);
    for fine in ["127.0.0.1", "localhost", "localhost:443"] {
        let origin = format!("https://{fine}");
        assert_eq!(judged_by(&own, PATH, &[("Host", fine), ("Origin", &origin)]), 200, "{fine}");
        let origin = format!("http://{fine}");
        assert_eq!(judged_by(&own, PATH, &[("Host", fine), ("Origin", &origin)]), 403, "{fine}");
    }
}

#[test]
fn a_page_of_the_operator_skips_the_check_of_the_origin_and_not_that_of_the_host() {
    let own = served("127.0.0.1:8808", None, &[], false);
    for (host, expected) in [("localhost:8808", true), ("evil.example", false)] {
        let head = http::Request::post(PATH).header("Host", host).header("Origin", "https://app.example");
        let (parts, ()) = head.body(()).unwrap().into_parts();
        assert_eq!(own.check(&parts, true).is_ok(), expected, "{host}");
    }
}
