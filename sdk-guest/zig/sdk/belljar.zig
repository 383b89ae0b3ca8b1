//! Write belljar resource providers in Zig.
//!
//! A provider is a file, src/provider.zig, with these public functions. Each may return any error:
//!
//!     fn describe(call: *Call) !Info
//!     fn list(call: *Call, cursor: ?[]const u8) !Page
//!     fn templates(call: *Call) ![]const Template
//!     fn read(call: *Call, reference: []const u8) !Reading
//!
//! The optional interfaces, which the Makefile names, need these declarations, too:
//!
//!     fn complete(call: *Call, template: []const u8, argument: Argument, resolved: []const Argument) !Suggestions
//!     fn catalogRevision(call: *Call) ![]const u8
//!     fn resourceRevision(call: *Call, reference: []const u8) ![]const u8
//!     fn readPart(call: *Call, reference: []const u8, range: ?Range, most: u64) !PartialReading
//!     fn listBelow(call: *Call, reference: []const u8, cursor: ?[]const u8) !Page
//!     const tools = [_]Tool{tool(...)};
//!     const prompts = [_]Prompt{prompt(...)};
//!     fn listSkills(call: *Call, cursor: ?[]const u8) !SkillPage
//!     fn getSkill(call: *Call, root: []const u8) !Skill
//!
//! Each call runs in a fresh sandbox: the next call sees nothing that this one leaves in memory. The host reports
//! `error.NotFound`, `error.Invalid`, `error.Denied` and `error.Unavailable` as such, and any other error as failed.
//! `call.fail` adds the reason that people read.
const std = @import("std");
const Allocator = std.mem.Allocator;

pub const c = @import("c.zig");

const calls = @import("calls.zig");
pub const tool = calls.tool;
pub const callTool = calls.callTool;
pub const prompt = calls.prompt;
pub const getPrompt = calls.getPrompt;
pub const completePrompt = calls.completePrompt;
pub const Tool = calls.Tool;
pub const ToolOptions = calls.ToolOptions;
pub const Effect = calls.Effect;
pub const View = calls.View;
pub const Result = calls.Result;
pub const ToolOutcome = calls.ToolOutcome;
pub const Prompt = calls.Prompt;
pub const PromptArgument = calls.PromptArgument;
pub const Role = calls.Role;
pub const Message = calls.Message;
pub const Messages = calls.Messages;
pub const PromptOutcome = calls.PromptOutcome;
pub const Block = calls.Block;
pub const Media = calls.Media;
pub const Link = calls.Link;
pub const Ask = calls.Ask;
pub const Question = calls.Question;
pub const Answer = calls.Answer;
pub const Skill = calls.Skill;
pub const SkillPage = calls.SkillPage;

const parts = @import("parts.zig");
pub const Unit = parts.Unit;
pub const Range = parts.Range;
pub const Extent = parts.Extent;
pub const PartialReading = parts.PartialReading;
/// Requests over HTTP. For the interface http.
pub const http = @import("http.zig");
/// The JSON Schema of a struct.
pub const schema = @import("schema.zig").schema;

/// The errors that the host knows. Functions of a provider may return others, too.
pub const Error = error{
    /// The resource does not exist, or this caller must not know of it.
    NotFound,
    /// The reference, cursor or argument is malformed.
    Invalid,
    /// The provider refuses, or a grant is missing.
    Denied,
    /// A backend is down or busy; the same call may succeed later.
    Unavailable,
    /// Any other failure.
    Failed,
    OutOfMemory,
};

