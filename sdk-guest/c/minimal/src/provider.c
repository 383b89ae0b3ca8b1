/* my-provider: its list, and the contents of each reference. Replace it with your own. */
#include "belljar.h"

#include <string.h>

belljar_info provider_describe(void) {
    return (belljar_info){.title = "my-provider", .version = "0.1.0", .description = "A greeting."};
}

belljar_status provider_list(const char *cursor, belljar_page *page) {
    belljar_status status = belljar_page_start(page, cursor, 100);
    if (status != BELLJAR_OK) return status;
    belljar_page_add(page, &(belljar_resource){.reference = "hello.txt", .mime_type = "text/plain"});
    return belljar_page_end(page);
}

belljar_status provider_templates(belljar_templates *templates) {
    (void)templates;
    return BELLJAR_OK;
}

belljar_status provider_read(const char *reference, belljar_reading *reading) {
    if (strcmp(reference, "hello.txt") != 0) return BELLJAR_NOT_FOUND;
    belljar_add_text(reading, reference, "text/plain", "Hello from my-provider.\n");
    return BELLJAR_OK;
}
