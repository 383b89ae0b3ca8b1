//! Requests over HTTP, through wasi:http. For the interface http: name it in INTERFACES of the Makefile.
//!
//!     var response = try belljar.http.get(call, "https://api.example/tides");
//!     const body = try response.readAll(1 << 20);
//!
//! A status is an answer, never an error. Without a grant, the error is `error.Denied`: the host adds the command that grants
//! the request. If the server cannot be reached or takes too long, it is `error.Unavailable`.
const std = @import("std");
const belljar = @import("belljar.zig");
const c = @import("c.zig");

const Call = belljar.Call;
const Error = belljar.Error;

pub const Header = struct { name: []const u8, value: []const u8 };

/// A request. Only `url` is required.
pub const Request = struct {
    url: []const u8,
    /// In capitals; by default GET, or POST with a body.
    method: ?[]const u8 = null,
    headers: []const Header = &.{},
    body: []const u8 = "",
    /// The longest wait for the connection, for the answer to begin, and between pieces of its body. 0: the time limit of the
    /// call ends the wait.
    timeout_ms: u32 = 0,
    /// A redirect is the answer. Otherwise GET and HEAD follow up to five of them.
    keeps_redirects: bool = false,

    fn raw(request: Request, call: *Call) Error!c.HttpRequest {
        const headers = try call.allocator().alloc(c.HttpHeader, request.headers.len);
        for (request.headers, headers) |from, *to| to.* = .{
            .name = try call.sentinel(from.name),
            .value = try call.sentinel(from.value),
        };
        return .{
            .url = try call.sentinel(request.url),
            .method = if (request.method) |method| try call.sentinel(method) else null,
            .headers = headers.ptr,
            .headers_length = headers.len,
            .body = request.body.ptr,
            .body_length = request.body.len,
            .timeout_ms = request.timeout_ms,
            .keeps_redirects = request.keeps_redirects,
        };
    }
};

/// An answer. Its body is read in pieces, or whole.
pub const Response = struct {
    call: *Call,
    raw: c.HttpResponse,
    status: u32,
    /// After all redirects.
    url: []const u8,
    headers: []const Header,

    fn of(call: *Call, raw: c.HttpResponse) Error!Response {
        const headers = try call.allocator().alloc(Header, raw.headers_length);
        for (headers, 0..) |*to, at| to.* = .{
            .name = std.mem.span(raw.headers.?[at].name),
            .value = std.mem.span(raw.headers.?[at].value),
        };
        const url = if (raw.url) |url| std.mem.span(url) else "";
        return .{ .call = call, .raw = raw, .status = raw.status, .url = url, .headers = headers };
    }

    /// The value of the first header of this name, in any case.
    pub fn header(response: *const Response, name: []const u8) ?[]const u8 {
        for (response.headers) |one| if (std.ascii.eqlIgnoreCase(one.name, name)) return one.value;
        return null;
    }

    /// Reads the next piece of the body: at least one byte, or none at its end.
    pub fn read(response: *Response, bytes: []u8) Error!usize {
        var length: usize = 0;
        const status = c.belljar_http_read(&response.raw, bytes.ptr, bytes.len, &length);
        return if (status == .ok) length else response.call.last(status);
    }

    /// The rest of the body, but at most `most` bytes.
    pub fn readAll(response: *Response, most: usize) Error![]const u8 {
        var bytes: [*]const u8 = undefined;
        var length: usize = 0;
        const status = c.belljar_http_read_all(&response.raw, most, &bytes, &length);
        return if (status == .ok) bytes[0..length] else response.call.last(status);
    }

    /// Drops the rest of the body. The end of the call does so, too.
    pub fn close(response: *Response) void {
        c.belljar_http_close(&response.raw);
    }
};

/// A request whose body is written in pieces. It follows no redirects.
pub const Upload = struct {
    call: *Call,
    raw: *c.HttpUpload,

    /// Writes a piece. If the server takes no more, its answer says why.
    pub fn write(upload: Upload, bytes: []const u8) void {
        c.belljar_http_write(upload.raw, bytes.ptr, bytes.len);
    }

    /// Ends the body, and waits until the answer begins.
    pub fn finish(upload: Upload) Error!Response {
        var raw: c.HttpResponse = .{};
        const status = c.belljar_http_end(upload.raw, &raw);
        return if (status == .ok) .of(upload.call, raw) else upload.call.last(status);
    }
};

/// Sends a GET request without further headers.
pub fn get(call: *Call, url: []const u8) Error!Response {
    return send(call, .{ .url = url });
}

/// Sends a request, and waits until the answer begins.
pub fn send(call: *Call, request: Request) Error!Response {
    var raw: c.HttpResponse = .{};
    const status = c.belljar_http_send(&try request.raw(call), &raw);
    return if (status == .ok) .of(call, raw) else call.last(status);
}

/// Begins a request whose body is written in pieces, after `body` of the request.
pub fn begin(call: *Call, request: Request) Error!Upload {
    var raw: ?*c.HttpUpload = null;
    const status = c.belljar_http_begin(&try request.raw(call), &raw);
    if (status != .ok) return call.last(status);
    return .{ .call = call, .raw = raw orelse return error.Failed };
}
