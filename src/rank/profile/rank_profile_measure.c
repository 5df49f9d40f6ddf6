/* All pieces on one device. */
#include "rank/profile/rank_profile_job.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/util.h"

/* What the kernel says of a core: cores of one processor can be unequal. */
static long core_figure(int core, const char *file)
{
    char path[128];
    long value = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", core, file);
    FILE *f = fopen(path, "r");
    if (f) {
        if (fscanf(f, "%ld", &value) != 1)
            value = 0;
        fclose(f);
    }
    return value;
}

/* All that a time depends on beside the piece; part of the cache's key. */
static void describe_device(profile_job *j, const rank_ort *ort, const probe_rank *machine)
{
    const moirai_device *d = &j->cluster->device[j->w.rank];
    cpu_set_t own;
    int n = 0, first = 0;
    CPU_ZERO(&own);
    if (!sched_getaffinity(0, sizeof own, &own)) {
        n = CPU_COUNT(&own);
        while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &own))
            first++;
    }
    profile_summary *s = &j->summary[j->w.rank];
    snprintf(s->host, sizeof s->host, "%s", machine->host);
    s->load = machine->load;
    s->n_threads = machine->n_threads;
    snprintf(s->device, sizeof s->device,
             "%.120s; %d of %d cores; %ld kHz; capacity %ld; ep %.40s; %d threads%s; onnxruntime %.40s", machine->cpu,
             n, machine->n_threads, core_figure(first, "cpufreq/cpuinfo_max_freq"), core_figure(first, "cpu_capacity"),
             d->ep && *d->ep ? d->ep : "cpu", ort->threads, ort->spins ? " that spin" : "", machine->onnxruntime);
    if (ort->cuda) {
        size_t used = strlen(s->device);
        snprintf(s->device + used, sizeof s->device - used, "; %.40s; share %g; %s", rank_cuda_name(ort->cuda),
                 d->share > 0 ? d->share : 1.0, ort->graphs ? "recorded" : "launched");
    }
}

static void measure_one(profile_job *j, profile_bench *b, int32_t i)
{
    profile_summary *s = &j->summary[j->w.rank];
    profile_time *t = &j->time[(size_t)j->w.rank * (size_t)j->n_pieces + (size_t)i];
    const profile_piece *p = &j->piece[i];
    profile_key key = rank_profile_key(p->data, p->length, s->device);
    if (!j->fresh && rank_profile_cache_get(t, j->cache, &key, j->cache_days)) {
        s->n_cached++;
        return;
    }
    if (rank_profile_bench_run(t, b, p->data, p->length)) {
        if (!s->n_failed++)
            snprintf(s->first_failure, sizeof s->first_failure, "%s", moirai_error_message());
        return;
    }
    s->n_measured++;
    s->n_again += t->batches > 1;
    rank_profile_cache_put(t, j->cache, &key, s->device); /* a full disk costs time later, not the result now */
}

/* The network as one, where the device can hold it: what a plan will be compared with. One that can't run so leaves that
 * unknown. */
static void measure_whole(profile_job *j, profile_bench *b)
{
    profile_summary *s = &j->summary[j->w.rank];
    profile_key key = rank_profile_key(j->whole.data, j->whole.length, s->device);
    s->whole.median_ns = -1;
    if (!j->whole.length || j->weight_bytes > j->cluster->device[j->w.rank].memory_bytes ||
        (!j->fresh && rank_profile_cache_get(&s->whole, j->cache, &key, j->cache_days)))
        return;
    if (!rank_profile_bench_whole(&s->whole, b, j->whole.data, j->whole.length))
        rank_profile_cache_put(&s->whole, j->cache, &key, s->device);
}

/* One line that the command turns into a bar. */
static void tell(const profile_job *j, int32_t done)
{
    char line[256];
    int n = snprintf(line, sizeof line, "moirai-rank: progress %d %d %.150s\n", done, j->n_pieces,
                     j->cluster->device[j->w.rank].name);
    if (j->progress && write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

int rank_profile_measure(profile_job *j, const rank_ort *ort)
{
    profile_bench *b;
    probe_rank *machine = util_alloc(1, sizeof *machine);
    int rc = machine ? rank_probe_describe(machine) : MOIRAI_EFAIL;
    rc = rc ? rc : rank_profile_bench_open(&b, ort, &j->effort);
    if (!rc) {
        double said = util_seconds();
        describe_device(j, ort, machine);
        j->summary[j->w.rank].overhead_ns = rank_profile_bench_overhead(b);
        for (int32_t i = 0; i < j->n_pieces; i++) {
            measure_one(j, b, i);
            if (util_seconds() - said > 0.1 || i + 1 == j->n_pieces) {
                said = util_seconds();
                tell(j, i + 1);
            }
        }
        measure_whole(j, b);
        rank_profile_bench_free(b);
    }
    free(machine);
    return rc;
}
