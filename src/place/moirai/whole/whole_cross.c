/* Plans from plans: a stretch of one state takes devices and order from another.
 *
 * A deep network is many stages in a row, and a run of annealing draws a valley for each of them. Runs from different
 * seeds draw differently: one is good here, one there, and their lengths tell little of their stages. So the states that
 * runs end with are kept, and stretches of one are put into another: the operators at positions i to j take the order that
 * the other state has them in, and its devices. Any such order is one of precedence, because operators before and behind
 * the stretch stay where they are. Where the two states agree on what crosses the stretch's ends the result is as good as
 * the better one in each part: k states of s stages give the sum of the best of k draws for each stage, which would take
 * k^s runs.
 *
 * Stretches of all lengths, from all of the order down to a few operators, at starts that overlap, are tried one after the
 * other, and what is shorter is taken. A try is a trial of whole_sim.c: it mostly ends where its stretch does. Some
 * ten thousand tries take what one percent of a run takes. The four shortest states do so side by side, each with all
 * others as they were; then again, as long as one of them gets shorter. No two states meet twice in vain. */
#include "place/moirai/whole/whole_cross.h"

#include <stdlib.h>
#include <string.h>

#include "util/pool.h"

#define SHORTEST 12 /* positions of a stretch */
#define OVERLAP 8   /* starts in a stretch's length */
#define SHARE 0.25  /* of the evaluations of a round: so many tries for each of the four */

static void state_clear(place_state *s)
{
    free(s->device);
    free(s->order);
    *s = (place_state){0};
}

void place_states_clear(place_states *s)
{
    for (int32_t i = 0; i < s->n; i++)
        state_clear(&s->state[i]);
    s->n = 0;
}

static int state_open(place_state *s, int32_t n)
{
    *s = (place_state){.device = util_alloc((size_t)n, sizeof(int32_t)),
                       .order = util_alloc((size_t)n, sizeof(int32_t))};
    return s->device && s->order ? 0 : MOIRAI_EFAIL;
}

static void state_read(place_state *s, const place_whole *w)
{
    s->makespan_ns = w->makespan_ns;
    memcpy(s->device, w->device, sizeof *s->device * (size_t)w->n);
    memcpy(s->order, w->order, sizeof *s->order * (size_t)w->n);
}

static int32_t longest_of(const place_states *s)
{
    int32_t worst = 0;
    for (int32_t i = 1; i < s->n; i++)
        if (s->state[i].makespan_ns > s->state[worst].makespan_ns)
            worst = i;
    return worst;
}

static bool same(const place_state *s, const place_whole *w)
{
    size_t bytes = sizeof *s->device * (size_t)w->n;
    return s->makespan_ns == w->makespan_ns && !memcmp(s->device, w->device, bytes) &&
           !memcmp(s->order, w->order, bytes);
}

int place_states_add(place_states *s, const place_whole *w)
{
    int32_t at = s->n;
    for (int32_t i = 0; i < s->n; i++)
        if (same(&s->state[i], w))
            return 0;
    if (s->n == PLACE_STATES_MOST) {
        at = longest_of(s);
        if (s->state[at].makespan_ns <= w->makespan_ns)
            return 0;
    } else if (state_open(&s->state[s->n++], w->n)) {
        return MOIRAI_EFAIL;
    }
    state_read(&s->state[at], w);
    s->state[at].number = s->made++;
    s->state[at].met = 0;
    return 0;
}

/* ---- crossing ---- */

typedef struct parent {
    place_whole *w;
    int32_t *position; /* of operators in the other state */
    int32_t *stretch;
    bool *inside; /* per operator */
    int32_t from; /* the state that it was */
    int64_t left; /* tries */
} parent;

typedef struct crossing {
    const place_states *s;
    const place_whole_task *job;
    parent parent[PLACE_WHOLE_CHAINS];
} crossing;

/* The operators from position `first` on, in the order of the other state. */
static void sort_stretch(parent *x, const place_state *other, int32_t first, int32_t n)
{
    const place_whole *w = x->w;
    int32_t low = w->n, high = 0, found = 0;
    for (int32_t i = first; i < first + n; i++) {
        int32_t op = w->order[i];
        x->inside[op] = true;
        low = UTIL_MIN(low, x->position[op]);
        high = UTIL_MAX(high, x->position[op]);
    }
    for (int32_t q = low; q <= high; q++) {
        int32_t op = other->order[q];
        if (x->inside[op])
            x->stretch[found++] = op;
        x->inside[op] = false;
    }
}

/* The n operators that come next in the other state when all before position `first` are done, in its order, then what
 * is left of the state's own order up to the last of them; how many these are in all. */
static int32_t sort_next(parent *x, const place_state *other, int32_t first, int32_t n)
{
    const place_whole *w = x->w;
    int32_t end = first + n, found = 0;
    for (int32_t q = 0; found < n; q++) {
        int32_t op = other->order[q];
        if (w->position[op] < first)
            continue;
        x->stretch[found++] = op;
        x->inside[op] = true;
        end = UTIL_MAX(end, w->position[op] + 1);
    }
    for (int32_t q = first; q < end; q++) {
        int32_t op = w->order[q];
        if (!x->inside[op])
            x->stretch[found++] = op;
        x->inside[op] = false;
    }
    return found;
}

/* Gives n operators from position `first` on the order and the devices of the other state, and keeps that if it is
 * shorter: those that are there, or those that come next in the other state. */
