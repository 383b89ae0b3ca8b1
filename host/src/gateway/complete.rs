//! Completion of a template's variable. The provider is asked if it exports the completion interface. Otherwise the
//! values come from the references that the mount lists.
//!
//! A provider is asked only about templates that it lists, and only about their variables. Other input of a client
//! never reaches a provider. Suggestions that would name resources which are hidden from the caller are removed.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::authorize::to_error;
use super::call_group::CallGroup;
use super::listing::ListPage;
use super::pipeline::{Gateway, MountCall};
use crate::catalog::{Mount, Notice};
use crate::interfaces::completion::{Complete, MAX_SUGGESTIONS};
use crate::model::template::{Matcher, known_start, literal_start, variables};
use crate::model::{CompletionInput, Fault, MountName, ReadError, Resource, Suggestions, Template, reference, text};
use crate::policy::{Action, Caller, Refusal, Visibility};

/// Entries of a listing that one completion compares at most.
const MAX_ENTRIES: usize = 20_000;

/// Time in which one completion may walk a listing. A person who is typing waits for the result.
const LISTING_TIME: Duration = Duration::from_secs(3);

/// Entries that are compared before the task yields to others.
const ENTRIES_PER_TURN: usize = 32;

/// Pages in which a template is searched. A mount serves at most 1,000 templates: one page, or a few if the entries are
/// long.
const MAX_TEMPLATE_PAGES: usize = 4;

/// A request for completion.
#[derive(Clone, Debug)]
pub struct CompletionRequest {
    /// The template in absolute form, as clients see it in lists.
    pub template: String,
    /// The name of the variable.
    pub name: String,
    /// The value typed so far.
    pub value: String,
    /// Names and values of the variables that are already filled in.
    pub resolved: Vec<(String, String)>,
}

/// The values that complete a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompletionResult {
    /// At most 100 values.
    pub values: Vec<String>,
    /// The number of all matching values, where it is known.
    pub total: Option<u32>,
    /// True if there are, or may be, more values than these.
    pub has_more: bool,
}

impl CompletionResult {
    /// The bytes of the values.
    fn bytes(&self) -> usize {
        self.values.iter().map(String::len).sum()
    }
}

/// The reason why a completion has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionError {
    /// No mount lists the template.
    NoTemplate,
    /// The template has no such variable. Names the variables that it has.
    NoVariable(Vec<String>),
    /// The mount failed.
    Failed(Fault),
}

impl Gateway {
    /// Completes one variable of a template.
    ///
    /// # Errors
    /// The fault names the mount if one was found.
    pub async fn complete(
        &self,
        caller: &Caller,
        request: CompletionRequest,
    ) -> Result<CompletionResult, CompletionError> {
        if request.template.len() > reference::MAX_URI * 2 {
            return Err(CompletionError::NoTemplate);
        }
        let snapshot = self.loaded_snapshot().await;
        let literal = literal_start(&request.template);
        let knows = |name: &MountName, base: &str| self.knows(&caller.principal, name, base);
        if let Some(one) = snapshot.quarantined_at(literal).filter(|one| knows(&one.name, &one.base)) {
            return Err(CompletionError::Failed(Fault {
                error: one.error(),
                mount: Some(one.name.clone()),
                uri: None,
            }));
        }
        let (mount, start) = snapshot.route(literal).ok_or(CompletionError::NoTemplate)?;
        let fault = |error| CompletionError::Failed(Fault { error, mount: Some(mount.name.clone()), uri: None });
        let visible = self.completable(caller, mount);
        if !visible.complete.contains_below(start) {
            return Err(match self.decide(&caller.principal, Action::Complete, mount, Some(start)) {
                Err(scope @ Refusal::Scope(_)) => fault(to_error(scope)),
                _ => CompletionError::NoTemplate,
            });
        }
        // After that check: a used-up rate would tell that there is something hidden.
        let counted = self.count_action(caller, Action::Complete, Some(&mount.name)).await;
        let quota = counted.map_err(CompletionError::Failed)?;
        if !self.lists(caller, mount, &request.template).await.map_err(fault)? {
            return Err(CompletionError::NoTemplate);
        }
        let names = variables(&request.template);
        if !names.contains(&request.name.as_str()) {
            return Err(CompletionError::NoVariable(names.into_iter().map(str::to_owned).collect()));
        }
        let is_known = |(name, value): &(String, String)| {
            names.contains(&name.as_str()) && *name != request.name && value.len() <= reference::MAX_URI
        };
        let resolved: Vec<_> = request.resolved.iter().filter(|one| is_known(one)).cloned().collect();
        if request.value.len() > reference::MAX_URI {
            return Ok(CompletionResult { total: Some(0), ..CompletionResult::default() });
        }
        if !mount.interfaces.completion {
            let request = CompletionRequest { resolved, ..request };
            let result = self.complete_from_listing(caller, mount, &visible, &request).await;
            quota.charge(result.bytes()).await;
            return Ok(result);
        }
        let template = request.template.get(mount.base.len()..).unwrap_or_default().to_owned();
        let completing = CompletionInput { template, name: request.name, value: request.value, resolved };
        // What a provider says about a hidden folder, and how long that takes, would tell whether the folder exists.
        if !visible.may_suggest(&completing) {
            return Ok(CompletionResult::default());
        }
        let (suggestions, _) = self.call(MountCall::new(caller, mount), Complete(completing.clone())).await;
        let suggestions = suggestions.map_err(fault)?;
        let result = completion_result(visible.filter(suggestions, &completing));
        quota.charge(result.bytes()).await;
        Ok(result)
    }

