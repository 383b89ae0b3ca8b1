//! Tools, prompts and skills: a part of belljar.zig.
const std = @import("std");
const belljar = @import("belljar.zig");
const schema = @import("schema.zig").schema;

const Call = belljar.Call;

/// A picture or a sound: its bytes, not encoded.
pub const Media = struct { mime_type: []const u8, data: []const u8 };

/// A resource of this mount.
pub const Link = struct {
    reference: []const u8,
    name: ?[]const u8 = null,
    title: ?[]const u8 = null,
    description: ?[]const u8 = null,
    mime_type: ?[]const u8 = null,
    size: ?u64 = null,
};

/// One piece of content.
pub const Block = struct {
    body: union(enum) {
        text: []const u8,
        image: Media,
        audio: Media,
        link: Link,
        /// A resource of this mount, with its contents.
        embedded: belljar.Contents,
    },
    annotations: ?belljar.Annotations = null,
};

/// A question for the person in front of the client. It must not ask for secrets.
pub const Question = struct {
    /// Letters, digits, `_` and `-`.
    key: []const u8,
    /// For people.
    message: []const u8,
    /// A JSON Schema: `schema(Form)` for a flat struct.
    form: []const u8,
};

/// Questions, instead of a result: one to eight. The answers come to a new instance, with the same arguments. Do nothing
/// before that cannot be done twice, and look at `call.can_ask`.
pub const Ask = struct {
    questions: []const Question,
    /// What the next call must know. No client can read or change it.
    state: ?[]const u8 = null,
};

/// The answer to a question.
pub const Answer = struct {
    key: []const u8,
    action: enum(u8) { accept, decline, cancel } = .accept,
    /// The filled form: a JSON object, if the action is accept.
    content: ?[]const u8 = null,

    /// The filled form as a struct. Fails as invalid if the person did not fill it in.
    pub fn as(answer: Answer, comptime Form: type, call: *Call) belljar.Error!Form {
        const text = answer.content orelse
            return call.fail(error.Invalid, "the question \"{s}\" has no answer", .{answer.key});
        return parsed(Form, call, text, "the answer");
    }
};

/// What a tool does to the world. A claim: the host compares it with the grants of the mount.
pub const Effect = enum(c_uint) {
    /// It may change or delete something.
    destroys,
    /// It adds something, and changes or deletes nothing.
    adds,
    /// It changes nothing.
    reads,
};

/// A page that shows the results of a tool.
pub const View = struct {
    /// The reference of the page.
    page: []const u8,
    /// Only the page may call the tool.
    app_only: bool = false,
};

/// The result of a tool.
pub const Result = struct {
    /// For the model.
    content: []const Block = &.{},
    /// For programs: a JSON object that fits the output schema.
    structured: ?[]const u8 = null,
    /// The call failed in a way that the model can correct. An error is such a result, too.
    is_error: bool = false,
    meta: []const belljar.Meta = &.{},
};

/// What a tool returns.
pub const ToolOutcome = union(enum) {
    done: Result,
    ask: Ask,

    /// A text for the model.
    pub fn text(call: *Call, says: []const u8) error{OutOfMemory}!ToolOutcome {
        return .{ .done = .{ .content = try call.allocator().dupe(Block, &.{.{ .body = .{ .text = says } }}) } };
    }

    /// A text for the model, and the same as a struct for programs: that of the option `output`.
    pub fn both(call: *Call, says: []const u8, value: anytype) error{OutOfMemory}!ToolOutcome {
        var outcome = try text(call, says);
        outcome.done.structured = try call.json(value);
        return outcome;
    }
};

/// What a tool has besides its function.
pub const ToolOptions = struct {
    title: ?[]const u8 = null,
    /// The struct of the structured result.
    output: type = void,
    effect: Effect = .destroys,
    /// A second call with the same arguments changes nothing more.
    idempotent: bool = false,
    /// It reaches nothing beyond the mount's own data.
    closed_world: bool = false,
    view: ?View = null,
    icons: []const belljar.Icon = &.{},
    meta: []const belljar.Meta = &.{},
};

