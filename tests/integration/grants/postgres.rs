//! Grants of databases, as an operator and a provider see them: Debian's PostgreSQL on loopback, with TLS and SCRAM. The
//! provider logs in as anybody, and never has the password.

use std::os::unix::fs::PermissionsExt;

use belljar_tests::Site;
use belljar_upstream::postgres::PASSWORD;

use super::database::{Database, database};
use super::http::attack;
use crate::support::{serve, site};

impl Database {
    /// A site whose mount `hostile` has the grant, with `more` keys.
    pub(crate) fn site(&self, more: &str) -> Site {
        self.site_with(&self.grant("db.test", "reader", more), PASSWORD)
    }

    pub(crate) fn grant(&self, host: &str, user: &str, more: &str) -> String {
        let comma = if more.is_empty() { "" } else { ", " };
        format!(
            "postgres = [{{ at = \"{host}:{}/shop\", user = \"{user}\", password = \"${{secret:shop}}\", networks = [\"127.0.0.1\"]{comma}{more} }}]",
            self.server.port()
        )
    }

    fn site_with(&self, grant: &str, password: &str) -> Site {
        let network = format!("[network]\ndns = [\"{}\"]\nca = \"ca.pem\"", self.names.address());
        let site = site(&format!(
            "{network}\n[secrets]\nshop = {{ file = \"token\" }}\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\n{grant}\n"
        ));
        site.write("ca.pem", self.authority.pem());
        let token = site.write("token", password);
        std::fs::set_permissions(token, PermissionsExt::from_mode(0o600)).unwrap();
        site
    }

    /// The URI that makes the hostile guest run `steps`.
    fn session(&self, steps: &str) -> String {
        attack("postgres", &format!("db.test:{}/user=anybody&database=shop|{steps}", self.server.port()))
    }
}

#[test]
fn a_provider_reads_without_the_password() {
    let Some(database) = database() else { return };
    let site = database.site("");
    let mut client = serve(&site);
    let steps = "q SELECT id, name FROM item WHERE id < 3 ORDER BY id|q SHOW default_transaction_read_only|q SELECT current_user|x SELECT count(*) FROM item WHERE id <= 1000|s|q BEGIN READ ONLY|q SELECT 1|q COMMIT";
    assert_eq!(
        client.text(&database.session(steps)),
        "default_transaction_read_only on; ready I; row 1,item 1; row 2,item 2; SELECT 2; ready I; row on; SHOW; ready I; row reader; SELECT 1; ready I; row 1000; SELECT 1; ready I; BEGIN; ready T; row 1; SELECT 1; ready T; COMMIT; ready I"
    );
    // Rows of 8 MB, in one and in many messages.
    let said = client.text(
        &database.session("q SELECT repeat('x', 4000000)|q SELECT repeat('y', 1000) FROM generate_series(1, 4000)"),
    );
    assert!(said.contains("SELECT 1; ready I; row yyy") && said.contains("SELECT 4000 4024000 bytes"), "{said}");
    let env = client.text("belljar://hostile/env");
    let port = database.server.port();
    for (name, value) in
        [("PGHOST", "db.test"), ("PGPORT", &port.to_string()), ("PGDATABASE", "shop"), ("PGUSER", "reader")]
    {
        assert!(env.contains(&format!("(\"{name}\", \"{value}\")")), "{env}");
    }
    assert!(!env.contains("horse"), "{env}");
    client.close();
    let audit = std::fs::read_to_string(site.path("state/audit.jsonl")).unwrap_or_default();
    assert!(!audit.contains("horse"), "{audit}");
    let records = site.audit();
    let first = records.iter().find(|record| record["mount"] == "hostile").unwrap();
    assert_eq!(first["grants"][0]["grant"], "postgres", "{first}");
    assert_eq!(first["grants"][0]["what"], format!("connect db.test:{port}"), "{first}");
}

#[test]
fn a_connection_that_would_write_ends_and_says_how_to_allow_it() {
    let Some(database) = database() else { return };
    let site = database.site("");
    let mut client = serve(&site);
    let refused = client.text(&database.session("q INSERT INTO item VALUES (2000, 'x')"));
    assert!(
        refused.contains("error 25006 belljar: this connection is read-only, so belljar does not send INSERT"),
        "{refused}"
    );
    // The server refuses what begins like a query.
    let refused = client.text(&database.session("q SELECT add_item(5000)|q SELECT 1"));
    assert!(
        refused.contains("error 25006 cannot execute INSERT in a read-only transaction; ready I; row 1"),
        "{refused}"
    );
    client.close();
    let records = site.audit();
    let denial = &records.iter().find(|record| record["mount"] == "hostile").unwrap()["denials"][0];
    assert_eq!(denial["what"], format!("INSERT on db.test:{}/shop", database.server.port()), "{denial}");

    let site = database.site("read-only = false");
    let mut client = serve(&site);
    let written = client.text(
        &database.session("q INSERT INTO item VALUES (3000, 'x')|q BEGIN|q DELETE FROM item WHERE id = 3000|q COMMIT"),
    );
    assert!(written.ends_with("INSERT 0 1; ready I; BEGIN; ready T; DELETE 1; ready T; COMMIT; ready I"), "{written}");
    client.close();
}

