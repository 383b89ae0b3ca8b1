//! The files of the record, and their lines.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use crate::config::{Audit, Config};
use crate::model::text;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{configuration, record_file};

/// The longest line that is read, in bytes. belljar writes shorter ones.
const MAX_LINE: u64 = 1 << 20;

/// The file that the command line names, or the files of the record that the configuration names, oldest first.
pub(super) fn files_of(named: Option<&Path>, at: &LocationArgs) -> Result<Vec<PathBuf>, Failure> {
    match named {
        Some(file) => Ok(vec![file.to_owned()]),
        None => files(&configuration::file(at)?),
    }
}

/// The files of the record that the configuration names, oldest first.
fn files(config: &Config) -> Result<Vec<PathBuf>, Failure> {
    let none = |setting: &str| {
        Failure::Failed(format!(
            "the configuration keeps the record in no file (audit = \"{setting}\"); name a file with --file FILE"
        ))
    };
    match &config.audit {
        Audit::Off => Err(none("off")),
        Audit::Stderr => Err(none("stderr")),
        Audit::File(path) => Ok(vec![path.clone()]),
        Audit::State => Ok(record_file::all(&config.state)),
    }
}

/// Calls `take` with each line of a file, with its line break.
pub(super) fn read(path: &Path, mut take: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let shown = text::excerpt(&path.display().to_string(), 400);
    let fail = |error: std::io::Error| Failure::Failed(format!("cannot read the record \"{shown}\": {error}"));
    #[expect(clippy::disallowed_methods, reason = "the operator's record")]
    let file = File::open(path).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        return Err(Failure::Failed(format!("\"{shown}\" is no file, so it keeps no record that can be read again")));
    }
    let (mut input, mut line) = (BufReader::new(file), Vec::new());
    loop {
        line.clear();
        std::io::Read::take(&mut input, MAX_LINE).read_until(b'\n', &mut line).map_err(fail)?;
        if line.is_empty() {
            return Ok(());
        }
        take(&line)?;
    }
}
