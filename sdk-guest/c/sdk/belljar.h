/* Write belljar resource providers in C.
 *
 * A provider consists of the functions under "The provider", and under "Parts", "Tools", "Prompts" and "Skills" if the
 * Makefile names these interfaces. Each call runs in a fresh sandbox: statics start anew,
 * and the memory of a call is freed with it. Two rules suffice for memory: values that you pass in are copied, and
 * values that this header returns live until the call is over. Do not free them.
 *
 * `wit/provider.wit` describes every field in full. Strings are UTF-8; NULL means "none" where that is allowed. */
#ifndef BELLJAR_H
#define BELLJAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BELLJAR_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define BELLJAR_PRINTF(at, first)
#endif

/* ---- Failing -------------------------------------------------------------------------------------------------- */

/* The result of a call. The kind decides how the host reports a failure, and whether a retry makes sense. */
typedef enum belljar_status {
    BELLJAR_OK = 0,
    BELLJAR_NOT_FOUND,   /* the resource does not exist, or this caller must not know of it */
    BELLJAR_INVALID,     /* the reference, cursor or argument is malformed; the reason says how */
    BELLJAR_DENIED,      /* the provider refuses, or a grant is missing; the reason says which */
    BELLJAR_UNAVAILABLE, /* a backend is down or busy; the same call may succeed later */
    BELLJAR_FAILED       /* any other failure */
} belljar_status;

/* Stores the reason and returns `status`: `return belljar_fail(BELLJAR_INVALID, "no such zone: %s", zone);` People
 * read the reason as the provider's words. */
belljar_status belljar_fail(belljar_status status, const char *format, ...) BELLJAR_PRINTF(2, 3);

/* Returns a failure for the current `errno`: ENOENT is BELLJAR_NOT_FOUND, EACCES is BELLJAR_DENIED, and so on. `what`
 * begins the reason. */
belljar_status belljar_fail_errno(const char *what);

/* The reason of the last failure, or "". For tests. */
const char *belljar_reason(void);

/* ---- What a provider returns ------------------------------------------------------------------------------------ */

/* An optional number. `{0}`, or left out, means absent. */
typedef struct belljar_size {
    bool some;
    uint64_t value;
} belljar_size;
typedef struct belljar_priority {
    bool some;
    double value;
} belljar_priority;

/* A present number: `.size = BELLJAR_SOME(1024)`. */
#define BELLJAR_SOME(number) { true, (number) }

/* The description of a provider, for people. */
typedef struct belljar_info {
    const char *title, *version, *description;
} belljar_info;

/* Hints about how a client may use a resource. */
typedef struct belljar_annotations {
    bool for_user, for_assistant;
    belljar_priority priority; /* from 0.0 (optional) to 1.0 (effectively required) */
    const char *last_modified; /* RFC 3339: 2026-07-28T09:30:00Z */
} belljar_annotations;

/* A picture: a `data:` or `https:` URI. `sizes` are words such as "48x48 96x96", or NULL. */
typedef struct belljar_icon {
    const char *src, *mime_type, *sizes;
} belljar_icon;

/* One entry of MCP's _meta. `json` is its value, as JSON text. */
typedef struct belljar_meta {
    const char *key, *json;
} belljar_meta;

/* One entry of the list. Only `reference` is required. Without a name, the reference is the name. */
typedef struct belljar_resource {
    const char *reference; /* relative to the mount, percent-encoded: see belljar_encode */
    const char *name, *title, *description, *mime_type;
    belljar_size size; /* in bytes */
    const belljar_annotations *annotations;
    const belljar_icon *icons;
    size_t icons_length;
    const belljar_meta *meta;
    size_t meta_length;
} belljar_resource;

/* A family of resources. Only `pattern` is required: an RFC 6570 template such as `cities/{name}`. */
typedef struct belljar_template {
    const char *pattern;
    const char *name, *title, *description, *mime_type;
    const belljar_annotations *annotations;
    const belljar_icon *icons;
    size_t icons_length;
    const belljar_meta *meta;
    size_t meta_length;
} belljar_template;

/* One content of a reading. */
typedef struct belljar_contents {
    const char *reference, *mime_type;
    bool is_text;
    char *data; /* followed by a NUL that `length` does not count */
    size_t length;
} belljar_contents;

