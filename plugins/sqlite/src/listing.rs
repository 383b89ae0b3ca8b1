//! The lists: all resources, and those directly below a directory. Opens only the databases of the page.

use belljar_guest::{Error, Page, Resource, Result, reference};

use crate::schema::Kind;
use crate::store::Database;
use crate::{CURSOR, MAX_REFERENCE_BYTES, PAGE, Sqlite, name, snapshot};
use belljar_sql::output::JSON;

/// The media type of a directory.
const DIRECTORY: &str = "inode/directory";

impl Sqlite {
    /// One page of all resources, in the order of the databases.
    pub(crate) fn list(&self, cursor: Option<&str>) -> Result<Page> {
        let cursor = parse(cursor)?;
        // The first segment of the last entry of the page before is its database.
        let last = cursor.map(|cursor| cursor.split('/').next().unwrap_or_default());
        let mut resources = Vec::new();
        if self.store.has_several() && cursor.is_none() {
            resources.push(
                Resource::new("")
                    .name("databases")
                    .mime_type(JSON)
                    .description("The names of all databases".to_owned()),
            );
        }
        for database in self.store.databases()? {
            let own = overview(&database);
            if self.store.has_several() && last.is_some_and(|last| own.as_str() < last) {
                continue;
            }
            let mut listed = match self.listed(&database) {
                Ok(listed) => listed,
                // A broken database does not hide the others.
                Err(error) if self.store.has_several() => {
                    let broken = Resource::new(own).mime_type(JSON);
                    vec![about(broken, &database, &format!("cannot be read: {error}"))]
                }
                Err(error) => return Err(error),
            };
            listed.retain(|resource| {
                resource.reference.len() <= MAX_REFERENCE_BYTES
                    && cursor.is_none_or(|cursor| resource.reference.as_str() > cursor)
            });
            listed.sort_by(|one, other| one.reference.cmp(&other.reference));
            resources.extend(listed);
            if resources.len() > PAGE {
                break;
            }
        }
        Ok(paged(resources, None))
    }

    /// One page of the resources directly below a directory.
    pub(crate) fn below(&self, asked: &str, cursor: Option<&str>) -> Result<Page> {
        let cursor = parse(cursor)?;
        let (path, rest) = match (self.store.has_several(), asked.trim_end_matches('/')) {
            (true, "") => {
                let databases = self.store.databases()?;
                let directory = |database: &Database| {
                    let name = base(database);
                    about(Resource::new(&name).name(&database.name), database, "a database").mime_type(DIRECTORY)
                };
                return Ok(paged(databases.iter().map(directory).collect(), cursor));
            }
            (true, path) => path.split_once('/').unwrap_or((path, "")),
            (false, path) => ("", path),
        };
        let database = self.store.find(&reference::decode(path)?)?;
        let base = base(&database);
        let of = |rest: String, name: &str| Resource::new(format!("{base}{rest}")).name(name);
        let directory = |name: &str, description: &str| {
            about(of(format!("{name}/"), name), &database, description).mime_type(DIRECTORY)
        };
        let all = self.listed(&database)?;
        let below = |start: &str| -> Vec<Resource> {
            let start = format!("{base}{start}");
            all.iter().filter(|resource| resource.reference.starts_with(&start)).cloned().collect()
        };
        let mut resources = match rest {
            "" => {
                let mut resources: Vec<Resource> =
                    all.iter().filter(|resource| !is_below(&resource.reference, &base)).cloned().collect();
                resources.push(directory("tables", "the tables and views of the database"));
                if !below("views/").is_empty() {
                    resources.push(directory("views", "the operator's views"));
                }
                resources
            }
            "tables" | "views" => below(&format!("{rest}/")),
            _ => return Err(Error::NotFound),
        };
        resources.sort_by(|one, other| one.reference.cmp(&other.reference));
        Ok(paged(resources, cursor))
    }

    fn listed(&self, database: &Database) -> Result<Vec<Resource>> {
        let base = base(database);
        let (entries, views) = snapshot::with(database, |snapshot| {
            let plain = self.views.iter().filter(|view| view.parameters(snapshot).is_ok_and(|names| names.is_empty()));
            let entries: Vec<_> = snapshot.catalog.listed().into_iter().cloned().collect();
            Ok((entries, plain.map(|view| view.name.clone()).collect::<Vec<_>>()))
        })?;
        let of = |rest: String, name: &str| Resource::new(format!("{base}{rest}")).name(name).mime_type(JSON);
        let mut listed = vec![
            about(
                Resource::new(overview(database)).mime_type(JSON),
                database,
                "tables with their columns and row counts",
            ),
            about(
                of("schema".to_owned(), "schema"),
                database,
                "tables, columns with types, keys, indexes and foreign keys",
            ),
            about(of("schema.sql".to_owned(), "schema.sql"), database, "the CREATE statements of the database")
                .mime_type("application/sql"),
        ];
        for entry in &entries {
            let name = &entry.name;
            let what = match &entry.kind {
                Kind::View => "view".to_owned(),
                Kind::Table => "table".to_owned(),
                Kind::Virtual(module) => format!("{module} table"),
            };
            let description =
                format!("the first {} rows of the {what} \"{name}\"; each page names the next one", self.rows);
            listed.push(about(of(format!("tables/{}", name::segment(name)), name), database, &description));
        }
        for name in views {
            let description = format!("rows of the operator's view \"{name}\"; each page names the next one");
            listed.push(about(of(format!("views/{name}"), &name), database, &description));
        }
        Ok(listed)
    }
}

/// The beginning of all references to a database.
pub(crate) fn base(database: &Database) -> String {
    match database.name.as_str() {
        "" => String::new(),
        name => format!("{}/", name::segment(name)),
    }
}

fn overview(database: &Database) -> String {
    base(database).trim_end_matches('/').to_owned()
}

/// True if the reference has several segments below `base`.
fn is_below(whole: &str, base: &str) -> bool {
    whole.strip_prefix(base).is_some_and(|rest| rest.contains('/'))
}

fn parse(cursor: Option<&str>) -> Result<Option<&str>> {
    let foreign = || {
        Error::invalid(format_args!(
            "the cursor does not begin with \"{CURSOR}\": use one from a list of this provider"
        ))
    };
    cursor.map(|cursor| cursor.strip_prefix(CURSOR).ok_or_else(foreign)).transpose()
}

fn paged(resources: Vec<Resource>, cursor: Option<&str>) -> Page {
    let mut page = Page::of(resources, cursor, PAGE);
    page.next_cursor = page.next_cursor.map(|last| format!("{CURSOR}{last}"));
    page
}

/// Sets name and description of an entry. With several databases, the title begins with the database's name.
fn about(resource: Resource, database: &Database, description: &str) -> Resource {
    let name = if resource.reference == overview(database) { "overview".to_owned() } else { resource.name.clone() };
    let resource = resource.name(&name).description(capitalized(description));
    match database.name.as_str() {
        "" => resource,
        database => resource.title(format!("{database}: {name}")),
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}
