/* Tests of the SDK itself, in place of those of the template: the reader of JSON, questions, and parts. */
#include "belljar.h"

#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                               \
        }                                                                             \
    } while (0)

static void malformed_json_is_refused(void) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "at byte 0: a value was expected"},
        {"{", "at byte 1: the name of a member was expected"},
        {"[1 2]", "at byte 3: a comma or a closing bracket was expected"},
        {"[1,]", "at byte 3: a value was expected"},
        {"{\"a\"}", "at byte 4: a colon was expected"},
        {"{a:1}", "at byte 1: the name of a member was expected"},
        {"[1}", "a comma or a closing bracket was expected"},
        {"01", "a value was expected"},
        {"-", "a value was expected"},
        {"1.", "a digit was expected after the point"},
        {"1e+", "a digit was expected in the exponent"},
        {"1e999", "the number is too large"},
        {"1 1", "at byte 2: more follows the value"},
        {"\"a", "a text has no end"},
        {"\"a\\\"", "a text has no end"},
        {"\"a\\", "a text has no end"},
        {"\"\n\"", "contains a control character"},
        {"\"\\x\"", "there is no such escape"},
        {"\"\\u12g4\"", "four hexadecimal digits were expected"},
        {"\"\\u0000\"", "a text must not contain a NUL"},
        {"\"\\ud800\"", "a surrogate has no partner"},
        {"\"\\udc00\\ud800\"", "a surrogate has no partner"},
        {"\"\\ud800\\u0041\"", "a surrogate has no partner"},
        {"tru", "a value was expected"},
        {"NaN", "a value was expected"},
        {"\"\xff\"", "the JSON text is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool refused = belljar_json_read(cases[i].text) == NULL;
        if (refused && strstr(belljar_reason(), cases[i].why) != NULL) continue;
        fprintf(stderr, "%s: %s\n", cases[i].text, refused ? belljar_reason() : "accepted");
        failures++;
    }
}

static void depth_is_bounded(void) {
    char text[200001];
    memset(text, '[', 200000);
    text[200000] = '\0';
    CHECK(belljar_json_read(text) == NULL && strstr(belljar_reason(), "more than 64 values deep") != NULL);
    memset(text + 63, ']', 63);
    text[126] = '\0';
    text[63] = '1';
    memset(text + 64, ']', 63);
    text[127] = '\0';
    CHECK(belljar_json_read(text) != NULL);
}

static void values_have_their_types(void) {
    const belljar_json *all = belljar_json_read(
        " {\"i\": -42, \"whole\": 2.0, \"big\": 9223372036854775807, \"more\": 9223372036854775808, \"half\": 5e-1,"
        " \"yes\": true, \"no\": false, \"none\": null, \"text\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00 \xc3\xbc\","
        " \"list\": [1, \"two\", {}, []], \"twice\": 1, \"twice\": 2, \"\": 3} ");
    CHECK(all != NULL && all->kind == BELLJAR_OBJECT && all->length == 13);
    CHECK(belljar_int(all, "i", 0) == -42 && belljar_int(all, "whole", 0) == 2);
    CHECK(belljar_int(all, "big", 0) == INT64_MAX && belljar_int(all, "more", 7) == 7);
    CHECK(belljar_number(all, "more", 0) == 9223372036854775808.0);
    CHECK(belljar_int(all, "half", 7) == 7 && belljar_number(all, "half", 0) == 0.5);
    CHECK(belljar_bool(all, "yes", false) && !belljar_bool(all, "no", true));
    CHECK(belljar_member(all, "none") != NULL && belljar_member(all, "none")->kind == BELLJAR_NULL);
    CHECK(strcmp(belljar_string(all, "text", ""), "\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xc3\xbc") == 0);
    const belljar_json *list = belljar_member(all, "list");
    CHECK(list->length == 4 && belljar_item(list, 1)->kind == BELLJAR_STRING && belljar_item(list, 4) == NULL);
    CHECK(belljar_int(all, "twice", 0) == 2 && belljar_int(all, "", 0) == 3);
    /* Absent, or of another type. */
    CHECK(belljar_int(all, "text", 7) == 7 && belljar_bool(all, "i", true) && belljar_int(NULL, "i", 7) == 7);
    CHECK(strcmp(belljar_string(all, "i", "other"), "other") == 0 && belljar_string(list, "i", NULL) == NULL);
    CHECK(belljar_item(all, 0) == NULL && belljar_member(list, "i") == NULL);
}

