/* Does everybody live? A device that hangs sends nothing, and who waits for it can't tell it from one that waits itself. So
 * the front asks every rank, four times within --stall, whatever is under way, and the thread that answers never computes:
 * a rank that has not answered for three of these periods hangs, as does one whose device has been at one segment for many
 * times as long as whole requests take. Where all answer, none computes for so long, and requests come to no end
 * all the same, something hangs and nobody knows what.
 *
 * The source hears of every period, which says that the front itself lives, and once of a device that hangs. */
#include "rank/stream/stream.h"

#include <stdio.h>
#include <stdlib.h>

enum { PERIODS = 4, SILENT_PERIODS = 3 }; /* within --stall; without an answer */

struct stream_watch {
    /* Of every rank: */
    MPI_Request question, answer;
    int64_t computing_ns; /* what the device is at began so long ago; 0: it does not compute */
    /* Of the front: */
    void (*sign)(void *data, int rank, const char *text);
    void *data;
    int64_t stall_ns, period_ns;
    int64_t seen_ns, asked_ns;               /* the last look; the last time that all were asked */
    int64_t *since_ns;                       /* [rank] of the question that is not answered; 0: none is open */
    MPI_Request *ask_request, *sign_request; /* [rank] */
    int64_t *heard_ns;                       /* [rank] computing_ns of the last answer */
    bool told;                               /* that something hangs */
    util_memory memory;                      /* of the arrays */
};

/* ---- every rank ---- */

static void post_question(stream *s)
{
    MPI_Irecv(NULL, 0, MPI_BYTE, 0, STREAM_ASK_TAG, s->world.comm, &s->watch->question);
}

int stream_watch_open(stream *s, const stream_source *source)
{
    size_t n = (size_t)s->world.size;
    stream_watch *w = s->watch = util_alloc(1, sizeof *w);
    if (!w)
        return MOIRAI_EFAIL;
    *w = (stream_watch){.question = MPI_REQUEST_NULL, .answer = MPI_REQUEST_NULL};
    post_question(s);
    if (!source || !source->sign || s->x->job->stall_s <= 0)
        return 0;
    UTIL_TAKE(&w->memory, w->since_ns, n);
    UTIL_TAKE(&w->memory, w->ask_request, n);
    UTIL_TAKE(&w->memory, w->sign_request, n);
    UTIL_TAKE(&w->memory, w->heard_ns, n);
    if (w->memory.failed)
        return MOIRAI_EFAIL;
    for (size_t r = 0; r < n; r++)
        w->ask_request[r] = w->sign_request[r] = MPI_REQUEST_NULL;
    w->sign = source->sign;
    w->data = source->data;
    w->stall_ns = (int64_t)(s->x->job->stall_s * 1e9);
    w->period_ns = w->stall_ns / PERIODS;
    w->seen_ns = w->asked_ns = rank_clock_own_ns();
    w->sign(w->data, -1, NULL);
    return 0;
}

void stream_watch_close(stream *s)
{
    if (!s->watch)
        return;
    util_release(&s->watch->memory);
    free(s->watch);
    s->watch = NULL;
}

void stream_watch_answer(stream *s)
{
    stream_watch *w = s->watch;
    if (w->question == MPI_REQUEST_NULL || !stream_all_done(&w->question, 1))
        return;
    rank_world_wait(&w->answer, 1); /* the front has it: it asks again */
    w->computing_ns = s->computing ? UTIL_MAX(rank_clock_own_ns() - s->segment_ns, 1) : 0;
    MPI_Isend(&w->computing_ns, 1, MPI_INT64_T, 0, STREAM_SIGN_TAG, s->world.comm, &w->answer);
    post_question(s);
}

void stream_watch_end(stream *s)
{
    rank_world_wait(&s->watch->answer, 1);
    stream_cancel(&s->watch->question, 1);
}

/* ---- the front ---- */

