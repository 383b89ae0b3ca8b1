//! Makes a component of src/provider.zig: implements the functions that belljar.h requires with those of belljar.zig.
const std = @import("std");
const belljar = @import("belljar");
const provider = @import("provider");

const c = belljar.c;
const Call = belljar.Call;

/// Prints a message and traps. A stack trace would cost more than everything else.
pub const panic = std.debug.simple_panic;

var call: Call = .init(std.heap.c_allocator);

comptime {
    @export(&describe, .{ .name = "provider_describe" });
    @export(&list, .{ .name = "provider_list" });
    @export(&templates, .{ .name = "provider_templates" });
    @export(&read, .{ .name = "provider_read" });
    if (@hasDecl(provider, "complete")) @export(&complete, .{ .name = "provider_complete" });
    if (@hasDecl(provider, "catalogRevision")) @export(&catalogRevision, .{ .name = "provider_catalog_revision" });
    if (@hasDecl(provider, "resourceRevision")) @export(&resourceRevision, .{ .name = "provider_resource_revision" });
    if (@hasDecl(provider, "readPart")) {
        @export(&readPart, .{ .name = "provider_read_part" });
        @export(&listBelow, .{ .name = "provider_list_below" });
    }
    if (@hasDecl(provider, "tools")) {
        @export(&tools, .{ .name = "provider_tools" });
        @export(&callTool, .{ .name = "belljar_call_tool" });
    }
    if (@hasDecl(provider, "prompts")) {
        @export(&prompts, .{ .name = "provider_prompts" });
        @export(&getPrompt, .{ .name = "belljar_get_prompt" });
        @export(&completePrompt, .{ .name = "belljar_complete_prompt" });
    }
    if (@hasDecl(provider, "listSkills")) @export(&listSkills, .{ .name = "provider_list_skills" });
    if (@hasDecl(provider, "getSkill")) @export(&getSkill, .{ .name = "provider_get_skill" });
}

/// Reports an error by its kind, with the reason of `fail`, or else its name.
fn statusOf(err: anyerror) c.Status {
    const status: c.Status = switch (err) {
        error.NotFound, error.FileNotFound, error.NotDir, error.IsDir => .not_found,
        error.Invalid => .invalid,
        error.Denied, error.AccessDenied, error.PermissionDenied => .denied,
        error.Unavailable => .unavailable,
        else => .failed,
    };
    const reason = if (call.reason.len > 0) call.reason else @errorName(err);
    return c.belljar_fail(status, "%.*s", @as(c_int, @intCast(@min(reason.len, 4096))), reason.ptr);
}

fn string(text: []const u8) ![*:0]const u8 {
    return (try call.allocator().dupeSentinel(u8, text, 0)).ptr;
}

fn optional(text: ?[]const u8) !c.String {
    return if (text) |some| try string(some) else null;
}

fn describe() callconv(.c) c.Info {
    return describing() catch |err| {
        _ = statusOf(err);
        return .{};
    };
}

fn describing() !c.Info {
    const info: belljar.Info = try provider.describe(&call);
    return .{
        .title = try optional(info.title),
        .version = try optional(info.version),
        .description = try optional(info.description),
    };
}

/// The fields that resources and templates share.
fn common(from: anytype, to: anytype) !void {
    to.name = try optional(from.name);
    to.title = try optional(from.title);
    to.description = try optional(from.description);
    to.mime_type = try optional(from.mime_type);
    to.annotations = try hints(from.annotations);
    try pictures(from, to);
}

fn hints(from: ?belljar.Annotations) !?*const c.Annotations {
    const given = from orelse return null;
    const annotations = try call.allocator().create(c.Annotations);
    annotations.* = .{
        .for_user = given.for_user,
        .for_assistant = given.for_assistant,
        .last_modified = try optional(given.last_modified),
    };
    if (given.priority) |priority| annotations.priority = .{ .some = true, .value = priority };
    return annotations;
}

/// The icons and the further data.
fn pictures(from: anytype, to: anytype) !void {
    const icons = try call.allocator().alloc(c.Icon, from.icons.len);
    for (icons, from.icons) |*icon, given| icon.* = .{
        .src = try string(given.src),
        .mime_type = try optional(given.mime_type),
        .sizes = try optional(given.sizes),
    };
    to.icons = icons.ptr;
    to.icons_length = icons.len;
    try further(from, to);
}

