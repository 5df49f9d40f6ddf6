/* A CUDA driver whose GPUs are this machine's memory, as a library of its own (MOIRAI_CUDA_DRIVER names it): what
 * moirai-rank asks of libcuda, so that its GPU path can be tested where there is no GPU. Memory that other processes map
 * is shared memory, so the transports are the real ones; operators run on the CPU.
 *
 * STAND_IN_GPUS: how many there are (1). STAND_IN_BYTES: memory of each, in bytes (1 GiB). STAND_IN_LOG: a file that
 * gets a line for every mapping and every copy, and at the start for the share that MPS is asked for. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 4096, OUT_OF_MEMORY = 2, BAD_VALUE = 1, NO_DEVICE = 100, BAD_DEVICE = 101 };

typedef struct handle {
    char name[48];
    uint64_t bytes;
    char rest[8];
} handle;

static struct {
    uint64_t at;
    handle h;
    int fd;
} memory[MOST];
static atomic_int n_memory;
static size_t used_bytes;
static char contexts[64];
__attribute__((visibility("default"))) const int moirai_stand_in = 1;

static size_t number(const char *name, size_t standard)
{
    const char *text = getenv(name);
    return text ? (size_t)strtoull(text, NULL, 10) : standard;
}

static void note(const char *what, size_t bytes)
{
    const char *path = getenv("STAND_IN_LOG");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (fd >= 0) {
        dprintf(fd, "%s %zu\n", what, bytes);
        close(fd);
    }
}

#define DRIVER __attribute__((visibility("default"))) int
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

DRIVER cuInit(unsigned flags)
{
    (void)flags;
    note("share", number("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", 100));
    return number("STAND_IN_GPUS", 1) ? 0 : NO_DEVICE;
}

DRIVER cuGetErrorName(int error, const char **text)
{
    *text = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
    return 0;
}

DRIVER cuGetErrorString(int error, const char **text)
{
    *text = error == OUT_OF_MEMORY ? "out of memory" : "the stand-in refused";
    return 0;
}

DRIVER cuDeviceGetCount(int *n)
{
    *n = (int)number("STAND_IN_GPUS", 1);
    return 0;
}

DRIVER cuDeviceGet(int *device, int index)
{
    *device = index;
    return (size_t)index < number("STAND_IN_GPUS", 1) ? 0 : BAD_DEVICE;
}

DRIVER cuDeviceGetName(char *text, int size, int device)
{
    snprintf(text, (size_t)size, "stand-in %d", device);
    return 0;
}

DRIVER cuDeviceGetUuid(unsigned char id[16], int device)
{
    memset(id, device + 1, 16);
    return 0;
}

DRIVER cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &contexts[device];
    return 0;
}

DRIVER cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return 0;
}

/* As with the real one, a thread without a context can do nothing. */
static _Thread_local void *current;

DRIVER cuCtxSetCurrent(void *context)
{
    current = context;
    return 0;
}

DRIVER cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = malloc(1);
    return 0;
}

DRIVER cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return 0;
}

DRIVER cuStreamSynchronize(void *stream)
{
    return current && stream ? 0 : BAD_VALUE;
}

DRIVER cuMemGetInfo_v2(size_t *left, size_t *total)
{
    *total = number("STAND_IN_BYTES", (size_t)1 << 30);
    *left = *total - used_bytes;
    return 0;
}

static int map(uint64_t *out, const handle *h, int fd)
{
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED || n_memory == MOST)
        return BAD_VALUE;
    *out = (uint64_t)(uintptr_t)at;
    int i = atomic_fetch_add(&n_memory, 1);
    memory[i].at = *out;
    memory[i].h = *h;
    memory[i].fd = fd;
    return 0;
}

DRIVER cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    size_t left, total;
    handle h = {.bytes = bytes};
    cuMemGetInfo_v2(&left, &total);
    if (!current)
        return BAD_VALUE;
    if (bytes > left)
        return OUT_OF_MEMORY;
    int fd = memfd_create("stand-in", MFD_CLOEXEC); /* gone with the process, however it ends */
    snprintf(h.name, sizeof h.name, "/proc/%ld/fd/%d", (long)getpid(), fd);
    int error = fd < 0 || ftruncate(fd, (off_t)bytes) ? BAD_VALUE : map(out, &h, fd);
    if (!error) {
        memset((void *)(uintptr_t)*out, 0xa5, bytes); /* nothing may rely on zeros */
        used_bytes += bytes;
    }
    return error;
}

static int unmap(uint64_t at, int own)
{
    for (int i = 0; i < n_memory; i++)
        if (memory[i].at == at) {
            munmap((void *)(uintptr_t)at, memory[i].h.bytes);
            close(memory[i].fd);
            if (own)
                used_bytes -= memory[i].h.bytes;
            memory[i].at = 0;
            return 0;
        }
    return BAD_VALUE;
}

DRIVER cuMemFree_v2(uint64_t at)
{
    return unmap(at, 1);
}

DRIVER cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    *out = malloc(bytes);
    return *out ? 0 : OUT_OF_MEMORY;
}

DRIVER cuMemFreeHost(void *at)
{
    free(at);
    return 0;
}

static int copy(const char *what, void *to, const void *from, size_t bytes)
{
    if (!current)
        return BAD_VALUE;
    note(what, bytes);
    memcpy(to, from, bytes);
    return 0;
}

DRIVER cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    (void)stream;
    return copy("in", (void *)(uintptr_t)to, from, bytes);
}

DRIVER cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    return copy("out", to, (const void *)(uintptr_t)from, bytes);
}

DRIVER cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    return copy("across", (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

DRIVER cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream)
{
    (void)stream;
    memset((void *)(uintptr_t)to, byte, bytes);
    return current ? 0 : BAD_VALUE;
}

DRIVER cuIpcGetMemHandle(handle *h, uint64_t at)
{
    for (int i = 0; i < n_memory; i++)
        if (memory[i].at == at) {
            *h = memory[i].h;
            return 0;
        }
    return BAD_VALUE;
}

DRIVER cuIpcOpenMemHandle_v2(uint64_t *out, handle h, unsigned flags)
{
    (void)flags;
    note("map", h.bytes);
    return map(out, &h, open(h.name, O_RDWR | O_CLOEXEC));
}

DRIVER cuIpcCloseMemHandle(uint64_t at)
{
    return unmap(at, 0);
}
