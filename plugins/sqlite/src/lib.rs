//! SQLite databases as resources: the schema, pages of table rows, rows by key, single values, and the SQL views that the
//! operator names.
//!
//! This module implements the provider. `address` parses references and `name` their segments; `store` finds databases, and
//! `listing` lists them. `snapshot` opens one read-only, with the rules of `access`; `state` detects writes that happen
//! during a read. `answer` makes the contents, from `schema` (with `modules`), `page` (with `filter`), `rows` (with `key` and
//! `value`), `cell` and `views`; `output` writes JSON. `tools` has the tool `query`, and `prompts` the prompt `explore`; both
//! use `statement` or resources.

mod access;
mod address;
mod answer;
mod cell;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod key;
mod listing;
mod modules;
mod page;
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
    Argument, Completion, Error, Info, Page, PartialReading, Parts, Provider, Range, Reading, Result, Revisions,
    Suggestions, Template,
};
use belljar_sql::output::{JSON, lines};
use belljar_sql::{name, one_of};
use serde_json::json;

use address::Address;
use answer::Request;
use belljar_sql::page::{MAX_ROWS, default_rows};
use listing::base;
use schema::Table;
use snapshot::Snapshot;
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

/// The most bytes of a whole reading, for hosts that do not read parts. The default limit of the host.
const MAX_RESULT_BYTES: u64 = 8 * 1024 * 1024;

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
        self.list(cursor)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let base = if self.store.has_several() { "{database}/" } else { "" };
        let of = |rest: &str, name: &str| Template::new(format!("{base}{rest}")).name(name);
        let mut templates = vec![
            of("tables/{table}{?where,sort,match,after,skip,limit,lines}", "rows")
                .title("Rows of a table")
                .mime_type(JSON)
                .description(format!(
                    "A page of the rows of {{table}} in the order of their keys, or of the columns {{sort}} (a,-b): at most \
                     {{limit}} of them ({} unless you say otherwise, {MAX_ROWS} at most), those after the key {{after}}. \
                     {{where}} is a filter such as price>10, name~word or note is empty (= != < <= > >= ~ !~); repeat it for \
                     more. {{match}} searches full-text tables. Each page names the next one.",
                    self.rows
                )),
            of("tables/{table}/rows/{key}", "row").title("A row by its key").mime_type(JSON).description(
                "The row of {table} whose primary key is {key}; the values of a key of several columns have commas \
                 between them; rowid=7 is the row with rowid 7 in a table without a primary key",
            ),
            of("tables/{table}/rows/{key}/{column}{?bytes,lines}", "value").title("A value").description(
                "The unchanged value of the column {column} in that row: text or bytes. Large values can be read in parts: \
                 bytes=0-65535",
            ),
            of("schema/{table}", "schema").title("The schema of a table").mime_type(JSON).description(
                "Columns with their types, the key, indexes and foreign keys of {table}, and its CREATE statement",
            ),
        ];
        if !self.views.is_empty() {
            let database = self.store.find("")?;
            templates.extend(snapshot::with(&database, |snapshot| {
                Ok(self.views.iter().filter_map(|view| template(view, snapshot, self.rows)).collect::<Vec<_>>())
            })?);
        }
        Ok(templates)
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let reading = self.read_part(reference, None, MAX_RESULT_BYTES)?;
        match reading.extent {
            Some(extent) if extent.more => Err(Error::failed(format_args!(
                "the resource has more than {MAX_RESULT_BYTES} bytes; ask for parts of a value with \
                 ?offset=0&length={MAX_RESULT_BYTES}"
            ))),
            _ => Ok(Reading::new(reading.contents)),
        }
    }
}

impl Parts for Sqlite {
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let (database, address) = Address::parse(reference, self.store.has_several())?;
        let Some(database) = self.database(database)? else {
            let (databases, is_whole) = self.store.search()?;
            let names: Vec<String> = databases.into_iter().map(|database| database.name).collect();
            let mut whole = json!({ "databases": names });
            if let (false, Some(whole)) = (is_whole, whole.as_object_mut()) {
                whole.insert("notice".to_owned(), json!(store::NOT_ALL));
            }
            return PartialReading::cut(lines(reference, &whole), range, most);
        };
        let base = base(&database);
        let request = Request { asked: reference, base: &base, address: &address, range, most };
        snapshot::with(&database, |snapshot| self.answer(snapshot, &request))
    }

    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        self.below(reference, cursor)
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
        let table = |snapshot: &Snapshot| match resolved("table").map(|name| Table::find(snapshot, name)) {
            None | Some(Err(Error::NotFound)) => Ok(None),
            Some(table) => table.map(Some),
        };
        Ok(match argument.name.as_str() {
            "table" => snapshot::with(&database, |snapshot| {
                let listed = snapshot.catalog.listed();
                Ok(Suggestions::starting_with(value, listed.iter().map(|entry| entry.name.as_str())))
            })?,
            "key" | "after" => snapshot::with(&database, |snapshot| match table(snapshot)? {
                Some(table) => rows::keys(&snapshot.connection, &table, value, Suggestions::MAX).map(Suggestions::new),
                None => Ok(Suggestions::default()),
            })?,
            "column" | "sort" | "where" => snapshot::with(&database, |snapshot| {
                let columns = table(snapshot)?.map(|table| table.columns).unwrap_or_default();
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
            let version = snapshot::with(&database, |snapshot| {
                let version = snapshot.connection.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0));
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
        Ok(Sqlite { store, views, rows: default_rows(rows)? })
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
}

/// The template of a view. A broken view has no template: its error goes to the host's log, and a read returns it.
#[expect(clippy::print_stderr, reason = "stderr goes to the host's log")]
fn template(view: &View, snapshot: &Snapshot, rows: usize) -> Option<Template> {
    match view.parameters(snapshot) {
        Ok(names) => {
            let own = ["skip", "limit"].into_iter().filter(|own| !names.iter().any(|name| name == own));
            let variables: Vec<&str> = names.iter().map(String::as_str).chain(own).collect();
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

belljar_guest::export!(Sqlite: Completion, Revisions, Parts, Tools, Prompts);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
