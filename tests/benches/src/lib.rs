//! Shared by the benches: medians over interleaved rounds, processor time, tables.
//!
//! Machines are shared and noisy. So two things are always compared in one run, round by round, by processor time and
//! by the median; no figure is asserted.

pub mod plot;
pub mod tree;

use std::pin::Pin;
use std::sync::Arc;

use belljar::sandbox::{Compile, NotCompiled, compile};
pub use belljar_figures::{Record, verdict::names};
use rustix::time::{ClockId, clock_gettime};

/// Compiles in this process: a bench trusts what it measures.
pub struct Here;

impl Compile for Here {
    fn compile(&self, wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async move { compile(&wasm).map_err(NotCompiled::always) })
    }
}

/// Processor time of this thread, in nanoseconds.
pub fn thread_cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or_default() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

/// [`cpu_time`](belljar_tests::process::cpu_time) in nanoseconds.
pub fn process_cpu(pid: u32) -> u64 {
    u64::try_from(belljar_tests::process::cpu_time(pid).as_nanos()).unwrap_or(u64::MAX)
}

/// Figures of one row, a sample a round.
#[derive(Default)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    /// Adds the cost of one operation, given `nanos` for `operations` of them; kept in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of nanoseconds")]
    pub fn add(&mut self, nanos: u64, operations: u32) {
        self.0.push(nanos as f64 / 1000.0 / f64::from(operations));
    }

    /// The sample below which `share` of all lie.
    pub fn quantile(&self, share: f64) -> f64 {
        belljar_figures::quantile(&self.0, share)
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// A line of a table: name, median with the spread of the middle half, ratio to the first row.
pub fn row(name: &str, samples: &Samples, base: &Samples) -> String {
    format!(
        "| {name} | {:.1} | {:.1} - {:.1} | {:.2}x |",
        samples.median(),
        samples.quantile(0.25),
        samples.quantile(0.75),
        samples.median() / base.median()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles() {
        let mut samples = Samples::default();
        for nanos in [5000, 1000, 3000, 2000, 4000] {
            samples.add(nanos, 1);
        }
        assert!((samples.median() - 3.0).abs() < 1e-9);
        assert!((samples.quantile(1.0) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn processor_time_grows() {
        let (own, all) = (thread_cpu(), process_cpu(std::process::id()));
        let mut x = 1u64;
        for i in 0..20_000_000u64 {
            x = std::hint::black_box(x.wrapping_mul(i | 1));
        }
        assert!(thread_cpu() > own && process_cpu(std::process::id()) > all && x != 0);
    }
}
