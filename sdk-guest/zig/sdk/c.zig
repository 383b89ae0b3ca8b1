//! The declarations of belljar.h that belljar.zig and component.zig use.

pub const String = ?[*:0]const u8;

pub const Status = enum(c_uint) { ok, not_found, invalid, denied, unavailable, failed, _ };

pub const Size = extern struct { some: bool = false, value: u64 = 0 };
pub const Priority = extern struct { some: bool = false, value: f64 = 0 };
pub const Info = extern struct { title: String = null, version: String = null, description: String = null };
pub const Annotations = extern struct {
    for_user: bool = false,
    for_assistant: bool = false,
    priority: Priority = .{},
    last_modified: String = null,
};
pub const Icon = extern struct { src: String, mime_type: String, sizes: String };
pub const Meta = extern struct { key: String, json: String };
pub const Resource = extern struct {
    reference: String,
    name: String = null,
    title: String = null,
    description: String = null,
    mime_type: String = null,
    size: Size = .{},
    annotations: ?*const Annotations = null,
    icons: ?[*]const Icon = null,
    icons_length: usize = 0,
    meta: ?[*]const Meta = null,
    meta_length: usize = 0,
};
pub const Template = extern struct {
    pattern: String,
    name: String = null,
    title: String = null,
    description: String = null,
    mime_type: String = null,
    annotations: ?*const Annotations = null,
    icons: ?[*]const Icon = null,
    icons_length: usize = 0,
    meta: ?[*]const Meta = null,
    meta_length: usize = 0,
};
pub const Argument = extern struct { name: [*:0]const u8, value: [*:0]const u8 };
pub const File = extern struct { name: [*:0]const u8, size: u64 };

pub const BlockKind = enum(c_uint) { text, image, audio, link, embedded_text, embedded_blob };
pub const Block = extern struct {
    kind: BlockKind = .text,
    text: String = null,
    data: ?[*]const u8 = null,
    length: usize = 0,
    reference: String = null,
    name: String = null,
    title: String = null,
    description: String = null,
    mime_type: String = null,
    size: Size = .{},
    annotations: ?*const Annotations = null,
};
pub const Answer = extern struct { key: [*:0]const u8, action: c_uint, content: String };
pub const Call = extern struct {
    name: String,
    arguments: ?*const anyopaque,
    can_ask: bool,
    answers: ?[*]const Answer,
    answers_length: usize,
    state: String,
};
pub const Questions = extern struct { questions: ?*anyopaque, length: usize, capacity: usize, state: String };
pub const Result = extern struct {
    content: ?*anyopaque,
    length: usize,
    capacity: usize,
    structured: String,
    is_error: bool,
    meta: ?[*]const Meta,
    meta_length: usize,
    ask: Questions,
};
pub const Tool = extern struct {
    name: String,
    title: String = null,
    description: String,
    input: String,
    output: String = null,
    effect: c_uint = 0,
    idempotent: bool = false,
    closed_world: bool = false,
    page: String = null,
    app_only: bool = false,
    icons: ?[*]const Icon = null,
    icons_length: usize = 0,
    meta: ?[*]const Meta = null,
    meta_length: usize = 0,
    call: ?*const anyopaque = null,
};
pub const Messages = extern struct {
    description: String,
    messages: ?*anyopaque,
    length: usize,
    capacity: usize,
    ask: Questions,
};
pub const PromptArgument = extern struct { name: String, title: String, description: String, required: bool };
pub const Prompt = extern struct {
    name: String,
    title: String = null,
    description: String,
    arguments: ?[*]const PromptArgument = null,
    arguments_length: usize = 0,
    icons: ?[*]const Icon = null,
    icons_length: usize = 0,
    meta: ?[*]const Meta = null,
    meta_length: usize = 0,
    get: ?*const anyopaque = null,
    complete: ?*const anyopaque = null,
};
pub const Skills = extern struct { skills: ?*anyopaque, length: usize, capacity: usize, next_cursor: String };
pub const Tools = opaque {};
pub const Prompts = opaque {};

