//! A table or view: its columns, its key, and how its rows can be paged. Reads the catalog.

use belljar_guest::Error;
use belljar_sql::name;
use postgres_protocol::escape::escape_identifier;

use crate::connection::{Connection, Query};
use crate::failure::Outcome;
use crate::types::{self, Kind, Types};

/// The name of a table in a reference: `schema.table`, or `table` for the first one in the search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableName {
    pub(crate) schema: Option<String>,
    pub(crate) table: String,
    /// The text as one name, for names with dots.
    whole: String,
}

/// What a relation is (`pg_class.relkind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Table,
    Partitioned,
    View,
    Materialized,
    Foreign,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The type, as SQL writes it.
    pub(crate) type_name: String,
    pub(crate) kind: Kind,
    pub(crate) not_null: bool,
    /// How the server finds the size of a value without sending it.
    pub(crate) size: Size,
    /// The position in the table.
    number: i16,
}

/// The SQL function that gives the size of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Values are small.
    Small,
    /// `octet_length`: exact, and does not load the value.
    Octets,
    /// `pg_column_size`: as stored, which may be compressed.
    Stored,
}

/// A table or view.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) oid: u32,
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) relation: Relation,
    /// The columns that the user may read.
    pub(crate) columns: Vec<Column>,
    /// The names of the other columns.
    pub(crate) denied: Vec<String>,
    /// The positions of the key's columns in `columns`. Empty: no key.
    pub(crate) key: Vec<usize>,
    /// The blocks of the table, if its rows can be paged by their places.
    pub(crate) blocks: Option<u64>,
    /// The rows in a block, as the server estimates.
    pub(crate) density: f64,
}

/// The table that the values `$1` (schema), `$2` (table) and `$3` (a table of the search path) name.
pub(crate) const RESOLVE: &str = "(SELECT x.oid FROM pg_catalog.pg_class AS x JOIN pg_catalog.pg_namespace AS y ON y.oid = x.relnamespace WHERE x.relname = ANY (ARRAY[$2, $3]::pg_catalog.name[]) AND x.relkind IN ('r', 'p', 'v', 'm', 'f') AND ((y.nspname = $1 AND x.relname = $2) OR (x.relname = $3 AND pg_catalog.pg_table_is_visible(x.oid))) ORDER BY (y.nspname = $1 AND x.relname = $2) IS TRUE DESC LIMIT 1)";

const RELATION: &str = "SELECT c.oid, n.nspname, c.relname, c.relkind, c.reltuples, c.relpages, CASE WHEN c.relkind IN ('r', 'm') THEN pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int END, EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid), COALESCE(m.amname, 'heap') = 'heap', pg_catalog.has_schema_privilege(n.oid, 'USAGE') FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am AS m ON m.oid = c.relam WHERE c.oid = {}";

const COLUMNS: &str = "SELECT a.attname, a.attnum, a.atttypid, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull OR t.typnotnull, t.typlen = -1, pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid WHERE a.attrelid = {} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

/// The primary key, or a unique index of columns that are never NULL. A materialised view has no primary key, and its
/// columns may always be NULL.
const KEY: &str = "SELECT i.indkey, i.indnkeyatts FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid WHERE i.indrelid = {} AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND (c.relkind = 'm' OR NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND NOT a.attnotnull AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]))) ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid LIMIT 1";

/// The types of the table's columns that are not common.
const TYPES: &str = "SELECT DISTINCT a.atttypid FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid WHERE a.attrelid = {} AND a.attnum > 0 AND (t.typtype <> 'b' OR t.typcategory = 'A')";