/* A page of the list, the templates, a reading, suggestions. `{0}` is an empty one; the functions below fill them. */
typedef struct belljar_page {
    belljar_resource *resources;
    size_t length;
    const char *next_cursor;
    size_t capacity, skip, limit, seen; /* used by belljar_page_start and belljar_page_add only */
    bool more;
} belljar_page;
typedef struct belljar_templates {
    belljar_template *templates;
    size_t length, capacity;
} belljar_templates;
typedef struct belljar_reading {
    belljar_contents *contents;
    size_t length, capacity;
    uint32_t fresh_for_ms; /* how long the host may serve this reading from its cache; 0: not at all */
} belljar_reading;
typedef struct belljar_suggestions {
    const char **values;
    size_t length, capacity;
    belljar_size total; /* the total number, if `values` does not contain all of them */
} belljar_suggestions;

/* A variable of a template and its value, which is not percent-encoded and possibly incomplete. */
typedef struct belljar_argument {
    const char *name, *value;
} belljar_argument;

/* ---- The provider: functions that you write -------------------------------------------------------------------- */

/* Describes the provider. Must work without any grant. */
belljar_info provider_describe(void);

/* Lists the resources that are worth listing, a page at a time; `cursor` is NULL for the first. */
belljar_status provider_list(const char *cursor, belljar_page *page);

/* Lists the templates, all at once. */
belljar_status provider_templates(belljar_templates *templates);

/* Reads a resource: adds at least one content. `reference` is valid and percent-encoded; "" is the mount itself. */
belljar_status provider_read(const char *reference, belljar_reading *reading);

/* For the interface completion: suggests values for `argument`. */
belljar_status provider_complete(const char *pattern, const belljar_argument *argument,
                                 const belljar_argument *resolved, size_t resolved_length,
                                 belljar_suggestions *suggestions);

/* For the interface revisions. A revision is any short text. It differs from an earlier one if the list, or the contents
 * of the resource, differ. */
belljar_status provider_catalog_revision(const char **revision);
belljar_status provider_resource_revision(const char *reference, const char **revision);

/* ---- Answering ------------------------------------------------------------------------------------------------ */

/* Begins a page of at most `size` entries. Then offer the whole list to belljar_page_add, always in the same order, and
 * return belljar_page_end. The cursor is the number of entries before the page. */
belljar_status belljar_page_start(belljar_page *page, const char *cursor, size_t size);

/* Offers an entry. The page keeps the entry if the entry belongs to this page. Returns false if the page is full and a
 * next page exists: no further entries are needed. A page that was not started keeps every entry. */
bool belljar_page_add(belljar_page *page, const belljar_resource *entry);

/* True if the next entry is before the page. Then a placeholder such as `{ .reference = "" }` can be offered. */
bool belljar_page_skips(const belljar_page *page);

/* Ends a page: sets the next cursor, or fails with BELLJAR_INVALID for a cursor beyond the end. */
belljar_status belljar_page_end(belljar_page *page);

/* Adds a template. */
void belljar_template_add(belljar_templates *templates, const belljar_template *entry);

/* Adds a content: NUL-terminated text, text of `length` bytes, binary data, or either (text if the bytes are UTF-8). */
void belljar_add_text(belljar_reading *reading, const char *reference, const char *mime_type, const char *text);
void belljar_add_string(belljar_reading *reading, const char *reference, const char *mime_type, const char *text,
                        size_t length);
void belljar_add_blob(belljar_reading *reading, const char *reference, const char *mime_type, const void *bytes,
                      size_t length);
void belljar_add_bytes(belljar_reading *reading, const char *reference, const char *mime_type, const void *bytes,
                       size_t length);

/* Adds bytes of belljar_read_file without copying them, as text when they are UTF-8. The reading then owns them. */
void belljar_add_file(belljar_reading *reading, const char *reference, const char *mime_type, char *bytes,
                      size_t length);

/* Adds a suggestion. */
void belljar_suggest(belljar_suggestions *suggestions, const char *value);

/* ---- Strings, references, files ------------------------------------------------------------------------------- */

/* sprintf into a string that lives until the call is over. */
const char *belljar_format(const char *format, ...) BELLJAR_PRINTF(1, 2);

/* Memory that lives until the call is over. Never NULL: without free memory, the call ends in a trap. */
void *belljar_alloc(size_t bytes);

/* Percent-encodes one segment of a path; a `/` becomes `%2F`. */
const char *belljar_encode(const char *segment);

