//! A directory as a resource: a Markdown list of its entries with links. The resource does not have the contents of all
//! files: a list stays small, and the client chooses the files.

use std::fmt::Write;
use std::time::{Duration, Instant};

use belljar_guest::{Contents, Error, Result, reference};
use belljar_tree::{Below, Kind, Path, Start, Tree};

use crate::{media, title_of};

/// Entries per listing; a link leads to the next ones.
const MAX_LISTED: usize = 1000;

/// How long a listing looks up metadata. On a cold disk it has fewer entries.
const TIME: Duration = Duration::from_secs(1);

/// Lists the directory of `reference`. The query `after=NAME` lists the entries after that name, and `from=POSITION` those
/// of a large directory from a position.
pub(crate) fn read(tree: &Tree, reference: &str, directory: &Path, query: &str) -> Result<Contents> {
    let mut found = entries(tree, directory, query)?;
    let until = Instant::now() + TIME;
    let heading = if directory.path.is_empty() { "/" } else { &directory.path };
    let mut text = format!("# {heading}\n\n");
    let base = link_base(directory);
    let mut cut = None;
    for (index, entry) in found.entries.iter().enumerate() {
        if index % 50 == 49 && Instant::now() > until {
            cut = Some(index);
        }
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
        if cut.is_some() {
            break;
        }
    }
    if let Some(index) = cut.filter(|index| index + 1 < found.entries.len()) {
        (found.next, found.left) = (Some(found.after(index)), None);
    }
    if found.entries.is_empty() && found.next.is_none() {
        text.push_str("(empty)\n");
    }
    if found.unnamed > 0 {
        let _ = writeln!(text, "\n{}", unnamed(found.unnamed));
    }
    let left = found.left.map(|left| format!("{left} more")).unwrap_or_else(|| "More".to_owned());
    match found.next {
        Some(Start::After(key)) => {
            let next = target(&key).replace('&', "%26");
            let _ = writeln!(text, "\n{left}: [next](?after={next})");
        }
        Some(Start::Position(position)) => {
            let _ = writeln!(text, "\n{left}: [next](?from={position:x})");
        }
        Some(Start::Beginning) | None => {}
    }
    Ok(Contents::text(reference, text).mime_type(media::MARKDOWN))
}

/// A notice of names that no reference can hold.
fn unnamed(count: usize) -> String {
    let (names, are) = if count == 1 { ("1 name", "is") } else { (&*format!("{count} names"), "are") };
    format!(
        "{names} that {are} not UTF-8 cannot be read through WebAssembly, and {are} left out. Rename the files to read them."
    )
}

/// The entries in a listing with this query.
pub(crate) fn entries(tree: &Tree, directory: &Path, query: &str) -> Result<Below> {
    let start = match (reference::query_value(query, "after")?, reference::query_value(query, "from")?) {
        (None, None) if !query.is_empty() => {
            return Err(Error::invalid("the parameters of a directory are \"after\" and \"from\""));
        }
        (_, Some(from)) => Start::parse(&format!("?{from}"))?,
        (Some(after), None) if !after.is_empty() => Start::After(after),
        _ => Start::Beginning,
    };
    tree.below(&directory.path, &start, MAX_LISTED)
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
