//! A directory as a resource: a Markdown list of its entries with links. The resource does not have the contents of all
//! files: a list stays small, and the client chooses the files.

use std::fmt::Write;

use belljar_guest::{Contents, Error, Result, reference};
use belljar_tree::{Kind, Path, Smallest, Tree, smallest};

use crate::{media, title_of};

/// Entries per listing; a link leads to the next ones.
const MAX_LISTED: usize = 1000;

/// Lists the directory of `reference`. The query `after=NAME` lists the entries after that name.
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
        // Writing to a String cannot fail.
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

/// The entries in a listing with this query.
pub(crate) fn entries(tree: &Tree, directory: &Path, query: &str) -> Result<Smallest> {
    let after = reference::query_value(query, "after")?;
    if after.is_none() && !query.is_empty() {
        return Err(Error::invalid("the only parameter of a directory is \"after\""));
    }
    let after = after.unwrap_or_default();
    let entries =
        tree.entries(&directory.path)?.filter(|entry| after.is_empty() || entry.key().as_str() > after.as_str());
    Ok(smallest(entries, MAX_LISTED))
}

/// The prefix of links. Relative to `a/b`, an entry is `b/name`; relative to `a/b/`, it is `name`.
fn link_base(directory: &Path) -> String {
    if directory.is_directory { String::new() } else { format!("{}/", target(belljar_tree::name(&directory.path))) }
}

/// A name as the target of a Markdown link. Parentheses are encoded, because they would end the target.
fn target(name: &str) -> String {
    reference::encode_segment(name).replace('(', "%28").replace(')', "%29")
}

/// A name as the text of a link.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]")
}
