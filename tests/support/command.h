/* Runs the moirai command as a user does: through the shell, in a folder of its own. */
#ifndef MOIRAI_TEST_COMMAND_H
#define MOIRAI_TEST_COMMAND_H

#include <stdbool.h>
#include <yyjson.h>

/* Makes an empty folder and goes there; leave_folder removes it. cmocka's setup and teardown. */
int enter_folder(void **state);
int leave_folder(void **state);

/* Runs a shell line in which $M is the command; returns its exit code. What it wrote is in out and err. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char *shell_out, *shell_err;

/* The last output as JSON; fails the test if it is none. The value lives until the next call. */
yyjson_val *shell_json(void);

/* Asserts: exit code, and that stderr is exactly one line "moirai: ..." that contains `part`. */
void assert_fails(int code, const char *part, const char *format, ...) __attribute__((format(printf, 3, 4)));
void assert_runs(const char *format, ...) __attribute__((format(printf, 1, 2)));
void assert_contains(const char *text, const char *part);

void write_text(const char *path, const char *text);
char *read_text(const char *path); /* NULL if it is not there; the caller frees */
bool file_exists(const char *path);
int files_here(void); /* number of files in this folder, hidden ones too */

#endif
