//! The error type of functions that every kind of grant implements.

/// An error of one kind of grant. Each kind has its own error enum. Code above the kinds only displays the error and
/// never branches on it.
pub type KindError = Box<dyn std::error::Error + Send + Sync>;
