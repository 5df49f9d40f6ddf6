/* The rate of a plan with N requests in flight: a closed loop. First every variant of the inputs goes alone, so that there
 * is something to compare with; then N requests are kept in flight, the first 2N of them are left out, and the window lasts
 * from the end of the last of these to the end of the last one measured, while as many are behind it as before.
 *
 * The period is the window's length by the number of requests that ended in it. A device's busy share is what it computed
 * for these requests by the window's length: its load by the period, if the plan's times are true. Latency is from the
 * front's word to begin until the last rank's word that it is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank/rank_confine.h"
#include "rank/stream/stream.h"
#include "util/json.h"
#include "util/sort.h"

typedef struct loop {
    const rank_exec *x;
    const rank_job *job;
    int64_t in_flight, n_begun, n_finished, first; /* first: request that is measured */
    int64_t *begin_ns;                             /* [request mod N] */
    int64_t from_ns, to_ns;
    int64_t *latency_ns; /* [measured] */
    size_t n, capacity;
    int64_t *busy_ns; /* [rank] of the measured ones */
    double told_s;
    int failed;
    char text[256];
} loop;

static bool is_enough(const loop *l)
{
    double seconds = (double)(l->to_ns - l->from_ns) / 1e9;
    return l->failed || ((int64_t)l->n >= l->job->runs && seconds >= l->job->at_least_s);
}

static int next(void *data, int64_t number, int64_t *variant, void **input)
{
    loop *l = data;
    int64_t n_variants = l->job->in_flight + 1;
    (void)input;
    if (is_enough(l))
        return -1;
    if (number < n_variants && l->in_flight) /* alone */
        return 0;
    *variant = number % n_variants;
    l->begin_ns[number % l->job->in_flight] = rank_clock_own_ns();
    l->in_flight++;
    return 1;
}

/* Twice a second at most. */
static void tell(loop *l)
{
    double now = util_seconds();
    char line[80];
    if (!l->job->progress || now - l->told_s < 0.5)
        return;
    l->told_s = now;
    int n = snprintf(line, sizeof line, "moirai-rank: progress in-flight %zu\n", l->n);
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        l->told_s = 1e300; /* nobody listens */
}

static void finished(void *data, const stream_done *done, void *const *output, const int64_t *busy_ns)
{
    loop *l = data;
    int64_t now_ns = rank_clock_own_ns();
    (void)output;
    l->in_flight--;
    l->n_finished++;
    if (done->failed && !l->failed) {
        l->failed = (int)done->failed;
        snprintf(l->text, sizeof l->text, "%s", done->text);
    }
    if (done->number == l->first - 1)
        l->from_ns = l->to_ns = now_ns;
    if (done->number < l->first || is_enough(l))
        return;
    if (util_grow(&l->latency_ns, &l->capacity, l->n + 1, sizeof *l->latency_ns)) {
        l->failed = MOIRAI_EFAIL;
        snprintf(l->text, sizeof l->text, "%s", moirai_error_message());
        return;
    }
    l->to_ns = now_ns;
    l->latency_ns[l->n++] = now_ns - l->begin_ns[done->number % l->job->in_flight];
    for (int r = 0; r < l->job->n_ranks; r++)
        l->busy_ns[r] += busy_ns[r];
    tell(l);
}

/* ---- the file ---- */

static void write_devices(util_writer *w, const loop *l)
{
    const rank_job *job = l->job;
    int64_t n = (int64_t)l->n;
    util_writer_break(w);
    util_writer_pair_open(w, "devices", '[');
    for (int k = 0; k < job->n_devices; k++) {
        const job_device *d = &job->device[k];
        int64_t planned_ns = 0;
        for (int s = 0; s < d->n_segments; s++)
            planned_ns += d->segment[s].work_ns;
        if (d->rank < 0)
            continue;
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", d->name);
        util_writer_pair_int(w, "planned_ns", planned_ns);
        util_writer_pair_int(w, "busy_ns", l->busy_ns[d->rank] / n);
        util_writer_key(w, "busy_share");
        util_writer_real(w, (double)l->busy_ns[d->rank] / (double)UTIL_MAX(l->to_ns - l->from_ns, 1));
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static int write_file(loop *l)
{
    util_writer w;
    int64_t n = (int64_t)l->n, window_ns = UTIL_MAX(l->to_ns - l->from_ns, 1);
    const char *slash = strrchr(l->job->model, '/');
    qsort(l->latency_ns, l->n, sizeof *l->latency_ns, util_by_int64);
    util_writer_begin(&w, "moirai-rate");
    util_writer_pair_string(&w, "model", slash ? slash + 1 : l->job->model);
    util_writer_pair_int(&w, "in_flight", l->job->in_flight);
    util_writer_pair_int(&w, "left_out", l->first);
    util_writer_pair_int(&w, "requests", n);
    util_writer_pair_int(&w, "compared", l->n_finished);
    util_writer_key(&w, "confined");
    util_writer_bool(&w, rank_confine_version() > 0);
    util_writer_break(&w);
    util_writer_pair_int(&w, "window_ns", window_ns);
    util_writer_pair_int(&w, "period_ns", window_ns / n);
    util_writer_key(&w, "rate_per_s");
    util_writer_real(&w, (double)n * 1e9 / (double)window_ns);
    util_writer_break(&w);
    util_writer_pair_open(&w, "latency", '{');
    util_writer_pair_int(&w, "least_ns", l->latency_ns[0]);
    util_writer_pair_int(&w, "median_ns", l->latency_ns[(n - 1) / 2]);
    util_writer_pair_int(&w, "p90_ns", util_percentile(l->latency_ns, n, 90));
    util_writer_pair_int(&w, "p99_ns", util_percentile(l->latency_ns, n, 99));
    util_writer_pair_int(&w, "most_ns", l->latency_ns[n - 1]);
    util_writer_close(&w, '}');
    write_devices(&w, l);
    util_writer_close(&w, '}');
    return util_writer_save(&w, l->job->rate);
}

/* ---- all of it ---- */

static int measure(loop *l, stream *s)
{
    const stream_source source = {next, finished, l};
    bool front = s->world.rank == 0;
    l->begin_ns = util_alloc((size_t)l->job->in_flight, sizeof *l->begin_ns);
    l->busy_ns = util_alloc((size_t)l->job->n_ranks, sizeof *l->busy_ns);
    int rc = rank_world_agree(&s->world, l->begin_ns && l->busy_ns ? 0 : MOIRAI_EFAIL);
    rc = rc ? rc : stream_play(s, front ? &source : NULL);
    if (!rc && front)
        rc = l->failed ? moirai_error(l->failed, "%s", l->text) : write_file(l);
    free(l->begin_ns);
    free(l->busy_ns);
    free(l->latency_ns);
    return rank_world_agree(&s->world, rc);
}

int stream_rate(rank_exec *x)
{
    const rank_job *job = x->job;
    stream *s;
    loop l = {.x = x, .job = job, .first = job->in_flight + 1 + 2 * job->in_flight};
    int rc = stream_open(&s, x, (int)job->in_flight, false, job->in_flight + 1);
    if (rc)
        return rc;
    rc = measure(&l, s);
    stream_close(s);
    return rc;
}
