/* Files that pass between the command and its ranks live in a folder of their own. */
#include "cli/launch.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int moirai_launch_folder_new(char *out, size_t size)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(out, size, "%s/moirai-XXXXXX", base && *base ? base : "/tmp");
    if (n < 0 || (size_t)n >= size)
        return moirai_error(MOIRAI_EFAIL, "TMPDIR is too long");
    return mkdtemp(out) ? 0 : moirai_error(MOIRAI_EFAIL, "%s: %s", out, strerror(errno));
}

void moirai_launch_folder_remove(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(folder);
}