/// A tool: a function that a model calls. `tool` makes one.
pub const Tool = struct {
    name: []const u8,
    title: ?[]const u8 = null,
    description: []const u8,
    /// The JSON Schema of the arguments, which the host checks.
    input: []const u8,
    /// The JSON Schema of the structured result.
    output: ?[]const u8 = null,
    effect: Effect = .destroys,
    idempotent: bool = false,
    closed_world: bool = false,
    view: ?View = null,
    icons: []const belljar.Icon = &.{},
    meta: []const belljar.Meta = &.{},
    run: *const fn (call: *Call, arguments: []const u8) anyerror!ToolOutcome,
};

/// Makes a tool of a function `fn (call: *Call, arguments: Arguments) !ToolOutcome`. Its name consists of letters, digits, `_`
/// and `-`; the description is for models. The struct of the arguments gives their schema: see `schema`.
pub fn tool(comptime name: []const u8, comptime description: []const u8, comptime function: anytype, comptime options: ToolOptions) Tool {
    const Arguments = ArgumentsOf(function, name);
    return .{
        .name = name,
        .title = options.title,
        .description = description,
        .input = schema(Arguments),
        .output = if (options.output == void) null else schema(options.output),
        .effect = options.effect,
        .idempotent = options.idempotent,
        .closed_world = options.closed_world,
        .view = options.view,
        .icons = options.icons,
        .meta = options.meta,
        .run = struct {
            fn run(call: *Call, text: []const u8) anyerror!ToolOutcome {
                return function(call, try parsed(Arguments, call, text, "the arguments of \"" ++ name ++ "\""));
            }
        }.run,
    };
}

fn ArgumentsOf(comptime function: anytype, comptime name: []const u8) type {
    const types = @typeInfo(@TypeOf(function)).@"fn".param_types;
    if (types.len != 2 or types[0] != *Call or types[1] == null)
        @compileError("the function of \"" ++ name ++ "\" has the parameters (call: *Call, arguments: SomeStruct)");
    return types[1].?;
}

fn parsed(comptime T: type, call: *Call, text: []const u8, comptime what: []const u8) belljar.Error!T {
    return std.json.parseFromSliceLeaky(T, call.allocator(), text, .{ .ignore_unknown_fields = true, .allocate = .alloc_always }) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => call.fail(error.Invalid, what ++ " do not fit: {s}", .{@errorName(err)}),
    };
}

/// Calls a tool by its name, as belljar does. `arguments` is a JSON object.
pub fn callTool(tools: []const Tool, call: *Call, name: []const u8, arguments: []const u8) anyerror!ToolOutcome {
    for (tools) |known| if (std.mem.eql(u8, known.name, name)) return known.run(call, arguments);
    return error.NotFound;
}

pub const Role = enum(c_uint) { user, assistant };

/// One message of a prompt.
pub const Message = struct { role: Role = .user, block: Block };

/// The messages of a prompt, at least one.
pub const Messages = struct {
    /// What these messages are for.
    description: ?[]const u8 = null,
    messages: []const Message,
};

/// What a prompt returns.
pub const PromptOutcome = union(enum) {
    done: Messages,
    ask: Ask,

    /// One text of the person in front of the client.
    pub fn user(call: *Call, description: ?[]const u8, says: []const u8) error{OutOfMemory}!PromptOutcome {
        const messages = try call.allocator().dupe(Message, &.{.{ .block = .{ .body = .{ .text = says } } }});
        return .{ .done = .{ .description = description, .messages = messages } };
    }
};

/// An argument of a prompt. Its values are texts.
pub const PromptArgument = struct {
    name: []const u8,
    title: ?[]const u8 = null,
    description: ?[]const u8 = null,
    required: bool = false,
};

/// A prompt: messages that a person chooses, to begin a conversation. `prompt` makes one.
pub const Prompt = struct {
    name: []const u8,
    title: ?[]const u8 = null,
    description: []const u8,
    arguments: []const PromptArgument = &.{},
    icons: []const belljar.Icon = &.{},
    meta: []const belljar.Meta = &.{},
    get: *const fn (call: *Call, arguments: []const belljar.Argument) anyerror!PromptOutcome,
    /// Suggests values for an argument; `resolved` are the arguments that already have one.
    complete: ?*const fn (call: *Call, argument: belljar.Argument, resolved: []const belljar.Argument) anyerror!belljar.Suggestions = null,
};

