//! Views: SQL statements that the operator names in the setting `VIEWS`.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result, reference};
use belljar_sql::page::{limit, number};
use belljar_sql::setting::{self, Statement};

use crate::connection::{Connection, Query};
use crate::failure::{Failure, Outcome};
use crate::page::{self, PAGE_BYTES};
use crate::statement::{self, Rows};

/// A view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) name: String,
    /// The SQL, with `$1` for the first parameter.
    sql: String,
    pub(crate) parameters: Vec<String>,
}

/// A page of the rows of a view.
#[derive(Debug)]
pub(crate) struct ViewPage {
    pub(crate) rows: Rows,
    /// The reference of the next page.
    pub(crate) next: Option<String>,
}

/// Parses the setting.
pub(crate) fn parse(setting: &str) -> Result<Vec<View>> {
    setting::parse(setting)?.into_iter().map(View::of).collect()
}

/// The parameters of a page itself.
struct Paging {
    limit: usize,
    skip: u64,
    can_skip: bool,
}

impl View {
    fn of(Statement { name, sql }: Statement) -> Result<View> {
        let numbered = statement::number(&sql);
        let wrong = |why: &str| Err(Error::failed(format_args!("the view \"{name}\" {why}")));
        if numbered.has_numbers {
            return wrong("has a parameter without a name; write :name for each");
        }
        if let Some(own) = numbered.names.iter().find(|name| ["limit", "explain"].contains(&name.as_str())) {
            return wrong(&format!("has a parameter \"{own}\", but every view has one already; rename it"));
        }
        Ok(View { name, sql: numbered.sql, parameters: numbered.names })
    }

    /// Runs the view with the parameters `given`, and gives a page of its rows. The page's own parameters are `limit`, and
    /// `skip`, unless the view has a parameter of this name.
    pub(crate) fn run(
        &self,
        connection: &mut Connection,
        given: &BTreeMap<String, String>,
        default: usize,
    ) -> Outcome<ViewPage> {
        let (query, paging, given) = self.query(given, default)?;
        let Paging { limit, skip, can_skip } = paging;
        let rows = statement::run(connection, query, limit, PAGE_BYTES).map_err(|failure| self.failed(failure))?;
        let end = skip + rows.len() as u64;
        let next = (rows.cut && can_skip).then(|| {
            let own = given.iter().map(|(name, value)| {
                format!("{}={}&", reference::encode_segment(name), reference::encode_segment(value).replace('&', "%26"))
            });
            format!("views/{}?{}skip={end}&limit={limit}", self.name, own.collect::<String>())
        });
        Ok(ViewPage { rows, next })
    }

    /// The server's plan of the view, as text.
    pub(crate) fn explain(
        &self,
        connection: &mut Connection,
        given: &BTreeMap<String, String>,
        default: usize,
    ) -> Outcome<String> {
        let mut given = given.clone();
        given.remove("explain");
        let (query, ..) = self.query(&given, default)?;
        page::explain_query(connection, &query).map_err(|failure| self.failed(failure))
    }

    fn query(
        &self,
        given: &BTreeMap<String, String>,
        default: usize,
    ) -> Result<(Query, Paging, BTreeMap<String, String>)> {
        let mut given = given.clone();
        let limit = limit(&mut given)?.unwrap_or(default);
        let can_skip = !self.parameters.iter().any(|name| name == "skip");
        let skip = if can_skip { number(&mut given, "skip", "rows")?.unwrap_or_default() } else { 0 };
        if let Some(unknown) = given.keys().find(|name| !self.parameters.contains(name)) {
            return Err(Error::invalid(format_args!("the view \"{}\" has no parameter \"{unknown}\"", self.name)));
        }
        let values = self.parameters.iter().map(|name| {
            given.get(name).cloned().map(Some).ok_or_else(|| {
                Error::invalid(format_args!("the view \"{}\" needs \"{name}\": add ?{name}=...", self.name))
            })
        });
        let values = values.collect::<Result<_>>()?;
        // A comment may stand at the end of the view.
        let sql = format!(
            "SELECT * FROM (\n{}\n) AS \"{}\" LIMIT {} OFFSET {skip}",
            self.sql,
            self.name,
            limit.saturating_add(1)
        );
        Ok((Query::new(sql, values), Paging { limit, skip, can_skip }, given))
    }

    /// An error of the server, in the view of an operator.
    fn failed(&self, failure: Failure) -> Failure {
        let Failure::Server(mut error) = failure else { return failure };
        // The operator knows neither the statement around the view nor the numbers of its parameters.
        error.position.clear();
        let name = &self.name;
        match error.code.as_str() {
            // A value that its type does not accept, a number out of range, an invalid time.
            "22P02" | "22003" | "22007" | "22008" if !self.parameters.is_empty() => {
                Error::invalid(format_args!("a parameter of the view \"{name}\" is not accepted: {}", error.words()))
            }
            "42P18" => Error::failed(format_args!(
                "the view \"{name}\" is not a valid statement: {}; write the type of the parameter, as in :name::int",
                error.words()
            )),
            "57014" | "42501" | "53300" => match error.explain() {
                Error::Failed(why) => Error::failed(format_args!("the view \"{name}\": {why}")),
                Error::Denied(why) => Error::denied(format_args!("the view \"{name}\": {why}")),
                other => other,
            },
            code if code.starts_with("08") || code.starts_with("57") => error.explain(),
            "25006" => Error::denied(format_args!(
                "the view \"{name}\" does more than read; use one SELECT statement: {}",
                error.words()
            )),
            _ => Error::failed(format_args!("the view \"{name}\" is not a valid statement: {}", error.words())),
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_have_named_parameters() {
        let views = parse("late = SELECT * FROM orders WHERE due < :before AND a::int = :a -- :c").unwrap();
        let [late] = views.as_slice() else { panic!("{views:?}") };
        assert_eq!(late.parameters, ["before", "a"]);
        let given = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let (query, paging, _) = late.query(&given(&[("before", "x"), ("a", "1"), ("skip", "7")]), 100).unwrap();
        assert_eq!((query.values, paging.skip), (vec![Some("x".into()), Some("1".into())], 7));
        assert!(query.sql.ends_with("= $2 -- :c\n) AS \"late\" LIMIT 101 OFFSET 7"), "{}", query.sql);
        for (wrong, why) in
            [(&[("a", "1")][..], "needs \"before\""), (&[("before", ""), ("a", ""), ("b", "")], "no parameter \"b\"")]
        {
            assert!(late.query(&given(wrong), 100).err().unwrap().to_string().contains(why));
        }
        for wrong in ["a = SELECT $1", "a = SELECT :limit", "a = SELECT :explain", "a = DROP TABLE x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
