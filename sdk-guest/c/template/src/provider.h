/* What the tests need to know of the provider beside belljar.h. */
#ifndef PROVIDER_H
#define PROVIDER_H

/* The granted directory. A test sets another. */
extern const char *data_directory;

#endif
