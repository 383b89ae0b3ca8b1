//! Runs `belljar-fetch`, which fetches, verifies and uploads components and bundles. It is a program of its own with its own wall, so nothing of
//! it is in this one. What it reports is checked here once more: the digest of the component.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use belljar_fetch_protocol::{
    ArtifactKind, DownloadRequest, Event, Identity, Limits, MAX_LINE, Network, PROTOCOL, Progress, Request, Required,
    ResolveRequest, Resolved, RevokedList, RevokedRequest, Root, SearchIndex, SearchRequest, SearchResult, Signature,
    Signer, Tags, TagsRequest, Task, Trust, TrustRule, UploadRequest, Uploaded, Wall,
};

use super::bundle;
use super::directories::{self, PrivateDirError};
use super::files::{self, FileError};
use super::publishing::artifact::ArtifactDocuments;
use super::publishing::upload_directory::{UploadDirectory, UploadDirectoryError};
use crate::config::{self, Config, IndexConfig, SignerConfig, TrustedSigner};
use crate::model::{Digest, DigestError, text};
use crate::sandbox::read_capped;

/// The name of the program, beside this one.
const PROGRAM: &str = "belljar-fetch";

/// The directory of fetched components, in the cache directory.
pub(crate) const COMPONENTS: &str = "components";

/// The directory of uploads, in the cache directory.
const UPLOADS: &str = "uploads";

