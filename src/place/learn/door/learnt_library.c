/* Finding libmoirai-learn and loading it. It stays loaded: its BLAS has threads of its own. */
#include "place/learn/door/learnt.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libmoirai-learn.so"

/* The folder of the file that this code is in, libmoirai.so or a program. */
static bool own_folder(char *folder, size_t size)
{
    static const char here = 0;
    Dl_info info;
    struct link_map *file = NULL;
    char real[PATH_MAX];
    /* The loader has no path of the program itself. */
    bool library = dladdr1(&here, &info, (void **)&file, RTLD_DL_LINKMAP) && file->l_name[0];
    if (!realpath(library ? file->l_name : "/proc/self/exe", real))
        return false;
    *strrchr(real, '/') = '\0';
    return (size_t)snprintf(folder, size, "%s", real) < size;
}

bool place_learnt_find(char *path, size_t size, const char **why)
{
    static const char *const places[] = {"", "moirai/", MOIRAI_BIN_TO_LIB "/moirai/"};
    const char *told = getenv("MOIRAI_LEARN_LIBRARY");
    char folder[PATH_MAX];
    if (told && *told) {
        *why = "there is no file of the name that MOIRAI_LEARN_LIBRARY holds";
        return (size_t)snprintf(path, size, "%s", told) < size && !access(path, R_OK);
    }
    *why = FILE_NAME " is not here: it comes with the package libmoirai-learn, or with a build where OpenBLAS is";
    for (size_t i = 0; i < sizeof places / sizeof *places && own_folder(folder, sizeof folder); i++)
        if ((size_t)snprintf(path, size, "%s/%s%s", folder, places[i], FILE_NAME) < size && !access(path, R_OK))
            return true;
    return false;
}

static struct {
    const place_learnt_door *door; /* NULL: `message` says why */
    char message[512];
} opened;

static void open_once(void)
{
    const char *why;
    char path[PATH_MAX];
    if (!place_learnt_find(path, sizeof path, &why)) {
        snprintf(opened.message, sizeof opened.message, "%s", why);
        return;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const place_learnt_door *door = library ? dlsym(library, "moirai_learnt_library") : NULL;
    if (!door)
        snprintf(opened.message, sizeof opened.message, "%s", dlerror());
    else if (strcmp(door->version, MOIRAI_VERSION))
        snprintf(opened.message, sizeof opened.message, "%s is of version %s, libmoirai of %s", path, door->version,
                 MOIRAI_VERSION);
    else
        opened.door = door;
}

int place_learnt_open(const place_learnt_door **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    *out = opened.door;
    return opened.door ? 0 : moirai_error(MOIRAI_EFAIL, "%s", opened.message);
}
