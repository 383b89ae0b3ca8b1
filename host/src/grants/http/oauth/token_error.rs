//! Why there is no access token, in sentences for the operator. None of them repeats what a server sent.

use super::endpoints::EndpointError;
use super::login_file::LoginFileError;
use super::response::{MalformedGrant, OAuthErrorCode};
use crate::grants::http::service_client::ServiceError;
use crate::grants::http::service_url::ServiceUrl;
use crate::model::{command, text};

/// Why there is no access token.
#[derive(Debug, thiserror::Error)]
pub enum AccessTokenError {
    /// Nobody has logged in.
    #[error("nobody has logged in yet")]
    NoLogin,
    /// The login is over.
    #[error("the login has ended")]
    LoginEnded,
    /// The file of the login cannot be used.
    #[error(transparent)]
    File(#[from] LoginFileError),
    /// The endpoints of the server cannot be found.
    #[error(transparent)]
    Endpoint(Box<EndpointError>),
    /// The server cannot be asked.
    #[error("\"{0}\" cannot be asked: {1}")]
    Unreachable(ServiceUrl, #[source] Box<ServiceError>),
    /// The server answers with an unexpected status.
    #[error("\"{0}\" answers with the status {1}")]
    Status(ServiceUrl, u16),
    /// The server refuses the request.
    #[error("the authorization server refuses the request: {}", .0.name())]
    Refused(OAuthErrorCode),
    /// The response is not what was asked for.
    #[error("the response of \"{0}\" cannot be used: {1}")]
    Malformed(ServiceUrl, #[source] MalformedGrant),
    /// The token did not come before the end of the call.
    #[error("the token did not arrive in time")]
    TimedOut,
    /// The task that gets the token was stopped.
    #[error("belljar is stopping")]
    Stopped,
}

impl From<EndpointError> for AccessTokenError {
    fn from(error: EndpointError) -> Self {
        Self::Endpoint(Box::new(error))
    }
}

impl AccessTokenError {
    /// Why a server cannot be asked, and with which status it answers.
    fn exchange(&self) -> (Option<&ServiceError>, Option<u16>) {
        match self {
            Self::Unreachable(_, error) => (Some(error), None),
            Self::Status(_, status) => (None, Some(*status)),
            Self::Endpoint(error) => match &**error {
                EndpointError::Unreachable(_, error) => (Some(error), None),
                EndpointError::Status(_, status) => (None, Some(*status)),
                _ => (None, None),
            },
            _ => (None, None),
        }
    }

    /// True if the same request may succeed in a moment.
    pub(in crate::grants::http) fn is_temporary(&self) -> bool {
        if let (Some(error), _) = self.exchange() {
            return matches!(error, ServiceError::TimedOut | ServiceError::Resolver(_) | ServiceError::Failed(_));
        }
        if let (_, Some(status)) = self.exchange() {
            return matches!(status, 429 | 500..=599);
        }
        matches!(
            self,
            Self::Refused(OAuthErrorCode::TemporarilyUnavailable | OAuthErrorCode::ServerError)
                | Self::TimedOut
                | Self::Stopped
        )
    }

    /// What the operator can do about it, for the grant of `origin` of `mount`.
    pub fn cure(&self, mount: &str, origin: &str) -> String {
        let login = || format!("run: {}", command::line(["login", mount]));
        let grant = format!("in the grant of \"{}\" under [mounts.{mount}]", text::excerpt(origin, 200));
        let why = self.to_string();
        if let (Some(ServiceError::Prohibited(address)), _) = self.exchange() {
            return format!(
                "the authorization server has the address {address}, which is not public; if that is right, add  networks = [\"{address}\"]  to  oauth  {grant}"
            );
        }
        let of_endpoint = |error: &EndpointError| match error {
            EndpointError::Port(key, url) | EndpointError::Private(key, url) => {
                format!("{why}; if that is right, add  {key} = \"{url}\"  to  oauth  {grant}, and restart belljar")
            }
            EndpointError::Absent | EndpointError::NoEndpoint(_) => {
                format!("{why}; name it in  oauth  {grant}:  token-endpoint = \"URL\"")
            }
            EndpointError::OtherIssuer(_) => format!("{why}; write  issuer  of  oauth  {grant}  exactly as in them"),
            _ => format!("{why}; check  oauth  {grant}"),
        };
        match self {
            Self::NoLogin | Self::LoginEnded => format!("{why}; {}", login()),
            Self::Refused(OAuthErrorCode::InvalidClient) => {
                format!("{why}; check  client  and  secret  of  oauth  {grant}")
            }
            Self::Refused(OAuthErrorCode::InvalidScope) => format!("{why}; check  scopes  of  oauth  {grant}"),
            Self::Refused(OAuthErrorCode::UnauthorizedClient | OAuthErrorCode::UnsupportedGrantType) => {
                format!("{why}; allow the client this way to get tokens there, or change  oauth  {grant}")
            }
            Self::Endpoint(error) => of_endpoint(error),
            _ => format!("{why}; check  oauth  {grant}"),
        }
    }
}
