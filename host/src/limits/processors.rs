//! The processors that this process may use.

use std::num::NonZero;
use std::sync::OnceLock;

/// The number of processors that this process may use, at least one. It is read once: behind the second wall, the files
/// with the limit of a container are hidden.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
}
