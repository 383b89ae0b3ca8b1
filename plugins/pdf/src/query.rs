//! Parses references: the path of a file, followed by pages, images, facts or an attachment.

use belljar_guest::{Error, Result, reference};
use belljar_tree::{Meta, Tree};

use crate::search::Words;

/// The part of a document that a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The text of the first pages.
    Text,
    /// The text of pages, counted from 1, both ends included.
    Pages(usize, usize),
    /// The images of a page, as a list.
    Images(usize),
    /// Page and image, both counted from 1.
    Image(usize, usize),
    /// Facts, outline and attachments.
    Info,
    /// An attached file.
    Attachment(String),
}

/// A document and the part of it that a reference names.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) meta: Meta,
    pub(crate) part: Part,
}

/// The order of text on a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Reading order: column by column, each from top to bottom.
    #[default]
    Reading,
    /// The order in the document.
    Written,
    /// From the top to the bottom of the page, across columns.
    Position,
}

/// The format of `info`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Markdown,
    Json,
}

/// The parsed query component of a reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) order: Order,
    pub(crate) format: Format,
    /// The words to search for.
    pub(crate) search: Option<Words>,
}

/// True if a file of this name is served.
pub(crate) fn is_served(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && extension.eq_ignore_ascii_case("pdf"))
}

impl Place {
    /// The place that `encoded` names: a reference without its query component.
    pub(crate) fn find(tree: &Tree, encoded: &str) -> Result<Place> {
        let (path, meta, inside) = tree.find(encoded, is_served)?;
        Ok(Place { path, meta, part: Part::parse(&inside)? })
    }
}

impl Part {
    fn parse(inside: &[String]) -> Result<Part> {
        let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
        Ok(match inside.as_slice() {
            [] => Part::Text,
            ["info"] => Part::Info,
            ["pages", pages] => {
                let (first, last) = range(pages)?;
                Part::Pages(first, last)
            }
            ["pages", page, "images"] => Part::Images(number(page)?),
            ["pages", page, "images", image] => Part::Image(number(page)?, number(image)?),
            ["attachments", name] => Part::Attachment((*name).to_owned()),
            _ => return Err(Error::NotFound),
        })
    }
}

fn number(text: &str) -> Result<usize> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
        Error::invalid(format_args!("\"{text}\" is not a number of a page or an image: expected 1 or more"))
    })
}

/// `3`, `3-7`, `3-`.
fn range(text: &str) -> Result<(usize, usize)> {
    let wrong = || {
        Error::invalid(format_args!(
            "pages \"{text}\": expected a page or a range, such as 3, 3-7 or 3-, counted from 1"
        ))
    };
    let parse = |text: &str| text.parse::<usize>().ok().filter(|page| *page > 0);
    match text.split_once('-') {
        Some((first, "")) => parse(first).map(|first| (first, usize::MAX)),
        Some((first, last)) => parse(first).zip(parse(last)).filter(|(first, last)| first <= last),
        None => parse(text).map(|page| (page, page)),
    }
    .ok_or_else(wrong)
}

impl Query {
    pub(crate) fn parse(query: &str) -> Result<Query> {
        let mut wanted = Query::default();
        for (key, value) in reference::pairs(query) {
            match (reference::decode(key)?.as_str(), reference::decode(value)?.as_str()) {
                // A client that fills in a template may leave a variable empty.
                ("order" | "format" | "search", "") => {}
                ("search", words) => {
                    wanted.search = Some(Words::new(words).ok_or_else(|| {
                        Error::invalid(format_args!("search \"{words}\": expected words that occur in the document"))
                    })?);
                }
                ("order", "reading") => wanted.order = Order::Reading,
                ("order", "written") => wanted.order = Order::Written,
                ("order", "position") => wanted.order = Order::Position,
                ("order", other) => {
                    return Err(Error::invalid(format_args!(
                        "order \"{other}\": expected reading, written or position"
                    )));
                }
                ("format", "markdown") => wanted.format = Format::Markdown,
                ("format", "json") => wanted.format = Format::Json,
                ("format", other) => {
                    return Err(Error::invalid(format_args!("format \"{other}\": expected markdown or json")));
                }
                (other, _) => {
                    return Err(Error::invalid(format_args!(
                        "unknown parameter \"{other}\": expected \"order\", \"format\" or \"search\""
                    )));
                }
            }
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_a_part_of_a_document() {
        let of =
            |path: &str| Part::parse(&path.split('/').filter(|s| !s.is_empty()).map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of(""), Ok(Part::Text));
        assert_eq!(of("info"), Ok(Part::Info));
        assert_eq!(of("pages/3"), Ok(Part::Pages(3, 3)));
        assert_eq!(of("pages/3-7"), Ok(Part::Pages(3, 7)));
        assert_eq!(of("pages/3-"), Ok(Part::Pages(3, usize::MAX)));
        assert_eq!(of("pages/3/images"), Ok(Part::Images(3)));
        assert_eq!(of("pages/3/images/1"), Ok(Part::Image(3, 1)));
        assert_eq!(of("attachments/a.txt"), Ok(Part::Attachment("a.txt".into())));
        for wrong in ["pages/0", "pages/7-3", "pages/x", "pages/1-x", "pages/1/images/0", "pages/99999999999999999999"]
        {
            assert!(matches!(of(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
        for absent in ["page", "pages", "info/x", "pages/1/2", "attachments"] {
            assert_eq!(of(absent), Err(Error::NotFound), "{absent}");
        }
        assert!(is_served("A.PDF") && !is_served(".pdf") && !is_served("a.pdf.txt"));
    }

    #[test]
    fn parameters_are_parsed_or_refused() {
        assert_eq!(Query::parse("order=position&format=").unwrap().order, Order::Position);
        assert_eq!(Query::parse("search=Two%20words").unwrap().search, Words::new("two WORDS"));
        assert_eq!(Query::parse("search=").unwrap().search, None);
        for wrong in ["order=x", "format=xml", "page=1", "search=%20"] {
            assert!(matches!(Query::parse(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
    }
}
