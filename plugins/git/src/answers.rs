//! The contents that are made in memory: the overview, references, the log, commits and diffs.

use belljar_guest::{Contents, Error, Result, reference};
use gix_hash::ObjectId;
use serde_json::{Value as Json, json};

use crate::address::{Address, Diff, MAX_LIMIT, Query};
use crate::log::{self, Filter};
use crate::names::{referable, referred};
use crate::references::Reference;
use crate::show::{self, Wanted};
use crate::{DEFAULT_LIMIT, Git, MAX_REFERENCE_BYTES, TEXT, history, lines_of, pretty, short, tree};

/// The hex digits of a commit ID in a reference to the next page: unambiguous in any repository, and short enough for many
/// IDs in one reference.
const ID_DIGITS: usize = 14;

/// The most commits among which the common ancestor of two commits is searched.
const MAX_BASE_STEPS: usize = 100_000;

/// The names of references that cannot be read, of which an answer shows so many.
const MAX_UNREADABLE: usize = 20;

impl Git {
    /// The contents of a resource that is made in memory.
    pub(crate) fn made(&self, asked: &str, address: &Address) -> Result<Contents> {
        match address {
            Address::Overview => self.overview(asked),
            Address::References { after, limit } => self.list_references(asked, after, limit.unwrap_or(MAX_LIMIT)),
            Address::Log { revision, from, limit, query } => {
                let limit = limit.unwrap_or(DEFAULT_LIMIT);
                if from.is_none() && self.is_unborn(revision)? {
                    let notice = "the repository has no commits yet";
                    let head = [("next", Json::Null), ("unfinished", json!(false)), ("notice", json!(notice))];
                    return Ok(lines_of(asked, &head, "commits", std::iter::empty()));
                }
                let from = match from {
                    Some(from) => from.iter().map(|name| self.commit(name)).collect::<Result<Vec<_>>>()?,
                    None => vec![self.commit(revision)?],
                };
                self.log(asked, &from, query, limit)
            }
            Address::Commit { revision, after, renames } => {
                let id = self.commit(revision)?;
                let wanted = Wanted { after: after.as_deref(), finds_renames: *renames, ..Wanted::default() };
                let found = show::text(&self.repository, &id, wanted, &self.budget)?;
                let mut text = found.text;
                if let Some(next) = found.next {
                    let renames = if *renames { "&renames=yes" } else { "" };
                    let after = encoded(&referable(&next));
                    text.push_str(&format!("\n[git: more diffs follow: commits/{id}?after={after}{renames}]\n"));
                }
                Ok(Contents::text(asked, text).mime_type(TEXT))
            }
            Address::Diff(diff) => self.diff(asked, diff),
            Address::Blame { .. } | Address::Tree { .. } => Err(Error::NotFound),
        }
    }

    fn overview(&self, asked: &str) -> Result<Contents> {
        let (branch, head) = self.repository.head()?;
        let (references, _) = self.repository.references()?;
        let count = |start: &str| references.iter().filter(|reference| reference.name.starts_with(start)).count();
        let mut about = json!({
            "head": branch, "commit": null, "readme": null,
            "branches": count("refs/heads/"), "tags": count("refs/tags/"), "remote_branches": count("refs/remotes/"),
        });
        let Some(fields) = about.as_object_mut() else { return Err(Error::NotFound) };
        if let Some(head) = head {
            let id = self.repository.commit_of(head)?;
            fields.insert("commit".to_owned(), log::describe(&id, &self.repository.objects.get(&id)?)?);
            // In a partial clone, the tree may be absent.
            let entries = self.repository.tree_of(id).and_then(|root| tree::entries(&self.repository.objects, &root));
            let entries = entries.unwrap_or_default();
            let mut readmes = entries.iter().filter_map(|entry| std::str::from_utf8(&entry.path).ok());
            let readme = readmes.find(|name| name.to_ascii_lowercase().starts_with("readme"));
            let readme = readme.map(|name| format!("tree/HEAD/{}", reference::encode(name)));
            fields.insert("readme".to_owned(), json!(readme));
        }
        let work_trees = self.repository.work_trees().into_iter();
        let work_trees: Vec<Json> =
            work_trees.map(|(name, path, head)| json!({ "name": name, "path": path, "head": head })).collect();
        if !work_trees.is_empty() {
            fields.insert("work_trees".to_owned(), json!(work_trees));
        }
        let notices = self.notices();
        if !notices.is_empty() {
            fields.insert("notices".to_owned(), json!(notices));
        }
        Ok(pretty(asked, &about))
    }

