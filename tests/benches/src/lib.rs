//! Code that the benches share: processor time, medians of rounds, rows of tables.
//!
//! Other programs disturb the measurements. So each round of a bench measures all cases, one after the other, and the
//! bench compares the medians of their processor times. No bench asserts a figure.

pub mod bare_engine;
pub mod plot;
pub mod tree;

use std::pin::Pin;
use std::sync::Arc;

use belljar::sandbox::{Compiler, NotCompiled, Processors, SandboxOptions, compile};
pub use belljar_figures::{Record, verdict::names};
use rustix::time::{ClockId, clock_gettime};

/// A compiler in this process instead of the compiler process. That is safe, because a bench trusts its components.
pub struct InProcessCompiler;

impl Compiler for InProcessCompiler {
    fn compile(&self, wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async move { compile(&wasm, Processors::Own).map_err(|why| NotCompiled::permanent(why.to_string())) })
    }
}

/// The settings of the sandboxes that benches measure: room for 32 calls, no cache, all in this process.
pub fn sandbox_options() -> SandboxOptions {
    let compiler = Arc::new(InProcessCompiler);
    SandboxOptions { calls: 32, cache: None, descriptors: 32 * 1024, compiler, workers: None }
}

/// The processor time of this thread, in nanoseconds.
pub fn thread_cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or_default() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

/// The processor time of the living threads of a process and of all that it started, in nanoseconds. belljar's calls run in
/// worker processes.
pub fn process_cpu(pid: u32) -> u64 {
    tree::CpuSnapshot::of(pid).total()
}

/// The samples of one row, one for each round.
#[derive(Default)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    /// Adds a sample: `nanos` nanoseconds for `operations` operations, as microseconds for each.
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds far below 2^52")]
    pub fn add(&mut self, nanos: u64, operations: u32) {
        self.0.push(nanos as f64 / 1000.0 / f64::from(operations));
    }

    /// The quantile `share`, from 0.0 to 1.0.
    pub fn quantile(&self, share: f64) -> f64 {
        belljar_figures::quantile(&self.0, share)
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// A row of a table: the name, the median, the first and the third quartile, and the ratio to `base`.
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
    fn the_median_and_quantiles_are_computed() {
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
