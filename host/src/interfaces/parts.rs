//! `parts`, an optional interface: reads a range of a resource, and lists the resources below a reference.

pub(super) mod conformance;
mod window;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::fields::ENTRY_CHARGE;
use super::function::{Function, MountContext, ReplyLimits, Returned};
use super::generated::parts as generated;
use super::paging::MAX_CURSOR;
use super::resources::{EntryPage, ListResources, check_reading, reading_bytes, redact_reading};
use crate::grants::secrets::Redactor;
use crate::model::part::{Part, Positions, Range, Unit};
use crate::model::{Body, Page, ReadError, Reading, text};
use crate::policy::Action;

/// The name of the interface in `wit/`.
pub(super) const NAME: &str = "parts";

/// The indices of the interface's functions in a component.
pub(super) type PartIndices = generated::GuestIndices;

/// Bytes of a result that are kept free for names, types and `_meta`.
const ENVELOPE: u64 = 16 << 10;

/// `read-part`. The host calls it in place of `read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPart {
    /// The reference that was asked for, with its range.
    asked: String,
    /// The same without the range: a checked relative reference.
    reference: String,
    /// The range.
    range: Option<Range>,
    /// Bytes that the contents may have.
    most: u64,
    /// Positions that are read before and after the range, because a secret may lie across its ends.
    margin: u64,
}

/// The unchecked reply to [`ReadPart`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartReply {
    reading: Reading,
    /// The position of the contents.
    extent: Option<Part>,
    /// The margin of the request.
    margin: u64,
}

impl ReadPart {
    /// A read of a checked reference whose query may have a range.
    ///
    /// # Errors
    /// [`ReadError::BadUri`] for a malformed range.
    pub fn new(reference: &str) -> Result<Self, ReadError> {
        let (rest, range) = Range::split(reference).map_err(|why| ReadError::BadUri(format!("the URI {why}")))?;
        Ok(Self { asked: reference.to_owned(), reference: rest.into_owned(), range, most: 0, margin: 0 })
    }
}

impl Function for ReadPart {
    type Indices = PartIndices;
    type Reply = PartReply;
    type Checked = Reading;
    const NAME: &'static str = "read-part";
    const ACTION: Action = Action::Read;

    fn input(&self) -> Option<Vec<&str>> {
        Some(vec![&self.asked])
    }

    fn shown(&self) -> Option<&str> {
        Some(&self.asked)
    }

    fn reference(&self) -> Option<&str> {
        Some(&self.asked)
    }

    fn prepare(&mut self, ReplyLimits { result, longest_secret }: ReplyLimits) {
        self.margin = longest_secret as u64;
        let room = result.saturating_sub(ENVELOPE.min(result / 2));
        self.most = room.saturating_sub(self.margin.saturating_mul(2)).max(1);
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &PartIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<PartReply> {
        let guest = indices.load(&mut *store, instance)?;
        let range = self.range.map(|range| window::widened(range, self.margin).into());
        // The margins are read beside the range.
        let most = self.most.saturating_add(self.margin.saturating_mul(2));
        let mut reply = guest.call_read_part(&mut *store, &self.reference, range, most).await?;
        let mut margin = self.margin;
        if margin > 0 && reply.as_ref().is_ok_and(window::has_rows) {
            // Rows are not the lines of the text, and a secret does not lie across them.
            let exact = self.range.map(Into::into);
            (reply, margin) = (guest.call_read_part(store, &self.reference, exact, self.most).await?, 0);
        }
        Ok(reply.map_err(Into::into).map(|reply| {
            let extent = reply.extent.map(|extent| Part { requested: self.range, ..extent.into() });
            let reading = Reading {
                contents: reply.contents.into_iter().map(Into::into).collect(),
                fresh_for: reply.fresh_for.map(|ms| Duration::from_millis(ms.into())),
                part: None,
            };
            PartReply { reading, extent, margin }
        }))
    }

    fn bytes(reply: &PartReply) -> usize {
        reading_bytes(&reply.reading)
    }

    fn bodies_mut(reply: &mut PartReply) -> Vec<&mut Body> {
        reply.reading.bodies_mut()
    }

    /// Masks the secrets, also those that lie across an end of the range; then cuts the margins off.
    fn redact(reply: &mut PartReply, redactor: Option<&Redactor>) {
        redact_reading(&mut reply.reading, redactor);
        if let (Some(extent), 1..) = (&mut reply.extent, reply.margin)
            && let [one] = reply.reading.contents.as_mut_slice()
        {
            window::cut(&mut one.body, extent, reply.margin);
        }
    }

    /// Checks the contents as those of a read, and the position of a part.
    fn check(
        &self,
        PartReply { reading, extent, margin }: PartReply,
        names: &dyn MountContext,
    ) -> Result<Reading, ReadError> {
        let is_same = |given: &str| given == self.reference;
        let itself: Vec<bool> = reading.contents.iter().map(|one| is_same(&one.reference)).collect();
        let mut reading = check_reading(reading, &self.reference, names)?;
        let Some(mut part) = extent else {
            return Ok(reading);
        };
        check_extent(&part, self.range)?;
        if itself != [true] {
            let why = "read-part gave a part; expected one content, with the requested reference".to_owned();
            return Err(ReadError::BadOutput(why));
        }
        match part.more && part.end == part.start {
            // The host cut everything off, because it was a margin.
            true if margin > 0 => {
                let why = "the lines are too long to be read one by one, because the mount holds secrets; read bytes";
                return Err(ReadError::Invalid(why.to_owned()));
            }
            true => {
                let why = format!("read-part gave an empty part at {}, and says that more follows", part.start);
                return Err(ReadError::BadOutput(why));
            }
            false => {}
        }
        part.more |= part.total.is_some_and(|total| part.end < total);
        let name = names.absolute(&self.asked);
        let name = name.map_err(|why| ReadError::BadOutput(format!("read-part gave contents, and {why}")))?;
        reading.contents.iter_mut().for_each(|one| one.reference.clone_from(&name));
        reading.part = Some(part);
        Ok(reading)
    }
}

/// Checks the position that a provider gave.
fn check_extent(part: &Part, requested: Option<Range>) -> Result<(), ReadError> {
    let Part { unit, start, end, total, more, .. } = *part;
    let bad = |why: String| Err(ReadError::BadOutput(format!("read-part gave an extent {why}")));
    if end < start || total.is_some_and(|total| total < end) {
        let total = total.map_or_else(|| "an unknown total".to_owned(), |total| format!("a total of {total}"));
        return bad(format!("from {start} to {end} with {total}; expected start <= end <= total"));
    }
    if let Some(requested) = requested.filter(|requested| requested.unit != unit) {
        return bad(format!("in {}; expected {}, as requested", unit.name(), requested.unit.name()));
    }
    if more && total == Some(end) {
        return bad(format!("that ends at the total, {end}, and says that more follows"));
    }
    Ok(())
}

/// `list-below`, from the start or from one of the provider's cursors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListBelow {
    /// A checked relative reference.
    pub reference: String,
    /// The provider's own cursor, unchanged.
    pub cursor: Option<String>,
}