impl TableName {
    /// Parses a decoded segment. Names with dots or quotes stand in double quotes, as in SQL.
    pub(crate) fn parse(segment: &str) -> Result<TableName, Error> {
        let text = match name::unescape(segment).map(String::from_utf8) {
            Some(Ok(text)) => text,
            _ => segment.to_owned(),
        };
        let mut parts = Vec::new();
        let (mut part, mut is_inside, mut chars) = (String::new(), false, text.chars().peekable());
        while let Some(c) = chars.next() {
            match c {
                '"' if is_inside && chars.peek() == Some(&'"') => {
                    chars.next();
                    part.push('"');
                }
                '"' if is_inside || part.is_empty() => is_inside = !is_inside,
                '.' if !is_inside => parts.push(std::mem::take(&mut part)),
                _ => part.push(c),
            }
        }
        parts.push(part);
        let whole = text.clone();
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next(), parts.next()) {
            _ if is_inside => Err(Error::invalid(format_args!(
                "the table \"{segment}\" has a quote without its end: expected schema.table, or \"a.b\".\"c.d\" for names with dots"
            ))),
            (Some(table), None, _) => Ok(TableName { schema: None, table, whole }),
            (Some(schema), Some(table), None) => Ok(TableName { schema: Some(schema), table, whole }),
            _ => Ok(TableName { schema: None, table: whole.clone(), whole }),
        }
    }

    /// The values of `$1`, `$2` and `$3` of [`RESOLVE`].
    pub(crate) fn values(&self) -> Vec<Option<String>> {
        let visible = if self.schema.is_none() { &self.table } else { &self.whole };
        vec![self.schema.clone(), Some(self.table.clone()), Some(visible.clone())]
    }
}

/// The name of a table, as references write it, before encoding.
pub(crate) fn written(schema: &str, table: &str) -> String {
    let quoted = |name: &str| match name.contains(['.', '"']) || name.is_empty() {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    };
    format!("{}.{}", quoted(schema), quoted(table))
}

impl Relation {
    pub(crate) fn of(kind: &str) -> Relation {
        match kind {
            "p" => Relation::Partitioned,
            "v" => Relation::View,
            "m" => Relation::Materialized,
            "f" => Relation::Foreign,
            _ => Relation::Table,
        }
    }

    /// The word for this kind.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Relation::Table => "table",
            Relation::Partitioned => "partitioned table",
            Relation::View => "view",
            Relation::Materialized => "materialized view",
            Relation::Foreign => "foreign table",
        }
    }
}

impl Table {
    /// Looks up a table.
    pub(crate) fn find(connection: &mut Connection, name: &TableName) -> Outcome<Table> {
        let [relation, columns, key] =
            [RELATION, COLUMNS, KEY].map(|sql| Query::new(sql.replace("{}", RESOLVE), name.values()));
        let parts = Query::new(types::definitions(&TYPES.replace("{}", RESOLVE)), name.values());
        let mut found = connection.all(&[relation, columns, key, parts])?;
        let (relation, rows) = (found.pop_front().unwrap_or_default(), found.pop_front().unwrap_or_default());
        let (key, parts) = (found.pop_front().unwrap_or_default(), found.pop_front().unwrap_or_default());
        let Some(relation) = relation.first() else { return Err(Error::NotFound.into()) };
        let types = Types::of(&parts);
        let (mut columns, mut denied) = (Vec::new(), Vec::new());
        for row in &rows {
            if !row.is(6) {
                denied.push(row.string(0));
                continue;
            }
            let kind = types.kind(row.number(2).unwrap_or_default());
            let type_name = row.string(3);
            columns.push(Column {
                name: row.string(0),
                number: row.number(1).unwrap_or_default(),
                size: size(&kind, &type_name, row.is(5)),
                type_name,
                kind,
                not_null: row.is(4),
            });
        }
        let mut table = Table {
            oid: relation.number(0).unwrap_or_default(),
            schema: relation.string(1),
            name: relation.string(2),
            relation: Relation::of(&relation.string(3)),
            columns,
            denied,
            key: Vec::new(),
            blocks: relation.number(6),
            density: relation.number::<f64>(4).unwrap_or(-1.0) / relation.number::<f64>(5).unwrap_or_default().max(1.0),
        };
        if (table.columns.is_empty() && !table.denied.is_empty()) || !relation.is(9) {
            return Err(table.refused(&connection.destination.user).into());
        }
        let (has_children, is_heap) = (relation.is(7), relation.is(8));
        if table.relation == Relation::Table && has_children {
            // A key identifies a row of this table only, and not of those that inherit from it.
            table.blocks = None;
            return Ok(table);
        }
        table.blocks = table.blocks.filter(|_| is_heap);
        if let Some(row) = key.first() {
            table.key = table.positions(&row.string(0), row.number(1).unwrap_or_default());
        }
        // Who may read some columns only may not read places.
        if !table.denied.is_empty() && table.key.is_empty() {
            table.blocks = None;
        }
        Ok(table)
    }

