/* Memory that binds: the best path of block plans that fits, by labels.
 *
 * Which plan each block takes and where the path changes its device is a shortest path with resources: times add up, and
 * so do the bytes of every device. At the prices of the LP solution over paths the cheapest way to the end is known from
 * every cut, so that whatever a beginning of a path costs, one number bounds all that it can become:
 *     cost so far + cheapest way to the end - sum of price * capacity <= time of every path that begins so and fits
 * (weak duality, as in bytes_bound.c). A label is such a beginning: its device, its time and its bytes on the devices that
 * are nearly full. Labels grow block by block (Desrochers and Soumis, 1988); one whose bound is no less than the path at
 * hand is dropped, one that overflows as well. Of those with about the same bytes, within 1/GRAIN of the capacities, the
 * cheapest stays, and of too many the cheapest: that makes it a heuristic, but one that sees all exchanges at once, where
 * annealing needs two changes of which the first alone costs. The rest of the memory is checked where a path has ended.
 *
 * O(blocks * labels * K * plans of a pair); what lies between two cuts without operators has one plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "util/util.h"

#define TIGHT 4     /* devices whose bytes are looked at, at most */
#define NEARLY 0.85 /* of the memory, used by the LP solution: such devices are */
#define GRAIN 400
#define CELL_BITS 10     /* a capacity has fewer than 2 * GRAIN grains */
#define MOST_LABELS 3000 /* behind a block */
#define LEAST_LABELS 50  /* of a problem with many blocks and devices */
#define LABELS 8000000.0 /* times devices, behind all blocks */
#define TABLE 32768      /* a power of two, many times MOST_LABELS */
#define MOST_OPEN (TABLE / 2)
#define HALVINGS 24 /* of a range of costs, for the one that parts labels */

typedef struct label {
    int64_t cost;         /* in units, with the price of all bytes */
    int64_t bytes[TIGHT]; /* on the tight devices */
    uint64_t cell;        /* device and grains: one label each */
    int32_t parent;       /* among the labels before the block */
    int8_t device, pick;
} label;

/* How a label came to be; kept for all blocks. */
typedef struct step {
    int32_t parent;
    int8_t device, pick;
} step;

typedef struct option {
    int64_t cost, bytes[TIGHT];
    int8_t pick;
} option;

typedef struct options {
    bool listed;
    int32_t n;
    option option[BYTES_BLOCK_PLANS + 1];
} options;

typedef struct labelling {
    bytes_prices *m;
    int32_t n_tight, tight[TIGHT];
    double grains[TIGHT]; /* of a byte */
    int32_t most_labels;
    int64_t most;   /* in units: a label's cost and its way to the end must stay below */
    int64_t *to_go; /* [block * K + device before it] */
    options *of_pair;
    label *now, *next;
    int32_t n_now, n_next;
    int64_t *least; /* per label in `next`: what it may become, at the least */
    int32_t *table; /* number of the label + 1, by cell */
    step *step;     /* of all blocks, one after the other */
    size_t n_steps, step_capacity;
    size_t *first; /* per block: its first step */
} labelling;

static int64_t cut_units(const bytes_prices *m, int32_t i, int32_t l)
{
    return bytes_cut_cost(m, m->c->s->cut[i], l, m->now.price);
}

static int64_t late_units(const bytes_prices *m, int32_t block, int32_t k, int32_t l)
{
    return pricing_units(m->c->s->unit, bytes_late_ns(m, block, k, l));
}

/* The cheapest way to the end from every device before every block. */
static void find_to_go(labelling *x)
{
    const bytes_prices *m = x->m;
    int32_t n = m->c->s->n_blocks;
    for (int32_t i = n - 1; i >= 0; i--)
        for (int32_t k = 0; k < m->K; k++) {
            int64_t best = INT64_MAX;
            for (int32_t l = 0; l < m->K; l++) {
                int64_t pair = m->work.pair_cost[bytes_pair_at(m, i, k, l)];
                int64_t rest = i + 1 < n ? x->to_go[(int64_t)(i + 1) * m->K + l] : 0;
                if (!(pair_chain_exit_mask(m->c, i) >> l & 1) || pair == INT64_MAX || rest == INT64_MAX)
                    continue;
                pair += late_units(m, i, k, l) + rest + (i < m->c->s->n_cuts ? cut_units(m, i, l) : 0);
                best = UTIL_MIN(best, pair);
            }
            x->to_go[(int64_t)i * m->K + k] = best;
        }
}

/* Devices that the LP solution fills. */
static void find_tight(labelling *x)
{
    const bytes_prices *m = x->m;
    const bytes_master *plans = &m->plans;
    for (int32_t k = 0; k < m->K && x->n_tight < TIGHT; k++) {
        double use = 0;
        for (size_t j = 0; j < plans->n; j++)
            use += plans->part[j] * plans->path[j].use[k];
        if (m->now.price[k] > 0 || use > NEARLY * (double)m->c->p->device_memory_bytes[k])
            x->tight[x->n_tight++] = k;
    }
    for (int32_t r = 0; r < x->n_tight; r++)
        x->grains[r] = 1 / (double)UTIL_MAX(m->c->p->device_memory_bytes[x->tight[r]] / GRAIN, 1);
}

