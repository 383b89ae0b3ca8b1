"""Databases of the kinds that programs write, and what Python's sqlite3 reads in them."""

import base64
import json
import math
import os
import random
import shutil
import sqlite3
import sys
from urllib.parse import quote

DIR = sys.argv[1]
CASES = []
MODULES = {name for (name,) in sqlite3.connect(":memory:").execute("SELECT name FROM pragma_module_list")}


def text(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ("odd text", data)


def shown(value):
    """A value as the provider shows it in a page."""
    if isinstance(value, bytes):
        return {"blob": base64.b64encode(value).decode(), "size": len(value)}
    if isinstance(value, tuple):
        data = value[1]
        return {"text": data.decode(errors="replace"), "bytes": base64.b64encode(data).decode(), "size": len(data), "cut": False}
    if isinstance(value, int) and abs(value) > 2**53 - 1:
        return {"integer": str(value)}
    if isinstance(value, float) and math.isinf(value):
        return {"real": "Infinity" if value > 0 else "-Infinity"}
    return value


def name(text):
    """A name as a segment of a reference."""
    parts = text.replace("\\", "/").split("/")
    if text == "" or any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text) or "." in parts or ".." in parts:
        text = "t'" + text.encode().hex() + "'"
    return quote(text, safe="-._~!$&'()*+,;=@")


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


class Database:
    def __init__(self, file, *statements, encoding=None):
        self.file = file
        self.path = os.path.join(DIR, file)
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.text_factory = text
        self.connection.execute("PRAGMA synchronous = OFF")
        for statement in statements:
            self.connection.executescript(statement)

    def rows(self, sql, values=()):
        cursor = self.connection.execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [[[name, shown(value)] for name, value in zip(names, row)] for row in cursor]

    def case(self, title, rest, expected):
        CASES.append({"name": title, "reference": f"{name(self.file)}/{rest}", "expected": expected})

    def table(self, title, table, order, limit=7, query="", condition="1", values=(), columns="*"):
        """All rows of a table: each page, and each row by its key."""
        sql = f"SELECT {columns} FROM {quoted(table)} WHERE {condition}" + (f" ORDER BY {order}" if order else "")
        query = "".join(f"{key}={quote(value, safe='')}&" for key, value in query) if query else ""
        self.case(title, f"tables/{name(table)}?{query}limit={limit}", {"rows": self.rows(sql, values), "keys": 1000 if self.file.startswith("keys") else 2})

    def error(self, title, rest, words):
        self.case(title, rest, {"error": words})

    def names(self):
        found = self.connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
        return sorted(row[0] for row in found)


def values():
    random.seed(19)
    odd = [None, 0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -2**63, 0.0, -0.5, 1e300, 5e-324, math.inf, -math.inf, 0.1 + 0.2,
           "", "a", "1", "1.5", "007", "inf", "NaN", "9e999", "NULL", "a,b", "it's", "x'00'", "t'61'", "rowid=3", ".", "..",
           "a/../b", "a/b", "a?b#c%2e&d=e", "ü😀", '"', " a ", "a\nb\tc", "a\0b", "\x7f", "\\", "+", "a b", "e\u0301", "\u202e",
           b"", b"\0", b"text", bytes(range(200))]
    return odd