fn further(from: anytype, to: anytype) !void {
    const meta = try call.allocator().alloc(c.Meta, from.meta.len);
    for (meta, from.meta) |*entry, given| entry.* = .{ .key = try string(given.key), .json = try string(given.json) };
    to.meta = meta.ptr;
    to.meta_length = meta.len;
}

fn list(cursor: c.String, page: *c.Page) callconv(.c) c.Status {
    listing(cursor, page) catch |err| return statusOf(err);
    return .ok;
}

fn listing(cursor: c.String, page: *c.Page) !void {
    try addPage(try provider.list(&call, if (cursor) |text| std.mem.span(text) else null), page);
}

fn addPage(listed: belljar.Page, page: *c.Page) !void {
    for (listed.resources) |from| {
        var to: c.Resource = .{ .reference = try string(from.reference) };
        try common(from, &to);
        if (from.size) |size| to.size = .{ .some = true, .value = size };
        _ = c.belljar_page_add(page, &to);
    }
    page.next_cursor = try optional(listed.next_cursor);
}

fn templates(to: *c.Templates) callconv(.c) c.Status {
    listTemplates(to) catch |err| return statusOf(err);
    return .ok;
}

fn listTemplates(into: *c.Templates) !void {
    const listed: []const belljar.Template = try provider.templates(&call);
    for (listed) |from| {
        var to: c.Template = .{ .pattern = try string(from.template) };
        try common(from, &to);
        c.belljar_template_add(into, &to);
    }
}

fn read(reference: [*:0]const u8, reading: *c.Reading) callconv(.c) c.Status {
    reads(std.mem.span(reference), reading) catch |err| return statusOf(err);
    return .ok;
}

fn reads(reference: []const u8, into: *c.Reading) !void {
    const reading: belljar.Reading = try provider.read(&call, reference);
    try addContents(reading.contents, into);
    into.fresh_for_ms = reading.fresh_for_ms;
}

fn addContents(contents: []const belljar.Contents, into: *c.Reading) !void {
    for (contents) |from| {
        const name = try string(from.reference);
        const mime_type = try optional(from.mime_type);
        switch (from.body) {
            .text => |text| c.belljar_add_string(into, name, mime_type, text.ptr, text.len),
            .blob => |bytes| c.belljar_add_blob(into, name, mime_type, bytes.ptr, bytes.len),
        }
    }
}

fn readPart(reference: [*:0]const u8, range: ?*const c.Range, most: u64, reading: *c.Reading, extent: *c.Extent) callconv(.c) c.Status {
    readsPart(std.mem.span(reference), range, most, reading, extent) catch |err| return statusOf(err);
    return .ok;
}

fn readsPart(reference: []const u8, given: ?*const c.Range, most: u64, into: *c.Reading, extent: *c.Extent) !void {
    const range: ?belljar.Range = if (given) |asked| .{
        .unit = @enumFromInt(asked.unit),
        .start = asked.start,
        .end = if (asked.end.some) asked.end.value else null,
        .last = if (asked.last.some) asked.last.value else null,
    } else null;
    const reading: belljar.PartialReading = try provider.readPart(&call, reference, range, most);
    try addContents(reading.contents, into);
    into.fresh_for_ms = reading.fresh_for_ms;
    const found = reading.extent orelse return;
    extent.* = .{ .some = true, .unit = @intFromEnum(found.unit), .start = found.start, .end = found.end, .more = found.more };
    if (found.total) |total| extent.total = .{ .some = true, .value = total };
}

fn listBelow(reference: [*:0]const u8, cursor: c.String, page: *c.Page) callconv(.c) c.Status {
    listsBelow(std.mem.span(reference), cursor, page) catch |err| return statusOf(err);
    return .ok;
}

fn listsBelow(reference: []const u8, cursor: c.String, page: *c.Page) !void {
    try addPage(try provider.listBelow(&call, reference, if (cursor) |text| std.mem.span(text) else null), page);
}

