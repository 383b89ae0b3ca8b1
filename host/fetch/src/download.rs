//! Downloads one component into the directory. Bytes of an earlier download are hashed and kept; only the rest is fetched.

use std::time::{Duration, Instant};

use belljar_fetch_protocol::{ArtifactKind, Downloaded, Event, FailureKind, Limits, Progress, Signature};
use http::StatusCode;
use http::header::CONTENT_RANGE;
use tokio::time::timeout;

use crate::component;
use crate::digest::{Hasher, Sha256};
use crate::directory::{Directory, Part};
use crate::failure::{Outcome, failure, wrong_content};
use crate::http::{Answer, Call, Client, header};
use crate::output::Output;
use crate::registry::Registry;
use crate::signatures::{Announced, Stream};
use crate::source::File;

/// How often a broken download is continued, each time after new bytes.
const MAX_RESUMES: usize = 8;

/// The shortest time between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// How often a command looks whether another one has fetched the same bytes.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Where the bytes come from.
pub(crate) enum Server {
    Registry(Box<Registry>),
    File(Box<Client>, File),
}

/// What is wanted.
pub(crate) struct Wanted<'a> {
    pub(crate) digest: Sha256,
    pub(crate) kind: ArtifactKind,
    /// The exact size, if it is known.
    pub(crate) size: Option<u64>,
    pub(crate) limits: Limits,
    pub(crate) reference: String,
    pub(crate) minisign: Option<&'a Announced>,
}

/// The state of one download.
struct Download<'a> {
    wanted: &'a Wanted<'a>,
    part: Part,
    hasher: Hasher,
    content: Content<'a>,
    done: u64,
    reported: Option<Instant>,
}

impl Server {
    async fn answer(&mut self, digest: &Sha256, from: u64) -> Outcome<Answer> {
        match self {
            Self::Registry(registry) => registry.blob(digest, from).await,
            Self::File(client, file) => {
                let call =
                    Call { from: (from > 0).then_some(from), ..Call::get(file.url.clone(), "application/wasm, */*") };
                client.send(call).await
            }
        }
    }

    fn refusal(&self, answer: &Answer, name: &str) -> Box<belljar_fetch_protocol::Failure> {
        match self {
            Self::Registry(registry) => registry.refusal(answer, name),
            Self::File(..) => file_refusal(answer),
        }
    }
}

/// Why a server of files does not send one.
pub(crate) fn file_refusal(answer: &Answer) -> Box<belljar_fetch_protocol::Failure> {
    let (url, status) = (answer.url.shown(), answer.status.as_u16());
    let kind = if answer.status == StatusCode::NOT_FOUND { FailureKind::NotFound } else { FailureKind::Network };
    failure(kind, format!("\"{url}\" answers {status}"), "check the URL")
}

/// Downloads the component, and gives it its name.
pub(crate) async fn download(
    server: &mut Server,
    directory: &Directory,
    wanted: &Wanted<'_>,
    output: &mut Output,
) -> Outcome<Downloaded> {
    let largest = wanted.size.unwrap_or(wanted.limits.component_bytes);
    if largest > wanted.limits.component_bytes {
        let problem = format!(
            "\"{}\" has {largest} bytes, at most {} are allowed",
            wanted.reference, wanted.limits.component_bytes
        );
        return Err(failure(FailureKind::Size, problem, "allow more bytes if you trust its publisher"));
    }
    let patience = Instant::now() + Duration::from_secs(wanted.limits.idle_seconds);
    let part = loop {
        let mut content = Content::new(wanted);
        if let Some(size) = directory.has(&wanted.digest, &mut |bytes: &[u8]| content.add(bytes))? {
            component::check(wanted.kind, &content.head, &wanted.reference)?;
            let signature = finish_minisign(content.minisign, wanted)?;
            return Ok(Downloaded { file: directory.name(&wanted.digest), size, cached: true, signature });
        }
        match directory.part(&wanted.digest)? {
            Some(part) => break part,
            // Another command fetches the same bytes. They may be there soon.
            None if Instant::now() < patience => tokio::time::sleep(LOOK_AGAIN).await,
            None => return Err(directory.busy(&wanted.digest)),
        }
    };
    let mut download =
        Download { wanted, part, hasher: Hasher::default(), content: Content::new(wanted), done: 0, reported: None };
    let limit = Duration::from_secs(wanted.limits.download_seconds);
    match timeout(limit, download.run(server, directory, largest, output)).await {
        Ok(result) => result?,
        Err(_) => {
            let problem = format!("the download of \"{}\" takes more than {} s", wanted.reference, limit.as_secs());
            return Err(failure(FailureKind::Time, problem, "run the same command again: it goes on where it stopped"));
        }
    }
    download.finish(directory)
}

/// What is known of the bytes so far.
struct Content<'a> {
    minisign: Option<Stream<'a>>,
    /// The first bytes of the file.
    head: Vec<u8>,
}

impl<'a> Content<'a> {
    /// Before the first byte.
    fn new(wanted: &'a Wanted<'a>) -> Self {
        let minisign = wanted.minisign.and_then(Announced::stream);
        Self { minisign, head: Vec::new() }
    }

    fn add(&mut self, bytes: &[u8]) {
        let missing = component::HEAD.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(missing));
        if let Some(stream) = &mut self.minisign {
            stream.update(bytes);
        }
    }
}

