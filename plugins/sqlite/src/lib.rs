//! SQLite databases as resources: the schema, pages of table rows, rows by key, single values, and the SQL views that the
//! operator names.
//!
//! This module implements the provider. It is the only module that knows resources and the list. `address` parses
//! references and `store` finds databases. `snapshot` opens one read-only; `state` detects writes that happen during a
//! read. `schema`, `rows` (with `key` and `value`) and `views` run the queries, and `output` writes JSON. `tools` has the
//! tool `query`, and `prompts` the prompt `explore`; both use `statement` or resources.

mod address;
mod key;
mod output;
mod prompts;
mod rows;
mod schema;
mod snapshot;
mod state;
mod statement;
mod store;
mod tools;
mod value;
mod views;

use belljar_guest::{
    Argument, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Revisions, Suggestions,
    Template, reference,
};
use rusqlite::Connection;
use rusqlite::types::Value;
use serde_json::{Value as Json, json};

use address::{Address, MAX_ROWS};
use output::{JSON, json_of, lines, object, table_of};
use schema::Table;
use state::State;
use store::{Database, Store};
use views::View;

/// The provider.
#[derive(Debug)]
pub struct Sqlite {
    store: Store,
    views: Vec<View>,
    /// Rows per page when the reference has no `limit`.
    rows: usize,
}

/// Entries per page of the list.
const PAGE: usize = 1000;

/// The longest reference that the host accepts, in bytes.
const MAX_REFERENCE_BYTES: usize = 2 * 1024;

/// The most rows that the overview counts, over all tables. Counting scans the rows, so this bounds the overview's cost.
const MAX_COUNTED_ROWS: usize = 20_000;

/// The prefix of every cursor.
const CURSOR: &str = "after:";

