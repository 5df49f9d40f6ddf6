/* Segments played through, and merged (moirai/segments.h).
 *
 * A play is a run of events, each the end of a segment: its messages leave, whoever they were awaited by may begin.
 * Segments are runs of the caller's, from one mark of `begins` to the next; what such a run reads and sends lies side by
 * side in the caller's lists, so that no list is built anew. A run is given up as soon as it ends later than the best.
 *
 * Messages that must keep an order are held until those before them have left: at most two, the last one of the same
 * device and the last one between the same two. They leave in the order of their numbers. */
#include <moirai/segments.h>

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define MOST_STEPS \
    400000000ll /* of all plays: some seconds. Beyond, segments are so many that few are worth a meeting */
enum { MOST_PASSES = 4, NONE = -1 };

typedef struct score {
    int64_t end_ns;
    int64_t sum_ns; /* of all arrivals, and of the devices' ends */
} score;

typedef struct device {
    int32_t at, until;           /* segments that run next, or run now */
    int32_t read;                /* waits before it have arrived */
    int64_t free_ns, arrived_ns; /* since when it is free, and all that was read so far is there */
    int64_t end_ns;              /* of what runs now, NONE if nothing does; then of the last that ran */
    int64_t last_ns, out_ns, in_ns;
} device;

typedef struct game {
    const moirai_segments *s;
    device *device;
    int64_t *there_ns;    /* [message], NONE: not yet */
    int32_t (*before)[2]; /* [message] those that leave before it, or NONE */
    int32_t (*after)[2];
    bool *held;     /* done, but one before it is not */
    int32_t *ready; /* a heap of messages that may leave */
    int32_t n_ready;
} game;

/* ---- what is given ---- */

static bool is_rising(const int32_t *off, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (off[i] > off[i + 1])
            return false;
    return off[0] == 0;
}

static bool are_below(const int32_t *list, int32_t n, int32_t most)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i] < 0 || list[i] >= most)
            return false;
    return true;
}

static bool are_times(const int64_t *ns, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (ns[i] < 0 || ns[i] > INT64_MAX / ((int64_t)4 * (n + 1)))
            return false;
    return true;
}

static int32_t segments_of(const moirai_segments *s)
{
    return s->device_off[s->n_devices];
}

static bool is_sound(const moirai_segments *s)
{
    if (s->n_devices < 1 || s->n_messages < 0 || !is_rising(s->device_off, s->n_devices))
        return false;
    int32_t n = segments_of(s), m = s->n_messages;
    return is_rising(s->wait_off, n) && is_rising(s->send_off, n) && are_below(s->wait, s->wait_off[n], m) &&
           are_below(s->send, s->send_off[n], m) && are_below(s->source, m, s->n_devices) &&
           are_below(s->target, m, s->n_devices) && are_times(s->work_ns, n) && are_times(s->took_ns, m) &&
           are_times(s->meeting_ns, s->n_devices);
}

/* ---- the order of messages ---- */

static void put_before(game *g, int32_t *last, int32_t message, int which)
{
    g->before[message][which] = *last;
    if (*last != NONE)
        g->after[*last][which] = message;
    *last = message;
}

static int order_messages(game *g)
{
    const moirai_segments *s = g->s;
    size_t n = (size_t)s->n_devices;
    int32_t *last = util_alloc(n * n + n, sizeof *last);
    if (!last)
        return MOIRAI_EFAIL;
    memset(last, 0xff, (n * n + n) * sizeof *last);
    memset(g->before, 0xff, (size_t)s->n_messages * sizeof *g->before);
    memset(g->after, 0xff, (size_t)s->n_messages * sizeof *g->after);
    for (int32_t m = 0; m < s->n_messages && (s->ports || s->ordered); m++) {
        size_t a = (size_t)s->source[m], b = (size_t)s->target[m];
        put_before(g, &last[a], m, 0);
        put_before(g, &last[n + UTIL_MIN(a, b) * n + UTIL_MAX(a, b)], m, 1);
    }
    free(last);
    return 0;
}

static void game_free(game *g)
{
    free(g->device);
    free(g->there_ns);
    free(g->before);
    free(g->after);
    free(g->held);
    free(g->ready);
}

