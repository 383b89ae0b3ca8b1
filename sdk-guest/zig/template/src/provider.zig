//! my-provider: its list, and the contents of each reference. Replace it with your own.
const std = @import("std");
const belljar = @import("belljar");

const Call = belljar.Call;

const page_size = 10;

/// The granted directory. A test sets another directory.
pub var data: []const u8 = "/data";

const Month = struct { name: []const u8, days: u8 };

const months = [12]Month{
    .{ .name = "January", .days = 31 }, .{ .name = "February", .days = 28 }, .{ .name = "March", .days = 31 },
    .{ .name = "April", .days = 30 },   .{ .name = "May", .days = 31 },      .{ .name = "June", .days = 30 },
    .{ .name = "July", .days = 31 },    .{ .name = "August", .days = 31 },   .{ .name = "September", .days = 30 },
    .{ .name = "October", .days = 31 }, .{ .name = "November", .days = 30 }, .{ .name = "December", .days = 31 },
};

pub fn describe(_: *Call) !belljar.Info {
    return .{
        .title = "my-provider",
        .version = "0.1.0",
        .description = "A greeting, a picture, the months of the year, and the files of a directory.",
    };
}

pub fn list(call: *Call, cursor: ?[]const u8) !belljar.Page {
    const gpa = call.allocator();
    var entries: std.ArrayList(belljar.Resource) = .empty;
    try entries.append(gpa, .{ .reference = "hello.txt", .mime_type = "text/plain" });
    try entries.append(gpa, .{ .reference = "dot.png", .mime_type = "image/png" });
    for (months, 1..) |month, number| try entries.append(gpa, .{
        .reference = try call.print("months/{d}", .{number}),
        .name = month.name,
        .mime_type = "application/json",
    });
    if (try belljar.isDirectory(call, data)) {
        for (try belljar.listFiles(call, data)) |file| try entries.append(gpa, .{
            .reference = try call.print("files/{s}", .{try belljar.encode(call, file.name)}),
            .name = file.name,
            .mime_type = typeOf(file.name),
            .size = file.size,
        });
    }
    return .of(call, entries.items, cursor, page_size);
}

pub fn templates(_: *Call) ![]const belljar.Template {
    return &.{
        .{
            .template = "months/{month}",
            .name = "month",
            .description = "A month by its number, from 1 to 12: its name and how many days it has",
            .mime_type = "application/json",
        },
        .{ .template = "files/{name}", .name = "file", .description = "A file of the granted directory, by its name; without a name, all files" },
    };
}

pub fn read(call: *Call, reference: []const u8) !belljar.Reading {
    if (std.mem.cutPrefix(u8, reference, "months/")) |number| return readMonth(call, reference, number);
    if (std.mem.eql(u8, reference, "files/")) return readAllFiles(call);
    if (std.mem.cutPrefix(u8, reference, "files/")) |name| return readFile(call, reference, name);
    if (std.mem.eql(u8, reference, "hello.txt"))
        return .one(call, .{ .reference = reference, .mime_type = "text/plain", .body = .{ .text = "Hello from my-provider.\n" } });
    if (std.mem.eql(u8, reference, "dot.png"))
        return .one(call, .{ .reference = reference, .mime_type = "image/png", .body = .{ .blob = @embedFile("dot.png") } });
    return error.NotFound;
}

fn readMonth(call: *Call, reference: []const u8, text: []const u8) !belljar.Reading {
    const number = std.fmt.parseUnsigned(usize, text, 10) catch |err| switch (err) {
        error.Overflow => return error.NotFound,
        error.InvalidCharacter => return call.fail(error.Invalid, "a month is a number from 1 to 12, not \"{s}\"", .{text}),
    };
    if (number < 1 or number > months.len) return error.NotFound;
    const month = months[number - 1];
    const json = try call.print("{{\"month\":{d},\"name\":\"{s}\",\"days\":{d}}}", .{ number, month.name, month.days });
    return .one(call, .{ .reference = reference, .mime_type = "application/json", .body = .{ .text = json } });
}

fn needDirectory(call: *Call) !void {
    if (!try belljar.isDirectory(call, data))
        return call.fail(error.Denied, "this needs the directory \"{s}\", which was not granted", .{data});
}

