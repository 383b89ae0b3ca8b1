/* Parts: implements that part of belljar.hpp, and of belljar.h, with the C SDK. */
#include "internal.hpp"

#include <utility>

namespace belljar {
namespace {

belljar_size size_of(const std::optional<std::uint64_t> &from) { return {from.has_value(), from.value_or(0)}; }

std::optional<std::uint64_t> number_of(const belljar_size &from) {
    return from.some ? std::optional(from.value) : std::nullopt;
}

belljar_unit unit_of(Unit unit) { return unit == Unit::lines ? BELLJAR_LINES : BELLJAR_BYTES; }

belljar_range range_of(const Range &from) {
    return {unit_of(from.unit), from.start, size_of(from.end), size_of(from.last)};
}

} // namespace

std::pair<std::uint64_t, std::uint64_t> Range::within(std::uint64_t total) const {
    belljar_range range = range_of(*this);
    std::uint64_t from = 0, to = 0;
    belljar_within(&range, total, &from, &to);
    return {from, to};
}

Extent Extent::of(Unit unit, std::uint64_t start, std::uint64_t end, std::uint64_t total) {
    return {unit, start, end, total, end < total};
}

Result<PartialReading> PartialReading::cut(Reading reading, const std::optional<Range> &range, std::uint64_t most) {
    PartialReading cut = std::move(reading);
    if (cut.contents.size() != 1) {
        if (range) return last(belljar_no_part(cut.contents.size()));
        return cut;
    }
    belljar_range asked = range_of(range.value_or(Range()));
    belljar_extent extent = {};
    std::size_t begin = 0, end = 0;
    Contents &one = cut.contents[0];
    belljar_status status = belljar_find_part(one.body.data(), one.body.size(), one.is_text, range ? &asked : nullptr, most,
                                              &begin, &end, &extent);
    if (status != BELLJAR_OK) return last(status);
    one.body.erase(end);
    one.body.erase(0, begin);
    if (extent.some)
        cut.extent = Extent{extent.unit == BELLJAR_LINES ? Unit::lines : Unit::bytes, extent.start, extent.end,
                            number_of(extent.total), extent.more};
    return cut;
}

Result<PartialReading> Provider::read_part(const std::string &reference, const std::optional<Range> &range,
                                           std::uint64_t most) {
    auto whole = read(reference);
    if (!whole) return std::unexpected(whole.error());
    return PartialReading::cut(std::move(*whole), range, most);
}

Result<Page> Provider::list_below(const std::string &, const Text &) { return not_found(); }

} // namespace belljar

using namespace belljar;

extern "C" {

belljar_status provider_read_part(const char *reference, const belljar_range *range, uint64_t most,
                                  belljar_reading *reading, belljar_extent *extent) {
    std::optional<Range> asked;
    if (range != nullptr)
        asked = Range{range->unit == BELLJAR_LINES ? Unit::lines : Unit::bytes, range->start, number_of(range->end),
                      number_of(range->last)};
    auto read = belljar::open()->read_part(reference, asked, most);
    if (!read) return status_of(read.error());
    add_contents(*read, reading);
    if (read->extent)
        *extent = {true,           unit_of(read->extent->unit), read->extent->start, read->extent->end,
                   size_of(read->extent->total), read->extent->more};
    return BELLJAR_OK;
}

belljar_status provider_list_below(const char *reference, const char *cursor, belljar_page *page) {
    auto listed = belljar::open()->list_below(reference, text_of(cursor));
    if (!listed) return status_of(listed.error());
    add_page(*listed, page);
    return BELLJAR_OK;
}
}
