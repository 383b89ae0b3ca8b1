//! Runs the conformance checks on a component, to see what its calls cost: in a process of its own, without grants, and for a
//! bounded time. The component is one that the operator has not accepted yet.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde::Deserialize;

use super::directories::{self, PrivateDirError};
use super::fetcher::COMPONENTS;
use super::files::{self, FileError};
use crate::config::{self, Config};
use crate::model::text;

/// The longest run, with the time to compile the component.
const LONGEST: Duration = Duration::from_secs(60);

/// The most bytes of a report.
const MAX_REPORT: u64 = 1024 * 1024;

/// The configuration of the run, beside the fetched components. It grants nothing.
const CONFIGURATION: &str = "run.toml";

/// What the calls of the conformance checks cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallCosts {
    /// The fuel of the call that used most.
    pub(crate) fuel: u64,
    /// The number of calls.
    pub(crate) calls: u32,
    /// True if no check failed.
    pub(crate) is_good: bool,
}

/// Why the costs are not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CostError {
    /// The process cannot be started.
    #[error("it cannot be run: {0}")]
    NotRun(#[from] io::Error),
    /// It takes too long.
    #[error("its checks take more than {} s", LONGEST.as_secs())]
    Slow,
    /// It ended without a report. Holds what it said.
    #[error("it cannot be run: {0}")]
    NoReport(String),
    /// The directory of the run cannot be used.
    #[error(transparent)]
    Directory(#[from] PrivateDirError),
    /// Its configuration cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The report of `belljar check --conformance --json`. What is not needed here is ignored.
#[derive(Deserialize)]
struct Report {
    good: bool,
    calls: u32,
    most: Most,
}

#[derive(Deserialize)]
struct Most {
    fuel: u64,
}

/// The process while it runs. Dropping this value ends it.
struct RunningCheck(Child);

impl Drop for RunningCheck {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl CallCosts {
    /// Runs the checks on the component in `file`, an absolute path.
    ///
    /// # Errors
    /// If the component cannot be run, or its checks take too long.
    pub(crate) fn measure(config: &Config, file: &Path) -> Result<Self, CostError> {
        let directory = config.cache.join(COMPONENTS);
        directories::private_dir(&directory)?;
        let own = directory.join(CONFIGURATION);
        files::replace(&files::lock_for_writing(&[&own])?, &own, settings(config), 0o600)?;
        #[expect(clippy::disallowed_methods, reason = "this program itself")]
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["check", "--json", "--config"]).arg(&own).arg("--conformance").arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = RunningCheck(command.spawn()?);
        let report = running.0.stdout.take().map(read_aside);
        let errors = running.0.stderr.take().map(read_aside);
        let wait = |from: Option<mpsc::Receiver<Vec<u8>>>| from.and_then(|from| from.recv_timeout(LONGEST).ok());
        let report = wait(report).ok_or(CostError::Slow)?;
        drop(running);
        Self::read(&report).ok_or_else(|| {
            let said = wait(errors).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no report");
            CostError::NoReport(text::excerpt(last, 300))
        })
    }

    fn read(report: &[u8]) -> Option<Self> {
        let [report]: [Report; 1] = serde_json::from_slice(report).ok()?;
        (report.calls > 0).then_some(Self { fuel: report.most.fuel, calls: report.calls, is_good: report.good })
    }
}

/// The configuration of the run: nothing is granted, and the operator's wall stands.
fn settings(config: &Config) -> String {
    let wall = match config.wall {
        config::Wall::BestEffort => "best-effort",
        config::Wall::Require => "require",
        config::Wall::Off => "off",
    };
    let quoted = |path: &Path| toml::Value::from(path.to_string_lossy().as_ref()).to_string();
    format!("wall = \"{wall}\"\ncache = {}\nstate = {}\n", quoted(&config.cache), quoted(&config.state))
}

/// Reads a pipe to its end in a thread, at most [`MAX_REPORT`] bytes of it.
fn read_aside(pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (to, from) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(MAX_REPORT).read_to_end(&mut bytes);
        let _ = to.send(bytes);
    });
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_and_anything_else_is_none() {
        let costs = CallCosts::read(br#"[{"mount":"x","good":false,"calls":7,"most":{"fuel":12,"bytes":1}}]"#);
        assert_eq!(costs, Some(CallCosts { fuel: 12, calls: 7, is_good: false }));
        for report in ["", "[]", "{}", r#"[{"good":true,"calls":0,"most":{"fuel":0}}]"#, "belljar: no"] {
            assert_eq!(CallCosts::read(report.as_bytes()), None, "{report}");
        }
    }
}