/// Makes a prompt of a function `fn (call: *Call, arguments: Arguments) !PromptOutcome`. The description is for people. The
/// fields of the arguments are texts; `rules`, as in `schema`, may give their title and description. `completes` is a function
/// `fn (call: *Call, argument: Argument, resolved: []const Argument) !Suggestions`, or null.
pub fn prompt(comptime name: []const u8, comptime description: []const u8, comptime function: anytype, comptime completes: anytype) Prompt {
    const Arguments = ArgumentsOf(function, name);
    return .{
        .name = name,
        .description = description,
        .arguments = &comptime promptArguments(Arguments),
        .get = struct {
            fn get(call: *Call, given: []const belljar.Argument) anyerror!PromptOutcome {
                return function(call, try filled(Arguments, call, given));
            }
        }.get,
        .complete = if (@TypeOf(completes) == @TypeOf(null)) null else struct {
            fn complete(call: *Call, argument: belljar.Argument, resolved: []const belljar.Argument) anyerror!belljar.Suggestions {
                return completes(call, argument, resolved);
            }
        }.complete,
    };
}

fn promptArguments(comptime T: type) [@typeInfo(T).@"struct".field_names.len]PromptArgument {
    const info = @typeInfo(T).@"struct";
    var list: [info.field_names.len]PromptArgument = undefined;
    for (&list, info.field_names, info.field_types, info.field_attrs) |*to, name, Field, attrs| {
        if (Field != []const u8 and Field != ?[]const u8) @compileError("the argument \"" ++ name ++ "\" of a prompt is a text");
        to.* = .{ .name = name, .required = attrs.default_value_ptr == null };
        if (!@hasDecl(T, "rules") or !@hasField(@TypeOf(T.rules), name)) continue;
        const rules = @field(T.rules, name);
        if (@hasField(@TypeOf(rules), "title")) to.title = rules.title;
        if (@hasField(@TypeOf(rules), "description")) to.description = rules.description;
    }
    return list;
}

fn filled(comptime T: type, call: *Call, given: []const belljar.Argument) !T {
    const info = @typeInfo(T).@"struct";
    var arguments: T = undefined;
    inline for (info.field_names, info.field_types, info.field_attrs) |name, Field, attrs| {
        @field(arguments, name) = for (given) |argument| {
            if (std.mem.eql(u8, argument.name, name)) break argument.value;
        } else attrs.defaultValue(Field) orelse
            return call.fail(error.Invalid, "this prompt needs the argument \"{s}\"", .{name});
    }
    return arguments;
}

/// Makes the messages of a prompt by its name, as belljar does.
pub fn getPrompt(prompts: []const Prompt, call: *Call, name: []const u8, arguments: []const belljar.Argument) anyerror!PromptOutcome {
    for (prompts) |known| if (std.mem.eql(u8, known.name, name)) return known.get(call, arguments);
    return error.NotFound;
}

/// Suggests values for an argument of a prompt, as belljar does.
pub fn completePrompt(prompts: []const Prompt, call: *Call, name: []const u8, argument: belljar.Argument, resolved: []const belljar.Argument) anyerror!belljar.Suggestions {
    for (prompts) |known| if (std.mem.eql(u8, known.name, name)) {
        const complete = known.complete orelse return .{ .values = &.{} };
        return complete(call, argument, resolved);
    };
    return error.NotFound;
}

/// A skill: a directory with a SKILL.md that tells a model how to do something. `read` serves its files.
pub const Skill = struct {
    /// The directory, without a slash at its end. Its last segment is the name in SKILL.md.
    root: []const u8,
    /// The references of all files below it, SKILL.md included.
    files: []const []const u8,
};

/// One page of the list of skills.
pub const SkillPage = struct { skills: []const Skill, next_cursor: ?[]const u8 = null };
