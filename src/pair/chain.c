/* Dynamic programming over cuts (docs/theory.md, Theorem 4).
 *
 * With f(i, k) the least possible finish of cut i on device k,
 *     f(i+1, l) >= min over k of f(i, k) + lower(block, k, l) + time(cut i+1, l).
 * With plans in place of lower bounds the same recursion gives the best chain of block plans; what it does not see are
 * edges that jump over a cut, and memory. */
#include "pair/chain.h"

#include <stdlib.h>
#include <string.h>

#include "pair/pair_tuning.h"
#include "problem/equal_devices.h"
#include "util/util.h"

#define BLOCKS_PER_LOOK 16 /* at the clock */

static void free_pair(pair_state *x)
{
    if (!x)
        return;
    pair_cases_free(x->cases, x->n_cases);
    pair_cases_free(x->kept.cases, x->kept.n);
    relax_answer_clear(&(relax_answer){.proof = x->loads.proof});
    free(x->search.tree);
    for (int32_t i = 0; i < PAIR_SOLVERS; i++)
        pricing_master_free(x->master[i]);
    free(x->sending.how);
    if (x->open)
        free(x->block.problem.op_devices);
    pair_plan_free(&x->plan);
    free(x);
}

void pair_chain_free(pair_chain *c)
{
    if (!c)
        return;
    for (int64_t i = 0; c->s && c->pair && i < pair_chain_count(c); i++)
        free_pair(c->pair[i]);
    for (int32_t i = 0; c->s && c->block && i < c->s->n_classes; i++)
        decompose_block_free(c->block[i]);
    decompose_cuts_free(c->s);
    util_release(&c->memory);
    free(c);
}

/* Pairs are pointers until they are opened: a byte per operator and device, and some more for small problems. */
static int check_size(const pair_chain *c)
{
    double pairs = (double)pair_chain_count(c), steps = (double)c->s->n_blocks * c->K * c->K;
    if (pairs > PAIR_CHAIN_MOST_PAIRS + 0.125 * c->p->n_ops * c->K || steps > PAIR_CHAIN_MOST_STEPS)
        return moirai_error(MOIRAI_ELIMIT, "'%s': %d classes of blocks on %d devices are too many to go through",
                            c->p->name, c->s->n_classes, c->K);
    return 0;
}

/* The longest path through each class's block by least times, transfers left out. O(V K + E). */
static int find_floors(pair_chain *c)
{
    const moirai_problem *p = c->p;
    const decompose_cuts *s = c->s;
    int64_t *finish = util_alloc((size_t)p->n_ops, sizeof *finish);
    if (!finish)
        return MOIRAI_EFAIL;
    for (int32_t class_ = 0; class_ < s->n_classes; class_++) {
        int32_t block = s->class_block[class_], first = s->block_first[block], last = first + s->block_size[block];
        for (int32_t z = first; z < last; z++) {
            int32_t i = p->topo[z];
            int64_t ready = 0;
            for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
                int32_t from = p->tensor_producer[p->op_in[j]];
                if (p->topo_rank[from] >= first)
                    ready = UTIL_MAX(ready, finish[from]);
            }
            finish[i] = ready + moirai_op_least_ns(p, i);
            c->floor_ns[class_] = UTIL_MAX(c->floor_ns[class_], finish[i]);
        }
    }
    free(finish);
    return 0;
}

void pair_chain_join_equals(pair_chain *c)
{
    problem_equal_devices(c->p, c->least);
    for (int32_t k = c->K - 1; k >= 0; k--)
        if (k != c->least[k])
            c->second[c->least[k]] = k;
}

void pair_chain_tell_apart(pair_chain *c)
{
    for (int32_t k = 0; k < c->K; k++)
        c->least[k] = c->second[k] = k;
}

int64_t pair_chain_distinct(const pair_chain *c)
{
    int64_t n = 0, all = pair_chain_count(c);
    for (int64_t i = 0; i < all; i++)
        n += pair_chain_index(c, (int32_t)(i / c->K / c->K), (int32_t)(i / c->K % c->K), (int32_t)(i % c->K)) == i;
    return n;
}

static void put(int32_t *device, int32_t at, int32_t value)
{
    int32_t other = 0;
    while (device[other] != value)
        other++;
    device[other] = device[at];
    device[at] = value;
}

void pair_chain_exchange(const pair_chain *c, int32_t class_, int32_t a, int32_t b, int32_t *device)
{
    int64_t pair = pair_chain_index(c, class_, a, b);
    for (int32_t k = 0; k < c->K; k++)
        device[k] = k;
    put(device, (int32_t)(pair / c->K % c->K), a);
    if (pair_chain_has_exit(c, class_))
        put(device, (int32_t)(pair % c->K), b);
}

int pair_chain_new(pair_chain **out, const moirai_problem *p)
{
    return pair_chain_over(out, p, NULL);
}

int pair_chain_over(pair_chain **out, const moirai_problem *p, const bool *chosen)
{
    *out = NULL;
    pair_chain *c = util_alloc(1, sizeof *c);
    if (!c)
        return MOIRAI_EFAIL;
    c->p = p;
    c->K = p->n_devices;
    c->most_listed = PAIR_CHAIN_MOST_LISTED;
    pair_chain_tell_apart(c);
    int rc = decompose_cuts_chosen(&c->s, p, chosen);
    rc = rc ? rc : check_size(c);
    if (!rc) {
        size_t classes = (size_t)c->s->n_classes;
        UTIL_TAKE(&c->memory, c->block, classes);
        UTIL_TAKE(&c->memory, c->pair, (size_t)pair_chain_count(c));
        UTIL_TAKE(&c->memory, c->floor_ns, classes);
        rc = c->memory.failed ? MOIRAI_EFAIL : find_floors(c);
    }
    if (rc)
        pair_chain_free(c);
    else
        *out = c;
    return rc;
}

