//! Lists the resources below a URI: by the call `list-below` of the provider, a page at a time.

use std::sync::Arc;

use super::pipeline::{Gateway, MountCall};
use super::record;
use super::route::{Routed, Unrouted};
use crate::catalog::{Mount, Notice, ServedMount};
use crate::interfaces::ListEntry;
use crate::interfaces::parts::ListBelow;
use crate::model::{Fault, ReadError, Resource, reference, text};
use crate::policy::{Action, Caller};

/// The name of the operation in the record.
const OPERATION: &str = "list-below";

/// One page of the resources below a URI.
pub struct BelowPage {
    /// The mount of the URI.
    pub mount: Arc<Mount>,
    /// The entries that the principal may see, with absolute names.
    pub entries: Vec<Resource>,
    /// The provider's cursor of the next page. `None` on the last page.
    pub next: Option<String>,
    /// About entries that were left out.
    pub notice: Option<Notice>,
}

impl Gateway {
    /// Lists what is directly below `uri`, from the start or from one of the provider's cursors.
    ///
    /// # Errors
    /// The fault names the mount if one was found.
    pub async fn list_below(&self, caller: &Caller, uri: &str, cursor: Option<String>) -> Result<BelowPage, Fault> {
        let (mount, reference) = self.route_listing(caller, uri).await?;
        let fault = |error| Fault { error, mount: Some(mount.name.clone()), uri: Some(uri.to_owned()) };
        let quota = self.count_action(caller, Action::List, Some(&mount.name)).await?;
        if !mount.interfaces.parts {
            let why = "names a mount whose provider lists all of its resources at once; list the mount instead";
            let error = ReadError::BadUri(why.to_owned());
            record::record_refusal(&self.audit, caller, OPERATION, uri, Some(&mount), &error);
            return Err(fault(error));
        }
        let visible = self.visibility(&caller.principal, Action::List, &mount);
        let (page, mut cost) = self.call(MountCall::new(caller, &mount), ListBelow { reference, cursor }).await;
        let (given, next) = page.map_err(fault)?;
        let snapshot = self.catalog.snapshot();
        let served = ServedMount { mount: &mount, snapshot: &snapshot };
        let (mut entries, mut bad, mut first) = (Vec::with_capacity(given.len()), 0u32, None::<String>);
        let bytes = given.iter().map(ListEntry::weight).sum();
        cost.charge(bytes, || {
            for entry in given.into_iter().filter(|entry| visible.contains(&entry.reference)) {
                match entry.check(&served) {
                    Ok(mut entry) => {
                        entry.mark_parts(mount.parts_limit());
                        entries.push(entry);
                    }
                    Err(why) => {
                        bad += 1;
                        first.get_or_insert_with(|| why.to_string());
                    }
                }
            }
        });
        quota.charge(bytes).await;
        let notice = first.map(|first| Notice::Entries { count: bad, first });
        // The text of a notice may name a hidden entry.
        let notice = if visible.is_all() { notice } else { notice.and_then(Notice::without_details) };
        Ok(BelowPage { mount, entries, next, notice })
    }

    /// The mount and the checked reference of `uri`, if the principal may list anything there.
    async fn route_listing(&self, caller: &Caller, uri: &str) -> Result<(Arc<Mount>, String), Fault> {
        let snapshot = self.loaded_snapshot().await;
        if uri.len() <= reference::MAX_URI
            && let Some((mount, reference)) = snapshot.route(uri)
            && reference::check(reference).is_ok()
            && !snapshot.has_ambiguous_escapes(uri)
            && !self.visibility(&caller.principal, Action::List, mount).is_nothing()
        {
            return Ok((Arc::clone(mount), reference.to_owned()));
        }
        // The same words as for a read of a URI that leads nowhere.
        let (error, mount, refused) = match self.route(&caller.principal, uri).await {
            Ok(Routed { mount, .. }) => (ReadError::NotFound, Some(mount.name.clone()), Some(mount)),
            Err(Unrouted { error, mount, refused }) => (error, mount, refused),
        };
        self.audit.wait_for_room().await;
        record::record_unrouted(&self.audit, caller, uri, (mount.as_ref(), refused.as_deref()), &error);
        Err(Fault { error, mount, uri: Some(text::excerpt(uri, reference::MAX_URI)) })
    }
}