static int game_init(game *g, const moirai_segments *s)
{
    size_t m = (size_t)s->n_messages + 1;
    *g = (game){.s = s};
    g->device = util_alloc((size_t)s->n_devices, sizeof *g->device);
    g->there_ns = util_alloc(m, sizeof *g->there_ns);
    g->before = util_alloc(m, sizeof *g->before);
    g->after = util_alloc(m, sizeof *g->after);
    g->held = util_alloc(m, sizeof *g->held);
    g->ready = util_alloc(m, sizeof *g->ready);
    if (!g->device || !g->there_ns || !g->before || !g->after || !g->held || !g->ready)
        return MOIRAI_EFAIL;
    return order_messages(g);
}

/* ---- messages ---- */

static void push(game *g, int32_t message)
{
    int32_t i = g->n_ready++;
    for (; i > 0 && g->ready[(i - 1) / 2] > message; i = (i - 1) / 2)
        g->ready[i] = g->ready[(i - 1) / 2];
    g->ready[i] = message;
}

static int32_t pop(game *g)
{
    int32_t least = g->ready[0], moved = g->ready[--g->n_ready], i = 0;
    for (int32_t c; (c = 2 * i + 1) < g->n_ready; i = c) {
        if (c + 1 < g->n_ready && g->ready[c + 1] < g->ready[c])
            c++;
        if (g->ready[c] >= moved)
            break;
        g->ready[i] = g->ready[c];
    }
    g->ready[i] = moved;
    return least;
}

static bool has_left(const game *g, int32_t message)
{
    return message == NONE || g->there_ns[message] != NONE;
}

static bool may_leave(const game *g, int32_t message)
{
    return g->held[message] && has_left(g, g->before[message][0]) && has_left(g, g->before[message][1]);
}

/* Whatever may leave does, in order. */
static void send(game *g, int64_t now_ns, score *sum)
{
    while (g->n_ready > 0) {
        int32_t m = pop(g);
        if (!g->held[m])
            continue; /* it came here twice, by both that it waited for */
        device *a = &g->device[g->s->source[m]], *b = &g->device[g->s->target[m]];
        int64_t start_ns = g->s->ports ? UTIL_MAX(now_ns, UTIL_MAX(a->out_ns, b->in_ns)) : now_ns;
        g->held[m] = false;
        g->there_ns[m] = a->out_ns = b->in_ns = start_ns + g->s->took_ns[m];
        sum->sum_ns += g->there_ns[m];
        for (int w = 0; w < 2; w++)
            if (g->after[m][w] != NONE && may_leave(g, g->after[m][w]) && (w == 0 || g->after[m][1] != g->after[m][0]))
                push(g, g->after[m][w]);
    }
}

/* ---- segments ---- */

/* Which segments are run next as one. */
static void take(const game *g, device *d, int32_t k, const bool *begins)
{
    int32_t end = g->s->device_off[k + 1];
    for (d->until = d->at; d->until < end && (d->until == d->at || (begins && !begins[d->until])); d->until++)
        ;
    d->read = d->at < end ? g->s->wait_off[d->at] : 0;
    d->arrived_ns = 0;
}

/* Begins what is next, if all that it reads is there. */
static void begin(const game *g, device *d)
{
    const moirai_segments *s = g->s;
    if (d->end_ns != NONE || d->at == d->until)
        return;
    for (; d->read < s->wait_off[d->until]; d->read++) {
        int64_t there_ns = g->there_ns[s->wait[d->read]];
        if (there_ns == NONE)
            return;
        d->arrived_ns = UTIL_MAX(d->arrived_ns, there_ns);
    }
    d->end_ns = UTIL_MAX(d->free_ns, d->arrived_ns);
    for (int32_t i = d->at; i < d->until; i++)
        d->end_ns += s->work_ns[i];
}

/* The device whose segment ends first, or NONE. */
static int32_t next(const game *g)
{
    int32_t found = NONE;
    for (int32_t k = 0; k < g->s->n_devices; k++)
        if (g->device[k].end_ns != NONE && (found == NONE || g->device[k].end_ns < g->device[found].end_ns))
            found = k;
    return found;
}

