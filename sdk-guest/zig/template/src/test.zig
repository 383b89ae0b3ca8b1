//! Unit tests. They call the provider as belljar does, but are built for this machine, without WebAssembly and belljar.
const std = @import("std");
const belljar = @import("belljar");
const provider = @import("provider.zig");

const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectError = std.testing.expectError;
const expectEqualStrings = std.testing.expectEqualStrings;

fn begin() belljar.Call {
    provider.data = "data";
    return .init(std.testing.allocator);
}

test "lists in pages" {
    var call = begin();
    defer call.deinit();
    const first = try provider.list(&call, null);
    try expectEqual(10, first.resources.len);
    try expectEqualStrings("hello.txt", first.resources[0].reference);

    const second = try provider.list(&call, first.next_cursor);
    try expectEqual(5, second.resources.len);
    try expect(second.next_cursor == null);
    try expectEqualStrings("files/notes.md", second.resources[4].reference);
    try expect(second.resources[4].size != null);

    for ([_][]const u8{ "x", "", "-1", "010", "1_0", "999" }) |cursor| {
        try expectError(error.Invalid, provider.list(&call, cursor));
        const reason = try call.print("the cursor \"{s}\" is not one of this provider's", .{cursor});
        try expectEqualStrings(reason, call.reason);
    }
}

test "reads what it lists" {
    var call = begin();
    defer call.deinit();
    for ([_][3][]const u8{
        .{ "hello.txt", "text/plain", "Hello from my-provider.\n" },
        .{ "months/2", "application/json", "{\"month\":2,\"name\":\"February\",\"days\":28}" },
        .{ "files/notes.md", "text/markdown", "# Notes\n" },
    }) |want| {
        const contents = (try provider.read(&call, want[0])).contents[0];
        try expectEqualStrings(want[1], contents.mime_type.?);
        try expect(std.mem.startsWith(u8, contents.body.text, want[2]));
    }
    const dot = (try provider.read(&call, "dot.png")).contents[0];
    try expect(std.mem.startsWith(u8, dot.body.blob, "\x89PNG"));
}

test "failures have reasons" {
    var call = begin();
    defer call.deinit();
    for ([_][]const u8{ "months/13", "files/absent.md", "files/a%2Fb", "" }) |reference|
        try expectError(error.NotFound, provider.read(&call, reference));
    try expectError(error.Invalid, provider.read(&call, "months/x"));
    try expectEqualStrings("a month is a number from 1 to 12, not \"x\"", call.reason);

    provider.data = "/not-granted";
    try expectError(error.Denied, provider.read(&call, "files/notes.md"));
    try expectEqualStrings("this needs the directory \"/not-granted\", which was not granted", call.reason);
}
