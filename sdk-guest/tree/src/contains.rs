//! Search for a text without regard to case.

use memchr::memchr2_iter;

/// True if a text contains `word`, ignoring case. `word` is in lower case.
pub fn contains(text: &str, word: &str) -> bool {
    if !word.is_ascii() {
        return text.to_lowercase().contains(word);
    }
    // Does not lower the text: that would take several times as long. Other letters never have the bytes of ASCII.
    let (word, Some(first)) = (word.as_bytes(), word.bytes().next()) else { return true };
    memchr2_iter(first, first.to_ascii_uppercase(), text.as_bytes())
        .filter_map(|at| text.as_bytes().get(at..at + word.len()))
        .any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn case_is_ignored_in_every_script() {
        for (text, word) in [("Disk FULL", "full"), ("x", ""), ("", ""), ("GRÜN", "grün"), ("naïve Full", "full")] {
            assert!(contains(text, word), "{text} {word}");
        }
        for (text, word) in [("Disk", "disks"), ("", "x"), ("grun", "grün"), ("ful", "full")] {
            assert!(!contains(text, word), "{text} {word}");
        }
    }
}
