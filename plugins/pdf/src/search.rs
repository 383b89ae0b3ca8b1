//! Finds words in the text of a page, without regard to case, and cuts excerpts.

/// The characters of an excerpt before and after the words.
const AROUND: usize = 60;

/// The words that a search looks for, in the form in which they are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(String);

impl Words {
    /// `None` if there are no words.
    pub(crate) fn new(text: &str) -> Option<Words> {
        let folded = Folded::new(text).folded;
        (!folded.is_empty()).then_some(Words(folded))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text with single spaces, and the same in lower case.
struct Folded {
    flat: String,
    folded: String,
    /// The place in `flat` of each byte in `folded`.
    places: Vec<usize>,
}

impl Folded {
    fn new(text: &str) -> Folded {
        let mut made = Folded { flat: String::new(), folded: String::new(), places: Vec::new() };
        for (at, word) in text.split_whitespace().enumerate() {
            if at > 0 {
                made.push(' ');
            }
            word.chars().for_each(|c| made.push(c));
        }
        made
    }

    fn push(&mut self, c: char) {
        let at = self.flat.len();
        self.flat.push(c);
        self.folded.extend(c.to_lowercase());
        self.places.resize(self.folded.len(), at);
    }
}

/// The excerpts of `text` around the words, at most `most`, and the number of all places.
pub(crate) fn excerpts(text: &str, words: &Words, most: usize) -> (Vec<String>, usize) {
    let folded = Folded::new(text);
    let mut found = Vec::new();
    let mut count = 0;
    for (at, _) in folded.folded.match_indices(&words.0) {
        count += 1;
        if found.len() < most {
            let place = |at: usize| folded.places.get(at).copied().unwrap_or(folded.flat.len());
            found.push(excerpt(&folded.flat, place(at), place(at + words.0.len())));
        }
    }
    (found, count)
}

fn excerpt(text: &str, start: usize, end: usize) -> String {
    let (before, after) = (text.get(..start).unwrap_or_default(), text.get(end..).unwrap_or_default());
    let from = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let to = after.char_indices().nth(AROUND).map_or(text.len(), |(at, _)| end + at);
    let (left, right) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    format!("{left}{}{right}", text.get(from..to).unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_across_lines_and_in_any_case() {
        let words = Words::new(" große  STRASSE ").unwrap();
        let (found, count) = excerpts("Die Große\nStraße und die GROSSE Straße.", &Words::new("straße").unwrap(), 1);
        assert_eq!((found, count), (vec!["Die Große Straße und die GROSSE Straße.".to_owned()], 2));
        assert_eq!(excerpts("Die GROßE\n strasse", &words, 5).1, 1);
        assert_eq!(Words::new(" \n"), None);
        let long = format!("{} needle {}", "ä".repeat(200), "ö".repeat(200));
        let (found, _) = excerpts(&long, &Words::new("needle").unwrap(), 5);
        assert_eq!(found, [format!("…{} needle {}…", "ä".repeat(59), "ö".repeat(59))]);
        // A letter whose lower case is longer keeps the places right.
        assert_eq!(excerpts("İİ x needle", &Words::new("NEEDLE").unwrap(), 5).0, ["İİ x needle"]);
    }
}
