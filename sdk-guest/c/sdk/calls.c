/* Tools, prompts and skills: what the functions of a provider return. */
#include "internal.h"

#include <string.h>

static belljar_block copy_block(const belljar_block *from) {
    belljar_block to = *from;
    to.text = belljar_copy_string(from->text);
    to.data = from->data != NULL ? belljar_copy(from->data, from->length) : NULL;
    to.reference = belljar_copy_string(from->reference);
    to.name = belljar_copy_string(from->name != NULL ? from->name : from->reference);
    to.title = belljar_copy_string(from->title);
    to.description = belljar_copy_string(from->description);
    to.mime_type = belljar_copy_string(from->mime_type);
    to.annotations = belljar_copy_annotations(from->annotations);
    return to;
}

void belljar_block_add(belljar_result *result, const belljar_block *block) {
    result->content = belljar_room(result->content, result->length, &result->capacity, sizeof *result->content);
    result->content[result->length++] = copy_block(block);
}

void belljar_say(belljar_result *result, const char *text) {
    belljar_block_add(result, &(belljar_block){.kind = BELLJAR_TEXT, .text = text});
}

void belljar_message_add(belljar_messages *list, belljar_role role, const belljar_block *block) {
    list->messages = belljar_room(list->messages, list->length, &list->capacity, sizeof *list->messages);
    list->messages[list->length++] = (belljar_message){role, copy_block(block)};
}

void belljar_user_says(belljar_messages *messages, const char *text) {
    belljar_message_add(messages, BELLJAR_USER, &(belljar_block){.kind = BELLJAR_TEXT, .text = text});
}

void belljar_ask(belljar_questions *ask, const char *key, const char *message, const char *form) {
    ask->questions = belljar_room(ask->questions, ask->length, &ask->capacity, sizeof *ask->questions);
    ask->questions[ask->length++] =
        (belljar_question){belljar_copy_string(key), belljar_copy_string(message), belljar_copy_string(form)};
}

const belljar_answer *belljar_answer_to(const belljar_call *call, const char *key) {
    for (size_t i = 0; i < call->answers_length; i++)
        if (strcmp(call->answers[i].key, key) == 0) return &call->answers[i];
    return NULL;
}

const belljar_json *belljar_form(const belljar_call *call, const char *key) {
    const belljar_answer *answer = belljar_answer_to(call, key);
    if (answer == NULL || answer->action != BELLJAR_ACCEPT || answer->content == NULL) return NULL;
    return belljar_json_read(answer->content);
}

void belljar_tool_add(belljar_tools *list, const belljar_tool *from) {
    list->tools = belljar_room(list->tools, list->length, &list->capacity, sizeof *list->tools);
    belljar_tool *to = &list->tools[list->length++];
    *to = *from;
    to->name = belljar_copy_string(from->name);
    to->title = belljar_copy_string(from->title);
    to->description = belljar_copy_string(from->description);
    to->input = belljar_copy_string(from->input != NULL ? from->input : "{\"type\":\"object\",\"properties\":{}}");
    to->output = belljar_copy_string(from->output);
    to->page = belljar_copy_string(from->page);
    to->icons = belljar_copy_icons(from->icons, from->icons_length);
    to->meta = belljar_copy_meta(from->meta, from->meta_length);
}

void belljar_prompt_add(belljar_prompts *list, const belljar_prompt *from) {
    list->prompts = belljar_room(list->prompts, list->length, &list->capacity, sizeof *list->prompts);
    belljar_prompt *to = &list->prompts[list->length++];
    *to = *from;
    to->name = belljar_copy_string(from->name);
    to->title = belljar_copy_string(from->title);
    to->description = belljar_copy_string(from->description);
    to->icons = belljar_copy_icons(from->icons, from->icons_length);
    to->meta = belljar_copy_meta(from->meta, from->meta_length);
    belljar_prompt_argument *arguments = belljar_alloc(from->arguments_length * sizeof *arguments);
    for (size_t i = 0; i < from->arguments_length; i++) {
        const belljar_prompt_argument *given = &from->arguments[i];
        arguments[i] = (belljar_prompt_argument){belljar_copy_string(given->name), belljar_copy_string(given->title),
                                                 belljar_copy_string(given->description), given->required};
    }
    to->arguments = arguments;
}

static bool same_letter(char one, char other) {
    char a = one >= 'A' && one <= 'Z' ? (char)(one - 'A' + 'a') : one;
    char b = other >= 'A' && other <= 'Z' ? (char)(other - 'A' + 'a') : other;
    return a == b;
}

void belljar_suggest_if(belljar_suggestions *suggestions, const char *text, const char *value) {
    for (size_t i = 0; text[i] != '\0'; i++)
        if (!same_letter(text[i], value[i])) return; /* the end of `value` is no letter */
    belljar_suggest(suggestions, value);
}

void belljar_skill_add(belljar_skills *list, const char *root) {
    list->skills = belljar_room(list->skills, list->length, &list->capacity, sizeof *list->skills);
    list->skills[list->length++] = (belljar_skill){.root = belljar_copy_string(root)};
}

void belljar_skill_file(belljar_skills *list, const char *reference) {
    if (list->length == 0) return;
    belljar_skill *skill = &list->skills[list->length - 1];
    skill->files = belljar_room(skill->files, skill->length, &skill->capacity, sizeof *skill->files);
    skill->files[skill->length++] = belljar_copy_string(reference);
}

void belljar_report(double done, double total, const char *note) {
#if defined(BELLJAR_PROGRESS) && defined(__wasm__)
    belljar_send_report(done, total, note);
#else
    (void)done, (void)total, (void)note;
#endif
}