/// One call: its memory, the reason of its failure, and what it knows of its client.
pub const Call = struct {
    arena: std.heap.ArenaAllocator,
    reason: []const u8 = "",
    /// The client can ask a person. For tools and prompts only, as are the next two.
    can_ask: bool = false,
    /// The answers to questions of an earlier call.
    answers: []const Answer = &.{},
    /// The state of that call.
    state: ?[]const u8 = null,

    pub fn init(gpa: Allocator) Call {
        return .{ .arena = .init(gpa) };
    }

    pub fn deinit(call: *Call) void {
        call.arena.deinit();
    }

    /// Memory that lives until the call is over. Nothing in it has to be freed.
    pub fn allocator(call: *Call) Allocator {
        return call.arena.allocator();
    }

    /// Text that lives until the call is over.
    pub fn print(call: *Call, comptime format: []const u8, args: anytype) error{OutOfMemory}![]const u8 {
        return std.fmt.allocPrint(call.allocator(), format, args);
    }

    /// `return call.fail(error.Invalid, "no such zone: {s}", .{zone});`
    pub fn fail(call: *Call, err: Error, comptime format: []const u8, args: anytype) Error {
        call.reason = try call.print(format, args);
        return err;
    }

    /// The answer to a question, or null if it was not asked yet.
    pub fn answer(call: *const Call, key: []const u8) ?Answer {
        for (call.answers) |given| if (std.mem.eql(u8, given.key, key)) return given;
        return null;
    }

    /// The JSON text of a value, without members that are null.
    pub fn json(call: *Call, value: anytype) error{OutOfMemory}![]const u8 {
        return std.json.Stringify.valueAlloc(call.allocator(), value, .{ .emit_null_optional_fields = false });
    }

    /// Tells the caller that `done` of `total` is done, in any unit. `done` must grow; `total` 0 is unknown. Does nothing
    /// without the interface progress, or if the caller does not want to know.
    pub fn report(call: *Call, done: f64, total: f64, note: ?[]const u8) error{OutOfMemory}!void {
        c.belljar_report(done, total, if (note) |text| try call.sentinel(text) else null);
    }

    /// The error of a function of the C SDK, whose reason becomes that of the call.
    pub fn last(call: *Call, status: c.Status) Error {
        call.reason = try call.print("{s}", .{std.mem.span(c.belljar_reason())});
        return switch (status) {
            .not_found => error.NotFound,
            .invalid => error.Invalid,
            .denied => error.Denied,
            .unavailable => error.Unavailable,
            else => error.Failed,
        };
    }

    /// Text followed by a NUL, as C takes it.
    pub fn sentinel(call: *Call, text: []const u8) error{OutOfMemory}![:0]const u8 {
        return call.allocator().dupeSentinel(u8, text, 0);
    }
};

/// The description of a provider, for people.
pub const Info = struct {
    title: ?[]const u8 = null,
    version: ?[]const u8 = null,
    description: ?[]const u8 = null,
};

/// Hints about how a client may use a resource.
pub const Annotations = struct {
    for_user: bool = false,
    for_assistant: bool = false,
    /// From 0.0 (optional) to 1.0 (effectively required).
    priority: ?f64 = null,
    /// RFC 3339: 2026-07-28T09:30:00Z
    last_modified: ?[]const u8 = null,
};

/// A picture: a `data:` or `https:` URI. `sizes` are words such as "48x48 96x96".
pub const Icon = struct { src: []const u8, mime_type: ?[]const u8 = null, sizes: ?[]const u8 = null };

/// Further data: `json` is the JSON text of one value.
pub const Meta = struct { key: []const u8, json: []const u8 };

/// One entry of the list. Without a name, the reference is the name.
pub const Resource = struct {
    /// Relative to the mount and percent-encoded: see `encode`.
    reference: []const u8,
    name: ?[]const u8 = null,
    title: ?[]const u8 = null,
    description: ?[]const u8 = null,
    mime_type: ?[]const u8 = null,
    /// In bytes.
    size: ?u64 = null,
    annotations: ?Annotations = null,
    icons: []const Icon = &.{},
    meta: []const Meta = &.{},
};

/// A family of resources: an RFC 6570 template such as `cities/{name}`.
pub const Template = struct {
    template: []const u8,
    name: ?[]const u8 = null,
    title: ?[]const u8 = null,
    description: ?[]const u8 = null,
    mime_type: ?[]const u8 = null,
    annotations: ?Annotations = null,
    icons: []const Icon = &.{},
    meta: []const Meta = &.{},
};

