/* Implements belljar.hpp with the C SDK beside it. This file defines the functions that belljar.h requires; they call
 * the provider that belljar::open creates. */
#include "internal.hpp"

#include <utility>

namespace belljar {
namespace {

/* Annotations, icons and further data as C structs, alive while an entry is added. */
struct Extras : Pictures {
    Hints hints;

    template <class Entry, class To> Extras(const Entry &from, To &to) : Pictures(from, to), hints(from.annotations) {
        to.annotations = hints.get();
        to.name = or_null(from.name);
        to.title = or_null(from.title);
        to.description = or_null(from.description);
        to.mime_type = or_null(from.mime_type);
    }
};

} // namespace

void add_contents(Reading &reading, belljar_reading *to) {
    for (Contents &from : reading.contents) {
        if (from.is_text)
            belljar_add_string(to, from.reference.c_str(), or_null(from.mime_type), from.body.data(), from.body.size());
        else
            belljar_add_blob(to, from.reference.c_str(), or_null(from.mime_type), from.body.data(), from.body.size());
        std::string().swap(from.body);
    }
    to->fresh_for_ms = reading.fresh_for_ms;
}

void add_page(Page &page, belljar_page *into) {
    for (Resource &from : page.resources) {
        belljar_resource to = {};
        Extras extras(from, to);
        to.reference = from.reference.c_str();
        if (from.size) to.size = BELLJAR_SOME(*from.size);
        belljar_page_add(into, &to);
        from = {}; /* freed after the copy, so that a long page is in memory only once */
    }
    if (page.next_cursor) into->next_cursor = belljar_format("%s", page.next_cursor->c_str());
}

Result<std::size_t> offset_of(const Text &cursor) {
    belljar_page page = {};
    belljar_status status = belljar_page_start(&page, or_null(cursor), 1);
    if (status != BELLJAR_OK) return last(status);
    return page.skip;
}

std::unexpected<Error> not_ours(const std::string &cursor) {
    return invalid("the cursor \"" + cursor + "\" is not one of this provider's");
}

Contents Contents::text(std::string reference, std::string mime_type, std::string body) {
    return {std::move(reference), std::move(mime_type), std::move(body), true};
}

Contents Contents::blob(std::string reference, std::string mime_type, std::string body) {
    return {std::move(reference), std::move(mime_type), std::move(body), false};
}

Contents Contents::bytes(std::string reference, std::string mime_type, std::string body) {
    bool is_text = is_utf8(body);
    return {std::move(reference), std::move(mime_type), std::move(body), is_text};
}

Result<Suggestions> Provider::complete(const std::string &, const Argument &, const std::vector<Argument> &) {
    return Suggestions{};
}

Result<std::string> Provider::catalog_revision() { return failed("catalog_revision is not written"); }

Result<std::string> Provider::resource_revision(const std::string &) {
    return failed("resource_revision is not written");
}

std::string encode(const std::string &segment) { return belljar_encode(segment.c_str()); }

Result<std::string> decode(const std::string &segment) {
    const char *decoded = belljar_decode(segment.c_str());
    if (decoded == nullptr) return last(BELLJAR_INVALID);
    return decoded;
}

Text query(const std::string &reference, const std::string &name) {
    return text_of(belljar_query(reference.c_str(), name.c_str()));
}

bool is_utf8(std::string_view bytes) { return belljar_is_utf8(bytes.data(), bytes.size()); }

bool is_directory(const std::string &path) { return belljar_is_directory(path.c_str()); }

Result<std::vector<File>> list_files(const std::string &directory) {
    belljar_file *files = nullptr;
    std::size_t length = 0;
    belljar_status status = belljar_list_files(directory.c_str(), &files, &length);
    if (status != BELLJAR_OK) return last(status);
    std::vector<File> found;
    for (std::size_t i = 0; i < length; i++) found.push_back({files[i].name, files[i].size});
    return found;
}

Result<std::string> read_file(const std::string &path) {
    char *bytes = nullptr;
    std::size_t length = 0;
    belljar_status status = belljar_read_file(path.c_str(), &bytes, &length);
    if (status != BELLJAR_OK) return last(status);
    return std::string(bytes, length);
}

} // namespace belljar

/* ---- The functions that belljar.h requires --------------------------------------------------------------------- */

using namespace belljar;

extern "C" {

belljar_info provider_describe(void) {
    /* Static, because the pointers are used after the return. */
    static Info info;
    info = belljar::open()->describe();
    return {or_null(info.title), or_null(info.version), or_null(info.description)};
}

belljar_status provider_list(const char *cursor, belljar_page *page) {
    auto listed = belljar::open()->list(text_of(cursor));
    if (!listed) return status_of(listed.error());
    add_page(*listed, page);
    return BELLJAR_OK;
}

belljar_status provider_templates(belljar_templates *templates) {
    auto listed = belljar::open()->templates();
    if (!listed) return status_of(listed.error());
    for (const Template &from : *listed) {
        belljar_template to = {};
        Extras extras(from, to);
        to.pattern = from.pattern.c_str();
        belljar_template_add(templates, &to);
    }
    return BELLJAR_OK;
}

belljar_status provider_read(const char *reference, belljar_reading *reading) {
    auto read = belljar::open()->read(reference);
    if (!read) return status_of(read.error());
    add_contents(*read, reading);
    return BELLJAR_OK;
}

belljar_status provider_complete(const char *pattern, const belljar_argument *argument,
                                 const belljar_argument *resolved, size_t resolved_length,
                                 belljar_suggestions *suggestions) {
    std::vector<Argument> others;
    for (std::size_t i = 0; i < resolved_length; i++) others.push_back({resolved[i].name, resolved[i].value});
    auto suggested = belljar::open()->complete(pattern, {argument->name, argument->value}, others);
    if (!suggested) return status_of(suggested.error());
    for (const std::string &value : suggested->values) belljar_suggest(suggestions, value.c_str());
    if (suggested->total) suggestions->total = BELLJAR_SOME(*suggested->total);
    return BELLJAR_OK;
}

belljar_status provider_catalog_revision(const char **revision) {
    auto found = belljar::open()->catalog_revision();
    if (!found) return status_of(found.error());
    *revision = belljar_format("%s", found->c_str());
    return BELLJAR_OK;
}

belljar_status provider_resource_revision(const char *reference, const char **revision) {
    auto found = belljar::open()->resource_revision(reference);
    if (!found) return status_of(found.error());
    *revision = belljar_format("%s", found->c_str());
    return BELLJAR_OK;
}
}