static bool dominates(const labelling *x, const option *a, const option *b)
{
    bool no_worse = a->cost <= b->cost;
    for (int32_t r = 0; r < x->n_tight && no_worse; r++)
        no_worse = a->bytes[r] <= b->bytes[r];
    return no_worse;
}

/* Plans of the pair, without those that cost no less and have no fewer bytes anywhere than another one. Costs have the
 * price of bytes in them: of equal bytes the shorter, of equal costs the one with fewer. */
static const options *options_of(labelling *x, int64_t pair)
{
    const bytes_prices *m = x->m;
    options *o = &x->of_pair[pair];
    for (int32_t i = -1; i < m->pair[pair].n_plans && !o->listed; i++) {
        int64_t length;
        const int64_t *bytes = bytes_block_plan_at(m, pair, i, &length);
        option now = {.cost = pricing_units(m->c->s->unit, length), .pick = (int8_t)i};
        bool needless = false;
        for (int32_t k = 0; k < m->K; k++)
            now.cost += m->now.price[k] * bytes[k];
        for (int32_t r = 0; r < x->n_tight; r++)
            now.bytes[r] = bytes[x->tight[r]];
        for (int32_t j = 0; j < o->n && !needless; j++)
            needless = dominates(x, &o->option[j], &now);
        if (!needless)
            o->option[o->n++] = now;
    }
    o->listed = true;
    return o;
}

/* The cell's place in the table: where it is, or nothing. */
static uint32_t place_of(const labelling *x, uint64_t cell)
{
    uint32_t at = (uint32_t)(cell * UINT64_C(0x9E3779B97F4A7C15) >> 40) & (TABLE - 1);
    while (x->table[at] && x->next[x->table[at] - 1].cell != cell)
        at = (at + 1) & (TABLE - 1);
    return at;
}

static void offer(labelling *x, label *a, int64_t to_go)
{
    const int64_t *memory = x->m->c->p->device_memory_bytes;
    if (to_go == INT64_MAX || a->cost + to_go >= x->most)
        return;
    for (int32_t r = 0; r < x->n_tight; r++)
        if (a->bytes[r] > memory[x->tight[r]])
            return;
    a->cell = (uint64_t)a->device + 1;
    for (int32_t r = 0; r < x->n_tight; r++)
        a->cell = a->cell << CELL_BITS | (uint64_t)((double)a->bytes[r] * x->grains[r]);
    uint32_t at = place_of(x, a->cell);
    int32_t number = x->table[at] ? x->table[at] - 1 : x->n_next;
    if (number == MOST_OPEN || (x->table[at] && a->cost >= x->next[number].cost))
        return;
    x->next[number] = *a;
    x->least[number] = a->cost + to_go;
    x->n_next += !x->table[at];
    x->table[at] = number + 1;
}

/* One label through block i to device l. */
static void grow(labelling *x, int32_t i, int32_t at, int32_t l)
{
    const bytes_prices *m = x->m;
    const label *from = &x->now[at];
    int64_t pair = bytes_pair_at(m, i, from->device, l), to_go = 0, more = late_units(m, i, from->device, l), bytes = 0;
    if (m->work.pair_cost[pair] == INT64_MAX)
        return;
    if (i < m->c->s->n_cuts) {
        to_go = x->to_go[(int64_t)(i + 1) * m->K + l];
        more += cut_units(m, i, l);
        bytes = m->c->p->op_memory_bytes[m->c->s->cut[i]];
    }
    if (to_go == INT64_MAX || from->cost + m->work.pair_cost[pair] + more + to_go >= x->most)
        return;
    const options *o = options_of(x, pair);
    for (int32_t j = 0; j < o->n; j++) {
        label next = {.cost = from->cost + o->option[j].cost + more,
                      .parent = at,
                      .device = (int8_t)l,
                      .pick = o->option[j].pick};
        for (int32_t r = 0; r < x->n_tight; r++)
            next.bytes[r] = from->bytes[r] + o->option[j].bytes[r] + (x->tight[r] == l ? bytes : 0);
        offer(x, &next, to_go);
    }
}

/* The number below which n of the labels are, about: by halving its range. */
static int64_t threshold(const labelling *x, int32_t n)
{
    int64_t low = INT64_MAX, high = x->most;
    for (int32_t j = 0; j < x->n_next; j++)
        low = UTIL_MIN(low, x->least[j]);
    for (int32_t i = 0; i < HALVINGS && low < high; i++) {
        int64_t middle = low + (high - low) / 2;
        int32_t below = 0;
        for (int32_t j = 0; j < x->n_next; j++)
            below += x->least[j] < middle;
        if (below == n)
            return middle;
        *(below < n ? &low : &high) = middle;
    }
    return high;
}

