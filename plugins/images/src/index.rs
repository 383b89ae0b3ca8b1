//! A directory as a resource: a Markdown list of its pictures and directories, with links.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use belljar_guest::{Contents, Result, reference};
use belljar_tree::{Kind, Path, Tree};

use crate::query::{Query, entry};

/// Entries per listing; a link leads to the next ones.
const MAX_LISTED: usize = 1000;

/// How long a listing opens files. An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 1 });

pub(crate) fn read(tree: &Tree, reference: &str, directory: &Path, query: &Query) -> Result<Contents> {
    let found = tree.below(&directory.path, &query.start, MAX_LISTED)?;
    let until = Instant::now() + TIME;
    let heading = if directory.path.is_empty() { "/" } else { &directory.path };
    let mut text = format!("# Pictures in {}\n\n", label(heading));
    // Relative to `a/b`, an entry is `b/name`; relative to `a/b/`, it is `name`.
    let base = match belljar_tree::name(&directory.path) {
        name if !directory.is_directory => format!("{}/", target(name)),
        _ => String::new(),
    };
    let mut next = found.next.clone();
    let (mut pictures, mut directories) = (0, 0);
    for (index, listed) in found.entries.iter().enumerate() {
        let (name, link) = (label(&listed.name), target(&listed.name));
        if listed.kind == Kind::Directory {
            directories += 1;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "- [{name}/]({base}{link}/)");
        } else if let Some(picture) = entry(tree, directory, &listed.name) {
            pictures += 1;
            let time = picture.meta.last_modified().map(|time| format!(", {time}")).unwrap_or_default();
            let _ = writeln!(
                text,
                "- [{name}]({base}{link}) ({}, {} bytes{time})",
                picture.format.name(),
                picture.meta.size
            );
        }
        if index % 20 == 19 && Instant::now() > until && index + 1 < found.entries.len() {
            next = Some(found.after(index));
            break;
        }
    }
    if pictures + directories == 0 {
        text.push_str("(no pictures)\n");
    }
    if pictures > 0 {
        let _ = writeln!(text, "\n[contact sheet]({base}sheet), [newest picture]({base}latest)");
    }
    if let Some(next) = next {
        let _ = writeln!(text, "\nMore: [next](?after={})", next.text());
    }
    Ok(Contents::text(reference, text).mime_type("text/markdown"))
}

/// The revision of a directory: changes with the names, sizes and times of its entries.
pub(crate) fn revision(tree: &Tree, directory: &Path, query: &Query) -> Result<String> {
    let found = tree.below(&directory.path, &query.start, MAX_LISTED)?;
    let mut hasher = DefaultHasher::new();
    found.left.hash(&mut hasher);
    for listed in &found.entries {
        let meta = tree.meta(&directory.child(&listed.name)).ok();
        let facts = meta.map(|meta| (meta.kind, (meta.kind == Kind::File).then(|| meta.facts())));
        (&listed.name, facts).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// A name as the target of a Markdown link. Parentheses are encoded, because they would end the target.
fn target(name: &str) -> String {
    reference::encode_segment(name).replace('(', "%28").replace(')', "%29")
}

/// A name as the text of a link.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]")
}
