//! Issuers as operators write them, right and wrong.

use std::path::Path;

use super::super::{Config, ConfigInput};
use super::*;

fn read(text: &str) -> Result<Config, String> {
    let directory = PathBuf::from("/srv/belljar");
    let file = Some((directory.join("belljar.toml"), text.to_owned()));
    let input = ConfigInput { file, directory, ..ConfigInput::default() };
    Config::read(input).map_err(|error| error.to_string())
}

#[test]
fn an_issuer_has_defaults() {
    let config = read("[auth]\nissuers = [{ issuer = 'https://login.example/a' }]").unwrap();
    let issuer = &config.auth.as_ref().unwrap().issuers[0];
    assert_eq!(issuer.issuer.as_str(), "https://login.example/a");
    assert_eq!(issuer.keys, KeySetSource::Discover);
    assert_eq!(issuer.algorithms, TokenAlgorithm::DEFAULT);
    assert_eq!((issuer.audience.as_ref(), issuer.groups.as_str()), (None, "groups"));
    assert!(!issuer.allows_plain_jwt && issuer.networks.is_empty() && issuer.introspection.is_none());
    assert_eq!(config.ports(), [443]);
    assert!(read("").unwrap().auth.is_none());
}

#[test]
fn every_key_of_an_issuer() {
    let config = read(
        r#"
        secrets.i = { env = "X" }
        [[auth.issuers]]
        issuer = "https://login.example"
        jwks = "https://keys.example:8443/jwks"
        algorithms = ["Ed25519", "PS512"]
        audience = "urn:belljar"
        plain-jwt = true
        groups = "/realm_access/roles"
        networks = ["10.0.0.1", "fd00::/8"]
        introspect = { url = "http://127.0.0.1:9999/introspect", client-id = "belljar", client-secret = "i" }
        [[auth.issuers]]
        issuer = "https://other.example"
        jwks = "keys/other.json"
        "#,
    )
    .unwrap();
    let auth = config.auth.as_ref().unwrap();
    let [first, second] = auth.issuers.as_slice() else { panic!("two issuers") };
    assert_eq!(first.algorithms, [TokenAlgorithm::Ed25519, TokenAlgorithm::Ps512]);
    assert!(first.allows_plain_jwt && first.networks.len() == 2);
    assert_eq!(first.introspection.as_ref().unwrap().secret, "i");
    assert_eq!(second.keys, KeySetSource::File("/srv/belljar/keys/other.json".into()));
    assert_eq!(auth.key_set_files().collect::<Vec<_>>(), [Path::new("/srv/belljar/keys/other.json")]);
    assert_eq!(config.ports(), [8443, 9999]);
    assert!(config.ambient.reserved.contains(&"/srv/belljar/keys/other.json".into()));
}

#[test]
fn errors_name_the_issuer_and_the_cure() {
    let issuer = "issuer = 'https://a.example'";
    for (text, says) in [
        ("issuers = [{}]", "issuer"),
        ("issuers = [{ issuer = 'login.example' }]", "https://"),
        ("issuers = [{ issuer = 'http://login.example' }]", "not encrypted"),
        ("issuers = [{ issuer = 'https://login.example?x' }]", "query"),
        ("issuers = [{ issuer = 'https://login.example#x' }]", "fragment"),
        ("issuers = [{ ISSUER, algorithms = ['HS256'] }]", "symmetric"),
        ("issuers = [{ ISSUER, algorithms = ['none'] }]", "use one of ES256"),
        ("issuers = [{ ISSUER, algorithms = ['es256'] }]", "use one of ES256"),
        ("issuers = [{ ISSUER, algorithms = [] }]", "algorithms = [\"ES256\"]"),
        ("issuers = [{ ISSUER, jwks = 'http://a.example/jwks' }]", "not encrypted"),
        ("issuers = [{ ISSUER, jwks = '' }]", "discover"),
        ("issuers = [{ ISSUER, audience = '' }]", "audience is empty"),
        ("issuers = [{ ISSUER, groups = '' }]", "groups is empty"),
        ("issuers = [{ ISSUER, networks = ['10.0.0.0/33'] }]", "10.0.0.0/33"),
        ("issuers = [{ ISSUER, jwsk = 'x' }]", "did you mean \"jwks\""),
        ("issuers = [{ ISSUER }, { ISSUER }]", "twice"),
        (
            "issuers = [{ ISSUER, introspect = { url = 'https://a.example/i', client-id = 'b', client-secret = 'c' } }]",
            "[secrets]",
        ),
        ("issuers = [{ ISSUER, introspect = { url = 'https://a.example/i', client-id = 'b' } }]", "client-secret"),
    ] {
        let why = read(&format!("[auth]\n{}", text.replace("ISSUER", issuer))).err().unwrap_or_default();
        assert!(why.contains(says), "{text}: {why}");
    }
    let introspect = "introspect = { url = 'https://a.example/i', client-id = 'b', client-secret = 'c' }";
    let both = format!(
        "secrets.c = {{ env = 'X' }}\n[auth]\nissuers = [{{ {issuer}, {introspect} }}, {{ issuer = 'https://b.example', {introspect} }}]"
    );
    assert!(read(&both).err().unwrap().contains("\"https://a.example\" has  introspect  too"));
    let with = |secret: &str, declared: &str| {
        let introspect = introspect.replace("'c'", &format!("'{secret}'"));
        read(&format!("{declared}\n[auth]\nissuers = [{{ {issuer}, {introspect} }}]")).err().unwrap()
    };
    let why = with("hunter2-a-password", "secrets.c = { env = 'X' }");
    assert!(!why.contains("hunter2") && why.contains("[secrets] has \"c\""), "a pasted password is repeated: {why}");
    let why = with("own", "secrets.own = { file = 'secrets/{principal}/own' }");
    assert!(why.contains("of which each principal has its own"), "{why}");
}
