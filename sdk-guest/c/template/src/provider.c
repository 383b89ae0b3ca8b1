/* my-provider: its list, and the contents of each reference. Replace it with your own. */
#include "belljar.h"

#include <stdlib.h>
#include <string.h>

#include "provider.h"

enum { PAGE = 10 };

const char *data_directory = "/data";

static const struct {
    const char *name;
    int days;
} MONTHS[12] = {
    {"January", 31}, {"February", 28}, {"March", 31},      {"April", 30},   {"May", 31},      {"June", 30},
    {"July", 31},    {"August", 31},   {"September", 30}, {"October", 31}, {"November", 30}, {"December", 31},
};

/* A picture of one pixel. */
static const unsigned char DOT[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4, 0x89, 0x00, 0x00, 0x00, 0x0d, 0x49,
    0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x64, 0xf8, 0xcf, 0x50, 0x0f, 0x00, 0x03, 0x86, 0x01, 0x80, 0x5a, 0x34, 0x7d,
    0x6b, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

/* The media type for the extension of a name, or NULL. */
static const char *type_of(const char *name) {
    const char *dot = strrchr(name, '.');
    if (dot == NULL) return NULL;
    return strcmp(dot, ".md") == 0 ? "text/markdown" : strcmp(dot, ".txt") == 0 ? "text/plain" : NULL;
}

belljar_info provider_describe(void) {
    return (belljar_info){
        .title = "my-provider",
        .version = "0.1.0",
        .description = "A greeting, a picture, the months of the year, and the files of a directory.",
    };
}

belljar_status provider_list(const char *cursor, belljar_page *page) {
    belljar_status status = belljar_page_start(page, cursor, PAGE);
    if (status != BELLJAR_OK) return status;

    belljar_page_add(page, &(belljar_resource){.reference = "hello.txt", .mime_type = "text/plain"});
    belljar_page_add(page, &(belljar_resource){.reference = "dot.png", .mime_type = "image/png"});
    for (int month = 1; month <= 12; month++)
        belljar_page_add(page, &(belljar_resource){
            .reference = belljar_format("months/%d", month),
            .name = MONTHS[month - 1].name,
            .mime_type = "application/json",
        });

    if (belljar_is_directory(data_directory)) {
        belljar_file *files;
        size_t length;
        status = belljar_list_files(data_directory, &files, &length);
        if (status != BELLJAR_OK) return status;
        for (size_t i = 0; i < length; i++)
            belljar_page_add(page, &(belljar_resource){
                .reference = belljar_format("files/%s", belljar_encode(files[i].name)),
                .name = files[i].name,
                .mime_type = type_of(files[i].name),
                .size = BELLJAR_SOME(files[i].size),
            });
    }
    return belljar_page_end(page);
}

belljar_status provider_templates(belljar_templates *templates) {
    belljar_template_add(templates, &(belljar_template){
        .pattern = "months/{month}",
        .name = "month",
        .description = "A month by its number, from 1 to 12: its name and how many days it has",
        .mime_type = "application/json",
    });
    belljar_template_add(templates, &(belljar_template){
        .pattern = "files/{name}",
        .name = "file",
        .description = "A file of the granted directory, by its name; without a name, all files",
    });
    return BELLJAR_OK;
}

static belljar_status read_month(const char *reference, const char *text, belljar_reading *reading) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits] != '\0')
        return belljar_fail(BELLJAR_INVALID, "a month is a number from 1 to 12, not \"%s\"", text);
    long month = strtol(text, NULL, 10);
    if (month < 1 || month > 12) return BELLJAR_NOT_FOUND;
    belljar_add_text(reading, reference, "application/json",
                     belljar_format("{\"month\":%ld,\"name\":\"%s\",\"days\":%d}", month, MONTHS[month - 1].name,
                                    MONTHS[month - 1].days));
    return BELLJAR_OK;
}

/* Fails if the directory was not granted. */
static belljar_status need_directory(void) {
    if (belljar_is_directory(data_directory)) return BELLJAR_OK;
    return belljar_fail(BELLJAR_DENIED, "this needs the directory \"%s\", which was not granted", data_directory);
}

static belljar_status read_file(const char *reference, const char *segment, belljar_reading *reading) {
    const char *name = belljar_decode(segment);
    if (name == NULL) return BELLJAR_INVALID;
    belljar_status status = need_directory();
    if (status != BELLJAR_OK) return status;
    if (strchr(name, '/') != NULL) return BELLJAR_NOT_FOUND;

    char *bytes;
    size_t length;
    status = belljar_read_file(belljar_format("%s/%s", data_directory, name), &bytes, &length);
    if (status != BELLJAR_OK) return status;
    const char *type = "application/octet-stream";
    if (belljar_is_utf8(bytes, length)) type = type_of(name) != NULL ? type_of(name) : "text/plain";
    belljar_add_file(reading, reference, type, bytes, length);
    return BELLJAR_OK;
}

