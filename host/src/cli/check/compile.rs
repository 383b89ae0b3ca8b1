//! `belljar check --compile`: compiles components in advance, so that a later start finds them in the cache.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::cli::{inspect, output, progress};
use crate::grants::GrantConfig;
use crate::model::error::show_bytes;
use crate::model::{Digest, MountName};
use crate::sandbox::{Profile, Sandbox};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{configuration, keys::Keys, keys::SharedCode, landlock, pins::Pinning, startup};

/// Components that are compiled at the same time. A single one already uses all processors most of the time.
const MAX_CONCURRENT: usize = 2;

/// A component to compile.
struct ComponentFile {
    file: String,
    bytes: Arc<[u8]>,
    digest: Digest,
}

/// The result of compiling one component.
struct CompileResult {
    file: String,
    digest: Digest,
    /// Size of the component, in bytes.
    size: u64,
    /// Size of the compiled code, in bytes.
    code: Option<u64>,
    /// Duration in milliseconds. `None` if the cache already had the code.
    millis: Option<u64>,
    /// The reason, if the component cannot be compiled.
    failed: Option<String>,
}

pub(in crate::cli) fn run(at: &LocationArgs, files: &[PathBuf], as_json: bool) -> Result<ExitCode, Failure> {
    progress::start(if as_json { "error" } else { "warn" });
    let mut config = configuration::config(at, &[], Pinning::ReadOnly)?;
    let files = if files.is_empty() { plugin_files(&config.plugins)? } else { files.to_vec() };
    // Read before the second wall is raised, because the files may be in any directory.
    let mut sources = Vec::with_capacity(files.len());
    for file in &files {
        let (shown, bytes) = inspect::read(file)?;
        sources.push(ComponentFile { file: shown, digest: Digest::of(&bytes), bytes: bytes.into() });
    }
    // No mount is served, so the second wall need not allow the granted directories.
    config.mounts.clear();
    let keys = Keys::read(at, &config, SharedCode::Sign)?;
    let wall = landlock::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let (cache, _) = keys.open(&config);
        let sandbox = startup::sandbox(&config, cache, None)?;
        let work = sources.into_iter().map(|source| compile(&sandbox, source));
        let mut working = futures_util::stream::iter(work).buffered(MAX_CONCURRENT);
        let mut all = Vec::new();
        while let Some(done) = working.next().await {
            progress::end();
            if !as_json {
                output::print(&done.line())?;
            }
            all.push(done);
        }
        if as_json {
            output::print_json(&all.iter().map(CompileResult::json).collect::<Value>())?;
        } else if all.is_empty() {
            output::print("there is no .wasm file in the plugin directory\n")?;
        }
        let is_fine = all.iter().all(|one| one.failed.is_none());
        Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The `.wasm` files of the plugin directory, sorted by name.
fn plugin_files(plugins: &std::path::Path) -> Result<Vec<PathBuf>, Failure> {
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

async fn compile(sandbox: &Sandbox, source: ComponentFile) -> CompileResult {
    let ComponentFile { file, bytes, digest } = source;
    let (size, was_known, started) = (bytes.len() as u64, sandbox.has_cached(&digest), Instant::now());
    let loaded = async {
        Profile::read(&bytes).and_then(|profile| profile.check()).map_err(|why| format!("it is {why}"))?;
        let stem = std::path::Path::new(&file).file_stem().unwrap_or_default().to_string_lossy();
        let name = MountName::from_stem(&stem).or_else(|_| MountName::new("component"));
        let name = name.map_err(|error| error.to_string())?;
        let nothing = GrantConfig::default().configure(&Default::default()).map_err(|error| error.to_string())?;
        sandbox.load(&name, bytes, &digest, nothing).await.map(drop).map_err(|error| error.to_string())
    };
    let failed: Option<String> = loaded.await.err();
    let millis = (!was_known).then(|| u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
    let code = sandbox.code_len(&digest).filter(|_| failed.is_none());
    CompileResult { file, digest, size, code, millis, failed }
}

impl CompileResult {
    fn line(&self) -> String {
        let code = self.code.map(|code| format!(", {} of code", show_bytes(code))).unwrap_or_default();
        match (&self.failed, self.millis) {
            (Some(why), _) => format!("refused   {}: {why}\n", self.file),
            (None, Some(millis)) => {
                format!("compiled  {}  ({}{code}) in {millis} ms\n", self.file, show_bytes(self.size))
            }
            (None, None) => format!("cached    {}  ({}{code})\n", self.file, show_bytes(self.size)),
        }
    }

    fn json(&self) -> Value {
        json!({
            "file": self.file, "digest": self.digest.to_string(), "size": self.size, "code": self.code,
            "milliseconds": self.millis, "reason": self.failed,
        })
    }
}
