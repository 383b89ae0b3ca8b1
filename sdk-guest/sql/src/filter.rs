//! The grammar of the parameters `where` and `sort`. Knows the names of columns only: a provider writes the SQL.

use belljar_guest::{Error, Result};

use crate::one_of;

/// How a filter compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `~`: contains, in any case
    Contains,
    /// `!~`
    ContainsNot,
}

/// The operators, longer ones before those that they begin with.
const OPERATORS: [(&str, Operator); 10] = [
    ("!=", Operator::NotEqual),
    ("<>", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("!~", Operator::ContainsNot),
    ("==", Operator::Equal),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Contains),
];

const FORM: &str = "a column, one of = != < <= > >= ~ !~ and a value, as in price>10, or a column and \"is empty\" or \"is not empty\"";

/// What follows the name of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison<'a> {
    /// With nothing: `is empty` or `is not empty`.
    Empty(bool),
    /// With a value, as it is written.
    With(Operator, &'a str),
}

/// One condition of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clause<'a> {
    /// The position of the column.
    pub column: usize,
    /// What is asked of it.
    pub comparison: Comparison<'a>,
}

/// One column of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The position of the column. The number of columns stands for the hidden one.
    pub column: usize,
    /// True for `-name`.
    pub descending: bool,
}

/// The conditions of one parameter, which ` and ` separates.
///
/// # Errors
/// If one of them names no column, or has no operator.
pub fn parse<'a>(columns: &[&str], filter: &'a str) -> Result<Vec<Clause<'a>>> {
    let mut clauses = Vec::new();
    let mut rest = filter;
    // A value may contain the word: what follows it must begin with a column.
    while let Some((at, next)) = rest.match_indices(['a', 'A']).find_map(|(at, _)| {
        let next = strip_prefix_ignore_case(rest.get(at..)?, "and ")?;
        let before =
            rest.get(..at).filter(|before| before.ends_with(' ') && before.matches('"').count().is_multiple_of(2))?;
        (split(columns, next).is_some() && split(columns, before).is_some()).then_some((at, next))
    }) {
        clauses.push(one(columns, rest.get(..at).unwrap_or_default())?);
        rest = next;
    }
    clauses.push(one(columns, rest)?);
    Ok(clauses)
}

fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn one<'a>(columns: &[&str], filter: &'a str) -> Result<Clause<'a>> {
    split(columns, filter).ok_or_else(|| {
        let known = one_of(columns.iter().copied());
        Error::invalid(format_args!("\"where\" is \"{filter}\": expected {FORM}; the columns: {known}"))
    })
}

fn split<'a>(columns: &[&str], filter: &'a str) -> Option<Clause<'a>> {
    let text = filter.trim_start();
    // The longest name that an operator follows: names may contain spaces and operators.
    let mut longest: Option<(usize, &str)> = None;
    for (column, name) in columns.iter().enumerate() {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        for spelling in [*name, &quoted] {
            let Some(rest) = strip_prefix_ignore_case(text, spelling) else { continue };
            let rest = rest.trim_start();
            let is_longer = longest.is_none_or(|(_, known)| rest.len() < known.len());
            if comparison(rest).is_some() && is_longer {
                longest = Some((column, rest));
            }
        }
    }
    let (column, rest) = longest?;
    // Two names may differ only in upper and lower case.
    let exact = columns.iter().position(|name| {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        [*name, &quoted].iter().any(|spelling| text.strip_prefix(*spelling).is_some_and(|own| own.trim_start() == rest))
    });
    Some(Clause { column: exact.unwrap_or(column), comparison: comparison(rest)? })
}

fn comparison(text: &str) -> Option<Comparison<'_>> {
    let words: Vec<String> = text.split_whitespace().take(4).map(str::to_ascii_lowercase).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["is", "empty"] => return Some(Comparison::Empty(true)),
        ["is", "not", "empty"] => return Some(Comparison::Empty(false)),
        _ => {}
    }
    let (operator, value) =
        OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?.trim())))?;
    Some(match (operator, value) {
        (Operator::Equal, "") => Comparison::Empty(true),
        (Operator::NotEqual, "") => Comparison::Empty(false),
        _ => Comparison::With(operator, value),
    })
}

/// The value without the quotes around it, and true if it had some.
pub fn unquoted(value: &str) -> (String, bool) {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return (inner.replace(&format!("{quote}{quote}"), &quote.to_string()), true);
        }
    }
    (value.to_owned(), false)
}

/// The columns of an order: `name`, `-name`, `a,-b`. `hidden` is a further name that may be used.
///
/// # Errors
/// If a name is unknown.
pub fn order(columns: &[&str], hidden: Option<&str>, text: &str) -> Result<Vec<Term>> {
    let of = |name: &str| {
        let (name, descending) = match name.strip_prefix('-') {
            // A column may have such a name.
            Some(rest) if find(columns, name).is_none() => (rest, true),
            _ => (name, false),
        };
        Some(Term { column: find(columns, name)?, descending })
    };
    // The name of a column may contain a comma.
    if let Some(only) = of(text) {
        return Ok(vec![only]);
    }
    let of_hidden = |name: &str| {
        let is_it = hidden.is_some_and(|hidden| name.trim_start_matches('-').eq_ignore_ascii_case(hidden));
        is_it.then(|| Term { column: columns.len(), descending: name.starts_with('-') })
    };
    text.split(',')
        .map(|name| {
            of(name.trim()).or_else(|| of_hidden(name.trim())).ok_or_else(|| {
                let known = one_of(columns.iter().copied());
                Error::invalid(format_args!("\"sort\" names \"{name}\": expected {known}, or - and one of them"))
            })
        })
        .collect()
}

fn find(columns: &[&str], name: &str) -> Option<usize> {
    let exact = columns.iter().position(|column| *column == name);
    exact.or_else(|| columns.iter().position(|column| column.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_are_told_apart() {
        let of = |text| parse(&["Name", "name"], text).unwrap().first().map(|clause| clause.column);
        assert_eq!([of("name=1"), of("Name=1"), of("\"name\"=1"), of("NAME=1")], [Some(1), Some(0), Some(1), Some(0)]);
        assert_eq!(order(&["Name", "name"], None, "-name").unwrap(), [Term { column: 1, descending: true }]);
    }

    #[test]
    fn the_hidden_column_comes_last() {
        assert_eq!(
            order(&["a"], Some("rowid"), "a,-ROWID").unwrap(),
            [Term { column: 0, descending: false }, Term { column: 1, descending: true }]
        );
        assert!(order(&["a"], None, "rowid").unwrap_err().to_string().contains("expected \"a\""));
    }
}
