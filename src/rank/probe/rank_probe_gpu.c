/* GPUs by NVML, NVIDIA's management library, which comes with the driver: looked for at run time, missed by nobody. */
#include "rank/probe/rank_probe.h"

#include <dlfcn.h>
#include <stdio.h>

/* The few of NVML's calls that we need; 0 is success. */
typedef struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, void **device);
    int (*name)(void *device, char *text, unsigned size);
    int (*memory)(void *device, unsigned long long *total_free_used);
} nvml;

static bool load(nvml *n, void *library)
{
    const char *const names[] = {"nvmlInit_v2",           "nvmlShutdown",
                                 "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
                                 "nvmlDeviceGetName",     "nvmlDeviceGetMemoryInfo"};
    void **const calls[] = {(void **)&n->init,     (void **)&n->shutdown, (void **)&n->count,
                            (void **)&n->by_index, (void **)&n->name,     (void **)&n->memory};
    for (int i = 0; i < 6; i++)
        if (!(*calls[i] = dlsym(library, names[i])))
            return false;
    return true;
}

int32_t rank_probe_gpus(probe_gpu *out, int32_t most)
{
    nvml n;
    unsigned count = 0;
    int32_t found = 0;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 0;
    if (!load(&n, library) || n.init()) {
        dlclose(library);
        return 0;
    }
    if (n.count(&count))
        count = 0;
    for (unsigned i = 0; i < count && found < most; i++) {
        void *device;
        unsigned long long memory[3] = {0};
        probe_gpu *g = &out[found];
        if (n.by_index(i, &device) || n.name(device, g->name, sizeof g->name) || n.memory(device, memory))
            continue;
        g->memory_bytes = (int64_t)memory[0];
        found++;
    }
    n.shutdown();
    dlclose(library);
    return found;
}
