//! Views (MCP Apps): the pages that show the results of tools, by their names `ui://MOUNT/PAGE`.
//!
//! A page is a resource of the mount, and such a name is its second name: the same read, under the same rules and limits. Only
//! pages that a tool of the mount names have one. A page runs in the browser of a person with whatever network its
//! `_meta.ui.csp` allows, so nothing of that comes from a provider: without the grant `view` there is no network.

use std::sync::Arc;

use tokio::time::Instant;

use super::call_group::CallGroup;
use super::consent::ConsentInput;
use super::definitions::tool_prefix;
use super::pipeline::Gateway;
use super::read::ReadOutcome;
use crate::catalog::Mount;
use crate::interfaces::tools::ToolDefinition;
use crate::model::meta::{TOOL_PREFIX, UI};
use crate::model::{Fault, Guard, MountName, ReadError, reference, text};
use crate::policy::{Action, Caller};

/// The scheme of views.
const SCHEME: &str = "ui://";

/// The media type of a page.
const MIME: &str = "text/html;profile=mcp-app";

/// What a `ui://` URI names.
pub(super) struct ViewName<'u> {
    mount: Arc<Mount>,
    /// A checked reference below the mount's base.
    reference: &'u str,
}

/// The name of the page `reference` of `mount`.
pub fn view_uri(mount: &MountName, reference: &str) -> String {
    format!("{SCHEME}{mount}/{reference}")
}

impl Gateway {
    /// What `uri` names, if it is the page of a tool that `caller` may call.
    pub(super) async fn view_name<'u>(&self, caller: &Caller, uri: &'u str) -> Option<ViewName<'u>> {
        let rest = uri.strip_prefix(SCHEME).filter(|_| uri.len() <= reference::MAX_URI)?;
        let (name, reference) = rest.split_once('/')?;
        let name = MountName::new(name).ok()?;
        reference::check(reference).ok()?;
        let snapshot = self.loaded_snapshot().await;
        let mount = snapshot.find(&name).filter(|mount| mount.interfaces.tools)?;
        snapshot.absolute_name(mount, reference).ok()?;
        let end = Instant::now() + mount.gate.limits().time;
        let group = CallGroup::new(&self.audit, caller);
        let kept = mount.listings(&caller.principal).tools.current();
        let tools = match kept {
            Some(kept) => Some(kept),
            None => self.current_definitions::<ToolDefinition>(&group, mount, end).await,
        }?;
        let has_page = |definition: &Arc<ToolDefinition>| {
            let is_page = definition.tool.view.as_ref().is_some_and(|view| view.page == reference);
            let name = definition.tool.name.as_str();
            is_page && self.decide(&caller.principal, Action::Call, mount, Some(name)).is_ok()
        };
        tools.list.all.iter().any(has_page).then(|| ViewName { mount: Arc::clone(mount), reference })
    }

    /// Reads a page by its second name.
    ///
    /// # Errors
    /// The same as those of a read, and [`ReadError::BadOutput`] if it is no page.
    pub(super) async fn read_view(
        &self,
        caller: &Caller,
        uri: &str,
        ViewName { mount, reference }: ViewName<'_>,
        input: ConsentInput<'_>,
        room: impl Future<Output = ()>,
    ) -> Result<ReadOutcome, Fault> {
        let shown = || Some(text::excerpt(uri, reference::MAX_URI));
        let usual = [mount.base.as_str(), reference].concat();
        let read = self.read_resource(caller, &usual, input, room).await;
        let ReadOutcome::Contents(mut reading, served, cost) = read.map_err(|fault| Fault { uri: shown(), ..fault })?
        else {
            let error = ReadError::Unavailable("the page needs a grant that the mount does not hold".to_owned());
            return Err(Fault { error, mount: Some(mount.name.clone()), uri: shown() });
        };
        let refuse = |why: &str| {
            let error = ReadError::BadOutput(format!("read gave {why} for the page of a view"));
            Fault { error, mount: Some(mount.name.clone()), uri: shown() }
        };
        let [page] = reading.contents.as_mut_slice() else { return Err(refuse("several contents")) };
        if served.name != mount.name || page.reference != usual {
            return Err(refuse("another resource"));
        }
        if page.mime_type.as_deref() != Some(MIME) && Guard::View.is_on() {
            return Err(refuse(&format!("a type other than \"{MIME}\"")));
        }
        uri.clone_into(&mut page.reference);
        let prefix = serde_json::Value::from(tool_prefix(&served)).to_string();
        page.meta.push((TOOL_PREFIX.to_owned(), prefix));
        page.meta.extend(served.view.meta().map(|ui| (UI.to_owned(), ui.to_string())));
        Ok(ReadOutcome::Contents(reading, served, cost))
    }
}
