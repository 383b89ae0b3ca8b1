//! What a variable of a template could become: asked of the provider where it tells, else taken from what the mount lists.
//!
//! A provider is asked only about templates that it lists, and only about their variables: what a client makes up goes no
//! further than here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::check::MAX_SUGGESTIONS;
use super::walk::Walk;
use super::{Gateway, Listing};
use crate::catalog::Mount;
use crate::model::template::{Matcher, variables};
use crate::model::{Caller, Completing, Fault, ReadError, Resource, Suggestions, Template, reference, text};

/// Entries of a listing that are looked at for one completion.
const MOST_LOOKED: usize = 20_000;

/// How long a listing may be looked at: whoever types waits for it.
const LOOKING: Duration = Duration::from_secs(3);

/// Entries that are compared before others have their turn.
const TURN: usize = 32;

/// Pages in which a template is looked for: a mount serves 1,000, which is one page, or a few of long ones.
const TEMPLATE_PAGES: usize = 4;

/// What is to be completed.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The template as it is listed to clients.
    pub template: String,
    /// The variable.
    pub name: String,
    /// What it has so far.
    pub value: String,
    /// Names and values that are filled in already.
    pub resolved: Vec<(String, String)>,
}

/// Values for a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// At most a hundred.
    pub values: Vec<String>,
    /// How many there are in all, where that is known.
    pub total: Option<u32>,
    /// Whether there are, or may be, more than these.
    pub has_more: bool,
}

/// Why nothing is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No mount lists the template.
    NoTemplate,
    /// The template has no such variable, but these.
    NoVariable(Vec<String>),
    /// The mount failed.
    Failed(Fault),
}

impl Gateway {
    /// What the variable of `wish` could become.
    ///
    /// # Errors
    /// Names the mount where one was found.
    pub async fn offer(&self, caller: &Caller, wish: Wish) -> Result<Offer, Refusal> {
        if wish.template.len() > reference::MAX_URI * 2 {
            return Err(Refusal::NoTemplate);
        }
        let snapshot = self.settled().await;
        let literal = wish.template.split('{').next().unwrap_or_default();
        if let Some(one) = snapshot.quarantined_at(literal) {
            return Err(Refusal::Failed(Fault { error: one.error(), mount: Some(one.name.clone()), uri: None }));
        }
        let (mount, _) = snapshot.route(literal).ok_or(Refusal::NoTemplate)?;
        let fault = |error| Refusal::Failed(Fault { error, mount: Some(mount.name.clone()), uri: None });
        if !self.lists(caller, mount, &wish.template).await.map_err(fault)? {
            return Err(Refusal::NoTemplate);
        }
        let names = variables(&wish.template);
        if !names.contains(&wish.name.as_str()) {
            return Err(Refusal::NoVariable(names.into_iter().map(str::to_owned).collect()));
        }
        let is_known = |(name, value): &(String, String)| {
            names.contains(&name.as_str()) && *name != wish.name && value.len() <= reference::MAX_URI
        };
        let resolved: Vec<_> = wish.resolved.iter().filter(|one| is_known(one)).cloned().collect();
        if wish.value.len() > reference::MAX_URI {
            return Ok(Offer { total: Some(0), ..Offer::default() });
        }
        if !mount.completes {
            return Ok(self.offer_from_listing(caller, mount, &Wish { resolved, ..wish }).await);
        }
        let template = wish.template.get(mount.base.len()..).unwrap_or_default().to_owned();
        let completing = Completing { template, name: wish.name, value: wish.value, resolved };
        self.complete(caller, mount, completing).await.map(given).map_err(fault)
    }

