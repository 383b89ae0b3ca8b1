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

int main(void) {
    data_directory = "data";
    lists_in_pages();
    reads_what_it_lists();
    failures_have_reasons();
    belljar_release();
    puts(failures == 0 ? "all is well" : "something is wrong");
    return failures != 0;
}
