//! Registries that want a login: what is sent to whom.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_fetch_protocol::{Event, Failure, FailureKind, Request, ResolveRequest, Task};

use crate::support::program::{request, run_with, source};
use crate::support::registry::Contents;
use crate::support::samples::unsigned;
use crate::support::server::{Asked, Reply, Server};

const SECRET: &str = "s3cret-pa55word";

/// A registry that wants this challenge answered with this header.
fn registry(challenge: impl Fn(u16) -> String + Send + Sync + 'static, accepted: &'static str) -> Server {
    let contents = Contents::tides();
    Server::start(move |asked| {
        let port: u16 = asked.header("host").unwrap().rsplit(':').next().unwrap().parse().unwrap();
        if asked.path.starts_with("/token") {
            return token(asked);
        }
        if asked.header("authorization") == Some(accepted) {
            return contents.answer(asked);
        }
        Reply::new(401, "{}").with("WWW-Authenticate", challenge(port))
    })
}

/// A token server that gives a token to the user of the tests.
fn token(asked: &Asked) -> Reply {
    let login = format!("Basic {}", STANDARD.encode(format!("acme:{SECRET}")));
    let is_user = asked.header("authorization") == Some(login.as_str()) || asked.body.contains("refresh%2Dtoken");
    if is_user { Reply::new(200, r#"{"token":"t0ken"}"#) } else { Reply::new(401, "{}") }
}

fn bearer(port: u16) -> String {
    format!(r#"Bearer realm="http://127.0.0.1:{port}/token",service="tests",scope="repository:acme/other:pull,push""#)
}

/// Resolves with the logins of a docker configuration.
fn resolve(server: &Server, login: Option<&str>, credentials: bool) -> Result<(), Failure> {
    let home = tempfile::tempdir().unwrap();
    if let Some(login) = login {
        let config = format!(r#"{{"auths":{{"127.0.0.1:{}":{login}}}}}"#, server.port);
        std::fs::write(home.path().join("config.json"), config).unwrap();
    }
    let task = Task::Resolve(ResolveRequest { source: source(server.port), kind: <_>::default(), trust: unsigned() });
    let request = Request { credentials, ..request(task) };
    let mut command = Command::new(env!("CARGO_BIN_EXE_belljar-fetch"));
    command
        .env("DOCKER_CONFIG", home.path())
        .env("HOME", home.path())
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("REGISTRY_AUTH_FILE");
    let events = run_with(&request, &mut command);
    assert!(!format!("{events:?}").contains(SECRET), "{events:?}");
    match events.into_iter().last().unwrap() {
        Event::Failed(failure) => Err(failure),
        _ => Ok(()),
    }
}

fn password() -> String {
    format!(r#"{{"auth":"{}"}}"#, STANDARD.encode(format!("acme:{SECRET}")))
}

#[test]
fn a_login_gets_a_token_for_reading_this_repository_alone() {
    let server = registry(bearer, "Bearer t0ken");
    resolve(&server, Some(&password()), true).unwrap();
    let asked = server.asked();
    let token = asked.iter().find(|asked| asked.path.starts_with("/token")).unwrap();
    assert!(
        token.path.contains("scope=repository%3Aacme%2Ftides%3Apull&")
            || token.path.ends_with("scope=repository%3Aacme%2Ftides%3Apull"),
        "{}",
        token.path
    );
    assert!(token.path.contains("service=tests"), "{}", token.path);
    assert!(asked.iter().filter(|asked| asked.path.starts_with("/token")).count() == 1, "the token is used again");
    // The login itself goes to the token server alone.
    let basic =
        asked.iter().filter(|asked| asked.header("authorization").is_some_and(|value| value.starts_with("Basic ")));
    assert!(basic.into_iter().all(|asked| asked.path.starts_with("/token")));
}

#[test]
fn a_refresh_token_is_exchanged() {
    let server = registry(bearer, "Bearer t0ken");
    resolve(&server, Some(r#"{"auth":"","identitytoken":"refresh-token"}"#), true).unwrap();
    let asked = server.asked();
    let token = asked.iter().find(|asked| asked.path.starts_with("/token")).unwrap();
    assert_eq!(token.method, "POST");
    assert!(token.body.contains("grant_type=refresh%5Ftoken"), "{}", token.body);
}

#[test]
fn a_login_is_sent_as_it_is_if_the_registry_wants_that() {
    let basic: &'static str =
        Box::leak(format!("Basic {}", STANDARD.encode(format!("acme:{SECRET}"))).into_boxed_str());
    let server = registry(|_| "Basic realm=\"tests\"".to_owned(), basic);
    resolve(&server, Some(&password()), true).unwrap();
    // Not allowed, not sent.
    let server = registry(|_| "Basic realm=\"tests\"".to_owned(), basic);
    let failure = resolve(&server, Some(&password()), false).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(failure.cure.contains("docker login"), "{failure:?}");
    assert!(server.asked().iter().all(|asked| asked.header("authorization").is_none()));
}

#[test]
fn a_registry_that_refuses_the_login_is_named() {
    let server = registry(bearer, "Bearer t0ken");
    let failure = resolve(&server, None, true).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied, "{failure:?}");
    let wrong = format!(r#"{{"auth":"{}"}}"#, STANDARD.encode("acme:wrong"));
    let failure = resolve(&server, Some(&wrong), true).unwrap_err();
    assert!(failure.problem.contains("refuses the login"), "{failure:?}");
}

#[test]
fn a_login_does_not_follow_the_registry_to_other_servers() {
    // The registry wants the login for a token server on another port, without TLS.
    let thief = Server::start(|_| Reply::new(200, r#"{"token":"t0ken"}"#));
    let port = thief.port;
    let server = registry(move |_| format!(r#"Bearer realm="http://127.0.0.1:{port}/token""#), "Bearer t0ken");
    let failure = resolve(&server, Some(&password()), true).unwrap_err();
    assert!(failure.kind == FailureKind::Address && failure.problem.contains("which is not HTTPS"), "{failure:?}");
    assert!(thief.asked().is_empty());
}
