//! Parses the texts of composite values: arrays, ranges, multiranges and records (PostgreSQL 8.15, 8.16, 8.17). `None` is a
//! text that no server writes.

/// The deepest nesting. PostgreSQL's arrays have six dimensions at most.
const MAX_DEPTH: usize = 16;

/// An element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Element {
    Null,
    Text(String),
    List(Vec<Element>),
}

/// A range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RangeText {
    Empty,
    /// The ends, `None` for infinite ones, and the brackets.
    Bounds(Option<String>, Option<String>, String),
}

/// A position in a text.
struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn skip(&mut self, expected: char) -> Option<()> {
        (self.take()? == expected).then_some(())
    }

    /// A text, in quotes or not, up to one of `ends`. The second value is true if it had quotes.
    fn text(&mut self, ends: &[char]) -> Option<(String, bool)> {
        let (mut text, mut is_quoted, mut inside) = (String::new(), false, false);
        loop {
            match self.peek() {
                None if inside => return None,
                None => return Some((text, is_quoted)),
                Some('"') => {
                    self.take();
                    // In records and ranges, a doubled quote is a quote.
                    if inside && self.peek() == Some('"') {
                        self.take();
                        text.push('"');
                    } else {
                        (inside, is_quoted) = (!inside, true);
                    }
                }
                Some('\\') => {
                    self.take();
                    text.push(self.take()?);
                }
                Some(end) if !inside && ends.contains(&end) => return Some((text, is_quoted)),
                Some(other) => {
                    self.take();
                    text.push(other);
                }
            }
        }
    }
}

/// The elements of an array whose type separates them by `delimiter`.
pub(crate) fn array(text: &str, delimiter: char) -> Option<Vec<Element>> {
    // An array that does not begin at 1 has its bounds before it: [0:1]={1,2}
    let text = if text.starts_with('[') { text.split_once('=')?.1 } else { text };
    let mut scanner = Scanner { rest: text };
    let list = list(&mut scanner, delimiter, 0)?;
    scanner.rest.is_empty().then_some(list)
}

fn list(scanner: &mut Scanner<'_>, delimiter: char, depth: usize) -> Option<Vec<Element>> {
    if depth > MAX_DEPTH {
        return None;
    }
    scanner.skip('{')?;
    let mut elements = Vec::new();
    if scanner.peek() == Some('}') {
        scanner.take();
        return Some(elements);
    }
    loop {
        elements.push(match scanner.peek()? {
            '{' => Element::List(list(scanner, delimiter, depth + 1)?),
            _ => match scanner.text(&[delimiter, '}'])? {
                (text, false) if text == "NULL" => Element::Null,
                (text, _) => Element::Text(text),
            },
        });
        match scanner.take()? {
            '}' => return Some(elements),
            next if next == delimiter => {}
            _ => return None,
        }
    }
}

/// The fields of a record.
pub(crate) fn record(text: &str) -> Option<Vec<Option<String>>> {
    let mut scanner = Scanner { rest: text };
    scanner.skip('(')?;
    let mut fields = Vec::new();
    if scanner.rest == ")" {
        return Some(fields);
    }
    loop {
        let (text, is_quoted) = scanner.text(&[',', ')'])?;
        fields.push(Some(text).filter(|text| is_quoted || !text.is_empty()));
        match scanner.take()? {
            ',' => {}
            ')' => return scanner.rest.is_empty().then_some(fields),
            _ => return None,
        }
    }
}

/// A range.
pub(crate) fn range(text: &str) -> Option<RangeText> {
    let mut scanner = Scanner { rest: text };
    let range = one_range(&mut scanner)?;
    scanner.rest.is_empty().then_some(range)
}

fn one_range(scanner: &mut Scanner<'_>) -> Option<RangeText> {
    if let Some(rest) = scanner.rest.strip_prefix("empty") {
        scanner.rest = rest;
        return Some(RangeText::Empty);
    }
    let first = scanner.take().filter(|c| matches!(c, '[' | '('))?;
    let bound = |(text, is_quoted): (String, bool)| Some(text).filter(|text| is_quoted || !text.is_empty());
    let lower = bound(scanner.text(&[','])?);
    scanner.skip(',')?;
    let upper = bound(scanner.text(&[']', ')'])?);
    let last = scanner.take().filter(|c| matches!(c, ']' | ')'))?;
    Some(RangeText::Bounds(lower, upper, format!("{first}{last}")))
}

