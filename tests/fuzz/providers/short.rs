//! Runs each fuzz target on its whole corpus, and then on a fixed number of mutations with a fixed seed.

use belljar_fuzz_providers::TARGETS;

belljar_fuzz_run::short! {
    TARGETS;
    git_alternates, git_commit, git_commit_graph, git_config, git_delta, git_encoding, git_loose_object,
    git_multi_pack_index, git_pack_entry, git_pack_index, git_packed_refs, git_reftable, git_tag, git_tree, images_bmp, images_exif, images_facts, images_original, images_query,
    logs_lines, logs_names, logs_packed, logs_references, pdf_document, pdf_encryption, pdf_line, pdf_query,
    postgres_messages, postgres_references, postgres_sql, postgres_values, sqlite_address, sqlite_database, sqlite_filter, sqlite_key, sqlite_module, sqlite_views, tables_dialect,
    tables_json_line, tables_old_excel, tables_open_document, tables_packed, tables_query, tables_sheet_xml,
    tables_xml_tags, web_charset, web_coding, web_date, web_feed, web_fresh, web_json, web_page,
}
