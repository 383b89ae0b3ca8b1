//! The lists: all resources, and those directly below a directory.

use belljar_guest::{Error, Page, Resource, Result};
use belljar_sql::name;
use belljar_sql::output::JSON;

use crate::catalog;
use crate::connection::Connection;
use crate::{CURSOR, MAX_REFERENCE_BYTES, PAGE, Postgres};

/// The media type of a directory.
const DIRECTORY: &str = "inode/directory";

impl Postgres {
    /// One page of all resources.
    pub(crate) fn list(&self, cursor: Option<&str>) -> Result<Page> {
        let cursor = parse(cursor)?;
        Ok(paged(self.listed()?, cursor))
    }

    /// One page of the resources directly below a directory.
    pub(crate) fn below(&self, asked: &str, cursor: Option<&str>) -> Result<Page> {
        let cursor = parse(cursor)?;
        let directory = |name: &str, description: &str| {
            Resource::new(format!("{name}/")).name(name).description(description.to_owned()).mime_type(DIRECTORY)
        };
        let mut resources = self.listed()?;
        match asked.trim_end_matches('/') {
            "" => {
                // The overview is the directory itself.
                resources.retain(|resource| !resource.reference.is_empty() && !resource.reference.contains('/'));
                resources.push(directory("tables", "The tables and views of the database"));
                if self.plain_views().next().is_some() {
                    resources.push(directory("views", "The operator's views"));
                }
            }
            path @ ("tables" | "views") => {
                let start = format!("{path}/");
                resources.retain(|resource| resource.reference.starts_with(&start));
            }
            _ => return Err(Error::NotFound),
        }
        Ok(paged(resources, cursor))
    }

    /// The names of the views without parameters.
    fn plain_views(&self) -> impl Iterator<Item = &str> {
        self.views.iter().filter(|view| view.parameters.is_empty()).map(|view| view.name.as_str())
    }

    fn listed(&self) -> Result<Vec<Resource>> {
        let of = |reference: String, name: &str, description: String| {
            Resource::new(reference).name(name).mime_type(JSON).description(description)
        };
        let mut listed = vec![
            of(String::new(), "overview", "Tables with their columns and estimated row counts".to_owned()),
            of(
                "schema".to_owned(),
                "schema",
                "Tables, columns with types and comments, keys, indexes and foreign keys".to_owned(),
            ),
        ];
        for entry in catalog::list(&mut Connection::open()?)? {
            let (name, word) = (entry.written(), entry.relation.word());
            let comment = entry.comment.as_ref().map(|comment| format!(": {comment}")).unwrap_or_default();
            let denied = if entry.is_allowed { "" } else { " (the granted user may not read it)" };
            let description = format!(
                "The first {} rows of the {word} \"{name}\"{denied}; each page names the next one{comment}",
                self.rows
            );
            listed.push(of(format!("tables/{}", name::segment(&name)), &name, description));
        }
        for name in self.plain_views() {
            let description = format!("Rows of the operator's view \"{name}\"; each page names the next one");
            listed.push(of(format!("views/{name}"), name, description));
        }
        listed.retain(|resource| resource.reference.len() <= MAX_REFERENCE_BYTES);
        Ok(listed)
    }
}

fn parse(cursor: Option<&str>) -> Result<Option<&str>> {
    let foreign = || {
        Error::invalid(format_args!(
            "the cursor does not begin with \"{CURSOR}\": use one from a list of this provider"
        ))
    };
    cursor.map(|cursor| cursor.strip_prefix(CURSOR).ok_or_else(foreign)).transpose()
}

fn paged(mut resources: Vec<Resource>, cursor: Option<&str>) -> Page {
    resources.sort_by(|one, other| one.reference.cmp(&other.reference));
    let mut page = Page::of(resources, cursor, PAGE);
    page.next_cursor = page.next_cursor.map(|last| format!("{CURSOR}{last}"));
    page
}
