/* What is proven of a pair, and raising it by prices on loads.
 *
 * The exhaustive search proves with means that are not written down: a second search, of what is known by then, does
 * without them, and keeps its tree. It is asked for one length only: a small part of what finding the length took. */
#include "pair/pair.h"

#include <stdlib.h>

#include "exact/exact.h"
#include "pair/pair_tuning.h"
#include "util/util.h"

#define MOST_CELLS (INT64_C(1) << 26) /* edges x devices^2: one sweep of messages takes half a second */

int64_t pair_certified_ns(const pair_state *x)
{
    if (!x->open)
        return 0;
    if (x->block.n_interior == 0)
        return x->lower_ns;
    int64_t by_search = x->search.n_tree ? x->search.length_ns + 1 : 0;
    return UTIL_MAX(UTIL_MAX(pair_leaves_ns(x), x->loads.proof.proven_ns), by_search);
}

bool pair_certifies_more(const pair_state *x)
{
    return x->open && x->block.n_interior > 0 && pair_certified_ns(x) > x->path_ns;
}

static int64_t proven_by(const pair_state *x, pair_leaves leaves)
{
    int64_t least = leaves.n ? INT64_MAX : x->path_ns;
    for (int32_t i = 0; i < leaves.n; i++)
        least = UTIL_MIN(least, leaves.cases[i].proof.price ? leaves.cases[i].proven_ns : x->path_ns);
    return least;
}

pair_leaves pair_leaves_best(const pair_state *x)
{
    pair_leaves now = {x->n_cases, x->cases};
    return proven_by(x, x->kept) > proven_by(x, now) ? x->kept : now;
}

int64_t pair_leaves_ns(const pair_state *x)
{
    return proven_by(x, pair_leaves_best(x));
}

/* Bytes have no prices here: what is proven has to hold for all blocks of the class, and between equal devices, whatever
 * their memory. Nor are there prices where transfers hold devices: the block has ports instead, whose prices no verifier
 * of such a problem takes, and the whole problem's relaxation knows better. */
int pair_raise_loads(pair_state *x, util_stop stop)
{
    moirai_problem q = x->block.problem;
    int64_t memory[MOIRAI_MASK_DEVICES];
    relax_answer found;
    bool tried = x->loads.tried;
    x->loads.tried = true;
    if (tried || x->block.n_interior == 0 || (int64_t)q.n_edges * q.n_devices * q.n_devices > MOST_CELLS ||
        x->block.holds_devices || util_off(&stop, UTIL_METHOD_PAIR_LOADS))
        return 0;
    for (int32_t k = 0; k < q.n_devices; k++)
        memory[k] = INT64_MAX;
    q.device_memory_bytes = memory;
    relax_task task = {.goal_ns = x->plan.length_ns,
                       .cases = PAIR_RAISE_LOADS_CASES,
                       .rounds = PAIR_RAISE_LOADS_ROUNDS,
                       .threads = 1,
                       .stop = stop};
    int rc = relax_solve(&found, &q, &task);
    if (!rc && found.proof.proven_ns > x->path_ns) {
        x->loads.proof = found.proof;
        found.proof = (relax_proof){0};
        x->lower_ns = UTIL_MAX(x->lower_ns, x->loads.proof.proven_ns);
    }
    relax_answer_clear(&found);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

/* ---- search trees ---- */

/* Excludes all lengths below `below_ns`; *proven: it did. */
static int search_tree(bool *proven, pair_state *x, int64_t below_ns, int64_t nodes, size_t *left,
                       const util_stop *stop)
{
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.below_ns = below_ns;
    o.proven_ns = 1;
    o.node_limit = nodes;
    o.most_tree = *left;
    o.stop = *stop;
    *proven = false;
    int rc = exact_solve(&x->block.problem, &o, &found);
    if (rc)
        return rc == MOIRAI_ELIMIT ? 0 : rc;
    if (found.n_tree > 0) {
        *left += x->search.n_tree;
        free(x->search.tree);
        x->search = (pair_search_proof){below_ns - 1, found.n_tree, found.tree};
        *left -= found.n_tree;
        found.tree = NULL;
        *proven = true;
    }
    exact_result_clear(&found);
    return 0;
}

/* All that is proven, or as much of it as bisection finds. */
int pair_prove_by_search(pair_state *x, int64_t nodes, size_t *left, util_stop stop)
{
    int64_t low = pair_certified_ns(x), high = x->lower_ns, target = high;
    bool proven = false;
    int rc = 0;
    if (!exact_fits(&x->block.problem, NULL))
        return 0;
    for (int32_t i = 0; i <= PAIR_RAISE_BISECTIONS && !rc && target > low && *left > 0 && !util_stopped(&stop); i++) {
        rc = search_tree(&proven, x, target, nodes, left, &stop);
        low = proven ? target : low;
        high = proven ? high : target - 1;
        target = low + (high - low + 1) / 2;
    }
    return rc;
}