def kinds_of_keys():
    odd = values()
    for at, kind in enumerate(["", "TEXT", "BLOB", "NUMERIC", "REAL", "INT", "INTEGER", "TEXT COLLATE NOCASE", "DATETIME", "ANY"]):
        db = Database(f"keys{at}.db")
        insert = "INSERT OR IGNORE INTO {} VALUES ({})"
        db.connection.executescript(f"""
            CREATE TABLE one (k {kind} PRIMARY KEY, n INT);
            CREATE TABLE two (k {kind}, j {kind}, n INT, PRIMARY KEY (k, j));
            CREATE TABLE plain (k {kind}, n INT);
            CREATE TABLE down (k {kind}, n INT, PRIMARY KEY (k DESC));""")
        tight = kind != "INTEGER"
        if tight:
            db.connection.executescript(f"""
                CREATE TABLE tight (k {kind} PRIMARY KEY, n INT) WITHOUT ROWID;
                CREATE TABLE pair (n INT, k {kind}, j {kind}, PRIMARY KEY (j, k)) WITHOUT ROWID;""")
        for n, value in enumerate(odd):
            other = random.choice([value for value in odd if value is not None])
            try:
                db.connection.execute(insert.format("one", "?, ?"), (value, n))
            except sqlite3.IntegrityError:
                continue
            db.connection.execute(insert.format("two", "?, ?, ?"), (value, other, n))
            db.connection.execute(insert.format("plain", "?, ?"), (value, n))
            db.connection.execute(insert.format("down", "?, ?"), (value, n))
            if tight and value is not None:
                db.connection.execute(insert.format("tight", "?, ?"), (value, n))
                db.connection.execute(insert.format("pair", "?, ?, ?"), (n, value, other))
        for table, order in [("one", "rowid"), ("two", "rowid"), ("plain", "rowid"), ("down", "rowid")]:
            db.table(f"keys of type {kind!r}", table, order)
        if tight:
            db.table(f"keys of type {kind!r}", "tight", "k")
            db.table(f"keys of type {kind!r}", "pair", "j, k")
            db.table(f"keys of type {kind!r}", "pair", "k, j", query=[("sort", "k")])
            db.table(f"keys of type {kind!r}", "tight", "n DESC", query=[("sort", "-n")], limit=3)


def random_tables():
    random.seed(7)
    kinds = ["", "INT", "INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC", "BOOLEAN", "DATE", "VARCHAR(20)", "DOUBLE PRECISION", "BIGINT"]
    words = ["red", "Green", "blue", "RED", "rot", "grün", "", "10", "9", "2026-11-21", "2026-11-22T10:00:00", "a b c", "null"]
    db = Database("random.db")
    for at in range(25):
        columns = [(f"c{i}", random.choice(kinds)) for i in range(random.randint(1, 9))]
        has_id = random.random() < 0.4
        declared = (["id INTEGER PRIMARY KEY"] if has_id else []) + [f"{column} {kind}" for column, kind in columns]
        db.connection.execute(f"CREATE TABLE r{at} ({', '.join(declared)})")
        for i in range(random.randint(0, 60)):
            row = [random.choice([None, random.randint(-20, 20), random.choice([-1, 1]) * random.randint(0, 40) / 4, random.choice(words),
                                  random.choice(words), random.randbytes(random.randint(0, 5))]) for _ in columns]
            row = ([None if random.random() < 0.8 else random.randint(1, 10**6)] if has_id else []) + row
            db.connection.execute(f"INSERT OR IGNORE INTO r{at} VALUES ({', '.join('?' * len(row))})", row)
        if random.random() < 0.5:
            db.connection.execute(f"CREATE INDEX i{at} ON r{at} (c0)")
        db.connection.execute(f"CREATE VIEW v{at} AS SELECT * FROM r{at} ORDER BY rowid")
        db.table("a random table", f"r{at}", "rowid", limit=random.choice([1, 5, 100]))
        db.table("a view", f"v{at}", "", limit=random.choice([3, 100]))
        column, kind = random.choice(columns)
        down = random.random() < 0.5
        db.table("an order", f"r{at}", f"{column} {'DESC' if down else ''}, rowid", query=[("sort", ("-" if down else "") + column)], limit=4)
        for _ in range(4):
            filter_case(db, f"r{at}", *random.choice(columns), words)


