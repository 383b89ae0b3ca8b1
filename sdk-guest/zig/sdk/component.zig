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
    if (from.annotations) |given| {
        const annotations = try call.allocator().create(c.Annotations);
        annotations.* = .{
            .for_user = given.for_user,
            .for_assistant = given.for_assistant,
            .last_modified = try optional(given.last_modified),
        };
        if (given.priority) |priority| annotations.priority = .{ .some = true, .value = priority };
        to.annotations = annotations;
    }
    const icons = try call.allocator().alloc(c.Icon, from.icons.len);
    for (icons, from.icons) |*icon, given| icon.* = .{
        .src = try string(given.src),
        .mime_type = try optional(given.mime_type),
        .sizes = try optional(given.sizes),
    };
    const meta = try call.allocator().alloc(c.Meta, from.meta.len);
    for (meta, from.meta) |*entry, given| entry.* = .{ .key = try string(given.key), .json = try string(given.json) };
    to.icons = icons.ptr;
    to.icons_length = icons.len;
    to.meta = meta.ptr;
    to.meta_length = meta.len;
}

fn list(cursor: c.String, page: *c.Page) callconv(.c) c.Status {
    listing(cursor, page) catch |err| return statusOf(err);
    return .ok;
}

fn listing(cursor: c.String, page: *c.Page) !void {
    const listed: belljar.Page = try provider.list(&call, if (cursor) |text| std.mem.span(text) else null);
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
    for (reading.contents) |from| {
        const name = try string(from.reference);
        const mime_type = try optional(from.mime_type);
        switch (from.body) {
            .text => |text| c.belljar_add_string(into, name, mime_type, text.ptr, text.len),
            .blob => |bytes| c.belljar_add_blob(into, name, mime_type, bytes.ptr, bytes.len),
        }
    }
    into.fresh_for_ms = reading.fresh_for_ms;
}

fn complete(pattern: [*:0]const u8, argument: *const c.Argument, resolved: [*]const c.Argument, length: usize, into: *c.Suggestions) callconv(.c) c.Status {
    completing(std.mem.span(pattern), argument, resolved[0..length], into) catch |err| return statusOf(err);
    return .ok;
}

fn completing(template: []const u8, argument: *const c.Argument, resolved: []const c.Argument, into: *c.Suggestions) !void {
    const others = try call.allocator().alloc(belljar.Argument, resolved.len);
    for (others, resolved) |*other, given| other.* = plain(given);
    const suggestions: belljar.Suggestions = try provider.complete(&call, template, plain(argument.*), others);
    for (suggestions.values) |value| c.belljar_suggest(into, try string(value));
    if (suggestions.total) |total| into.total = .{ .some = true, .value = total };
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
