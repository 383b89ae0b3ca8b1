//! Completion of names, keys and columns.

use belljar_guest::{Argument, Completion, Error, Provider, Result, Suggestions};

use crate::connection::{Connection, Query};
use crate::failure::Outcome;
use crate::filter::Conditions;
use crate::rows::Reader;
use crate::table::{Table, TableName};
use crate::types::Kind;
use crate::value::SizeLimits;
use crate::{Postgres, prompts};

impl Completion for Postgres {
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        let known = self.list_templates()?;
        if !known.iter().any(|known| known.template == template) {
            return Err(Error::invalid(format_args!("no template \"{template}\"")));
        }
        let value = argument.value.as_str();
        let table = resolved.iter().find(|argument| argument.name == "table" && !argument.value.is_empty());
        match (argument.name.as_str(), table) {
            ("table", _) => prompts::tables(value),
            ("limit", _) => Ok(Suggestions::starting_with(value, ["10", "100", "1000"])),
            ("key" | "after" | "column" | "sort" | "where", Some(table)) => {
                let mut connection = Connection::open()?;
                let table = match Table::find(&mut connection, &TableName::parse(&table.value)?).map_err(Error::from) {
                    Err(Error::NotFound) => return Ok(Suggestions::default()),
                    table => table?,
                };
                if argument.name == "key" || argument.name == "after" {
                    return Ok(Suggestions::new(keys(&mut connection, &table, value)?));
                }
                Ok(Suggestions::starting_with(value, table.columns.iter().map(|column| column.name.as_str())))
            }
            _ => Ok(Suggestions::default()),
        }
    }
}

/// Keys of a table that begin with `prefix`. Searches by ranges of the first key column, so that its index is used.
fn keys(connection: &mut Connection, table: &Table, prefix: &str) -> Outcome<Vec<String>> {
    let Some(first) = table.key_columns().next() else { return Ok(Vec::new()) };
    let (name, most) = (first.quoted(), Suggestions::MAX);
    let reader = Reader::new(table, SizeLimits { text: 0, blob: 0 });
    let mut searches = Vec::new();
    if prefix.is_empty() {
        searches.push(Conditions::default());
    } else if first.kind == Kind::Integer {
        // The numbers that begin with "12": 12, 120 to 129, 1200 to 1299, ...
        let start = prefix.parse::<i64>().ok().filter(|number| *number > 0);
        let mut bounds = start.map(|start| (start, start.saturating_add(1)));
        while let Some((from, to)) = bounds.filter(|_| searches.len() < 9) {
            let mut conditions = Conditions::default();
            let (low, high) = (conditions.bind(from.to_string()), conditions.bind(to.to_string()));
            conditions.add(format!("{name} >= {low}::int8 AND {name} < {high}::int8"));
            searches.push(conditions);
            bounds = from.checked_mul(10).zip(to.checked_mul(10));
        }
    } else {
        let mut conditions = Conditions::default();
        let low = conditions.bind(prefix);
        conditions.add(format!("pg_catalog.starts_with({name}::text, {low})"));
        searches.push(conditions);
    }
    let queries: Vec<Query> = searches
        .into_iter()
        .map(|search| {
            let (terms, from, clause) = (reader.terms(), table.quoted(), search.clause());
            Query::new(format!("SELECT {terms} FROM {from}{clause} ORDER BY {name} LIMIT {most}"), search.values)
        })
        .collect();
    let mut keys = Vec::new();
    for row in connection.all(&queries)?.iter().flatten() {
        keys.extend(reader.read(row).key.filter(|key| key.starts_with(prefix)));
    }
    keys.truncate(most);
    Ok(keys)
}
