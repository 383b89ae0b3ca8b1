//! The switch of the checks of what an authorization server says.

use crate::model::Guard;

/// True if a requirement for metadata or a token is met. Every check that only decides passes through this function, so
/// that a test can switch the checks off.
pub(super) fn is_fine(requirement: bool) -> bool {
    requirement || !Guard::AccessToken.is_on()
}