static void texts_survive_quoting(void) {
    const char *text = "\"\\\n\x01\x1f\x7f/ \xc3\xa9\xf0\x9f\x98\x80";
    const belljar_json *again = belljar_json_read(belljar_quote(text));
    CHECK(again != NULL && again->kind == BELLJAR_STRING && strcmp(again->string, text) == 0);
    CHECK(strcmp(belljar_quote("\x01"), "\"\\u0001\"") == 0 && strcmp(belljar_quote(NULL), "null") == 0);
}

static void questions_and_answers(void) {
    belljar_questions ask = {0};
    char key[] = "size";
    belljar_ask(&ask, key, "Which size?", "{}");
    key[0] = 'x';
    CHECK(ask.length == 1 && strcmp(ask.questions[0].key, "size") == 0);

    belljar_answer answers[] = {{"size", BELLJAR_ACCEPT, "{\"size\":\"L\"}"}, {"colour", BELLJAR_DECLINE, NULL}};
    belljar_call call = {.answers = answers, .answers_length = 2};
    CHECK(strcmp(belljar_string(belljar_form(&call, "size"), "size", ""), "L") == 0);
    CHECK(belljar_answer_to(&call, "colour")->action == BELLJAR_DECLINE && belljar_form(&call, "colour") == NULL);
    CHECK(belljar_answer_to(&call, "absent") == NULL && belljar_form(&call, "absent") == NULL);
}

static void lists_hold_what_was_added(void) {
    belljar_suggestions found = {0};
    belljar_suggest_if(&found, "mA", "March");
    belljar_suggest_if(&found, "mA", "M");
    belljar_suggest_if(&found, "", "");
    CHECK(found.length == 2 && strcmp(found.values[0], "March") == 0);

    belljar_skills skills = {0};
    belljar_skill_file(&skills, "of no skill");
    for (int i = 0; i < 20; i++) {
        belljar_skill_add(&skills, belljar_format("%d", i));
        for (int file = 0; file < 20; file++) belljar_skill_file(&skills, belljar_format("%d/%d", i, file));
    }
    CHECK(skills.length == 20 && skills.skills[19].length == 20 && strcmp(skills.skills[19].files[19], "19/19") == 0);

    belljar_result result = {0};
    char data[] = "x";
    belljar_block_add(&result, &(belljar_block){.kind = BELLJAR_IMAGE, .data = data, .length = 1, .mime_type = "image/png"});
    data[0] = 'y';
    CHECK(result.length == 1 && *(const char *)result.content[0].data == 'x');
    belljar_report(1, 0, NULL);
}

/* A part of a text, cut as a provider does. The extent is in `cut_extent`. */
static belljar_extent cut_extent;
static const char *cut(const char *text, const belljar_range *range, uint64_t most) {
    belljar_reading reading = {0};
    belljar_add_text(&reading, "a", "text/plain", text);
    if (belljar_cut(&reading, range, most, &cut_extent) != BELLJAR_OK) return belljar_reason();
    return reading.contents[0].data;
}

static bool extends(belljar_unit unit, uint64_t start, uint64_t end, uint64_t total) {
    return cut_extent.some && cut_extent.unit == unit && cut_extent.start == start && cut_extent.end == end &&
           cut_extent.total.some && cut_extent.total.value == total && cut_extent.more == (end < total);
}

static void what_fits_is_whole(void) {
    CHECK(strcmp(cut("one\ntwo\n", NULL, 8), "one\ntwo\n") == 0 && !cut_extent.some);
    CHECK(strcmp(cut("one\ntwo\n", NULL, 7), "one\n") == 0 && extends(BELLJAR_BYTES, 0, 4, 8));
    CHECK(strcmp(cut("one two", NULL, 5), "one t") == 0 && extends(BELLJAR_BYTES, 0, 5, 7));
}