def filter_case(db, table, column, kind, words):
    """A filter, against the same condition in SQL with the rule: numbers compare with numbers, text with text."""
    is_text = any(part in kind for part in ["CHAR", "TEXT"])
    operator = random.choice(["=", "!=", "<", "<=", ">", ">=", "~", "!~", "is empty"])
    value = random.choice([str(random.randint(-10, 10)), "2.5", random.choice([word for word in words if word])])
    number = None
    if not is_text:
        try:
            number = float(value) if "." in value else int(value)
        except ValueError:
            pass
    numeric = f"typeof({column}) IN ('integer', 'real')"
    if operator == "is empty":
        condition, bound = f"({column} IS NULL OR {column} = '')", ()
        query = f"{column} is empty"
    elif operator in ("~", "!~"):
        db.connection.create_function("holds", 2, lambda cell, needle: cell is not None and not isinstance(cell, (bytes, tuple)) and needle.lower() in str(cell).lower())
        condition, bound, query = f"{'NOT ' if operator == '!~' else ''}holds({column}, ?)", (value,), f"{column}{operator}{value}"
    elif operator == "=":
        same = f"({column} = ? OR (typeof({column}) = 'text' AND +{column} = ?))" if number is not None else f"{column} = ?"
        condition, bound, query = same, (number, value) if number is not None else (value,), f"{column}={value}"
    elif operator == "!=":
        same = f"({column} = ? OR (typeof({column}) = 'text' AND +{column} = ?))" if number is not None else f"{column} = ?"
        condition, bound, query = f"({column} IS NULL OR NOT {same})", (number, value) if number is not None else (value,), f"{column}!={value}"
    elif number is not None:
        condition, bound, query = f"{column} {operator} ? AND {numeric}", (number,), f"{column}{operator}{value}"
    else:
        condition, bound, query = f"{column} {operator} ? AND typeof({column}) = 'text'", (value,), f"{column}{operator}{value}"
    db.table(f"the filter {query} of type {kind!r}", table, "rowid", query=[("where", query)], condition=condition, values=bound, limit=6)


def virtual_tables():
    """Each module that this Python has."""
    made = {
        "fts5": ["CREATE VIRTUAL TABLE {0} USING fts5(title, body)", "INSERT INTO {0} VALUES ('One', 'red fox'), ('Two', 'blue whale'), ('Three', 'red whale')"],
        "fts4": ["CREATE VIRTUAL TABLE {0} USING fts4(title, body, tokenize=porter)", "INSERT INTO {0} VALUES ('One', 'red fox'), ('Two', 'blue whale'), ('Three', 'red whale')"],
        "fts3": ["CREATE VIRTUAL TABLE {0} USING fts3(title, body)", "INSERT INTO {0} VALUES ('One', 'red fox'), ('Two', 'blue whale'), ('Three', 'red whale')"],
        "rtree": ["CREATE VIRTUAL TABLE {0} USING rtree(id, x0, x1, y0, y1, +label)", "INSERT INTO {0} VALUES (1, 0, 1, 0, 1, 'a'), (5, 2.5, 3, 2, 3, 'b'), (9, -1, 9, -1, 9, NULL)"],
        "rtree_i32": ["CREATE VIRTUAL TABLE {0} USING rtree_i32(id, x0, x1)", "INSERT INTO {0} VALUES (1, 0, 1), (2, 5, 7)"],
        "geopoly": ["CREATE VIRTUAL TABLE {0} USING geopoly(name)", "INSERT INTO {0} (_shape, name) VALUES ('[[0,0],[1,0],[0,1],[0,0]]', 'x')"],
        "fts5vocab": ["CREATE VIRTUAL TABLE source USING fts5(t)", "INSERT INTO source VALUES ('a b a')", "CREATE VIRTUAL TABLE {0} USING fts5vocab(source, 'row')"],
        "fts4aux": ["CREATE VIRTUAL TABLE source USING fts4(t)", "INSERT INTO source VALUES ('a b a')", "CREATE VIRTUAL TABLE {0} USING fts4aux(source)"],
        "dbstat": ["CREATE TABLE t (a)", "CREATE VIRTUAL TABLE {0} USING dbstat"],
    }
    for module, statements in made.items():
        if module not in MODULES:
            print(f"skipped: this Python has no module {module}", file=sys.stderr)
            continue
        table = f"made by {module}"
        db = Database(f"{module}.db", *(statement.format(quoted(table)) + ";" for statement in statements))
        db.connection.execute(f"CREATE VIEW through AS SELECT * FROM {quoted(table)}")
        if module in ("fts3", "fts4", "fts5"):
            db.connection.execute(f"CREATE VIEW hits AS SELECT title FROM {quoted(table)} WHERE {quoted(table)} MATCH 'whale'")
        db.table(f"a table of {module}", table, "rowid" if module in ("fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly") else "", limit=2)
        if module != "dbstat":
            db.table(f"a view of {module}", "through", "", limit=2)
        listed = [name for name in db.names() if name in (table, "hits", "through", "source", "t")]
        db.case(f"the list of {module}", "", {"names": listed})
        if module in ("fts3", "fts4", "fts5"):
            db.table(f"a search in {module}", table, "rowid", query=[("match", "red")], condition=f"{quoted(table)} MATCH ?", values=("red",), limit=1)
            db.table(f"a search in a view of {module}", "hits", "", limit=1)
        if module == "rtree":
            db.table("a box", table, "rowid", query=[("where", "x0>=0 and x1<=3")], condition="x0 >= 0 AND x1 <= 3", limit=1)
    json_views = Database("json.db", """CREATE TABLE t (j); INSERT INTO t VALUES ('{"a": [1, 2, {"b": null}]}'), ('[3]');
        CREATE VIEW each_value AS SELECT e.key, e.value, e.type FROM t, json_each(t.j) AS e;
        CREATE VIEW tree AS SELECT fullkey, atom FROM t, json_tree(t.j);
        CREATE VIEW columns AS SELECT name, type FROM pragma_table_info('t');
        CREATE VIEW computed AS SELECT sqrt(2.0) AS r, json_extract(j, '$.a[1]') AS x, printf('%05d', 7) AS p FROM t;""")
    for view in ["each_value", "tree", "columns", "computed"]:
        json_views.table("a view with functions", view, "")