/// The variables that the program gets: where logins, certificates and the helpers of docker are.
const VARIABLES: [&str; 8] = [
    "HOME",
    "PATH",
    "DOCKER_CONFIG",
    "REGISTRY_AUTH_FILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// Why a component cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The program is not there.
    #[error("\"{}\" is not installed, and it fetches components; install the whole package of belljar", .0.display())]
    NotInstalled(PathBuf),
    /// The program cannot be started, or its pipes break.
    #[error("\"{PROGRAM}\" cannot be run: {0}")]
    NotRun(#[from] io::Error),
    /// The program ended without a result, or wrote something else.
    #[error("\"{PROGRAM}\" gave no result; it belongs to another version of belljar, or was killed")]
    NoResult,
    /// The program refuses.
    #[error("{problem}; {cure}")]
    Refused {
        /// What is wrong.
        problem: String,
        /// What to do.
        cure: String,
    },
    /// The program reports a digest that is none.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// The file has another digest than the program says.
    #[error("\"{}\" has another digest than it should have; remove it, and try again", .0.display())]
    Changed(PathBuf),
    /// A file that `[trust]` or `[network]` names cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that `[trust]`, `[search]` or `[network]` names does not exist.
    #[error("there is no file \"{}\", which [trust], [search] or [network] names; correct its path", .0.display())]
    Absent(PathBuf),
    /// An index in a file has too many bytes for a request.
    #[error("the index \"{}\" has more than {} KiB; put it behind a URL", .0.display(), MAX_LINE / 4096)]
    LargeIndex(PathBuf),
    /// The directory of fetched components cannot be used.
    #[error(transparent)]
    Directory(#[from] PrivateDirError),
    /// The blobs of an upload cannot be written.
    #[error(transparent)]
    Upload(#[from] UploadDirectoryError),
}

/// A component that was fetched.
pub(crate) struct FetchedComponent {
    /// Its bytes. Their digest is the one that was resolved.
    pub(crate) bytes: Vec<u8>,
    /// The signature of a file, which is checked after the download.
    pub(crate) signature: Option<Signature>,
}

/// See the module.
pub(crate) struct Fetcher {
    program: PathBuf,
    rules: Vec<TrustRule>,
    limits: Limits,
    kind: ArtifactKind,
    wall: Wall,
    network: Network,
    directory: PathBuf,
    uploads: PathBuf,
}

/// The program while it runs. Dropping this value ends it.
struct RunningFetch(Child);

impl Drop for RunningFetch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fetcher {
    /// Fetches as `config` says.
    ///
    /// # Errors
    /// If the program is not installed, or a file that `[trust]` names cannot be read.
    pub(crate) fn new(config: &Config) -> Result<Self, FetchError> {
        #[expect(clippy::disallowed_methods, reason = "our own program, and the one beside it")]
        let program = std::env::current_exe()?.with_file_name(PROGRAM);
        if !program.is_file() {
            return Err(FetchError::NotInstalled(program));
        }
        let read = |path: &Path| files::read_protected(path)?.ok_or_else(|| FetchError::Absent(path.to_owned()));
        let root = config.trust.root.as_deref().map(read).transpose()?.map_or(Root::PublicGood, Root::Given);
        let rule = |SignerConfig { from, signer }: &SignerConfig| {
            let signer = match signer {
                TrustedSigner::Identity { identity, issuer } => {
                    Signer::Keyless { identity: pattern(identity), issuer: issuer.clone(), root: root.clone() }
                }
                TrustedSigner::Key(path) => Signer::Key { pem: read(path)?, root: None },
                TrustedSigner::Minisign(key) => Signer::Minisign { key: key.clone() },
            };
            Ok::<_, FetchError>(TrustRule { scope: from.clone(), signer })
        };
        let rules = config.trust.signers.iter().map(rule).collect::<Result<_, _>>()?;
        let limits = Limits { component_bytes: config.limits.component, ..Limits::default() };
        let wall = if config.wall == config::Wall::Require { Wall::Required } else { Wall::Optional };
        let roots = config.network.ca.as_deref().map(read).transpose()?;
        let network = Network { dns: config.network.dns.clone(), roots };
        let (kind, cache) = (ArtifactKind::Component, &config.cache);
        let (directory, uploads) = (cache.join(COMPONENTS), cache.join(UPLOADS));
        Ok(Self { program, rules, limits, kind, wall, network, directory, uploads })
    }

    /// The same for bundles of `belljar export`, with the bound of a file.
    pub(crate) fn for_bundles(self) -> Self {
        let limits = Limits { component_bytes: bundle::MAX_BYTES, ..self.limits };
        Self { kind: ArtifactKind::Bundle, limits, ..self }
    }

    /// The same with one more signer that is trusted: this public key in PEM, for everything below `scope`.
    pub(crate) fn trusting(mut self, scope: &str, pem: String) -> Self {
        self.rules.push(TrustRule { scope: scope.to_owned(), signer: Signer::Key { pem, root: None } });
        self
    }

    /// Finds out what a source is, and who signed it.
    ///
    /// # Errors
    /// If it cannot be found out, or `required` is not met.
    pub(crate) fn resolve(&self, source: &str, required: Required) -> Result<Resolved, FetchError> {
        self.resolve_by(source, self.trust(required))
    }

    /// The same by other rules than those of the configuration.
    ///
    /// # Errors
    /// As [`Fetcher::resolve`].
    pub(crate) fn resolve_by(&self, source: &str, trust: Trust) -> Result<Resolved, FetchError> {
        let request = ResolveRequest { source: source.to_owned(), kind: self.kind, trust };
        match self.run(Task::Resolve(request), |_| ())? {
            Event::Resolved(resolved) => Ok(*resolved),
            _ => Err(FetchError::NoResult),
        }
    }

    /// Downloads what was resolved. `report` is called a few times each second.
    ///
    /// # Errors
    /// If it cannot be downloaded, is not what was resolved, or `required` is not met.
    pub(crate) fn download(
        &self,
        resolved: &Resolved,
        required: Required,
        report: impl FnMut(Progress),
    ) -> Result<FetchedComponent, FetchError> {
        let expected: Digest = resolved.component_digest.parse()?;
        directories::private_dir(&self.directory)?;
        let request = DownloadRequest {
            source: resolved.pinned.clone(),
            component_digest: resolved.component_digest.clone(),
            kind: self.kind,
            size: resolved.size,
            directory: self.directory.clone(),
            trust: self.trust(required),
        };
        let Event::Downloaded(downloaded) = self.run(Task::Download(request), report)? else {
            return Err(FetchError::NoResult);
        };
        let path = self.file(&expected);
        #[expect(clippy::disallowed_methods, reason = "belljar's own cache")]
        let file = std::fs::File::open(&path)?;
        let bytes = read_capped(file, downloaded.size, self.limits.component_bytes)?;
        if self.kind == ArtifactKind::Bundle {
            // A bundle is read once, and may be large.
            let _ = std::fs::remove_file(&path);
        }
        match Digest::of(&bytes) == expected {
            true => Ok(FetchedComponent { bytes, signature: downloaded.signature }),
            false => Err(FetchError::Changed(path)),
        }
    }

    /// The file of what was downloaded.
    pub(crate) fn file(&self, digest: &Digest) -> PathBuf {
        self.directory.join(format!("{}.{}", digest.hex(), self.kind.extension()))
    }

    /// The tags of the repository of `reference`.
    ///
    /// # Errors
    /// If the registry does not say.
    pub(crate) fn tags(&self, reference: &str) -> Result<Tags, FetchError> {
        match self.run(Task::Tags(TagsRequest { repository: reference.to_owned() }), |_| ())? {
            Event::Tags(tags) => Ok(tags),
            _ => Err(FetchError::NoResult),
        }
    }

    /// Pushes an artifact to `target`, a repository with a tag. `force`: also if the tag holds other content. `report` is called
    /// a few times each second.
    ///
    /// # Errors
    /// If the registry does not take it. What was sent stays there, and is not sent again.
    pub(crate) fn upload(
        &self,
        target: &str,
        documents: &ArtifactDocuments<'_>,
        force: bool,
        report: impl FnMut(Progress),
    ) -> Result<Uploaded, FetchError> {
        let directory = UploadDirectory::write(&self.uploads, documents)?;
        let request = UploadRequest {
            target: target.to_owned(),
            manifest: documents.manifest().to_owned(),
            referrers: documents.referrers().to_vec(),
            directory: directory.path().to_owned(),
            force,
        };
        match self.run(Task::Upload(request), report)? {
            Event::Uploaded(uploaded) if uploaded.manifest_digest == documents.digest().to_string() => Ok(uploaded),
            _ => Err(FetchError::NoResult),
        }
    }

    /// The list of revoked versions beside `source`.
    ///
    /// # Errors
    /// If the server does not say, or the list cannot be read.
    pub(crate) fn revoked(&self, source: &str) -> Result<RevokedList, FetchError> {
        match self.run(Task::Revoked(RevokedRequest { source: source.to_owned() }), |_| ())? {
            Event::Revoked(list) => Ok(list),
            _ => Err(FetchError::NoResult),
        }
    }

    /// What an index has with `word`.
    ///
    /// # Errors
    /// If the index cannot be asked or read.
    pub(crate) fn search(&self, index: &IndexConfig, word: &str) -> Result<SearchResult, FetchError> {
        let index = match index {
            IndexConfig::Json(url) => SearchIndex::Json { url: url.clone() },
            IndexConfig::File(path) => SearchIndex::Text { text: read_index(path)? },
            IndexConfig::Oci(namespace) => SearchIndex::Oci { namespace: namespace.clone() },
            IndexConfig::WasmDirectory(url) => SearchIndex::WasmDirectory { url: url.clone() },
            IndexConfig::McpRegistry(url) => SearchIndex::McpRegistry { url: url.clone() },
        };
        match self.run(Task::Search(SearchRequest { index, word: word.to_owned() }), |_| ())? {
            Event::Found(result) => Ok(result),
            _ => Err(FetchError::NoResult),
        }
    }

    fn trust(&self, required: Required) -> Trust {
        Trust { required, rules: self.rules.clone() }
    }

    /// Runs one task. Returns its last event.
    fn run(&self, task: Task, mut report: impl FnMut(Progress)) -> Result<Event, FetchError> {
        let (wall, network, limits) = (self.wall, self.network.clone(), self.limits);
        let request = Request { protocol: PROTOCOL, wall, credentials: true, network, limits, task };
        let line = serde_json::to_vec(&request).map_err(io::Error::from)?;
        #[expect(clippy::disallowed_methods, reason = "the program beside this one")]
        let mut command = Command::new(&self.program);
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        #[expect(clippy::disallowed_methods, reason = "named variables, for the program beside this one")]
        command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        let mut running = RunningFetch(command.spawn()?);
        let (Some(mut input), Some(output)) = (running.0.stdin.take(), running.0.stdout.take()) else {
            return Err(FetchError::NoResult);
        };
        // A program that refuses the request may end before it has read all of it.
        let _ = input.write_all(&line).and_then(|()| input.write_all(b"\n"));
        drop(input);
        let mut lines = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            if lines.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)? == 0 {
                return Err(FetchError::NoResult);
            }
            match serde_json::from_slice(&line).map_err(|_| FetchError::NoResult)? {
                Event::Progress(progress) => report(progress),
                Event::Wall { missing } if !missing.is_empty() => {
                    tracing::debug!("\"{PROGRAM}\" runs without: {}", missing.join(", "));
                }
                Event::Wall { .. } => {}
                Event::Failed(failure) => {
                    let [problem, cure] = [failure.problem, failure.cure].map(|words| text::cleaned(words, 1000));
                    return Err(FetchError::Refused { problem, cure });
                }
                result => return Ok(result),
            }
        }
    }
}

/// The text of an index in a file. Its bytes are parsed by the program, as those of other indexes.
fn read_index(path: &Path) -> Result<String, FetchError> {
    let text = files::read(path)?.ok_or_else(|| FetchError::Absent(path.to_owned()))?;
    // The request is one line of at most `MAX_LINE` bytes, in which a quotation mark takes two.
    if text.len() > MAX_LINE / 4 {
        return Err(FetchError::LargeIndex(path.to_owned()));
    }
    Ok(text)
}

/// The identities that a pattern of `[trust]` fits: "*" stands for any characters.
fn pattern(identity: &str) -> Identity {
    match identity.contains('*') {
        false => Identity::Exact(identity.to_owned()),
        true => Identity::Regex(identity.split('*').map(regex::escape).collect::<Vec<_>>().join(".*")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_an_identity_stands_for_any_characters() {
        assert_eq!(pattern("ana@acme.example"), Identity::Exact("ana@acme.example".to_owned()));
        let Identity::Regex(pattern) = pattern("https://github.com/acme/*@refs/tags/*") else { panic!("a pattern") };
        let pattern = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        assert!(pattern.is_match("https://github.com/acme/tides/release.yml@refs/tags/v1"));
        assert!(!pattern.is_match("https://githubxcom/acme/tides/release.yml@refs/tags/v1"), "a dot is a dot");
    }
}