/// The ranges of a multirange.
pub(crate) fn multirange(text: &str) -> Option<Vec<RangeText>> {
    let mut scanner = Scanner { rest: text };
    scanner.skip('{')?;
    let mut ranges = Vec::new();
    if scanner.rest == "}" {
        return Some(ranges);
    }
    loop {
        ranges.push(one_range(&mut scanner)?);
        match scanner.take()? {
            ',' => {}
            '}' => return scanner.rest.is_empty().then_some(ranges),
            _ => return None,
        }
    }
}

/// Writes an array: the elements in quotes, `None` as NULL.
pub(crate) fn write_array(elements: &[Option<String>]) -> String {
    let quoted = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let elements: Vec<String> =
        elements.iter().map(|element| element.as_ref().map_or_else(|| "NULL".to_owned(), quoted)).collect();
    format!("{{{}}}", elements.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Element {
        Element::Text(text.to_owned())
    }

    #[test]
    fn arrays_nest_and_have_nulls() {
        assert_eq!(array("{}", ','), Some(vec![]));
        assert_eq!(
            array("{1,NULL,\"NULL\",\"a\\\"b,}\\\\\"}", ','),
            Some(vec![text("1"), Element::Null, text("NULL"), text("a\"b,}\\")])
        );
        let pair = |a: &str, b: &str| Element::List(vec![text(a), text(b)]);
        assert_eq!(array("[0:1][2:3]={{1,2},{3,4}}", ','), Some(vec![pair("1", "2"), pair("3", "4")]));
        assert_eq!(array("{(1,1),(0,0);(2,2),(1,1)}", ';'), Some(vec![text("(1,1),(0,0)"), text("(2,2),(1,1)")]));
        for wrong in ["", "{", "{1", "{1,", "{1}x", "{\"a}", "1", "{\\", &"{".repeat(1000)] {
            assert_eq!(array(wrong, ','), None, "{wrong}");
        }
        let all = [Some("a\"\\,b".to_owned()), None, Some("NULL".to_owned())];
        assert_eq!(array(&write_array(&all), ','), Some(vec![text("a\"\\,b"), Element::Null, text("NULL")]));
    }

    #[test]
    fn records_tell_null_from_empty() {
        assert_eq!(
            record("(1,,\"\",\"a \"\"b\"\"\",\"c\\\\\")"),
            Some(vec![Some("1".into()), None, Some(String::new()), Some("a \"b\"".into()), Some("c\\".into())])
        );
        assert_eq!([record("()"), record("(1"), record("(1)2")], [Some(vec![]), None, None]);
    }

    #[test]
    fn ranges_have_ends_and_brackets() {
        let of = |a: Option<&str>, b: Option<&str>, ends: &str| {
            RangeText::Bounds(a.map(Into::into), b.map(Into::into), ends.into())
        };
        assert_eq!(range("[1,10)"), Some(of(Some("1"), Some("10"), "[)")));
        assert_eq!(range("(,)"), Some(of(None, None, "()")));
        assert_eq!(
            range("[\"2026-01-01 00:00:00+00\",\"\"]"),
            Some(of(Some("2026-01-01 00:00:00+00"), Some(""), "[]"))
        );
        assert_eq!(range("empty"), Some(RangeText::Empty));
        assert_eq!(
            multirange("{[1,3),[5,8)}"),
            Some(vec![of(Some("1"), Some("3"), "[)"), of(Some("5"), Some("8"), "[)")])
        );
        assert_eq!([multirange("{}"), multirange("{[1,2)"), multirange("[1,2)")], [Some(vec![]), None, None]);
        assert_eq!([range("[1,10"), range("1,2"), range("[1]")], [const { None }; 3]);
    }
}
