/* A path of block plans within memory, annealed.
 *
 * Most changes take a window of the path anew, at prices on bytes drawn around the dual values; what is best at some price
 * of bytes need not fill the memory, so that others change a plan or a cut alone, two of them mostly. The energy is time
 * plus a fine on every byte too many. A change costs O(window * K^2). */
#include <math.h>

#include "anneal/anneal.h"
#include "bytes/bytes_state.h"
#include "bytes/bytes_tuning.h"
#include "util/util.h"

/* The cheapest way through blocks first .. last at the present prices, ends fixed; into m->at.device and m->at.picked. */
static void redo_window(bytes_prices *m, int32_t first, int32_t last)
{
    if (bytes_cheapest_path(m, first, last) != INT64_MAX)
        bytes_pick_plans(m, first, last);
}

/* Time plus a price on every byte too many, well above what a byte is worth. */
static double energy(const bytes_prices *m, const bytes_path *p, double fine)
{
    double sum = p->time_ns;
    for (int32_t k = 0; k < m->K; k++)
        sum += fine * fmax(p->use[k] - (double)m->c->p->device_memory_bytes[k], 0);
    return sum;
}

/* Prices around the dual values, each device off by its own factor. */
static void draw_prices(bytes_prices *m, const double *dual_ns, util_rng *rng)
{
    double drawn[MOIRAI_MASK_DEVICES], most = 0;
    for (int32_t k = 0; k < m->K; k++)
        most = fmax(most, dual_ns[k]);
    for (int32_t k = 0; k < m->K; k++)
        drawn[k] = fmax(dual_ns[k], 0.02 * most) * exp((util_rng_real(rng) - 0.5) * 4);
    bytes_set_duals(m, drawn);
    bytes_price_plans(m, true);
}

typedef struct polishing {
    bytes_prices *m;
    const double *dual_ns;
    double fine; /* per byte too many */
    bytes_path now;
    double energy, least;
    util_rng rng;
    int64_t *length_ns; /* of the best path that fits, which is kept */
} polishing;

static double fine_of(const bytes_prices *m, const double *dual_ns)
{
    double most = 0;
    for (int32_t k = 0; k < m->K; k++)
        most = fmax(most, dual_ns[k] / (double)UTIL_MAX(m->c->p->device_memory_bytes[k], 1));
    return 4 * most + 1e-9;
}

static void keep_path(bytes_prices *m)
{
    const decompose_cuts *s = m->c->s;
    bytes_choose(m, &m->last, &m->at);
    for (int32_t i = 0; i < s->n_blocks; i++) {
        const bytes_pair *v = &m->pair[bytes_pair_of(m, i)];
        m->plan[i] = m->at.picked[i] < 0 ? NULL : &v->plans[m->at.picked[i]].plan;
    }
}

/* Keeps the path at hand where it is the shortest so far that fits. */
static void keep_if_best(polishing *x)
{
    bytes_prices *m = x->m;
    if (x->energy >= x->least || (int64_t)x->now.time_ns >= *x->length_ns)
        return;
    for (int32_t k = 0; k < m->K; k++)
        if (x->now.use[k] > (double)m->c->p->device_memory_bytes[k])
            return;
    x->least = x->energy;
    *x->length_ns = (int64_t)x->now.time_ns;
    keep_path(m);
}

/* Another plan for a block between the same devices, of all that are known. */
static bool repick(polishing *x, int32_t block)
{
    bytes_prices *m = x->m;
    uint32_t n = (uint32_t)m->pair[bytes_pair_of(m, block)].n_plans;
    m->at.picked[block] = (int8_t)((int32_t)util_rng_below(&x->rng, n + 1) - 1);
    return true;
}

/* The cut behind a block to another device, the blocks beside it by their cheapest plans. */
static bool flip(polishing *x, int32_t block)
{
    bytes_prices *m = x->m;
    int32_t k = (int32_t)util_rng_below(&x->rng, (uint32_t)m->K);
    if (!(pair_chain_exit_mask(m->c, block) >> k & 1) || m->at.device[block] == k)
        return false;
    m->at.device[block] = k;
    bytes_pick_plans(m, block, block + 1);
    return m->work.pair_cost[bytes_pair_of(m, block)] != INT64_MAX &&
           m->work.pair_cost[bytes_pair_of(m, block + 1)] != INT64_MAX;
}

