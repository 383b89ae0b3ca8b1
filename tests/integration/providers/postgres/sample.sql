-- A shop that rents films, with every kind of table that PostgreSQL has. `reader` owns nothing.
CREATE TYPE mpaa AS ENUM ('G', 'PG', 'R');
CREATE TYPE address AS (street text, zip int);
CREATE DOMAIN year AS int CHECK (VALUE BETWEEN 1901 AND 2155);
CREATE DOMAIN labels AS text[];

CREATE TABLE actor (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, first text NOT NULL, last text NOT NULL, born date);
INSERT INTO actor (first, last, born) SELECT 'First ' || n, 'Last ' || n % 7, CASE WHEN n % 5 > 0 THEN date '1950-01-01' + n * 100 END FROM generate_series(1, 60) AS n;

CREATE TABLE film (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    title text NOT NULL,
    released year,
    rating mpaa,
    special text[],
    gone int,
    price numeric(6, 2) NOT NULL,
    length interval,
    fulltext tsvector GENERATED ALWAYS AS (to_tsvector('english', title)) STORED,
    updated timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE film DROP COLUMN gone;
COMMENT ON TABLE film IS 'what can be rented';
COMMENT ON COLUMN film.rating IS 'for whom';
INSERT INTO film (title, released, rating, special, price, length, updated)
SELECT 'Film ' || n || CASE WHEN n % 7 = 0 THEN ' of the red fox' ELSE '' END, CASE WHEN n % 4 > 0 THEN 1950 + n % 70 END,
    (ARRAY['G', 'PG', 'R']::mpaa[])[1 + n % 3], ARRAY['cut ' || n, NULL, 'a"b'], n * 1.25, n * interval '1 minute',
    timestamptz '2026-01-01 12:00:00+02' + n * interval '1 second' FROM generate_series(1, 300) AS n;
CREATE INDEX film_price ON film (price);

CREATE TABLE film_actor (film int REFERENCES film ON DELETE CASCADE, actor int REFERENCES actor, role text, PRIMARY KEY (film, actor));
INSERT INTO film_actor SELECT f, 1 + (f * 7 + a) % 60, 'role ' || a FROM generate_series(1, 300) AS f, generate_series(1, 3) AS a;

CREATE TABLE customer (name text, town text, living address, PRIMARY KEY (town, name));
INSERT INTO customer SELECT CASE n WHEN 1 THEN 'O''Hara, Ann' WHEN 2 THEN '' WHEN 3 THEN 'a/b?c#d' WHEN 4 THEN E'two\nlines' ELSE 'n' || n END,
    'town ' || n % 3, ROW('Street ' || n, n)::address FROM generate_series(1, 40) AS n;

CREATE TABLE payment (id int NOT NULL, at date NOT NULL, amount numeric(5, 2), PRIMARY KEY (at, id)) PARTITION BY RANGE (at);
CREATE TABLE payment_2025 PARTITION OF payment FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE payment_2026 PARTITION OF payment FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
INSERT INTO payment SELECT n, date '2025-12-20' + n % 30, n * 0.01 FROM generate_series(1, 500) AS n;

CREATE TABLE rental (film int, customer text, at timestamp);
INSERT INTO rental SELECT 1 + n % 300, 'n' || n % 40, timestamp '2026-01-01' + n * interval '1 hour' FROM generate_series(1, 5000) AS n;

CREATE VIEW expensive AS SELECT id, title, price FROM film WHERE price > 300;
CREATE MATERIALIZED VIEW by_rating AS SELECT rating, count(*) AS films, avg(price) AS mean FROM film GROUP BY rating;
CREATE UNIQUE INDEX ON by_rating (rating);

CREATE TABLE place (id int PRIMARY KEY, name text);
CREATE TABLE town (people int) INHERITS (place);
INSERT INTO place VALUES (1, 'hill');
INSERT INTO town VALUES (1, 'Ulm', 120000);

CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE version (line text) SERVER files OPTIONS (filename 'PG_VERSION');

CREATE TABLE kinds (
    id int PRIMARY KEY, b bool, i2 int2, i8 int8, n numeric, f4 float4, f8 float8, ts timestamp, tz timestamptz, d date, t time,
    ttz timetz, iv interval, bytes bytea, j json, jb jsonb, u uuid, ip inet, m money, bits bit(4), x xml, tv tsvector, p point, e mpaa,
    r int4range, tr tstzrange, mr int4multirange, c address, ai int[], aa text[][], ac address[], ab box[], dt labels, o oid, nm name,
    ch char(5), y year
);
INSERT INTO kinds VALUES (
    1, true, -5, 9223372036854775807, 12345678901234567890.123450, 1.5, 'NaN', '2026-01-01 12:00:00.123', '2026-01-01 12:00:00+02',
    '2026-02-03', '04:05:06', '04:05:06+02', '1 year 2 days 03:04:05.6', '\x00ff', '{"a":
 1.50}', '{"b":[1,null,"x"]}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10.0.0.1/8', 12.34, '1010', '<a/>', 'a fat cat', '(1,2)', 'PG',
    '[1,10)', '["2026-01-01 00:00+00",)', '{[1,3),[5,8)}', ROW('a "s", t', 7), '{1,NULL,3}', '{{a,NULL},{"NULL","x,y"}}',
    ARRAY[ROW('a', 1)::address, NULL], ARRAY[box '((1,1),(0,0))', box '((2,2),(1,1))'], '{x,y}', 4294967295, 'nm', 'ab', 1999
);
INSERT INTO kinds (id, n, f8, tz, d, bytes, r, ai) VALUES
    (2, 'NaN', '-Infinity', 'infinity', '0044-03-15 BC', '\x', 'empty', '{}'), (3, 1.50, 1e20, '0044-03-15 12:00:00+00 BC', 'infinity', NULL, '(,5)', '[0:1]={7,8}');

CREATE TABLE nothing ();
INSERT INTO nothing DEFAULT VALUES;
CREATE TABLE secret (id int PRIMARY KEY, word text);
CREATE TABLE half (id int PRIMARY KEY, open text, closed text);
INSERT INTO half VALUES (1, 'o', 'c');
CREATE SCHEMA "My.Schema";
CREATE TABLE "My.Schema"."Sel""ect.x/y" ("select" int PRIMARY KEY, "a b" text, "Ümläut" text, "from" text, "a>b" text);
INSERT INTO "My.Schema"."Sel""ect.x/y" VALUES (1, 'x', 'y', NULL, '7');
CREATE TABLE "a.b" (id int PRIMARY KEY);
CREATE TABLE large (id int PRIMARY KEY, words text, bytes bytea);
INSERT INTO large SELECT 1, repeat('äbc ', 3000000), decode(repeat('00ff10', 3000000), 'hex');
CREATE TABLE moving (id int PRIMARY KEY, a text, b text);
INSERT INTO moving SELECT n, 'a' || n, 'b' || n FROM generate_series(1, 50) AS n;

CREATE TABLE big (id bigint PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL, value numeric);
INSERT INTO big SELECT n, 'row ' || n, timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second', n / 7.0 FROM generate_series(1, 1000000) AS n;

CREATE ROLE clerk LOGIN PASSWORD 'c0rrect-horse-battery';
GRANT SELECT ON ALL TABLES IN SCHEMA public TO clerk;
GRANT USAGE ON SCHEMA "My.Schema" TO clerk;
GRANT SELECT ON ALL TABLES IN SCHEMA "My.Schema" TO clerk;
REVOKE SELECT ON secret, half FROM clerk;
GRANT SELECT (id, open) ON half TO clerk;
ANALYZE;