    /// What a reader should know of the repository, in words.
    fn notices(&self) -> Vec<String> {
        let gaps = self.repository.objects.gaps();
        let mut notices = Vec::new();
        if let Some((filter, remote)) = &gaps.partial {
            notices.push(format!(
                "a partial clone of \"{remote}\" (filter {filter}): objects that were not fetched are absent; run  git fetch \
                 --refetch --no-filter {remote}  to get them"
            ));
        }
        if gaps.is_shallow {
            notices.push("a shallow clone: the history ends early; run  git fetch --unshallow".to_owned());
        }
        notices.extend(gaps.alternates.iter().map(|alternate| {
            format!("objects borrowed from \"{alternate}\" cannot be read: it is not below the granted directory")
        }));
        notices
            .extend(gaps.unindexed.iter().map(|pack| format!("the pack \"{pack}\" has no index; run  git index-pack")));
        let (grafts, replaced) = self.repository.rewritten();
        if grafts > 0 {
            notices.push(format!("{grafts} commits have other parents than their objects say (info/grafts)"));
        }
        if replaced > 0 {
            notices.push(format!("{replaced} objects are shown as others (refs/replace), as Git does"));
        }
        notices
    }

    fn list_references(&self, asked: &str, after: &str, limit: usize) -> Result<Contents> {
        let (all, mut unreadable) = self.repository.references()?;
        let mut rest = all.iter().filter(|reference| reference.name.as_str() > after);
        let given: Vec<&Reference> = rest.by_ref().take(limit).collect();
        let next =
            rest.next().and(given.last()).map(|last| format!("refs?after={}&limit={limit}", encoded(&last.name)));
        let lines = given.iter().map(|reference| {
            let kind = ["refs/heads/", "refs/tags/", "refs/remotes/"]
                .into_iter()
                .zip(["branch", "tag", "remote branch"])
                .find(|(start, _)| reference.name.starts_with(start))
                .map_or("other", |(_, kind)| kind);
            // An annotated tag is an object of its own, which names a commit.
            let commit = self.repository.commit_of(reference.peeled.unwrap_or(reference.id)).ok();
            json!({
                "name": short(&reference.name), "type": kind, "full_name": reference.name,
                "id": reference.id.to_string(), "commit": commit.map(|id| id.to_string()),
            })
        });
        let mut head = vec![("next", json!(next))];
        if !unreadable.is_empty() {
            unreadable.truncate(MAX_UNREADABLE);
            head.push(("unreadable", json!(unreadable)));
        }
        Ok(lines_of(asked, &head, "refs", lines))
    }

    fn log(&self, asked: &str, from: &[ObjectId], query: &Query, limit: usize) -> Result<Contents> {
        let filter = Filter {
            path: query.path.as_deref().map(|path| referred(path).into_owned()),
            author: query.author.as_deref().map(str::to_lowercase),
            text: query.grep.as_deref().map(str::to_lowercase),
            since: query.since,
            until: query.until,
        };
        let page = log::page(&self.repository, from, &filter, limit, &self.budget)?;
        let next = next_page(from, &page, query, limit);
        let mut head = vec![
            ("next", json!(next)),
            ("cut", json!(next.is_none() && !page.next.is_empty())),
            ("unfinished", json!(page.unfinished)),
        ];
        if let Some(notice) = &page.notice {
            head.push(("notice", json!(notice)));
        }
        Ok(lines_of(asked, &head, "commits", page.commits.into_iter()))
    }

