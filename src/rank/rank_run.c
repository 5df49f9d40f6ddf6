/* moirai-rank run JOB: one device of a distributed inference. moirai-rank run - : the same, the job's path comes from
 * rank 0 (under a given mpirun, only rank 0 knows it). moirai-rank fail CODE MESSAGE: rank 0 could not prepare a job;
 * the others learn it and all end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <moirai/cluster.h>
#include "rank/gpu/mps.h"
#include "rank/rank.h"
#include "rank/rank_exec.h"

/* ---- who runs what ---- */

/* The path of the job from rank 0; empty: rank 0 has none. */
static void share_path(const rank_world *w, char path[4096])
{
    rank_world_bcast(w, path, 4096, 0);
}

static const job_device *own_device(const rank_job *job, int rank)
{
    for (int k = 0; k < job->n_devices; k++)
        if (job->device[k].rank == rank)
            return &job->device[k];
    return NULL;
}

static int check_size(const rank_world *w, const rank_job *job)
{
    int *limit = NULL, flag = 0;
    if (w->size < job->n_ranks)
        return moirai_error(MOIRAI_EUSAGE, "the plan uses %d devices, mpirun started %d ranks", job->n_ranks, w->size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag);
    for (int i = 0; i < job->n_transfers && flag; i++)
        if (job->transfer[i].tag > *limit)
            return moirai_error(MOIRAI_EFAIL, "more transfers between two devices than MPI has tags (%d)", *limit);
    return 0;
}

/* ---- running ---- */

static void keep_times(const rank_exec *x, int64_t *row)
{
    for (int i = 0; i < x->device->n_segments; i++) {
        *row++ = x->segment_start_ns[i];
        *row++ = x->segment_finish_ns[i];
    }
    for (int i = 0; i < x->n_sends; i++) {
        *row++ = x->send[i].start_ns;
        *row++ = x->send[i].finish_ns;
    }
    for (int i = 0; i < x->n_recvs; i++)
        *row++ = x->recv[i].finish_ns;
}

/* Between runs, twice a second at most: nothing that is measured waits for it. */
static void tell(const rank_exec *x, int64_t done, double *told_s)
{
    const rank_job *job = x->job;
    int64_t all = job->warmup + 1 + job->runs;
    double now = util_seconds();
    if (!job->progress || x->world->rank || (now - *told_s < 0.5 && done < all))
        return;
    *told_s = now;
    char line[80];
    int n = snprintf(line, sizeof line, "moirai-rank: progress %lld %lld\n", (long long)done, (long long)all);
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        *told_s = 1e300; /* nobody listens */
}

static int finish(rank_exec *x, int64_t *time, int64_t row, const int64_t *begin)
{
    rank_clock_align(&x->clock, x->world, 1);
    for (int64_t i = 0; i < row * x->job->runs; i++)
        time[i] = rank_clock_common_ns(&x->clock, time[i]) - begin[i / row];
    int rc = rank_result_collect(x, time, row * x->job->runs);
    rank_gpu_let_go(x);
    return rank_world_agree(x->world, rc);
}

static int run_all(rank_exec *x)
{
    const rank_job *job = x->job;
    int64_t row = 2 * (int64_t)x->device->n_segments + 2 * (int64_t)x->n_sends + x->n_recvs;
    int64_t *time = util_alloc((size_t)(row * job->runs), sizeof *time);
    int64_t *begin = util_alloc((size_t)job->runs, sizeof *begin);
    x->own_core = rank_world_own_core();
    int rc = time && begin ? rank_exec_start(x) : MOIRAI_EFAIL;
    rc = rank_world_agree(x->world, rc);
    /* This thread works little and must not wait for the computing one where both have one core. Users who may not
     * raise a priority have transfers that wait for the end of a time slice. */
    setpriority(PRIO_PROCESS, 0, -15);
    if (!rc) {
        rank_clock_align(&x->clock, x->world, 0);
        double told_s = 0;
        for (int64_t run = -job->warmup - 1; run < job->runs; run++) { /* one more: it learns the sizes */
            int64_t begin_ns;
            rank_comm_run(x, (int)(run + job->warmup + 1), &begin_ns);
            if (run == -job->warmup - 1 && (rc = rank_gpu_settle(x, x->world, job)))
                break;
            tell(x, run + job->warmup + 2, &told_s);
            if (run < 0)
                continue;
            begin[run] = begin_ns;
            keep_times(x, time + run * row);
        }
        rc = rc ? rc : finish(x, time, row, begin);
    }
    free(time);
    free(begin);
    return rc;
}

static int load(rank_exec **out, rank_ort **ort, const rank_world *w, const rank_job *job, const job_device *d)
{
    int rc = rank_ort_open(ort, &d->ort);
    rc = rc ? rc : rank_exec_open(out, w, job, d, *ort);
    return rc ? moirai_error_prefix(rc, "device '%s'", d->name) : 0;
}

/* Ranks beyond the devices take part in what is collective and do nothing else. */
static int idle(const rank_world *w, const rank_job *job)
{
    rank_clock clock = {0};
    int64_t begin_ns;
    rank_world_own_core(); /* collective */
    if (rank_world_agree(w, 0))
        return MOIRAI_EFAIL;
    rank_clock_align(&clock, w, 0);
    for (int64_t run = -job->warmup - 1; run < job->runs; run++) {
        rank_world_barrier();
        rank_world_bcast(w, &begin_ns, sizeof begin_ns, 0);
        int rc = run == -job->warmup - 1 ? rank_gpu_settle(NULL, w, job) : 0;
        if (rc)
            return rc;
    }
    rank_clock_align(&clock, w, 1);
    return rank_world_agree(w, 0);
}

static int run_job(const rank_world *w, const char *path)
{
    rank_job *job = NULL;
    rank_exec *x = NULL;
    rank_ort *ort = NULL;
    int rc = rank_job_read(&job, path);
    rc = rc ? rc : check_size(w, job);
    const job_device *d = rc ? NULL : own_device(job, w->rank);
    int joined = rank_mps_join(d && moirai_ep_gpu(d->ort.ep) >= 0, d ? d->share : 0); /* collective */
    rc = rc ? rc : joined;
    rc = rc || !d ? rc : load(&x, &ort, w, job, d);
    rc = rank_world_agree(w, rc);
    rc = rc ? rc : d ? run_all(x) : idle(w, job);
    rank_exec_close(x);
    rank_ort_close(ort);
    rank_job_free(job);
    return rc;
}

int rank_run(int argc, char **argv)
{
    rank_world w;
    char path[4096] = "";
    if (argc > 0)
        snprintf(path, sizeof path, "%s", argv[0]);
    int rc = rank_world_open(&w, &argc, &argv);
    if (rc) {
        fprintf(stderr, "moirai-rank: error %d 0 %s\n", -rc, moirai_error_message());
        return -rc;
    }
    share_path(&w, path);
    rc = *path ? run_job(&w, path) : MOIRAI_EFAIL;
    rank_world_close();
    return -rc;
}

int rank_fail(int argc, char **argv)
{
    rank_world w;
    char path[4096] = "";
    int code = argc > 0 ? atoi(argv[0]) : 1;
    if (rank_world_open(&w, &argc, &argv))
        return code;
    share_path(&w, path);
    rank_world_close();
    return code;
}
