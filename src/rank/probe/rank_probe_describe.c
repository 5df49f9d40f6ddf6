/* What this rank is: its machine by hwloc, its GPUs by NVML, its execution providers by ONNX Runtime. */
#include "rank/probe/rank_probe.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <moirai/error.h>
#include "rank/ort.h"
#include "util/util.h"

static const char *info(hwloc_obj_t at, const char *name)
{
    const char *text = at ? hwloc_obj_get_info_by_name(at, name) : NULL;
    return text && *text ? text : NULL;
}

/* x86 says its model; ARM gives the numbers of maker and part, which older hwloc passes over. */
static void describe_cpu(probe_rank *r, hwloc_topology_t t)
{
    hwloc_obj_t from[] = {hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0), hwloc_get_root_obj(t)};
    for (int i = 0; i < 2 && !*r->cpu; i++) {
        const char *model = info(from[i], "CPUModel"), *maker = info(from[i], "CPUImplementer"),
                   *part = info(from[i], "CPUPart");
        if (model)
            snprintf(r->cpu, sizeof r->cpu, "%s", model);
        else if (maker && part)
            snprintf(r->cpu, sizeof r->cpu, "cpu %s/%s", maker, part);
    }
    char maker[32], part[32];
    if (!*r->cpu && util_cpuinfo(maker, sizeof maker, "CPU implementer") && util_cpuinfo(part, sizeof part, "CPU part"))
        snprintf(r->cpu, sizeof r->cpu, "cpu %s/%s", maker, part);
    if (!*r->cpu && !util_cpuinfo(r->cpu, sizeof r->cpu, "model name"))
        snprintf(r->cpu, sizeof r->cpu, "cpu");
}

static void describe_cores(probe_rank *r, hwloc_topology_t t)
{
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    r->n_cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
    r->n_threads = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
    r->n_own = r->n_threads;
    if (own && !hwloc_get_cpubind(t, own, HWLOC_CPUBIND_THREAD)) {
        r->n_own = hwloc_bitmap_weight(own);
        if (!hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(t), own))
            hwloc_bitmap_list_snprintf(r->cores, sizeof r->cores, own);
    }
    hwloc_bitmap_free(own);
}

int rank_probe_describe(probe_rank *r)
{
    hwloc_topology_t t;
    memset(r, 0, sizeof *r);
    if (gethostname(r->host, sizeof r->host - 1))
        return moirai_error(MOIRAI_EFAIL, "this machine has no name");
    if (hwloc_topology_init(&t))
        return moirai_error(MOIRAI_EFAIL, "hwloc can't start");
    if (hwloc_topology_load(t)) {
        hwloc_topology_destroy(t);
        return moirai_error(MOIRAI_EFAIL, "hwloc can't read this machine");
    }
    if (getloadavg(&r->load, 1) < 1)
        r->load = -1;
    describe_cpu(r, t);
    describe_cores(r, t);
    r->memory_bytes = (int64_t)hwloc_get_root_obj(t)->total_memory;
    hwloc_topology_destroy(t);
    r->n_gpus = rank_probe_gpus(r->gpu, PROBE_MAX_GPUS);
    snprintf(r->onnxruntime, sizeof r->onnxruntime, "%s", OrtGetApiBase()->GetVersionString());
    return rank_ort_providers(r->providers, sizeof r->providers);
}
