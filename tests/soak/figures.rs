//! Measures the memory, descriptors and threads of the processes after each tenth of the run. Checks them against the
//! bounds below.

use std::fmt::Write as _;
use std::time::Duration;

use belljar_tests::Process;

use crate::drive::Counts;

/// The highest ratio of the memory after the last tenth to that after the second.
const GROWTH: f64 = 1.03;

/// The most MiB in all slots of guests: 32 calls may run at once, each with 2 MiB of memory and 64 KiB of tables.
const SLOTS: f64 = 66.0;

/// The most wrong answers that the verdict shows.
const SHOWN: usize = 10;

/// The resources of one process.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Bytes of memory.
    pub(crate) memory: u64,
    /// The part of `memory` in the slots in which guests run. It varies by chance: each slot that was used keeps up to 2 MiB
    /// for the next call.
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
    /// The samples of the process on stdio, and of the one on HTTP.
    pub(crate) samples: [Sample; 2],
    /// The median time of honest reads.
    pub(crate) latency: Duration,
}

/// The head of the table of tenths.
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
    /// The samples after the warm-up and a pause.
    pub(crate) baseline: [Sample; 2],
    pub(crate) tenths: Vec<Tenth>,
    /// The samples after a pause at the end.
    pub(crate) end: [Sample; 2],
    pub(crate) wrong: Vec<String>,
    pub(crate) took: Duration,
}

/// The result of the run.
pub(crate) struct Verdict {
    pub(crate) holds: bool,
    pub(crate) text: String,
}

impl Measured {
    /// Checks the figures against the bounds.
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

/// The checks that this program cannot make.
const LEFT_OUT: &str = "\
- left out: the stores of calls are not visible from outside. Instead, reads at the end use all places, so a cancelled call \
cannot still occupy one
- left out: reloads. The servers of this test read the plugin directory once, at the start";