impl Function for ListBelow {
    type Indices = PartIndices;
    type Reply = Page;
    /// The unchecked entries. Each is checked when it is served.
    type Checked = EntryPage<crate::model::Resource>;
    const NAME: &'static str = "list-below";
    const ACTION: Action = Action::List;

    fn input(&self) -> Option<Vec<&str>> {
        Some([self.reference.as_str()].into_iter().chain(self.cursor.as_deref()).collect())
    }

    fn shown(&self) -> Option<&str> {
        Some(&self.reference)
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &PartIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Page> {
        let guest = indices.load(&mut *store, instance)?;
        let page = guest.call_list_below(store, &self.reference, self.cursor.as_deref()).await?;
        Ok(page.map_err(Into::into).map(|page| Page {
            resources: page.resources.into_iter().map(Into::into).collect(),
            next: page.next_cursor,
        }))
    }

    fn bytes(page: &Page) -> usize {
        ENTRY_CHARGE + ListResources::bytes(page)
    }

    fn redact(page: &mut Page, redactor: Option<&Redactor>) {
        ListResources::redact(page, redactor);
    }

    /// Checks that each entry is below the reference, and that the cursor leads on.
    fn check(&self, page: Page, _: &dyn MountContext) -> Result<Self::Checked, ReadError> {
        let below = self.reference.trim_end_matches('/');
        let is_below = |given: &str| match below {
            "" => !given.is_empty(),
            below => given.strip_prefix(below).is_some_and(|rest| rest.starts_with(['/', '?']) && rest.len() > 1),
        };
        if let Some(other) = page.resources.iter().find(|entry| !is_below(&entry.reference)) {
            return Err(ReadError::BadOutput(format!(
                "list-below of {} gave the entry {}; expected entries below it",
                text::quoted(&self.reference, 100),
                text::quoted(&other.reference, 100)
            )));
        }
        if let Some(next) = &page.next {
            let bad = |why: String| Err(ReadError::BadOutput(format!("list-below gave {why}")));
            if next.len() > MAX_CURSOR {
                return bad(format!("a cursor of {} bytes; the limit is {MAX_CURSOR}", next.len()));
            }
            if self.cursor.as_ref() == Some(next) {
                return bad("back the cursor that it was given".to_owned());
            }
        }
        Ok((page.resources, page.next))
    }
}

impl From<Range> for generated::Range {
    fn from(Range { unit, positions }: Range) -> Self {
        let positions = match positions {
            Positions::Span { start, end } => generated::Positions::Span(generated::Span { start, end }),
            Positions::Last(count) => generated::Positions::Last(count),
        };
        let unit = match unit {
            Unit::Bytes => generated::Unit::Bytes,
            Unit::Lines => generated::Unit::Lines,
        };
        Self { unit, positions }
    }
}

impl From<generated::Extent> for Part {
    fn from(generated::Extent { unit, start, end, total, more }: generated::Extent) -> Self {
        let unit = match unit {
            generated::Unit::Bytes => Unit::Bytes,
            generated::Unit::Lines => Unit::Lines,
        };
        Self { unit, start, end, total, more, requested: None }
    }
}

#[cfg(test)]
mod tests;
