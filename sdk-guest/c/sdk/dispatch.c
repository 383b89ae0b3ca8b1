/* Calls tools and prompts of C by their names. */
#include "internal.h"

#include <string.h>

#ifdef BELLJAR_TOOLS

belljar_status belljar_call_tool(const char *name, const char *arguments, const belljar_call *call,
                                 belljar_result *result) {
    belljar_tools list = {0};
    belljar_status status = provider_tools(&list);
    if (status != BELLJAR_OK) return status;
    for (size_t i = 0; i < list.length; i++) {
        if (strcmp(list.tools[i].name, name) != 0) continue;
        belljar_call made = call != NULL ? *call : (belljar_call){0};
        made.name = name;
        made.arguments = belljar_json_read(arguments);
        return made.arguments != NULL ? list.tools[i].call(&made, result) : BELLJAR_INVALID;
    }
    return BELLJAR_NOT_FOUND;
}

#endif

#ifdef BELLJAR_PROMPTS

static belljar_status find(const char *name, belljar_prompt *prompt) {
    belljar_prompts list = {0};
    belljar_status status = provider_prompts(&list);
    if (status != BELLJAR_OK) return status;
    for (size_t i = 0; i < list.length; i++) {
        if (strcmp(list.prompts[i].name, name) != 0) continue;
        *prompt = list.prompts[i];
        return BELLJAR_OK;
    }
    return BELLJAR_NOT_FOUND;
}

belljar_status belljar_get_prompt(const char *name, const belljar_argument *arguments, size_t length,
                                  const belljar_call *call, belljar_messages *messages) {
    belljar_prompt prompt;
    belljar_status status = find(name, &prompt);
    if (status != BELLJAR_OK) return status;

    belljar_json whole = {.kind = BELLJAR_OBJECT, .length = length};
    for (size_t i = length; i-- > 0;) {
        belljar_json *member = belljar_alloc(sizeof *member);
        *member = (belljar_json){.kind = BELLJAR_STRING, .string = arguments[i].value, .key = arguments[i].name};
        member->next = whole.first;
        whole.first = member;
    }
    for (size_t i = 0; i < prompt.arguments_length; i++)
        if (prompt.arguments[i].required && belljar_member(&whole, prompt.arguments[i].name) == NULL)
            return belljar_fail(BELLJAR_INVALID, "the prompt \"%s\" needs the argument \"%s\"", name,
                                prompt.arguments[i].name);
    belljar_call made = call != NULL ? *call : (belljar_call){0};
    made.name = name;
    made.arguments = &whole;
    return prompt.get(&made, messages);
}

belljar_status belljar_complete_prompt(const char *name, const belljar_argument *argument,
                                       const belljar_argument *resolved, size_t resolved_length,
                                       belljar_suggestions *suggestions) {
    belljar_prompt prompt;
    belljar_status status = find(name, &prompt);
    if (status != BELLJAR_OK || prompt.complete == NULL) return status;
    return prompt.complete(argument, resolved, resolved_length, suggestions);
}

#endif