/* Percent-decodes once. NULL, with BELLJAR_INVALID as belljar_reason, if the result is not UTF-8 or contains a NUL. */
const char *belljar_decode(const char *segment);

/* The rest of `reference` when it begins with `prefix`, or NULL. */
const char *belljar_after(const char *reference, const char *prefix);

/* The decoded value of `name` in the query of a reference (`search?q=bell`), or NULL. */
const char *belljar_query(const char *reference, const char *name);

/* True if these bytes are UTF-8. */
bool belljar_is_utf8(const void *bytes, size_t length);

/* True if a directory is granted, or lies in a granted one. */
bool belljar_is_directory(const char *path);

/* A regular file of a directory. */
typedef struct belljar_file {
    const char *name;
    uint64_t size;
} belljar_file;

/* The regular files of a directory, sorted by the bytes of their names. */
belljar_status belljar_list_files(const char *directory, belljar_file **files, size_t *length);

/* Reads a regular file whole. BELLJAR_NOT_FOUND if the path is absent or a directory. */
belljar_status belljar_read_file(const char *path, char **bytes, size_t *length);

/* ---- Parts: ranges of large resources, and the resources below a reference. For the interface parts ------------- */

/* What a range counts. */
typedef enum belljar_unit {
    BELLJAR_BYTES = 0,
    BELLJAR_LINES /* lines of text; for a table, rows */
} belljar_unit;

/* The part that the caller asks for. Positions are counted from 0. */
typedef struct belljar_range {
    belljar_unit unit;
    uint64_t start;
    belljar_size end;  /* the position after the last one; absent: the end of the resource */
    belljar_size last; /* if present, so many positions counted back from the end, in place of `start` and `end` */
} belljar_range;

/* The part that was read. `{0}` is the whole resource. */
typedef struct belljar_extent {
    bool some; /* false: the contents are the whole resource */
    belljar_unit unit;
    uint64_t start, end; /* `end` is the position after the last one, where the next part starts */
    belljar_size total;  /* the number of positions, if it is known without reading all of the resource */
    bool more;           /* positions follow after `end` */
} belljar_extent;

/* You write them. The host calls provider_read_part in place of provider_read: without a range, both must give the same.
 *
 * `range` is NULL if the caller asks for no range: then read the whole resource if it has at most `most` bytes, else its
 * first part. A part is one content of at most `most` bytes, which ends at the end of a line or of a character; `extent`
 * says where. If the resource has no lines, or no bytes, return BELLJAR_INVALID, and say what it has. */
belljar_status provider_read_part(const char *reference, const belljar_range *range, uint64_t most,
                                  belljar_reading *reading, belljar_extent *extent);

/* Lists the resources directly below a reference, a page at a time, as provider_list does; "" is the mount itself. A
 * directory has the media type "inode/directory", and its reference ends with a slash. */
belljar_status provider_list_below(const char *reference, const char *cursor, belljar_page *page);

/* Cuts the requested part out of a reading that is in memory. For a provider that cannot read a part cheaper than the
 * whole: `status = provider_read(reference, reading)`, and then `return belljar_cut(reading, range, most, extent)`. */
belljar_status belljar_cut(belljar_reading *reading, const belljar_range *range, uint64_t most,
                           belljar_extent *extent);

/* The requested positions in a resource of `total`, both at most `total`. `range` must not be NULL. */
void belljar_within(const belljar_range *range, uint64_t total, uint64_t *start, uint64_t *end);

/* The positions from `start` to `end` of a resource of `total`. */
belljar_extent belljar_extent_of(belljar_unit unit, uint64_t start, uint64_t end, uint64_t total);

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

typedef enum belljar_json_kind {
    BELLJAR_NULL = 0,
    BELLJAR_BOOL,
    BELLJAR_NUMBER,
    BELLJAR_STRING,
    BELLJAR_ARRAY,
    BELLJAR_OBJECT
} belljar_json_kind;

/* A JSON value. Where one is expected, NULL is an absent one. */
typedef struct belljar_json {
    belljar_json_kind kind;
    bool boolean;
    bool is_integer;    /* the number is whole and fits `integer` */
    int64_t integer;
    double number;
    const char *string; /* without NUL: a text with one is refused */
    const char *key;    /* the name of a member of an object */
    size_t length;      /* the number of items or members */
    struct belljar_json *first, *next;
} belljar_json;

