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
        .{ "files/", "text/markdown", "# Notes\n" },
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
// belljar:if tools

test "counts the days of a month" {
    var call = begin();
    defer call.deinit();
    for ([_][3][]const u8{
        .{ "{\"month\":2,\"year\":2024}", "February 2024 has 29 days.", "{\"month\":\"February\",\"days\":29}" },
        .{ "{\"month\":2,\"year\":1900}", "February 1900 has 28 days.", "{\"month\":\"February\",\"days\":28}" },
        .{ "{\"month\":2}", "February has 28 days.", "{\"month\":\"February\",\"days\":28}" },
        .{ "{\"month\":12,\"year\":2024}", "December 2024 has 31 days.", "{\"month\":\"December\",\"days\":31}" },
    }) |want| {
        const result = (try belljar.callTool(&provider.tools, &call, "month_days", want[0])).done;
        try expectEqualStrings(want[1], result.content[0].body.text);
        try expectEqualStrings(want[2], result.structured.?);
    }
    try expectError(error.Invalid, belljar.callTool(&provider.tools, &call, "month_days", "{\"month\":13}"));
    try expectError(error.NotFound, belljar.callTool(&provider.tools, &call, "absent", "{}"));
}

test "describes its tools" {
    const tool = provider.tools[0];
    try expect(tool.effect == .reads and tool.idempotent and tool.closed_world);
    const input = "{\"type\":\"object\",\"properties\":{\"month\":{\"type\":\"integer\"," ++
        "\"description\":\"The number of the month\",\"minimum\":1,\"maximum\":12}," ++
        "\"year\":{\"type\":\"integer\",\"description\":\"The year; without it, February has 28 days\"}}," ++
        "\"required\":[\"month\"]}";
    try expectEqualStrings(input, tool.input);
}
// belljar:end
// belljar:if prompts

test "plans a month" {
    var call = begin();
    defer call.deinit();
    const february: belljar.Argument = .{ .name = "month", .value = "February" };
    const goal: belljar.Argument = .{ .name = "goal", .value = "rest" };
    const plan = (try belljar.getPrompt(&provider.prompts, &call, "plan_month", &.{ february, goal })).done;
    try expectEqualStrings("A plan for February", plan.description.?);
    try expectEqual(1, plan.messages.len);
    try expectEqual(.user, plan.messages[0].role);
    try expectEqualStrings("Make a plan for February, which has 28 days. My goal: rest.", plan.messages[0].block.body.text);
    const short = (try belljar.getPrompt(&provider.prompts, &call, "plan_month", &.{february})).done;
    try expectEqualStrings("Make a plan for February, which has 28 days.", short.messages[0].block.body.text);

    try expectError(error.Invalid, belljar.getPrompt(&provider.prompts, &call, "plan_month", &.{.{ .name = "month", .value = "X" }}));
    try expectEqualStrings("a month is one of January to December, not \"X\"", call.reason);
}

test "suggests months" {
    var call = begin();
    defer call.deinit();
    const found = try belljar.completePrompt(&provider.prompts, &call, "plan_month", .{ .name = "month", .value = "Ma" }, &.{});
    try expectEqual(2, found.values.len);
    try expectEqualStrings("March", found.values[0]);
    try expectEqualStrings("May", found.values[1]);
    const none = try belljar.completePrompt(&provider.prompts, &call, "plan_month", .{ .name = "goal", .value = "Ma" }, &.{});
    try expectEqual(0, none.values.len);
}
// belljar:end
