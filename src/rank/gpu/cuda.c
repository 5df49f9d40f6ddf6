/* The CUDA driver through dlopen. The primary context is used, which is ONNX Runtime's, too: its streams and its memory
 * are ours and the other way round. */
#include "rank/gpu/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

enum { NON_BLOCKING = 1, LAZY_PEER_ACCESS = 1, PORTABLE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100 };

/* By the driver's names; 0 is success. Device addresses are whole numbers there. */
typedef struct driver {
    int (*cuInit)(unsigned flags);
    int (*cuGetErrorName)(int error, const char **text);
    int (*cuGetErrorString)(int error, const char **text);
    int (*cuDeviceGetCount)(int *n);
    int (*cuDeviceGet)(int *device, int number);
    int (*cuDeviceGetName)(char *text, int size, int device);
    int (*cuDeviceGetUuid)(unsigned char id[16], int device);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease_v2)(int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamDestroy_v2)(void *stream);
    int (*cuStreamSynchronize)(void *stream);
    int (*cuMemGetInfo_v2)(size_t *free, size_t *total);
    int (*cuMemAlloc_v2)(uint64_t *memory, size_t bytes);
    int (*cuMemFree_v2)(uint64_t memory);
    int (*cuMemHostAlloc)(void **memory, size_t bytes, unsigned flags);
    int (*cuMemFreeHost)(void *memory);
    int (*cuMemcpyHtoDAsync_v2)(uint64_t to, const void *from, size_t bytes, void *stream);
    int (*cuMemcpyDtoHAsync_v2)(void *to, uint64_t from, size_t bytes, void *stream);
    int (*cuMemcpyAsync)(uint64_t to, uint64_t from, size_t bytes, void *stream);
    int (*cuMemsetD8Async)(uint64_t to, unsigned char byte, size_t bytes, void *stream);
    int (*cuIpcGetMemHandle)(rank_cuda_handle *handle, uint64_t memory);
    int (*cuIpcOpenMemHandle_v2)(uint64_t *memory, rank_cuda_handle handle, unsigned flags);
    int (*cuIpcCloseMemHandle)(uint64_t memory);
} driver;

struct rank_cuda {
    driver d;
    void *library, *context;
    void *stream; /* where ONNX Runtime computes */
    void *copies; /* a stream of their own: no copy waits for a segment that is being computed */
    int number, device;
    bool retained, is_host;
    char name[128];
    unsigned char id[16];
};

/* ---- the library ---- */

#define CALL(name) \
    { \
#name, offsetof(driver, name) \
    }
static const struct {
    const char *name;
    size_t at;
} calls[] = {CALL(cuInit),
             CALL(cuGetErrorName),
             CALL(cuGetErrorString),
             CALL(cuDeviceGetCount),
             CALL(cuDeviceGet),
             CALL(cuDeviceGetName),
             CALL(cuDeviceGetUuid),
             CALL(cuDevicePrimaryCtxRetain),
             CALL(cuDevicePrimaryCtxRelease_v2),
             CALL(cuCtxSetCurrent),
             CALL(cuStreamCreate),
             CALL(cuStreamDestroy_v2),
             CALL(cuStreamSynchronize),
             CALL(cuMemGetInfo_v2),
             CALL(cuMemAlloc_v2),
             CALL(cuMemFree_v2),
             CALL(cuMemHostAlloc),
             CALL(cuMemFreeHost),
             CALL(cuMemcpyHtoDAsync_v2),
             CALL(cuMemcpyDtoHAsync_v2),
             CALL(cuMemcpyAsync),
             CALL(cuMemsetD8Async),
             CALL(cuIpcGetMemHandle),
             CALL(cuIpcOpenMemHandle_v2),
             CALL(cuIpcCloseMemHandle)};

