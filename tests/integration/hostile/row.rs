//! One row of the table, as data: the mounts, the requests, the expected outcome, and the guards that stop the attack.
//!
//! Most attacks come from the hostile guest: the hostile component `tests/guests/hostile`. The reference of a read
//! selects the attack. Most rows are a few lines: `hostile_guest("CPU-01", "computes for ever").time(300).read("spin",
//! limit("time")).stopped_by(&["time"])`. A row that is more than a list of reads has a script, [`Row::act`].

use std::time::Duration;

use belljar_tests::Site;

use crate::expect::Expect;
use crate::running_site::RowContext;

/// Creates the files that a row needs in its site.
pub(crate) type Prepare = Box<dyn Fn(&Site) + Send + Sync>;

/// One row of the table.
pub(crate) struct Row {
    /// The id of the attack in `docs/measurements/containment.md`. Several cases of one attack share an id.
    pub(crate) id: &'static str,
    /// The attack in plain words.
    pub(crate) attack: &'static str,
    pub(crate) stops: Stops,
    /// The hostile mounts; the first is the row's own.
    pub(crate) mounts: Vec<Mount>,
    /// Configuration beside the mounts, at the top of the file.
    pub(crate) settings: String,
    /// Prepares the site before the start.
    pub(crate) prepare: Option<Prepare>,
    pub(crate) run_mode: RunMode,
    /// A line of shell before the start, such as `ulimit -n 256`.
    pub(crate) shell: &'static str,
    /// The time limit of each hostile mount.
    pub(crate) time: Duration,
    /// How many more bytes of resident memory the process may hold after the attack than before. Allocators and pools
    /// keep this memory for the next call.
    pub(crate) keeps: u64,
    /// How many more bytes of resident memory the process may hold at any moment of the attack than before.
    pub(crate) peak: u64,
    /// True if the row measures: no other row runs at the same time.
    pub(crate) measures: bool,
    /// Why the witness may be slow during this row. Without a reason, a row of the [`JUDGED`] classes must not
    /// slow the witness.
    pub(crate) slow_witness: Option<&'static str>,
    /// Why this machine cannot run the row. Then the row is skipped, and the output says so.
    pub(crate) needs: Option<&'static str>,
    pub(crate) script: Script,
}