    fn completable(&self, caller: &Caller, mount: &Mount) -> CompletableNames {
        let of = |action| self.visibility(&caller.principal, action, mount);
        CompletableNames { complete: of(Action::Complete), list: of(Action::List), read: of(Action::Read) }
    }

    /// True if `mount` lists the template.
    async fn lists(&self, caller: &Caller, mount: &Arc<Mount>, template: &str) -> Result<bool, ReadError> {
        let mut start = None;
        let mut notices = Vec::new();
        let group = CallGroup::new(&self.audit, caller);
        for _ in 0..MAX_TEMPLATE_PAGES {
            let page: ListPage<Template> = self.list_in_group(&group, start, Some(&mount.name)).await;
            if page.entries.iter().any(|(entry, _)| entry.template == template) {
                return Ok(true);
            }
            notices.extend(page.notices);
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        // A list that failed does not prove that the template is missing.
        let failed = notices.into_iter().find(|(_, notice)| matches!(notice, Notice::LeftOut(_)));
        match failed {
            Some((_, notice)) => Err(ReadError::Unavailable(format!("its list of templates is incomplete: {notice}"))),
            None => Ok(false),
        }
    }

    /// Values from the references that `mount` lists and that match the template.
    async fn complete_from_listing(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        visible: &CompletableNames,
        request: &CompletionRequest,
    ) -> CompletionResult {
        let Some(matcher) = Matcher::new(&request.template, &request.name, &request.resolved) else {
            return CompletionResult { total: Some(0), ..CompletionResult::default() };
        };
        let end = Instant::now() + LISTING_TIME;
        let group = CallGroup::new(&self.audit, caller);
        let mut values = BTreeSet::new();
        let (mut start, mut compared, mut is_complete) = (None, 0, true);
        loop {
            let Ok(page) = timeout_at(end, self.list_in_group::<Resource>(&group, start, Some(&mount.name))).await
            else {
                is_complete = false;
                break;
            };
            // Entries that were left out or cut may contain further values.
            is_complete &= page.notices.is_empty();
            let room = MAX_ENTRIES - compared;
            is_complete &= page.entries.len() <= room;
            for (at, (entry, _)) in page.entries.iter().take(room).enumerate() {
                // The list has only entries that the caller may list.
                let name = entry.reference.strip_prefix(&mount.base).unwrap_or_default();
                let value = matcher.value(&entry.reference).filter(|_| visible.complete.contains(name));
                values.extend(value.filter(|value| text::is_clean(value, reference::MAX_URI)));
                // Templates and references come from a provider: comparing them must not block other tasks.
                if at % ENTRIES_PER_TURN == ENTRIES_PER_TURN - 1 {
                    tokio::task::yield_now().await;
                    if Instant::now() >= end {
                        return matching_values(values, &request.value, false);
                    }
                }
            }
            compared += page.entries.len().min(room);
            start = page.next;
            if start.is_none() {
                break;
            }
            if compared >= MAX_ENTRIES {
                is_complete = false;
                break;
            }
        }
        matching_values(values, &request.value, is_complete)
    }
}

/// The names of a mount that suggestions may contain.
struct CompletableNames {
    complete: Visibility,
    list: Visibility,
    read: Visibility,
}

impl CompletableNames {
    /// True if nothing of the mount is hidden.
    fn is_all(&self) -> bool {
        self.complete.is_all() && (self.list.is_all() || self.read.is_all())
    }

    /// True if a suggestion may name something that is not hidden.
    fn may_suggest(&self, completing: &CompletionInput) -> bool {
        let CompletionInput { template, name: _, value: _, resolved } = completing;
        let value_of = |wanted: &str| resolved.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let (start, _) = known_start(template, value_of);
        let is_shown = |visible: &Visibility| visible.contains_below(&start);
        self.is_all() || (is_shown(&self.complete) && (is_shown(&self.list) || is_shown(&self.read)))
    }

