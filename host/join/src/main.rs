//! `belljar-join serve ...`: joins the belljar that serves all clients of this user. If none runs for the configuration, or
//! with any other command line, it becomes `belljar` with the same arguments.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use belljar_join::{ConfigLocation, PlaceFile, SocketFiles, place_files, serve_client};

fn main() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "the command line")]
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let files = place(&arguments).as_ref().and_then(SocketFiles::of);
    if let Some((files, stream)) = files.and_then(|files| files.connect().ok().map(|stream| (files, stream))) {
        return match serve_client(&files, stream) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("cannot join the belljar that serves: {error}")),
        };
    }
    #[expect(clippy::disallowed_methods, reason = "belljar is installed beside this program")]
    let own = std::env::current_exe().unwrap_or_default();
    let belljar = own.with_file_name("belljar");
    #[expect(clippy::disallowed_methods, reason = "belljar, which this process becomes")]
    let error = Command::new(&belljar).args(arguments).exec();
    fail(&format!("cannot run \"{}\": {error}; install belljar beside belljar-join", belljar.display()))
}

fn fail(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "belljar-join: {why}");
    ExitCode::FAILURE
}

/// The configuration that `belljar serve` would serve on standard input and output. `None` for another command line, and for
/// one that this program does not understand.
fn place(arguments: &[OsString]) -> Option<PlaceFile> {
    let mut arguments = arguments.iter();
    if arguments.next()? != "serve" {
        return None;
    }
    let (mut location, mut place) = (ConfigLocation::default(), None);
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.to_str()?.split_once('=') {
            Some((name, value)) => (name, PathBuf::from(value)),
            None => (argument.to_str()?, PathBuf::from(arguments.next()?)),
        };
        match name {
            "--config" => location.config = Some(value),
            "--plugins" => location.plugins = Some(value),
            "--place" => place = Some(read_place(value.as_os_str())?),
            _ => return None,
        }
    }
    if let Some(PlaceFile { config, plugins }) = place {
        location = ConfigLocation { config: Some(config), plugins };
    }
    #[expect(clippy::disallowed_methods, reason = "the operator's working directory")]
    let working = std::env::current_dir().ok()?;
    Some(location.absolute(&working))
}

/// The place file with this name.
fn read_place(name: &OsStr) -> Option<PlaceFile> {
    let is_name = name.to_str()?.bytes().all(|byte| byte.is_ascii_hexdigit());
    #[expect(clippy::disallowed_methods, reason = "belljar's own file")]
    let text = std::fs::read(place_files()?.join(is_name.then_some(Path::new(name))?)).ok()?;
    serde_json::from_slice(&text).ok()
}