    fn diff(&self, asked: &str, diff: &Diff) -> Result<Contents> {
        let (mut from, to) = (self.commit_or_tree(&diff.from)?, self.commit_or_tree(&diff.to)?);
        if diff.is_from_base {
            let base = history::merge_base(
                &self.repository,
                self.commit(&diff.from)?,
                self.commit(&diff.to)?,
                MAX_BASE_STEPS,
            )?;
            from = base.ok_or_else(|| {
                Error::invalid(format_args!(
                    "\"{}\" and \"{}\" have no common ancestor; two points compare them directly",
                    diff.from, diff.to
                ))
            })?;
        }
        let trees = (Some(self.repository.tree_of(from)?), self.repository.tree_of(to)?);
        let wanted = Wanted {
            path: diff.path.as_deref(),
            after: diff.after.as_deref(),
            finds_renames: diff.renames,
            most: None,
        };
        let next = |path: &[u8]| {
            let mut next = format!("diff/{from}..{to}?after={}", encoded(&referable(path)));
            let path = diff.path.as_ref().map(|path| ("path", encoded(path)));
            let renames = (!diff.renames).then(|| ("renames", "no".to_owned()));
            let format = diff.is_stat.then(|| ("format", "stat".to_owned()));
            for (name, value) in [path, renames, format].into_iter().flatten() {
                next.push_str(&format!("&{name}={value}"));
            }
            next
        };
        if diff.is_stat {
            let (lines, after, notice) = show::numbers(&self.repository, trees, wanted, &self.budget)?;
            let mut head = vec![
                ("from", json!(from.to_string())),
                ("to", json!(to.to_string())),
                ("next", json!(after.as_deref().map(next))),
            ];
            if !notice.is_empty() {
                head.push(("notice", json!(notice.trim_end())));
            }
            return Ok(lines_of(asked, &head, "files", lines.into_iter()));
        }
        let found = show::diff(&self.repository, trees, wanted, &self.budget)?;
        let mut text = found.text;
        if let Some(after) = &found.next {
            text.push_str(&format!("\n[git: more diffs follow: {}]\n", next(after)));
        }
        Ok(Contents::text(asked, text).mime_type(TEXT))
    }

    /// A commit, or a tree, which a revision may name too.
    fn commit_or_tree(&self, revision: &str) -> Result<ObjectId> {
        let id = self.repository.resolve(revision)?;
        self.repository.commit_of(id).or_else(|_| self.repository.tree_of(id))
    }
}

/// The reference of the page after a page of the log. `None` at the end, or if the history is too wide to continue.
fn next_page(from: &[ObjectId], page: &log::Page, query: &Query, limit: usize) -> Option<String> {
    if page.next.is_empty() {
        return None;
    }
    let of = |ids: &[ObjectId], until: Option<i64>| {
        let ids: Vec<String> = ids.iter().map(|id| id.to_hex_with_len(ID_DIGITS).to_string()).collect();
        let mut next = format!("log?from={}&limit={limit}", ids.join(","));
        let text = |name, value: &Option<String>| value.as_ref().map(|value| (name, encoded(value)));
        let number = |name, value: Option<i64>| value.map(|value| (name, format!("@{value}")));
        let fields = [
            text("path", &query.path),
            text("author", &query.author),
            text("grep", &query.grep),
            number("since", query.since),
            number("until", until),
        ];
        for (name, value) in fields.into_iter().flatten() {
            next.push_str(&format!("&{name}={value}"));
        }
        (next.len() < MAX_REFERENCE_BYTES - 64).then_some(next)
    };
    // Too many branches for one reference: the next page begins where this one did, and skips to the date that was reached.
    let by_date = || page.reached.filter(|reached| Some(*reached) != query.until).and_then(|date| of(from, Some(date)));
    of(&page.next, query.until).or_else(by_date)
}

/// A value for a query.
fn encoded(text: &str) -> String {
    reference::encode(text).replace('&', "%26").replace('+', "%2B").replace('#', "%23")
}

/// A number that changes with the references.
pub(crate) fn digest(references: &[Reference], head: (Option<String>, Option<ObjectId>)) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    for reference in references {
        (&reference.name, reference.id.as_bytes()).hash(&mut hasher);
    }
    (head.0, head.1.map(|id| id.to_string())).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
