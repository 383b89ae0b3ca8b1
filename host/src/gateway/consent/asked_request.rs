//! The request for which a person is asked.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::text;

/// The most characters of a URI, an origin or a path that a question shows.
pub(super) const MAX_SHOWN_CHARS: usize = 300;

/// The request for which a person is asked. An answer is for exactly this request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskedRequest<'a> {
    /// The read of a URI.
    Read(Cow<'a, str>),
    /// The call of a tool.
    Call {
        /// The public name of the tool.
        tool: Cow<'a, str>,
        /// The SHA-256 of the arguments.
        arguments: [u8; 32],
    },
    /// A prompt.
    Prompt {
        /// The public name of the prompt.
        prompt: Cow<'a, str>,
        /// The SHA-256 of the arguments.
        arguments: [u8; 32],
    },
}

impl<'a> AskedRequest<'a> {
    /// The read of `uri`.
    pub fn read(uri: &'a str) -> Self {
        Self::Read(Cow::Borrowed(uri))
    }

    /// The same request with texts of its own.
    pub fn into_owned(self) -> AskedRequest<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Read(uri) => AskedRequest::Read(own(uri)),
            Self::Call { tool, arguments } => AskedRequest::Call { tool: own(tool), arguments },
            Self::Prompt { prompt, arguments } => AskedRequest::Prompt { prompt: own(prompt), arguments },
        }
    }

    /// The URI, if this is a read.
    pub fn uri(&self) -> Option<&str> {
        match self {
            Self::Read(uri) => Some(uri),
            Self::Call { .. } | Self::Prompt { .. } => None,
        }
    }
}

impl fmt::Display for AskedRequest<'_> {
    /// `the read of "belljar://notes/a.md"`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, name) = match self {
            Self::Read(uri) => ("the read of", uri),
            Self::Call { tool, .. } => ("a call of the tool", tool),
            Self::Prompt { prompt, .. } => ("the prompt", prompt),
        };
        write!(f, "{what} {}", text::quoted(name, MAX_SHOWN_CHARS))
    }
}
