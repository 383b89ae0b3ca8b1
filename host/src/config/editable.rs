//! TOML text that a command edits. Comments, the order of keys, the byte order mark and the line ends stay.

use toml_edit::{DocumentMut, TomlError};

/// The text of a file, ready to be edited.
pub struct EditableToml {
    /// The parsed text.
    pub document: DocumentMut,
    has_mark: bool,
    has_crlf: bool,
}

/// The character that some editors write in front of the text.
const MARK: char = '\u{feff}';

impl EditableToml {
    /// Parses `source`.
    ///
    /// # Errors
    /// If it is not TOML.
    pub fn parse(source: &str) -> Result<Self, TomlError> {
        // The editing library keeps neither a byte order mark nor CRLF line ends, so both are restored at the end.
        let plain = source.strip_prefix(MARK);
        let document = plain.unwrap_or(source).parse()?;
        Ok(Self { document, has_mark: plain.is_some(), has_crlf: source.contains("\r\n") })
    }

    /// The edited text.
    pub fn to_text(&self) -> String {
        let mut text = self.document.to_string();
        if self.has_crlf {
            text = text.replace("\r\n", "\n").replace('\n', "\r\n");
        }
        if self.has_mark {
            text.insert(0, MARK);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unedited_text_stays_as_it_is() {
        for text in ["", "a = 1\n", "# b\r\na = 1 # c\r\n\r\n", "\u{feff}a = 'x'\n", "\u{feff}\r\n[[b]]\r\na = 1\r\n"] {
            assert_eq!(EditableToml::parse(text).unwrap().to_text(), text);
        }
        assert!(EditableToml::parse("a = ").is_err());
    }

    #[test]
    fn new_lines_end_as_the_others_do() {
        let mut text = EditableToml::parse("\u{feff}a = 1\r\n").unwrap();
        text.document.insert("b", toml_edit::value(2));
        assert_eq!(text.to_text(), "\u{feff}a = 1\r\nb = 2\r\n");
    }
}
