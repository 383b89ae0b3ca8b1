//! The catalog of the database: the list of tables, the overview, and the schema of tables.

use belljar_guest::Result;
use serde_json::{Value as Json, json};

use crate::connection::{Connection, Query};
use crate::failure::Outcome;
use crate::row::Row;
use crate::table::{RESOLVE, Relation, TableName, written};

/// The tables and views of the list. Partitions belong to their table, and the tables of the server are not listed.
const LISTED: &str = "c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'";

const LIST: &str = "SELECT n.nspname, c.relname, c.relkind, pg_catalog.obj_description(c.oid, 'pg_class'), pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))";

/// The server's estimates: of the last VACUUM or ANALYZE, or else its count of changes. A partitioned table has those of its
/// partitions.
const OVERVIEW: &str = ", CASE WHEN c.relkind IN ('r', 'm', 'f') AND c.reltuples >= 0 THEN c.reltuples::int8 WHEN c.relkind IN ('r', 'm') THEN pg_catalog.pg_stat_get_live_tuples(c.oid) WHEN c.relkind = 'p' THEN (SELECT sum(CASE WHEN l.reltuples >= 0 THEN l.reltuples::int8 ELSE pg_catalog.pg_stat_get_live_tuples(l.oid) END)::int8 FROM pg_catalog.pg_partition_tree(c.oid) AS t JOIN pg_catalog.pg_class AS l ON l.oid = t.relid WHERE t.isleaf) END, (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), (SELECT pg_catalog.json_agg(a.attname ORDER BY pg_catalog.array_position(i.indkey::int2[], a.attnum)) FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = c.oid AND i.indisprimary)";

const FROM: &str = " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE ";

const ORDER: &str = " ORDER BY n.nspname, c.relname";

/// The schema of a table as JSON.
const DESCRIBE: &str = "SELECT n.nspname, c.relname, c.relkind, pg_catalog.json_strip_nulls(pg_catalog.json_build_object(
'comment', pg_catalog.obj_description(c.oid, 'pg_class'),
'columns', COALESCE((SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod),
 'not_null', NULLIF(a.attnotnull, false), 'primary_key', (SELECT true FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)),
 'generated', NULLIF(a.attgenerated = 's', false), 'identity', CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by default' END,
 'default', pg_catalog.pg_get_expr(d.adbin, d.adrelid), 'comment', pg_catalog.col_description(c.oid, a.attnum),
 'values', (SELECT pg_catalog.json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = a.atttypid),
 'denied', NULLIF(NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'), false)) ORDER BY a.attnum)
 FROM pg_catalog.pg_attribute AS a LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '[]'),
'key', COALESCE((SELECT pg_catalog.json_agg(a.attname ORDER BY k.place) FROM pg_catalog.pg_index AS i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place) JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number WHERE i.indrelid = c.oid AND i.indisprimary AND k.place <= i.indnkeyatts), '[]'),
'indexes', COALESCE((SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', x.relname, 'unique', i.indisunique, 'partial', i.indpred IS NOT NULL, 'valid', NULLIF(i.indisvalid, true),
 'columns', (SELECT pg_catalog.json_agg(pg_catalog.pg_get_indexdef(i.indexrelid, k, true) ORDER BY k) FROM generate_series(1, i.indnkeyatts) AS k), 'sql', pg_catalog.pg_get_indexdef(i.indexrelid)) ORDER BY x.relname)
 FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid), '[]'),
'foreign_keys', COALESCE((SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', f.conname, 'columns', {columns of f.conrelid by f.conkey}, 'schema', m.nspname, 'table', o.relname, 'references', {columns of f.confrelid by f.confkey},
 'on_delete', CASE f.confdeltype WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END) ORDER BY f.conname)
 FROM pg_catalog.pg_constraint AS f JOIN pg_catalog.pg_class AS o ON o.oid = f.confrelid JOIN pg_catalog.pg_namespace AS m ON m.oid = o.relnamespace WHERE f.conrelid = c.oid AND f.contype = 'f'), '[]'),
'referenced_by', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', m.nspname, 'table', o.relname, 'columns', {columns of f.conrelid by f.conkey}, 'references', {columns of f.confrelid by f.confkey}) ORDER BY m.nspname, o.relname)
 FROM pg_catalog.pg_constraint AS f JOIN pg_catalog.pg_class AS o ON o.oid = f.conrelid JOIN pg_catalog.pg_namespace AS m ON m.oid = o.relnamespace WHERE f.confrelid = c.oid AND f.contype = 'f' AND f.conparentid = 0),
