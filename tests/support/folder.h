/* A temporary folder for the files of a test program, and paths in it. */
#ifndef MOIRAI_TEST_FOLDER_H
#define MOIRAI_TEST_FOLDER_H

#include <stddef.h>

extern char folder[64]; /* its path */

/* cmocka's setup and teardown: makes it, removes it with all that is in it. */
int make_folder(void **state);
int remove_folder(void **state);
/* The path of a file in it; the last four stay valid. */
const char *in_folder(const char *name);
/* Writes a file; fails the test if it can't. */
void put_file(const char *path, const void *data, size_t length);

#endif
