//! HTTPS: which certificates are accepted. The authority is made by the test.

use std::sync::Arc;

use belljar_fetch_protocol::{Event, Failure, FailureKind, Network, Request, ResolveRequest, Task};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;

use crate::support::program::{request, result};
use crate::support::samples::{digest, sample, unsigned};
use crate::support::server::{Reply, Server};

/// An authority of the tests.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server of one file with a certificate for `name` that is valid in these years.
fn server(authority: &CertifiedIssuer<'static, KeyPair>, name: &str, (from, until): (i32, i32)) -> Server {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    Server::start_with(Some(Arc::new(config)), |asked| match asked.path.as_str() {
        "/tides.wasm" => Reply::new(200, sample("component.wasm")),
        _ => Reply::new(404, ""),
    })
}

fn resolve(server: &Server, roots: Option<String>) -> Result<(), Failure> {
    let source =
        format!("https://localhost:{}/tides.wasm#sha256={}", server.port, &digest(&sample("component.wasm"))[7..]);
    let network = Network { dns: Vec::new(), roots };
    let request = Request {
        network,
        ..request(Task::Resolve(ResolveRequest { source, kind: <_>::default(), trust: unsigned() }))
    };
    let event = result(&request)?;
    assert!(matches!(event, Event::Resolved(_)), "{event:?}");
    Ok(())
}

#[test]
fn only_certificates_of_known_authorities_for_the_named_host_are_accepted() {
    let (own, other) = (authority(), authority());
    let pem = |authority: &CertifiedIssuer<'static, KeyPair>| Some(authority.pem());
    resolve(&server(&own, "localhost", (2020, 2100)), pem(&own)).unwrap();
    for (name, server, roots) in [
        ("unknown authority", server(&own, "localhost", (2020, 2100)), None),
        ("another authority", server(&own, "localhost", (2020, 2100)), pem(&other)),
        ("another host", server(&own, "other.example", (2020, 2100)), pem(&own)),
        ("expired", server(&own, "localhost", (2020, 2021)), pem(&own)),
        ("of the future", server(&own, "localhost", (2099, 2100)), pem(&own)),
    ] {
        let failure = resolve(&server, roots).unwrap_err();
        assert!(
            failure.kind == FailureKind::Network && failure.problem.contains("invalid peer certificate"),
            "{name}: {failure:?}"
        );
    }
    let failure = resolve(&server(&own, "localhost", (2020, 2100)), Some("nothing".to_owned())).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Request);
}
