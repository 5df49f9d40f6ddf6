/* What was measured, brought to rank 0 and written there: the network's outputs as .npy files, and the timeline.
 *
 * A rank's times are one row per run: start and finish of each segment, start and finish of each send, finish of each
 * receive, in this order, in ns since the run's common start. A transfer lasts from its send's start to its receive's
 * finish. The timeline shows the run of median latency; "median_ns" of a segment or transfer is over all runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "rank/host/rank_confine.h"
#include "rank/rank_exec.h"
#include "util/json.h"
#include "util/sort.h"

enum { TAG_TIMES = 32010, TAG_SHAPE, TAG_DATA };

typedef struct rank_times {
    int64_t *time, row; /* [run * row + column] */
    int n_segments, n_sends, n_recvs;
} rank_times;

typedef struct result {
    const rank_exec *x;
    const rank_job *job;
    rank_times *rank;
    int64_t *latency_ns, *sorted_ns, *scratch;
    int64_t shown; /* the run of median latency */
} result;

/* ---- gathering ---- */

static void count_columns(rank_times *t, const rank_job *job, int rank)
{
    for (int k = 0; k < job->n_devices; k++)
        if (job->device[k].rank == rank)
            t->n_segments = job->device[k].n_segments;
    for (int i = 0; i < job->n_transfers; i++) {
        t->n_sends += job->device[job->transfer[i].from].rank == rank;
        t->n_recvs += job->device[job->transfer[i].to].rank == rank;
    }
    t->row = 2 * (int64_t)t->n_segments + 2 * (int64_t)t->n_sends + t->n_recvs;
}

static int gather_times(result *r, int64_t *own, int64_t n_own)
{
    const rank_job *job = r->job;
    r->rank = util_alloc((size_t)job->n_ranks, sizeof *r->rank);
    int rc = r->rank ? 0 : MOIRAI_EFAIL;
    for (int i = 0; i < job->n_ranks && !rc; i++) {
        rank_times *t = &r->rank[i];
        count_columns(t, job, i);
        size_t n = (size_t)(t->row * job->runs);
        if (!(t->time = util_alloc(n, sizeof *t->time)))
            rc = MOIRAI_EFAIL;
        else if (i == 0)
            memcpy(t->time, own, UTIL_MIN(n, (size_t)n_own) * sizeof *own);
        else
            rank_world_recv(r->x->world, t->time, n * sizeof *t->time, i, TAG_TIMES);
    }
    return rc;
}

/* ---- outputs ---- */

static int write_output(const rank_job *job, int index, const rank_shape *s, const void *data, size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/output_%d.npy", job->outputs, index);
    return rank_npy_write(path, s, data, bytes);
}

/* *data is the tensor itself, or a copy of it (*copy, to be freed) where that lies on a GPU. */
static int own_output(const rank_exec *x, int index, rank_shape *s, void **data, size_t *bytes, void **copy)
{
    const char *name = x->job->output[index].name;
    int slot = rank_exec_slot(x, name);
    if (slot < 0 || !x->slot[slot].value)
        return moirai_error(MOIRAI_EFAIL, "output '%s' was not made", name);
    int rc = rank_value_look(s, data, bytes, x->ort, x->slot[slot].value, name);
    if (rc || !x->gpu)
        return rc;
    rc = rank_gpu_fetch(copy, x, *data, *bytes);
    *data = *copy;
    return rc;
}

static int receive_output(const rank_exec *x, int index, int from)
{
    rank_shape s;
    size_t bytes;
    rank_world_recv(x->world, &s, sizeof s, from, TAG_SHAPE);
    int rc = rank_shape_bytes(&bytes, &s);
    if (rc)
        return rc;
    void *data = util_alloc(bytes, 1);
    if (!data)
        return MOIRAI_EFAIL;
    rank_world_recv(x->world, data, bytes, from, TAG_DATA);
    rc = write_output(x->job, index, &s, data, bytes);
    free(data);
    return rc;
}

