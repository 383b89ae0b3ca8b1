//! The PostgreSQL server of the tests about grants of databases. The users of its tables may write: what stops them is
//! belljar.

use std::sync::OnceLock;

use belljar_tests::{debian, places};
use belljar_upstream::postgres::PostgresServer;
use belljar_upstream::{Authority, DnsServer};

/// A server, the authority that signed its certificate, and a name server with its names.
pub(crate) struct Database {
    pub(crate) server: PostgresServer,
    pub(crate) authority: Authority,
    pub(crate) names: DnsServer,
}

const USERS: &str = "
CREATE ROLE reader LOGIN PASSWORD 'c0rrect-horse-battery';
CREATE ROLE old LOGIN;
SET password_encryption = 'md5';
ALTER ROLE old PASSWORD 'c0rrect-horse-battery';
CREATE DATABASE shop OWNER reader;
";

const TABLES: &str = "
SET ROLE reader;
CREATE TABLE item (id int PRIMARY KEY, name text);
INSERT INTO item SELECT n, 'item ' || n FROM generate_series(1, 1000) AS n;
CREATE FUNCTION add_item(int) RETURNS int LANGUAGE sql VOLATILE AS $$ INSERT INTO item VALUES ($1, 'new') RETURNING id $$;
CREATE PROCEDURE add_in_transaction(int) LANGUAGE plpgsql AS $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; INSERT INTO item VALUES ($1, 'new'); END $$;
CREATE SEQUENCE ticket;
";

/// The server. `None` if this machine lacks PostgreSQL.
pub(crate) fn database() -> Option<&'static Database> {
    static DATABASE: OnceLock<Option<Database>> = OnceLock::new();
    let start = || {
        let initdb = places::program(&debian::POSTGRESQL)?;
        let authority = Authority::new();
        let server = PostgresServer::start(&initdb, &authority, &["db.test"]);
        server.run("postgres", USERS);
        server.run("shop", TABLES);
        let names = DnsServer::start(&[("db.test", &["127.0.0.1"]), ("other.test", &["127.0.0.1"])]);
        Some(Database { server, authority, names })
    };
    DATABASE.get_or_init(start).as_ref()
}