fn complete(pattern: [*:0]const u8, argument: *const c.Argument, resolved: [*]const c.Argument, length: usize, into: *c.Suggestions) callconv(.c) c.Status {
    completing(std.mem.span(pattern), argument, resolved[0..length], into) catch |err| return statusOf(err);
    return .ok;
}

fn completing(template: []const u8, argument: *const c.Argument, resolved: []const c.Argument, into: *c.Suggestions) !void {
    try suggest(try provider.complete(&call, template, plain(argument.*), try plainAll(resolved)), into);
}

fn plain(given: c.Argument) belljar.Argument {
    return .{ .name = std.mem.span(given.name), .value = std.mem.span(given.value) };
}

fn catalogRevision(revision: *c.String) callconv(.c) c.Status {
    const found: []const u8 = provider.catalogRevision(&call) catch |err| return statusOf(err);
    revision.* = string(found) catch |err| return statusOf(err);
    return .ok;
}

fn resourceRevision(reference: [*:0]const u8, revision: *c.String) callconv(.c) c.Status {
    call.reason = "";
    const found: []const u8 = provider.resourceRevision(&call, std.mem.span(reference)) catch |err| return statusOf(err);
    revision.* = string(found) catch |err| return statusOf(err);
    return .ok;
}

fn tools(into: *c.Tools) callconv(.c) c.Status {
    for (provider.tools) |tool| addTool(into, tool) catch |err| return statusOf(err);
    return .ok;
}

fn addTool(into: *c.Tools, from: belljar.Tool) !void {
    var to: c.Tool = .{
        .name = try string(from.name),
        .title = try optional(from.title),
        .description = try string(from.description),
        .input = try string(from.input),
        .output = try optional(from.output),
        .effect = @intFromEnum(from.effect),
        .idempotent = from.idempotent,
        .closed_world = from.closed_world,
    };
    if (from.view) |view| {
        to.page = try string(view.page);
        to.app_only = view.app_only;
    }
    try pictures(from, &to);
    c.belljar_tool_add(into, &to);
}

fn callTool(name: [*:0]const u8, arguments: [*:0]const u8, given: *const c.Call, result: *c.Result) callconv(.c) c.Status {
    callsTool(std.mem.span(name), std.mem.span(arguments), given, result) catch |err| return statusOf(err);
    return .ok;
}

fn callsTool(name: []const u8, arguments: []const u8, given: *const c.Call, into: *c.Result) !void {
    try receive(given);
    switch (try belljar.callTool(&provider.tools, &call, name, arguments)) {
        .ask => |questions| try ask(questions, &into.ask),
        .done => |from| {
            for (from.content) |content| c.belljar_block_add(into, &try block(content));
            into.structured = try optional(from.structured);
            into.is_error = from.is_error;
            try further(from, into);
        },
    }
}

/// Takes over what a call knows of its client.
fn receive(from: *const c.Call) !void {
    const answers = try call.allocator().alloc(belljar.Answer, from.answers_length);
    for (answers, 0..) |*to, i| {
        const given = from.answers.?[i];
        to.* = .{
            .key = std.mem.span(given.key),
            .action = @enumFromInt(given.action),
            .content = if (given.content) |text| std.mem.span(text) else null,
        };
    }
    call.can_ask = from.can_ask;
    call.answers = answers;
    call.state = if (from.state) |text| std.mem.span(text) else null;
}

fn ask(from: belljar.Ask, to: *c.Questions) !void {
    for (from.questions) |question|
        c.belljar_ask(to, try string(question.key), try string(question.message), try string(question.form));
    to.state = try optional(from.state);
}

fn block(from: belljar.Block) !c.Block {
    var to: c.Block = .{ .annotations = try hints(from.annotations) };
    switch (from.body) {
        .text => |text| to.text = try string(text),
        .image, .audio => |media, kind| {
            to.kind = if (kind == .image) .image else .audio;
            to.mime_type = try string(media.mime_type);
            to.data = media.data.ptr;
            to.length = media.data.len;
        },
        .link => |link| {
            to.kind = .link;
            to.reference = try string(link.reference);
            to.name = try optional(link.name);
            to.title = try optional(link.title);
            to.description = try optional(link.description);
            to.mime_type = try optional(link.mime_type);
            if (link.size) |size| to.size = .{ .some = true, .value = size };
        },
        .embedded => |contents| {
            to.reference = try string(contents.reference);
            to.mime_type = try optional(contents.mime_type);
            switch (contents.body) {
                .text => |text| {
                    to.kind = .embedded_text;
                    to.text = try string(text);
                },
                .blob => |bytes| {
                    to.kind = .embedded_blob;
                    to.data = bytes.ptr;
                    to.length = bytes.len;
                },
            }
        },
    }
    return to;
}