/* All files of the directory, one content each. */
static belljar_status read_all_files(belljar_reading *reading) {
    belljar_file *files = NULL;
    size_t length = 0;
    belljar_status status = need_directory();
    if (status == BELLJAR_OK) status = belljar_list_files(data_directory, &files, &length);
    for (size_t i = 0; status == BELLJAR_OK && i < length; i++) {
        const char *segment = belljar_encode(files[i].name);
        status = read_file(belljar_format("files/%s", segment), segment, reading);
    }
    return status == BELLJAR_OK && length == 0 ? BELLJAR_NOT_FOUND : status;
}

belljar_status provider_read(const char *reference, belljar_reading *reading) {
    const char *rest;
    if (strcmp(reference, "hello.txt") == 0) {
        belljar_add_text(reading, reference, "text/plain", "Hello from my-provider.\n");
        return BELLJAR_OK;
    }
    if (strcmp(reference, "dot.png") == 0) {
        belljar_add_blob(reading, reference, "image/png", DOT, sizeof DOT);
        return BELLJAR_OK;
    }
    if ((rest = belljar_after(reference, "months/")) != NULL) return read_month(reference, rest, reading);
    if (strcmp(reference, "files/") == 0) return read_all_files(reading);
    if ((rest = belljar_after(reference, "files/")) != NULL) return read_file(reference, rest, reading);
    return BELLJAR_NOT_FOUND;
}
/* belljar:if tools */

static bool is_leap(int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static belljar_status month_days(const belljar_call *call, belljar_result *result) {
    int64_t month = belljar_int(call->arguments, "month", 0);
    if (month < 1 || month > 12)
        return belljar_fail(BELLJAR_INVALID, "a month is a number from 1 to 12, not \"%lld\"", (long long)month);
    const char *name = MONTHS[month - 1].name, *year_text = "";
    int days = MONTHS[month - 1].days;
    if (belljar_member(call->arguments, "year") != NULL) {
        int64_t year = belljar_int(call->arguments, "year", 0);
        year_text = belljar_format(" %lld", (long long)year);
        if (month == 2 && is_leap(year)) days = 29;
    }
    belljar_say(result, belljar_format("%s%s has %d days.", name, year_text, days));
    result->structured = belljar_format("{\"month\":%s,\"days\":%d}", belljar_quote(name), days);
    return BELLJAR_OK;
}

belljar_status provider_tools(belljar_tools *tools) {
    belljar_tool_add(tools, &(belljar_tool){
        .name = "month_days",
        .description = "How many days a month has.",
        .input = "{\"type\":\"object\",\"properties\":{\"month\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":12,"
                 "\"description\":\"The number of the month\"},"
                 "\"year\":{\"type\":\"integer\",\"description\":\"The year; without it, February has 28 days\"}},"
                 "\"required\":[\"month\"]}",
        .output = "{\"type\":\"object\",\"properties\":{\"month\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"}},"
                  "\"required\":[\"month\",\"days\"]}",
        .effect = BELLJAR_READS,
        .idempotent = true,
        .closed_world = true,
        .call = month_days,
    });
    return BELLJAR_OK;
}
/* belljar:end */
/* belljar:if prompts */

static belljar_status plan_month(const belljar_call *call, belljar_messages *messages) {
    const char *month = belljar_string(call->arguments, "month", ""), *goal = belljar_string(call->arguments, "goal", "");
    for (int i = 0; i < 12; i++) {
        if (strcmp(MONTHS[i].name, month) != 0) continue;
        messages->description = belljar_format("A plan for %s", month);
        belljar_user_says(messages, belljar_format("Make a plan for %s, which has %d days.%s%s%s", month, MONTHS[i].days,
                                                   *goal != '\0' ? " My goal: " : "", goal, *goal != '\0' ? "." : ""));
        return BELLJAR_OK;
    }
    return belljar_fail(BELLJAR_INVALID, "a month is one of January to December, not \"%s\"", month);
}

static belljar_status complete_month(const belljar_argument *argument, const belljar_argument *resolved,
                                     size_t resolved_length, belljar_suggestions *suggestions) {
    (void)resolved, (void)resolved_length;
    if (strcmp(argument->name, "month") != 0) return BELLJAR_OK;
    for (int i = 0; i < 12; i++) belljar_suggest_if(suggestions, argument->value, MONTHS[i].name);
    return BELLJAR_OK;
}

belljar_status provider_prompts(belljar_prompts *prompts) {
    static const belljar_prompt_argument arguments[] = {
        {.name = "month", .description = "The name of the month", .required = true},
        {.name = "goal"},
    };
    belljar_prompt_add(prompts, &(belljar_prompt){
        .name = "plan_month",
        .description = "A plan for a month.",
        .arguments = arguments,
        .arguments_length = 2,
        .get = plan_month,
        .complete = complete_month,
    });
    return BELLJAR_OK;
}
/* belljar:end */
