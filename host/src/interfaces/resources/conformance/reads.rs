//! Checks of reads: listed resources can be read, unknown ones are `not-found`, and no reference crashes the provider.

use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun, NEEDS, is_crash, shown};
use crate::interfaces::fields::{clean_meta, valid_mime_type};
use crate::interfaces::resources::Read;
use crate::model::template::{Matcher, variables};
use crate::model::{ReadError, Reading, Resource, reference};

/// The approximate number of listed resources that are read.
const READS: usize = 50;

/// References without a resource.
const UNKNOWN: [&str; 2] = ["belljar-conformance-there-is-no-such-thing", "belljar/conformance/there/is/none?q=1"];

/// Valid references that no provider lists.
const ODD: [&str; 12] = [
    "%00",
    "%FF%FE",
    "%F0%9F%94%94",
    "a%2Fb",
    "%252e%252e%252f",
    "%0A%0D",
    "?",
    "a//b",
    "a/",
    "a?b=c&b=d&%3D",
    "-",
    "*;'%22%60$(x)",
];

/// Runs the checks.
pub(super) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    run.check_reads().await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_reads(&mut self) {
        self.check_listed_resources().await;
        self.check_unknown_resources().await;
        self.check_mount_itself().await;
        self.check_odd_references().await;
    }

    async fn read(&mut self, reference: &str) -> Result<Reading, ReadError> {
        self.call(Read { reference: reference.to_owned() }).await
    }

    async fn check_listed_resources(&mut self) {
        let mut check = Check::new("listed resources");
        let is_readable = |entry: &&Resource| reference::check(&entry.reference).is_ok();
        let readable: Vec<Resource> = self.resources.iter().filter(is_readable).cloned().collect();
        // The first one, the last one, and some in between.
        let step = readable.len().div_ceil(READS).max(1);
        let mut picked: Vec<&Resource> = readable.iter().step_by(step).collect();
        picked.extend(readable.last().filter(|last| picked.last() != Some(last)));
        let (mut read, mut denied) = (0, 0);
        for entry in &picked {
            let name = shown(&entry.reference);
            match self.read(&entry.reference).await {
                Ok(reading) => {
                    read += 1;
                    self.check_contents(reading, entry, &mut check);
                }
                Err(ReadError::Denied { .. }) => denied += 1,
                Err(error @ (ReadError::Unavailable(_) | ReadError::ProviderUnavailable(_))) => {
                    check.warn(format!("read of {name}: {error}"))
                }
                Err(error) => check.bad(format!(
                    "{name} is listed, but reading it ended with `{}` ({error}); expected contents",
                    error.kind()
                )),
            }
        }
        if denied > 0 {
            check.skip(format!("each of {denied} of {} {NEEDS}", picked.len()));
        }
        if picked.is_empty() {
            check.skip("no resources are listed".to_owned());
        }
        self.found(
            check.finding(format!("{read} of {} read, with contents as they were listed", self.resources.len())),
        );
    }

    /// Checks the contents of `entry`.
    fn check_contents(&self, reading: Reading, entry: &Resource, check: &mut Check) {
        let name = shown(&entry.reference);
        for contents in &reading.contents {
            if contents.mime_type != valid_mime_type(contents.mime_type.clone()) {
                check.bad(format!(
                    "the mime-type of the contents of {name} does not have the syntax of RFC 6838, and is left out"
                ));
            }
            if contents.meta != clean_meta(contents.meta.clone()) {
                check.bad(format!("the meta of the contents of {name} breaks a rule, and is left out in part"));
            }
        }
        if let [only] = reading.contents.as_slice() {
            let (listed, given) = (entry.mime_type.as_deref(), only.mime_type.as_deref());
            if listed.is_some() && given.is_some() && listed != given {
                check.warn(format!("{name} is listed as {listed:?}, but its contents have {given:?}"));
            }
            let given = only.body.len() as u64;
            if let Some(listed) = entry.size.filter(|listed| *listed != given) {
                check.warn(format!("{name} is listed with {listed} bytes, but its contents have {given}"));
            }
        }
        if let Err(error) = self.checked(&Read { reference: entry.reference.clone() }, reading) {
            check.bad(error.to_string());
        }
    }

    /// True if a template can expand to `reference`.
    pub(in crate::interfaces) fn is_covered(&self, reference: &str) -> bool {
        self.templates.iter().any(|entry| {
            let names = variables(&entry.template);
            let matches =
                |name: &&str| Matcher::new(&entry.template, name, &[]).is_some_and(|m| m.value(reference).is_some());
            names.iter().any(matches)
        })
    }

    async fn check_unknown_resources(&mut self) {
        let mut check = Check::new("unknown resources");
        for unknown in UNKNOWN {
            let is_covered = self.is_covered(unknown);
            match self.read(unknown).await {
                Err(ReadError::NotFound) => {}
                // A reference that a template can expand to may be invalid, or may exist.
                Err(ReadError::Invalid(_)) | Ok(_) if is_covered => {}
                Ok(_) => check.bad(format!(
                    "read of {} gave contents, although it is not listed and no template covers it; expected `not-found`",
                    shown(unknown)
                )),
                Err(error) => {
                    check.unexpected(&format!("read of {}", shown(unknown)), &error, "the error `not-found`");
                }
            }
        }
        self.found(check.finding("answered with `not-found`"));
    }

    async fn check_mount_itself(&mut self) {
        let mut check = Check::new("the mount itself");
        let outcome = match self.read("").await {
            Ok(reading) => {
                if let Err(error) = self.checked(&Read { reference: String::new() }, reading) {
                    check.bad(error.to_string());
                }
                "contents"
            }
            Err(ReadError::NotFound) => "`not-found`",
            Err(ReadError::Denied { .. }) => "`denied`",
            Err(ReadError::Unavailable(_) | ReadError::ProviderUnavailable(_)) => "`unavailable`",
            Err(error) => {
                check.unexpected("read of \"\"", &error, "contents, or `not-found`");
                ""
            }
        };
        self.found(check.finding(format!("read of \"\" gives {outcome}")));
    }

    async fn check_odd_references(&mut self) {
        let mut check = Check::new("odd references");
        let long = "x".repeat(reference::MAX_URI - self.mount.base().len());
        let mut odd: Vec<String> = ODD.iter().map(|odd| (*odd).to_owned()).chain([long]).collect();
        // The templates, with unlikely values.
        for template in &self.templates {
            let literal = template.template.split('{').next().unwrap_or_default();
            odd.extend(ODD.iter().take(4).map(|odd| format!("{literal}{odd}")));
        }
        odd.retain(|odd| reference::check(odd).is_ok());
        odd.truncate(100);
        let count = odd.len();
        for odd in odd {
            if let Err(error) = self.read(&odd).await
                && is_crash(&error)
            {
                check.bad(format!(
                    "read of {} ended with `{}` ({error}); expected contents or an error of the interface",
                    shown(&odd),
                    error.kind()
                ));
            }
        }
        self.found(check.finding(format!("{count} read without a trap")));
    }
}
