//! Opens the audit record of calls: none, standard error, belljar's own file in the state directory, or the operator's
//! file.

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::log;
use super::record_file::{self, RecordFile};
use crate::config::{Audit, Config, WhenFull};
use crate::telemetry::{LineChain, RecordFormat, Sink};

/// Why the audit record cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// The writing thread cannot be started.
    #[error("cannot keep the audit record: {0}")]
    Thread(#[from] io::Error),
    /// The operator's file cannot be opened.
    #[error("cannot keep the audit record in \"{}\": {error}", path.display())]
    Unopened {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The operator's file is a FIFO without a reader.
    #[error(
        "cannot keep the audit record in \"{}\": this FIFO has no reader; start its reader first",
        .0.display()
    )]
    NoReader(PathBuf),
}

/// Opens the audit record that the configuration selects. `quiet`: write no records to standard error.
///
/// # Errors
/// If the operator's file cannot be opened, or the writing thread cannot be started.
pub(crate) fn audit(config: &Config, quiet: bool) -> Result<Sink, AuditError> {
    let to_stderr = || match quiet {
        true => Ok::<_, AuditError>(Sink::off()),
        false => Ok(Sink::to_writer(format()?, log::BlockingLogWriter)?),
    };
    let sink = match &config.audit {
        Audit::Off => Ok(Sink::off()),
        Audit::Stderr => to_stderr(),
        Audit::State => match RecordFile::open(&config.state) {
            Ok(file) => {
                tracing::info!("the audit record is in \"{}\"", record_file::path(&config.state).display());
                Ok(Sink::to_writer(format()?, file)?)
            }
            Err(why) => {
                tracing::warn!(
                    "cannot open the audit file: {why}; the audit record goes to standard error; to select another file, set audit = \"FILE\""
                );
                to_stderr()
            }
        },
        Audit::File(path) => {
            let file = audit_file(path).map_err(|error| match error.raw_os_error() {
                Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => AuditError::NoReader(path.clone()),
                _ => AuditError::Unopened { path: path.clone(), error },
            })?;
            Ok(Sink::to_writer(format()?, file)?)
        }
    }?;
    Ok(if config.when_full == WhenFull::Refuse { sink.refusing() } else { sink })
}

/// The lines of this process.
fn format() -> io::Result<RecordFormat> {
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(RecordFormat::new(LineChain::new(name)))
}

/// Opens the operator's audit file without blocking: it may be a FIFO without a reader, or with a slow one.
pub(crate) fn audit_file(path: &Path) -> io::Result<std::fs::File> {
    let at_once = i32::from_ne_bytes(rustix::fs::OFlags::NONBLOCK.bits().to_ne_bytes());
    #[expect(clippy::disallowed_methods, reason = "the operator's audit file")]
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(at_once).open(path)
}
