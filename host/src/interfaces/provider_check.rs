//! The complete conformance check of a provider: the checks of each interface that it exports.

use super::calls::Interfaces;
use super::conformance::{ConformanceCaller, ConformanceReport, ConformanceRun};
use super::list::for_each_interface;

macro_rules! checks {
    ($($interface:ident $indices:ident $($optional:literal)?: $($function:ident),+;)+) => {
        $(use super::list::$interface;)+

        impl<A: ConformanceCaller> ConformanceRun<'_, A> {
            /// Runs all checks of a provider that exports `interfaces`.
            pub async fn run(mut self, interfaces: Interfaces) -> ConformanceReport {
                $(if interfaces.$interface {
                    $interface::conformance::check(&mut self).await;
                })+
                self.finish()
            }
        }
    };
}

for_each_interface!(checks);