impl Provider for Sqlite {
    fn open() -> Result<Self> {
        let setting = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        Sqlite::over(
            Store::new(store::granted(), setting("DATABASE")),
            &setting("VIEWS").unwrap_or_default(),
            setting("ROWS").as_deref(),
        )
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "SQLite".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description(
                "Tables of SQLite databases: schema, pages of rows, rows by key, and views that the operator names",
            )
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let foreign = || {
            Error::invalid(format_args!(
                "the cursor does not begin with \"{CURSOR}\": use one from a list of this provider"
            ))
        };
        let cursor = cursor.map(|cursor| cursor.strip_prefix(CURSOR).ok_or_else(foreign)).transpose()?;
        let mut resources = Vec::new();
        for database in self.store.databases()? {
            match self.listed(&database) {
                Ok(listed) => resources.extend(listed),
                // A broken database does not hide the others.
                Err(error) if self.store.has_several() => {
                    resources.push(about(
                        Resource::new(overview(&database)).mime_type(JSON),
                        &database,
                        &format!("cannot be read: {error}"),
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        resources.retain(|resource| resource.reference.len() <= MAX_REFERENCE_BYTES);
        resources.sort_by(|one, other| one.reference.cmp(&other.reference));
        let mut page = Page::of(resources, cursor, PAGE);
        page.next_cursor = page.next_cursor.map(|last| format!("{CURSOR}{last}"));
        Ok(page)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let base = if self.store.has_several() { "{database}/" } else { "" };
        let of = |rest: &str, name: &str| Template::new(format!("{base}{rest}")).name(name);
        let mut templates = vec![
            of("tables/{table}{?after,limit}", "rows").title("Rows of a table").mime_type(JSON).description(format!(
                "A page of the rows of {{table}} in the order of their keys: at most {{limit}} of them ({} unless you say \
                 otherwise, {MAX_ROWS} at most), those after the key {{after}}. Each page names the next one.",
                self.rows
            )),
            of("tables/{table}/rows/{key}", "row").title("A row by its key").mime_type(JSON).description(
                "The row of {table} whose primary key is {key}; the values of a key of several columns have commas \
                 between them; rowid=7 is the row with rowid 7 in a table without a primary key",
            ),
            of("tables/{table}/rows/{key}/{column}{?offset,length}", "value").title("A value").description(
                "The unchanged value of the column {column} in that row: text or bytes. Large values can be read in parts \
                 of {length} bytes from {offset}",
            ),
            of("schema/{table}", "schema").title("The schema of a table").mime_type(JSON).description(
                "Columns with their types, the key, indexes and foreign keys of {table}, and its CREATE statement",
            ),
        ];
        if !self.views.is_empty() {
            let database = self.store.find("")?;
            templates.extend(snapshot::with(&database, |connection| {
                Ok(self.views.iter().filter_map(|view| template(view, connection, self.rows)).collect::<Vec<_>>())
            })?);
        }
        Ok(templates)
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (database, address) = Address::parse(reference, self.store.has_several())?;
        let Some(database) = self.database(database)? else {
            let names: Vec<String> = self.store.databases()?.into_iter().map(|database| database.name).collect();
            return Ok(lines(reference, &json!({ "databases": names })).into());
        };
        let base = base(&database);
        let contents = snapshot::with(&database, |connection| self.answer(connection, reference, &base, &address))?;
        Ok(contents.into())
    }
}

impl Completion for Sqlite {
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        let known = self.list_templates()?;
        if !known.iter().any(|known| known.template == template) {
            return Err(Error::invalid(format_args!("no template \"{template}\"")));
        }
        let resolved = |name: &str| {
            let given = resolved.iter().find(|argument| argument.name == name);
            given.map(|argument| argument.value.as_str()).filter(|value| !value.is_empty())
        };
        let value = argument.value.as_str();
        if argument.name == "database" && self.store.has_several() {
            let all = self.store.databases()?;
            return Ok(Suggestions::starting_with(value, all.iter().map(|database| database.name.as_str())));
        }
        let database = match (self.store.has_several(), resolved("database")) {
            (true, None) => return Ok(Suggestions::default()),
            (_, name) => match self.store.find(name.unwrap_or_default()) {
                Err(Error::NotFound) => return Ok(Suggestions::default()),
                database => database?,
            },
        };
        let table = |connection: &Connection| match resolved("table").map(|name| Table::find(connection, name)) {
            None | Some(Err(Error::NotFound)) => Ok(None),
            Some(table) => table.map(Some),
        };
        Ok(match argument.name.as_str() {
            "table" => snapshot::with(&database, |connection| {
                let names = schema::names(connection)?;
                Ok(Suggestions::starting_with(value, names.iter().map(|(name, _)| name.as_str())))
            })?,
            "key" | "after" => snapshot::with(&database, |connection| match table(connection)? {
                Some(table) => rows::keys(connection, &table, value, Suggestions::MAX).map(Suggestions::new),
                None => Ok(Suggestions::default()),
            })?,
            "column" => snapshot::with(&database, |connection| {
                let columns = table(connection)?.map(|table| table.columns).unwrap_or_default();
                Ok(Suggestions::starting_with(value, columns.iter().map(|column| column.name.as_str())))
            })?,
            "limit" => Suggestions::starting_with(value, ["10", "100", "1000"]),
            _ => Suggestions::default(),
        })
    }
}

impl Revisions for Sqlite {
    /// Changes with the set of databases and with the `schema_version` of each.
    fn catalog_revision(&self) -> Result<String> {
        let mut revision = String::new();
        for database in self.store.databases()? {
            let version = snapshot::with(&database, |connection| {
                let version = connection.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0));
                version.map_err(snapshot::error)
            });
            let version = version.map_or_else(|_| "none".to_owned(), |version| version.to_string());
            revision = digest(&format!("{revision} {}={version}", database.name));
        }
        Ok(revision)
    }

    /// The revision of the whole database: SQLite keeps no change counter per table.
    fn resource_revision(&self, reference: &str) -> Result<String> {
        let (database, _) = Address::parse(reference, self.store.has_several())?;
        match self.database(database)? {
            Some(database) => State::of(&database.path).map(|state| state.revision()),
            None => self.catalog_revision(),
        }
    }
}

impl Sqlite {
    fn over(store: Store, views: &str, rows: Option<&str>) -> Result<Self> {
        let views = views::parse(views)?;
        if !views.is_empty() && store.has_several() {
            return Err(Error::failed("VIEWS needs DATABASE: set it to the file that the views query"));
        }
        let rows = match rows {
            None => 100,
            Some(text) => address::rows(text).ok_or_else(|| {
                Error::failed(format_args!("ROWS is \"{text}\": expected a number from 1 to {MAX_ROWS}"))
            })?,
        };
        Ok(Sqlite { store, views, rows })
    }

    /// The database with this name. `None` for the name `""`: with several databases, this reference is the mount itself.
    fn database(&self, name: Option<String>) -> Result<Option<Database>> {
        match name {
            Some(name) if name.is_empty() => Ok(None),
            name => self.store.find(&name.unwrap_or_default()).map(Some),
        }
    }

    /// The database that a tool or a prompt names. Only one of several has to be named.
    fn chosen(&self, name: Option<&str>) -> Result<Database> {
        let name = name.filter(|name| !name.is_empty());
        match (self.store.named(), name) {
            (Some(named), Some(name)) if name != named => {
                Err(Error::invalid(format_args!("there is no database \"{name}\": expected \"{named}\"")))
            }
            (Some(_), _) => self.store.find(""),
            (None, Some(name)) => match self.store.find(name) {
                Err(Error::NotFound) => {
                    let known = one_of(self.store.databases()?.iter().map(|database| database.name.as_str()));
                    Err(Error::invalid(format_args!("there is no database \"{name}\": expected {known}")))
                }
                found => found,
            },
            (None, None) => {
                let mut all = self.store.databases()?;
                match all.pop() {
                    Some(only) if all.is_empty() => Ok(only),
                    Some(last) => {
                        let known = one_of(all.iter().chain([&last]).map(|database| database.name.as_str()));
                        Err(Error::invalid(format_args!("\"database\" is missing: expected {known}")))
                    }
                    None => Err(Error::invalid("the granted directories have no SQLite database")),
                }
            }
        }
    }

    fn listed(&self, database: &Database) -> Result<Vec<Resource>> {
        let base = base(database);
        let (names, views) = snapshot::with(database, |connection| {
            let plain =
                self.views.iter().filter(|view| view.parameters(connection).is_ok_and(|names| names.is_empty()));
            Ok((schema::names(connection)?, plain.map(|view| view.name.clone()).collect::<Vec<_>>()))
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
        for (name, kind) in names.iter().filter(|(name, _)| !name.is_empty()) {
            let description = match kind.as_str() {
                "view" => format!("the first {} rows of the view \"{name}\"", self.rows),
                _ => format!("the first {} rows of the table \"{name}\"; each page names the next one", self.rows),
            };
            listed.push(about(of(format!("tables/{}", reference::encode_segment(name)), name), database, &description));
        }
        for name in views {
            let description = format!("rows of the operator's view \"{name}\"");
            listed.push(about(of(format!("views/{name}"), &name), database, &description));
        }
        Ok(listed)
    }

    fn answer(&self, connection: &Connection, asked: &str, base: &str, address: &Address) -> Result<Contents> {
        match address {
            Address::Overview => self.overview(connection, asked),
            Address::Ddl => Ok(Contents::text(asked, schema::ddl(connection)?).mime_type("application/sql")),
            Address::Schema { table: Some(name) } => {
                Ok(lines(asked, &Table::find(connection, name)?.describe(connection)?))
            }
            Address::Schema { table: None } => {
                let names = schema::names(connection)?;
                let tables: Result<Vec<Json>> = names
                    .iter()
                    .map(|(name, kind)| {
                        match Table::find(connection, name).and_then(|table| table.describe(connection)) {
                            // A view of a dropped table.
                            Err(Error::Failed(why)) => Ok(json!({ "name": name, "type": kind, "error": why })),
                            described => described,
                        }
                    })
                    .collect();
                Ok(lines(asked, &json!({ "tables": tables? })))
            }
            Address::Page { table, after, limit } => {
                let table = Table::find(connection, table)?;
                let limit = limit.unwrap_or(self.rows);
                let page = rows::page(connection, &table, base, after.as_deref(), limit)?;
                let next = page.next.map(|after| {
                    let name = reference::encode_segment(&table.name);
                    format!(
                        "{base}tables/{name}?after={}&limit={limit}",
                        reference::encode_segment(&after).replace('&', "%26")
                    )
                });
                let written = page.rows.iter().map(|(key, row)| match key {
                    Some(key) => json_of(&KeyedRow { key, row }),
                    None => json_of(row),
                });
                let head = [
                    ("table", json!(table.name)),
                    ("key", json!(table.key_columns())),
                    ("cut", json!(page.cut)),
                    ("next", json!(next)),
                ];
                Ok(Contents::text(asked, table_of(&head, written)).mime_type(JSON))
            }
            Address::Row { table, key } => {
                let table = Table::find(connection, table)?;
                let (key, row) = rows::row(connection, &table, base, key)?;
                let place = key.map(|key| rows::reference_of_row(base, &table.name, &key));
                let head = [("table", json!(table.name)), ("reference", json!(place))];
                Ok(Contents::text(asked, object(&head, &format!("\"row\": {}", json_of(&row)))).mime_type(JSON))
            }
            Address::Value { table, key, column, offset, length } => {
                let table = Table::find(connection, table)?;
                let single = rows::single(connection, &table, key, column, (*offset, *length))?;
                let size = json!({ "size": single.size }).to_string();
                Ok(match single.value {
                    Value::Text(text) => Contents::text(asked, text).mime_type("text/plain").meta("sqlite/value", size),
                    Value::Blob(bytes) => {
                        let kind = infer::get(&bytes).map_or("application/octet-stream", |kind| kind.mime_type());
                        Contents::blob(asked, bytes).mime_type(kind).meta("sqlite/value", size)
                    }
                    other => lines(asked, &value::json((&other).into(), value::IN_ROW)),
                })
            }
            Address::View { name, parameters, limit } => {
                let view = self.views.iter().find(|view| view.name == *name).ok_or(Error::NotFound)?;
                let given = view.run(connection, parameters, limit.unwrap_or(self.rows))?;
                let head = [("view", json!(name)), ("cut", json!(given.cut))];
                Ok(Contents::text(asked, table_of(&head, given.rows.iter().map(json_of))).mime_type(JSON))
            }
        }
    }

    /// The tables with their columns and row counts. Counting stops at [`MAX_COUNTED_ROWS`] rows over all tables.
    fn overview(&self, connection: &Connection, asked: &str) -> Result<Contents> {
        let names = schema::names(connection)?;
        // Each table gets an equal share of the rows that may be counted, at least 100.
        let share = (MAX_COUNTED_ROWS / names.len().max(1)).max(100);
        let mut tables = Vec::new();
        for (index, (name, kind)) in names.iter().enumerate() {
            let mut about = json!({ "name": name, "type": kind });
            let found = Table::find(connection, name);
            if let (Some(about), Ok(table)) = (about.as_object_mut(), found) {
                let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
                about.insert("columns".to_owned(), json!(columns));
                about.insert("key".to_owned(), json!(table.key_columns()));
                if kind == "table" && index * share < MAX_COUNTED_ROWS {
                    about.insert("rows".to_owned(), schema::count(connection, name, share)?);
                }
            }
            tables.push(about);
        }
        let views: Vec<&str> = self.views.iter().map(|view| view.name.as_str()).collect();
        Ok(lines(asked, &json!({ "tables": tables, "views": views })))
    }
}

/// A row with its key, as a page shows it.
#[derive(serde::Serialize)]
struct KeyedRow<'a> {
    key: &'a str,
    row: &'a value::Row,
}

fn base(database: &Database) -> String {
    match database.name.as_str() {
        "" => String::new(),
        name => format!("{}/", reference::encode_segment(name)),
    }
}

fn overview(database: &Database) -> String {
    base(database).trim_end_matches('/').to_owned()
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

/// The first of these names, for an error.
fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    /// The most names in an error.
    const MAX: usize = 20;
    let mut quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).take(MAX + 1).collect();
    if quoted.len() > MAX {
        quoted.truncate(MAX);
        quoted.push("...".to_owned());
    }
    match quoted.as_slice() {
        [] => "none, because there is none".to_owned(),
        [only] => only.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// The template of a view. A broken view has no template: its error goes to the host's log, and a read returns it.
#[expect(clippy::print_stderr, reason = "stderr goes to the host's log")]
fn template(view: &View, connection: &Connection, rows: usize) -> Option<Template> {
    match view.parameters(connection) {
        Ok(names) => {
            let variables: Vec<&str> = names.iter().map(String::as_str).chain(["limit"]).collect();
            let needs =
                if names.is_empty() { "no parameters".to_owned() } else { format!("needs {}", names.join(", ")) };
            let description = format!(
                "Rows of the operator's view \"{}\" ({needs}): at most {{limit}} rows (default {rows})",
                view.name
            );
            let template = format!("views/{}{{?{}}}", view.name, variables.join(","));
            Some(Template::new(template).name(&view.name).mime_type(JSON).description(description))
        }
        Err(error) => {
            eprintln!("{error}");
            None
        }
    }
}

/// A 64-bit hash of `text`, in hexadecimal.
fn digest(text: &str) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

belljar_guest::export!(Sqlite: Completion, Revisions, Tools, Prompts);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
