//! The JSON Schema of a struct, made while the program is compiled.
const std = @import("std");

/// The JSON Schema of a struct.
///
/// A field with a default value is optional; `?T` needs `= null`. A declaration `rules` adds to the fields what their types do
/// not say, by the words of JSON Schema:
///
///     const MonthDays = struct {
///         month: i64,
///         year: ?i64 = null,
///         pub const rules = .{ .month = .{ .description = "Its number", .minimum = 1, .maximum = 12 } };
///     };
pub fn schema(comptime T: type) []const u8 {
    return comptime text: {
        @setEvalBranchQuota(100_000);
        if (@typeInfo(T) != .@"struct") @compileError("the arguments and the result of a tool are structs, not " ++ @typeName(T));
        break :text object(T);
    };
}

fn object(comptime T: type) []const u8 {
    const info = @typeInfo(T).@"struct";
    var properties: []const u8 = "";
    var required: []const u8 = "";
    for (info.field_names, info.field_types, info.field_attrs) |name, Field, attrs| {
        const more = if (@hasDecl(T, "rules") and @hasField(@TypeOf(T.rules), name)) @field(T.rules, name) else .{};
        properties = properties ++ comma(properties) ++ quoted(name) ++ ":{" ++ rulesOf(Field, more) ++ "}";
        if (attrs.default_value_ptr == null) required = required ++ comma(required) ++ quoted(name);
    }
    if (@hasDecl(T, "rules")) for (@typeInfo(@TypeOf(T.rules)).@"struct".field_names) |name| {
        if (!@hasField(T, name)) @compileError("rules name \"" ++ name ++ "\", which is no field of " ++ @typeName(T));
    };
    const list = if (required.len > 0) ",\"required\":[" ++ required ++ "]" else "";
    return "{\"type\":\"object\",\"properties\":{" ++ properties ++ "}" ++ list ++ "}";
}

/// The schema of a type and the further rules, without its braces. A rule replaces that of the type.
fn rulesOf(comptime T: type, comptime more: anytype) []const u8 {
    const unsigned = isUnsigned(T) and !@hasField(@TypeOf(more), "minimum");
    var text: []const u8 = typeOf(T) ++ (if (unsigned) ",\"minimum\":0" else "");
    for (@typeInfo(@TypeOf(more)).@"struct".field_names) |rule|
        text = text ++ comma(text) ++ quoted(rule) ++ ":" ++ literal(@field(more, rule));
    return text;
}

fn isUnsigned(comptime T: type) bool {
    return switch (@typeInfo(T)) {
        .optional => |optional| isUnsigned(optional.child),
        .int => |int| int.signedness == .unsigned,
        else => false,
    };
}

fn typeOf(comptime T: type) []const u8 {
    if (T == std.json.Value) return "";
    switch (@typeInfo(T)) {
        .bool => return "\"type\":\"boolean\"",
        .int => return "\"type\":\"integer\"",
        .float => return "\"type\":\"number\"",
        .optional => |optional| return typeOf(optional.child),
        .@"struct" => {
            const text = object(T);
            return text[1 .. text.len - 1];
        },
        .@"enum" => |choices| {
            var list: []const u8 = "";
            for (choices.field_names) |name| list = list ++ comma(list) ++ quoted(name);
            return "\"type\":\"string\",\"enum\":[" ++ list ++ "]";
        },
        .pointer => |pointer| if (pointer.size == .slice) {
            if (pointer.child == u8) return "\"type\":\"string\"";
            return "\"type\":\"array\",\"items\":{" ++ rulesOf(pointer.child, .{}) ++ "}";
        },
        else => {},
    }
    @compileError("a value of the type " ++ @typeName(T) ++ " is not JSON");
}

/// The JSON text of a value that is known while the program is compiled.
fn literal(comptime value: anytype) []const u8 {
    return switch (@typeInfo(@TypeOf(value))) {
        .bool => if (value) "true" else "false",
        .comptime_int, .int, .comptime_float, .float => std.fmt.comptimePrint("{d}", .{value}),
        .@"struct" => |info| {
            if (!info.is_tuple) @compileError("a rule is a text, a number, a truth, or a list of them");
            var list: []const u8 = "";
            for (value) |item| list = list ++ comma(list) ++ literal(item);
            return "[" ++ list ++ "]";
        },
        else => quoted(value),
    };
}

fn comma(comptime before: []const u8) []const u8 {
    return if (before.len > 0) "," else "";
}

fn quoted(comptime text: []const u8) []const u8 {
    var inner: []const u8 = "";
    for (text) |character| inner = inner ++ switch (character) {
        '"' => "\\\"",
        '\\' => "\\\\",
        0...0x1f => std.fmt.comptimePrint("\\u{x:0>4}", .{character}),
        else => &[_]u8{character},
    };
    return "\"" ++ inner ++ "\"";
}