'checks', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', k.conname, 'sql', pg_catalog.pg_get_constraintdef(k.oid)) ORDER BY k.conname) FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype IN ('c', 'x')),
'partition_key', CASE WHEN c.relkind = 'p' THEN pg_catalog.pg_get_partkeydef(c.oid) END,
'bounds', pg_catalog.pg_get_expr(c.relpartbound, c.oid),
'children', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', m.nspname, 'table', o.relname) ORDER BY m.nspname, o.relname) FROM pg_catalog.pg_inherits AS h JOIN pg_catalog.pg_class AS o ON o.oid = h.inhrelid JOIN pg_catalog.pg_namespace AS m ON m.oid = o.relnamespace WHERE h.inhparent = c.oid),
'parents', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', m.nspname, 'table', o.relname) ORDER BY h.inhseqno) FROM pg_catalog.pg_inherits AS h JOIN pg_catalog.pg_class AS o ON o.oid = h.inhparent JOIN pg_catalog.pg_namespace AS m ON m.oid = o.relnamespace WHERE h.inhrelid = c.oid),
'sql', CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid, true) END))";

/// The names of columns whose numbers stand in an array.
const NAMES: &str = "(SELECT pg_catalog.json_agg(a.attname ORDER BY k.place) FROM unnest({by}) WITH ORDINALITY AS k(number, place) JOIN pg_catalog.pg_attribute AS a ON a.attrelid = {of} AND a.attnum = k.number)";

/// A table or a view of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) relation: Relation,
    pub(crate) comment: Option<String>,
    /// False if the user may read none of its columns.
    pub(crate) is_allowed: bool,
}

impl Entry {
    fn of(row: &Row) -> Entry {
        Entry {
            schema: row.string(0),
            name: row.string(1),
            relation: Relation::of(&row.string(2)),
            comment: row.text(3).map(std::borrow::Cow::into_owned),
            is_allowed: row.is(4),
        }
    }

    /// The name in references, before encoding.
    pub(crate) fn written(&self) -> String {
        written(&self.schema, &self.name)
    }
}

/// All tables and views, sorted by schema and name.
pub(crate) fn list(connection: &mut Connection) -> Outcome<Vec<Entry>> {
    let rows = connection.all(&[Query::new(format!("{LIST}{FROM}{LISTED}{ORDER}"), Vec::new())])?;
    Ok(rows.into_iter().flatten().map(|row| Entry::of(&row)).collect())
}

/// Each table with its columns, its key and the estimated number of rows.
pub(crate) fn overview(connection: &mut Connection) -> Outcome<Vec<Json>> {
    let rows = connection.all(&[Query::new(format!("{LIST}{OVERVIEW}{FROM}{LISTED}{ORDER}"), Vec::new())])?;
    let of = |row: Row| {
        let entry = Entry::of(&row);
        let list =
            |at: usize| row.text(at).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| json!([]));
        let mut about =
            json!({ "name": entry.written(), "type": entry.relation.word(), "columns": list(6), "key": list(7) });
        if let Some(fields) = about.as_object_mut() {
            if let Some(rows) = row.number::<i64>(5) {
                fields.insert("rows".to_owned(), json!({ "about": rows }));
            }
            if let Some(comment) = &entry.comment {
                fields.insert("comment".to_owned(), json!(comment));
            }
            if !entry.is_allowed {
                fields.insert(
                    "error".to_owned(),
                    json!(format!("the user \"{}\" may not read it", connection.destination.user)),
                );
            }
        }
        about
    };
    Ok(rows.into_iter().flatten().map(of).collect())
}

/// The schema of one table, or of all in the list.
pub(crate) fn describe(connection: &mut Connection, table: Option<&TableName>) -> Outcome<Vec<Json>> {
    let mut sql = DESCRIBE.to_owned();
    for table in ["f.conrelid by f.conkey", "f.confrelid by f.confkey"] {
        let (of, by) = table.split_once(" by ").unwrap_or_default();
        sql = sql.replace(&format!("{{columns of {table}}}"), &NAMES.replace("{of}", of).replace("{by}", by));
    }
    let which = match table {
        Some(_) => format!("c.oid = {RESOLVE}"),
        None => LISTED.to_owned(),
    };
    let values = table.map(TableName::values).unwrap_or_default();
    let rows = connection.all(&[Query::new(format!("{sql}{FROM}{which}{ORDER}"), values)])?;
    rows.into_iter().flatten().map(|row| described(&row)).collect::<Result<_>>().map_err(Into::into)
}

fn described(row: &Row) -> Result<Json> {
    let mut about: Json = serde_json::from_str(&row.string(3)).map_err(belljar_guest::Error::failed)?;
    for list in ["foreign_keys", "referenced_by", "children", "parents"] {
        for entry in about.get_mut(list).and_then(Json::as_array_mut).into_iter().flatten() {
            let Some(fields) = entry.as_object_mut() else { continue };
            let text =
                |value: Option<Json>| value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
            let table = written(&text(fields.remove("schema")), &text(fields.remove("table")));
            match fields.is_empty() {
                true => *entry = json!(table),
                false => drop(fields.insert("table".to_owned(), json!(table))),
            }
        }
    }
    if let Some(fields) = about.as_object_mut() {
        fields.insert("name".to_owned(), json!(written(&row.string(0), &row.string(1))));
        fields.insert("type".to_owned(), json!(Relation::of(&row.string(2)).word()));
    }
    Ok(about)
}