static int gather_output(const rank_exec *x, int index)
{
    int owner = rank_job_owner(x->job, x->job->output[index].name);
    rank_shape s;
    void *data, *copy = NULL;
    size_t bytes;
    if (x->world->rank == 0 && owner != 0)
        return receive_output(x, index, owner);
    if (x->world->rank != owner)
        return 0;
    int rc = own_output(x, index, &s, &data, &bytes, &copy);
    if (!rc && owner == 0) {
        rc = write_output(x->job, index, &s, data, bytes);
    } else if (!rc) {
        rank_world_send(x->world, &s, sizeof s, 0, TAG_SHAPE);
        rank_world_send(x->world, data, bytes, 0, TAG_DATA);
    }
    free(copy);
    return rc;
}

/* ---- numbers ---- */

static int measure(result *r)
{
    int64_t runs = r->job->runs;
    r->latency_ns = util_alloc((size_t)runs, sizeof(int64_t));
    r->sorted_ns = util_alloc((size_t)runs, sizeof(int64_t));
    r->scratch = util_alloc((size_t)runs, sizeof(int64_t));
    if (!r->latency_ns || !r->sorted_ns || !r->scratch)
        return MOIRAI_EFAIL;
    for (int64_t i = 0; i < runs; i++) {
        for (int k = 0; k < r->job->n_ranks; k++)
            for (int s = 0; s < r->rank[k].n_segments; s++)
                r->latency_ns[i] = UTIL_MAX(r->latency_ns[i], r->rank[k].time[i * r->rank[k].row + 2 * s + 1]);
        r->sorted_ns[i] = r->latency_ns[i];
    }
    qsort(r->sorted_ns, (size_t)runs, sizeof(int64_t), util_by_int64);
    while (r->latency_ns[r->shown] != r->sorted_ns[(runs - 1) / 2])
        r->shown++;
    return 0;
}

static int64_t median_of(result *r, const rank_times *a, int64_t start, const rank_times *b, int64_t finish)
{
    int64_t runs = r->job->runs;
    for (int64_t i = 0; i < runs; i++)
        r->scratch[i] = b->time[i * b->row + finish] - a->time[i * a->row + start];
    qsort(r->scratch, (size_t)runs, sizeof(int64_t), util_by_int64);
    return r->scratch[(runs - 1) / 2];
}

/* ---- the file ---- */

static void write_head(util_writer *w, const result *r)
{
    const rank_job *job = r->job;
    int64_t runs = job->runs, sum = 0;
    const char *slash = strrchr(job->model, '/');
    for (int64_t i = 0; i < runs; i++)
        sum += r->latency_ns[i] / runs;
    util_writer_pair_string(w, "model", slash ? slash + 1 : job->model);
    util_writer_pair_int(w, "warmup", job->warmup);
    util_writer_pair_int(w, "runs", runs);
    util_writer_key(w, "confined");
    util_writer_bool(w, rank_confine_version() > 0);
    util_writer_pair_int(w, "shared", r->x->n_shared);
    util_writer_break(w);
    util_writer_pair_int(w, "planned_ns", job->makespan_ns);
    util_writer_pair_int(w, "least_ns", r->sorted_ns[0]);
    util_writer_pair_int(w, "median_ns", r->sorted_ns[(runs - 1) / 2]);
    util_writer_pair_int(w, "mean_ns", sum);
    util_writer_pair_int(w, "p90_ns", util_percentile(r->sorted_ns, runs, 90));
    util_writer_pair_int(w, "p99_ns", util_percentile(r->sorted_ns, runs, 99));
    util_writer_pair_int(w, "most_ns", r->sorted_ns[runs - 1]);
    util_writer_break(w);
    util_writer_pair_open(w, "latency_ns", '[');
    for (int64_t i = 0; i < runs; i++)
        util_writer_int(w, r->latency_ns[i]);
    util_writer_close(w, ']');
}

static void write_task(util_writer *w, result *r, const rank_times *a, int64_t start, const rank_times *b,
                       int64_t finish)
{
    util_writer_pair_int(w, "start_ns", a->time[r->shown * a->row + start]);
    util_writer_pair_int(w, "finish_ns", b->time[r->shown * b->row + finish]);
    util_writer_pair_int(w, "median_ns", median_of(r, a, start, b, finish));
}