const decompose_block *pair_chain_block(pair_chain *c, int32_t class_)
{
    if (!c->block[class_])
        decompose_block_new(&c->block[class_], c->p, c->s, c->s->class_block[class_]);
    return c->block[class_];
}

uint64_t pair_chain_entry_mask(const pair_chain *c, int32_t block)
{
    int32_t op = decompose_entry(c->s, block);
    return op >= 0 ? c->p->op_devices[op] : 1;
}

uint64_t pair_chain_exit_mask(const pair_chain *c, int32_t block)
{
    int32_t op = decompose_exit(c->s, block);
    return op >= 0 ? c->p->op_devices[op] : 1;
}

bool pair_chain_possible(const pair_chain *c, int32_t class_, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < c->s->n_blocks; i++)
        if (c->s->block_class[i] == class_ && pair_chain_may(c, i, a, b))
            return true;
    return false;
}

double pair_chain_share(const pair_chain *c, int32_t class_, int64_t length_ns)
{
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < c->K * c->K; i++) {
        const pair_state *x = pair_chain_get(c, (int64_t)class_ * c->K * c->K + i);
        if (x->plan.device)
            least = UTIL_MIN(least, x->plan.length_ns);
    }
    double times = c->s->class_count[class_];
    return least == INT64_MAX || length_ns <= 0 ? 0 : times * (double)least / (double)length_ns;
}

static int64_t pair_value(const pair_state *x, pair_chain_side side, int64_t floor_ns)
{
    if (side == PAIR_CHAIN_LOWER)
        return UTIL_MAX(x->lower_ns, floor_ns);
    if (side == PAIR_CHAIN_CERTIFIED)
        return pair_certified_ns(x);
    return x->plan.device ? x->plan.length_ns : INT64_MAX;
}

/* What blocks of a class take between all pairs, [k * K + l]; INT64_MAX: no plan. */
static void class_values(int64_t *value, const pair_chain *c, pair_chain_side side, int64_t switch_ns, int32_t class_)
{
    int64_t floor_ns = c->floor_ns[class_];
    for (int32_t i = 0; i < c->K * c->K; i++) {
        value[i] = pair_value(pair_chain_at(c, class_, i / c->K, i % c->K), side, floor_ns);
        if (value[i] != INT64_MAX && i / c->K != i % c->K)
            value[i] += switch_ns;
    }
}

/* One step of the recursion; from[l] remembers the best predecessor. */
static void step(const pair_chain *c, const int64_t *value, int32_t block, const int64_t *finish, int64_t *next,
                 int8_t *from)
{
    uint64_t exits = pair_chain_exit_mask(c, block), entries = pair_chain_entry_mask(c, block);
    int32_t exit = decompose_exit(c->s, block);
    for (int32_t l = 0; l < c->K; l++) {
        next[l] = INT64_MAX;
        from[l] = 0;
    }
    for (int32_t k = 0; k < c->K; k++)
        for (int32_t l = 0; l < c->K && (entries >> k & 1) && finish[k] != INT64_MAX; l++) {
            int64_t way = value[k * c->K + l];
            if ((exits >> l & 1) && way != INT64_MAX && finish[k] + way < next[l]) {
                next[l] = finish[k] + way;
                from[l] = (int8_t)k;
            }
        }
    for (int32_t l = 0; l < c->K; l++)
        if (next[l] != INT64_MAX && exit >= 0)
            next[l] += moirai_op_ns(c->p, exit, l);
}

static int64_t best_path(const pair_chain *c, pair_chain_side side, int64_t switch_ns, int32_t *cut_device,
                         const util_stop *stop)
{
    int64_t finish[MOIRAI_MASK_DEVICES] = {0}, next[MOIRAI_MASK_DEVICES], *value;
    size_t K = (size_t)c->K;
    int8_t *from; /* [block * K + device] */
    util_memory memory = {0};
    UTIL_TAKE(&memory, value, K * K);
    UTIL_TAKE(&memory, from, (size_t)c->s->n_blocks * K);
    bool whole = !memory.failed;
    for (int32_t k = 1; k < c->K; k++)
        finish[k] = INT64_MAX; /* before the first cut there is one state */
    for (int32_t i = 0; whole && i < c->s->n_blocks; i++) {
        class_values(value, c, side, switch_ns, c->s->block_class[i]);
        step(c, value, i, finish, next, from + (size_t)i * K);
        memcpy(finish, next, K * sizeof *finish);
        whole = !stop || i % BLOCKS_PER_LOOK || !util_stopped(stop);
    }
    /* After the last cut there is one state again: device 0. */
    for (int32_t i = c->s->n_blocks - 1, k = 0; whole && cut_device && i > 0; i--) {
        k = from[(size_t)i * K + (size_t)k];
        cut_device[i - 1] = k;
    }
    util_release(&memory);
    return whole ? finish[0] : side == PAIR_CHAIN_UPPER ? INT64_MAX : 0;
}

int64_t pair_chain_path(const pair_chain *c, pair_chain_side side, int32_t *cut_device)
{
    return best_path(c, side, 0, cut_device, NULL);
}

int64_t pair_chain_path_within(const pair_chain *c, pair_chain_side side, int32_t *cut_device, const util_stop *stop)
{
    return best_path(c, side, 0, cut_device, stop);
}

int64_t pair_chain_steady_path(const pair_chain *c, int64_t switch_ns, int32_t *cut_device)
{
    return best_path(c, PAIR_CHAIN_UPPER, switch_ns, cut_device, NULL);
}
