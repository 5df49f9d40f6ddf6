/* Where ONNX Runtime is. A build for one machine is linked with it. One that goes to other machines, as a wheel does, looks
 * for it when it is needed: its one entry, OrtGetApiBase, gives a table of functions by version, so that nothing else of
 * the library has to be known before. PyPI's onnxruntime has it in a folder beside that of this package. */
#include "rank/ort.h"

#include <dlfcn.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <moirai/error.h>
#include "util/util.h"

#if MOIRAI_ORT_LATE
typedef const OrtApiBase *(*entry)(void);

static const OrtApiBase *base_in(const char *path)
{
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    entry get = library ? (entry)dlsym(library, "OrtGetApiBase") : NULL; /* stays open as long as the process */
    return get ? get() : NULL;
}

/* The library of the package onnxruntime where this program is a file of the package moirai. */
static const OrtApiBase *base_in_package(void)
{
    char self[4096], pattern[4200];
    const OrtApiBase *base = NULL;
    glob_t found;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    snprintf(pattern, sizeof pattern, "%s/../onnxruntime/capi/libonnxruntime.so.*", dirname(self));
    if (!glob(pattern, 0, NULL, &found))
        base = base_in(found.gl_pathv[0]);
    globfree(&found);
    return base;
}

static const OrtApiBase *find_base(void)
{
    const char *given = getenv("MOIRAI_ONNXRUNTIME");
    const OrtApiBase *base = given ? base_in(given) : base_in_package();
    if (!base && !given)
        base = base_in("libonnxruntime.so.1");
    if (!base && !given)
        base = base_in("libonnxruntime.so");
    if (!base && given)
        moirai_error(MOIRAI_EFAIL, "MOIRAI_ONNXRUNTIME=%s: no ONNX Runtime", given);
    else if (!base)
        moirai_error(MOIRAI_EFAIL, "ONNX Runtime is not here: pip install onnxruntime, or set MOIRAI_ONNXRUNTIME to "
                                   "the path of libonnxruntime.so");
    return base;
}
#else
static const OrtApiBase *find_base(void)
{
    return OrtGetApiBase();
}
#endif

/* Asked for before other threads start. */
static const OrtApiBase *base(void)
{
    static const OrtApiBase *found;
    if (!found)
        found = find_base();
    return found;
}

const OrtApi *rank_ort_api(void)
{
    if (!base())
        return NULL;
    const OrtApi *api = base()->GetApi(ORT_API_VERSION);
    if (!api)
        moirai_error(MOIRAI_EFAIL, "ONNX Runtime %s is older than the version 1.%d that moirai was built for",
                     base()->GetVersionString(), ORT_API_VERSION);
    return api;
}

const char *rank_ort_version(void)
{
    return base() ? base()->GetVersionString() : "";
}