#[test]
fn a_login_that_fails_says_why() {
    let Some(database) = database() else { return };
    let port = database.server.port();
    let said = |site: &Site, host: &str, parameters: &str| {
        let mut client = serve(site);
        let text = client.text(&attack("postgres", &format!("{host}:{port}/{parameters}|q SELECT 1")));
        client.close();
        (text, site.audit().iter().rfind(|record| record["mount"] == "hostile").unwrap().to_string())
    };
    let wrong = database.site_with(&database.grant("db.test", "reader", ""), "the-wrong-password");
    let (text, record) = said(&wrong, "db.test", "user=x&database=shop");
    assert!(
        text.contains("error 28P01 belljar: the server refuses the login: the password or the user is wrong"),
        "{text}"
    );
    assert!(record.contains("log in to db.test") && !record.contains("the-wrong-password"), "{record}");
    let md5 = database.site_with(&database.grant("db.test", "old", ""), PASSWORD);
    let (text, _) = said(&md5, "db.test", "user=x&database=shop");
    assert!(text.contains("belljar logs in with SCRAM-SHA-256 only") || text.contains("28P01"), "{text}");
    let other = database.site_with(&database.grant("other.test", "reader", ""), PASSWORD);
    let (text, record) = said(&other, "other.test", "user=x");
    assert!(text.starts_with("refused: ") && record.contains("connect other.test"), "{text}: {record}");
    let asked = database.site("");
    let (text, _) = said(&asked, "db.test", "user=x&database=postgres");
    assert!(
        text.contains("this connection is to the database \\\"shop\\\"")
            || text.contains("this connection is to the database \"shop\""),
        "{text}"
    );
}

#[test]
fn a_statement_ends_with_its_call() {
    let Some(database) = database() else { return };
    let site = database.site("");
    std::fs::write(
        site.path("belljar.toml"),
        std::fs::read_to_string(site.path("belljar.toml")).unwrap() + "[mounts.hostile.limits]\ntime = \"1s\"\n",
    )
    .unwrap();
    let mut client = serve(&site);
    // The guest turns the server's own time-out off.
    let steps = "q SELECT set_config('statement_timeout', '0', false)|q SELECT pg_sleep(600), 'belljar sleeps'";
    let error = client.read(&database.session(steps)).unwrap_err();
    assert_eq!(error.data["limit"], "time", "{error}");
    let running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%belljar sleeps%' AND query NOT LIKE '%pg_stat_activity%' AND state = 'active'";
    belljar_tests::wait_until("the statement ends", || {
        let count = database.server.run("postgres", running);
        (count == "0").then_some(()).ok_or(count)
    });
    client.close();
}

#[test]
fn impossible_grants_are_refused_with_the_cure() {
    let all = |more: &str| format!("postgres = [{{ {more} }}]");
    let login = "user = \"reader\", password = \"${secret:shop}\"";
    for (grants, expected) in [
        (all(&format!("at = \"db.test\", {login}")), "expected a server and a database"),
        (all(&format!("at = \"db.test:0/shop\", {login}")), "the port is not a number"),
        (all("at = \"db.test/shop\", user = \"reader\", password = \"plain\""), "write password = "),
        (all(&format!("at = \"db.test/shop\", tls = false, {login}")), "this machine only"),
        (all(&format!("at = \"db.test/shop\", read_only = true, {login}")), "read-only"),
        (all("at = \"db.test/shop\", user = \"reader\", password = \"${secret:other}\""), "\"other\""),
        (all("at = \"db.test/shop\""), "user"),
    ] {
        let site = site(&format!(
            "[secrets]\nshop = {{ file = \"token\" }}\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\n{grants}\n"
        ));
        let token = site.write("token", PASSWORD);
        std::fs::set_permissions(token, PermissionsExt::from_mode(0o600)).unwrap();
        let checked = site.run(&["check"]);
        let said = format!("{}{}", String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
        assert!(!checked.status.success() && said.contains(expected), "{grants}: {said}");
    }
}

#[test]
fn the_command_line_grants_and_revokes_a_database() {
    let site = site("[secrets]\nshop = { env = \"SHOP\" }\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\n");
    let refused = site.run(&["grant", "hostile", "--postgres", "db.test/shop", "--yes"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("--user NAME and --password '${secret:NAME}'"), "{said}");
    let arguments = [
        "grant",
        "hostile",
        "--postgres",
        "db.test/shop",
        "--user",
        "reader",
        "--password",
        "${secret:shop}",
        "--network",
        "10.0.0.0/8",
        "--yes",
    ];
    let mut command = site.command(arguments);
    let granted = command.env("SHOP", PASSWORD).output().unwrap();
    let said = String::from_utf8_lossy(&granted.stdout).into_owned();
    assert!(granted.status.success(), "{granted:?}");
    assert!(said.contains("read the database db.test/shop with the rights of the user \"reader\""), "{said}");
    let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    for line in [
        "[[mounts.hostile.postgres]]",
        "at = \"db.test/shop\"",
        "user = \"reader\"",
        "password = \"${secret:shop}\"",
        "networks = [\"10.0.0.0/8\"]",
    ] {
        assert!(written.contains(line), "{written}");
    }
    let revoked = site.run(&["revoke", "hostile", "--postgres", "db.test:5432/shop", "--yes"]);
    assert!(revoked.status.success(), "{revoked:?}");
    assert!(!std::fs::read_to_string(site.path("belljar.toml")).unwrap().contains("postgres"));
}
