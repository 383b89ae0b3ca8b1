//! Which logins the grants of a mount need, and which of them exist.

use std::sync::Arc;
use std::time::SystemTime;

use super::config::OAuthSettings;
use super::login_file::{Login, LoginFileError, LoginPlace};
use crate::grants::ambient::Ambient;
use crate::grants::http::origin_grant::OriginGrantConfig;
use crate::model::MountName;

/// A login that a mount needs.
pub struct NeededLogin {
    /// The server, the client and the scopes.
    pub settings: Arc<OAuthSettings>,
    /// The origin of the first grant that needs it, as the operator wrote it.
    pub origin: String,
    /// The place of its file.
    pub place: LoginPlace,
}

/// The logins that the `http` grants of `mount` need. Grants with the same server, client and scopes share one. Leaves out
/// grants that are malformed.
pub fn needed_logins(grants: &[OriginGrantConfig], mount: &MountName, ambient: &Ambient) -> Vec<NeededLogin> {
    let Some(directory) = &ambient.logins else { return Vec::new() };
    let mut all: Vec<NeededLogin> = Vec::new();
    for grant in grants {
        let Some(written) = grant.oauth.as_ref().filter(|oauth| oauth.needs_login()) else { continue };
        let Ok(settings) = written.checked(&ambient.secrets).map(Arc::new) else { continue };
        if !all.iter().any(|other| other.settings.digest() == settings.digest()) {
            let place = LoginPlace::new(directory, mount, &settings);
            all.push(NeededLogin { settings, origin: grant.origin.clone(), place });
        }
    }
    all
}

/// Whether a needed login exists.
pub enum LoginState {
    /// Nobody has logged in.
    Absent,
    /// The login has ended.
    Ended,
    /// The login is in use.
    Valid(Login),
    /// The file cannot be used.
    Unusable(LoginFileError),
}

impl NeededLogin {
    /// Whether the login exists.
    pub fn state(&self, now: SystemTime) -> LoginState {
        match self.place.read() {
            Ok(None) => LoginState::Absent,
            Ok(Some(login)) if login.is_valid(now) => LoginState::Valid(login),
            Ok(Some(_)) => LoginState::Ended,
            Err(error) => LoginState::Unusable(error),
        }
    }
}
