//! Why a query fails: the server's errors, and what they mean for the caller.

use belljar_guest::Error;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::ErrorResponseBody;

/// The result of what asks the server.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server refuses a query.
    Server(Box<ServerError>),
    /// Any other reason.
    Other(Error),
}

/// An error of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The SQLSTATE.
    pub(crate) code: String,
    pub(crate) message: String,
    detail: String,
    hint: String,
    /// The character of the statement where the server saw it, counted from 1.
    pub(crate) position: String,
    /// True if the connection is over.
    pub(crate) is_fatal: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Failure::Server(Box::new(error))
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Server(error) => error.explain(),
            Failure::Other(error) => error,
        }
    }
}

impl Failure {
    /// True if the schema changed between two queries of one call.
    pub(crate) fn is_stale(&self) -> bool {
        // A column, a table or a type is gone; or the catalog has no entry for an identifier.
        let Failure::Server(error) = self else { return false };
        ["42703", "42P01", "42704", "42883", "XX000", "40001"].contains(&error.code.as_str())
    }

    /// The same failure, if the fault lies in what the caller wrote: `about` says where.
    pub(crate) fn of_caller(self, about: &str) -> Failure {
        match self {
            Failure::Server(mut error) if error.is_of_data() => {
                // The caller does not know the statement.
                error.position.clear();
                Error::invalid(format_args!("{about}: {}", error.words())).into()
            }
            other => other,
        }
    }
}

impl ServerError {
    pub(crate) fn of(body: &ErrorResponseBody) -> ServerError {
        let mut error = ServerError::default();
        let mut fields = body.fields();
        while let Ok(Some(field)) = fields.next() {
            let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => error.code = value,
                b'M' => error.message = value,
                b'D' => error.detail = value,
                b'H' => error.hint = value,
                b'P' => error.position = value,
                // The severity that is not translated.
                b'V' => error.is_fatal = value == "FATAL" || value == "PANIC",
                _ => {}
            }
        }
        error
    }

    /// True for a value that its type does not accept, and for an operator that the types do not have.
    fn is_of_data(&self) -> bool {
        self.code.starts_with("22") || ["42883", "42725", "42804", "42P18"].contains(&self.code.as_str())
    }

    /// What the server says.
    pub(crate) fn words(&self) -> String {
        let mut words = self.message.clone();
        for more in [&self.detail, &self.hint].into_iter().filter(|more| !more.is_empty()) {
            words = format!("{words}; {more}");
        }
        if !self.position.is_empty() {
            words = format!("{words}, at character {}", self.position);
        }
        format!("{words} (SQLSTATE {})", self.code)
    }

    /// The error for the caller, with the cure.
    pub(crate) fn explain(&self) -> Error {
        let words = self.words();
        match self.code.as_str() {
            "57014" => Error::failed(
                "the statement took longer than this read may: add an index or a filter, or raise the limit \"time\" of the mount (SQLSTATE 57014)",
            ),
            "42501" => Error::denied(format_args!(
                "{words}: grant SELECT on it, and USAGE on its schema, to the user of the grant \"postgres\""
            )),
            "25006" => Error::denied(format_args!("{words}: this provider only reads")),
            "53300" | "57P01" | "57P02" | "57P03" | "55P03" | "40001" | "40P01" => Error::unavailable(words),
            code if code.starts_with("08") => Error::unavailable(words),
            code if code.starts_with("28") || code == "3D000" => Error::denied(words),
            code if code.starts_with("53") => Error::unavailable(words),
            _ => Error::failed(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_cure() {
        let of =
            |code: &str| ServerError { code: code.into(), message: "no".into(), ..ServerError::default() }.explain();
        assert!(matches!(of("42501"), Error::Denied(why) if why.contains("grant SELECT")));
        assert!(matches!(of("57014"), Error::Failed(why) if why.contains("\"time\"")));
        assert!(matches!(of("25006"), Error::Denied(why) if why.contains("only reads")));
        assert!(matches!(of("08006"), Error::Unavailable(_)) && matches!(of("53300"), Error::Unavailable(_)));
        assert_eq!(of("42601"), Error::failed("no (SQLSTATE 42601)"));
        let about = Failure::from(ServerError { code: "22P02".into(), message: "no".into(), ..ServerError::default() });
        assert_eq!(
            Error::from(about.of_caller("\"after\" is \"x\"")),
            Error::invalid("\"after\" is \"x\": no (SQLSTATE 22P02)")
        );
    }
}
