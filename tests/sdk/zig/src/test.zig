//! Tests of the SDK itself, in place of those of the template: schemas, arguments, questions, parts.
const std = @import("std");
const belljar = @import("belljar");

const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectError = std.testing.expectError;
const expectEqualStrings = std.testing.expectEqualStrings;

const Inner = struct { yes: bool = false };

const Everything = struct {
    text: []const u8,
    maybe: ?[]const u8 = null,
    count: u8,
    share: f64,
    size: enum { S, L },
    inner: Inner = .{},
    list: []const Inner = &.{},
    any: std.json.Value = .null,

    pub const rules = .{
        .text = .{ .description = "A \"text\"\n", .@"enum" = .{ "a", "b" } },
        .share = .{ .minimum = 0.5, .maximum = 2, .multipleOf = 0.25 },
    };
};

test "a schema follows the struct" {
    const want =
        \\{"type":"object","properties":{"text":{"type":"string","description":"A \"text\"\u000a","enum":["a","b"]},
    ++
        \\"maybe":{"type":"string"},"count":{"type":"integer","minimum":0},"share":{"type":"number","minimum":0.5,"maximum":2,"multipleOf":0.25},
    ++
        \\"size":{"type":"string","enum":["S","L"]},"inner":{"type":"object","properties":{"yes":{"type":"boolean"}}},
    ++
        \\"list":{"type":"array","items":{"type":"object","properties":{"yes":{"type":"boolean"}}}},"any":{}},
    ++
        \\"required":["text","count","share","size"]}
    ;
    try expectEqualStrings(want, belljar.schema(Everything));
    try expectEqualStrings("{\"type\":\"object\",\"properties\":{}}", belljar.schema(struct {}));
}

const Form = struct { size: []const u8 };

fn order(call: *belljar.Call, _: struct {}) !belljar.ToolOutcome {
    const answer = call.answer("size") orelse
        return .{ .ask = .{ .questions = &.{.{ .key = "size", .message = "Which size?", .form = belljar.schema(Form) }}, .state = "1" } };
    const form = try answer.as(Form, call);
    return .text(call, try call.print("{s}{s}", .{ form.size, call.state orelse "" }));
}

fn take(call: *belljar.Call, args: Everything) !belljar.ToolOutcome {
    return .both(call, args.text, args);
}

const tools = [_]belljar.Tool{
    belljar.tool("order", "Orders.", order, .{}),
    belljar.tool("take", "Takes.", take, .{ .output = Everything, .effect = .adds }),
};

test "a tool asks and is answered" {
    var call: belljar.Call = .init(std.testing.allocator);
    defer call.deinit();
    const ask = (try belljar.callTool(&tools, &call, "order", "{}")).ask;
    try expectEqual(1, ask.questions.len);
    try expectEqualStrings("1", ask.state.?);

    call.state = "1";
    call.answers = &.{.{ .key = "size", .content = "{\"size\":\"L\"}" }};
    const done = (try belljar.callTool(&tools, &call, "order", "{}")).done;
    try expectEqualStrings("L1", done.content[0].body.text);
    call.answers = &.{.{ .key = "size", .action = .decline }};
    try expectError(error.Invalid, belljar.callTool(&tools, &call, "order", "{}"));
    try expectEqualStrings("the question \"size\" has no answer", call.reason);
    call.answers = &.{.{ .key = "size", .content = "{\"size\":3}" }};
    try expectError(error.Invalid, belljar.callTool(&tools, &call, "order", "{}"));
}

test "arguments have their types" {
    var call: belljar.Call = .init(std.testing.allocator);
    defer call.deinit();
    const text =
        \\{"text":"\u00e9","count":3,"share":1,"size":"L","list":[{"yes":true}],"any":{"a":1},"unknown":1}
    ;
    const result = (try belljar.callTool(&tools, &call, "take", text)).done;
    try expectEqualStrings("\u{e9}", result.content[0].body.text);
    try expectEqualStrings(
        \\{"text":"é","count":3,"share":1,"size":"L","inner":{"yes":false},"list":[{"yes":true}],"any":{"a":1}}
    , result.structured.?);
    for ([_][]const u8{ "{", "{}", "[]", "{\"text\":\"\",\"count\":300,\"share\":1,\"size\":\"L\"}", "{\"text\":\"\",\"count\":1,\"share\":1,\"size\":\"M\"}" }) |wrong| {
        try expectError(error.Invalid, belljar.callTool(&tools, &call, "take", wrong));
        try expect(std.mem.startsWith(u8, call.reason, "the arguments of \"take\" do not fit: "));
    }
    try call.report(1, 2, "heard by nobody");
}