/// All files of the directory, one content each.
fn readAllFiles(call: *Call) !belljar.Reading {
    try needDirectory(call);
    const files = try belljar.listFiles(call, data);
    if (files.len == 0) return error.NotFound;
    const all = try call.allocator().alloc(belljar.Contents, files.len);
    for (all, files) |*contents, file| {
        const segment = try belljar.encode(call, file.name);
        contents.* = (try readFile(call, try call.print("files/{s}", .{segment}), segment)).contents[0];
    }
    return .{ .contents = all };
}

fn readFile(call: *Call, reference: []const u8, segment: []const u8) !belljar.Reading {
    const name = try belljar.decode(call, segment);
    try needDirectory(call);
    if (std.mem.findScalar(u8, name, '/') != null) return error.NotFound;

    const body: belljar.Body = .of(try belljar.readFile(call, try call.print("{s}/{s}", .{ data, name })));
    const mime_type = if (body == .text) typeOf(name) orelse "text/plain" else "application/octet-stream";
    return .one(call, .{ .reference = reference, .mime_type = mime_type, .body = body });
}

/// The media type for the extension of a name.
fn typeOf(name: []const u8) ?[]const u8 {
    if (std.mem.endsWith(u8, name, ".md")) return "text/markdown";
    if (std.mem.endsWith(u8, name, ".txt")) return "text/plain";
    return null;
}
// belljar:if tools

pub const tools = [_]belljar.Tool{
    belljar.tool("month_days", "How many days a month has.", monthDays, .{ .output = Days, .effect = .reads, .idempotent = true, .closed_world = true }),
};

/// The arguments of month_days.
const MonthDays = struct {
    month: i64,
    year: ?i64 = null,

    pub const rules = .{
        .month = .{ .description = "The number of the month", .minimum = 1, .maximum = 12 },
        .year = .{ .description = "The year; without it, February has 28 days" },
    };
};

const Days = struct { month: []const u8, days: i64 };

fn monthDays(call: *Call, args: MonthDays) !belljar.ToolOutcome {
    if (args.month < 1 or args.month > months.len)
        return call.fail(error.Invalid, "a month is a number from 1 to 12, not \"{d}\"", .{args.month});
    const month = months[@intCast(args.month - 1)];
    const year = args.year orelse
        return .both(call, try call.print("{s} has {d} days.", .{ month.name, month.days }), Days{ .month = month.name, .days = month.days });
    const days = if (args.month == 2 and isLeap(year)) 29 else month.days;
    const text = try call.print("{s} {d} has {d} days.", .{ month.name, year, days });
    return .both(call, text, Days{ .month = month.name, .days = days });
}

fn isLeap(year: i64) bool {
    return @mod(year, 4) == 0 and @mod(year, 100) != 0 or @mod(year, 400) == 0;
}
// belljar:end
// belljar:if prompts

pub const prompts = [_]belljar.Prompt{
    belljar.prompt("plan_month", "A plan for a month.", planMonth, completeMonth),
};

/// The arguments of plan_month.
const PlanMonth = struct {
    month: []const u8,
    goal: []const u8 = "",

    pub const rules = .{ .month = .{ .description = "The name of the month" } };
};

fn planMonth(call: *Call, args: PlanMonth) !belljar.PromptOutcome {
    for (months) |month| if (std.mem.eql(u8, month.name, args.month)) {
        const goal = if (args.goal.len > 0) try call.print(" My goal: {s}.", .{args.goal}) else "";
        const text = try call.print("Make a plan for {s}, which has {d} days.{s}", .{ month.name, month.days, goal });
        return .user(call, try call.print("A plan for {s}", .{month.name}), text);
    };
    return call.fail(error.Invalid, "a month is one of January to December, not \"{s}\"", .{args.month});
}

fn completeMonth(call: *Call, argument: belljar.Argument, _: []const belljar.Argument) !belljar.Suggestions {
    var names: [months.len][]const u8 = undefined;
    for (&names, months) |*name, month| name.* = month.name;
    const fits: []const []const u8 = if (std.mem.eql(u8, argument.name, "month")) &names else &.{};
    return .startingWith(call, argument.value, fits);
}
// belljar:end
