//! The syntax errors of references, bases and templates.

/// The rule that a reference, a base or a template breaks. `Display` continues a sentence that begins with the name,
/// and says the cure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// A reference or a template has more than [`MAX_URI`](super::MAX_URI) bytes.
    #[error("is longer than 2048 bytes")]
    TooLong,
    /// A base has more than half of [`MAX_URI`](super::MAX_URI).
    #[error("is longer than 1024 bytes")]
    BaseTooLong,
    /// A reference has a fragment.
    #[error("has a fragment (\"#...\"); remove it")]
    Fragment,
    /// A reference begins with a slash.
    #[error("begins with \"/\"; a reference is relative to its mount")]
    Absolute,
    /// The first segment could be read as a scheme.
    #[error("has \":\" in its first segment; write it as %3A")]
    Colon,
    /// A percent sign is not followed by two hexadecimal digits.
    #[error("has a \"%\" that is not followed by two hexadecimal digits; write a percent sign as %25")]
    Percent,
    /// A character is not allowed in a URI.
    #[error("has a character that RFC 3986 does not allow; percent-encode it (a space is %20)")]
    Character,
    /// A segment is `.` or `..`, in any spelling.
    #[error("has a dot segment (\".\" or \"..\"); name the resource without it")]
    DotSegment,
    /// The decoded reference is not UTF-8.
    #[error("is not UTF-8 when its percent-encoding is decoded")]
    NotUtf8,
    /// The decoded reference contains a control character.
    #[error("has a control character")]
    Control,
    /// A base has no scheme.
    #[error("has no scheme; write it as \"scheme://...\"")]
    NoScheme,
    /// The scheme of a base has upper-case letters.
    #[error("has a scheme that is not lower case")]
    UpperCaseScheme,
    /// The scheme of a base contains a character that schemes may not contain.
    #[error("does not begin with a valid scheme (a letter, then letters, digits, \"+\", \"-\", \".\")")]
    Scheme,
    /// A base has a query, a fragment or a brace.
    #[error("has a query, a fragment or a brace; a base is a plain prefix")]
    NotAPrefix,
    /// A base does not end in a slash.
    #[error("does not end in \"/\"; add one")]
    NoSlash,
    /// A base is not an absolute URI.
    #[error("is not an absolute URI (RFC 3986)")]
    NotAbsolute,
    /// A template does not follow RFC 6570.
    #[error("is not an RFC 6570 template")]
    NotATemplate,
    /// A template has no expression.
    #[error("has no expression; list it as a resource")]
    NoExpression,
    /// A template has more than 32 expressions.
    #[error("has more than 32 expressions")]
    TooManyExpressions,
    /// A template contains a fragment expression.
    #[error("expands to a fragment")]
    ExpandsToFragment,
    /// A template begins with a path expression.
    #[error("begins with a path expression, which expands to an absolute path")]
    PathExpression,
}
