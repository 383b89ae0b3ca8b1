//! The generated trait of parts, and the types of its interface.

use super::super::Exported;
use super::super::parts::exports::belljar::provider::parts as wit;
use super::{into_all, milliseconds, wit as types};
use crate::provider::call;
use crate::{Extent, Page, PartialReading, Parts, Positions, Range, Unit};

impl<P: Parts> wit::Guest for Exported<P> {
    fn read_part(
        reference: String,
        range: Option<wit::Range>,
        most: u64,
    ) -> Result<wit::PartialReading, types::ProviderError> {
        let range = range.map(Into::into);
        let PartialReading { contents, fresh_for, extent } =
            call(|provider: &P| provider.read_part(&reference, range, most))?;
        Ok(wit::PartialReading {
            contents: into_all(contents),
            fresh_for: fresh_for.map(milliseconds),
            extent: extent.map(Into::into),
        })
    }

    fn list_below(reference: String, cursor: Option<String>) -> Result<wit::BelowPage, types::ProviderError> {
        let Page { resources, next_cursor } = call(|provider: &P| provider.list_below(&reference, cursor.as_deref()))?;
        Ok(wit::BelowPage { resources: into_all(resources), next_cursor })
    }
}

impl From<wit::Range> for Range {
    fn from(wit::Range { unit, positions }: wit::Range) -> Self {
        let positions = match positions {
            wit::Positions::Span(wit::Span { start, end }) => Positions::Span { start, end },
            wit::Positions::Last(count) => Positions::Last(count),
        };
        let unit = match unit {
            wit::Unit::Bytes => Unit::Bytes,
            wit::Unit::Lines => Unit::Lines,
        };
        Range { unit, positions }
    }
}

impl From<Extent> for wit::Extent {
    fn from(Extent { unit, start, end, total, more }: Extent) -> Self {
        let unit = match unit {
            Unit::Bytes => wit::Unit::Bytes,
            Unit::Lines => wit::Unit::Lines,
        };
        wit::Extent { unit, start, end, total, more }
    }
}