static int load(rank_cuda *c)
{
    const char *given = getenv("MOIRAI_CUDA_DRIVER"), *file = given ? given : "libcuda.so.1";
    c->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!c->library)
        return moirai_error(MOIRAI_EFAIL, "no CUDA driver on this machine: %s", dlerror());
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *call = dlsym(c->library, calls[i].name);
        if (!call)
            return moirai_error(MOIRAI_EFAIL, "the CUDA driver %s is too old: it has no %s", file, calls[i].name);
        memcpy((char *)&c->d + calls[i].at, &call, sizeof call);
    }
    c->is_host = given && dlsym(c->library, "moirai_stand_in");
    return 0;
}

/* ---- errors ---- */

void rank_cuda_room(char *out, size_t size, const rank_cuda *c)
{
    size_t left = 0, total = 0;
    double gib = 1073741824.0;
    *out = '\0';
    if (c && !c->d.cuMemGetInfo_v2(&left, &total))
        snprintf(out, size, " (%.1f of %.1f GiB free)", (double)left / gib, (double)total / gib);
}

static int fail(const rank_cuda *c, int error, const char *what)
{
    const char *name = NULL, *words = NULL;
    c->d.cuGetErrorName(error, &name);
    c->d.cuGetErrorString(error, &words);
    return moirai_error(MOIRAI_EFAIL, "GPU %d: %s: %s (%s)", c->number, what, words ? words : "error",
                        name ? name : "unknown");
}

static int check(const rank_cuda *c, int error, const char *what)
{
    return error ? fail(c, error, what) : 0;
}

static uint64_t address(const void *memory)
{
    return (uint64_t)(uintptr_t)memory;
}

/* ---- opening ---- */

static int find(rank_cuda *c)
{
    int n = 0, error = c->d.cuInit(0);
    error = error ? error : c->d.cuDeviceGetCount(&n);
    if (error == NO_DEVICE || (!error && !n))
        return moirai_error(MOIRAI_EFAIL, "this machine has a CUDA driver, but no GPU that it may use");
    if (error)
        return fail(c, error, "the driver can't start");
    if (c->number < 0 || c->number >= n)
        return moirai_error(MOIRAI_EUSAGE, "ep \"cuda:%d\": this machine has %d GPU%s, numbered from 0", c->number, n,
                            n == 1 ? "" : "s");
    int rc = check(c, c->d.cuDeviceGet(&c->device, c->number), "can't be opened");
    rc = rc ? rc : check(c, c->d.cuDeviceGetName(c->name, sizeof c->name, c->device), "has no name");
    return rc ? rc : check(c, c->d.cuDeviceGetUuid(c->id, c->device), "has no id");
}

static int enter(rank_cuda *c)
{
    int rc = check(c, c->d.cuDevicePrimaryCtxRetain(&c->context, c->device), "no context");
    c->retained = !rc;
    rc = rc ? rc : rank_cuda_use(c);
    rc = rc ? rc : check(c, c->d.cuStreamCreate(&c->stream, NON_BLOCKING), "no stream");
    return rc ? rc : check(c, c->d.cuStreamCreate(&c->copies, NON_BLOCKING), "no stream");
}