    /// Removes the suggestions that would name hidden resources, or of which it is not known what they would name. If
    /// something is hidden, removes the total too: the provider counted hidden resources.
    fn filter(&self, mut suggestions: Suggestions, completing: &CompletionInput) -> Suggestions {
        if self.is_all() {
            return suggestions;
        }
        let CompletionInput { template, name, value: _, resolved } = completing;
        suggestions.values.retain(|value| {
            let is_part = Cell::new(false);
            let value_of = |wanted: &str| match wanted == name {
                true => {
                    is_part.set(true);
                    Some(value.as_str())
                }
                false => resolved.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str()),
            };
            let (start, is_whole) = known_start(template, value_of);
            let is_shown = |visible: &Visibility| match is_whole {
                true => visible.contains(&start),
                false => visible.contains_below(&start),
            };
            // Behind an unknown variable, the suggestion may be a name in any folder.
            is_part.get() && is_shown(&self.complete) && (is_shown(&self.list) || is_shown(&self.read))
        });
        Suggestions { total: None, ..suggestions }
    }
}

impl From<Suggestions> for CompletionResult {
    fn from(suggestions: Suggestions) -> Self {
        completion_result(suggestions)
    }
}

/// The provider's suggestions as the client receives them.
fn completion_result(mut suggestions: Suggestions) -> CompletionResult {
    let count = suggestions.values.len();
    suggestions.values.truncate(MAX_SUGGESTIONS);
    let shown = u32::try_from(suggestions.values.len()).unwrap_or(u32::MAX);
    // Ignore a total that is smaller than the number of values.
    let total = suggestions.total.filter(|total| usize::try_from(*total).is_ok_and(|total| total >= count));
    let has_more = count > suggestions.values.len() || total.is_some_and(|total| total > shown);
    CompletionResult { values: suggestions.values, total, has_more }
}

/// The values that begin with `typed`, sorted without regard to case. Ignores the case of letters only if no value
/// begins with `typed` exactly.
fn matching_values(values: BTreeSet<String>, typed: &str, is_complete: bool) -> CompletionResult {
    let folded = typed.to_lowercase();
    let is_exact = values.iter().any(|value| value.starts_with(typed));
    let fits = |value: &String| match is_exact {
        true => value.starts_with(typed),
        false => value.to_lowercase().starts_with(&folded),
    };
    let mut values: Vec<_> = values.into_iter().filter(fits).collect();
    values.sort_by_cached_key(|value| value.to_lowercase());
    let total = u32::try_from(values.len()).ok().filter(|_| is_complete);
    let has_more = values.len() > MAX_SUGGESTIONS || !is_complete;
    values.truncate(MAX_SUGGESTIONS);
    CompletionResult { values, total, has_more }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[&str]) -> BTreeSet<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn values_that_begin_with_the_typed_text_match() {
        let all = set(&["Beta", "alpha", "Alpine", "b"]);
        let values = |typed: &str| matching_values(all.clone(), typed, true).values;
        assert_eq!(values(""), ["alpha", "Alpine", "b", "Beta"]);
        assert_eq!(values("al"), ["alpha"], "in its own case, when there is one");
        assert_eq!(values("AL"), ["alpha", "Alpine"]);
        assert!(values("x").is_empty());
        assert_eq!(
            matching_values(all.clone(), "b", true),
            CompletionResult { values: vec!["b".into()], total: Some(1), has_more: false }
        );
    }

    #[test]
    fn further_values_are_reported() {
        let many: BTreeSet<String> = (0..150).map(|n| format!("{n:03}")).collect();
        let result = matching_values(many.clone(), "", true);
        assert_eq!((result.values.len(), result.total, result.has_more), (100, Some(150), true));
        let result = matching_values(set(&["a"]), "", false);
        assert_eq!(
            (result.values.len(), result.total, result.has_more),
            (1, None, true),
            "not all entries were compared"
        );
        let suggestions = |count: usize, total| Suggestions { values: vec!["v".into(); count], total };
        let summary = |result: CompletionResult| (result.values.len(), result.total, result.has_more);
        assert_eq!(summary(completion_result(suggestions(101, None))), (100, None, true));
        assert_eq!(summary(completion_result(suggestions(100, Some(150)))), (100, Some(150), true));
        assert_eq!(summary(completion_result(suggestions(3, Some(3)))), (3, Some(3), false));
        assert_eq!(summary(completion_result(suggestions(3, Some(1)))), (3, None, false), "an impossible total");
    }
}