    /// Whether `mount` lists the template.
    async fn lists(&self, caller: &Caller, mount: &Arc<Mount>, template: &str) -> Result<bool, ReadError> {
        let mut start = None;
        let mut notices = Vec::new();
        let walk = Walk::new(&self.audit, caller);
        for _ in 0..TEMPLATE_PAGES {
            let page: Listing<Template> = self.list_in(&walk, start, Some(&mount.name)).await;
            if page.entries.iter().any(|(entry, _)| entry.template == template) {
                return Ok(true);
            }
            notices.extend(page.notices);
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        // A list that failed says nothing about what is not in it.
        match notices.into_iter().find(|(_, reason)| reason.starts_with("left out: ")) {
            Some((_, reason)) => Err(ReadError::Unavailable(format!("its templates were {reason}"))),
            None => Ok(false),
        }
    }

    /// From the references that `mount` lists and that were made with the template.
    async fn offer_from_listing(&self, caller: &Caller, mount: &Arc<Mount>, wish: &Wish) -> Offer {
        let Some(matcher) = Matcher::new(&wish.template, &wish.name, &wish.resolved) else {
            return Offer { total: Some(0), ..Offer::default() };
        };
        let end = Instant::now() + LOOKING;
        let walk = Walk::new(&self.audit, caller);
        let mut values = BTreeSet::new();
        let (mut start, mut looked, mut is_whole) = (None, 0, true);
        loop {
            let Ok(page) = timeout_at(end, self.list_in::<Resource>(&walk, start, Some(&mount.name))).await else {
                is_whole = false;
                break;
            };
            // What is left out or cut may have held more.
            is_whole &= page.notices.is_empty();
            let room = MOST_LOOKED - looked;
            is_whole &= page.entries.len() <= room;
            for (at, (entry, _)) in page.entries.iter().take(room).enumerate() {
                let value = matcher.value(&entry.reference);
                values.extend(value.filter(|value| text::is_clean(value, reference::MAX_URI)));
                // Templates and references are a provider's: nobody else waits while they are compared.
                if at % TURN == TURN - 1 {
                    tokio::task::yield_now().await;
                    if Instant::now() >= end {
                        return chosen(values, &wish.value, false);
                    }
                }
            }
            looked += page.entries.len().min(room);
            start = page.next;
            if start.is_none() {
                break;
            }
            if looked >= MOST_LOOKED {
                is_whole = false;
                break;
            }
        }
        chosen(values, &wish.value, is_whole)
    }
}

/// What a provider gave, as it is passed on.
fn given(mut suggestions: Suggestions) -> Offer {
    let there = suggestions.values.len();
    suggestions.values.truncate(MAX_SUGGESTIONS);
    let shown = u32::try_from(suggestions.values.len()).unwrap_or(u32::MAX);
    // A total that is less than what is there is none.
    let total = suggestions.total.filter(|total| usize::try_from(*total).is_ok_and(|total| total >= there));
    let has_more = there > suggestions.values.len() || total.is_some_and(|total| total > shown);
    Offer { values: suggestions.values, total, has_more }
}

/// Those that begin with what was typed, in either case if none does in its own, sorted as people sort.
fn chosen(values: BTreeSet<String>, typed: &str, is_whole: bool) -> Offer {
    let folded = typed.to_lowercase();
    let is_exact = values.iter().any(|value| value.starts_with(typed));
    let fits = |value: &String| match is_exact {
        true => value.starts_with(typed),
        false => value.to_lowercase().starts_with(&folded),
    };
    let mut values: Vec<_> = values.into_iter().filter(fits).collect();
    values.sort_by_cached_key(|value| value.to_lowercase());
    let total = u32::try_from(values.len()).ok().filter(|_| is_whole);
    let has_more = values.len() > MAX_SUGGESTIONS || !is_whole;
    values.truncate(MAX_SUGGESTIONS);
    Offer { values, total, has_more }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[&str]) -> BTreeSet<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn what_begins_with_what_was_typed_is_chosen() {
        let all = set(&["Beta", "alpha", "Alpine", "b"]);
        let values = |typed: &str| chosen(all.clone(), typed, true).values;
        assert_eq!(values(""), ["alpha", "Alpine", "b", "Beta"]);
        assert_eq!(values("al"), ["alpha"], "in its own case, when there is one");
        assert_eq!(values("AL"), ["alpha", "Alpine"]);
        assert!(values("x").is_empty());
        assert_eq!(chosen(all.clone(), "b", true), Offer { values: vec!["b".into()], total: Some(1), has_more: false });
    }

    #[test]
    fn what_is_not_offered_is_told() {
        let many: BTreeSet<String> = (0..150).map(|n| format!("{n:03}")).collect();
        let offer = chosen(many.clone(), "", true);
        assert_eq!((offer.values.len(), offer.total, offer.has_more), (100, Some(150), true));
        let offer = chosen(set(&["a"]), "", false);
        assert_eq!((offer.values.len(), offer.total, offer.has_more), (1, None, true), "not all was looked at");
        let suggestions = |count: usize, total| Suggestions { values: vec!["v".into(); count], total };
        let told = |offer: Offer| (offer.values.len(), offer.total, offer.has_more);
        assert_eq!(told(given(suggestions(101, None))), (100, None, true));
        assert_eq!(told(given(suggestions(100, Some(150)))), (100, Some(150), true));
        assert_eq!(told(given(suggestions(3, Some(3)))), (3, Some(3), false));
        assert_eq!(told(given(suggestions(3, Some(1)))), (3, None, false), "a total that cannot be");
    }
}
