//! Runs the program with one request.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use belljar_fetch_protocol::{
    DownloadRequest, Downloaded, Event, Failure, FailureKind, Limits, Network, PROTOCOL, Request, ResolveRequest,
    Resolved, Tags, TagsRequest, Task, Trust, Wall,
};

use super::samples::{digest, sample, unsigned};

/// Bounds that let a test end soon.
pub(crate) const LIMITS: Limits = Limits { component_bytes: 1 << 20, seconds: 8, idle_seconds: 2, download_seconds: 8 };

/// A request that a test can change.
pub(crate) fn request(task: Task) -> Request {
    Request {
        protocol: PROTOCOL,
        wall: Wall::Required,
        credentials: false,
        network: Network::default(),
        limits: LIMITS,
        task,
    }
}

/// The events of a request.
pub(crate) fn run(request: &Request) -> Vec<Event> {
    run_with(request, &mut Command::new(env!("CARGO_BIN_EXE_belljar-fetch")))
}

/// As [`run`], with a command that has its own environment.
pub(crate) fn run_with(request: &Request, command: &mut Command) -> Vec<Event> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = serde_json::to_vec(request).unwrap();
    line.push(b'\n');
    child.stdin.take().unwrap().write_all(&line).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors, "", "{request:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed = matches!(events.last(), Some(Event::Failed(_)));
    assert_eq!(output.status.code(), Some(i32::from(failed)), "{text}");
    assert!(!failed || events.iter().filter(|event| matches!(event, Event::Failed(_))).count() == 1, "{text}");
    events
}

/// The result of a request.
pub(crate) fn result(request: &Request) -> Result<Event, Failure> {
    match run(request).pop().unwrap() {
        Event::Failed(failure) => Err(failure),
        other => Ok(other),
    }
}

/// The sample's source in a registry.
pub(crate) fn source(port: u16) -> String {
    format!("127.0.0.1:{port}/acme/tides:1.2")
}

/// Resolves a source.
pub(crate) fn resolve(source: &str, trust: Trust) -> Result<Resolved, Failure> {
    let task = Task::Resolve(ResolveRequest { source: source.to_owned(), kind: <_>::default(), trust });
    match result(&request(task))? {
        Event::Resolved(resolved) => Ok(*resolved),
        other => panic!("{other:?}"),
    }
}

/// The request for the sample component.
pub(crate) fn download_request(port: u16, directory: &Path) -> DownloadRequest {
    let component = sample("component.wasm");
    DownloadRequest {
        source: format!("127.0.0.1:{port}/acme/tides@{}", digest(&sample("manifest.json"))),
        component_digest: digest(&component),
        kind: <_>::default(),
        size: Some(component.len() as u64),
        directory: directory.to_owned(),
        trust: unsigned(),
    }
}

/// Downloads a component.
pub(crate) fn download(wanted: DownloadRequest) -> Result<Downloaded, Failure> {
    match result(&request(Task::Download(wanted)))? {
        Event::Downloaded(downloaded) => Ok(downloaded),
        other => panic!("{other:?}"),
    }
}

/// Lists tags.
pub(crate) fn tags(repository: &str) -> Result<Tags, Failure> {
    match result(&request(Task::Tags(TagsRequest { repository: repository.to_owned() })))? {
        Event::Tags(tags) => Ok(tags),
        other => panic!("{other:?}"),
    }
}

/// True if a failure is of this kind, names `problem`, has a cure, and is one line of text.
pub(crate) fn is_clear(failure: &Failure, kind: FailureKind, problem: &str) -> bool {
    let text = format!("{}; {}", failure.problem, failure.cure);
    let is_line = !text.chars().any(char::is_control) && text.len() < 1500 && !failure.cure.is_empty();
    failure.kind == kind && failure.problem.contains(problem) && is_line
}