static void take_stretch(parent *x, const place_state *other, int32_t first, int32_t n, bool next)
{
    place_whole *w = x->w;
    int32_t length = n;
    if (next)
        length = sort_next(x, other, first, n);
    else
        sort_stretch(x, other, first, n);
    bool changed = memcmp(x->stretch, w->order + first, sizeof *x->stretch * (size_t)length) != 0;
    place_whole_begin(w);
    if (changed)
        place_whole_lay(w, first, length, x->stretch);
    for (int32_t i = 0; i < n; i++)
        changed |= place_whole_move(w, x->stretch[i], other->device[x->stretch[i]]);
    if (!changed)
        return;
    if (place_whole_try(w, w->makespan_ns - 1) == INT64_MAX)
        place_whole_reject(w);
    else
        place_whole_accept(w);
}

/* Stretches of this length, wherever they begin. */
static void cross_with(parent *x, const place_state *other, int32_t length, const util_stop *stop)
{
    int32_t n = x->w->n, step = UTIL_MAX(length / OVERLAP, 1);
    for (int32_t first = 0; first < n && x->left > 0 && !util_stopped(stop); first += step)
        for (int32_t next = 0; next < 2; next++, x->left--)
            take_stretch(x, other, first, UTIL_MIN(length, n - first), next);
}

static int cross_one(void *data, int32_t i)
{
    const crossing *c = data;
    parent *x = &((crossing *)data)->parent[i];
    int64_t met = c->s->state[x->from].met;
    for (int32_t j = 0; j < c->s->n; j++) {
        const place_state *other = &c->s->state[j];
        if (other->number < met || j == x->from)
            continue;
        for (int32_t q = 0; q < x->w->n; q++)
            x->position[other->order[q]] = q;
        for (int32_t length = x->w->n; length >= SHORTEST; length = length * 2 / 3)
            cross_with(x, other, length, &c->job->stop);
    }
    return 0;
}

static int parent_open(parent *x, const moirai_problem *p)
{
    size_t n = (size_t)p->n_ops;
    x->position = util_alloc(n, sizeof *x->position);
    x->stretch = util_alloc(n, sizeof *x->stretch);
    x->inside = util_alloc(n, sizeof *x->inside);
    return x->position && x->stretch && x->inside ? place_whole_new(&x->w, p) : MOIRAI_EFAIL;
}

static void parent_clear(parent *x)
{
    place_whole_free(x->w);
    free(x->position);
    free(x->stretch);
    free(x->inside);
}

/* The state that is the `rank`-th by length; equal ones in the order they came. */
static int32_t ranked(const place_states *s, int32_t rank)
{
    for (int32_t i = 0; i < s->n; i++) {
        const place_state *a = &s->state[i];
        int32_t before = 0;
        for (int32_t j = 0; j < s->n; j++) {
            const place_state *b = &s->state[j];
            before += b->makespan_ns < a->makespan_ns || (b->makespan_ns == a->makespan_ns && b->number < a->number);
        }
        if (before == rank)
            return i;
    }
    return 0;
}

/* One pass of the shortest states over all that they have not met; false: none of them got shorter. */
static int pass(crossing *c, place_states *s, bool *gain)
{
    int32_t n = UTIL_MIN(PLACE_WHOLE_CHAINS, s->n);
    int64_t made = s->made;
    for (int32_t i = 0; i < n; i++) {
        parent *x = &c->parent[i];
        x->from = ranked(s, i);
        place_whole_set(x->w, s->state[x->from].device, s->state[x->from].order);
    }
    int rc = util_pool_run(cross_one, c, n, c->job->threads);
    *gain = false;
    for (int32_t i = 0; i < n && !rc; i++) { /* before any is added, which may put another in its place */
        const parent *x = &c->parent[i];
        bool shorter = x->w->makespan_ns < s->state[x->from].makespan_ns;
        *gain |= shorter;
        if (!shorter && x->left > 0 && !util_stopped(&c->job->stop))
            s->state[x->from].met = made;
    }
    for (int32_t i = 0; i < n && !rc; i++)
        rc = place_states_add(s, c->parent[i].w);
    return rc;
}

/* The shortest that fits: memory at its peak is not what a state knows. */
static int take_shortest(moirai_plan **plan, const place_states *s, const moirai_problem *p, place_whole *w)
{
    moirai_sim *sim;
    int rc = moirai_sim_new(&sim, p);
    for (int32_t rank = 0; rank < UTIL_MIN(PLACE_WHOLE_CHAINS, s->n) && !rc; rank++) {
        const place_state *state = &s->state[ranked(s, rank)];
        place_whole_set(w, state->device, state->order);
        rc = place_whole_take(plan, sim, w);
    }
    moirai_sim_free(sim);
    return rc;
}

int place_states_cross(moirai_plan **plan, place_states *s, const moirai_problem *p, const place_whole_task *job)
{
    crossing c = {.s = s, .job = job};
    int32_t *order = NULL;
    int rc = place_whole_order(&order, p, *plan);
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS && !rc; i++) {
        rc = parent_open(&c.parent[i], p);
        c.parent[i].left = (int64_t)(SHARE * (double)job->evaluations) + 1;
    }
    if (!rc) { /* the plan itself is one of them */
        place_whole_set(c.parent[0].w, (*plan)->op_device, order);
        rc = place_states_add(s, c.parent[0].w);
    }
    bool gain = true;
    while (gain && !rc && !util_stopped(&job->stop))
        rc = pass(&c, s, &gain);
    rc = rc ? rc : take_shortest(plan, s, p, c.parent[0].w);
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++)
        parent_clear(&c.parent[i]);
    free(order);
    return rc;
}
