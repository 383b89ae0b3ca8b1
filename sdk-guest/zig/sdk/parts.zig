//! Parts: ranges of large resources, and cutting a part out of contents in memory. belljar.zig exports all of this.
const std = @import("std");
const belljar = @import("belljar.zig");
const c = @import("c.zig");

/// What a range counts: bytes, or lines of text; for a table, lines are rows.
pub const Unit = enum(c_uint) { bytes, lines };

/// The part that the caller asks for. Positions are counted from 0.
pub const Range = struct {
    unit: Unit = .bytes,
    start: u64 = 0,
    /// The position after the last one; null: the end of the resource.
    end: ?u64 = null,
    /// So many positions counted back from the end, in place of `start` and `end`.
    last: ?u64 = null,

    /// The requested positions in a resource of `total`. Both are at most `total`.
    pub fn within(range: Range, total: u64) struct { start: u64, end: u64 } {
        if (range.last) |count| return .{ .start = total - @min(count, total), .end = total };
        const start = @min(range.start, total);
        return .{ .start = start, .end = @max(start, @min(range.end orelse total, total)) };
    }

    fn inC(range: Range) c.Range {
        return .{ .unit = @intFromEnum(range.unit), .start = range.start, .end = sizeOf(range.end), .last = sizeOf(range.last) };
    }
};

/// The part that was read.
pub const Extent = struct {
    unit: Unit,
    start: u64,
    /// The position after the last one, where the next part starts.
    end: u64,
    /// The number of positions, if it is known without reading all of the resource.
    total: ?u64 = null,
    /// Positions follow after `end`.
    more: bool,

    /// The positions from `start` to `end` of a resource of `total`.
    pub fn of(unit: Unit, start: u64, end: u64, total: u64) Extent {
        return .{ .unit = unit, .start = start, .end = end, .total = total, .more = end < total };
    }
};

/// The result of reading a part: one content and its extent. Without an extent, the whole resource.
pub const PartialReading = struct {
    contents: []const belljar.Contents,
    /// How long the host may serve this reading from its cache. 0: the host must not cache it.
    fresh_for_ms: u32 = 0,
    extent: ?Extent = null,

    /// A part: one content.
    pub fn part(call: *belljar.Call, contents: belljar.Contents, extent: Extent) error{OutOfMemory}!PartialReading {
        return .{ .contents = try call.allocator().dupe(belljar.Contents, &.{contents}), .extent = extent };
    }

    /// The requested part of a reading that is in memory. For a provider that cannot read a part cheaper than the whole:
    /// `return .cut(call, try read(call, reference), range, most);`
    pub fn cut(call: *belljar.Call, reading: belljar.Reading, range: ?Range, most: u64) belljar.Error!PartialReading {
        const whole: PartialReading = .{ .contents = reading.contents, .fresh_for_ms = reading.fresh_for_ms };
        if (reading.contents.len != 1) {
            if (range == null) return whole;
            return call.last(c.belljar_no_part(reading.contents.len));
        }
        var one = reading.contents[0];
        const is_text = one.body == .text;
        const bytes = switch (one.body) {
            .text, .blob => |bytes| bytes,
        };
        var begin: usize = 0;
        var end: usize = 0;
        var found: c.Extent = .{};
        const asked: ?c.Range = if (range) |given| given.inC() else null;
        const status = c.belljar_find_part(bytes.ptr, bytes.len, is_text, if (asked) |*given| given else null, most, &begin, &end, &found);
        if (status != .ok) return call.last(status);
        if (!found.some) return whole;
        one.body = if (is_text) .{ .text = bytes[begin..end] } else .{ .blob = bytes[begin..end] };
        var result: PartialReading = try .part(call, one, .{
            .unit = @enumFromInt(found.unit),
            .start = found.start,
            .end = found.end,
            .total = if (found.total.some) found.total.value else null,
            .more = found.more,
        });
        result.fresh_for_ms = reading.fresh_for_ms;
        return result;
    }
};

fn sizeOf(from: ?u64) c.Size {
    return if (from) |value| .{ .some = true, .value = value } else .{};
}
