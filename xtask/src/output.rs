//! Where a thread's output goes, and how much processor time its programs took.
//!
//! Steps that run at the same time each write to a log of their own, so that their lines do not mix.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::Result;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

thread_local! {
    /// The log of this thread. None: its output goes to the terminal.
    static LOG: RefCell<Option<File>> = const { RefCell::new(None) };
    /// Processor time of the programs that this thread started and that have ended.
    static PROCESSOR: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Sends the output of this thread, and of the programs that it starts, to `log`. None: to the terminal.
pub(crate) fn set_log(log: Option<File>) {
    LOG.set(log);
}

/// Processor time, user and system, of the programs that this thread started and that have ended.
pub(crate) fn processor_time() -> Duration {
    PROCESSOR.get()
}

/// Writes a line to the log of this thread, or to the terminal.
pub(crate) fn line(text: &str) {
    LOG.with_borrow_mut(|log| match log {
        // A log that cannot be written must not end a test run: the result does not depend on it.
        Some(log) => drop(writeln!(log, "{text}")),
        None => println!("{text}"),
    });
}

/// Sends the output of a command to the log of this thread, if it has one.
pub(crate) fn redirect(command: &mut Command) -> Result<()> {
    LOG.with_borrow(|log| {
        if let Some(log) = log {
            command.stdout(log.try_clone()?).stderr(log.try_clone()?);
        }
        Ok(())
    })
}

/// Waits for a program, and adds its processor time to that of this thread.
pub(crate) fn wait(mut child: Child) -> Result<ExitStatus> {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The program stays in the process table, so that its times can be read.
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        PROCESSOR.set(PROCESSOR.get() + times(&stat));
    }
    Ok(child.wait()?)
}

/// Processor time of a process and of its children that have ended, from `/proc/PID/stat` (proc(5)).
fn times(stat: &str) -> Duration {
    /// Ticks a second: the same on every Linux that belljar runs on.
    const TICKS: u64 = 100;
    // The second field is a name in parentheses, which may contain spaces. Fields 14 to 17 are utime, stime, cutime, cstime.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_times_are_summed() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 100 200 300 401 20 0";
        assert_eq!(times(stat), Duration::from_millis(10_010));
        assert_eq!(times(""), Duration::ZERO);
    }

    #[test]
    fn the_time_of_a_program_is_counted() {
        let before = processor_time();
        let child =
            Command::new("sh").args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]).spawn().unwrap();
        assert!(wait(child).unwrap().success());
        assert!(processor_time() > before);
    }
}
