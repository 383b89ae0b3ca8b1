//! The conformance checks of `revisions`.

use super::{CatalogRevision, ResourceRevisions};
use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun, is_crash, shown};
use crate::model::{ReadError, reference};

/// The number of listed resources in one call of `resource-revisions`.
const REFERENCES: usize = 5;

/// A reference without a resource.
const UNKNOWN: &str = "belljar-conformance-there-is-no-such-thing";

/// Runs the checks of this interface.
pub(in crate::interfaces) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    run.check_catalog_revision().await;
    run.check_resource_revisions().await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_catalog_revision(&mut self) {
        let mut check = Check::new("catalog-revision");
        let mut revisions = Vec::new();
        for _ in 0..2 {
            match self.call(CatalogRevision).await {
                Ok(revision) => match self.checked(&CatalogRevision, revision) {
                    Ok(revision) => revisions.push(revision),
                    Err(error) => check.bad(error.to_string()),
                },
                Err(error @ (ReadError::Unavailable(_) | ReadError::ProviderUnavailable(_))) => {
                    check.warn(format!("catalog-revision: {error}"))
                }
                Err(error) => check.unexpected("catalog-revision", &error, "a revision"),
            }
        }
        if let [before, after] = revisions.as_slice()
            && before != after
        {
            check.warn("it differs between two calls, so belljar fetches the list again each time".to_owned());
        }
        self.found(check.finding("the same twice"));
    }

    async fn check_resource_revisions(&mut self) {
        let mut check = Check::new("resource-revisions");
        let listed = self.resources.iter().map(|entry| &entry.reference).filter(|name| reference::check(name).is_ok());
        let mut asked: Vec<String> = listed.take(REFERENCES).cloned().collect();
        asked.push(UNKNOWN.to_owned());
        let is_covered = self.is_covered(UNKNOWN);
        let function = ResourceRevisions { references: asked.clone() };
        match self.call(function.clone()).await {
            Ok(given) => match self.checked(&function, given) {
                Err(error) => check.bad(error.to_string()),
                Ok(given) => {
                    for (name, one) in asked.iter().zip(&given) {
                        match one {
                            Ok(_) if name == UNKNOWN && !is_covered => {
                                check.bad(format!(
                                    "{} does not exist, but has a revision; expected `not-found`",
                                    shown(name)
                                ));
                            }
                            Err(ReadError::NotFound) if name != UNKNOWN => {
                                check.bad(format!(
                                    "{} is listed, but its revision is `not-found`; expected a revision",
                                    shown(name)
                                ));
                            }
                            Err(error) if is_crash(error) => check.bad(format!("{}: {error}", shown(name))),
                            _ => {}
                        }
                    }
                    self.check_order(&asked, &given, &mut check).await;
                }
            },
            Err(error) => check.unexpected("resource-revisions", &error, "one result for each reference"),
        }
        match self.call(ResourceRevisions { references: Vec::new() }).await {
            Ok(none) if none.is_empty() => {}
            Ok(some) => check.bad(format!(
                "resource-revisions without references gave {} results; expected an empty list",
                some.len()
            )),
            Err(error) => check.unexpected("resource-revisions without references", &error, "an empty list"),
        }
        self.found(check.finding(format!("one for each of {} references, in order", asked.len())));
    }

    /// Checks that references in the reverse order give results in the reverse order.
    async fn check_order(&mut self, asked: &[String], given: &[Result<String, ReadError>], check: &mut Check) {
        let references = asked.iter().rev().cloned().collect();
        let Ok(again) = self.call(ResourceRevisions { references }).await else { return };
        let is_there = |one: &Result<String, ReadError>| one.is_ok();
        let order: Vec<bool> = given.iter().map(is_there).collect();
        if order != again.iter().rev().map(is_there).collect::<Vec<_>>() {
            check.bad(
                "for references in the reverse order, the results are not in the order of the references".to_owned(),
            );
        }
    }
}