impl<'a> Download<'a> {
    /// Fetches until all bytes are there.
    async fn run(
        &mut self,
        server: &mut Server,
        directory: &Directory,
        largest: u64,
        output: &mut Output,
    ) -> Outcome<()> {
        self.restart();
        let (hasher, content) = (&mut self.hasher, &mut self.content);
        let kept = self.part.kept(largest, |bytes| {
            hasher.update(bytes);
            content.add(bytes);
        });
        self.done = kept.map_err(|error| directory.broken(self.part.name(), &error))?;
        let mut resumes = 0;
        while Some(self.done) != self.wanted.size {
            let before = self.done;
            match self.fetch(server, directory, largest, output).await {
                Ok(()) => break,
                Err(error) => {
                    let is_broken = matches!(error.kind, FailureKind::Network | FailureKind::Time);
                    if !is_broken || self.done <= before || resumes == MAX_RESUMES {
                        return Err(error);
                    }
                    resumes += 1;
                }
            }
        }
        output.event(&Event::Progress(Progress { bytes: self.done, total: Some(self.done) }));
        Ok(())
    }

    /// Fetches once, from where the file ends.
    async fn fetch(
        &mut self,
        server: &mut Server,
        directory: &Directory,
        largest: u64,
        output: &mut Output,
    ) -> Outcome<()> {
        let reference = self.wanted.reference.clone();
        let name = self.part.name().to_owned();
        let mut answer = server.answer(&self.wanted.digest, self.done).await?;
        match answer.status {
            StatusCode::PARTIAL_CONTENT if self.done > 0 => {
                let range = header(&answer.headers, CONTENT_RANGE).unwrap_or_default();
                if !range.starts_with(&format!("bytes {}-", self.done)) {
                    return Err(wrong_content(format!(
                        "the server sends other bytes of \"{reference}\" than it was asked for"
                    )));
                }
            }
            // The file that is there is complete, and longer or other than what the server has.
            StatusCode::RANGE_NOT_SATISFIABLE if self.done > 0 && self.wanted.size.is_none() => return Ok(()),
            StatusCode::OK => {
                self.restart();
                self.part.empty().map_err(|error| directory.broken(&name, &error))?;
            }
            _ => return Err(server.refusal(&answer, &self.wanted.digest.to_string())),
        }
        let total = answer.length().map(|length| length.saturating_add(self.done));
        let too_large = |bytes: u64| {
            let problem = format!("the server sends {bytes} bytes of \"{reference}\", at most {largest} are expected");
            failure(FailureKind::Size, problem, "ask its publisher, or allow more bytes if you trust it")
        };
        if let Some(total) = total.filter(|total| *total > largest) {
            return Err(too_large(total));
        }
        while let Some(piece) = answer.piece().await? {
            if self.done + piece.len() as u64 > largest {
                directory.discard(&self.part);
                return Err(too_large(self.done + piece.len() as u64));
            }
            self.hasher.update(&piece);
            self.content.add(&piece);
            if self.content.head.len() >= component::HEAD && self.done < component::HEAD as u64 {
                component::check(self.wanted.kind, &self.content.head, &reference)?;
            }
            self.part.add(&piece).map_err(|error| directory.broken(&name, &error))?;
            self.done += piece.len() as u64;
            if self.reported.is_none_or(|last| last.elapsed() >= REPORT_EVERY) {
                output.event(&Event::Progress(Progress { bytes: self.done, total: self.wanted.size.or(total) }));
                self.reported = Some(Instant::now());
            }
        }
        Ok(())
    }

    fn restart(&mut self) {
        self.hasher = Hasher::default();
        self.content = Content::new(self.wanted);
        self.done = 0;
    }

    /// Checks the whole file. Wrong bytes are removed, so that no later download builds on them.
    fn finish(self, directory: &Directory) -> Outcome<Downloaded> {
        let wanted = self.wanted;
        let Content { minisign, head } = self.content;
        let found = self.hasher.finish();
        let check = || {
            if let Some(size) = wanted.size.filter(|size| *size != self.done) {
                let problem = format!("\"{}\" has {} bytes, expected {size}", wanted.reference, self.done);
                return Err(failure(
                    FailureKind::Content,
                    problem,
                    "try again; ask its publisher if that does not help",
                ));
            }
            if found != wanted.digest {
                let problem =
                    format!("\"{}\" has the digest \"{found}\", expected \"{}\"", wanted.reference, wanted.digest);
                return Err(failure(
                    FailureKind::Content,
                    problem,
                    "try again; if that does not help, somebody changed the file",
                ));
            }
            component::check(wanted.kind, &head, &wanted.reference)
        };
        let signature = check().and_then(|()| finish_minisign(minisign, wanted));
        match signature {
            Ok(signature) => {
                let file = directory.finish(&self.part, &wanted.digest)?;
                Ok(Downloaded { file, size: self.done, cached: false, signature })
            }
            Err(error) => {
                directory.discard(&self.part);
                Err(error)
            }
        }
    }
}

fn finish_minisign(stream: Option<Stream<'_>>, wanted: &Wanted<'_>) -> Outcome<Option<Signature>> {
    stream.map(|stream| stream.finish(&wanted.reference)).transpose()
}
