//! Revisions: short queries whose result differs when a resource differs. They read catalogs and counters, and no rows.

use belljar_guest::{Error, Result, Revisions};

use crate::Postgres;
use crate::address::Address;
use crate::connection::{Connection, Query};
use crate::failure::Outcome;
use crate::table::{RESOLVE, TableName};

/// The names, kinds, columns, comments and files of all tables in the list.
const CATALOG: &str = "SELECT pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws(' ', c.oid, n.nspname, c.relname, c.relkind, c.relfilenode, c.relacl, pg_catalog.obj_description(c.oid, 'pg_class'), (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attacl), ',' ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0)), ';' ORDER BY c.oid)) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'i') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'";

/// The counters of all changes in the database.
const DATABASE: &str = "SELECT pg_catalog.concat_ws(' ', pg_catalog.pg_stat_get_db_tuples_inserted(d.oid), pg_catalog.pg_stat_get_db_tuples_updated(d.oid), pg_catalog.pg_stat_get_db_tuples_deleted(d.oid), pg_catalog.pg_stat_get_db_stat_reset_time(d.oid)) FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()";

/// The kind of a table, and the columns, files and counters of changes of it and of all tables below it.
const TABLE: &str = "WITH RECURSIVE tree(oid) AS (SELECT {} UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN tree ON i.inhparent = tree.oid) SELECT (SELECT r.relkind FROM pg_catalog.pg_class AS r WHERE r.oid = {}), pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws(' ', c.oid, c.relname, c.relfilenode, pg_catalog.pg_stat_get_tuples_inserted(c.oid), pg_catalog.pg_stat_get_tuples_updated(c.oid), pg_catalog.pg_stat_get_tuples_deleted(c.oid), (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attnum, a.attname, a.atttypid, a.attnotnull), ',' ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0)), ';' ORDER BY c.oid)) FROM tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.oid";

impl Revisions for Postgres {
    /// Changes with the names, kinds, columns and comments of tables.
    fn catalog_revision(&self) -> Result<String> {
        Ok(catalog(&mut Connection::open()?)?)
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        Ok(self.revision(&mut Connection::open()?, reference)?)
    }

    fn resource_revisions(&self, references: &[String]) -> Vec<Result<String>> {
        match Connection::open() {
            Ok(mut connection) => {
                references.iter().map(|reference| Ok(self.revision(&mut connection, reference)?)).collect()
            }
            Err(failure) => {
                let error = Error::from(failure);
                references.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }
}

impl Postgres {
    fn revision(&self, connection: &mut Connection, reference: &str) -> Outcome<String> {
        match Address::parse(reference)? {
            Address::Overview | Address::Schema { .. } => catalog(connection),
            Address::Page { table, .. } | Address::Row { table, .. } | Address::Value { table, .. } => {
                of_table(connection, &table)
            }
            Address::View { name, .. } if self.views.iter().any(|view| view.name == name) => whole(connection),
            Address::View { .. } => Err(Error::NotFound.into()),
        }
    }
}

fn first(connection: &mut Connection, queries: &[Query]) -> Outcome<Vec<String>> {
    let rows = connection.all(queries)?;
    Ok(rows.iter().map(|rows| rows.first().map(|row| row.string(0)).unwrap_or_default()).collect())
}

fn catalog(connection: &mut Connection) -> Outcome<String> {
    Ok(first(connection, &[Query::new(CATALOG, Vec::new())])?.concat())
}

/// The revision of the whole database: a view may read any table.
fn whole(connection: &mut Connection) -> Outcome<String> {
    Ok(first(connection, &[Query::new(CATALOG, Vec::new()), Query::new(DATABASE, Vec::new())])?.join(" "))
}

fn of_table(connection: &mut Connection, table: &TableName) -> Outcome<String> {
    let query = Query::new(TABLE.replace("{}", RESOLVE), table.values());
    let rows = connection.all(&[query])?.pop_front().unwrap_or_default();
    let Some(row) = rows.first() else { return Err(Error::NotFound.into()) };
    match row.string(0).as_str() {
        "" => Err(Error::NotFound.into()),
        "v" => whole(connection),
        "f" => {
            Err(Error::failed("the rows of a foreign table lie in another database, which is not asked for changes")
                .into())
        }
        _ => Ok(row.string(1)),
    }
}
