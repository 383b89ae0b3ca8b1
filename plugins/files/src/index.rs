//! A directory as a resource: a Markdown list of what is in it, with links that lead on. One text rather than the
//! contents of all files, because it stays small, and lets the reader choose.

use std::fmt::Write;

use belljar_guest::{Contents, Error, Result, reference};
use belljar_tree::{Kind, Path, Smallest, Tree, smallest};

use crate::{media, title_of};

/// How many entries a listing holds; the rest follows under a link.
const MOST: usize = 1000;

/// Lists the directory that was asked for by `reference`. The query `after=NAME` goes on after that name.
pub(crate) fn read(tree: &Tree, reference: &str, directory: &Path, query: &str) -> Result<Contents> {
    let found = entries(tree, directory, query)?;
    let heading = if directory.path.is_empty() { "/" } else { &directory.path };
    let mut text = format!("# {heading}\n\n");
    let base = link_base(directory);
    for entry in &found.entries {
        let path = directory.child(&entry.name);
        let Ok(meta) = tree.meta(&path) else { continue };
        let name = label(&entry.name);
        let link = target(&entry.name);
        // A String takes whatever is written to it.
        let _ = match meta.kind {
            Kind::Directory => writeln!(text, "- [{name}/]({base}{link}/)"),
            Kind::File => {
                let title = title_of(tree, &path, media::by_name(&entry.name), &meta)
                    .map(|title| format!(": {title}"))
                    .unwrap_or_default();
                let time = meta.last_modified().map(|time| format!(", {time}")).unwrap_or_default();
                writeln!(text, "- [{name}]({base}{link}){title} ({} bytes{time})", meta.size)
            }
            Kind::Symlink | Kind::Other => Ok(()),
        };
    }
    if found.seen == 0 {
        text.push_str("(empty)\n");
    }
    if let Some(last) = found.entries.last().filter(|_| found.seen > found.entries.len()) {
        let rest = found.seen - found.entries.len();
        let next = reference::encode_segment(&last.key()).replace('&', "%26");
        let _ = writeln!(text, "\n{rest} more: [next](?after={next})");
    }
    Ok(Contents::text(reference, text).mime_type(media::MARKDOWN))
}

/// What a listing with this query shows.
pub(crate) fn entries(tree: &Tree, directory: &Path, query: &str) -> Result<Smallest> {
    let after = reference::query_value(query, "after")?;
    if after.is_none() && !query.is_empty() {
        return Err(Error::invalid("a directory takes no query but \"after\""));
    }
    let after = after.unwrap_or_default();
    let entries =
        tree.entries(&directory.path)?.filter(|entry| after.is_empty() || entry.key().as_str() > after.as_str());
    Ok(smallest(entries, MOST))
}

/// What links begin with, so that they are right however the directory was asked for: relative to `a/b`, what is in it
/// is `b/name`; relative to `a/b/`, it is `name`.
fn link_base(directory: &Path) -> String {
    if directory.is_directory { String::new() } else { format!("{}/", target(belljar_tree::name(&directory.path))) }
}

/// A name as the target of a link: the round brackets would end it.
fn target(name: &str) -> String {
    reference::encode_segment(name).replace('(', "%28").replace(')', "%29")
}

/// A name as the text of a link.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]")
}