def shapes():
    """Settings of a database, and kinds of tables."""
    content = """CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB);
        CREATE TABLE made (a INT, b TEXT AS (a || 'ü') STORED, c INT AS (a * 2) VIRTUAL, d DEFAULT (1 + 1));
        INSERT INTO made (a) VALUES (1), (2), (NULL);
        CREATE TABLE strict (a INTEGER PRIMARY KEY, b ANY, c TEXT, d REAL) STRICT;
        INSERT INTO strict VALUES (1, '7', 'ü', 1), (2, 7, '€', 0.5), (3, x'07', '😀', NULL);
        CREATE TABLE hidden (rowid, oid, _rowid_); INSERT INTO hidden VALUES (1, 2, 3), (4, 5, 6), (7, 8, 9);
        CREATE TABLE part (rowid TEXT, x); INSERT INTO part VALUES ('a', 1), ('b', 2);
        CREATE TABLE auto (id INTEGER PRIMARY KEY AUTOINCREMENT, x); INSERT INTO auto (x) VALUES (1), (2);
        CREATE INDEX by_expression ON t (lower(a)); CREATE INDEX partial ON t (a) WHERE a IS NOT NULL;
        CREATE VIEW quoted AS SELECT "a text" AS t, a FROM made WHERE a IS NOT "x";
        CREATE TRIGGER act AFTER INSERT ON t BEGIN UPDATE made SET d = 5; END;"""
    for size in [512, 1024, 4096, 65536]:
        for encoding in ["UTF-8", "UTF-16le", "UTF-16be"]:
            for vacuum in ["NONE", "FULL"]:
                db = Database(f"shape-{size}-{encoding}-{vacuum}.sqlite",
                              f"PRAGMA page_size = {size}; PRAGMA encoding = '{encoding}'; PRAGMA auto_vacuum = {vacuum};", content)
                db.connection.executemany("INSERT INTO t (a, b) VALUES (?, ?)", [("ü😀" * (i % 40), bytes([i % 256]) * (i % 200)) for i in range(60)])
                if size == 65536 and vacuum == "FULL":
                    db.connection.execute("DELETE FROM t WHERE id % 3 = 0")
                for table, order in [("t", "id"), ("made", "rowid"), ("strict", "a"), ("hidden", ""), ("part", "_rowid_"), ("auto", "id"), ("quoted", "")]:
                    db.table(f"page size {size}, {encoding}, vacuum {vacuum}", table, order, limit=25)
                db.table("text in another encoding", "strict", "a", query=[("where", "c=€")], condition="c = '€'")
    old = Database("old-format.db", "PRAGMA legacy_file_format = ON; CREATE TABLE t (a, b DEFAULT 5); INSERT INTO t VALUES (1, 2); ALTER TABLE t ADD COLUMN c DEFAULT 'new';")
    old.table("an added column", "t", "rowid")
    wide = Database("wide.db")
    columns = [f"c{at}" for at in range(1999)]
    wide.connection.execute(f"CREATE TABLE wide ({', '.join(columns)})")
    wide.connection.execute(f"INSERT INTO wide VALUES ({', '.join('?' * len(columns))})", range(len(columns)))
    wide.table("2,000 columns", "wide", "rowid")
    many = Database("many.db", "".join(f"CREATE TABLE t{at:04} (a INTEGER PRIMARY KEY, b); CREATE VIEW v{at:04} AS SELECT * FROM t{at:04};" for at in range(500)))
    many.connection.execute("INSERT INTO t0321 (b) VALUES ('x')")
    many.case("1,000 tables and views", "", {"names": many.names()})
    many.table("1,000 tables and views", "v0321", "")


