//! The machine: kernel, directories, disk, clock and tools.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::statvfs;

use super::finding::SetupFinding;
use crate::cli::new;
use crate::config::Config;
use crate::model::command;
use crate::model::error::{OPEN_FILES_CURE, show_bytes};
use crate::server::landlock::{self, WallStatus};
use crate::server::{directories, open_files};

/// The least free space for compiled code and the record, in bytes.
const FREE: u64 = 256 << 20;

/// The least number of open files with which many calls can run.
const FILES: u64 = 4096;

/// The beginning of 2026, in seconds since 1970. belljar is not older.
const FIRST: u64 = 1_767_225_600;

/// The kernel and the second wall. Restricts this process.
pub(super) fn kernel() -> Vec<SetupFinding> {
    let mut all = Vec::new();
    if cfg!(not(target_os = "linux")) {
        all.push(SetupFinding::warning(
            "kernel",
            "this is not Linux: there is no second wall",
            "run belljar on Linux 6.12 or newer",
        ));
    }
    let limit = open_files::limit();
    all.push(match limit >= FILES {
        true => SetupFinding::good("kernel", format!("up to {limit} open files")),
        false => SetupFinding::warning(
            "kernel",
            format!("only {limit} open files"),
            format!("to allow more, {OPEN_FILES_CURE}"),
        ),
    });
    let status = landlock::raise_for_program().status;
    all.push(match &status {
        WallStatus::Full { .. } => SetupFinding::good("wall", format!("the second wall is {status}")),
        _ => SetupFinding::warning(
            "wall",
            format!("the second wall is {status}"),
            "run a kernel with Landlock enabled (Linux 6.12 or newer)",
        ),
    });
    all
}

/// belljar's own directories, and the space in them.
pub(super) fn directories(config: Option<&Config>) -> Vec<SetupFinding> {
    let Some(config) = config else { return Vec::new() };
    let mut all = Vec::new();
    for (what, path) in [("state", &config.state), ("cache", &config.cache)] {
        if !path.exists() {
            all.push(SetupFinding::good(
                "disk",
                format!("the {what} directory \"{}\" does not exist yet", path.display()),
            ));
            continue;
        }
        if let Err(why) = directories::private_dir(path) {
            all.push(SetupFinding::bad("disk", format!("the {what} directory cannot be used"), why.to_string()));
            continue;
        }
        all.extend(free(what, path));
    }
    all
}

fn free(what: &str, path: &Path) -> Option<SetupFinding> {
    let space = statvfs(path).ok()?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let shown = path.display().to_string();
    let text = format!("{} free for the {what} directory \"{shown}\"", show_bytes(free));
    Some(match free >= FREE {
        true => SetupFinding::good("disk", text),
        false => SetupFinding::warning(
            "disk",
            text,
            format!("free some space; to see what takes it: du -sh {}", command::shell_quoted(&shown)),
        ),
    })
}

/// The clock: tokens and certificates depend on it.
pub(super) fn clock() -> Vec<SetupFinding> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let shown = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(now.as_secs()));
    vec![match now.as_secs() >= FIRST {
        true => SetupFinding::good("clock", format!("it is {shown}")),
        false => SetupFinding::bad(
            "clock",
            format!("the clock says {shown}"),
            "set the clock; tokens and certificates are refused until then",
        ),
    }]
}

/// The tools of provider's authors. Missing ones are no problem for users.
pub(super) fn tools() -> Vec<SetupFinding> {
    let (ready, others): (Vec<_>, Vec<_>) =
        new::languages_with_tools().into_iter().partition(|(_, missing)| missing.is_empty());
    let names = |all: &[(String, Vec<String>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ");
    let ready = if ready.is_empty() { "none".to_owned() } else { names(&ready) };
    let more = if others.is_empty() {
        String::new()
    } else {
        format!("; not for: {} (see: belljar new --list)", names(&others))
    };
    vec![SetupFinding::good("tools", format!("the tools to write providers are there for: {ready}{more}"))]
}