/* A change of blocks first .. last of the path, and how they were. */
typedef struct change {
    int32_t first, last;
    int32_t device[BYTES_POLISH_WINDOW];
    int8_t pick[BYTES_POLISH_WINDOW];
} change;

static void undo(polishing *x, const change *c)
{
    bytes_prices *m = x->m;
    for (int32_t i = c->first; i <= c->last; i++) {
        m->at.picked[i] = c->pick[i - c->first];
        if (i < m->c->s->n_cuts)
            m->at.device[i] = c->device[i - c->first];
    }
}

/* Adds what the change makes of time and bytes to *sum; false where it is none, or not allowed. */
static bool make(polishing *x, change *c, bool window, bytes_path *sum)
{
    bytes_prices *m = x->m;
    int32_t n = m->c->s->n_blocks, size = 2;
    if (window)
        size += (int32_t)util_rng_below(&x->rng, (uint32_t)UTIL_MIN(BYTES_POLISH_WINDOW - 1, n - 1));
    c->first = (int32_t)util_rng_below(&x->rng, (uint32_t)(n - size + 1));
    c->last = c->first + size - 1;
    bool plan = m->pair[bytes_pair_of(m, c->first)].n_plans > 0 && util_rng_below(&x->rng, 4);
    for (int32_t i = c->first; i <= c->last; i++) {
        c->pick[i - c->first] = m->at.picked[i];
        c->device[i - c->first] = i < m->c->s->n_cuts ? m->at.device[i] : 0;
    }
    bytes_path before = bytes_measure(m, c->first, c->last);
    if (window)
        redo_window(m, c->first, c->last);
    else if (!(plan ? repick(x, c->first) : flip(x, c->first)))
        return false;
    bytes_path after = bytes_measure(m, c->first, c->last);
    sum->time_ns += after.time_ns - before.time_ns;
    for (int32_t k = 0; k < m->K; k++)
        sum->use[k] += after.use[k] - before.use[k];
    return true;
}

/* Half of the time a window of the path is taken anew at the prices at hand. What is best at some price of bytes need not
 * fill the memory, so that otherwise a block gets any other plan, or a cut another device; mostly two of these at once:
 * one makes room for the other. Undone where it costs more than `above`. */
static void try_change(polishing *x, double above)
{
    change c[2];
    bytes_path next = x->now;
    bool window = util_rng_below(&x->rng, 2);
    int32_t n = 0, most = window || util_rng_below(&x->rng, 4) == 0 ? 1 : 2;
    bool made = true;
    while (n < most && made)
        made = make(x, &c[n++], window, &next);
    double costs = made ? energy(x->m, &next, x->fine) : HUGE_VAL;
    if (costs <= x->energy + above) {
        x->now = next;
        x->energy = costs;
        return;
    }
    while (n > 0)
        undo(x, &c[--n]);
}

static void renew(void *data)
{
    polishing *x = data;
    draw_prices(x->m, x->dual_ns, &x->rng);
}

static bool judge(void *data, double above)
{
    polishing *x = data;
    try_change(x, above);
    keep_if_best(x);
    return true;
}

void bytes_polish(bytes_prices *m, const double *dual_ns, double heat, const bytes_plan_task *job, int64_t *length_ns)
{
    polishing x = {.m = m, .dual_ns = dual_ns, .now = bytes_measure_path(m), .least = HUGE_VAL, .length_ns = length_ns};
    x.fine = fine_of(m, dual_ns);
    util_rng_seed(&x.rng, job->seed);
    x.energy = energy(m, &x.now, x.fine);
    keep_if_best(&x);
    if (x.now.time_ns > 0)
        anneal_run(&(anneal_task){
            .hot = heat * x.now.time_ns,
            .cold = BYTES_POLISH_COLD * x.now.time_ns,
            .steps = UTIL_MIN(BYTES_POLISH_STEPS, (int64_t)BYTES_POLISH_STEPS_BLOCK * (m->c->s->n_blocks - 1)),
            .stride = BYTES_POLISH_STRIDE,
            .rng = &x.rng,
            .stop = &job->stop,
            .data = &x,
            .renew = renew,
            .judge = judge});
}