def names():
    odd = ["select", "a b", "a\"b", "it's", "a/b", "a%2Fb", "100%", "a?b", "a#b", "ü😀", "a\nb", ".", "..", "../x", "[x]", "`y`", "t'61'", "-", "+a", "a&b=c", "T'", "x y z "]
    db = Database("names.db")
    for at, title in enumerate(odd):
        db.connection.execute(f"CREATE TABLE {quoted(title)} ({quoted(title)} TEXT PRIMARY KEY, n INT)")
        db.connection.execute(f"INSERT INTO {quoted(title)} VALUES (?, ?), ('other', NULL)", (title, at))
        db.table("an odd name", title, "rowid", limit=1)
        db.case("the value of a column with an odd name", f"tables/{name(title)}/rows/other/{name(title)}", {"text": "other"})
        if "\n" not in title:
            db.table("a filter of a column with an odd name", title, "rowid", query=[("where", f"{quoted(title)}=other")], condition=f"{quoted(title)} = 'other'")
    db.case("odd names", "", {"names": db.names()})


def schemas():
    db = Database("schema.db", """CREATE TABLE parent (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT 'x' UNIQUE, p REAL CHECK (p > 0));
        CREATE TABLE child (a INT, b TEXT, parent INT REFERENCES parent (id) ON DELETE CASCADE, g AS (a + 1), PRIMARY KEY (b, a)) WITHOUT ROWID;
        CREATE INDEX i1 ON child (a DESC, b); CREATE UNIQUE INDEX i2 ON child (lower(b)) WHERE a > 1; CREATE VIEW seen AS SELECT a AS x, b FROM child;""")
    for table in ["parent", "child", "seen"]:
        found = db.connection.execute("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_xinfo(?)", (table,)).fetchall()
        indexes = sorted(row[0] for row in db.connection.execute("SELECT name FROM pragma_index_list(?)", (table,)))
        foreign = [list(row) for row in db.connection.execute("SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?)", (table,))]
        db.case("a schema", f"schema/{table}", {"columns": [list(row) for row in found], "indexes": indexes, "foreign": foreign})


def large_values():
    db = Database("large.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE TABLE tight (k TEXT PRIMARY KEY, v) WITHOUT ROWID;")
    words = "".join(f"line {at} ü€😀\n" for at in range(3000))
    for table, key in [("t", 1), ("tight", "1")]:
        db.connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, words))
        db.case("a large text", f"tables/{table}/rows/1/v", {"text": words})
        db.case("a page with a large text", f"tables/{table}", {"large": [len(words.encode())]})


