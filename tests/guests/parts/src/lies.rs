//! Parts and lists that break the rules of the interface. The name of a lie is the reference below `lies/`.

use belljar_guest::{Contents, Error, Extent, Page, PartialReading, Range, Reading, Resource, Result, Unit};

use crate::{directory, text};

/// A part that lies. Each has a body of five bytes if it says nothing else.
pub(crate) fn part(reference: &str, lie: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
    let hello = || text(reference, "hello");
    let bytes = |start, end, total| Extent::new(Unit::Bytes, start, end, total);
    let part = |extent| Ok(PartialReading::part(hello(), extent));
    match lie {
        "end-before-start" => part(bytes(100, 5, 1000)),
        "end-after-total" => part(bytes(0, 5, 3)),
        // More positions than the body has bytes, and fewer.
        "longer-than-body" => part(bytes(0, 1000, 5000)),
        "shorter-than-body" => part(bytes(0, 2, 5000)),
        // The next part begins where this one does.
        "no-progress" => {
            let mut extent = bytes(0, 0, 1000);
            extent.more = true;
            Ok(PartialReading::part(text(reference, ""), extent))
        }
        "more-at-the-end" => {
            let mut extent = bytes(0, 5, 5);
            extent.more = true;
            part(extent)
        }
        "no-more-before-the-end" => {
            let mut extent = bytes(0, 5, 1000);
            extent.more = false;
            part(extent)
        }
        "far" => part(bytes(1 << 40, (1 << 40) + 5, 1 << 50)),
        "largest" => part(bytes(u64::MAX - 5, u64::MAX, u64::MAX)),
        "other-unit" => {
            let unit = match range.map(|range| range.unit) {
                Some(Unit::Lines) => Unit::Bytes,
                _ => Unit::Lines,
            };
            part(Extent::new(unit, 0, 5, 1000))
        }
        // A whole resource, although a range was asked for.
        "whole" => Ok(hello().into()),
        "more-than-most" => {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let long = text(reference, "x".repeat(most.saturating_add(1)));
            Ok(PartialReading::part(long, bytes(0, most as u64 + 1, u64::MAX)))
        }
        "whole-more-than-most" => {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            Ok(text(reference, "x".repeat(most.saturating_add(1))).into())
        }
        "other-reference" => Ok(PartialReading::part(text("small.txt", "hello"), bytes(0, 5, 10))),
        "reference-below" => Ok(PartialReading::part(text(&format!("{reference}/x"), "hello"), bytes(0, 5, 10))),
        "reference-outside" => Ok(PartialReading::part(text("../x", "hello"), bytes(0, 5, 10))),
        "two-contents" => {
            let mut reading = PartialReading::part(hello(), bytes(0, 5, 10));
            reading.contents.push(text(&format!("{reference}/x"), "more"));
            Ok(reading)
        }
        "no-contents" => {
            let mut reading = PartialReading::part(hello(), bytes(0, 5, 10));
            reading.contents.clear();
            Ok(reading)
        }
        "nothing" => Ok(PartialReading::whole(Reading::new(Vec::<Contents>::new()))),
        "trap" => std::process::abort(),
        _ => Err(Error::NotFound),
    }
}

/// A list below a reference that lies.
pub(crate) fn below(lie: &str, cursor: Option<&str>) -> Result<Page> {
    let one = |reference: &str| Ok(Page::new([Resource::new(reference)]));
    let at: u64 = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    match lie {
        "elsewhere" => one("small.txt"),
        "outside" => one("../secret"),
        "itself" => Ok(Page::new([directory("lies/itself/")])),
        "deeper" => one("lies/deeper/a/b/c"),
        "twice" => Ok(Page::new(["lies/twice/x", "lies/twice/x", "lies/twice/%78"].map(Resource::new))),
        "no-slash" => Ok(Page::new([directory("lies/no-slash/x")])),
        "no-type" => one("lies/no-type/x/"),
        "long-cursor" => Ok(Page::new([Resource::new("lies/long-cursor/x")]).next_cursor("x".repeat(5000))),
        "same-cursor" => Ok(Page::new([Resource::new("lies/same-cursor/x")]).next_cursor("same")),
        "endless" => Ok(Page::new([Resource::new(format!("lies/endless/{at}"))]).next_cursor((at + 1).to_string())),
        "endless-empty" => Ok(Page::default().next_cursor((at + 1).to_string())),
        "huge" => Ok(Page::new((0..1_000_000).map(|n| Resource::new(format!("lies/huge/{n}"))))),
        "trap" => std::process::abort(),
        _ => Err(Error::NotFound),
    }
}
