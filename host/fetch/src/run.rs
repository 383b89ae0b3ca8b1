//! One request, from its line to its result: reads what lies outside of the wall, raises the wall, then speaks to the server.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use belljar_fetch_protocol::{
    ArtifactKind, DownloadRequest, Event, FailureKind, Limits, PROTOCOL, Request, ResolveRequest, RevokedRequest, Tags,
    Task, Trust, Wall,
};
use tokio::runtime::Runtime;

use crate::credentials::Login;
use crate::digest::Sha256;
use crate::directory::Directory;
use crate::download::{self, Server};
use crate::failure::{Outcome, failure};
use crate::http::Client;
use crate::network::Network;
use crate::output::Output;
use crate::prune::{self, prune};
use crate::registry::Registry;
use crate::resolve;
use crate::revoked;
use crate::search::Search;
use crate::signatures::Judge;
use crate::source::{Image, Source};
use crate::upload::Upload;
use crate::wall;

/// The most seconds that a limit may have.
const MAX_SECONDS: u64 = 24 * 60 * 60;

/// The parts of a request that are ready before the wall.
struct Prepared {
    work: Work,
    source: Source,
    login: Option<Login>,
    network: Network,
    limits: Limits,
}

enum Work {
    Resolve(ArtifactKind, Box<Judge>),
    Download { digest: Sha256, kind: ArtifactKind, size: Option<u64>, directory: Directory, judge: Box<Judge> },
    Tags,
    Upload(Upload),
    Revoked,
}

/// What a task is about.
enum Wanted {
    Source(Source, Work),
    Search(Search),
}

/// Handles the request in `line`. Returns true if it succeeded. The result is the last event on standard output.
#[must_use]
pub fn run(line: &[u8]) -> bool {
    let mut output = Output::default();
    let result = handle(line, &mut output);
    let is_done = result.is_ok();
    output.event(&result.unwrap_or_else(|error| Event::Failed(*error)));
    is_done
}

fn handle(line: &[u8], output: &mut Output) -> Outcome<Event> {
    let request: Request = serde_json::from_slice(line).map_err(|error| {
        let problem = format!("the request cannot be read: {error}");
        failure(FailureKind::Request, problem, "install belljar and belljar-fetch of the same version")
    })?;
    if request.protocol != PROTOCOL {
        let problem = format!("the request has version {}, expected {PROTOCOL}", request.protocol);
        return Err(failure(FailureKind::Request, problem, "install belljar and belljar-fetch of the same version"));
    }
    let (source, planned) = match wanted(&request.task, &clamped(request.limits))? {
        Wanted::Search(search) => return self::search(&request, search, output),
        Wanted::Source(source, planned) => (source, planned),
    };
    let prepared = prepare(&request, source, planned)?;
    let directory = match &prepared.work {
        Work::Download { directory, .. } => Some(directory.handle()),
        _ => None,
    };
    let mut ports = prepared.network.dns_ports();
    ports.extend([crate::http::HTTPS, prepared.source.origin().port]);
    let runtime = raise_wall(directory, &ports, &prepared.limits, (request.wall, output))?;
    runtime.block_on(work(prepared, output))
}

/// Raises the wall, and reports what it lacks.
fn raise_wall(
    directory: Option<BorrowedFd<'_>>,
    ports: &[u16],
    limits: &Limits,
    (wall, output): (Wall, &mut Output),
) -> Outcome<Runtime> {
    // It starts no thread. Built with all parts of tokio, it opens sockets of its own, which the wall forbids.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        failure(FailureKind::Wall, format!("cannot wait for the network: {error}"), "report this as a bug")
    })?;
    let missing = wall::raise(directory, ports, limits.component_bytes, wall)?;
    output.event(&Event::Wall { missing });
    if output.is_closed() {
        // belljar ended before this process could ask to end with it.
        let cure = "run the same command again";
        return Err(failure(FailureKind::Request, "nobody waits for the result", cure));
    }
    Ok(runtime)
}

/// Searches in one index.
fn search(request: &Request, search: Search, output: &mut Output) -> Outcome<Event> {
    let limits = clamped(request.limits);
    let server = match search {
        // The list is a stranger's text, so it is read behind the wall too.
        Search::Text(list) => {
            raise_wall(None, &[], &limits, (request.wall, output))?;
            return list.run().map(Event::Found);
        }
        Search::Server(server) => server,
    };
    let login = server.registry().filter(|_| request.credentials).and_then(Login::read);
    let network = Network::read(&request.network)?;
    let mut ports = network.dns_ports();
    ports.extend([crate::http::HTTPS, server.origin().port]);
    let runtime = raise_wall(None, &ports, &limits, (request.wall, output))?;
    runtime.block_on(async {
        let idle = Duration::from_secs(limits.idle_seconds);
        let client = Client::new(network.dialer()?, server.origin().clone(), idle);
        within(&limits, server.run(client, login)).await.map(Event::Found)
    })
}

/// The limits with times that can be waited for.
fn clamped(mut limits: Limits) -> Limits {
    for seconds in [&mut limits.seconds, &mut limits.idle_seconds, &mut limits.download_seconds] {
        *seconds = (*seconds).clamp(1, MAX_SECONDS);
    }
    limits
}

