/* The declarations that the tests need besides belljar.h. */
#ifndef PROVIDER_H
#define PROVIDER_H

/* The granted directory. A test sets another directory. */
extern const char *data_directory;

#endif