/// Filled by belljar.c. Declares only the fields that Zig code sets directly.
pub const Page = extern struct {
    resources: ?*anyopaque,
    length: usize,
    next_cursor: String,
    capacity: usize,
    skip: usize,
    limit: usize,
    seen: usize,
    more: bool,
};
pub const Templates = opaque {};
pub const Reading = extern struct { contents: ?*anyopaque, length: usize, capacity: usize, fresh_for_ms: u32 };
pub const Suggestions = extern struct { values: ?*anyopaque, length: usize, capacity: usize, total: Size };

pub const Range = extern struct { unit: c_uint = 0, start: u64 = 0, end: Size = .{}, last: Size = .{} };
pub const Extent = extern struct {
    some: bool = false,
    unit: c_uint = 0,
    start: u64 = 0,
    end: u64 = 0,
    total: Size = .{},
    more: bool = false,
};

pub const HttpHeader = extern struct { name: [*:0]const u8, value: [*:0]const u8 };
pub const HttpRequest = extern struct {
    url: [*:0]const u8,
    method: String = null,
    headers: ?[*]const HttpHeader = null,
    headers_length: usize = 0,
    body: ?[*]const u8 = null,
    body_length: usize = 0,
    timeout_ms: u32 = 0,
    keeps_redirects: bool = false,
};
pub const HttpResponse = extern struct {
    status: c_uint = 0,
    url: String = null,
    headers: ?[*]HttpHeader = null,
    headers_length: usize = 0,
    body: ?*anyopaque = null,
};
pub const HttpUpload = opaque {};

pub extern fn belljar_fail(status: Status, format: [*:0]const u8, ...) Status;
pub extern fn belljar_reason() [*:0]const u8;
pub extern fn belljar_page_add(page: *Page, entry: *const Resource) bool;
pub extern fn belljar_template_add(templates: *Templates, entry: *const Template) void;
pub extern fn belljar_add_string(*Reading, reference: String, mime_type: String, text: [*]const u8, length: usize) void;
pub extern fn belljar_add_blob(*Reading, reference: String, mime_type: String, bytes: [*]const u8, length: usize) void;
pub extern fn belljar_suggest(suggestions: *Suggestions, value: String) void;
pub extern fn belljar_encode(segment: [*:0]const u8) [*:0]const u8;
pub extern fn belljar_decode(segment: [*:0]const u8) ?[*:0]const u8;
pub extern fn belljar_query(reference: [*:0]const u8, name: [*:0]const u8) ?[*:0]const u8;
pub extern fn belljar_is_directory(path: [*:0]const u8) bool;
pub extern fn belljar_list_files(directory: [*:0]const u8, files: *[*]const File, length: *usize) Status;
pub extern fn belljar_read_file(path: [*:0]const u8, bytes: *[*]const u8, length: *usize) Status;
pub extern fn belljar_tool_add(tools: *Tools, tool: *const Tool) void;
pub extern fn belljar_prompt_add(prompts: *Prompts, prompt: *const Prompt) void;
pub extern fn belljar_block_add(result: *Result, block: *const Block) void;
pub extern fn belljar_message_add(messages: *Messages, role: c_uint, block: *const Block) void;
pub extern fn belljar_ask(ask: *Questions, key: String, message: String, form: String) void;
pub extern fn belljar_skill_add(skills: *Skills, root: String) void;
pub extern fn belljar_skill_file(skills: *Skills, reference: String) void;
pub extern fn belljar_find_part(data: [*]const u8, length: usize, is_text: bool, range: ?*const Range, most: u64, begin: *usize, end: *usize, extent: *Extent) Status;
pub extern fn belljar_no_part(contents: usize) Status;
pub extern fn belljar_report(done: f64, total: f64, note: String) void;
pub extern fn belljar_http_send(request: *const HttpRequest, response: *HttpResponse) Status;
pub extern fn belljar_http_begin(request: *const HttpRequest, upload: *?*HttpUpload) Status;
pub extern fn belljar_http_write(upload: *HttpUpload, bytes: [*]const u8, length: usize) void;
pub extern fn belljar_http_end(upload: *HttpUpload, response: *HttpResponse) Status;
pub extern fn belljar_http_read(response: *HttpResponse, bytes: [*]u8, size: usize, length: *usize) Status;
pub extern fn belljar_http_read_all(response: *HttpResponse, most: usize, bytes: *[*]const u8, length: *usize) Status;
pub extern fn belljar_http_close(response: *HttpResponse) void;
