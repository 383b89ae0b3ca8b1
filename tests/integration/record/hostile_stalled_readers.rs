//! Rows of the hostile table (`tests/integration/hostile`) about stalled readers: belljar must answer every request
//! although no program reads standard error or the audit record.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio as Pipe;
use std::time::Duration;

use belljar_tests::{Client, Ended, Era, Site, Stdio};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use serde_json::Value;

use crate::row::{Row, RunMode, Stops, bare};
use crate::running_site::RowContext;
use crate::tools::{deadline, within};

/// A read during which the guest prints. A few such reads fill a pipe.
const PRINTING: &str = "belljar://hostile/print/2000";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        bare(
            "INF-09",
            "a provider prints, and no program reads standard error or the record: full pipes, FIFOs, full disks",
        )
        .run_mode(RunMode::Unstarted)
        .measures()
        .act(|_: &RowContext<'_>| {
            let results =
                [full_stderr("stderr"), full_stderr("audit.jsonl"), fifo(), full_disk(), fifo_without_a_reader()];
            results.join("; ")
        })
        .stopped(Stops::Structure("separate threads write the log and the record, from bounded queues")),
    ]
}

fn site(audit: &str) -> Site {
    let site = Site::new();
    site.mount_as("guest_hostile", "hostile.wasm");
    site.config(&format!("audit = {audit:?}\n[mounts.hostile]\n"));
    site
}

/// Sends three reads, `times` times: one that prints, one that does not, and one of an unknown mount. Returns the
/// number of answers.
fn reads(client: &mut Client<Stdio>, times: usize) -> usize {
    for _ in 0..times {
        client.text(PRINTING);
        client.text("belljar://hostile/ok");
        client.read("belljar://nobody/home").expect_err("there is no such mount");
    }
    3 * times
}

/// Terminates belljar, which must end with exit code 0 and without a panic.
fn terminate(client: Client<Stdio>) -> Ended {
    client.wire_ref().process.terminate();
    let ended = client.close();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended
}

/// Standard error is a pipe that is full before belljar starts, and is never read.
fn full_stderr(audit: &str) -> String {
    let site = site(audit);
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let flags = rustix::fs::fcntl_getfl(&writer).expect("flags");
    rustix::fs::fcntl_setfl(&writer, flags | OFlags::NONBLOCK).expect("flags");
    while writer.write(&[b'.'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, flags).expect("flags");
    let mut command = site.command(site.arguments(&["serve"]));
    // `Process` sets standard error to a pipe of its own. The shell replaces this pipe by the full one.
    let program = command.get_program().to_owned();
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let place = format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&writer));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "exec \"$@\" 2>\"$STDERR\"", "sh"]).arg(program).args(arguments);
    shell.env_clear().envs(site.environment()).env("STDERR", place).current_dir(site.path(""));
    std::mem::swap(&mut command, &mut shell);
    let mut client = Client::connect(Stdio::start(command), Era::Stateless);
    let answered = reads(&mut client, 100);
    terminate(client);
    drop((reader, writer));
    format!("{answered} answers with a full standard error, audit = {audit:?}")
}

/// The record goes to a FIFO whose reader stalls for a while. In the end, each read has a line or is counted as lost.
fn fifo() -> String {
    let site = site("fifo");
    mknodat(CWD, site.path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    let mut reader = File::options().read(true).write(true).open(site.path("fifo")).expect("a reader");
    let mut client = site.stdio(Era::Stateless);
    let answered = reads(&mut client, 300);
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        let mut bytes = vec![0; 1 << 16];
        // The line `END` comes from this test, below.
        while !text.ends_with("END\n") {
            let count = reader.read(&mut bytes).expect("bytes");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        text
    });
    terminate(client);
    let mut last = File::options().append(true).open(site.path("fifo")).expect("a writer");
    last.write_all(b"END\n").expect("a last line");
    let text = reading.join().expect("the text of the FIFO");
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let lost: u64 = lines.iter().filter_map(|line| line["lost"].as_u64()).sum();
    let reads = lines.iter().filter(|line| line["operation"] == "read").count();
    assert_eq!(reads as u64 + lost, answered as u64, "each read is on record or counted");
    format!("{reads} of {answered} records through a FIFO, {lost} counted as lost")
}

/// The record goes to a disk that is full.
fn full_disk() -> String {
    let site = site("/dev/full");
    let mut client = site.stdio(Era::Stateless);
    let answered = reads(&mut client, 20);
    let is_logged =
        within(Duration::from_secs(20), || client.wire().process.stderr().contains("cannot write the audit record"));
    assert!(is_logged, "{}", client.wire().process.stderr());
    let ended = terminate(client);
    assert!(ended.stderr.contains("audit records were not written"), "{}", ended.stderr);
    format!("{answered} answers with a full disk, and the log reports the full disk")
}

/// If the record is a FIFO without a reader, belljar ends at the start with an error, and does not wait.
fn fifo_without_a_reader() -> String {
    let site = site("lonely");
    mknodat(CWD, site.path("lonely"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    let mut command = site.command(site.arguments(&["serve"]));
    command.stdin(Pipe::null());
    let output = belljar_tests::process::run(command, deadline(Duration::from_secs(120)));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && stderr.contains("start its reader first"), "{stderr}");
    "a FIFO without a reader is refused".to_owned()
}