static void end(game *g, int32_t k, const bool *begins, score *sum)
{
    const moirai_segments *s = g->s;
    device *d = &g->device[k];
    int64_t now_ns = d->end_ns;
    for (int32_t i = s->send_off[d->at]; i < s->send_off[d->until]; i++) {
        g->held[s->send[i]] = true;
        if (may_leave(g, s->send[i]))
            push(g, s->send[i]);
    }
    sum->sum_ns += now_ns - d->last_ns;
    sum->end_ns = UTIL_MAX(sum->end_ns, now_ns);
    d->last_ns = now_ns;
    d->free_ns = now_ns + s->meeting_ns[k];
    d->end_ns = NONE;
    d->at = d->until;
    take(g, d, k, begins);
    send(g, now_ns, sum);
}

/* False: in a circle, or later than `best` (NULL: no matter). */
static bool play(game *g, const bool *begins, const score *best, score *out)
{
    const moirai_segments *s = g->s;
    *out = (score){0};
    memset(g->there_ns, 0xff, (size_t)s->n_messages * sizeof *g->there_ns);
    memset(g->held, 0, (size_t)s->n_messages * sizeof *g->held);
    for (int32_t k = 0; k < s->n_devices; k++) {
        g->device[k] = (device){.at = s->device_off[k], .end_ns = NONE};
        take(g, &g->device[k], k, begins);
        begin(g, &g->device[k]);
    }
    for (int32_t k; (k = next(g)) != NONE;) {
        if (best && g->device[k].end_ns > best->end_ns)
            return false;
        end(g, k, begins, out);
        for (int32_t x = 0; x < s->n_devices; x++)
            begin(g, &g->device[x]);
    }
    for (int32_t k = 0; k < s->n_devices; k++)
        if (g->device[k].at < s->device_off[k + 1])
            return false;
    return !best || out->end_ns < best->end_ns || (out->end_ns == best->end_ns && out->sum_ns <= best->sum_ns);
}

/* ---- merging ---- */

static bool merge_once(game *g, bool *begins, score *best, int64_t *steps)
{
    const moirai_segments *s = g->s;
    int64_t size = segments_of(s) + (int64_t)s->n_messages;
    bool merged = false;
    score now;
    for (int32_t k = 0; k < s->n_devices; k++)
        for (int32_t i = s->device_off[k] + 1; i < s->device_off[k + 1]; i++) {
            if (!begins[i])
                continue;
            if ((*steps += size) > MOST_STEPS)
                return false;
            begins[i] = false;
            if (play(g, begins, best, &now))
                *best = now, merged = true;
            else
                begins[i] = true;
        }
    return merged;
}

/* The heap has room for each message once. */
static int check_senders(game *g)
{
    const moirai_segments *s = g->s;
    memset(g->held, 0, (size_t)s->n_messages * sizeof *g->held);
    for (int32_t i = 0; i < s->send_off[segments_of(s)]; i++) {
        if (g->held[s->send[i]])
            return moirai_error(MOIRAI_EUSAGE, "segments: message %d is sent twice", (int)s->send[i]);
        g->held[s->send[i]] = true;
    }
    return 0;
}

static int open_game(game *g, const moirai_segments *s)
{
    *g = (game){0};
    if (!is_sound(s))
        return moirai_error(MOIRAI_EUSAGE, "segments: a number is out of range");
    int rc = game_init(g, s);
    return rc ? rc : check_senders(g);
}

int moirai_segments_play(int64_t *end_ns, const moirai_segments *s, const bool *begins)
{
    game g;
    score found;
    int rc = open_game(&g, s);
    if (!rc)
        *end_ns = play(&g, begins, NULL, &found) ? found.end_ns : -1;
    game_free(&g);
    return rc;
}

int moirai_segments_merge(bool *begins, int64_t *end_ns, const moirai_segments *s)
{
    game g;
    score best;
    int64_t steps = 0;
    int rc = open_game(&g, s);
    if (!rc) {
        for (int32_t i = 0; i < segments_of(s); i++)
            begins[i] = true;
        bool runs = play(&g, begins, NULL, &best);
        for (int pass = 0; runs && pass < MOST_PASSES && merge_once(&g, begins, &best, &steps); pass++)
            ;
        *end_ns = runs ? best.end_ns : -1;
    }
    game_free(&g);
    return rc;
}