static void hear(const stream *s, int64_t now_ns)
{
    stream_watch *w = s->watch;
    bool held_up = now_ns - w->seen_ns > w->period_ns; /* who was asleep can't say that others were */
    for (int r = 0; r < s->world.size; r++) {
        if (!w->since_ns[r])
            continue;
        if (stream_all_done(&w->sign_request[r], 1))
            w->since_ns[r] = 0;
        else if (held_up)
            w->since_ns[r] = now_ns;
    }
    w->seen_ns = now_ns;
}

static void ask(const stream *s, int64_t now_ns)
{
    stream_watch *w = s->watch;
    w->asked_ns = now_ns;
    for (int r = 0; r < s->world.size; r++) {
        if (w->since_ns[r])
            continue;
        w->since_ns[r] = now_ns;
        rank_world_wait(&w->ask_request[r], 1);
        MPI_Irecv(&w->heard_ns[r], 1, MPI_INT64_T, r, STREAM_SIGN_TAG, s->world.comm, &w->sign_request[r]);
        MPI_Isend(NULL, 0, MPI_BYTE, r, STREAM_ASK_TAG, s->world.comm, &w->ask_request[r]);
    }
}

static const char *device_of(const stream *s, int rank)
{
    const rank_job *job = s->x->job;
    for (int k = 0; k < job->n_devices; k++)
        if (job->device[k].rank == rank)
            return job->device[k].name;
    return "?";
}

/* Tells of the ranks whose `ns` is longer than the limit, if there are any: one can be named, several are what hangs together. */
static bool tell(stream *s, const int64_t *ns, int64_t limit_ns, const char *how)
{
    char names[400] = "", text[600];
    size_t used = 0;
    int n = 0, which = -1;
    for (int r = 0; r < s->world.size; r++) {
        if (ns[r] < limit_ns)
            continue;
        which = r;
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s'%.60s' (rank %d)", n ? ", " : "",
                                     device_of(s, r), r);
        n++;
    }
    if (!n)
        return false;
    snprintf(text, sizeof text, "device%s %s hang%s: %s for %.3g s", n > 1 ? "s" : "", names, n > 1 ? "" : "s", how,
             (double)ns[which] / 1e9);
    s->watch->told = true;
    s->watch->sign(s->watch->data, n == 1 ? which : -1, text);
    return true;
}

static void judge(stream *s, int64_t now_ns)
{
    stream_watch *w = s->watch;
    char text[200];
    int64_t *ns = util_alloc((size_t)s->world.size, sizeof *ns);
    int64_t limit_ns = UTIL_MAX(w->stall_ns, RANK_STALL_TIMES * stream_front_usual_ns(s)),
            quiet_ns = stream_front_quiet_ns(s, now_ns);
    for (int r = 0; ns && r < s->world.size; r++)
        ns[r] = w->since_ns[r] ? now_ns - w->since_ns[r] : 0;
    bool told = !ns || tell(s, ns, SILENT_PERIODS * w->period_ns, "no sign of life");
    told = told || tell(s, w->heard_ns, limit_ns, "it has computed one segment");
    free(ns);
    if (told || quiet_ns < 2 * limit_ns)
        return;
    snprintf(text, sizeof text, "requests have come to no end for %.3g s, and which device hangs can't be told",
             (double)quiet_ns / 1e9);
    w->told = true;
    w->sign(w->data, -1, text);
}

void stream_watch_look(stream *s)
{
    stream_watch *w = s->watch;
    int64_t now_ns = rank_clock_own_ns();
    if (!w->sign)
        return;
    hear(s, now_ns);
    if (now_ns - w->asked_ns < w->period_ns)
        return;
    if (!w->told)
        judge(s, now_ns);
    if (!w->told)
        w->sign(w->data, -1, NULL);
    ask(s, now_ns);
}

bool stream_watch_is_over(stream *s)
{
    const stream_watch *w = s->watch;
    if (!w->sign)
        return true;
    hear(s, rank_clock_own_ns());
    for (int r = 0; r < s->world.size; r++)
        if (w->since_ns[r])
            return false;
    rank_world_wait(w->ask_request, (size_t)s->world.size);
    return true;
}
