//! The parameters `where`, `match` and `sort` of a page as SQL. Values are bound, and take the type of their column, so that
//! indexes are used. `belljar_sql` parses the parameters.

use belljar_guest::{Error, Result};
use belljar_sql::filter::{self as grammar, Comparison, Operator, Term, unquoted};

use crate::table::{Column, Table};
use crate::types::Kind;

/// A condition in the making: its SQL names the values that it binds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    terms: Vec<String>,
    pub(crate) values: Vec<Option<String>>,
}

/// One column of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sort {
    /// The quoted name of the column.
    pub(crate) sql: String,
    pub(crate) descending: bool,
    pub(crate) not_null: bool,
}

impl Conditions {
    /// Binds a value. Returns its place in the SQL.
    pub(crate) fn bind(&mut self, value: impl Into<String>) -> String {
        self.values.push(Some(value.into()));
        format!("${}", self.values.len())
    }

    /// Adds a condition, which must hold, too.
    pub(crate) fn add(&mut self, sql: impl Into<String>) {
        self.terms.push(sql.into());
    }

    /// As the WHERE clause of a statement.
    pub(crate) fn clause(&self) -> String {
        if self.terms.is_empty() { String::new() } else { format!(" WHERE {}", self.terms.join(" AND ")) }
    }

    /// Adds the conditions of the parameters `where`.
    pub(crate) fn filter(&mut self, table: &Table, filters: &[String]) -> Result<()> {
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        for filter in filters {
            for clause in grammar::parse(&names, filter)? {
                if let Some(column) = table.columns.get(clause.column) {
                    let sql = self.compare(column, clause.comparison);
                    self.add(sql);
                }
            }
        }
        Ok(())
    }

    /// Adds the condition of a full-text search: in the first column of this type.
    pub(crate) fn search(&mut self, table: &Table, text: &str) -> Result<()> {
        let column = table.columns.iter().find(|column| column.type_name == "tsvector").ok_or_else(|| {
            Error::invalid(format_args!(
                "\"match\" is for tables with a column of the type tsvector, and \"{}\" has none: expected \"where\", as in \
                 where=name~{text}",
                table.written()
            ))
        })?;
        let value = self.bind(text);
        self.add(format!("{} @@ pg_catalog.websearch_to_tsquery({value})", column.quoted()));
        Ok(())
    }

    fn compare(&mut self, column: &Column, comparison: Comparison<'_>) -> String {
        let name = column.quoted();
        let is_text = is_text(column);
        match comparison {
            Comparison::Empty(true) if is_text => format!("({name} IS NULL OR {name} = '')"),
            Comparison::Empty(false) if is_text => format!("{name} <> ''"),
            Comparison::Empty(true) => format!("{name} IS NULL"),
            Comparison::Empty(false) => format!("{name} IS NOT NULL"),
            Comparison::With(operator, value) => {
                let (text, _) = unquoted(value);
                self.with(column, operator, text)
            }
        }
    }

    fn with(&mut self, column: &Column, operator: Operator, value: String) -> String {
        let name = column.quoted();
        if let Operator::Contains | Operator::ContainsNot = operator {
            let pattern: String = value
                .chars()
                .flat_map(|c| matches!(c, '%' | '_' | '\\').then_some('\\').into_iter().chain([c]))
                .collect();
            let pattern = self.bind(format!("%{pattern}%"));
            // Without a cast, an index of trigrams is used.
            let text = if is_text(column) { name.clone() } else { format!("{name}::text") };
            return match operator {
                Operator::Contains => format!("{text} ILIKE {pattern}"),
                _ => format!("({name} IS NULL OR {text} NOT ILIKE {pattern})"),
            };
        }
        // These types have no operators.
        let name = match column.type_name.as_str() {
            "json" | "xml" | "point" => format!("{name}::text"),
            _ => name,
        };
        let cast = if is_beyond(column, &value) { "::numeric" } else { "" };
        let value = format!("{}{cast}", self.bind(value));
        let sign = match operator {
            Operator::Equal => "=",
            Operator::NotEqual => "IS DISTINCT FROM",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            _ => ">=",
        };
        format!("{name} {sign} {value}")
    }
}

/// True for the types of texts.
fn is_text(column: &Column) -> bool {
    ["text", "character varying", "character", "citext", "name"]
        .iter()
        .any(|known| column.type_name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('(')))
}

/// True if a value is a number that this type of integers does not hold, such as 1.5.
fn is_beyond(column: &Column, value: &str) -> bool {
    let fits = match column.type_name.as_str() {
        "smallint" => value.parse::<i16>().is_ok(),
        "integer" => value.parse::<i32>().is_ok(),
        "bigint" => value.parse::<i64>().is_ok(),
        _ => return false,
    };
    !fits && column.kind == Kind::Integer && value.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The columns of an order: `name`, `-name`, `a,-b`.
pub(crate) fn order(table: &Table, text: &str) -> Result<Vec<Sort>> {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let of = |term: Term| {
        let column = table.columns.get(term.column)?;
        Some(Sort { sql: column.quoted(), descending: term.descending, not_null: column.not_null })
    };
    Ok(grammar::order(&names, None, text)?.into_iter().filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Relation;

    fn table() -> Table {
        let columns = vec![
            Column::for_test("id", "integer", Kind::Integer),
            Column::for_test("a b", "character varying(20)", Kind::Text),
            Column::for_test("j", "json", Kind::Json),
            Column::for_test("tags", "text[]", Kind::Array(Box::new(Kind::Text), ',')),
        ];
        let (schema, name) = ("public".to_owned(), "t".to_owned());
        let relation = Relation::Table;
        Table { oid: 1, schema, name, relation, columns, denied: Vec::new(), key: vec![0], blocks: None, density: 1.0 }
    }

    fn sql(filter: &str) -> (String, Vec<String>) {
        let mut conditions = Conditions::default();
        conditions.filter(&table(), &[filter.to_owned()]).unwrap();
        (conditions.clause(), conditions.values.into_iter().flatten().collect())
    }

    #[test]
    fn values_are_bound_and_take_the_type_of_their_column() {
        let of = |clause: &str, values: &[&str]| {
            (format!(" WHERE {clause}"), values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(sql("id>=7"), of("\"id\" >= $1", &["7"]));
        assert_eq!(sql("id<1.5"), of("\"id\" < $1::numeric", &["1.5"]));
        assert_eq!(sql("id=3000000000"), of("\"id\" = $1::numeric", &["3000000000"]));
        assert_eq!(sql("id!=x"), of("\"id\" IS DISTINCT FROM $1", &["x"]));
        assert_eq!(sql("a b~50%_\\"), of("\"a b\" ILIKE $1", &["%50\\%\\_\\\\%"]));
        assert_eq!(sql("tags!~x"), of("(\"tags\" IS NULL OR \"tags\"::text NOT ILIKE $1)", &["%x%"]));
        assert_eq!(sql("j={}"), of("\"j\"::text = $1", &["{}"]));
        assert_eq!(sql("a b is empty").0, " WHERE (\"a b\" IS NULL OR \"a b\" = '')");
        assert_eq!(sql("tags is not empty").0, " WHERE \"tags\" IS NOT NULL");
        let both = of("\"id\" = $1 AND \"a b\" = $2", &["1", "'; DROP TABLE t; --"]);
        assert_eq!(sql("id=1 and a b=\"'; DROP TABLE t; --\""), both);
        assert!(Conditions::default().search(&table(), "x").is_err());
    }
}
