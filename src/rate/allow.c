/* Room for a mixture: where operators may be, so that the weights of all its plans fit together.
 *
 * A mixture without limits of memory has each plan for a share of the requests. One plan that has each of these for a share of the operators instead, one after the other along the network, loads devices all but
 * the same and holds every weight once: it says where operators have their homes, or next to it where that does not fit. How often the plans change along the network is tried: often is fairer, seldom sends less.
 * What memory is left goes to further places, those first at which a byte takes over most work. The programme is then solved again with plans that keep to these places. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rate/mix.h"
#include "rate/op_weights.h"
#include "util/util.h"

#define MOST_TIMES 64
#define UNUSED (1 / 64.0)  /* the part for which a place counts that no plan uses: others may */
#define LEFT_FOR_TENSORS 2 /* with memory peak a half of what homes leave over: they are held by every request */

typedef struct place {
    double worth;
    int32_t unit, device;
} place;

typedef struct filler {
    const rate_search *s;
    mix_room *room;
    double *part; /* [unit * K + device]: of all requests */
    int64_t bytes[MOIRAI_MASK_DEVICES], most[MOIRAI_MASK_DEVICES];
    rate_op_weights weights;
    bool *there; /* [shared weight * K + device] */
    place *place;
    int32_t n_places;
} filler;

static void count_parts(filler *f, const mixture *x)
{
    const place_units *u = f->s->units;
    for (int32_t c = 0; c < x->n; c++)
        for (int32_t i = 0; i < u->n && x->primal[c + 1] > 0; i++)
            f->part[(int64_t)i * f->s->v.K + x->column[c][u->op[u->off[i]]]] += x->primal[c + 1];
}

/* The column in whose part of all shares a point of [0, 1] lies. */
static int32_t column_at(const mixture *x, double point)
{
    int32_t last = 0;
    double sum = 0;
    for (int32_t c = 0; c < x->n && sum <= point; c++)
        if (x->primal[c + 1] > 0) {
            last = c;
            sum += x->primal[c + 1];
        }
    return last;
}

/* All plans for their shares of the work, `times` along the network, every other time the other way round: neighbours are of one plan then. A unit is where its first operator says. */
static void cross(int32_t *device, const mixture *x, int32_t times)
{
    const moirai_problem *p = x->s->p;
    const place_units *u = x->s->units;
    double all = 0, done = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        all += (double)moirai_op_least_ns(p, i);
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        double at = times * done / fmax(all, 1), point = at - floor(at);
        device[i] = x->column[column_at(x, fmod(floor(at), 2) > 0 ? 1 - point : point)][i];
        done += (double)moirai_op_least_ns(p, i);
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        device[i] = device[u->op[u->off[u->of_op[i]]]];
}

/* The largest load, counted as the mixture does; negative: out of memory. */
static double load_of(const mixture *x, int32_t *device)
{
    const relax_view *v = &x->s->v;
    int64_t *load = util_alloc((size_t)v->n_resources, sizeof *load), one = 1;
    rate_candidate c = {.n_copies = 1, .device = &device};
    double most = load && rate_loads(load, v, &c, &one, 1) >= 0 ? 0 : -1;
    for (int32_t r = 0; r < v->n_resources && most >= 0; r++)
        most = fmax(most, (double)load[r] * (r < v->K ? 1 : x->ease));
    free(load);
    return most;
}

/* The plans along the network, as often as loads are best. */
static int cross_best(int32_t *device, const mixture *x)
{
    int32_t best = 1;
    double least = HUGE_VAL;
    for (int32_t times = 1; times <= MOST_TIMES; times += UTIL_MAX(times / 4, 1)) {
        cross(device, x, times);
        double load = load_of(x, device);
        if (load < 0)
            return MOIRAI_EFAIL;
        best = load < least ? times : best;
        least = fmin(load, least);
    }
    cross(device, x, best);
    return 0;
}

