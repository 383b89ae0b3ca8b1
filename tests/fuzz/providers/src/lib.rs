//! The fuzz targets of the providers. Each target passes any bytes to one parser of a provider, which must neither panic nor
//! hang.
//!
//! This crate owns the list of the targets and their dictionaries. The parsers are in the modules `fuzzing` of the providers,
//! and run here as native code.

mod dictionaries;

use belljar_fuzz_run::{Target, none};

/// All targets, sorted by name.
pub const TARGETS: &[Target] = &[
    target("git_alternates", git::fuzzing::alternates, 20_000, dictionaries::GIT),
    target("git_commit", git::fuzzing::commit, 10_000, dictionaries::GIT),
    target("git_commit_graph", git::fuzzing::commit_graph, 500, dictionaries::CHUNKS),
    target("git_config", git::fuzzing::config, 10_000, dictionaries::GIT),
    target("git_delta", git::fuzzing::delta, 20_000, &[]),
    target("git_encoding", git::fuzzing::encoding, 10_000, dictionaries::ENCODINGS),
    target("git_loose_object", git::fuzzing::loose_object, 10_000, &[]),
    target("git_multi_pack_index", git::fuzzing::multi_pack_index, 500, dictionaries::CHUNKS),
    target("git_pack_entry", git::fuzzing::pack_entry, 500, &[]),
    target("git_pack_index", git::fuzzing::pack_index, 500, &[]),
    target("git_packed_refs", git::fuzzing::packed_refs, 500, dictionaries::GIT),
    target("git_reftable", git::fuzzing::reftable, 20_000, &["REFT", "r", "o", "g", "i", "\0"]),
    target("git_tag", git::fuzzing::tag, 20_000, dictionaries::GIT),
    target("git_tree", git::fuzzing::tree, 10_000, dictionaries::GIT),
    target("images_bmp", images::fuzzing::bmp, 2_000, &["BM", "\u{28}\0\0\0", "\u{7c}\0\0\0", "\0\0\0\0"]),
    target("images_exif", images::fuzzing::exif, 2_000, dictionaries::EXIF),
    target("images_facts", images::fuzzing::facts, 5_000, dictionaries::PICTURES),
    target("images_original", images::fuzzing::original, 2_000, dictionaries::PICTURES),
    target(
        "images_query",
        images::fuzzing::query,
        10_000,
        &["size=", "max=", "format=jpeg", "n=", "after=", "%3F", "&", "2048"],
    ),
    target("logs_lines", logs::fuzzing::lines, 3_000, dictionaries::LOGS),
    target("logs_names", logs::fuzzing::names, 10_000, dictionaries::LOGS),
    target("logs_packed", logs::fuzzing::packed, 3_000, &[]),
    target("logs_references", logs::fuzzing::references, 5_000, dictionaries::LOGS),
    target("pdf_document", pdf::fuzzing::document, 60, dictionaries::PDF),
    target("pdf_encryption", pdf::fuzzing::encryption, 3_000, dictionaries::PDF),
    target("pdf_line", pdf::fuzzing::line, 5_000, dictionaries::LINES),
    target("pdf_query", pdf::fuzzing::query, 10_000, dictionaries::PDF),
    target("postgres_messages", postgres::fuzzing::messages, 10_000, dictionaries::POSTGRES),
    target("postgres_references", postgres::fuzzing::references, 10_000, dictionaries::SQLITE),
    target("postgres_sql", postgres::fuzzing::sql, 10_000, dictionaries::SQL),
    target("postgres_values", postgres::fuzzing::values, 5_000, dictionaries::POSTGRES),
    target("sqlite_address", sqlite::fuzzing::address, 10_000, dictionaries::SQLITE),
    target("sqlite_database", sqlite::fuzzing::database, 300, dictionaries::SQL),
    target("sqlite_filter", sqlite::fuzzing::filter, 2_000, dictionaries::SQLITE),
    target("sqlite_key", sqlite::fuzzing::key, 10_000, dictionaries::SQLITE),
    target("sqlite_module", sqlite::fuzzing::module, 10_000, dictionaries::SQL),
    target("sqlite_views", sqlite::fuzzing::views, 10_000, dictionaries::SQL),
    target("tables_dialect", tables::fuzzing::dialect, 500, dictionaries::CELLS),
    target("tables_json_line", tables::fuzzing::json_line, 10_000, dictionaries::JSON),
    target("tables_old_excel", tables::fuzzing::old_excel, 10_000, &[]),
    target("tables_open_document", tables::fuzzing::open_document, 500, dictionaries::SHEETS),
    target("tables_packed", tables::fuzzing::packed, 3_000, &[]),
    target("tables_query", tables::fuzzing::query, 10_000, dictionaries::CELLS),
    target("tables_sheet_xml", tables::fuzzing::sheet_xml, 500, dictionaries::SHEETS),
    target("tables_xml_tags", tables::fuzzing::xml_tags, 1_000, dictionaries::SHEETS),
    target("web_charset", web::fuzzing::charset, 5_000, dictionaries::ENCODINGS),
    target("web_coding", web::fuzzing::coding, 200, &[]),
    target("web_date", web::fuzzing::date, 10_000, dictionaries::DATES),
    target("web_feed", web::fuzzing::feed, 400, dictionaries::MARKUP),
    target("web_fresh", web::fuzzing::fresh, 10_000, dictionaries::HEADERS),
    target("web_json", web::fuzzing::json, 5_000, dictionaries::JSON),
    target("web_page", web::fuzzing::page, 100, dictionaries::MARKUP),
];

/// The most bytes of a mutated input.
const LONGEST: usize = 8192;

const fn target(name: &'static str, run: fn(&[u8]), iterations: usize, dictionary: &'static [&'static str]) -> Target {
    Target { name, run, longest: LONGEST, iterations, dictionary, built: none }
}
