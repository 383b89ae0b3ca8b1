//! How providers describe themselves.

use std::sync::Arc;

use super::pipeline::{Gateway, MountCall};
use crate::catalog::Mount;
use crate::interfaces::resources::Describe;
use crate::model::{Description, ReadError};
use crate::policy::Caller;

impl Gateway {
    /// The description that `mount` gives of itself.
    ///
    /// # Errors
    /// The same as those of a read.
    pub async fn describe(&self, caller: &Caller, mount: &Arc<Mount>) -> Result<Description, ReadError> {
        self.call(MountCall::new(caller, mount), Describe).await.0
    }
}
