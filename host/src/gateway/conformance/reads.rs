//! Reads: that what is listed can be read, that what is not there is not found, and that no reference breaks the provider.

use super::{Check, NEEDS, Probe, is_crash, shown};
use crate::catalog::listing::{meta, mime_type};
use crate::gateway::check;
use crate::model::template::{Matcher, variables};
use crate::model::{Answer, Operation, ReadError, Reading, Resource, reference};

/// Listed resources that are read.
const READ: usize = 50;

/// References that lead nowhere.
const NOWHERE: [&str; 2] = ["belljar-conformance-there-is-no-such-thing", "belljar/conformance/there/is/none?q=1"];

/// Well formed references that nobody gives.
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

impl Probe<'_> {
    pub(super) async fn reads(&mut self) {
        self.reads_what_is_listed().await;
        self.finds_nothing_elsewhere().await;
        self.reads_itself().await;
        self.survives_odd_references().await;
    }

    async fn read(&mut self, reference: &str) -> Result<Reading, ReadError> {
        match self.ask(Operation::Read { reference: reference.to_owned() }).await? {
            Answer::Reading(reading) => Ok(reading),
            _ => Err(Answer::to_another()),
        }
    }

    async fn reads_what_is_listed(&mut self) {
        let mut check = Check::new("listed resources");
        let is_readable = |entry: &&Resource| reference::check(&entry.reference).is_ok();
        let readable: Vec<Resource> = self.resources.iter().filter(is_readable).cloned().collect();
        // The first ones, the last one, and some in between.
        let step = readable.len().div_ceil(READ).max(1);
        let mut picked: Vec<&Resource> = readable.iter().step_by(step).collect();
        picked.extend(readable.last().filter(|last| picked.last() != Some(last)));
        let (mut read, mut denied) = (0, 0);
        for entry in &picked {
            let name = shown(&entry.reference);
            match self.read(&entry.reference).await {
                Ok(reading) => {
                    read += 1;
                    self.contents(reading, entry, &mut check);
                }
                Err(ReadError::Denied { .. }) => denied += 1,
                Err(error @ (ReadError::Unavailable(_) | ReadError::Down(_))) => {
                    check.warn(format!("read of {name}: {error}"))
                }
                Err(error) => check.bad(format!(
                    "{name} is listed, and reading it ended with `{}` ({error}); expected contents",
                    error.kind()
                )),
            }
        }
        if denied > 0 {
            check.skip(format!("each of {denied} of {} {NEEDS}", picked.len()));
        }
        if picked.is_empty() {
            check.skip("nothing is listed".to_owned());
        }
        self.found(
            check.finding(format!("{read} of {} read, with contents as they were listed", self.resources.len())),
        );
    }

    /// Judges what reading `entry` gave.
    fn contents(&self, reading: Reading, entry: &Resource, check: &mut Check) {
        let name = shown(&entry.reference);
        for contents in &reading.contents {
            if contents.mime_type != mime_type(contents.mime_type.clone()) {
                check.bad(format!("the mime-type of the contents of {name} is not one of RFC 6838, and is left out"));
            }
            if contents.meta != meta(contents.meta.clone()) {
                check.bad(format!("the meta of the contents of {name} breaks a rule, and is left out in part"));
            }
        }
        if let [only] = reading.contents.as_slice() {
            let (listed, given) = (entry.mime_type.as_deref(), only.mime_type.as_deref());
            if listed.is_some() && given.is_some() && listed != given {
                check.warn(format!("{name} is listed as {listed:?} and read as {given:?}"));
            }
            let given = only.body.len() as u64;
            if let Some(listed) = entry.size.filter(|listed| *listed != given) {
                check.warn(format!("{name} is listed with {listed} bytes and read with {given}"));
            }
        }
        if let Err(error) = check::reading(reading, &entry.reference, self.mount, &self.snapshot) {
            check.bad(error.to_string());
        }
    }

    /// Whether a template could have made `reference`.
    pub(super) fn is_covered(&self, reference: &str) -> bool {
        self.templates.iter().any(|entry| {
            let names = variables(&entry.template);
            let matches =
                |name: &&str| Matcher::new(&entry.template, name, &[]).is_some_and(|m| m.value(reference).is_some());
            names.iter().any(matches)
        })
    }

    async fn finds_nothing_elsewhere(&mut self) {
        let mut check = Check::new("unknown resources");
        for nowhere in NOWHERE {
            let is_covered = self.is_covered(nowhere);
            match self.read(nowhere).await {
                Err(ReadError::NotFound) => {}
                // Whatever a template can make may be malformed, or be there.
                Err(ReadError::Invalid(_)) | Ok(_) if is_covered => {}
                Ok(_) => check.bad(format!(
                    "read of {}, which is neither listed nor made by a template, gave contents; expected `not-found`",
                    shown(nowhere)
                )),
                Err(error) => {
                    check.unexpected(&format!("read of {}", shown(nowhere)), Err(error), "the error `not-found`");
                }
            }
        }
        self.found(check.finding("answered with `not-found`"));
    }

    async fn reads_itself(&mut self) {
        let mut check = Check::new("the mount itself");
        let said = match self.read("").await {
            Ok(reading) => {
                if let Err(error) = check::reading(reading, "", self.mount, &self.snapshot) {
                    check.bad(error.to_string());
                }
                "contents"
            }
            Err(ReadError::NotFound) => "`not-found`",
            Err(ReadError::Denied { .. }) => "`denied`",
            Err(ReadError::Unavailable(_) | ReadError::Down(_)) => "`unavailable`",
            Err(error) => {
                check.unexpected("read of \"\"", Err(error), "contents, or `not-found`");
                ""
            }
        };
        self.found(check.finding(format!("read of \"\" gives {said}")));
    }

    async fn survives_odd_references(&mut self) {
        let mut check = Check::new("odd references");
        let long = "x".repeat(reference::MAX_URI - self.mount.base.len());
        let mut odd: Vec<String> = ODD.iter().map(|odd| (*odd).to_owned()).chain([long]).collect();
        // What the templates make of values that nobody has.
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