def journals():
    """Databases in WAL mode and with a journal."""
    db = Database("wal.db", "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, x);")
    db.connection.executemany("INSERT INTO t (x) VALUES (?)", [(f"row {i}",) for i in range(50)])
    for end in ["", "-wal"]:
        shutil.copy(db.path + end, os.path.join(DIR, "copied.db" + end))
    expected = {"rows": db.rows("SELECT * FROM t ORDER BY id"), "keys": 2}
    CASES.append({"name": "a write-ahead log without -shm", "reference": "copied.db/tables/t?limit=20", "expected": expected})
    shutil.copy(db.path, os.path.join(DIR, "alone.db"))
    db.connection.close()
    CASES.append({"name": "WAL mode, closed", "reference": "wal.db/tables/t?limit=20", "expected": expected})
    hot = Database("hot.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, x);")
    hot.connection.execute("PRAGMA cache_size = 5")
    hot.connection.execute("BEGIN")
    hot.connection.executemany("INSERT INTO t (x) VALUES (?)", [("x" * 500,) for _ in range(3000)])
    for end in ["", "-journal"]:
        shutil.copy(hot.path + end, os.path.join(DIR, "crashed.db" + end))
    hot.connection.execute("ROLLBACK")
    CASES.append({"name": "a hot journal", "reference": "crashed.db/tables/t", "expected": {"error": "-journal"}})


def others():
    """Files that are no databases, damage, and what other programs add."""
    write = lambda file, data: open(os.path.join(DIR, file), "wb").write(data)
    write("empty.db", b"")
    CASES.append({"name": "an empty file", "reference": "empty.db/", "expected": {"names": []}})
    write("encrypted.db", random.Random(3).randbytes(8192))
    CASES.append({"name": "an encrypted database", "reference": "encrypted.db/tables/t", "expected": {"error": "SQLCipher"}})
    write("two.db", b"** This file contains an SQLite 2.1 database **\0" + bytes(1000))
    CASES.append({"name": "a database of SQLite 2", "reference": "two.db/tables/t", "expected": {"error": "SQLite 2"}})
    db = Database("added.db", "CREATE TABLE plain (a); INSERT INTO plain VALUES (1);")
    db.connection.create_collation("GERMAN", lambda a, b: (a > b) - (a < b))
    db.connection.create_function("twice", 1, lambda a: a and a * 2, deterministic=True)
    db.connection.executescript("""CREATE TABLE german (name TEXT COLLATE GERMAN PRIMARY KEY, n INT); INSERT INTO german VALUES ('a', 1), ('b', 2);
        CREATE TABLE tight (name TEXT COLLATE GERMAN PRIMARY KEY) WITHOUT ROWID; INSERT INTO tight VALUES ('a');
        CREATE INDEX by_twice ON plain (twice(a)); CREATE VIEW doubled AS SELECT twice(a) FROM plain;""")
    db.table("a key with an unknown collation", "german", "rowid")
    db.table("an index with an unknown function", "plain", "rowid")
    db.error("a view with an unknown function", "tables/doubled", "twice")
    db.error("a table stored in an unknown order", "tables/tight", "GERMAN")
    db.connection.execute("PRAGMA writable_schema = ON")
    for table, module in [("place", "VirtualSpatialIndex"), ("vectors", "vec0"), ("sheet", "csv")]:
        db.connection.execute("INSERT INTO sqlite_schema VALUES ('table', ?, ?, 0, ?)", (table, table, f"CREATE VIRTUAL TABLE {table} USING {module}()"))
        db.error("an unknown module", f"tables/{table}", module)
    broken = Database("broken.db", "PRAGMA page_size = 1024; CREATE TABLE t (id INTEGER PRIMARY KEY, x); CREATE TABLE good (a); INSERT INTO good VALUES (5);")
    broken.connection.executemany("INSERT INTO t (x) VALUES (?)", [("x" * 200,) for _ in range(200)])
    broken.table("a good table in a damaged database", "good", "rowid")
    broken.connection.close()
    with open(broken.path, "r+b") as file:
        file.seek(1024 * 20)
        file.write(b"\xab" * 1024)
    CASES.append({"name": "a damaged page", "reference": "broken.db/tables/t?limit=50", "expected": {"at_least": 190, "notice": "damaged"}})


for make in [kinds_of_keys, random_tables, virtual_tables, shapes, names, schemas, large_values, journals, others]:
    make()
json.dump(CASES, sys.stdout)