/// Checks the names in a task.
fn wanted(task: &Task, limits: &Limits) -> Outcome<Wanted> {
    let (source, work) = match task {
        Task::Resolve(ResolveRequest { source, kind, trust }) => {
            let source = Source::parse(source)?;
            let judge = Judge::new(trust, &source.scope())?;
            (source, Work::Resolve(*kind, Box::new(judge)))
        }
        Task::Download(download) => prepare_download(download)?,
        Task::Tags(tags) => (Source::Image(Image::parse(&tags.repository)?), Work::Tags),
        Task::Upload(upload) => {
            let image = Image::tagged(&upload.target)?;
            let work = Work::Upload(Upload::open(upload, image.tag.as_deref().unwrap_or_default(), limits)?);
            (Source::Image(image), work)
        }
        Task::Revoked(RevokedRequest { source }) => (Source::parse(source)?, Work::Revoked),
        Task::Search(search) => return Search::parse(search).map(Wanted::Search),
    };
    Ok(Wanted::Source(source, work))
}

/// Reads everything that lies outside of the wall.
fn prepare(request: &Request, source: Source, work: Work) -> Outcome<Prepared> {
    let limits = clamped(request.limits);
    let login = match &source {
        Source::Image(image) if request.credentials => Login::read(&image.registry),
        _ => None,
    };
    Ok(Prepared { work, source, login, network: Network::read(&request.network)?, limits })
}

fn prepare_download(download: &DownloadRequest) -> Outcome<(Source, Work)> {
    let source = Source::parse(&download.source)?;
    let pinned = match &source {
        Source::Image(image) => image.digest.is_some(),
        Source::File(file) => file.digest.to_string() == download.component_digest,
    };
    let digest = download.component_digest.parse::<Sha256>().ok().filter(|_| pinned);
    let Some(digest) = digest else {
        let problem = format!("\"{}\" cannot be downloaded: it names no digest, or another one", download.source);
        return Err(failure(FailureKind::Request, problem, "resolve the source first"));
    };
    // Signatures of an image were judged when it was resolved.
    let trust = if matches!(source, Source::File(_)) { download.trust.clone() } else { Trust::default() };
    let judge = Box::new(Judge::new(&trust, &source.scope())?);
    let kind = download.kind;
    let directory = Directory::open(&download.directory, kind)?;
    prune(directory.handle(), prune::MAX_BYTES);
    Ok((source, Work::Download { digest, kind, size: download.size, directory, judge }))
}

/// The part of a request that needs the network.
async fn work(prepared: Prepared, output: &mut Output) -> Outcome<Event> {
    let Prepared { work, source, login, network, limits } = prepared;
    let idle = Duration::from_secs(limits.idle_seconds);
    let mut client = Client::new(network.dialer()?, source.origin().clone(), idle);
    match (work, source) {
        (Work::Resolve(kind, judge), Source::Image(image)) => {
            let mut registry = Registry::new(client, image.clone(), login);
            let resolved = within(&limits, resolve::image(&mut registry, (&image, kind), &judge, &limits)).await?;
            Ok(Event::Resolved(Box::new(resolved)))
        }
        (Work::Resolve(_, judge), Source::File(file)) => {
            let resolved = within(&limits, resolve::file(&mut client, &file, &judge, &limits)).await?;
            Ok(Event::Resolved(Box::new(resolved)))
        }
        (Work::Download { digest, kind, size, directory, judge }, source) => {
            let mut minisign = None;
            let (reference, mut server) = match source {
                Source::Image(image) => {
                    (image.reference(), Server::Registry(Box::new(Registry::new(client, image, login))))
                }
                Source::File(file) => {
                    let reference = file.url.shown();
                    let text = within(&limits, resolve::minisig(&mut client, &file)).await?;
                    minisign = judge.announce(text.as_deref(), &reference)?;
                    (reference, Server::File(Box::new(client), file))
                }
            };
            let wanted = download::Wanted { digest, kind, size, limits, reference, minisign: minisign.as_ref() };
            download::download(&mut server, &directory, &wanted, output).await.map(Event::Downloaded)
        }
        (Work::Tags, Source::Image(image)) => {
            let mut registry = Registry::new(client, image, login);
            let (tags, more) = within(&limits, registry.tags()).await?;
            Ok(Event::Tags(Tags { tags, more }))
        }
        (Work::Upload(upload), Source::Image(image)) => {
            let mut registry = Registry::new(client, image, login).writable();
            upload.run(&mut registry, &limits, output).await.map(Event::Uploaded)
        }
        (Work::Revoked, Source::Image(image)) => {
            let mut registry = Registry::new(client, image, login);
            within(&limits, revoked::of_repository(&mut registry)).await.map(Event::Revoked)
        }
        (Work::Revoked, Source::File(file)) => {
            within(&limits, revoked::of_file(&mut client, &file)).await.map(Event::Revoked)
        }
        (Work::Tags | Work::Upload(_), Source::File(file)) => {
            let problem = format!("\"{}\" is a file, and files have no tags", file.url.shown());
            Err(failure(FailureKind::Request, problem, "name a repository of a registry"))
        }
    }
}

/// The result of `step`, or a failure after the time of the whole request.
async fn within<T>(limits: &Limits, step: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let limit = Duration::from_secs(limits.seconds);
    tokio::time::timeout(limit, step).await.unwrap_or_else(|_| {
        let problem = format!("the server needs more than {} s for its answers", limit.as_secs());
        Err(failure(FailureKind::Time, problem, "try again later"))
    })
}