/* Homes that fit; those of the plan of one request where there are no others. */
static int find_homes(filler *f, const mixture *x, bool *enough)
{
    const rate_search *s = f->s;
    const place_units *u = s->units;
    int32_t K = s->v.K, *device = util_alloc((size_t)s->p->n_ops, sizeof *device);
    int rc = device ? cross_best(device, x) : MOIRAI_EFAIL;
    rc = rc ? rc : place_fit_assignment(s->p, u, s->p->device_memory_bytes, device);
    if (rc == MOIRAI_EINFEASIBLE) {
        memcpy(device, s->latency->op_device, sizeof *device * (size_t)s->p->n_ops);
        rc = 0;
    }
    rate_candidate one = {.n_copies = 1, .device = &device};
    rc = rc ? rc : rate_static_bytes(f->bytes, s->p, &one);
    *enough = !rc;
    for (int32_t k = 0; k < K && !rc; k++) {
        int64_t left = s->p->device_memory_bytes[k] - f->bytes[k];
        f->most[k] = f->bytes[k] + (s->p->memory == MOIRAI_MEMORY_PEAK ? left / LEFT_FOR_TENSORS : left);
        *enough &= left >= 0;
    }
    for (int32_t i = 0; i < u->n && !rc; i++) {
        f->room->home[i] = device[u->op[u->off[i]]];
        f->room->devices[i] = UINT64_C(1) << f->room->home[i];
    }
    free(device);
    return rc;
}

static void hold_shared(filler *f, int32_t unit, int32_t k)
{
    const place_units *u = f->s->units;
    for (int32_t i = u->off[unit]; i < u->off[unit + 1]; i++)
        for (int32_t w = f->weights.off[u->op[i]]; w < f->weights.off[u->op[i] + 1]; w++)
            f->there[(int64_t)f->weights.weight[w] * f->s->v.K + k] = true;
}

/* Bytes that a place takes: the unit's own, and the weights that it shares with others, where they are not there. */
static int64_t bytes_of(const filler *f, int32_t unit, int32_t k)
{
    const place_units *u = f->s->units;
    int64_t sum = u->bytes[unit];
    for (int32_t i = u->off[unit]; i < u->off[unit + 1]; i++)
        for (int32_t w = f->weights.off[u->op[i]]; w < f->weights.off[u->op[i] + 1]; w++) {
            int32_t weight = f->weights.weight[w];
            sum += f->there[(int64_t)weight * f->s->v.K + k] ? 0 : f->s->p->weight_bytes[weight];
        }
    return sum;
}

static int by_worth(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return x->unit != y->unit ? (x->unit < y->unit ? -1 : 1) : x->device - y->device;
}

/* All places but homes, the most work per byte first. */
static void list_places(filler *f)
{
    const place_units *u = f->s->units;
    int32_t K = f->s->v.K;
    for (int32_t i = 0; i < u->n; i++)
        for (int32_t k = 0; k < K; k++) {
            if (k == f->room->home[i] || !place_unit_may(u, i, k))
                continue;
            double work = 0;
            for (int32_t o = u->off[i]; o < u->off[i + 1]; o++)
                work += (double)moirai_op_ns(f->s->p, u->op[o], k);
            work *= f->part[(int64_t)i * K + k] + UNUSED;
            f->place[f->n_places++] = (place){(work + 1) / (double)(bytes_of(f, i, k) + 1), i, k};
        }
    qsort(f->place, (size_t)f->n_places, sizeof *f->place, by_worth);
}

static void fill(filler *f)
{
    for (int32_t i = 0; i < f->s->units->n; i++)
        hold_shared(f, i, f->room->home[i]);
    list_places(f);
    for (int32_t i = 0; i < f->n_places; i++) {
        place at = f->place[i];
        int64_t bytes = bytes_of(f, at.unit, at.device);
        if (bytes > f->most[at.device] - f->bytes[at.device])
            continue;
        f->bytes[at.device] += bytes;
        f->room->devices[at.unit] |= UINT64_C(1) << at.device;
        hold_shared(f, at.unit, at.device);
    }
}

int mix_room_open(mix_room *room, const mixture *x, bool *enough)
{
    const rate_search *s = x->s;
    size_t units = (size_t)s->units->n, K = (size_t)s->v.K;
    filler f = {.s = s, .room = room};
    util_memory memory = {0};
    room->devices = util_alloc(units, sizeof *room->devices);
    room->home = util_alloc(units, sizeof *room->home);
    UTIL_TAKE(&memory, f.part, units * K);
    UTIL_TAKE(&memory, f.place, units * K);
    UTIL_TAKE(&memory, f.there, (size_t)s->p->n_weights * K);
    int rc = room->devices && room->home && !memory.failed ? rate_op_weights_open(&f.weights, s->p) : MOIRAI_EFAIL;
    if (!rc) {
        count_parts(&f, x);
        rc = find_homes(&f, x, enough);
    }
    if (!rc && *enough)
        fill(&f);
    rate_op_weights_close(&f.weights);
    util_release(&memory);
    return rc;
}

void mix_room_close(mix_room *room)
{
    free(room->devices);
    free(room->home);
    *room = (mix_room){0};
}
