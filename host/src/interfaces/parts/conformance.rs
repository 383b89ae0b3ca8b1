//! The conformance checks of `parts`.

use super::{ListBelow, ReadPart};
use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun, shown};
use crate::model::part::{Positions, Range, Unit};
use crate::model::{Body, ReadError, Reading, reference};

/// The number of listed resources that are read in parts.
const RESOURCES: usize = 3;

/// Bytes of the first part.
const FIRST: u64 = 64;

/// A reference without a resource.
const UNKNOWN: &str = "belljar-conformance-there-is-no-such-thing";

/// Runs the checks of this interface.
pub(in crate::interfaces) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    run.check_read_part().await;
    run.check_list_below().await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_read_part(&mut self) {
        let mut check = Check::new("read-part");
        let listed = self.resources.iter().map(|entry| &entry.reference).filter(|name| reference::check(name).is_ok());
        let names: Vec<String> = listed.take(RESOURCES).cloned().collect();
        let mut compared = 0;
        for name in &names {
            let Some(Ok(whole)) = self.part(name, None, &mut check).await else { continue };
            let range = Range { unit: Unit::Bytes, positions: Positions::Span { start: 0, end: Some(FIRST) } };
            let first = match self.part(name, Some(range), &mut check).await {
                Some(Ok(first)) => first,
                // A provider may read in lines only.
                Some(Err(ReadError::Invalid(_))) | None => continue,
                Some(Err(error)) => {
                    check.bad(format!("the first {FIRST} bytes of {}: {error}", shown(name)));
                    continue;
                }
            };
            compared += 1;
            if first.part.is_some() && !begins_with(&whole, &first) {
                check.bad(format!("{} does not begin with its first {FIRST} bytes", shown(name)));
            }
        }
        let unknown = self.part(UNKNOWN, None, &mut check).await;
        if matches!(unknown, Some(Ok(_))) && !self.is_covered(UNKNOWN) {
            check.bad(format!("{} does not exist, but was read; expected `not-found`", shown(UNKNOWN)));
        }
        self.found(check.finding(format!("the beginnings of {compared} of {} resources", names.len())));
    }

    /// Reads a part and checks it. `None` if the reply breaks a rule, which `check` then has.
    async fn part(
        &mut self,
        name: &str,
        range: Option<Range>,
        check: &mut Check,
    ) -> Option<Result<Reading, ReadError>> {
        let asked = range.map_or_else(|| name.to_owned(), |range| range.of(name));
        let function = ReadPart::new(&asked).ok()?;
        match self.call(function.clone()).await {
            Ok(reply) => match self.checked(&function, reply) {
                Ok(reading) => Some(Ok(reading)),
                Err(error) => {
                    check.bad(format!("{}: {error}", shown(&asked)));
                    None
                }
            },
            Err(error) => Some(Err(error)),
        }
    }

    async fn check_list_below(&mut self) {
        let mut check = Check::new("list-below");
        let mut count = 0;
        let function = ListBelow { reference: String::new(), cursor: None };
        match self.call(function.clone()).await {
            Ok(page) => match self.checked(&function, page) {
                Ok((entries, _)) => count = entries.len(),
                Err(error) => check.bad(error.to_string()),
            },
            Err(ReadError::NotFound) => {}
            Err(error) => check.unexpected("list-below of the mount", &error, "a page, or `not-found`"),
        }
        let missing = ListBelow { reference: format!("{UNKNOWN}/"), cursor: None };
        match self.call(missing).await {
            Err(ReadError::NotFound) => {}
            Ok(page) if page.resources.is_empty() => {}
            Ok(_) => check.bad(format!("{} has entries; expected `not-found`", shown(UNKNOWN))),
            Err(error) => check.unexpected("list-below of an unknown directory", &error, "`not-found`"),
        }
        self.found(check.finding(format!("{count} entries below the mount")));
    }
}

/// True if the first content of `whole` begins with that of `first`.
fn begins_with(whole: &Reading, first: &Reading) -> bool {
    let bytes = |reading: &Reading| match reading.contents.first().map(|one| one.body.clone()) {
        Some(Body::Text(text)) => text.into_bytes(),
        Some(Body::Blob(bytes)) => bytes,
        None => Vec::new(),
    };
    bytes(whole).starts_with(&bytes(first))
}
