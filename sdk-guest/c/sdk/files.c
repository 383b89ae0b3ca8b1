/* Granted directories, through the C library. Only granted directories exist, under their guest paths. */
#define _XOPEN_SOURCE 700
#include "belljar.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool belljar_is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int by_name(const void *one, const void *other) {
    return strcmp(((const belljar_file *)one)->name, ((const belljar_file *)other)->name);
}

belljar_status belljar_list_files(const char *directory, belljar_file **files, size_t *length) {
    *files = NULL;
    *length = 0;
    DIR *opened = opendir(directory);
    if (opened == NULL) return belljar_fail_errno(directory);
    size_t capacity = 0;
    for (struct dirent *entry; (entry = readdir(opened)) != NULL;) {
        struct stat status;
        /* Neither is a file, and the host refuses to look at the second one. */
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        /* Skips links that lead out of the grant, and dangling ones. */
        if (stat(belljar_format("%s/%s", directory, entry->d_name), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        if (*length == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 16;
            belljar_file *larger = belljar_alloc(capacity * sizeof *larger);
            if (*length > 0) memcpy(larger, *files, *length * sizeof *larger);
            *files = larger;
        }
        (*files)[(*length)++] = (belljar_file){belljar_format("%s", entry->d_name), (uint64_t)status.st_size};
    }
    closedir(opened);
    if (*length > 0) qsort(*files, *length, sizeof **files, by_name);
    return BELLJAR_OK;
}

belljar_status belljar_read_file(const char *path, char **bytes, size_t *length) {
    struct stat status;
    *bytes = NULL;
    *length = 0;
    if (stat(path, &status) != 0) return belljar_fail_errno(path);
    if (!S_ISREG(status.st_mode)) return belljar_fail(BELLJAR_NOT_FOUND, "%s: not a file", path);
    if ((uint64_t)status.st_size >= SIZE_MAX)
        return belljar_fail(BELLJAR_FAILED, "%s: a file of %lld bytes does not fit into memory", path,
                            (long long)status.st_size);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return belljar_fail_errno(path);
    /* If the file grows meanwhile, reads its old length; if it shrinks, its new length. */
    char *buffer = belljar_alloc((size_t)status.st_size + 1);
    setvbuf(file, NULL, _IONBF, 0);
    size_t read = fread(buffer, 1, (size_t)status.st_size, file);
    bool failed = ferror(file) != 0;
    buffer[read] = '\0';
    if (failed) belljar_fail_errno(path);
    fclose(file);
    if (failed) return BELLJAR_FAILED;
    *bytes = buffer;
    *length = read;
    return BELLJAR_OK;
}