int rank_cuda_open(rank_cuda **out, int number)
{
    *out = NULL;
    rank_cuda *c = util_alloc(1, sizeof *c);
    if (!c)
        return MOIRAI_EFAIL;
    c->number = number;
    int rc = load(c);
    rc = rc ? rc : find(c);
    rc = rc ? rc : enter(c);
    if (rc) {
        rank_cuda_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

/* The library stays: other libraries hold on to the driver, too, and its threads outlive a dlclose. */
void rank_cuda_close(rank_cuda *c)
{
    if (!c)
        return;
    if (c->stream)
        c->d.cuStreamDestroy_v2(c->stream);
    if (c->copies)
        c->d.cuStreamDestroy_v2(c->copies);
    if (c->retained)
        c->d.cuDevicePrimaryCtxRelease_v2(c->device);
    free(c);
}

int rank_cuda_use(const rank_cuda *c)
{
    return check(c, c->d.cuCtxSetCurrent(c->context), "its context can't be used");
}

int rank_cuda_number(const rank_cuda *c)
{
    return c->number;
}

const char *rank_cuda_name(const rank_cuda *c)
{
    return c->name;
}

const unsigned char *rank_cuda_id(const rank_cuda *c)
{
    return c->id;
}

void *rank_cuda_stream(const rank_cuda *c)
{
    return c->stream;
}

bool rank_cuda_is_host(const rank_cuda *c)
{
    return c->is_host;
}

int rank_cuda_wait(const rank_cuda *c)
{
    return check(c, c->d.cuStreamSynchronize(c->stream), "computing");
}

/* ---- memory ---- */

int rank_cuda_alloc(void **out, const rank_cuda *c, size_t bytes)
{
    uint64_t memory = 0;
    int error = c->d.cuMemAlloc_v2(&memory, UTIL_MAX(bytes, (size_t)1));
    *out = (void *)(uintptr_t)memory;
    if (error != OUT_OF_MEMORY)
        return check(c, error, "memory");
    char room[64];
    *out = NULL;
    rank_cuda_room(room, sizeof room, c);
    return moirai_error(MOIRAI_EFAIL, "GPU %d is out of memory: no room for %zu bytes of tensors%s", c->number, bytes,
                        room);
}

void rank_cuda_free(const rank_cuda *c, void *memory)
{
    if (memory)
        c->d.cuMemFree_v2(address(memory));
}

int rank_cuda_host_alloc(void **out, const rank_cuda *c, size_t bytes)
{
    *out = NULL;
    return check(c, c->d.cuMemHostAlloc(out, UTIL_MAX(bytes, (size_t)1), PORTABLE), "host memory");
}

void rank_cuda_host_free(const rank_cuda *c, void *memory)
{
    if (memory)
        c->d.cuMemFreeHost(memory);
}

/* ---- copies ---- */

static int end_copy(const rank_cuda *c, int rc)
{
    return rc ? rc : check(c, c->d.cuStreamSynchronize(c->copies), "copying");
}

int rank_cuda_put(const rank_cuda *c, void *to, const void *from_host, size_t bytes)
{
    int rc = bytes ? check(c, c->d.cuMemcpyHtoDAsync_v2(address(to), from_host, bytes, c->copies), "copying in") : 0;
    return end_copy(c, rc);
}

int rank_cuda_get(const rank_cuda *c, void *to_host, const void *from, size_t bytes)
{
    int rc = bytes ? check(c, c->d.cuMemcpyDtoHAsync_v2(to_host, address(from), bytes, c->copies), "copying out") : 0;
    return end_copy(c, rc);
}

int rank_cuda_copy(const rank_cuda *c, void *to, const void *from, size_t bytes)
{
    int rc = bytes ? check(c, c->d.cuMemcpyAsync(address(to), address(from), bytes, c->copies), "copying") : 0;
    return end_copy(c, rc);
}

int rank_cuda_fill(const rank_cuda *c, void *to, int byte, size_t bytes)
{
    int rc = check(c, c->d.cuMemsetD8Async(address(to), (unsigned char)byte, bytes, c->copies), "filling");
    return end_copy(c, rc);
}

/* ---- memory of other processes ---- */

int rank_cuda_export(rank_cuda_handle *out, const rank_cuda *c, void *memory)
{
    return check(c, c->d.cuIpcGetMemHandle(out, address(memory)), "its memory can't be shared (CUDA IPC)");
}

int rank_cuda_map(void **out, const rank_cuda *c, const rank_cuda_handle *handle)
{
    uint64_t memory = 0;
    int rc = check(c, c->d.cuIpcOpenMemHandle_v2(&memory, *handle, LAZY_PEER_ACCESS),
                   "memory of another rank can't be mapped (CUDA IPC; MOIRAI_TRANSPORT=host does without)");
    *out = (void *)(uintptr_t)memory;
    return rc;
}

void rank_cuda_unmap(const rank_cuda *c, void *mapped)
{
    if (mapped)
        c->d.cuIpcCloseMemHandle(address(mapped));
}
