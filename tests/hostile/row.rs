//! What a row of the table is: data. Who is mounted, what is asked of it, what must come of that, and what stops it.
//!
//! Most rows are a few lines: `imp("CPU-01", "computes for ever").time(300).read("spin", limit("time")).stopped_by(&["time"])`.
//! What is no list of reads is a script, [`Row::act`].

use std::time::Duration;

use belljar_tests::Site;

use crate::expect::Expect;
use crate::scene::Scene;

/// Lays out what a row needs in its site.
pub(crate) type Prepare = Box<dyn Fn(&Site) + Send + Sync>;

/// One row of the table.
pub(crate) struct Row {
    /// As in the table of promises; a row with several cases has one id.
    pub(crate) id: &'static str,
    /// What is tried, in plain words.
    pub(crate) attack: &'static str,
    pub(crate) stops: Stops,
    /// The hostile mounts; the first is the row's own.
    pub(crate) mounts: Vec<Mount>,
    /// Configuration beside the mounts, at the top of the file.
    pub(crate) settings: String,
    /// What is laid out in the site before the start.
    pub(crate) prepare: Option<Prepare>,
    pub(crate) way: Way,
    /// A line of shell before the start, such as `ulimit -n 256`.
    pub(crate) shell: &'static str,
    /// The time limit of each hostile mount.
    pub(crate) time: Duration,
    /// Bytes of resident memory that may stay behind: what allocators and pools keep for the next call.
    pub(crate) keeps: u64,
    /// Bytes of resident memory that the attack may take at the most, for a moment.
    pub(crate) peak: u64,
    /// Whether it measures: nothing else runs beside it then.
    pub(crate) measures: bool,
    /// Why the witness may be slow beside this row; rows of [`JUDGED`] classes without such a reason are judged by it.
    pub(crate) slow_witness: Option<&'static str>,
    /// Why this machine cannot show it; such a row is skipped, and says so.
    pub(crate) needs: Option<&'static str>,
    pub(crate) script: Script,
}

