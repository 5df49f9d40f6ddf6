/* The chain's bounds as components: blocks between cuts, bounded by longest paths or by prices in time.
 *
 * `blocks` sums longest paths over the cheapest path of devices through the cuts (chain.c). `prices-1` .. `prices-4`
 * raise the pairs on that path by prices (pair_refine.c) up to a level: one price per resource for the whole time at
 * level 1, then finer and finer buckets of time, with branching on receivers, arrivals and numbers at all of them.
 * `bytes` adds prices on memory (bytes_bound.c) to the first of these levels. `spine` is the first level for what is
 * left of a network without cuts when work that floats beside it is taken away (spine.c). Just what a certificate can
 * carry; no exhaustive search. */
#include "bound/bounds.h"
#include "bound/certificate.h"
#include "bytes/bytes.h"
#include "pair/pair_refine.h"
#include "util/util.h"

/* Prices from plans that fit, then the bound at these and around. */
static int raise_by_bytes(int64_t *lower_ns, pair_chain *c, const moirai_budget *budget, util_stop stop)
{
    bytes_plan_task plans = {.evaluations = (int64_t)(1000 * budget->effort),
                             .rounds = 12,
                             .searches = 4,
                             .upper_ns = moirai_bound_critical_path(c->p),
                             .seed = budget->seed,
                             .threads = budget->threads,
                             .stop = stop};
    bytes_bound_task job = {.upper_ns = 2 * pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL),
                            .rounds = 6,
                            .buckets = 14,
                            .solves = (int32_t)(30 * budget->effort) + 4,
                            .threads = budget->threads,
                            .stop = stop};
    bytes_prices *m;
    int64_t length;
    const int32_t *cut_device;
    const pair_plan *const *block_plan;
    int rc = bytes_prices_new(&m, c);
    rc = rc ? rc : bytes_plan_find(&length, &cut_device, &block_plan, m, &plans);
    rc = rc ? rc : bytes_bound(lower_ns, m, &job);
    bytes_prices_free(m);
    return rc;
}

/* By a chain whose pairs are open, and raised by prices up to a level. */
static int find(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget, int32_t level, bool bytes)
{
    pair_chain *c = NULL;
    int64_t by_bytes = 0;
    util_stop stop = util_stop_of(budget);
    bound_certify_task job = {.goal_ns = INT64_MAX,
                              .levels = level,
                              .effort = budget->effort,
                              .threads = budget->threads,
                              .seed = budget->seed,
                              .stop = stop};
    *lower_ns = MOIRAI_UNKNOWN;
    if (p->n_devices > MOIRAI_MASK_DEVICES)
        return 0;
    int rc = pair_chain_new(&c, p);
    rc = rc ? rc : pair_chain_open_all(c, budget->threads, &stop);
    rc = rc || !level ? rc : bound_certify(c, &job);
    rc = rc || !bytes ? rc : raise_by_bytes(&by_bytes, c, budget, stop);
    *lower_ns = rc ? 0 : UTIL_MAX(by_bytes, pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL));
    pair_chain_free(c);
    return rc;
}

#define FIND(name, level, bytes) \
    static int name(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget) \
    { \
        return find(lower_ns, p, budget, level, bytes); \
    }
FIND(find_blocks, 0, false)
FIND(find_prices_1, 1, false)
FIND(find_prices_2, 2, false)
FIND(find_prices_3, 3, false)
FIND(find_prices_4, 4, false)
FIND(find_bytes, 1, true)

/* Not known where the network needs no spine: the other components say more. */
static int find_spine(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    decompose_spine *spine;
    util_stop stop = util_stop_of(budget);
    *lower_ns = MOIRAI_UNKNOWN;
    if (p->n_devices > MOIRAI_MASK_DEVICES)
        return 0;
    int rc = decompose_spine_new(&spine, p, &stop);
    if (!rc && spine)
        rc = find_prices_1(lower_ns, spine->problem, budget);
    decompose_spine_free(spine);
    return rc;
}

const moirai_bound bound_blocks = {
    .name = "blocks", .summary = "blocks between cuts by their longest paths", .find = find_blocks};
const moirai_bound bound_prices_1 = {
    .name = "prices-1", .summary = "blocks by one price per device and port", .find = find_prices_1};
const moirai_bound bound_spine = {
    .name = "spine", .summary = "the same without what floats, for networks without cuts", .find = find_spine};
const moirai_bound bound_prices_2 = {
    .name = "prices-2", .summary = "blocks by prices in coarse buckets of time", .find = find_prices_2};
const moirai_bound bound_prices_3 = {
    .name = "prices-3", .summary = "blocks by prices in finer buckets of time", .find = find_prices_3};
const moirai_bound bound_prices_4 = {
    .name = "prices-4", .summary = "blocks by prices in the finest buckets of time", .find = find_prices_4};
const moirai_bound bound_bytes = {
    .name = "bytes", .summary = "blocks by prices in time and on memory", .find = find_bytes};
