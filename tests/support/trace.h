/* What a command opens, writes and starts, as strace sees it. */
#ifndef MOIRAI_TEST_TRACE_H
#define MOIRAI_TEST_TRACE_H

#include <stdbool.h>

/* Is strace here, and may it trace? */
bool trace_works(void);
/* What to put before a command in the shell; the trace goes to the file "trace" of this folder. */
extern const char *const trace_prefix;
/* The first fault in that file, in words that last until the next call, or NULL: something was opened that lies neither
 * below one of the folders (a list that ends with NULL) nor among the system's libraries, or something changed outside of
 * the folders; or, with `alone`, a program was started or a socket made. */
const char *trace_fault(const char *const *folders, bool alone);

#endif
