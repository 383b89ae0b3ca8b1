//! `belljar check --compile`: compiles ahead, so that no start has to.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::cli::keys::{Keys, Shared};
use crate::cli::pins::Pinning;
use crate::cli::{Failure, Where, inspect, open, progress, wall};
use crate::grants::Requested;
use crate::model::error::show_bytes;
use crate::model::{Digest, MountName};
use crate::sandbox::{Profile, Sandbox};

/// Components that are compiled at once. One takes every processor for most of its time.
const AT_ONCE: usize = 2;

/// A component to be compiled.
struct Source {
    file: String,
    bytes: Arc<[u8]>,
    digest: Digest,
}

/// What came of it.
struct Compiled {
    file: String,
    digest: Digest,
    size: u64,
    code: Option<u64>,
    /// How long it took; none: it was there already.
    millis: Option<u64>,
    failed: Option<String>,
}

pub(in crate::cli) fn run(at: &Where, files: &[PathBuf], as_json: bool) -> Result<ExitCode, Failure> {
    progress::start(if as_json { "error" } else { "warn" });
    let mut config = open::config(at, &[], Pinning::Look)?;
    let files = if files.is_empty() { of_directory(&config.plugins)? } else { files.to_vec() };
    // Before the wall: they may lie anywhere.
    let mut sources = Vec::with_capacity(files.len());
    for file in &files {
        let (shown, bytes) = inspect::read(file)?;
        sources.push(Source { file: shown, digest: Digest::of(&bytes), bytes: bytes.into() });
    }
    // Nothing is mounted, so nothing that mounts were granted has to be within reach.
    config.mounts.clear();
    let keys = Keys::read(at, &config, Shared::Made)?;
    let wall = wall::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let (cache, _) = keys.open(&config);
        let sandbox = open::sandbox(&config, cache)?;
        let work = sources.into_iter().map(|source| compile(&sandbox, source));
        let mut working = futures_util::stream::iter(work).buffered(AT_ONCE);
        let mut all = Vec::new();
        while let Some(done) = working.next().await {
            progress::end();
            if !as_json {
                crate::cli::print(&done.line())?;
            }
            all.push(done);
        }
        if as_json {
            crate::cli::print_json(&all.iter().map(Compiled::json).collect::<Value>())?;
        } else if all.is_empty() {
            crate::cli::print("there is no .wasm file in the plugin directory\n")?;
        }
        let is_fine = all.iter().all(|one| one.failed.is_none());
        Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The components of the plugin directory, by name.
fn of_directory(plugins: &std::path::Path) -> Result<Vec<PathBuf>, Failure> {
    let fail = |error: std::io::Error| {
        Failure::Failed(format!(
            "cannot read the plugin directory \"{}\": {error}; name another with --plugins DIR",
            plugins.display()
        ))
    };
    let mut files = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "the operator's plugin directory")]
    for entry in std::fs::read_dir(plugins).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension() == Some(OsStr::new("wasm")) {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

async fn compile(sandbox: &Sandbox, source: Source) -> Compiled {
    let Source { file, bytes, digest } = source;
    let (size, was_known, started) = (bytes.len() as u64, sandbox.knows(&digest), Instant::now());
    let loaded = async {
        Profile::read(&bytes).and_then(|profile| profile.check()).map_err(|why| format!("it is {why}"))?;
        let stem = std::path::Path::new(&file).file_stem().unwrap_or_default().to_string_lossy();
        let name = MountName::from_stem(&stem).or_else(|_| MountName::new("component"))?;
        let nothing = Requested::default().configure(&Default::default())?;
        sandbox.load(&name, bytes, &digest, nothing).await.map(drop)
    };
    let failed: Option<String> = loaded.await.err();
    let millis = (!was_known).then(|| u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
    let code = sandbox.code_len(&digest).filter(|_| failed.is_none());
    Compiled { file, digest, size, code, millis, failed }
}

impl Compiled {
    fn line(&self) -> String {
        let code = self.code.map(|code| format!(", {} of code", show_bytes(code))).unwrap_or_default();
        match (&self.failed, self.millis) {
            (Some(why), _) => format!("refused   {}: {why}\n", self.file),
            (None, Some(millis)) => {
                format!("compiled  {}  ({}{code}) in {millis} ms\n", self.file, show_bytes(self.size))
            }
            (None, None) => format!("was there {}  ({}{code})\n", self.file, show_bytes(self.size)),
        }
    }

    fn json(&self) -> Value {
        json!({
            "file": self.file, "digest": self.digest.to_string(), "size": self.size, "code": self.code,
            "milliseconds": self.millis, "reason": self.failed,
        })
    }
}