/// One page of the list.
pub const Page = struct {
    resources: []const Resource,
    next_cursor: ?[]const u8 = null,

    /// The page of at most `size` entries at `cursor`, which is the number of entries before it. The entries must
    /// be in the same order in each call.
    pub fn of(call: *Call, entries: []const Resource, cursor: ?[]const u8, size: usize) Error!Page {
        var skip: usize = 0;
        if (cursor) |text| {
            skip = std.fmt.parseUnsigned(u31, text, 10) catch return foreign(call, text);
            // `Page.of` never returns "020" or "1_0" as a cursor. Any spelling that it does not write is invalid.
            if (!std.mem.eql(u8, try call.print("{d}", .{skip}), text)) return foreign(call, text);
            if (skip > entries.len) return foreign(call, text);
        }
        const end = @min(entries.len, skip + @max(size, 1));
        return .{
            .resources = entries[skip..end],
            .next_cursor = if (end < entries.len) try call.print("{d}", .{end}) else null,
        };
    }

    fn foreign(call: *Call, cursor: []const u8) Error {
        return call.fail(error.Invalid, "the cursor \"{s}\" is not one of this provider's", .{cursor});
    }
};

/// One content of a reading.
pub const Contents = struct {
    /// The requested reference, or one below it.
    reference: []const u8,
    mime_type: ?[]const u8 = null,
    body: Body,
};

pub const Body = union(enum) {
    text: []const u8,
    /// Bytes that are not text.
    blob: []const u8,

    /// Text when the bytes are UTF-8, a blob otherwise.
    pub fn of(bytes: []const u8) Body {
        return if (std.unicode.utf8ValidateSlice(bytes)) .{ .text = bytes } else .{ .blob = bytes };
    }
};

/// The result of reading a resource: at least one content.
pub const Reading = struct {
    contents: []const Contents,
    /// How long the host may serve this reading from its cache. 0: the host must not cache it.
    fresh_for_ms: u32 = 0,

    /// A reading of one content.
    pub fn one(call: *Call, contents: Contents) error{OutOfMemory}!Reading {
        return .{ .contents = try call.allocator().dupe(Contents, &.{contents}) };
    }
};

/// A variable of a template and its value, not percent-encoded and possibly incomplete.
pub const Argument = struct { name: []const u8, value: []const u8 };

/// Suggested values of a variable, best first. `total` is the total number, if `values` does not contain all of them.
pub const Suggestions = struct {
    values: []const []const u8,
    total: ?u32 = null,

    /// The values that start with `text`, whatever the case of its ASCII letters.
    pub fn startingWith(call: *Call, text: []const u8, values: []const []const u8) error{OutOfMemory}!Suggestions {
        var found: std.ArrayList([]const u8) = .empty;
        for (values) |value| if (std.ascii.startsWithIgnoreCase(value, text)) try found.append(call.allocator(), value);
        return .{ .values = found.items };
    }
};

/// Percent-encodes one segment of a path; a `/` becomes `%2F`.
pub fn encode(call: *Call, segment: []const u8) Error![]const u8 {
    return std.mem.span(c.belljar_encode(try call.sentinel(segment)));
}

/// Percent-decodes once. Invalid if the result is not UTF-8.
pub fn decode(call: *Call, segment: []const u8) Error![]const u8 {
    return std.mem.span(c.belljar_decode(try call.sentinel(segment)) orelse return call.last(.invalid));
}

/// The decoded value of `name` in the query of a reference such as `search?q=bell`.
pub fn query(call: *Call, reference: []const u8, name: []const u8) Error!?[]const u8 {
    return std.mem.span(c.belljar_query(try call.sentinel(reference), try call.sentinel(name)) orelse return null);
}

/// True if a directory is granted, or lies in a granted one.
pub fn isDirectory(call: *Call, path: []const u8) Error!bool {
    return c.belljar_is_directory(try call.sentinel(path));
}

/// A regular file of a directory.
pub const File = struct { name: []const u8, size: u64 };

/// The regular files of a directory, by the bytes of their names.
pub fn listFiles(call: *Call, directory: []const u8) Error![]const File {
    var found: [*]const c.File = undefined;
    var length: usize = 0;
    const status = c.belljar_list_files(try call.sentinel(directory), &found, &length);
    if (status != .ok) return call.last(status);
    const files = try call.allocator().alloc(File, length);
    for (files, 0..) |*file, i| file.* = .{ .name = std.mem.span(found[i].name), .size = found[i].size };
    return files;
}

/// Reads a regular file whole. Not found if the path is absent or a directory.
pub fn readFile(call: *Call, path: []const u8) Error![]const u8 {
    var bytes: [*]const u8 = undefined;
    var length: usize = 0;
    const status = c.belljar_read_file(try call.sentinel(path), &bytes, &length);
    return if (status == .ok) bytes[0..length] else call.last(status);
}
