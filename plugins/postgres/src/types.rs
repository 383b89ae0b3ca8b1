//! Types of values: which form each has as JSON. Common types are known; the others are looked up in the catalog.

use std::collections::HashMap;

use crate::connection::{Connection, Query};
use crate::failure::Outcome;
use crate::row::Row;

/// The deepest nesting of types that is resolved. Deeper values are texts.
const MAX_DEPTH: usize = 8;

/// The form of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Integer,
    Float,
    Numeric,
    Bytes,
    Json,
    /// A time with a date; as ISO 8601.
    Timestamp,
    /// A time with a date and an offset.
    TimestampTz,
    /// A text, and everything whose text is its only form.
    Text,
    /// An array, with the character between its elements.
    Array(Box<Kind>, char),
    Range(Box<Kind>),
    Multirange(Box<Kind>),
    /// A composite type: names and types of its fields.
    Record(Vec<(String, Kind)>),
}

/// What the catalog says of types that are not common.
#[derive(Debug, Default)]
pub(crate) struct Types {
    known: HashMap<u32, Definition>,
}

#[derive(Debug)]
enum Definition {
    Domain(u32),
    Array(u32, char),
    Range(u32),
    Multirange(u32),
    Record(Vec<(String, u32)>),
}

/// The types that a query may start from, and those that they consist of. `{}` selects the first ones.
const DEFINITIONS: &str = "WITH RECURSIVE part(of, kind, oid, delimiter, field, place) AS MATERIALIZED (
SELECT 0::oid, 'x', first.oid, '', '' COLLATE pg_catalog.\"C\", 0 FROM ({}) AS first(oid)
UNION
SELECT t.oid, n.kind, n.oid, n.delimiter, n.field, n.place FROM part AS w JOIN pg_catalog.pg_type AS t ON t.oid = w.oid
CROSS JOIN LATERAL (
 SELECT 'd', t.typbasetype, '', '', 0 WHERE t.typtype = 'd'
 UNION ALL SELECT 'a', e.oid, e.typdelim::text, '', 0 FROM pg_catalog.pg_type AS e WHERE t.typcategory = 'A' AND e.oid = t.typelem AND e.typarray = t.oid
 UNION ALL SELECT 'r', r.rngsubtype, '', '', 0 FROM pg_catalog.pg_range AS r WHERE t.typtype = 'r' AND r.rngtypid = t.oid
 UNION ALL SELECT 'm', r.rngtypid, '', '', 0 FROM pg_catalog.pg_range AS r WHERE t.typtype = 'm' AND r.rngmultitypid = t.oid
 UNION ALL SELECT 'c', a.atttypid, '', a.attname::text COLLATE pg_catalog.\"C\", a.attnum FROM pg_catalog.pg_attribute AS a
  WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
) AS n(kind, oid, delimiter, field, place))
SELECT of, kind, oid, delimiter, field FROM part WHERE kind <> 'x' ORDER BY of, place";

/// The query for the types that `first` selects.
pub(crate) fn definitions(first: &str) -> String {
    DEFINITIONS.replace("{}", first)
}

impl Types {
    /// From the rows of [`definitions`].
    pub(crate) fn of(rows: &[Row]) -> Types {
        let mut types = Types::default();
        for row in rows {
            let (Some(of), Some(part)) = (row.number::<u32>(0), row.number::<u32>(2)) else { continue };
            let definition = match row.string(1).as_str() {
                "d" => Definition::Domain(part),
                "a" => Definition::Array(part, row.string(3).chars().next().unwrap_or(',')),
                "r" => Definition::Range(part),
                "m" => Definition::Multirange(part),
                _ => {
                    let fields = types.known.entry(of).or_insert_with(|| Definition::Record(Vec::new()));
                    if let Definition::Record(fields) = fields {
                        fields.push((row.string(4), part));
                    }
                    continue;
                }
            };
            types.known.insert(of, definition);
        }
        types
    }

    /// The types of these columns, of a connection that may ask for those that are not common.
    pub(crate) fn look_up(connection: &mut Connection, oids: &[u32]) -> Outcome<Types> {
        let unknown: Vec<Option<String>> =
            oids.iter().filter(|oid| common(**oid).is_none()).map(|oid| Some(oid.to_string())).collect();
        if unknown.is_empty() {
            return Ok(Types::default());
        }
        let sql = definitions("SELECT DISTINCT unnest($1::pg_catalog.oid[])");
        let values = vec![Some(crate::literal::write_array(&unknown))];
        let rows = connection.all(&[Query::new(sql, values)])?.pop_front().unwrap_or_default();
        Ok(Types::of(&rows))
    }

    /// The form of a type.
    pub(crate) fn kind(&self, oid: u32) -> Kind {
        self.resolve(oid, 0)
    }

    fn resolve(&self, oid: u32, depth: usize) -> Kind {
        if let Some(kind) = common(oid) {
            return kind;
        }
        if depth > MAX_DEPTH {
            return Kind::Text;
        }
        let of = |part: u32| self.resolve(part, depth + 1);
        match self.known.get(&oid) {
            None => Kind::Text,
            Some(Definition::Domain(base)) => of(*base),
            Some(Definition::Array(element, delimiter)) => Kind::Array(Box::new(of(*element)), *delimiter),
            Some(Definition::Range(part)) => Kind::Range(Box::new(of(*part))),
            Some(Definition::Multirange(range)) => match of(*range) {
                Kind::Range(part) => Kind::Multirange(part),
                _ => Kind::Text,
            },
            Some(Definition::Record(fields)) => {
                Kind::Record(fields.iter().map(|(name, part)| (name.clone(), of(*part))).collect())
            }
        }
    }
}

/// The types whose identifiers are the same on every server (`pg_type.dat`).
fn common(oid: u32) -> Option<Kind> {
    let list = |kind| Some(Kind::Array(Box::new(kind), ','));
    match oid {
        16 => Some(Kind::Bool),
        17 => Some(Kind::Bytes),
        20 | 21 | 23 | 26 => Some(Kind::Integer),
        700 | 701 => Some(Kind::Float),
        1700 => Some(Kind::Numeric),
        114 | 3802 => Some(Kind::Json),
        1114 => Some(Kind::Timestamp),
        1184 => Some(Kind::TimestampTz),
        // Characters, names, numbers of the system, XML, points, networks, money, text, bits, dates, times, intervals.
        18
        | 19
        | 22
        | 24
        | 25
        | 27..=30
        | 142
        | 600..=604
        | 628
        | 650
        | 705
        | 718
        | 774
        | 790
        | 829
        | 869
        | 1033
        | 1042
        | 1043
        | 1082
        | 1083
        | 1186
        | 1266
        | 1560
        | 1562
        | 2205
        | 2206
        | 2249
        | 2275
        | 2278
        | 2950
        | 3220
        | 3614
        | 3615 => Some(Kind::Text),
        1000 => list(Kind::Bool),
        1005 | 1007 | 1016 | 1028 => list(Kind::Integer),
        1021 | 1022 => list(Kind::Float),
        1231 => list(Kind::Numeric),
        1002 | 1003 | 1009 | 1014 | 1015 | 1041 | 1182 | 2951 => list(Kind::Text),
        _ => None,
    }
}
