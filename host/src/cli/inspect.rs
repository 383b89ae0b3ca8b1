//! `belljar inspect`: describes a component file. Needs no configuration, and runs no code of the component.

use super::output;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use crate::grants::{Ambient, GrantConfig, GrantKind, KINDS};
use crate::model::error::show_bytes;
use crate::model::{Digest, MountName, text};
use crate::sandbox::{Profile, Sandbox, SandboxOptions, read_capped};
use crate::server::failure::Failure;
use crate::server::{compiler_process::CompilerProcess, landlock, log};

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 512 << 20;

pub(super) fn run(path: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    log::start("error");
    let (shown, bytes) = read(path)?;
    let digest = Digest::of(&bytes);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = MountName::from_stem(&stem);
    let profile = Profile::read(&bytes);
    let refused = match &profile {
        Err(why) => Some(format!("it is {why}")),
        Ok(profile) => match profile.check() {
            Err(why) => Some(format!("it is {why}")),
            Ok(()) => link(bytes.as_slice().into(), &digest)
                .err()
                .or_else(|| name.clone().err().map(|error| error.to_string())),
        },
    };
    let profile = profile.unwrap_or_default();
    let mount = name.as_ref().map_or("NAME", MountName::as_str);
    if as_json {
        output::print_json(&json!({
            "file": shown,
            "size": bytes.len(),
            "digest": digest.to_string(),
            "exports": profile.exports,
            "imports": profile.imports,
            "uses": profile.kinds(),
            "needs": profile.needs.all().iter().map(|need| json!({
                "grant": need.kind, "what": need.name, "any": need.any, "optional": need.optional,
                "example": need.example, "why": need.reason,
            })).collect::<Vec<_>>(),
            "badNeeds": profile.bad_needs,
            "optional": profile.interfaces().optional(),
            "mountable": refused.is_none(),
            "reason": refused,
        }))?;
    } else {
        output::print(&to_text(&shown, bytes.len() as u64, &digest, &profile, mount, refused.as_deref()))?;
    }
    Ok(if refused.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads a file that the command line names. Returns its name, made safe for messages, and its bytes.
pub(super) fn read(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    let shown = text::excerpt(&path.display().to_string(), 200);
    let fail = |error: &std::io::Error| Failure::Failed(format!("cannot read \"{shown}\": {error}"));
    #[expect(clippy::disallowed_methods, reason = "the file that the operator named")]
    let meta = std::fs::metadata(path).map_err(|error| fail(&error))?;
    if !meta.is_file() {
        return Err(Failure::Failed(format!("\"{shown}\" is not a regular file")));
    }
    #[expect(clippy::disallowed_methods, reason = "the file that the operator named")]
    let bytes = File::open(path)
        .and_then(|file| read_capped(file, meta.len(), MAX_FILE_BYTES))
        .map_err(|error| fail(&error))?;
    Ok((shown, bytes))
}

/// Compiles and links the component as a mount without grants.
fn link(wasm: Arc<[u8]>, digest: &Digest) -> Result<(), String> {
    let wall = landlock::raise_for_program();
    let runtime = wall.runtime().map_err(|_| "cannot start threads".to_owned())?;
    runtime.block_on(async {
        let compiler = Arc::new(CompilerProcess);
        let options = SandboxOptions { calls: 1, cache: None, descriptors: 8, compiler, workers: None };
        let sandbox = Sandbox::new(options).map_err(|error| error.to_string())?;
        let held = GrantConfig::default().configure(&Ambient::default()).map_err(|error| error.to_string())?;
        let name = MountName::new("inspected").map_err(|error| error.to_string())?;
        sandbox.load(&name, wasm, digest, held).await.map(|_| ()).map_err(|error| error.to_string())
    })
}

fn to_text(file: &str, size: u64, digest: &Digest, profile: &Profile, mount: &str, refused: Option<&str>) -> String {
    let mut out = format!("{file}\n  size     {}\n  digest   {digest}\n", show_bytes(size));
    for (title, names) in [("exports", &profile.exports), ("imports", &profile.imports)] {
        for (at, name) in names.iter().enumerate() {
            let _ = writeln!(out, "  {:8} {name}", if at == 0 { title } else { "" });
        }
    }
    for (at, need) in profile.needs.all().iter().enumerate() {
        let title = if at == 0 { "needs" } else { "" };
        let _ = writeln!(out, "  {title:9} {}", need.describe());
        let kind = GrantKind::find(need.kind).filter(|_| !need.optional);
        if let Some(run) = kind.and_then(|kind| kind.command(mount, Some(need))) {
            let _ = writeln!(out, "            to grant it as the mount \"{mount}\", run: {run}");
        }
    }
    if let Some(why) = &profile.bad_needs {
        let _ = writeln!(out, "  needs     cannot be read: {why}");
    }
    let needed = profile.needs.kinds();
    let uses = profile.kinds();
    for (at, kind) in KINDS.iter().filter(|kind| uses.contains(&kind.name) && !needed.contains(&kind.name)).enumerate()
    {
        let title = if at == 0 { "could use" } else { "" };
        let run = kind.command(mount, None).map(|run| format!("; to grant it as the mount \"{mount}\", run: {run}"));
        let _ = writeln!(out, "  {title:9} {}, such as  {}{}", kind.name, kind.example, run.unwrap_or_default());
    }
    match refused {
        None => {
            let _ = writeln!(
                out,
                "  It is a provider and can be mounted as belljar://{mount}/. Without grants it has no access to anything outside its sandbox."
            );
        }
        Some(why) => {
            let _ = writeln!(out, "  It cannot be mounted: {why}.");
        }
    }
    out
}
