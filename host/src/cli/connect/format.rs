//! The forms of the clients' files. Each can find, set and remove one server, and keeps all other bytes.

use serde_json::Value;

use super::entry::Node;
use super::format_error::FormatError;
use super::{json, toml, yaml};

/// The form of a client's file.
#[derive(Clone, Copy)]
pub(super) enum Format {
    /// JSON, with comments.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

impl Format {
    /// The server `name` in the table `section`, as JSON. `None` if it is not there.
    ///
    /// # Errors
    /// If the text is malformed, or the table is none.
    pub(super) fn get(self, text: Option<&str>, section: &str, name: &str) -> Result<Option<Value>, FormatError> {
        let text = text.unwrap_or_default();
        match self {
            Self::Json => json::get(text, section, name),
            Self::Toml => toml::get(text, section, name),
            Self::Yaml => yaml::get(text, section, name),
        }
    }

    /// The text with this server. `None`: there is no file yet.
    ///
    /// # Errors
    /// If the text is malformed, or the table is none that can be edited.
    pub(super) fn set(
        self,
        text: Option<&str>,
        section: &str,
        name: &str,
        server: &Node,
    ) -> Result<String, FormatError> {
        let text = text.unwrap_or_default();
        match self {
            Self::Json => json::set(text, section, name, server),
            Self::Toml => toml::set(text, section, name, server),
            Self::Yaml => yaml::set(text, section, name, server),
        }
    }

    /// The text without this server.
    ///
    /// # Errors
    /// If the text is malformed, or the table is none that can be edited.
    pub(super) fn remove(self, text: &str, section: &str, name: &str) -> Result<String, FormatError> {
        match self {
            Self::Json => json::remove(text, section, name),
            Self::Toml => toml::remove(text, section, name),
            Self::Yaml => yaml::remove(text, section, name),
        }
    }
}
