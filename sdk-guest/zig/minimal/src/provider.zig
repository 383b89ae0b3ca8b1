//! my-provider: its list, and the contents of each reference. Replace it with your own.
const std = @import("std");
const belljar = @import("belljar");

const Call = belljar.Call;

pub fn describe(_: *Call) !belljar.Info {
    return .{ .title = "my-provider", .version = "0.1.0", .description = "A greeting." };
}

pub fn list(call: *Call, cursor: ?[]const u8) !belljar.Page {
    return .of(call, &.{.{ .reference = "hello.txt", .mime_type = "text/plain" }}, cursor, 100);
}

pub fn templates(_: *Call) ![]const belljar.Template {
    return &.{};
}

pub fn read(call: *Call, reference: []const u8) !belljar.Reading {
    if (!std.mem.eql(u8, reference, "hello.txt")) return error.NotFound;
    return .one(call, .{ .reference = reference, .mime_type = "text/plain", .body = .{ .text = "Hello from my-provider.\n" } });
}
