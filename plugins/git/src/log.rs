//! The log: commits from the newest to the oldest, all of them or those that a filter selects. A page names the commits at
//! which the next page begins, so every page costs the same.

use belljar_guest::Result;
use gix_hash::ObjectId;
use serde_json::{Value as Json, json};

use crate::budget::Budget;
use crate::charset::Charset;
use crate::history::{Commit, Path, Queue};
use crate::objects::Object;
use crate::repository::{Repository, commit};

/// The most commits that one page visits.
const MAX_VISITED: usize = 50_000;

/// A page of the log.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) commits: Vec<Json>,
    /// The commits at which the next page begins; empty at the end.
    pub(crate) next: Vec<ObjectId>,
    /// True if the search stopped at a limit of commits or work, before the page was full.
    pub(crate) unfinished: bool,
    /// The time of the last visited commit, in seconds since 1970.
    pub(crate) reached: Option<i64>,
    /// Why the log ends here, if it should go on.
    pub(crate) notice: Option<String>,
}

/// The commits that a page shows. By default all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Only commits that changed this file or directory.
    pub(crate) path: Option<Vec<u8>>,
    /// Only commits whose author, as `Name <address>`, contains this, in lower case.
    pub(crate) author: Option<String>,
    /// Only commits whose message contains this, in lower case.
    pub(crate) text: Option<String>,
    /// Only commits whose committer's time is not before or not after these, in seconds since 1970.
    pub(crate) since: Option<i64>,
    pub(crate) until: Option<i64>,
}

impl Filter {
    /// True if the texts of a commit contain those that are wanted.
    fn has_texts(&self, id: &ObjectId, object: &Object) -> Result<bool> {
        if self.author.is_none() && self.text.is_none() {
            return Ok(true);
        }
        let read = commit(id, object)?;
        let charset = Charset::named(read.encoding.map(|name| name.as_ref()));
        let has = |bytes: &[u8], wanted: &str| charset.text(bytes).to_lowercase().contains(wanted);
        let author =
            || read.author().map_or_else(|_| Vec::new(), |who| [&**who.name, b" <", &**who.email, b">"].concat());
        Ok(self.text.as_ref().is_none_or(|wanted| has(read.message, wanted))
            && self.author.as_ref().is_none_or(|wanted| has(&author(), wanted)))
    }
}

/// At most `limit` commits that `filter` selects: `from` and their ancestors. Ends early when the budget is spent.
pub(crate) fn page(
    repository: &Repository,
    from: &[ObjectId],
    filter: &Filter,
    limit: usize,
    budget: &Budget,
) -> Result<Page> {
    let mut queue = Queue::default();
    for id in from {
        queue.push(repository, *id)?;
    }
    let mut page = Page::default();
    let mut path = filter.path.as_deref().map(Path::new);
    let mut visited = 0;
    while page.commits.len() < limit {
        visited += 1;
        // One commit at least, so that the next page begins later.
        if visited > 1 && (visited > MAX_VISITED || budget.is_spent(&repository.objects)) {
            page.unfinished = !queue.is_empty();
            break;
        }
        let Some(mut one) = queue.pop() else { break };
        page.reached = Some(one.node.seconds);
        let result = visit(repository, &mut queue, &mut one, path.as_mut(), filter, &mut page);
        if let Err(error) = result {
            if page.commits.is_empty() {
                return Err(error);
            }
            page.notice = Some(format!("the log ends before the commit {}: {error}", one.id));
            return Ok(page);
        }
    }
    while let Some(one) = queue.pop() {
        page.next.push(one.id);
    }
    Ok(page)
}

/// Shows a commit if the filter selects it, and adds its parents.
fn visit(
    repository: &Repository,
    queue: &mut Queue,
    one: &mut Commit,
    path: Option<&mut Path>,
    filter: &Filter,
    page: &mut Page,
) -> Result<()> {
    let seconds = one.node.seconds;
    if filter.since.is_some_and(|since| seconds < since) {
        return Ok(());
    }
    let mut parents = std::mem::take(&mut one.node.parents);
    let mut is_shown = true;
    if let Some(path) = path {
        // Git's history simplification: if one parent has the same entry, the log follows only this parent.
        let same = path.same_parent(repository, queue, one, &parents)?;
        is_shown = if parents.is_empty() { path.at(repository, one.node.tree)?.is_some() } else { same.is_none() };
        parents = same.map_or(parents, |same| vec![same]);
    }
    if is_shown && filter.until.is_none_or(|until| seconds <= until) {
        let object = match one.object.take() {
            Some(object) => {
                repository.objects.check(&one.id, &object)?;
                object
            }
            None => repository.objects.get(&one.id)?,
        };
        if filter.has_texts(&one.id, &object)? {
            page.commits.push(describe(&one.id, &object)?);
        }
    }
    parents.into_iter().try_for_each(|parent| queue.push(repository, parent))
}

/// The summary of a commit as JSON.
pub(crate) fn describe(id: &ObjectId, object: &Object) -> Result<Json> {
    let read = commit(id, object)?;
    let charset = Charset::named(read.encoding.map(|name| name.as_ref()));
    let message = charset.text(read.message);
    let subject: Vec<&str> = message.trim_start().lines().take_while(|line| !line.trim().is_empty()).collect();
    let author = read.author().ok();
    let time = read.committer().ok().and_then(|who| who.time().ok());
    let mut about = json!({
        "id": id.to_string(),
        "date": time.map(|time| time.format_or_unix(gix_date::time::format::ISO8601_STRICT)),
        "author": author.map(|author| charset.text(author.name).trim().to_owned()),
        "email": author.map(|author| charset.text(author.email).trim().to_owned()),
        "subject": subject.join(" "),
        "parents": read.parents().map(|parent| parent.to_string()).collect::<Vec<_>>(),
        "read": format!("commits/{id}"),
    });
    if let (Charset::Unknown, Some(name), Some(about)) = (charset, read.encoding, about.as_object_mut()) {
        about.insert("unknown_encoding".to_owned(), json!(String::from_utf8_lossy(name)));
    }
    Ok(about)
}
