//! The prompt `explore`: the schema of the database or of a table, and the wish for an overview. The schema is attached as the
//! resources that have it.

use belljar_guest::{
    Argument, Arguments, Body, Error, Link, Message, Prompt, PromptArgument, PromptResult, PromptSet, Prompts,
    Provider, Result, Suggestions,
};
use belljar_sql::{name, one_of};

use crate::connection::Connection;
use crate::{Postgres, catalog};

/// The largest resource that a message contains, in bytes. A larger one is only named.
const MAX_ATTACHED: usize = 64 * 1024;

const DATABASE: &str = "Explore this PostgreSQL database. Its schema is attached. Explain what the database is about, what each \
    table holds, and how the tables belong together. Then use the tool \"query\" for the questions that the schema leaves \
    open, and suggest three further questions that the data can answer.";

const TABLE: &str = "Explore this table of a PostgreSQL database. Its schema and its first rows are attached. Explain what a row \
    stands for, and what each column holds. Then use the tool \"query\" to find ranges, frequent values and gaps, and suggest \
    three further questions that the table can answer.";

/// Rows of a table that are attached.
const SAMPLE: usize = 5;

impl Prompts for Postgres {
    fn prompts() -> PromptSet<Self> {
        let explore = Prompt::new("explore", "An overview of the database, or of one of its tables.")
            .argument(PromptArgument::optional("table").description("Only this table, as in public.orders"));
        PromptSet::new().prompt(explore, Postgres::explore)
    }

    fn complete_prompt(&self, _prompt: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        match argument.name.as_str() {
            "table" => Ok(tables(&argument.value)?),
            _ => Ok(Suggestions::default()),
        }
    }
}

/// The names of tables that begin with a text, with or without their schema.
pub(crate) fn tables(start: &str) -> Result<Suggestions> {
    let known = catalog::list(&mut Connection::open()?)?;
    let is_meant = |entry: &&catalog::Entry| entry.written().starts_with(start) || entry.name.starts_with(start);
    Ok(Suggestions::new(known.iter().filter(is_meant).map(catalog::Entry::written).collect::<Vec<_>>()))
}

impl Postgres {
    fn explore(&self, arguments: &Arguments) -> Result<PromptResult> {
        let (text, references) = match arguments.get("table").filter(|table| !table.is_empty()) {
            None => (DATABASE, [String::new(), "schema".to_owned()]),
            Some(table) => {
                let known = catalog::list(&mut Connection::open()?)?;
                let names: Vec<String> = known.iter().map(catalog::Entry::written).collect();
                if !known.iter().any(|entry| entry.written() == table || entry.name == table) {
                    let known = one_of(names.iter().map(String::as_str));
                    return Err(Error::invalid(format_args!("there is no table \"{table}\": expected {known}")));
                }
                let table = name::segment(table);
                (TABLE, [format!("schema/{table}"), format!("tables/{table}?limit={SAMPLE}")])
            }
        };
        let mut messages = vec![Message::user(text)];
        for reference in references {
            for contents in self.read(&reference)?.contents {
                messages.push(match &contents.body {
                    Body::Text(text) if text.len() <= MAX_ATTACHED => Message::user(contents),
                    _ => Message::user(Link::new(reference.clone())),
                });
            }
        }
        Ok(PromptResult::new(messages))
    }
}
