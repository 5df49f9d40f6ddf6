/* What a test's own process writes to standard output and error, as texts. Within a folder of the test's own
 * (command.h). */
#ifndef MOIRAI_TEST_CAPTURE_H
#define MOIRAI_TEST_CAPTURE_H

typedef struct capture {
    int out, err;
} capture;

capture capture_begin(void);
/* Both texts; free() them. */
char *capture_end(capture c, char **err);

#endif
