/* moirai-rank run JOB: one device of a distributed inference. moirai-rank run - : the same, the job's path comes from
 * rank 0 (under a given mpirun, only rank 0 knows it). moirai-rank fail CODE MESSAGE: rank 0 could not prepare a job;
 * the others learn it and all end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/cluster.h>
#include "rank/gpu/mps.h"
#include "rank/rank.h"
#include "rank/run/rank_copies.h"
#include "rank/run/rank_play.h"
#include "rank/stream/stream.h"

/* ---- who runs what ---- */

/* The path of the job from rank 0; empty: rank 0 has none. */
static void share_path(const rank_world *w, char path[4096])
{
    rank_world_bcast(w, path, 4096, 0);
}

/* ---- running ---- */

static int run_all(const rank_copies *c)
{
    const rank_world *w = c->x[0]->world;
    int rc = rank_copies_begin(c);
    for (int i = 0; i < c->n && !rc; i++)
        rc = rank_play(c->x[i]);
    rc = rc || c->job[0]->in_flight < 2 ? rc : stream_rate(c->x);
    for (int i = 0; i < c->n; i++)
        rank_gpu_let_go(c->x[i]);
    return rank_world_agree(w, rc); /* before anybody frees what others have mapped */
}

/* Ranks beyond the devices take part in what is collective (rank_play.c) and do nothing else. */
static int idle_play(const rank_world *w, const rank_job *job)
{
    rank_clock clock = {0};
    int64_t begin_ns;
    if (rank_world_agree(w, 0))
        return MOIRAI_EFAIL;
    rank_clock_align(&clock, w, 0);
    for (int64_t run = -job->warmup - 1; run < job->runs; run++) {
        rank_world_barrier(w);
        rank_world_bcast(w, &begin_ns, sizeof begin_ns, 0);
        int rc = run == -job->warmup - 1 ? rank_play_settle(NULL, w, job) : 0;
        if (rc)
            return rc;
    }
    rank_clock_align(&clock, w, 1);
    return rank_world_agree(w, 0);
}

/* stream_open takes the others apart. */
static int idle_stream(const rank_world *w)
{
    rank_world rest;
    int rc = rank_world_agree(w, 0);
    if (rc)
        return rc;
    rank_world_part(&rest, w, 1);
    rank_world_part_close(&rest);
    return 0;
}

static int idle(const rank_world *w, const rank_copies *c)
{
    int rc = 0;
    for (int i = 0; i < c->n && !rc; i++) {
        rank_world_own_core(w); /* collective */
        rc = rank_world_agree(w, 0);
    }
    for (int i = 0; i < c->n && !rc; i++)
        rc = idle_play(w, c->job[i]);
    rc = rc || c->job[0]->in_flight < 2 ? rc : idle_stream(w);
    return rank_world_agree(w, rc);
}

static int run_job(const rank_world *w, const char *path)
{
    rank_copies c;
    int rc = rank_copies_read(&c, w, path);
    const job_device *d = rc ? NULL : rank_play_device(c.job[0], w->rank);
    int joined = rank_mps_join(d && moirai_ep_gpu(d->ort.ep) >= 0, d ? d->share : 0); /* collective */
    rc = rc ? rc : joined;
    rc = rc || !d ? rc : rank_copies_load(&c, w, d);
    rc = rank_world_agree(w, rc);
    rc = rc ? rc : d ? run_all(&c) : idle(w, &c);
    rank_copies_close(&c);
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
