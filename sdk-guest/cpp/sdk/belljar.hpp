/* Write belljar resource providers in C++23.
 *
 * A provider is a class that overrides belljar::Provider, and belljar::open, which makes one. Each call runs in a fresh
 * sandbox: open creates the provider, one method is called, and everything is dropped. Grants are available
 * through the standard library: files below their guest path, settings with getenv.
 *
 * There are no exceptions in the component: methods return a Result, and failures are returned as
 * `return belljar::invalid("...");`. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar {

/* The kind of a failure. It decides how the host reports the failure, and whether a retry makes sense. */
enum class Kind {
    not_found = 1, /* the resource does not exist, or this caller must not know of it */
    invalid,       /* the reference, cursor or argument is malformed */
    denied,        /* the provider refuses, or a grant is missing */
    unavailable,   /* a backend is down or busy; the same call may succeed later */
    failed         /* any other failure */
};

/* A failure. People read the reason as the provider's words. */
struct Error {
    Kind kind = Kind::failed;
    std::string reason;

    bool operator==(const Error &) const = default;
};

template <class T> using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Kind kind, std::string reason) { return std::unexpected(Error{kind, std::move(reason)}); }
inline std::unexpected<Error> not_found() { return fail(Kind::not_found, ""); }
inline std::unexpected<Error> invalid(std::string reason) { return fail(Kind::invalid, std::move(reason)); }
inline std::unexpected<Error> denied(std::string reason) { return fail(Kind::denied, std::move(reason)); }
inline std::unexpected<Error> unavailable(std::string reason) { return fail(Kind::unavailable, std::move(reason)); }
inline std::unexpected<Error> failed(std::string reason) { return fail(Kind::failed, std::move(reason)); }

using Text = std::optional<std::string>;

/* The description of a provider, for people. */
struct Info {
    Text title = {}, version = {}, description = {};
};

/* Hints about how a client may use a resource. */
struct Annotations {
    bool for_user = false, for_assistant = false;
    std::optional<double> priority = {}; /* from 0.0 (optional) to 1.0 (effectively required) */
    Text last_modified = {};             /* RFC 3339: 2026-07-28T09:30:00Z */
};

/* A picture: a `data:` or `https:` URI. */
struct Icon {
    std::string src;
    Text mime_type = {};
    std::vector<std::string> sizes = {}; /* "48x48" or "any" */
};

/* Further data: `json` is the JSON text of one value. */
struct Meta {
    std::string key, json;
};

/* One entry of the list. Only `reference` is required; it is also the default name. */
struct Resource {
    std::string reference; /* relative to the mount, percent-encoded: see encode */
    Text name = {}, title = {}, description = {}, mime_type = {};
    std::optional<std::uint64_t> size = {}; /* in bytes */
    std::optional<Annotations> annotations = {};
    std::vector<Icon> icons = {};
    std::vector<Meta> meta = {};
};

/* A family of resources. Only `pattern` is required: an RFC 6570 template such as `cities/{name}`. */
struct Template {
    std::string pattern;
    Text name = {}, title = {}, description = {}, mime_type = {};
    std::optional<Annotations> annotations = {};
    std::vector<Icon> icons = {};
    std::vector<Meta> meta = {};
};

/* The number of entries before a page. Fails for a cursor that is not from Page::of. */
Result<std::size_t> offset_of(const Text &cursor);

/* The failure for a cursor that is not from Page::of. */
std::unexpected<Error> not_ours(const std::string &cursor);

/* One page of the list. */
struct Page {
    std::vector<Resource> resources = {};
    Text next_cursor = {};

    /* The page of at most `size` entries at `cursor`, which is the number of entries before it. `entries` is any range
     * of Resource, a lazy one as well, in the same order in each call; it is consumed only as far as needed. */
    template <class Range> static Result<Page> of(Range &&entries, const Text &cursor, std::size_t size) {
        auto skip = offset_of(cursor);
        if (!skip) return std::unexpected(skip.error());
        Page page;
        std::size_t seen = 0;
        for (auto &&entry : entries) {
            if (seen >= *skip) {
                if (page.resources.size() >= (size > 0 ? size : 1)) {
                    page.next_cursor = std::to_string(seen);
                    return page;
                }
                page.resources.push_back(std::forward<decltype(entry)>(entry));
            }
            seen++;
        }
        if (seen < *skip) return not_ours(*cursor);
        return page;
    }
};

/* One content of a reading: text, or bytes that are not text. */
struct Contents {
    std::string reference;
    Text mime_type = {};
    std::string body;
    bool is_text = true;

    static Contents text(std::string reference, std::string mime_type, std::string body);
    static Contents blob(std::string reference, std::string mime_type, std::string body);
    /* Text when the bytes are UTF-8, a blob otherwise. */
    static Contents bytes(std::string reference, std::string mime_type, std::string body);
};

/* The result of reading a resource: at least one content. One content is a reading: `return Contents::text(...);` */
struct Reading {
    std::vector<Contents> contents = {};
    std::uint32_t fresh_for_ms = 0; /* how long the host may serve this reading from its cache */

    Reading() = default;
    Reading(Contents one) { contents.push_back(std::move(one)); }
};

/* A variable of a template and its value, not percent-encoded and possibly incomplete. */
struct Argument {
    std::string name, value;
};

/* Suggested values of a variable, best first. `total` is the total number, if `values` does not contain all of them. */
struct Suggestions {
    std::vector<std::string> values = {};
    std::optional<std::uint32_t> total = {};
};

/* The base class of your provider. */
class Provider {
  public:
    virtual ~Provider() = default;

    /* Describes the provider. Must work without any grant. */
    virtual Info describe() = 0;
    /* Lists the resources that are worth listing, a page at a time; no cursor is the first page. */
    virtual Result<Page> list(const Text &cursor) = 0;
    /* Lists the templates, all at once. */
    virtual Result<std::vector<Template>> templates() { return std::vector<Template>{}; }
    /* Reads a resource. `reference` is valid and percent-encoded; "" is the mount itself. */
    virtual Result<Reading> read(const std::string &reference) = 0;

    /* For the worlds provider-with-completion and full-provider: suggests values for a variable. */
    virtual Result<Suggestions> complete(const std::string &pattern, const Argument &argument,
                                         const std::vector<Argument> &resolved);
    /* For the worlds provider-with-revisions and full-provider: any short text. It differs from an earlier one if
     * the list, or the contents of the resource, differ. */
    virtual Result<std::string> catalog_revision();
    virtual Result<std::string> resource_revision(const std::string &reference);
};

/* Makes the provider. You write this function. */
std::unique_ptr<Provider> open();

/* Percent-encodes one segment of a path; a `/` becomes `%2F`. */
std::string encode(const std::string &segment);

/* Percent-decodes once. Invalid if the result is not UTF-8. */
Result<std::string> decode(const std::string &segment);

/* The decoded value of `name` in the query of a reference such as `search?q=bell`. */
Text query(const std::string &reference, const std::string &name);

/* True if these bytes are UTF-8. */
bool is_utf8(std::string_view bytes);

/* True if a directory is granted, or is below a granted one. */
bool is_directory(const std::string &path);

/* A regular file of a directory. */
struct File {
    std::string name;
    std::uint64_t size = 0;
};

/* The regular files of a directory, by the bytes of their names. */
Result<std::vector<File>> list_files(const std::string &directory);

/* Reads a regular file whole. Not found if the path is absent or a directory. */
Result<std::string> read_file(const std::string &path);

} // namespace belljar
