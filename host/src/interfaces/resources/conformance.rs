//! The conformance checks of `resource-provider`.

mod lists;
mod reads;

use super::Describe;
use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun};

/// Runs the checks of this interface.
pub(in crate::interfaces) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    run.check_description().await;
    lists::check(run).await;
    reads::check(run).await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_description(&mut self) {
        let mut check = Check::new("describe");
        match self.call(Describe).await {
            Ok(about) => {
                let given = [("title", &about.title), ("version", &about.version), ("description", &about.description)];
                for (field, _) in given.iter().filter(|(_, value)| value.as_ref().is_none_or(|v| v.trim().is_empty())) {
                    check.warn(format!("it gives no {field}; add one, to help operators decide whether to trust it"));
                }
                let cleaned = self.checked(&Describe, about.clone()).unwrap_or_default();
                let pairs = [
                    ("title", about.title, cleaned.title),
                    ("version", about.version, cleaned.version),
                    ("description", about.description, cleaned.description),
                ];
                for (field, before, after) in pairs {
                    if before != after && before.is_some_and(|text| !text.trim().is_empty()) {
                        check.bad(format!(
                            "its {field} is too long or has control characters, so clients do not get it unchanged"
                        ));
                    }
                }
            }
            Err(error) => check.unexpected("describe", &error, "its title, version and description"),
        }
        self.found(check.finding("a title, a version and a description"));
    }
}
