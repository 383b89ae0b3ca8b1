//! What the processes hold, seen from outside, by tenth; and whether that is what R6 asks for.

use std::fmt::Write as _;
use std::time::Duration;

use belljar_tests::Process;

use crate::drive::Counts;

/// How much more memory the last tenth may end with than the second.
const GROWTH: f64 = 1.03;

/// MiB that all slots may hold: as many as calls may run at once, 32, each with 2 MiB of memory and 64 KiB of tables.
const SLOTS: f64 = 66.0;

/// Wrong answers that are shown.
const SHOWN: usize = 10;

/// What one process holds.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Bytes of memory.
    pub(crate) memory: u64,
    /// Bytes of it in the slots in which guests run. How many were ever used at once, and how far each was filled, goes by
    /// chance: each keeps up to 2 MiB for whoever comes next.
    slots: u64,
    /// Open descriptors.
    pub(crate) descriptors: usize,
    /// Threads.
    pub(crate) threads: usize,
}

impl Sample {
    pub(crate) fn of(process: &Process) -> Self {
        Self {
            memory: process.memory(),
            slots: process.slots(),
            descriptors: process.files(),
            threads: process.threads(),
        }
    }
}

/// A tenth of the run.
pub(crate) struct Tenth {
    pub(crate) reads: usize,
    hostile: usize,
    pub(crate) wrong: usize,
    /// Of the process on stdio, and of the one on HTTP.
    pub(crate) samples: [Sample; 2],
    /// Median of honest reads.
    pub(crate) latency: Duration,
}

/// The table's head.
pub(crate) const HEAD: &str = "\
| tenth | reads | hostile | wrong | RSS - slots, stdio | RSS - slots, HTTP | descriptors | threads | median of honest reads |
|---|---|---|---|---|---|---|---|---|";

impl Tenth {
    pub(crate) fn new(samples: [Sample; 2], counts: &mut Counts) -> Self {
        counts.latencies.sort_unstable();
        let latency = counts.latencies.get(counts.latencies.len() / 2).copied().unwrap_or_default();
        Self { reads: counts.reads, hostile: counts.hostile, wrong: counts.wrong.len(), samples, latency }
    }

    pub(crate) fn row(&self, number: usize) -> String {
        let [one, two] = self.samples;
        format!(
            "| {number} | {} | {} | {} | {:.1} - {:.1} MiB | {:.1} - {:.1} MiB | {} + {} | {} + {} | {:.2} ms |",
            self.reads,
            self.hostile,
            self.wrong,
            mib(one.memory),
            mib(one.slots),
            mib(two.memory),
            mib(two.slots),
            one.descriptors,
            two.descriptors,
            one.threads,
            two.threads,
            self.latency.as_secs_f64() * 1e3
        )
    }
}

/// `bytes` in MiB.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A whole run.
pub(crate) struct Measured {
    /// After the warm-up and a rest.
    pub(crate) baseline: [Sample; 2],
    pub(crate) tenths: Vec<Tenth>,
    /// After a rest at the end.
    pub(crate) end: [Sample; 2],
    pub(crate) wrong: Vec<String>,
    pub(crate) took: Duration,
}

/// What the run says.
pub(crate) struct Verdict {
    pub(crate) holds: bool,
    pub(crate) text: String,
}

impl Measured {
    /// Judges by R6.
    pub(crate) fn verdict(&self) -> Verdict {
        let mut verdict = Verdict { holds: true, text: String::new() };
        let mut line = |holds: bool, what: String| {
            verdict.holds &= holds;
            let _ = writeln!(verdict.text, "- {}: {what}", if holds { "holds" } else { "BROKEN" });
        };
        line(self.wrong.is_empty(), format!("{} wrong answers (0 are allowed)", self.wrong.len()));
        for (at, name) in ["stdio", "HTTP"].into_iter().enumerate() {
            let memory = |tenth: &Tenth| mib(tenth.samples[at].memory.saturating_sub(tenth.samples[at].slots));
            let (second, last) = (memory(&self.tenths[1]), memory(&self.tenths[9]));
            let ratio = last / second;
            line(
                ratio <= GROWTH,
                format!(
                    "{name}: without slots, RSS of the last tenth is {ratio:.3} of the second's ({last:.1} / {second:.1} MiB; at most {GROWTH})"
                ),
            );
            let slots = mib(self.tenths[9].samples[at].slots);
            line(slots <= SLOTS, format!("{name}: slots hold {slots:.1} MiB at the end (at most {SLOTS})"));
            let (before, after) = (self.baseline[at], self.end[at]);
            line(
                after.descriptors <= before.descriptors,
                format!("{name}: {} descriptors after a rest; {} before", after.descriptors, before.descriptors),
            );
            line(
                after.threads <= before.threads,
                format!("{name}: {} threads after a rest; {} before", after.threads, before.threads),
            );
        }
        for wrong in self.wrong.iter().take(SHOWN) {
            let _ = writeln!(verdict.text, "  wrong: {wrong}");
        }
        verdict.text.push_str(LEFT_OUT);
        verdict
    }
}

/// What R6 asks for and this cannot tell.
const LEFT_OUT: &str = "\
- left out: live stores are not visible from outside; that every withdrawn call gave its place back is checked by using \
all of them at the end
- left out: reloads; this belljar reads its directory once, at the start";