/* Reads a JSON text, at most 64 values deep. NULL, with BELLJAR_INVALID as belljar_reason, if it is malformed. */
const belljar_json *belljar_json_read(const char *text);

/* The member `key` of an object, or the item `index` of an array. NULL if there is none, or if `from` is something else. */
const belljar_json *belljar_member(const belljar_json *from, const char *key);
const belljar_json *belljar_item(const belljar_json *from, size_t index);

/* The member `key` of an object as a number, a truth or a text; `otherwise` if it is absent or of another type. */
int64_t belljar_int(const belljar_json *from, const char *key, int64_t otherwise);
double belljar_number(const belljar_json *from, const char *key, double otherwise);
bool belljar_bool(const belljar_json *from, const char *key, bool otherwise);
const char *belljar_string(const belljar_json *from, const char *key, const char *otherwise);

/* A text as a JSON string with its quotes: `belljar_format("{\"name\":%s}", belljar_quote(name))`. NULL becomes null. */
const char *belljar_quote(const char *text);

/* ---- What tools and prompts share ------------------------------------------------------------------------------ */

/* One piece of content. */
typedef enum belljar_block_kind {
    BELLJAR_TEXT = 0,      /* text */
    BELLJAR_IMAGE,         /* a picture: mime_type, data, length */
    BELLJAR_AUDIO,         /* a sound: mime_type, data, length */
    BELLJAR_LINK,          /* a resource of this mount: reference, and name, title, description, mime_type, size */
    BELLJAR_EMBEDDED_TEXT, /* a resource of this mount with its text: reference, mime_type, text */
    BELLJAR_EMBEDDED_BLOB  /* a resource of this mount with its bytes: reference, mime_type, data, length */
} belljar_block_kind;
typedef struct belljar_block {
    belljar_block_kind kind;
    const char *text;
    const void *data; /* bytes, not encoded */
    size_t length;
    const char *reference, *name, *title, *description, *mime_type;
    belljar_size size;
    const belljar_annotations *annotations;
} belljar_block;

/* A question for the person in front of the client. It must not ask for secrets. */
typedef struct belljar_question {
    const char *key;     /* letters, digits, `_` and `-` */
    const char *message; /* for people */
    const char *form;    /* a JSON Schema: a flat object */
} belljar_question;

/* Questions, instead of a result: one to eight. */
typedef struct belljar_questions {
    belljar_question *questions;
    size_t length, capacity;
    const char *state; /* what the next call must know; no client can read or change it */
} belljar_questions;

/* The answer to a question. */
typedef enum belljar_action { BELLJAR_ACCEPT = 0, BELLJAR_DECLINE, BELLJAR_CANCEL } belljar_action;
typedef struct belljar_answer {
    const char *key;
    belljar_action action;
    const char *content; /* the filled form: a JSON object, if the action is BELLJAR_ACCEPT */
} belljar_answer;

/* A call of a tool or a prompt. `{0}` is a client that cannot ask. */
typedef struct belljar_call {
    const char *name;              /* of the tool or the prompt */
    const belljar_json *arguments; /* an object: belljar_int and the like take them out. Those of a prompt are texts */
    bool can_ask;                  /* the client can ask a person */
    const belljar_answer *answers; /* to questions of an earlier call */
    size_t answers_length;
    const char *state; /* the state of that call, or NULL */
} belljar_call;

/* Asks a person: `belljar_ask(&result->ask, ...)` and `return BELLJAR_OK`. The answers come to a new instance, with the
 * same arguments. Do nothing before that cannot be done twice, and look at `can_ask`. */
void belljar_ask(belljar_questions *ask, const char *key, const char *message, const char *form);

/* The answer to a question, or NULL if it was not asked yet. */
const belljar_answer *belljar_answer_to(const belljar_call *call, const char *key);

/* The filled form of a question, or NULL if it was not asked yet or not filled in. */
const belljar_json *belljar_form(const belljar_call *call, const char *key);

/* Tells the caller that `done` of `total` is done, in any unit. `done` must grow; `total` 0 is unknown; `note` may be NULL.
 * Does nothing without the interface progress, or if the caller does not want to know. */
void belljar_report(double done, double total, const char *note);

/* ---- Tools: functions that a model calls. For the interface tools ---------------------------------------------- */