const Sentence = struct { word: []const u8, other: ?[]const u8 = null };

fn say(call: *belljar.Call, args: Sentence) !belljar.PromptOutcome {
    return .user(call, null, try call.print("{s} {s}", .{ args.word, args.other orelse "-" }));
}

test "a prompt needs its required arguments" {
    var call: belljar.Call = .init(std.testing.allocator);
    defer call.deinit();
    const prompts = [_]belljar.Prompt{belljar.prompt("say", "Says.", say, null)};
    try expect(prompts[0].arguments[0].required and !prompts[0].arguments[1].required);
    const given = [_]belljar.Argument{ .{ .name = "other", .value = "o" }, .{ .name = "word", .value = "w" } };
    try expectEqualStrings("w o", (try belljar.getPrompt(&prompts, &call, "say", &given)).done.messages[0].block.body.text);
    try expectEqualStrings("w -", (try belljar.getPrompt(&prompts, &call, "say", given[1..])).done.messages[0].block.body.text);
    try expectError(error.Invalid, belljar.getPrompt(&prompts, &call, "say", given[0..1]));
    try expectEqualStrings("this prompt needs the argument \"word\"", call.reason);
    try expectError(error.NotFound, belljar.getPrompt(&prompts, &call, "absent", &.{}));
    const none = try belljar.completePrompt(&prompts, &call, "say", given[0], &.{});
    try expectEqual(0, none.values.len);
}

fn cut(call: *belljar.Call, body: belljar.Body, range: ?belljar.Range, most: u64) !belljar.PartialReading {
    return .cut(call, try .one(call, .{ .reference = "a", .body = body }), range, most);
}

fn expectPart(part: belljar.PartialReading, text: []const u8, extent: ?belljar.Extent) !void {
    try expectEqualStrings(text, part.contents[0].body.text);
    try expectEqual(extent, part.extent);
}

test "parts are cut out" {
    var call: belljar.Call = .init(std.testing.allocator);
    defer call.deinit();
    const text: belljar.Body = .{ .text = "1\n2\n3\n4" };
    try expectPart(try cut(&call, text, null, 7), "1\n2\n3\n4", null);
    try expectPart(try cut(&call, text, null, 5), "1\n2\n", .of(.bytes, 0, 4, 7));
    try expectPart(try cut(&call, text, .{ .unit = .lines, .start = 1, .end = 3 }, 9), "2\n3\n", .of(.lines, 1, 3, 4));
    try expectPart(try cut(&call, text, .{ .unit = .lines, .last = 2 }, 9), "3\n4", .of(.lines, 2, 4, 4));
    try expectPart(try cut(&call, .{ .text = "a\u{e9}" }, .{ .start = 2, .end = 3 }, 9), "\u{e9}", .of(.bytes, 1, 3, 3));
    const blob: belljar.Body = .{ .blob = "\x00\x9f\xff" };
    try expectEqualStrings("\x9f", (try cut(&call, blob, .{ .start = 1, .end = 2 }, 9)).contents[0].body.blob);
    try expectError(error.Invalid, cut(&call, blob, .{ .unit = .lines }, 9));
    try expect(std.mem.find(u8, call.reason, "?bytes=") != null);
    try expectEqual(4, (belljar.Range{ .last = 9 }).within(4).end);
    try expectEqual(0, (belljar.Range{ .last = 9 }).within(4).start);
    const two: belljar.Reading = .{ .contents = &.{ .{ .reference = "a", .body = text }, .{ .reference = "b", .body = text } } };
    try expectEqual(2, (try belljar.PartialReading.cut(&call, two, null, 1)).contents.len);
    try expectError(error.Invalid, belljar.PartialReading.cut(&call, two, .{ .unit = .lines }, 9));
}
