/* A thread that reads nothing but a model's folder.
 *
 * What a model names, ONNX Runtime opens. The importer refuses names that lead out of the model's folder, and sub-models
 * name their own files only (src/onnx/onnx_external.c); this is the second lock, which holds for what the importer does not
 * know of. Linux has it since 5.13: Landlock, rules that a thread gives itself and can't take back.
 *
 * A thread, not the process: MPI moves large messages between processes of a machine by reading their memory, which the
 * kernel forbids a confined process, and CUDA, MPS and MPI open what they like, when they like. ONNX Runtime opens files
 * while it loads a model, in the thread that asks for it, and never again. So this thread is confined, loads, and ends.
 * It can still read what loading may need: system libraries, those folders from which libraries were loaded (cuDNN opens
 * its parts late), devices of NVIDIA, and what the kernel tells of the machine. Only reading is confined: no operator
 * writes. It is no wall against faults in ONNX Runtime itself: threads share their memory. */
#include "rank/host/rank_confine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct task {
    void (*work)(void *data);
    void *data;
    const char *model;
} task;

#if __has_include(<linux/landlock.h>)

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int rank_confine_version(void)
{
    const char *given = getenv("MOIRAI_LANDLOCK");
    if (given && !strcmp(given, "0"))
        return 0;
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

/* What is not there can't be read, either. */
static void allow(int rules, const char *path)
{
    struct landlock_path_beneath_attr below = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
                                               .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (below.parent_fd < 0)
        return;
    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
    close(below.parent_fd);
}

static void allow_folder_of(int rules, const char *file)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(file, '/');
    size_t n = slash ? (size_t)(slash - file) : 1;
    if (n >= sizeof folder)
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(n ? n : 1), slash ? file : ".");
    allow(rules, folder);
}

/* The folder of the path, and of the file that it leads to: a model may be a link into a cache. */
static void allow_model(int rules, const char *model)
{
    char *full = realpath(model, NULL);
    allow_folder_of(rules, model);
    if (full)
        allow_folder_of(rules, full);
    free(full);
}

static int allow_library(struct dl_phdr_info *info, size_t size, void *rules)
{
    (void)size;
    if (info->dlpi_name && strrchr(info->dlpi_name, '/') > info->dlpi_name)
        allow_folder_of(*(const int *)rules, info->dlpi_name);
    return 0;
}

static void allow_list(int rules, const char *list)
{
    char *copy = list ? strdup(list) : NULL, *rest = copy;
    for (char *path; rest && (path = strsep(&rest, ":"));)
        if (*path == '/')
            allow(rules, path);
    free(copy);
}

static void allow_system(int rules)
{
    static const char *const path[] = {
        "/usr",       "/lib",          "/lib64",     "/opt",          "/etc/ld.so.cache", "/sys",
        "/proc/self", "/proc/cpuinfo", "/proc/stat", "/proc/meminfo", "/proc/driver",     "/proc/devices",
        "/proc/sys",  "/dev/null",     "/dev/zero",  "/dev/random",   "/dev/urandom",     "/dev/shm"};
    glob_t devices = {0};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        allow(rules, path[i]);
    if (!glob("/dev/nvidia*", 0, NULL, &devices))
        for (size_t i = 0; i < devices.gl_pathc; i++)
            allow(rules, devices.gl_pathv[i]);
    globfree(&devices);
    dl_iterate_phdr(allow_library, &rules);
    allow_list(rules, getenv("LD_LIBRARY_PATH"));
    allow_list(rules, getenv("CUDA_CACHE_PATH"));
    char cache[PATH_MAX];
    const char *home = getenv("HOME");
    if (home && *home == '/' && (size_t)snprintf(cache, sizeof cache, "%s/.nv", home) < sizeof cache)
        allow(rules, cache);
}

/* A kernel that has Landlock may still say no (a container's filter): then the thread goes on as it is. */
static void confine(const char *model)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
    if (!rank_confine_version())
        return;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (rules < 0)
        return;
    allow_system(rules);
    if (model)
        allow_model(rules, model);
    if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
}

#else

int rank_confine_version(void)
{
    return 0;
}

static void confine(const char *model)
{
    (void)model;
}

#endif

static void *run(void *data)
{
    const task *t = data;
    confine(t->model);
    t->work(t->data);
    return NULL;
}

void rank_confined(void (*work)(void *data), void *data, const char *model)
{
    enum { STACK_BYTES = 16 << 20 }; /* ONNX Runtime walks graphs by recursion, and threads may have less than main */
    task t = {work, data, model};
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int error = pthread_create(&thread, &attr, run, &t);
    pthread_attr_destroy(&attr);
    if (error)
        work(data); /* no memory for a thread: the session will say so */
    else
        pthread_join(thread, NULL);
}