    /// The positions of columns in the text of an `int2vector`.
    fn positions(&self, numbers: &str, count: usize) -> Vec<usize> {
        let of = |number: &str| self.columns.iter().position(|column| number.parse() == Ok(column.number));
        // A key with a column that may not be read is none.
        numbers.split_whitespace().take(count).map(of).collect::<Option<_>>().unwrap_or_default()
    }

    fn refused(&self, user: &str) -> Error {
        let (schema, table) = (escape_identifier(&self.schema), escape_identifier(&self.name));
        Error::denied(format_args!(
            "the user \"{user}\" may not read the table \"{}\": expected  GRANT USAGE ON SCHEMA {schema} TO {user}; GRANT SELECT ON {schema}.{table} TO {user}",
            self.written()
        ))
    }

    /// The name in references, before encoding.
    pub(crate) fn written(&self) -> String {
        written(&self.schema, &self.name)
    }

    /// The name in SQL.
    pub(crate) fn quoted(&self) -> String {
        format!("{}.{}", escape_identifier(&self.schema), escape_identifier(&self.name))
    }

    /// The column that a segment of a reference names.
    pub(crate) fn column(&self, segment: &str) -> Option<&Column> {
        let exact = self.columns.iter().find(|column| column.name == segment);
        exact.or_else(|| self.columns.iter().find(|column| name::is(&column.name, segment)))
    }

    /// The columns of the key.
    pub(crate) fn key_columns(&self) -> impl Iterator<Item = &Column> {
        self.key.iter().filter_map(|at| self.columns.get(*at))
    }

    /// True if pages can go on after a key: no value of the key is NULL.
    pub(crate) fn has_ordered_key(&self) -> bool {
        !self.key.is_empty() && self.key_columns().all(|column| column.not_null)
    }

    /// True if the keys of rows are their places.
    pub(crate) fn has_places(&self) -> bool {
        self.blocks.is_some() && !self.has_ordered_key()
    }

    /// The names of the key columns, for display.
    pub(crate) fn key_names(&self) -> Vec<&str> {
        match self.has_places() {
            true => vec!["ctid"],
            false => self.key_columns().map(|column| column.name.as_str()).collect(),
        }
    }
}

impl Column {
    /// A column of this type.
    #[cfg(test)]
    pub(crate) fn for_test(name: &str, type_name: &str, kind: Kind) -> Column {
        let (name, type_name) = (name.to_owned(), type_name.to_owned());
        Column { name, type_name, kind, not_null: false, size: Size::Small, number: 1 }
    }

    /// The name in SQL.
    pub(crate) fn quoted(&self) -> String {
        escape_identifier(&self.name)
    }
}

fn size(kind: &Kind, type_name: &str, is_variable: bool) -> Size {
    match kind {
        _ if !is_variable => Size::Small,
        Kind::Bytes => Size::Octets,
        Kind::Text if ["text", "character", "bit"].iter().any(|known| type_name.starts_with(known)) => Size::Octets,
        Kind::Numeric | Kind::Range(_) => Size::Small,
        _ => Size::Stored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_and_quotes_survive() {
        for (schema, table) in
            [("public", "film"), ("a.b", "c\"d"), ("", "."), ("A b", "select"), ("ü", "\"\""), ("a/b", "..")]
        {
            let name = TableName::parse(&written(schema, table)).unwrap();
            assert_eq!((name.schema.as_deref(), name.table.as_str()), (Some(schema), table));
            let escaped = TableName::parse(&name::escape(&written(schema, table))).unwrap();
            assert_eq!(escaped.table, table);
        }
        let short = TableName::parse("film").unwrap();
        assert_eq!((short.schema, short.table.as_str()), (None, "film"));
        assert_eq!(TableName::parse("\"a.b\"").unwrap().table, "a.b");
        assert_eq!(TableName::parse("a.b.c").unwrap().table, "a.b.c");
        // Without quotes, it may be a schema with a table, or a table of the search path.
        let values = TableName::parse("a.b").unwrap().values();
        assert_eq!(values, [Some("a".into()), Some("b".into()), Some("a.b".into())]);
        assert!(TableName::parse("\"a").is_err());
    }
}
