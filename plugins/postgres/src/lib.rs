//! A PostgreSQL database as resources: the schema, pages of table rows, rows by key, single values, and the SQL views that
//! the operator names.
//!
//! This module implements the provider. `address` parses references. `connection` speaks the protocol, with `row` and
//! `failure`; the grant logs in. `table` looks up one table, and `catalog` all of them; `types` knows the forms of values,
//! `literal` parses the texts of composite ones, and `value` writes JSON. `answer` makes the contents, from `page` (with
//! `filter`), `rows` (with `key`), `cell` and `views`. `statement` runs SQL that others wrote, for views and for the tool of
//! `tools`. `listing`, `completion`, `revisions` and `prompts` are the other interfaces.

mod address;
mod answer;
mod catalog;
mod cell;
mod completion;
mod connection;
mod failure;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod key;
mod listing;
mod literal;
mod page;
mod prompts;
mod revisions;
mod row;
mod rows;
mod statement;
mod table;
mod tools;
mod types;
mod value;
mod views;

use belljar_guest::{Error, Info, Page, PartialReading, Parts, Provider, Range, Reading, Result, Template};
use belljar_sql::output::JSON;

use address::Address;
use answer::Request;
use belljar_sql::page::{MAX_ROWS, default_rows};
use views::View;

/// The provider.
#[derive(Debug)]
pub struct Postgres {
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

impl Provider for Postgres {
    fn open() -> Result<Self> {
        let setting = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let views = views::parse(&setting("VIEWS").unwrap_or_default())?;
        Ok(Postgres { views, rows: default_rows(setting("ROWS").as_deref())? })
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "PostgreSQL".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description(
                "Tables of a PostgreSQL database: schema, pages of rows, rows by key, and views that the operator names",
            )
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        self.list(cursor)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let of = |template: &str, name: &str| Template::new(template).name(name);
        let mut templates = vec![
            of("tables/{table}{?where,sort,match,after,skip,limit,explain}", "rows")
                .title("Rows of a table")
                .mime_type(JSON)
                .description(format!(
                    "A page of the rows of {{table}} (schema.table) in the order of their keys, or of the columns {{sort}} \
                     (a,-b): at most {{limit}} of them ({} unless you say otherwise, {MAX_ROWS} at most), those after the key \
                     {{after}}. {{where}} is a filter such as price>10, name~word or note is empty (= != < <= > >= ~ !~); \
                     repeat it for more. {{match}} searches a column of the type tsvector. {{explain}} gives the plan of the \
                     query. Each page names the next one.",
                    self.rows
                )),
            of("tables/{table}/rows/{key}", "row").title("A row by its key").mime_type(JSON).description(
                "The row of {table} whose primary key is {key}; the values of a key of several columns have commas \
                 between them; ctid=0,1 is a row of a table without a key",
            ),
            of("tables/{table}/rows/{key}/{column}{?bytes,lines}", "value").title("A value").description(
                "The unchanged value of the column {column} in that row: text or bytes. Large values can be read in parts: \
                 bytes=0-65535",
            ),
            of("schema/{table}", "schema").title("The schema of a table").mime_type(JSON).description(
                "Columns with their types and comments, the key, indexes, foreign keys, checks and partitions of {table}, and \
                 the SQL of a view",
            ),
        ];
        templates.extend(self.views.iter().map(|view| template(view, self.rows)));
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

impl Parts for Postgres {
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let address = Address::parse(reference)?;
        self.answer(&Request { asked: reference, address: &address, range, most })
    }

    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        self.below(reference, cursor)
    }
}

fn template(view: &View, rows: usize) -> Template {
    let names = &view.parameters;
    let own = ["skip", "limit", "explain"].into_iter().filter(|own| !names.iter().any(|name| name == own));
    let variables: Vec<&str> = names.iter().map(String::as_str).chain(own).collect();
    let needs = if names.is_empty() { "no parameters".to_owned() } else { format!("needs {}", names.join(", ")) };
    let description =
        format!("Rows of the operator's view \"{}\" ({needs}): at most {{limit}} rows (default {rows})", view.name);
    let template = format!("views/{}{{?{}}}", view.name, variables.join(","));
    Template::new(template).name(&view.name).mime_type(JSON).description(description)
}

belljar_guest::export!(Postgres: Completion, Revisions, Parts, Tools, Prompts);
belljar_guest::needs!("../needs.toml");
