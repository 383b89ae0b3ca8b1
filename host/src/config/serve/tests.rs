//! Tests of `[serve]`.

use super::*;
use crate::config::{Config, ConfigInput};

/// The checked `[serve]` of a file with these lines.
fn read(lines: &str) -> Result<ServeConfig, String> {
    let file = Some(("/etc/belljar/belljar.toml".into(), format!("[serve]\n{lines}\n")));
    let config = Config::read(ConfigInput { file, directory: "/".into(), ..ConfigInput::default() });
    config.map(|config| config.serve).map_err(|error| error.to_string())
}

#[test]
fn a_whole_table_is_read() {
    let serve = read(
        "http = \"0.0.0.0:8808\"\nurl = \"https://mcp.example/mcp\"\ntls = { cert = \"cert.pem\", key = \"/keys/key.pem\" }\nhosts = [\"mcp.example\", \"10.1.2.3:8808\", \"a.example:443\"]\norigins = [\"https://app.example\", \"http://localhost:6274\"]\nbehind = \"proxy\"\ntrusted = [\"10.0.0.0/8\", \"::1\"]",
    )
    .unwrap();
    assert_eq!(serve.http, Some("0.0.0.0:8808".parse().unwrap()));
    let url = serve.url.unwrap();
    assert_eq!((url.to_string().as_str(), url.authority().as_str()), ("https://mcp.example/mcp", "mcp.example"));
    assert_eq!(url.metadata_url(), "https://mcp.example/.well-known/oauth-protected-resource/mcp");
    assert_eq!(
        serve.tls,
        Some(TlsFiles { cert: "/etc/belljar/cert.pem".into(), key: "/keys/key.pem".into() }),
        "paths start at the file"
    );
    let ports: Vec<_> = serve.hosts.iter().map(|host| (host.host.to_string(), host.port)).collect();
    let host = |name: &str, port| (name.to_owned(), port);
    assert_eq!(ports, [host("mcp.example", None), host("10.1.2.3", Some(8808)), host("a.example", Some(443))]);
    assert_eq!(serve.trusted.unwrap().len(), 2);
    assert_eq!(read("").unwrap(), ServeConfig::default());
}

#[test]
fn a_url_is_one_that_clients_and_issuers_write_in_the_same_way() {
    let proxy = "behind = \"proxy\"\ntrusted = [\"127.0.0.1\"]\n";
    for fine in [
        "https://mcp.example/mcp",
        "https://mcp.example:8443/tools/mcp",
        "https://[::1]/mcp",
        "http://localhost:8808/mcp",
    ] {
        assert_eq!(read(&format!("{proxy}url = \"{fine}\"")).unwrap().url.unwrap().to_string(), fine);
    }
    for (bad, why) in [
        ("mcp.example/mcp", "begins with \"https://\""),
        ("ftp://mcp.example/mcp", "begins with \"https://\""),
        ("HTTPS://mcp.example/mcp", "begins with \"https://\""),
        ("http://mcp.example/mcp", "for this machine only"),
        ("http://10.0.0.1/mcp", "for this machine only"),
        ("http://localhost.evil.example/mcp", "for this machine only"),
        ("https://mcp.example/mcp?a", "no \"?\""),
        ("https://mcp.example/mcp#a", "no \"?\""),
        ("https://mcp.example", "ends in \"/mcp\""),
        ("https://mcp.example/", "ends in \"/mcp\""),
        ("https://mcp.example/mcp/", "ends in \"/mcp\""),
        ("https://mcp.example/xmcp", "ends in \"/mcp\""),
        ("https://mcp.example//mcp", "ends in \"/mcp\""),
        ("https://mcp.example/../mcp", "ends in \"/mcp\""),
        ("https://mcp.example/%61/mcp", "ends in \"/mcp\""),
        ("https://user@mcp.example/mcp", "not allowed"),
        ("https:///mcp", "the host is missing"),
        ("https://mcp.example:0/mcp", "port"),
        ("https://MCP.example/mcp", "write \"https://mcp.example/mcp\""),
        ("https://mcp.example:443/mcp", "write \"https://mcp.example/mcp\""),
        ("https://mcp.example./mcp", "write \"https://mcp.example/mcp\""),
    ] {
        let error = read(&format!("{proxy}url = \"{bad}\"")).unwrap_err();
        assert!(error.contains("serve.url = ") && error.contains(why) && error.contains(bad), "{bad}: {error}");
    }
}

#[test]
fn keys_that_do_not_fit_together_are_refused_with_the_cure() {
    let tls = "tls = { cert = \"c\", key = \"k\" }\n";
    for (lines, cure) in [
        ("url = \"https://mcp.example/mcp\"".to_owned(), "behind = \"proxy\""),
        (format!("{tls}url = \"https://mcp.example/tools/mcp\""), "write \"https://mcp.example/mcp\""),
        (format!("{tls}url = \"http://localhost/mcp\""), "write \"https://\""),
        ("behind = \"proxy\"".to_owned(), "trusted = [\"127.0.0.1\", \"::1\"]"),
        ("trusted = [\"10.0.0.0/8\"]".to_owned(), "behind = \"proxy\""),
    ] {
        let error = read(&lines).unwrap_err();
        assert!(error.contains("serve.") && error.contains(cure), "{lines}: {error}");
    }
    assert!(read(&format!("{tls}url = \"https://mcp.example/mcp\"")).is_ok());
    assert!(read("url = \"http://localhost:8808/mcp\"").is_ok());
}

#[test]
fn malformed_values_are_refused_with_the_expected_form() {
    for (lines, expected) in [
        ("http = \"evil.example:80\"", "expected an address"),
        ("http = 8808", "expected"),
        ("hosts = [\"https://a.example\"]", "without \"https://\""),
        ("hosts = [\"a.example/x\"]", "without a path"),
        ("hosts = [\"*.example\"]", "serve.hosts"),
        ("hosts = [\"\"]", "the host is missing"),
        ("origins = [\"*\"]", "every web page"),
        ("origins = [\"null\"]", "expected an origin"),
        ("origins = [\"https://*.example\"]", "every web page"),
        ("origins = [\"https://app.example/\"]", "without a \"/\""),
        ("origins = [\"https://App.example\"]", "browsers write it as \"https://app.example\""),
        ("origins = [\"https://app.example:443\"]", "browsers write it as \"https://app.example\""),
        ("behind = \"nginx\"", "expected \"proxy\""),
        ("trusted = [\"10.0.0.0/33\"]", "expected a network"),
        ("trusted = [\"proxy.example\"]", "expected a network"),
        ("tls = { cert = \"c\" }", "key"),
        ("tls = \"cert.pem\"", "expected a table"),
        ("port = 1", "unknown key \"serve.port\""),
    ] {
        let error = read(lines).unwrap_err();
        assert!(error.contains(expected), "{lines}: {error}");
    }
}

#[test]
fn no_grant_may_cover_the_private_key() {
    let text = "[serve]\ntls = { cert = \"c.pem\", key = \"keys/k.pem\" }\n";
    let file = Some(("/etc/belljar/belljar.toml".into(), text.to_owned()));
    let config = Config::read(ConfigInput { file, directory: "/".into(), ..ConfigInput::default() }).unwrap();
    assert!(config.ambient.reserved.contains(&"/etc/belljar/keys/k.pem".into()), "{:?}", config.ambient.reserved);
}
