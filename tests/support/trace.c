#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Leaks can't be looked for under a tracer. */
const char *const trace_prefix = "LC_ALL=C ASAN_OPTIONS=detect_leaks=0 strace -f -qq -y -s 4096 -o trace "
                                 "-e trace=file,process,network";

bool trace_works(void)
{
    static int works = -1;
    if (works < 0)
        works = system("strace -o /dev/null true >/dev/null 2>&1") == 0;
    return works;
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static bool is_below(const char *path, const char *const *folders)
{
    for (; *folders; folders++) {
        size_t n = strlen(*folders);
        if (begins(path, *folders) || (begins(*folders, path) && strlen(path) + 1 == n)) /* or the folder itself */
            return true;
    }
    return false;
}

static bool is_system(const char *path)
{
    static const char *const parts[] = {"/usr/",     "/lib",      "/etc/ld.so.", "/proc/",       "/sys/",
                                        "/dev/null", "/dev/pts/", "/dev/tty",    "/dev/urandom", NULL};
    return is_below(path, parts);
}

/* The name of the call on a line "PID name(...". */
static const char *call_of(const char *line)
{
    line += strspn(line, "0123456789 ");
    return line;
}

static bool is_call(const char *call, const char *const *list)
{
    for (; *list; list++)
        if (begins(call, *list) && call[strlen(*list)] == '(')
            return true;
    return false;
}

/* "... = 3</path>": what was opened, links resolved. */
static const char *opened(char *line)
{
    char *at = strstr(line, ") = "), *from, *to;
    for (char *next; at && (next = strstr(at + 1, ") = "));)
        at = next;
    if (!at || at[4] == '-' || !(from = strchr(at, '<')) || !(to = strrchr(from, '>')))
        return NULL;
    *to = '\0';
    return from + 1;
}

/* The first path within quotes that is none of ours. */
static const char *changed(char *call, const char *const *folders)
{
    if (strstr(call, ") = -1"))
        return NULL;
    for (char *from = strchr(call, '"'), *to; from && (to = strchr(from + 1, '"')); from = strchr(to + 1, '"')) {
        *to = '\0';
        if (from[1] != '/' || strstr(from, "..") || !is_below(from + 1, folders))
            return from + 1;
    }
    return NULL;
}

static const char *judge(char *line, const char *const *folders, bool alone, int *n_programs)
{
    static const char *const opening[] = {"open", "openat", "openat2", "creat", NULL};
    static const char *const starting[] = {"execve", "execveat", "fork", "vfork", NULL};
    static const char *const talking[] = {"socket", "connect", "bind", NULL};
    static const char *const changing[] = {"rename",  "renameat", "renameat2", "unlink",   "unlinkat", "mkdir",
                                           "mkdirat", "rmdir",    "link",      "linkat",   "symlink",  "symlinkat",
                                           "chmod",   "fchmodat", "chown",     "fchownat", "truncate", "mknod",
                                           "mknodat", "setxattr", NULL};
    char *call = (char *)call_of(line);
    const char *path = is_call(call, opening) ? opened(call) : NULL;
    if (path && !is_system(path) && !is_below(path, folders))
        return path;
    if (is_call(call, starting) && ++*n_programs > 1 && alone)
        return call;
    if (alone && is_call(call, talking))
        return call;
    return is_call(call, changing) ? changed(call, folders) : NULL;
}

const char *trace_fault(const char *const *folders, bool alone)
{
    static char line[20000];
    FILE *f = fopen("trace", "r");
    const char *fault = f ? NULL : "no trace";
    int n_programs = 0;
    while (f && !fault && fgets(line, sizeof line, f))
        fault = judge(line, folders, alone, &n_programs);
    if (f)
        fclose(f);
    return fault;
}