fn prompts(into: *c.Prompts) callconv(.c) c.Status {
    for (provider.prompts) |prompt| addPrompt(into, prompt) catch |err| return statusOf(err);
    return .ok;
}

fn addPrompt(into: *c.Prompts, from: belljar.Prompt) !void {
    const arguments = try call.allocator().alloc(c.PromptArgument, from.arguments.len);
    for (arguments, from.arguments) |*argument, given| argument.* = .{
        .name = try string(given.name),
        .title = try optional(given.title),
        .description = try optional(given.description),
        .required = given.required,
    };
    var to: c.Prompt = .{
        .name = try string(from.name),
        .title = try optional(from.title),
        .description = try string(from.description),
        .arguments = arguments.ptr,
        .arguments_length = arguments.len,
    };
    try pictures(from, &to);
    c.belljar_prompt_add(into, &to);
}

fn getPrompt(name: [*:0]const u8, arguments: [*]const c.Argument, length: usize, given: *const c.Call, messages: *c.Messages) callconv(.c) c.Status {
    getsPrompt(std.mem.span(name), arguments[0..length], given, messages) catch |err| return statusOf(err);
    return .ok;
}

fn getsPrompt(name: []const u8, arguments: []const c.Argument, given: *const c.Call, into: *c.Messages) !void {
    try receive(given);
    switch (try belljar.getPrompt(&provider.prompts, &call, name, try plainAll(arguments))) {
        .ask => |questions| try ask(questions, &into.ask),
        .done => |from| {
            into.description = try optional(from.description);
            for (from.messages) |message| c.belljar_message_add(into, @intFromEnum(message.role), &try block(message.block));
        },
    }
}

fn plainAll(given: []const c.Argument) ![]const belljar.Argument {
    const all = try call.allocator().alloc(belljar.Argument, given.len);
    for (all, given) |*to, from| to.* = plain(from);
    return all;
}

fn completePrompt(name: [*:0]const u8, argument: *const c.Argument, resolved: [*]const c.Argument, length: usize, into: *c.Suggestions) callconv(.c) c.Status {
    completesPrompt(std.mem.span(name), argument, resolved[0..length], into) catch |err| return statusOf(err);
    return .ok;
}

fn completesPrompt(name: []const u8, argument: *const c.Argument, resolved: []const c.Argument, into: *c.Suggestions) !void {
    try suggest(try belljar.completePrompt(&provider.prompts, &call, name, plain(argument.*), try plainAll(resolved)), into);
}

fn suggest(suggestions: belljar.Suggestions, into: *c.Suggestions) !void {
    for (suggestions.values) |value| c.belljar_suggest(into, try string(value));
    if (suggestions.total) |total| into.total = .{ .some = true, .value = total };
}

fn listSkills(cursor: c.String, skills: *c.Skills) callconv(.c) c.Status {
    listsSkills(cursor, skills) catch |err| return statusOf(err);
    return .ok;
}

fn listsSkills(cursor: c.String, into: *c.Skills) !void {
    const page: belljar.SkillPage = try provider.listSkills(&call, if (cursor) |text| std.mem.span(text) else null);
    for (page.skills) |skill| try addSkill(into, skill);
    into.next_cursor = try optional(page.next_cursor);
}

fn addSkill(into: *c.Skills, skill: belljar.Skill) !void {
    c.belljar_skill_add(into, try string(skill.root));
    for (skill.files) |file| c.belljar_skill_file(into, try string(file));
}

fn getSkill(root: [*:0]const u8, skills: *c.Skills) callconv(.c) c.Status {
    const skill: belljar.Skill = provider.getSkill(&call, std.mem.span(root)) catch |err| return statusOf(err);
    addSkill(skills, skill) catch |err| return statusOf(err);
    return .ok;
}