/* What a tool does to the world. A claim: the host compares it with the grants of the mount. */
typedef enum belljar_effect {
    BELLJAR_DESTROYS = 0, /* it may change or delete something */
    BELLJAR_ADDS,         /* it adds something, and changes or deletes nothing */
    BELLJAR_READS         /* it changes nothing */
} belljar_effect;

/* The result of a tool, or questions. */
typedef struct belljar_result {
    belljar_block *content; /* for the model */
    size_t length, capacity;
    const char *structured; /* for programs: a JSON object that fits `output`, or NULL */
    bool is_error;          /* the call failed in a way that the model can correct, as a returned failure does, too */
    const belljar_meta *meta;
    size_t meta_length;
    belljar_questions ask;
} belljar_result;

/* A tool. `name`, `description` and `call` are required. Without `input`, it has no arguments. */
typedef struct belljar_tool {
    const char *name;                 /* letters, digits, `_` and `-` */
    const char *title, *description;  /* for people; for models */
    const char *input, *output;       /* JSON Schemas of the arguments, which the host checks, and of `structured` */
    belljar_effect effect;
    bool idempotent;                  /* a second call with the same arguments changes nothing more */
    bool closed_world;                /* it reaches nothing beyond the mount's own data */
    const char *page;                 /* the reference of a page that shows the results, or NULL */
    bool app_only;                    /* only the page may call the tool */
    const belljar_icon *icons;
    size_t icons_length;
    const belljar_meta *meta;
    size_t meta_length;
    belljar_status (*call)(const belljar_call *call, belljar_result *result);
} belljar_tool;
typedef struct belljar_tools {
    belljar_tool *tools;
    size_t length, capacity;
} belljar_tools;

/* You write it: lists all tools with belljar_tool_add. Must work without any grant. */
belljar_status provider_tools(belljar_tools *tools);

void belljar_tool_add(belljar_tools *tools, const belljar_tool *tool);

/* Adds a text, or any block, to a result. */
void belljar_say(belljar_result *result, const char *text);
void belljar_block_add(belljar_result *result, const belljar_block *block);

/* Calls a tool by its name, as belljar does. `call` may be NULL. For tests. */
belljar_status belljar_call_tool(const char *name, const char *arguments, const belljar_call *call,
                                 belljar_result *result);

/* ---- Prompts: messages that a person chooses, to begin a conversation. For the interface prompts ----------------- */

/* Whose message it is. */
typedef enum belljar_role { BELLJAR_USER = 0, BELLJAR_ASSISTANT } belljar_role;
typedef struct belljar_message {
    belljar_role role;
    belljar_block block;
} belljar_message;

/* The messages of a prompt, at least one, or questions. */
typedef struct belljar_messages {
    const char *description; /* what these messages are for */
    belljar_message *messages;
    size_t length, capacity;
    belljar_questions ask;
} belljar_messages;

/* An argument of a prompt. Its values are texts. */
typedef struct belljar_prompt_argument {
    const char *name, *title, *description;
    bool required;
} belljar_prompt_argument;

/* A prompt. `name`, `description` and `get` are required. */
typedef struct belljar_prompt {
    const char *name;                /* letters, digits, `_` and `-` */
    const char *title, *description; /* for people */
    const belljar_prompt_argument *arguments;
    size_t arguments_length;
    const belljar_icon *icons;
    size_t icons_length;
    const belljar_meta *meta;
    size_t meta_length;
    belljar_status (*get)(const belljar_call *call, belljar_messages *messages);
    /* Suggests values for `argument`; `resolved` are the arguments that already have one. May be NULL. */
    belljar_status (*complete)(const belljar_argument *argument, const belljar_argument *resolved,
                               size_t resolved_length, belljar_suggestions *suggestions);
} belljar_prompt;
typedef struct belljar_prompts {
    belljar_prompt *prompts;
    size_t length, capacity;
} belljar_prompts;

/* You write it: lists all prompts with belljar_prompt_add. Must work without any grant. */
belljar_status provider_prompts(belljar_prompts *prompts);

void belljar_prompt_add(belljar_prompts *prompts, const belljar_prompt *prompt);

/* Adds a message: a text of the person, or any block of either. */
void belljar_user_says(belljar_messages *messages, const char *text);
void belljar_message_add(belljar_messages *messages, belljar_role role, const belljar_block *block);

/* Adds a suggestion if it starts with `text`, whatever the case of its ASCII letters. */
void belljar_suggest_if(belljar_suggestions *suggestions, const char *text, const char *value);

