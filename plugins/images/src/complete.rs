//! Suggests values for the variables of the templates.

use belljar_guest::{Argument, Error, Result, Suggestions};
use belljar_tree::Tree;

use crate::query::Picture;
use crate::{INFO, LATEST, LATEST_BELOW, PICTURE, SHEET, SHEET_BELOW, is_file};

/// Sizes that are common for thumbnails and for the input of models.
const SIZES: [&str; 5] = ["256", "512", "768", "1024", "2048"];

pub(crate) fn complete(tree: &Tree, template: &str, argument: &Argument) -> Result<Suggestions> {
    if ![PICTURE, INFO, LATEST, LATEST_BELOW, SHEET, SHEET_BELOW].contains(&template) {
        return Err(Error::invalid(format_args!("no template \"{template}\"")));
    }
    let value = argument.value.as_str();
    Ok(match (argument.name.as_str(), template) {
        ("path", PICTURE | INFO) => {
            let mut found = belljar_tree::complete(tree, value, |_| true)?;
            let before = found.values.len();
            found.values.retain(|path| path.ends_with('/') || is_picture(tree, path));
            if found.values.len() < before {
                found.total = None;
            }
            found
        }
        // No file is suggested where a directory is meant, and a template adds the `/`.
        ("path", LATEST_BELOW | SHEET_BELOW) => {
            let mut found = belljar_tree::complete(tree, value, |_| false)?;
            found.values.iter_mut().for_each(|path| path.truncate(path.trim_end_matches('/').len()));
            found
        }
        ("size", PICTURE | LATEST | LATEST_BELOW) => Suggestions::starting_with(value, SIZES),
        ("format", PICTURE) => Suggestions::starting_with(value, ["jpeg", "png"]),
        ("n", LATEST | LATEST_BELOW) => Suggestions::starting_with(value, (1..=20).map(|count| count.to_string())),
        ("after", SHEET | SHEET_BELOW) => Suggestions::default(),
        (other, _) => return Err(Error::invalid(format_args!("no variable \"{other}\" in \"{template}\""))),
    })
}

fn is_picture(tree: &Tree, path: &str) -> bool {
    let meta = is_file(tree, path);
    meta.is_some_and(|meta| matches!(Picture::at(tree, path.to_owned(), meta), Ok(Some(_))))
}
