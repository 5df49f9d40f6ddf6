/* What this rank is: its machine by the kernel, its GPUs by NVML, its execution providers by ONNX Runtime. */
#include "rank/probe/rank_probe.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <moirai/error.h>
#include "rank/ort.h"
#include "util/util.h"

/* x86 says its model; ARM gives the numbers of maker and part. */
static void describe_cpu(probe_rank *r)
{
    char maker[32], part[32];
    if (util_cpuinfo(r->cpu, sizeof r->cpu, "model name"))
        return;
    bool known = util_cpuinfo(maker, sizeof maker, "CPU implementer") && util_cpuinfo(part, sizeof part, "CPU part");
    if (known)
        snprintf(r->cpu, sizeof r->cpu, "cpu %s/%s", maker, part);
    else
        snprintf(r->cpu, sizeof r->cpu, "cpu");
}

/* Threads that are the first of their core; those that are switched off have no such file. */
static int32_t count_cores(void)
{
    int32_t n = 0;
    for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
        char path[96];
        long first = -1;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%ld/topology/thread_siblings_list", cpu);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        n += fscanf(file, "%ld", &first) == 1 && first == cpu;
        fclose(file);
    }
    return n;
}

/* "0-3,6" */
static void list_cores(char *out, size_t size, const cpu_set_t *own)
{
    size_t used = 0;
    for (int first = 0, end; first < CPU_SETSIZE && used < size; first = end) {
        end = first + 1;
        if (!CPU_ISSET(first, own))
            continue;
        while (end < CPU_SETSIZE && CPU_ISSET(end, own))
            end++;
        used += (size_t)snprintf(out + used, size - used, "%s%d", used ? "," : "", first);
        if (end > first + 1 && used < size)
            used += (size_t)snprintf(out + used, size - used, "-%d", end - 1);
    }
}

static void describe_cores(probe_rank *r)
{
    cpu_set_t own;
    r->n_threads = util_cores();
    r->n_cores = count_cores();
    if (!r->n_cores)
        r->n_cores = r->n_threads;
    r->n_own = util_own_cores();
    if (r->n_own < r->n_threads && !sched_getaffinity(0, sizeof own, &own))
        list_cores(r->cores, sizeof r->cores, &own);
}

int rank_probe_describe(probe_rank *r)
{
    memset(r, 0, sizeof *r);
    if (gethostname(r->host, sizeof r->host - 1))
        return moirai_error(MOIRAI_EFAIL, "this machine has no name");
    if (getloadavg(&r->load, 1) < 1)
        r->load = -1;
    describe_cpu(r);
    describe_cores(r);
    r->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    r->n_gpus = rank_probe_gpus(r->gpu, PROBE_MAX_GPUS);
    snprintf(r->onnxruntime, sizeof r->onnxruntime, "%s", rank_ort_version());
    return rank_ort_providers(r->providers, sizeof r->providers);
}