/* Make the messages of a prompt, and complete its argument, as belljar does. `call` may be NULL. For tests. */
belljar_status belljar_get_prompt(const char *name, const belljar_argument *arguments, size_t length,
                                  const belljar_call *call, belljar_messages *messages);
belljar_status belljar_complete_prompt(const char *name, const belljar_argument *argument,
                                       const belljar_argument *resolved, size_t resolved_length,
                                       belljar_suggestions *suggestions);

/* ---- Skills: directories with a SKILL.md that tells a model how to do something. For the interface skills -------- */

/* A skill. provider_read serves its files. */
typedef struct belljar_skill {
    const char *root;   /* the directory, without a slash at its end; its last segment is the name in SKILL.md */
    const char **files; /* the references of all files below it, SKILL.md included */
    size_t length, capacity;
} belljar_skill;
typedef struct belljar_skills {
    belljar_skill *skills;
    size_t length, capacity;
    const char *next_cursor;
} belljar_skills;

/* You write them. provider_list_skills lists skills, a page at a time, and provider_get_skill adds the skill in the
 * directory `root`, whether it is listed or not, or returns BELLJAR_NOT_FOUND. */
belljar_status provider_list_skills(const char *cursor, belljar_skills *skills);
belljar_status provider_get_skill(const char *root, belljar_skills *skills);

/* Adds a skill, and a file to the skill that was added last. */
void belljar_skill_add(belljar_skills *skills, const char *root);
void belljar_skill_file(belljar_skills *skills, const char *reference);

/* ---- For tests ------------------------------------------------------------------------------------------------ */

/* Frees everything that was returned so far, answers included. For tests that look for leaks, not for providers. */
void belljar_release(void);

/* ---- Requests over HTTP. For the interface http ----------------------------------------------------------------- */

/* A header. */
typedef struct belljar_http_header {
    const char *name, *value;
} belljar_http_header;

/* A request. Only `url` is required. */
typedef struct belljar_http_request {
    const char *url;
    const char *method; /* in capitals; NULL is GET, or POST with a body */
    const belljar_http_header *headers;
    size_t headers_length;
    const void *body;
    size_t body_length;
    /* The longest wait for the connection, for the answer to begin, and between pieces of its body. 0: the time limit of
     * the call ends the wait. */
    uint32_t timeout_ms;
    bool keeps_redirects; /* a redirect is the answer; otherwise GET and HEAD follow up to five of them */
} belljar_http_request;

/* An answer. Its body is read in pieces, or whole. */
typedef struct belljar_http_response {
    unsigned status;
    const char *url; /* after all redirects */
    belljar_http_header *headers;
    size_t headers_length;
    struct belljar_http_body *body;
} belljar_http_response;

/* Sends a request, and waits until the answer begins. A status is an answer, never a failure. Without a grant, the result is
 * BELLJAR_DENIED; if the server cannot be reached or takes too long, it is BELLJAR_UNAVAILABLE. */
belljar_status belljar_http_send(const belljar_http_request *request, belljar_http_response *response);

/* Sends a GET request without further headers. */
belljar_status belljar_http_get(const char *url, belljar_http_response *response);

/* A request whose body is written in pieces, after `body` of the request. It follows no redirects. */
typedef struct belljar_http_upload belljar_http_upload;
belljar_status belljar_http_begin(const belljar_http_request *request, belljar_http_upload **upload);

/* Writes a piece. If the server takes no more, its answer says why. */
void belljar_http_write(belljar_http_upload *upload, const void *bytes, size_t length);

/* Ends the body, and waits until the answer begins. */
belljar_status belljar_http_end(belljar_http_upload *upload, belljar_http_response *response);

/* The value of the first header of this name, in any case, or NULL. */
const char *belljar_http_header_of(const belljar_http_response *response, const char *name);

/* Reads the next piece: at least one byte and at most `size`, or none at the end of the body. */
belljar_status belljar_http_read(belljar_http_response *response, void *bytes, size_t size, size_t *length);

/* Reads the body, but at most `most` bytes. They are followed by a NUL. */
belljar_status belljar_http_read_all(belljar_http_response *response, size_t most, char **bytes, size_t *length);

/* Drops the rest of the body. The end of the call does so, too. */
void belljar_http_close(belljar_http_response *response);

#ifdef __cplusplus
}
#endif

#endif
