//! `belljar-fetch`: reads one request from standard input, and writes events to standard output. belljar starts it.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use belljar_fetch_protocol::MAX_LINE;

fn main() -> ExitCode {
    // It ends with belljar: a download that nobody waits for would keep the next one from its file.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let mut line = Vec::new();
    let read = std::io::stdin().lock().take(MAX_LINE as u64).read_to_end(&mut line);
    if read.is_err() || line.is_empty() {
        let _ = writeln!(std::io::stderr(), "belljar-fetch: belljar starts this program; run: belljar add --help");
        return ExitCode::FAILURE;
    }
    if belljar_fetch::run(&line) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