static void parts_in_bytes_join_to_the_text(void) {
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x94\nb";
    for (uint64_t most = 1; most < 12; most++) {
        char joined[64] = "";
        belljar_range range = {.unit = BELLJAR_BYTES};
        do {
            const char *part = cut(text, &range, most);
            CHECK(belljar_is_utf8(part, strlen(part)) && cut_extent.end > range.start);
            if (cut_extent.end <= range.start) return;
            strcat(joined, part);
            range.start = cut_extent.end;
        } while (cut_extent.more);
        CHECK(strcmp(joined, text) == 0);
    }
}

static void lines_are_counted_from_both_ends(void) {
    const char *text = "1\n2\n3\n4";
    belljar_range middle = {BELLJAR_LINES, 1, BELLJAR_SOME(3), {0}}, beyond = {BELLJAR_LINES, 9, {0}, {0}};
    belljar_range last = {.unit = BELLJAR_LINES, .last = BELLJAR_SOME(2)}, all = {.unit = BELLJAR_LINES};
    belljar_range tail = {.unit = BELLJAR_BYTES, .last = BELLJAR_SOME(3)};
    belljar_range backwards = {BELLJAR_LINES, 3, BELLJAR_SOME(1), {0}};
    CHECK(strcmp(cut(text, &middle, 100), "2\n3\n") == 0 && extends(BELLJAR_LINES, 1, 3, 4));
    CHECK(strcmp(cut(text, &last, 100), "3\n4") == 0 && extends(BELLJAR_LINES, 2, 4, 4));
    CHECK(strcmp(cut(text, &beyond, 100), "") == 0 && extends(BELLJAR_LINES, 4, 4, 4));
    CHECK(strcmp(cut(text, &backwards, 100), "") == 0 && extends(BELLJAR_LINES, 3, 3, 4));
    CHECK(strcmp(cut(text, &all, 4), "1\n2\n") == 0 && extends(BELLJAR_LINES, 0, 2, 4));
    CHECK(strcmp(cut(text, &tail, 100), "3\n4") == 0 && extends(BELLJAR_BYTES, 4, 7, 7));
    CHECK(strcmp(cut("", &last, 100), "") == 0 && extends(BELLJAR_LINES, 0, 0, 0));
}

static void parts_that_cannot_be_given_are_refused(void) {
    belljar_range lines = {.unit = BELLJAR_LINES}, bytes = {.start = 1};
    CHECK(strcmp(cut("12345", &lines, 4), "line 1 has 5 bytes; the limit of a read is 4; read it with \"?bytes=0-65535\"") == 0);

    belljar_reading reading = {0};
    belljar_extent extent;
    belljar_add_blob(&reading, "a", NULL, "\0\x9f\xff", 3);
    CHECK(belljar_cut(&reading, &lines, 4, &extent) == BELLJAR_INVALID && strstr(belljar_reason(), "has no lines") != NULL);
    CHECK(belljar_cut(&reading, &bytes, 1, &extent) == BELLJAR_OK && extent.start == 1 && extent.end == 2 && extent.more);
    CHECK(reading.contents[0].length == 1 && reading.contents[0].data[0] == '\x9f');
    belljar_add_text(&reading, "a/b", NULL, "second");
    CHECK(belljar_cut(&reading, NULL, 1, &extent) == BELLJAR_OK && !extent.some && reading.length == 2);
    CHECK(belljar_cut(&reading, &bytes, 1, &extent) == BELLJAR_INVALID && strstr(belljar_reason(), "2 contents") != NULL);
}

int main(void) {
    what_fits_is_whole();
    parts_in_bytes_join_to_the_text();
    lines_are_counted_from_both_ends();
    parts_that_cannot_be_given_are_refused();
    malformed_json_is_refused();
    depth_is_bounded();
    values_have_their_types();
    texts_survive_quoting();
    questions_and_answers();
    lists_hold_what_was_added();
    belljar_release();
    puts(failures == 0 ? "all is well" : "something is wrong");
    return failures != 0;
}
