//! Reads from the server that the setting UPSTREAM names. The tests of belljar mount it in all languages.
const std = @import("std");
const belljar = @import("belljar");

const Call = belljar.Call;
const http = belljar.http;

fn exchange(call: *Call, order: []const u8, request: http.Request) !http.Response {
    if (!std.mem.eql(u8, order, "send")) return http.send(call, request);
    const upload = try http.begin(call, request);
    for ([_][]const u8{ "one ", "two ", "three" }) |piece| upload.write(piece);
    return upload.finish();
}

pub fn read(call: *Call, reference: []const u8) !belljar.Reading {
    const slash = std.mem.indexOfScalar(u8, reference, '/') orelse return error.NotFound;
    const order = reference[0..slash];
    const upstream = std.mem.span(std.c.getenv("UPSTREAM") orelse return error.Failed);
    var response = try exchange(call, order, .{
        .url = try call.print("{s}{s}", .{ upstream, reference[slash..] }),
        .headers = &.{.{ .name = "x-own", .value = "mine" }},
        .body = if (std.mem.eql(u8, order, "post")) "one two three" else "",
        .timeout_ms = if (std.mem.eql(u8, order, "soon")) 100 else 0,
    });
    const is_count = std.mem.eql(u8, order, "count");
    var piece: [16384]u8 = undefined;
    var total: usize = 0;
    while (is_count) total += switch (try response.read(&piece)) {
        0 => break,
        else => |length| length,
    };
    const text = if (is_count) try call.print("{d}", .{total}) else try response.readAll(1 << 20);
    const body = try call.print("{d} {s}", .{ response.status, text });
    return .one(call, .{ .reference = reference, .mime_type = "text/plain", .body = .{ .text = body } });
}

pub fn describe(_: *Call) !belljar.Info {
    return .{ .title = "Relay" };
}

pub fn list(_: *Call, _: ?[]const u8) !belljar.Page {
    return .{ .resources = &.{} };
}

pub fn templates(_: *Call) ![]const belljar.Template {
    return &.{};
}