static void write_ops(util_writer *w, const result *r, int device, int segment)
{
    yyjson_val *d = yyjson_arr_get(yyjson_obj_get(yyjson_doc_get_root(r->job->manifest), "devices"), (size_t)device);
    yyjson_val *s = yyjson_arr_get(yyjson_obj_get(d, "segments"), (size_t)segment), *op;
    size_t i, n;
    util_writer_pair_open(w, "ops", '[');
    yyjson_arr_foreach(yyjson_obj_get(s, "ops"), i, n, op) {
        util_writer_string(w, yyjson_get_str(op));
    }
    util_writer_close(w, ']');
}

static void write_devices(util_writer *w, result *r)
{
    const rank_job *job = r->job;
    util_writer_break(w);
    util_writer_pair_open(w, "devices", '[');
    for (int k = 0; k < job->n_devices; k++) {
        const job_device *d = &job->device[k];
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", d->name);
        util_writer_pair_open(w, "segments", '[');
        for (int s = 0; s < d->n_segments; s++) {
            const rank_times *t = &r->rank[d->rank];
            util_writer_break(w);
            util_writer_open(w, '{');
            util_writer_pair_string(w, "file", d->segment[s].file);
            util_writer_pair_int(w, "planned_start_ns", d->segment[s].start_ns);
            util_writer_pair_int(w, "planned_finish_ns", d->segment[s].finish_ns);
            util_writer_pair_int(w, "planned_work_ns", d->segment[s].work_ns);
            write_task(w, r, t, 2 * s, t, 2 * s + 1);
            write_ops(w, r, k, s);
            util_writer_close(w, '}');
        }
        util_writer_close(w, ']');
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_transfers(util_writer *w, result *r, int *sent, int *received)
{
    const rank_job *job = r->job;
    util_writer_break(w);
    util_writer_pair_open(w, "transfers", '[');
    for (int i = 0; i < job->n_transfers; i++) {
        const job_transfer *t = &job->transfer[i];
        int from = job->device[t->from].rank, to = job->device[t->to].rank;
        const rank_times *a = &r->rank[from], *b = &r->rank[to];
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "tensor", t->tensor);
        util_writer_pair_string(w, "from", job->device[t->from].name);
        util_writer_pair_string(w, "to", job->device[t->to].name);
        util_writer_pair_int(w, "bytes", t->bytes);
        util_writer_pair_int(w, "planned_start_ns", t->start_ns);
        util_writer_pair_int(w, "planned_finish_ns", t->finish_ns);
        write_task(w, r, a, 2 * a->n_segments + 2 * sent[from]++, b,
                   2 * b->n_segments + 2 * b->n_sends + received[to]++);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_outputs(util_writer *w, const rank_job *job)
{
    util_writer_break(w);
    util_writer_pair_open(w, "outputs", '[');
    for (int i = 0; i < job->n_outputs; i++)
        util_writer_string(w, job->output[i].name);
    util_writer_close(w, ']');
}

static int write_timeline(result *r)
{
    util_writer w;
    int *count = util_alloc(2 * (size_t)r->job->n_ranks, sizeof *count);
    if (!count)
        return MOIRAI_EFAIL;
    util_writer_begin(&w, "moirai-timeline");
    write_head(&w, r);
    write_devices(&w, r);
    write_transfers(&w, r, count, count + r->job->n_ranks);
    write_outputs(&w, r->job);
    util_writer_close(&w, '}');
    free(count);
    return util_writer_save(&w, r->job->result);
}

int rank_result_collect(const rank_exec *x, int64_t *time, int64_t n_times)
{
    result r = {.x = x, .job = x->job};
    int rc = 0;
    if (x->world->rank != 0)
        rank_world_send(x->world, time, (size_t)n_times * sizeof *time, 0, TAG_TIMES);
    else
        rc = gather_times(&r, time, n_times);
    for (int i = 0; i < x->job->n_outputs && x->job->outputs; i++) { /* even after a failure: others wait to be heard */
        int failed = gather_output(x, i);
        rc = rc ? rc : failed;
    }
    if (x->world->rank == 0) {
        rc = rc ? rc : measure(&r);
        rc = rc ? rc : write_timeline(&r);
        for (int i = 0; r.rank && i < x->job->n_ranks; i++)
            free(r.rank[i].time);
    }
    free(r.rank);
    free(r.latency_ns);
    free(r.sorted_ns);
    free(r.scratch);
    return rc;
}
