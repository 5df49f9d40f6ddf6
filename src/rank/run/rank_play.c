/* Playing a plan: runs one after the other, their times kept, brought to one clock and handed to rank 0.
 *
 * Where one half of the runs is to be compared with the other (job.other), they alternate: A B B A A B B A. A machine
 * that becomes slower becomes so for both, and whatever recurs with every second or fourth run meets both, too. */
#include "rank/run/rank_play.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const job_device *rank_play_device(const rank_job *job, int rank)
{
    for (int k = 0; k < job->n_devices; k++)
        if (job->device[k].rank == rank)
            return &job->device[k];
    return NULL;
}

int rank_play_check(const rank_world *w, const rank_job *job)
{
    int *limit = NULL, flag = 0;
    if (w->size < job->n_ranks)
        return moirai_error(MOIRAI_EUSAGE, "the plan uses %d devices, mpirun started %d ranks", job->n_ranks, w->size);
    MPI_Comm_get_attr(w->comm, MPI_TAG_UB, &limit, &flag);
    for (int i = 0; i < job->n_transfers && flag; i++)
        if (job->transfer[i].tag > *limit)
            return moirai_error(MOIRAI_EFAIL, "more transfers between two devices than MPI has tags (%d)", *limit);
    return 0;
}

int rank_play_load(rank_exec **out, rank_ort **ort, const rank_world *w, const rank_job *job, const job_device *d)
{
    int rc = rank_ort_open(ort, &d->ort);
    rc = rc ? rc : rank_exec_open(out, w, job, d, *ort);
    return rc ? moirai_error_prefix(rc, "device '%s'", d->name) : 0;
}

int rank_play_begin(rank_exec *x)
{
    x->own_core = rank_world_own_core(x->world);
    return rank_world_agree(x->world, rank_exec_start(x));
}

/* ---- runs ---- */

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

/* Where the times of measured run number i go: all of A, then all of B. */
static int64_t place_of(const rank_job *job, int64_t i)
{
    return job->other ? (i + 1) / 2 % 2 * job->runs + i / 2 : i;
}

static int64_t n_measured(const rank_job *job)
{
    return job->runs * (job->other ? 2 : 1);
}

int rank_play_settle(rank_exec *x, const rank_world *w, const rank_job *job)
{
    int rc = rank_gpu_settle(x, w, job);
    return rc ? rc : rank_host_settle(x, w, job);
}

/* All runs: begin[place], and a row of times for each that is measured. */
static int play_runs(rank_exec *x, int64_t *time, int64_t row, int64_t *begin)
{
    const rank_job *job = x->job;
    double told_s = 0;
    int64_t before = job->warmup + !x->n_played, all = before + n_measured(job);
    for (int64_t i = 0; i < all; i++) {
        int64_t begin_ns;
        rank_comm_run(x, x->n_played++, &begin_ns);
        int rc = x->n_played == 1 ? rank_play_settle(x, x->world, job) : 0;
        if (rc)
            return rc;
        tell(x, i + 1 + (before == job->warmup), &told_s);
        if (i < before)
            continue;
        int64_t place = place_of(job, i - before);
        begin[place] = begin_ns;
        keep_times(x, time + place * row);
    }
    return 0;
}

static int collect(rank_exec *x, int64_t *time, int64_t row, const int64_t *begin)
{
    const rank_job *job = x->job;
    int64_t n = row * job->runs;
    rank_clock_align(&x->clock, x->world, 1);
    for (int64_t i = 0; i < row * n_measured(job); i++)
        time[i] = rank_clock_common_ns(&x->clock, time[i]) - begin[i / row];
    int rc = rank_world_agree(x->world, rank_result_collect(x, time, n));
    if (rc || !job->other)
        return rc;
    rank_job other = *job;
    other.result = job->other;
    x->job = &other;
    rc = rank_world_agree(x->world, rank_result_collect(x, time + n, n));
    x->job = job;
    return rc;
}

int rank_play(rank_exec *x)
{
    const rank_job *job = x->job;
    int64_t row = 2 * (int64_t)x->device->n_segments + 2 * (int64_t)x->n_sends + x->n_recvs;
    int64_t *time = util_alloc((size_t)(row * n_measured(job)), sizeof *time);
    int64_t *begin = util_alloc((size_t)n_measured(job), sizeof *begin);
    int rc = rank_world_agree(x->world, time && begin ? 0 : MOIRAI_EFAIL);
    if (!rc) {
        rank_clock_align(&x->clock, x->world, 0);
        rc = play_runs(x, time, row, begin);
        rc = rc ? rc : collect(x, time, row, begin);
    }
    free(time);
    free(begin);
    return rc;
}