/// What stops an attack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stops {
    /// Guards of belljar's, by the names that switch them off.
    Guards(&'static [&'static str]),
    /// The engine, whatever belljar does; says how.
    Wasmtime(&'static str),
    /// The kernel; says how.
    Kernel(&'static str),
    /// There is no way to begin it; says why.
    Structure(&'static str),
}

/// A hostile mount.
pub(crate) struct Mount {
    /// What its name has after the row's id, or after a `=` the whole name; empty for the first.
    pub(crate) suffix: &'static str,
    pub(crate) guest: Guest,
    /// Lines of its table: `fs = { "/d" = "data" }`. `{site}`, `{canary}` and `{listener}` are filled in.
    pub(crate) config: String,
    /// Lines of its limits.
    pub(crate) limits: String,
}

/// What is mounted.
pub(crate) enum Guest {
    /// A built component, by its stem.
    Built(&'static str),
    /// Any bytes.
    Bytes(Box<dyn Fn() -> Vec<u8> + Send + Sync>),
}

/// How belljar is run for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// On stdio: in a process of its own, and then together with all other such rows in one.
    Shared,
    /// On stdio, in a process of its own only.
    Stdio,
    /// On HTTP, in a process of its own only.
    Http,
    /// By the script itself, which starts and ends what it likes.
    Unstarted,
}

/// What is done.
pub(crate) enum Script {
    /// Reads of the first mount, one after the other.
    Reads(Vec<(String, Expect)>),
    /// Anything; what it returns is what the client saw. It panics where the attack comes through.
    Act(Box<dyn Fn(&Scene<'_>) -> String + Send + Sync>),
}

/// The classes whose rows are about what a mount does to others: how the witness fares beside them is judged.
const JUDGED: [&str; 2] = ["RES-", "XPL-"];

/// A row about the imp.
pub(crate) fn imp(id: &'static str, attack: &'static str) -> Row {
    row(id, attack, Guest::Built("guest_imp"))
}

/// A row about a component that is made here.
pub(crate) fn made(id: &'static str, attack: &'static str, bytes: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Row {
    row(id, attack, Guest::Bytes(Box::new(bytes)))
}

/// A row without a hostile mount.
pub(crate) fn bare(id: &'static str, attack: &'static str) -> Row {
    Row { mounts: Vec::new(), ..imp(id, attack) }
}

/// A component that is made here, as one more mount of a row.
pub(crate) fn hand(bytes: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Guest {
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
        way: Way::Shared,
        shell: "",
        // Where it is not the time that must end a call, it must not on a busy machine either.
        time: Duration::from_secs(60),
        keeps: 16 << 20,
        // A call's memory, its answer as it is encoded, and the allocator's own: R5 for one call.
        peak: 160 << 20,
        measures: false,
        slow_witness: None,
        needs: None,
        script: Script::Reads(Vec::new()),
    }
}

impl Row {
    /// The guards that stop it.
    pub(crate) fn stopped_by(self, guards: &'static [&'static str]) -> Row {
        Row { stops: Stops::Guards(guards), ..self }
    }

    /// What stops it, where that is no guard of belljar's.
    pub(crate) fn stopped(self, stops: Stops) -> Row {
        Row { stops, ..self }
    }

    /// The time limit of each hostile mount, in milliseconds.
    pub(crate) fn time(self, ms: u64) -> Row {
        Row { time: Duration::from_millis(ms), ..self }
    }

    /// Lines of the last mount's limits.
    pub(crate) fn limits(self, lines: &str) -> Row {
        self.last(|mount| mount.limits += &format!("{lines}\n"))
    }

    /// Lines of the last mount's table.
    pub(crate) fn config(self, lines: &str) -> Row {
        self.last(|mount| mount.config += &format!("{lines}\n"))
    }

    fn last(mut self, change: impl FnOnce(&mut Mount)) -> Row {
        change(self.mounts.last_mut().expect("a mount to change"));
        self
    }

    /// One more hostile mount, named after the row with `suffix` behind.
    pub(crate) fn mount(mut self, suffix: &'static str, guest: Guest) -> Row {
        self.mounts.push(Mount { suffix, guest, config: String::new(), limits: String::new() });
        self
    }

    /// Lines at the top of the configuration; the row has a process of its own then.
    pub(crate) fn settings(self, lines: &str) -> Row {
        let settings = self.settings + lines + "\n";
        Row { settings, ..self }.way(Way::Stdio)
    }

    /// What is laid out in the site before the start.
    pub(crate) fn prepare(self, prepare: impl Fn(&Site) + Send + Sync + 'static) -> Row {
        Row { prepare: Some(Box::new(prepare)), ..self }
    }

    /// How belljar is run. A row that is [`Way::Shared`] already stays as it is only if nothing says otherwise.
    pub(crate) fn way(self, way: Way) -> Row {
        Row { way, ..self }
    }

    /// A line of shell before the start; the row has a process of its own then.
    pub(crate) fn shell(self, shell: &'static str) -> Row {
        let way = if self.way == Way::Shared { Way::Stdio } else { self.way };
        Row { shell, way, ..self }
    }

    /// Bytes of resident memory that may stay behind.
    pub(crate) fn keeps(self, mib: u64) -> Row {
        Row { keeps: mib << 20, ..self }
    }

    /// Bytes of resident memory that the attack may take at the most.
    pub(crate) fn peak(self, mib: u64) -> Row {
        Row { peak: mib << 20, ..self }
    }

    /// The witness may be slow beside it, for this reason.
    pub(crate) fn slow_witness(self, why: &'static str) -> Row {
        Row { slow_witness: Some(why), ..self }
    }

    /// Whether the row is judged by how fast the witness is answered beside it.
    pub(crate) fn is_judged(&self) -> bool {
        self.slow_witness.is_none() && JUDGED.iter().any(|class| self.id.starts_with(class))
    }

    /// Nothing else runs beside it.
    pub(crate) fn measures(self) -> Row {
        Row { measures: true, ..self }
    }

    /// Why this machine cannot show it, if so.
    pub(crate) fn needs(self, missing: Option<&'static str>) -> Row {
        Row { needs: missing, ..self }
    }

    /// One more read of the first mount, and what must come of it. A reference is as the imp takes it; what `{canary}` and
    /// `{listener}` stand for is encoded twice, as the imp's paths are.
    pub(crate) fn read(mut self, reference: impl Into<String>, expect: Expect) -> Row {
        match &mut self.script {
            Script::Reads(reads) => reads.push((reference.into(), expect)),
            Script::Act(_) => panic!("{}: it has a script already", self.id),
        }
        self
    }

    /// What is done, where that is no list of reads.
    pub(crate) fn act(self, act: impl Fn(&Scene<'_>) -> String + Send + Sync + 'static) -> Row {
        Row { script: Script::Act(Box::new(act)), ..self }
    }

    /// The name of its mount with this suffix.
    pub(crate) fn name(&self, suffix: &str) -> String {
        if let Some(whole) = suffix.strip_prefix('=') {
            return whole.to_owned();
        }
        let id = self.id.to_lowercase();
        if suffix.is_empty() { id } else { format!("{id}-{suffix}") }
    }
}
