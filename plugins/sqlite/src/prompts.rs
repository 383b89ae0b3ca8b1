//! The prompt `explore`: the schema of a database or of a table, and the wish for an overview. The schema is attached as the
//! resources that have it.

use belljar_guest::{
    Argument, Arguments, Body, Error, Link, Message, Prompt, PromptArgument, PromptResult, PromptSet, Prompts,
    Provider, Result, Suggestions,
};

use crate::listing::base;
use crate::{Sqlite, name, one_of, snapshot};

/// The largest resource that a message contains, in bytes. A larger one is only named.
const MAX_ATTACHED: usize = 64 * 1024;

const DATABASE: &str = "Explore this SQLite database. Its schema is attached. Explain what the database is about, what each \
    table holds, and how the tables belong together. Then use the tool \"query\" for the questions that the schema leaves \
    open, and suggest three further questions that the data can answer.";

const TABLE: &str = "Explore this table of an SQLite database. Its schema and its first rows are attached. Explain what a row \
    stands for, and what each column holds. Then use the tool \"query\" to find ranges, frequent values and gaps, and suggest \
    three further questions that the table can answer.";

/// Rows of a table that are attached.
const SAMPLE: usize = 5;

impl Prompts for Sqlite {
    fn prompts() -> PromptSet<Self> {
        let explore = Prompt::new("explore", "An overview of a database, or of one of its tables.")
            .argument(PromptArgument::optional("table").description("Only this table"))
            .argument(PromptArgument::optional("database").description("Which database, if there are several"));
        PromptSet::new().prompt(explore, Sqlite::explore)
    }

    fn complete_prompt(&self, _prompt: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        let value = argument.value.as_str();
        let resolved = |name: &str| resolved.iter().find(|other| other.name == name).map(|other| other.value.as_str());
        match argument.name.as_str() {
            "database" => match self.store.named() {
                Some(named) => Ok(Suggestions::starting_with(value, [named])),
                None => {
                    let all = self.store.databases()?;
                    Ok(Suggestions::starting_with(value, all.iter().map(|database| database.name.as_str())))
                }
            },
            "table" => match self.chosen(resolved("database")) {
                // One of several databases, or none, is not chosen yet.
                Err(Error::Invalid(_)) => Ok(Suggestions::default()),
                database => snapshot::with(&database?, |snapshot| {
                    let listed = snapshot.catalog.listed();
                    Ok(Suggestions::starting_with(value, listed.iter().map(|entry| entry.name.as_str())))
                }),
            },
            _ => Ok(Suggestions::default()),
        }
    }
}

impl Sqlite {
    fn explore(&self, arguments: &Arguments) -> Result<PromptResult> {
        let database = self.chosen(arguments.get("database"))?;
        let base = base(&database);
        let (text, references) = match arguments.get("table").filter(|table| !table.is_empty()) {
            None => (DATABASE, [base.trim_end_matches('/').to_owned(), format!("{base}schema.sql")]),
            Some(table) => {
                let names = snapshot::with(&database, |snapshot| {
                    Ok(snapshot.catalog.listed().iter().map(|entry| entry.name.clone()).collect::<Vec<_>>())
                })?;
                if !names.iter().any(|name| name.eq_ignore_ascii_case(table)) {
                    let known = one_of(names.iter().map(String::as_str));
                    return Err(Error::invalid(format_args!("there is no table \"{table}\": expected {known}")));
                }
                let table = name::segment(table);
                (TABLE, [format!("{base}schema/{table}"), format!("{base}tables/{table}?limit={SAMPLE}")])
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
