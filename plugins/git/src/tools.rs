//! The tools `log` and `diff`.

use std::fmt::Write as _;

use belljar_guest::{Error, Result, Tool, ToolSet, Tools};
use gix_hash::ObjectId;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::address::{MAX_LIMIT, seconds};
use crate::log::{self, Filter};
use crate::show::{self, Wanted};
use crate::{Git, names};

/// Commits of a log when the call has no `limit`. A model has to read them.
const COMMITS: usize = 20;

/// The length of all diffs of a result together, in bytes. A model has to read them.
const MAX_DIFF_BYTES: usize = 96 * 1024;

/// The schema of [`Log`]. A text, because the code that makes schemas from types has 110 KB.
const LOG: &str = r#"{"type":"object","properties":{"rev":{"type":"string","description":"Where to begin; HEAD by default"},"path":{"type":"string","description":"Only commits that changed it"},"text":{"type":"string","description":"Only messages with it"},"author":{"type":"string"},"since":{"type":"string"},"until":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"20 by default"}},"additionalProperties":false}"#;

/// The schema of [`Diff`].
const DIFF: &str = r#"{"type":"object","properties":{"from":{"type":"string","description":"Branch, tag or commit, such as HEAD~3"},"to":{"type":"string","description":"HEAD by default"},"path":{"type":"string","description":"Only this file or directory"}},"required":["from"],"additionalProperties":false}"#;

/// The arguments of `log`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    rev: Option<String>,
    path: Option<String>,
    text: Option<String>,
    author: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<usize>,
}

/// The arguments of `diff`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Diff {
    from: String,
    to: Option<String>,
    path: Option<String>,
}

impl Tools for Git {
    fn tools() -> ToolSet<Self> {
        let log = Tool::reading("log", "Commits of the Git repository, newest first.").input(LOG);
        let diff = Tool::reading("diff", "Unified diff of two Git revisions.").input(DIFF);
        ToolSet::new().tool_with_schemas(log, Git::log_tool).tool_with_schemas(diff, Git::diff_tool)
    }
}

impl Git {
    fn log_tool(&self, asked: Log) -> Result<String> {
        let limit = asked.limit.unwrap_or(COMMITS);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Error::invalid(format_args!("\"limit\" is {limit}: expected a number from 1 to {MAX_LIMIT}")));
        }
        let from = self.named("rev", asked.rev.as_deref())?;
        let path = asked.path.as_deref().map(|path| path.trim_matches('/')).filter(|path| !path.is_empty());
        let lower = |text: Option<String>| text.filter(|text| !text.is_empty()).map(|text| text.to_lowercase());
        let date = |name: &str, text: Option<String>| {
            text.filter(|text| !text.is_empty()).map(|text| seconds(name, &text)).transpose()
        };
        let filter = Filter {
            path: path.map(|path| names::referred(path).into_owned()),
            author: lower(asked.author),
            text: lower(asked.text),
            since: date("since", asked.since)?,
            until: date("until", asked.until)?,
        };
        let page = log::page(&self.repository, &[from], &filter, limit, &self.budget)?;
        let mut text = String::new();
        for commit in &page.commits {
            let field = |name: &str| commit.get(name).and_then(Json::as_str).unwrap_or_default();
            let (id, author) = (field("id"), field("author"));
            let _ = writeln!(text, "{} {} {author}: {}", id.get(..12).unwrap_or(id), field("date"), field("subject"));
        }
        if let Some(notice) = page.notice {
            let _ = writeln!(text, "[git: {notice}]");
        }
        match (page.commits.len(), page.next.is_empty()) {
            (0, true) => text.push_str("no commits\n"),
            (_, true) => {}
            // The search ended at a limit of work, so the last commit of the text is not where it ended.
            (_, false) if page.unfinished => {
                let at = page.next.first().map(|id| id.to_hex_with_len(12).to_string()).unwrap_or_default();
                let _ = writeln!(text, "[git: the search stopped at a limit; it continues from \"rev\" {at}]");
            }
            (count, false) => {
                let _ = writeln!(text, "[git: there are more than these {count}]");
            }
        }
        Ok(text)
    }

    fn diff_tool(&self, asked: Diff) -> Result<String> {
        let from = self.repository.tree_of(self.named("from", Some(&asked.from))?)?;
        let to = self.repository.tree_of(self.named("to", asked.to.as_deref())?)?;
        let path = asked.path.as_deref().map(|path| path.trim_matches('/')).filter(|path| !path.is_empty());
        let wanted = Wanted { path, most: Some(MAX_DIFF_BYTES), ..Wanted::default() };
        let found = show::diff(&self.repository, (Some(from), to), wanted, &self.budget)?;
        Ok(if found.is_cut {
            found.text + "[git: \"path\" gives those of one file or directory]\n"
        } else {
            found.text
        })
    }

    /// The commit of the revision in the argument `name`.
    pub(crate) fn named(&self, name: &str, revision: Option<&str>) -> Result<ObjectId> {
        let revision = revision.filter(|revision| !revision.is_empty()).unwrap_or("HEAD");
        self.commit(revision).map_err(|error| match error {
            Error::NotFound => Error::invalid(format_args!(
                "\"{name}\" is \"{revision}\": expected a branch, a tag or a commit of this repository"
            )),
            other => other,
        })
    }
}
