/* Unit tests. They call the provider as belljar does, but are built for this machine, without WebAssembly and belljar. */
#include "belljar.h"

#include <stdio.h>
#include <string.h>

#include "../src/provider.h"

static int failures;

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                               \
        }                                                                             \
    } while (0)

/* Reads a reference; returns the contents, or NULL. */
static belljar_status status;
static const belljar_contents *read_one(const char *reference) {
    belljar_reading reading = {0};
    status = provider_read(reference, &reading);
    return status == BELLJAR_OK && reading.length == 1 ? &reading.contents[0] : NULL;
}

static bool reads(const char *reference, const char *mime_type, const char *text) {
    const belljar_contents *contents = read_one(reference);
    return contents != NULL && contents->is_text && strcmp(contents->mime_type, mime_type) == 0 &&
           strcmp(contents->data, text) == 0;
}

static bool fails(const char *reference, belljar_status kind, const char *reason) {
    read_one(reference);
    return status == kind && (reason == NULL || strcmp(belljar_reason(), reason) == 0);
}

static void lists_in_pages(void) {
    belljar_page first = {0}, second = {0}, wrong = {0};
    CHECK(provider_list(NULL, &first) == BELLJAR_OK);
    CHECK(first.length == 10 && strcmp(first.resources[0].reference, "hello.txt") == 0);
    CHECK(first.next_cursor != NULL && strcmp(first.next_cursor, "10") == 0);

    CHECK(provider_list(first.next_cursor, &second) == BELLJAR_OK);
    CHECK(second.length == 5 && second.next_cursor == NULL);
    CHECK(strcmp(second.resources[4].reference, "files/notes.md") == 0 && second.resources[4].size.some);

    CHECK(provider_list("x", &wrong) == BELLJAR_INVALID);
    CHECK(strcmp(belljar_reason(), "the cursor \"x\" is not one of this provider's") == 0);
    CHECK(provider_list("999", &wrong) == BELLJAR_INVALID);
}

static void reads_what_it_lists(void) {
    CHECK(reads("hello.txt", "text/plain", "Hello from my-provider.\n"));
    CHECK(reads("months/2", "application/json", "{\"month\":2,\"name\":\"February\",\"days\":28}"));
    const belljar_contents *dot = read_one("dot.png");
    CHECK(dot != NULL && !dot->is_text && dot->length == 70 && memcmp(dot->data, "\x89PNG", 4) == 0);
    const belljar_contents *notes = read_one("files/notes.md");
    CHECK(notes != NULL && notes->is_text && strcmp(notes->mime_type, "text/markdown") == 0);
    const belljar_contents *all = read_one("files/");
    CHECK(all != NULL && strcmp(all->reference, "files/notes.md") == 0 && strcmp(all->data, notes->data) == 0);
}

static void failures_have_reasons(void) {
    CHECK(fails("months/13", BELLJAR_NOT_FOUND, NULL));
    CHECK(fails("months/x", BELLJAR_INVALID, "a month is a number from 1 to 12, not \"x\""));
    CHECK(fails("files/absent.md", BELLJAR_NOT_FOUND, NULL));
    CHECK(fails("files/a%2Fb", BELLJAR_NOT_FOUND, NULL));
    CHECK(fails("", BELLJAR_NOT_FOUND, NULL));
    data_directory = "/not-granted";
    CHECK(fails("files/notes.md", BELLJAR_DENIED, "this needs the directory \"/not-granted\", which was not granted"));
}

/* belljar:if tools */
static bool counts(const char *arguments, const char *text, const char *structured) {
    belljar_result result = {0};
    return belljar_call_tool("month_days", arguments, NULL, &result) == BELLJAR_OK && result.length == 1 &&
           strcmp(result.content[0].text, text) == 0 && strcmp(result.structured, structured) == 0;
}

static void counts_the_days_of_a_month(void) {
    CHECK(counts("{\"month\":2,\"year\":2024}", "February 2024 has 29 days.", "{\"month\":\"February\",\"days\":29}"));
    CHECK(counts("{\"month\":2,\"year\":1900}", "February 1900 has 28 days.", "{\"month\":\"February\",\"days\":28}"));
    CHECK(counts("{\"month\":2}", "February has 28 days.", "{\"month\":\"February\",\"days\":28}"));
    CHECK(counts("{\"month\":12,\"year\":2024}", "December 2024 has 31 days.", "{\"month\":\"December\",\"days\":31}"));
    belljar_result result = {0};
    CHECK(belljar_call_tool("month_days", "{\"month\":13}", NULL, &result) == BELLJAR_INVALID);
    CHECK(belljar_call_tool("absent", "{}", NULL, &result) == BELLJAR_NOT_FOUND);
}

static void describes_its_tools(void) {
    belljar_tools list = {0};
    CHECK(provider_tools(&list) == BELLJAR_OK && list.length == 1);
    CHECK(list.tools[0].effect == BELLJAR_READS && list.tools[0].idempotent && list.tools[0].closed_world);
    const belljar_json *input = belljar_json_read(list.tools[0].input), *output = belljar_json_read(list.tools[0].output);
    CHECK(belljar_int(belljar_member(belljar_member(input, "properties"), "month"), "maximum", 0) == 12);
    CHECK(belljar_member(belljar_member(output, "properties"), "days") != NULL);
}

/* belljar:end */
/* belljar:if prompts */
static bool plans(const char *month, const char *goal, const char *text) {
    belljar_argument arguments[] = {{"month", month}, {"goal", goal}};
    belljar_messages messages = {0};
    return belljar_get_prompt("plan_month", arguments, goal != NULL ? 2 : 1, NULL, &messages) == BELLJAR_OK &&
           strcmp(messages.description, "A plan for February") == 0 && messages.length == 1 &&
           messages.messages[0].role == BELLJAR_USER && strcmp(messages.messages[0].block.text, text) == 0;
}

static void plans_a_month(void) {
    CHECK(plans("February", "rest", "Make a plan for February, which has 28 days. My goal: rest."));
    CHECK(plans("February", NULL, "Make a plan for February, which has 28 days."));
    CHECK(!plans("X", NULL, ""));
    CHECK(strcmp(belljar_reason(), "a month is one of January to December, not \"X\"") == 0);
}

static void suggests_months(void) {
    belljar_suggestions found = {0}, none = {0};
    CHECK(belljar_complete_prompt("plan_month", &(belljar_argument){"month", "Ma"}, NULL, 0, &found) == BELLJAR_OK);
    CHECK(found.length == 2 && strcmp(found.values[0], "March") == 0 && strcmp(found.values[1], "May") == 0);
    CHECK(belljar_complete_prompt("plan_month", &(belljar_argument){"goal", "Ma"}, NULL, 0, &none) == BELLJAR_OK);
    CHECK(none.length == 0);
}

/* belljar:end */
int main(void) {
    data_directory = "data";
    lists_in_pages();
    reads_what_it_lists();
    failures_have_reasons();
    /* belljar:if tools */
    counts_the_days_of_a_month();
    describes_its_tools();
    /* belljar:end */
    /* belljar:if prompts */
    plans_a_month();
    suggests_months();
    /* belljar:end */
    belljar_release();
    puts(failures == 0 ? "all is well" : "something is wrong");
    return failures != 0;
}