/* Of too many labels those that may become the shortest paths. */
static void shrink(labelling *x)
{
    if (x->n_next <= x->most_labels)
        return;
    int64_t most = threshold(x, x->most_labels);
    int32_t n = 0;
    for (int32_t j = 0; j < x->n_next && n < x->most_labels; j++)
        if (x->least[j] < most)
            x->next[n++] = x->next[j];
    x->n_next = n;
}

static int pass_block(labelling *x, int32_t i)
{
    const bytes_prices *m = x->m;
    memset(x->table, 0, sizeof *x->table * TABLE);
    x->n_next = 0;
    for (int32_t at = 0; at < x->n_now; at++)
        for (int32_t l = 0; l < m->K; l++)
            if (pair_chain_exit_mask(m->c, i) >> l & 1)
                grow(x, i, at, l);
    shrink(x);
    if (util_grow(&x->step, &x->step_capacity, x->n_steps + (size_t)x->n_next, sizeof *x->step))
        return MOIRAI_EFAIL;
    x->first[i] = x->n_steps;
    for (int32_t j = 0; j < x->n_next; j++)
        x->step[x->n_steps++] = (step){x->next[j].parent, x->next[j].device, x->next[j].pick};
    label *spare = x->now;
    x->now = x->next;
    x->n_now = x->n_next;
    x->next = spare;
    return 0;
}

/* The path that ends in a label, into m->at.device and m->at.picked. */
static void trace(const labelling *x, int32_t at)
{
    bytes_prices *m = x->m;
    for (int32_t i = m->c->s->n_blocks - 1; i >= 0; i--) {
        const step *s = &x->step[x->first[i] + (size_t)at];
        m->at.picked[i] = s->pick;
        if (i < m->c->s->n_cuts)
            m->at.device[i] = s->device;
        at = s->parent;
    }
}

/* The shortest of the paths that have come through, by time alone. */
static int32_t shortest(const labelling *x, int64_t most_ns)
{
    const bytes_prices *m = x->m;
    int64_t best = pricing_units(m->c->s->unit, most_ns);
    int32_t found = -1;
    for (int32_t j = 0; j < x->n_now; j++) {
        int64_t time = x->now[j].cost;
        for (int32_t r = 0; r < x->n_tight; r++)
            time -= m->now.price[x->tight[r]] * x->now[j].bytes[r];
        if (time < best) {
            best = time;
            found = j;
        }
    }
    return found;
}

static int labelling_open(labelling *x)
{
    size_t blocks = (size_t)x->m->c->s->n_blocks;
    x->most_labels = (int32_t)fmin(fmax(LABELS / (double)blocks / (double)x->m->K, LEAST_LABELS), MOST_LABELS);
    x->to_go = util_alloc(blocks * (size_t)x->m->K, sizeof *x->to_go);
    x->of_pair = util_alloc((size_t)pair_chain_count(x->m->c), sizeof *x->of_pair);
    x->now = util_alloc(MOST_OPEN, sizeof *x->now);
    x->next = util_alloc(MOST_OPEN, sizeof *x->next);
    x->least = util_alloc(MOST_OPEN, sizeof *x->least);
    x->table = util_alloc(TABLE, sizeof *x->table);
    x->first = util_alloc(blocks, sizeof *x->first);
    return x->to_go && x->of_pair && x->now && x->next && x->least && x->table && x->first ? 0 : MOIRAI_EFAIL;
}

static void labelling_clear(labelling *x)
{
    free(x->to_go);
    free(x->of_pair);
    free(x->now);
    free(x->next);
    free(x->least);
    free(x->table);
    free(x->step);
    free(x->first);
}

int bytes_path_by_labels(bool *found, bytes_prices *m, int64_t most_ns, const util_stop *stop)
{
    labelling x = {.m = m, .most = pricing_units(m->c->s->unit, most_ns)};
    *found = false;
    for (int32_t k = 0; k < m->K; k++) {
        __int128 worth = (__int128)m->now.price[k] * m->c->p->device_memory_bytes[k];
        if (worth > INT64_MAX / 4 || x.most > INT64_MAX / 2)
            return 0;
        x.most += (int64_t)worth;
    }
    int rc = labelling_open(&x);
    if (!rc) {
        find_tight(&x);
        find_to_go(&x);
        x.now[0] = (label){.device = 0};
        x.n_now = 1;
    }
    for (int32_t i = 0; i < m->c->s->n_blocks && !rc && x.n_now && !util_stopped(stop); i++)
        rc = pass_block(&x, i);
    int32_t at = rc || util_stopped(stop) ? -1 : shortest(&x, most_ns); /* stopped: they are half-way */
    if (at >= 0)
        trace(&x, at);
    *found = at >= 0;
    labelling_clear(&x);
    return rc;
}
