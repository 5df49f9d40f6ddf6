/* The rate of a plan with N requests in flight: a closed loop. First every variant of the inputs goes alone, through every
 * copy, so that there is something to compare with; then N requests are kept in flight, the first 2N that end are left
 * out, and the window lasts from the end of the last of these to the end of the last one measured, while as many are
 * behind it as before.
 *
 * The period is the window's length by the number of requests that ended in it. A device's busy share is what it computed
 * for these requests by the window's length: its load by the period, if the plan's times are true. Latency is from the
 * front's word to begin until the last rank's word that it is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank/host/rank_confine.h"
#include "rank/stream/stream.h"
#include "util/json.h"
#include "util/sort.h"

typedef struct loop {
    rank_exec *const *x;                           /* [copy] */
    const rank_job *job;                           /* the first copy's */
    int64_t in_flight, n_finished, n_alone, first; /* first: to end of those that are measured */
    int64_t n_variants;
    int64_t *n_begun, *n_of_copy; /* [copy] all; of the measured ones */
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

/* A copy's requests take turns with the variants, of which there is one more than it can have lanes: see stream_check.c. */
static int next(void *data, stream_next *n)
{
    loop *l = data;
    if (is_enough(l))
        return -1;
    if (n->number < l->n_alone) {
        if (l->in_flight)
            return 0;
        n->copy = (int)(n->number / l->n_variants);
        n->forced = true;
    } else if (n->number == l->n_alone && l->in_flight) {
        return 0;
    }
    n->variant = l->n_begun[n->copy]++ % l->n_variants;
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

static void finished(void *data, const stream_done *done, void *const *output, const int64_t *busy_ns, void *token)
{
    loop *l = data;
    int64_t now_ns = rank_clock_own_ns();
    (void)output;
    (void)token;
    l->in_flight--;
    l->n_finished++;
    if (done->failed && !l->failed) {
        l->failed = (int)done->failed;
        snprintf(l->text, sizeof l->text, "%s", done->text);
    }
    if (l->n_finished == l->first)
        l->from_ns = l->to_ns = now_ns;
    if (l->n_finished <= l->first || is_enough(l))
        return;
    if (util_grow(&l->latency_ns, &l->capacity, l->n + 1, sizeof *l->latency_ns)) {
        l->failed = MOIRAI_EFAIL;
        snprintf(l->text, sizeof l->text, "%s", moirai_error_message());
        return;
    }
    l->to_ns = now_ns;
    l->latency_ns[l->n++] = now_ns - done->begin_ns;
    l->n_of_copy[done->copy]++;
    for (int r = 0; r < l->job->n_ranks; r++)
        l->busy_ns[r] += busy_ns[r];
    tell(l);
}

/* ---- the file ---- */

/* What the plan has a device compute for a request, in the mean of all copies. */
static int64_t planned_ns(const loop *l, int device)
{
    double sum = 0, all = 0;
    for (int c = 0; c < l->job->n_copies; c++) {
        const job_device *d = &l->x[c]->job->device[device];
        double share = l->job->n_copies > 1 ? (double)l->job->copy[c].share_ppm : 1;
        for (int s = 0; s < d->n_segments; s++)
            sum += share * (double)d->segment[s].work_ns;
        all += share;
    }
    return (int64_t)(sum / all + 0.5);
}

static void write_devices(util_writer *w, const loop *l)
{
    const rank_job *job = l->job;
    int64_t n = (int64_t)l->n;
    util_writer_break(w);
    util_writer_pair_open(w, "devices", '[');
    for (int k = 0; k < job->n_devices; k++) {
        const job_device *d = &job->device[k];
        if (d->rank < 0)
            continue;
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", d->name);
        util_writer_pair_int(w, "planned_ns", planned_ns(l, k));
        util_writer_pair_int(w, "busy_ns", l->busy_ns[d->rank] / n);
        util_writer_key(w, "busy_share");
        util_writer_real(w, (double)l->busy_ns[d->rank] / (double)UTIL_MAX(l->to_ns - l->from_ns, 1));
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_copies(util_writer *w, const loop *l)
{
    const rank_job *job = l->job;
    if (job->n_copies < 2)
        return;
    util_writer_break(w);
    util_writer_pair_open(w, "copies", '[');
    for (int c = 0; c < job->n_copies; c++) {
        util_writer_open(w, '{');
        if (job->copy[c].slots)
            util_writer_pair_int(w, "slots", job->copy[c].slots);
        util_writer_pair_int(w, "requests", l->n_of_copy[c]);
        util_writer_key(w, "planned_share");
        util_writer_real(w, (double)job->copy[c].share_ppm / 1e6);
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
    write_copies(&w, l);
    write_devices(&w, l);
    util_writer_close(&w, '}');
    return util_writer_save(&w, l->job->rate);
}

/* ---- all of it ---- */

static int measure(loop *l, stream *s)
{
    const stream_source source = {next, finished, NULL, l};
    bool front = s->world.rank == 0;
    l->n_begun = util_alloc((size_t)l->job->n_copies, sizeof *l->n_begun);
    l->n_of_copy = util_alloc((size_t)l->job->n_copies, sizeof *l->n_of_copy);
    l->busy_ns = util_alloc((size_t)l->job->n_ranks, sizeof *l->busy_ns);
    int rc = rank_world_agree(&s->world, l->n_begun && l->n_of_copy && l->busy_ns ? 0 : MOIRAI_EFAIL);
    rc = rc ? rc : stream_play(s, front ? &source : NULL);
    if (!rc && front)
        rc = l->failed ? moirai_error(l->failed, "%s", l->text) : write_file(l);
    free(l->n_begun);
    free(l->n_of_copy);
    free(l->busy_ns);
    free(l->latency_ns);
    return rank_world_agree(&s->world, rc);
}

int stream_rate(rank_exec *const *x)
{
    const rank_job *job = x[0]->job;
    stream *s;
    loop l = {.x = x, .job = job, .n_variants = job->in_flight + 1};
    l.n_alone = l.n_variants * job->n_copies;
    l.first = l.n_alone + 2 * job->in_flight;
    int rc = stream_open(&s, x, false, l.n_variants);
    if (rc)
        return rc;
    rc = measure(&l, s);
    stream_close(s);
    return rc;
}
