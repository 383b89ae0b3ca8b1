/* What the files of the C++ SDK share. Providers do not need it. */
#pragma once

#include "belljar.hpp"

#include "internal.h"

namespace belljar {

/* The C SDK takes NULL for "none", and copies its arguments. */
inline const char *or_null(const Text &text) { return text ? text->c_str() : nullptr; }

inline Text text_of(const char *string) { return string != nullptr ? Text(string) : std::nullopt; }

/* A text that lives until the call is over. */
inline const char *kept(const std::string &text) { return belljar_format("%s", text.c_str()); }

inline std::unexpected<Error> last(belljar_status status) {
    return fail(static_cast<Kind>(status), status == BELLJAR_NOT_FOUND ? "" : belljar_reason());
}

inline belljar_status status_of(const Error &error) {
    return belljar_fail(static_cast<belljar_status>(error.kind), "%s", error.reason.c_str());
}

/* Annotations as a C struct, alive while an entry is added. */
struct Hints {
    explicit Hints(const std::optional<Annotations> &from) : some(from.has_value()) {
        if (!from) return;
        annotations = {from->for_user, from->for_assistant, {}, or_null(from->last_modified)};
        if (from->priority) annotations.priority = BELLJAR_SOME(*from->priority);
    }
    const belljar_annotations *get() const { return some ? &annotations : nullptr; }

    bool some;
    belljar_annotations annotations = {};
};

/* Further data as C structs. */
inline std::vector<belljar_meta> meta_of(const std::vector<Meta> &from) {
    std::vector<belljar_meta> meta;
    for (const Meta &entry : from) meta.push_back({entry.key.c_str(), entry.json.c_str()});
    return meta;
}

/* Icons and further data as C structs, alive while an entry is added. */
struct Pictures {
    std::vector<belljar_icon> icons;
    std::vector<belljar_meta> meta;

    template <class Entry, class To> Pictures(const Entry &from, To &to) : meta(meta_of(from.meta)) {
        for (const Icon &icon : from.icons) {
            std::string sizes;
            for (const std::string &size : icon.sizes) sizes += (sizes.empty() ? "" : " ") + size;
            icons.push_back({icon.src.c_str(), or_null(icon.mime_type), kept(sizes)});
        }
        to.icons = icons.data();
        to.icons_length = icons.size();
        to.meta = meta.data();
        to.meta_length = meta.size();
    }
};

/* Moves the contents of a reading, and the entries of a page, to the C SDK. */
void add_contents(Reading &from, belljar_reading *to);
void add_page(Page &from, belljar_page *to);

} // namespace belljar