/// The guard or the mechanism that stops an attack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stops {
    /// Guards of belljar, by the names that switch them off.
    Guards(&'static [&'static str]),
    /// The engine, without help from belljar. The text names the mechanism.
    Wasmtime(&'static str),
    /// The kernel. The text names the mechanism.
    Kernel(&'static str),
    /// No code path leads to the attacked operation. The text gives the reason.
    Structure(&'static str),
}

/// A hostile mount.
pub(crate) struct Mount {
    /// The suffix of its name after the row's id; empty for the first mount. With a leading `=`, the whole name.
    pub(crate) suffix: &'static str,
    pub(crate) guest: Guest,
    /// Lines of its table in the configuration, such as `fs = { "/d" = "data" }`. The placeholders `{site}`, `{canary}`
    /// and
    /// `{listener}` are replaced.
    pub(crate) config: String,
    /// Lines of its table of limits.
    pub(crate) limits: String,
}

/// The component of a mount.
pub(crate) enum Guest {
    /// A built component, by its stem.
    Built(&'static str),
    /// Any bytes.
    Bytes(Box<dyn Fn() -> Vec<u8> + Send + Sync>),
}

/// How belljar runs for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// On stdio: first in a process of its own, then in one process together with all other rows of this mode.
    Shared,
    /// On stdio, in a process of its own only.
    Stdio,
    /// On HTTP, in a process of its own only.
    Http,
    /// Not started for the row: the script starts belljar.
    Unstarted,
}

/// The requests of a row.
pub(crate) enum Script {
    /// Reads of the first mount, one after the other.
    Reads(Vec<(String, Expect)>),
    /// A function. It returns a description of the answers, and panics if the attack succeeds.
    Act(Box<dyn Fn(&RowContext<'_>) -> String + Send + Sync>),
}

/// The prefixes of the rows in which a mount attacks other mounts. These rows must not slow the witness.
const JUDGED: [&str; 2] = ["RES-", "XPL-"];

/// A row whose first mount is the hostile guest.
pub(crate) fn hostile_guest(id: &'static str, attack: &'static str) -> Row {
    row(id, attack, Guest::Built("guest_hostile"))
}

/// A row whose first mount has a component that the test makes.
pub(crate) fn made(id: &'static str, attack: &'static str, bytes: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Row {
    row(id, attack, Guest::Bytes(Box::new(bytes)))
}

/// A row without a hostile mount.
pub(crate) fn bare(id: &'static str, attack: &'static str) -> Row {
    Row { mounts: Vec::new(), ..hostile_guest(id, attack) }
}

/// A component that the test makes, for a further mount of a row.
pub(crate) fn assembled(bytes: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Guest {
    Guest::Bytes(Box::new(bytes))
}

fn row(id: &'static str, attack: &'static str, guest: Guest) -> Row {
    Row {
        id,
        attack,
        stops: Stops::Guards(&[]),
        mounts: vec![Mount { suffix: "", guest, config: String::new(), limits: String::new() }],
        settings: String::new(),
        prepare: None,
        run_mode: RunMode::Shared,
        shell: "",
        // Rows that test another limit must not reach the time limit, even on a busy machine.
        time: Duration::from_secs(60),
        keeps: 16 << 20,
        // The memory of one call, its encoded answer, and the allocator's own memory.
        peak: 160 << 20,
        measures: false,
        slow_witness: None,
        needs: None,
        script: Script::Reads(Vec::new()),
    }
}

impl Row {
    /// Sets the guards that stop the attack.
    pub(crate) fn stopped_by(self, guards: &'static [&'static str]) -> Row {
        Row { stops: Stops::Guards(guards), ..self }
    }

    /// Sets the mechanism that stops the attack, if it is not a guard of belljar.
    pub(crate) fn stopped(self, stops: Stops) -> Row {
        Row { stops, ..self }
    }

    /// Sets the time limit of each hostile mount, in milliseconds.
    pub(crate) fn time(self, ms: u64) -> Row {
        Row { time: Duration::from_millis(ms), ..self }
    }

    /// Adds lines to the limits of the last mount.
    pub(crate) fn limits(self, lines: &str) -> Row {
        self.last(|mount| mount.limits += &format!("{lines}\n"))
    }

    /// Adds lines to the table of the last mount.
    pub(crate) fn config(self, lines: &str) -> Row {
        self.last(|mount| mount.config += &format!("{lines}\n"))
    }

    fn last(mut self, change: impl FnOnce(&mut Mount)) -> Row {
        change(self.mounts.last_mut().expect("a mount to change"));
        self
    }

    /// Adds a hostile mount. Its name is the row's name and `suffix`.
    pub(crate) fn mount(mut self, suffix: &'static str, guest: Guest) -> Row {
        self.mounts.push(Mount { suffix, guest, config: String::new(), limits: String::new() });
        self
    }

    /// Adds lines at the top of the configuration. The row then has a process of its own.
    pub(crate) fn settings(self, lines: &str) -> Row {
        let settings = self.settings + lines + "\n";
        Row { settings, ..self }.run_mode(RunMode::Stdio)
    }

    /// Sets a function that creates files in the site before the start.
    pub(crate) fn prepare(self, prepare: impl Fn(&Site) + Send + Sync + 'static) -> Row {
        Row { prepare: Some(Box::new(prepare)), ..self }
    }

    /// Sets how belljar runs.
    pub(crate) fn run_mode(self, run_mode: RunMode) -> Row {
        Row { run_mode, ..self }
    }

    /// Sets a line of shell before the start. The row then has a process of its own.
    pub(crate) fn shell(self, shell: &'static str) -> Row {
        let run_mode = if self.run_mode == RunMode::Shared { RunMode::Stdio } else { self.run_mode };
        Row { shell, run_mode, ..self }
    }

    /// Sets how many MiB of additional resident memory may stay after the attack.
    pub(crate) fn keeps(self, mib: u64) -> Row {
        Row { keeps: mib << 20, ..self }
    }

    /// Sets how many MiB of additional resident memory the process may hold during the attack.
    pub(crate) fn peak(self, mib: u64) -> Row {
        Row { peak: mib << 20, ..self }
    }

    /// Allows the witness to be slow during this row, for this reason.
    pub(crate) fn slow_witness(self, why: &'static str) -> Row {
        Row { slow_witness: Some(why), ..self }
    }

    /// True if the row must not slow the witness.
    pub(crate) fn is_judged(&self) -> bool {
        self.slow_witness.is_none() && JUDGED.iter().any(|class| self.id.starts_with(class))
    }

    /// Marks the row as one that measures: no other row runs at the same time.
    pub(crate) fn measures(self) -> Row {
        Row { measures: true, ..self }
    }

    /// Sets the reason if this machine cannot run the row.
    pub(crate) fn needs(self, missing: Option<&'static str>) -> Row {
        Row { needs: missing, ..self }
    }

    /// Adds a read of the first mount, with its expected outcome. The reference has the form that the hostile guest
    /// reads. The values of `{canary}` and `{listener}` are percent-encoded twice, like all paths for the hostile
    /// guest.
    pub(crate) fn read(mut self, reference: impl Into<String>, expect: Expect) -> Row {
        match &mut self.script {
            Script::Reads(reads) => reads.push((reference.into(), expect)),
            Script::Act(_) => panic!("{}: the row already has a script", self.id),
        }
        self
    }

    /// Sets a script, for a row that is more than a list of reads.
    pub(crate) fn act(self, act: impl Fn(&RowContext<'_>) -> String + Send + Sync + 'static) -> Row {
        Row { script: Script::Act(Box::new(act)), ..self }
    }

    /// The name of the row's mount with this suffix.
    pub(crate) fn name(&self, suffix: &str) -> String {
        if let Some(whole) = suffix.strip_prefix('=') {
            return whole.to_owned();
        }
        let id = self.id.to_lowercase();
        if suffix.is_empty() { id } else { format!("{id}-{suffix}") }
    }
}
