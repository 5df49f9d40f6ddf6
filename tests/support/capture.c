#include "support/capture.h"

#include <unistd.h>

#include "support/check.h"
#include "support/command.h"

capture capture_begin(void)
{
    fflush(stdout);
    fflush(stderr);
    capture c = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    assert_non_null(freopen("captured-out", "w", stdout));
    assert_non_null(freopen("captured-err", "w", stderr));
    return c;
}

char *capture_end(capture c, char **err)
{
    fflush(stdout);
    fflush(stderr);
    dup2(c.out, STDOUT_FILENO);
    dup2(c.err, STDERR_FILENO);
    close(c.out);
    close(c.err);
    *err = read_text("captured-err");
    return read_text("captured-out");
}
