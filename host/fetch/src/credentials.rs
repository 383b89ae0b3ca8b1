//! The login of the operator at a registry, as docker and podman keep it. Read before the wall is raised: the files lie in the
//! operator's home, and a login may be kept by another program.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docker_credential::DockerCredential;

/// The name under which docker keeps the login at Docker Hub.
const DOCKER_HUB: (&str, &str) = ("docker.io", "https://index.docker.io/v1/");

/// A login. Its text appears in no message.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    /// A user name and a password.
    Password(String, String),
    /// A refresh token.
    Token(String),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

impl Login {
    /// The login at this registry. `None` if there is none, and if it cannot be read: the registry then answers without one, or
    /// says that it needs one.
    pub(crate) fn read(registry: &str) -> Option<Self> {
        let name = if registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { registry };
        let found =
            docker_credential::get_credential(name).or_else(|_| docker_credential::get_podman_credential(registry));
        match found.ok()? {
            DockerCredential::UsernamePassword(user, password) if user == "<token>" => Some(Self::Token(password)),
            DockerCredential::UsernamePassword(user, password) => Some(Self::Password(user, password)),
            DockerCredential::IdentityToken(token) => Some(Self::Token(token)),
        }
    }

    /// The header `Authorization` of the scheme "Basic". `None` for a refresh token.
    pub(crate) fn basic(&self) -> Option<String> {
        match self {
            Self::Password(user, password) => Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))),
            Self::Token(_) => None,
        }
    }
}
