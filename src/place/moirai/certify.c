/* What of the bound can be certified, and its certificate.
 *
 * Prices on loads, blocks, intervals and the exhaustive search prove in ways of their own; the strongest that leaves a
 * proof behind is written. What comes with its proof (loads) and is all of the bound goes first: it
 * takes no time. Where the search kept none, it is repeated by rules that a verifier can follow. */
#include <math.h>

#include "bound/certificate.h"
#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "schedule/load.h"
#include "util/util.h"

/* What is known of a chain, or what a certificate can claim of it, while there is time: 0 afterwards. What it takes to find out must not be lost for a moment
 * more. */
static int64_t known(const pair_chain *c, pair_chain_side side, const util_stop *stop)
{
    util_stop own = util_stop_at_least(stop, CERTIFY_MOMENT_S);
    return pair_chain_path_within(c, side, NULL, &own);
}

static int64_t certified(const pair_chain *c, const util_stop *stop)
{
    return known(c, PAIR_CHAIN_CERTIFIED, stop);
}

/* Prices on loads, of the whole or of blocks in a row; without any, longest paths alone. */
static int certify_by_loads(engine *x)
{
    const relax_answer *a = &x->loads;
    relax_certificate from = {.p = x->in.p,
                              .whole = a->proof.n_leaves > 0 ? &a->proof : NULL,
                              .row = a->row.cuts ? &a->row : NULL,
                              .proven_ns = UTIL_MIN(a->lower_ns, x->in.lower_ns),
                              .lower_bound_ns = x->in.lower_ns};
    int rc = relax_certificate_write(&from, x->in.o->certificate_path);
    x->certified_ns = from.proven_ns;
    return rc;
}

static int write_proof(engine *x, bound_certificate *from)
{
    from->lower_bound_ns = x->in.lower_ns;
    int rc = bound_certificate_write(from, x->in.o->certificate_path);
    x->certified_ns = from->certified_ns;
    return rc;
}

/* A small problem that was searched as a whole is searched once more as one block. */
static int certify_by_search(engine *x, const util_stop *stop)
{
    size_t left = CERTIFY_MOST_TREE;
    int rc = engine_whole_block(&x->one_block, x->in.p);
    if (rc)
        return rc;
    x->one_block->pair[0]->lower_ns = x->in.lower_ns;
    return pair_prove_by_search(x->one_block->pair[0], (int64_t)(CERTIFY_TREE_NODES * x->in.o->budget.effort) + 1,
                                &left, *stop);
}

/* The task of proving a chain again; the time for its path at the end is left. */
static bound_certify_task chain_task(const engine *x, bool by_intervals, double path_s, const util_stop *stop)
{
    bound_certify_task job = {.goal_ns = x->in.lower_ns,
                              .most_tree = CERTIFY_MOST_TREE,
                              .effort = x->in.o->budget.effort,
                              .threads = x->in.o->budget.threads,
                              .seed = x->in.o->budget.seed,
                              .stop = *stop};
    if (stop->deadline > 0)
        job.stop.deadline -= CERTIFY_PATHS_KEPT * path_s;
    if (by_intervals)
        job.levels = CERTIFY_INTERVAL_LEVELS;
    return job;
}

/* The chain of blocks, or of intervals where these have proven most: proven again as far as prices carry it by then. `from` gets the one that
 * proves more. */
static int certify_chain(engine *x, bound_certificate *from, const util_stop *stop)
{
    const blocks *y = (x->inner ? x->inner : x)->blocks;
    double begun = util_seconds();
    int64_t lower = known(y->c, PAIR_CHAIN_LOWER, stop);
    double path_s = util_seconds() - begun;
    /* Where intervals have proven most, they are what is certified; blocks keep what the search has left. */
    bool by_intervals = x->intervals && !y->memory && lower < x->in.lower_ns;
    pair_chain *chain = by_intervals ? x->intervals->c : y->c;
    bound_certify_task job = chain_task(x, by_intervals, path_s, stop);
    if (y->memory) /* prices on bytes have a part of their own in the certificate */
        job.goal_ns = UTIL_MIN(lower, job.goal_ns);
    if (by_intervals)
        lower = known(chain, PAIR_CHAIN_LOWER, stop);
    /* Blocks of which less is known than of the loads are left alone: to price a hundred thousand operators takes long. */
    int rc = y->memory || lower > x->loads.lower_ns ? bound_certify(chain, &job) : 0;
    from->chain_ns = rc ? 0 : certified(y->c, stop);
    int64_t other = rc || !by_intervals ? 0 : certified(chain, stop);
    if (other > from->chain_ns) {
        from->c = chain;
        from->spine = x->intervals->spine;
        from->chain_ns = other;
    }
    return rc;
}

static int settle_bytes(const engine *x, bytes_prices *memory, const util_stop *stop)
{
    bytes_bound_task settle = {.upper_ns = x->in.best->makespan_ns,
                               .buckets = BLOCKS_MEMORY_BUCKETS,
                               .solves = 30,
                               .threads = x->in.o->budget.threads,
                               .stop = *stop};
    return bytes_settle(memory, &settle);
}

/* The chain of blocks or of intervals, of the spine where there is one; of a small problem a search of the whole. */
static int certify_by_blocks(engine *x, const util_stop *stop)
{
    const blocks *y = (x->inner ? x->inner : x)->blocks;
    bound_certificate from = {.c = y->c, .memory = y->memory, .spine = x->spine};
    incumbent_tell(&x->in, ' ', "proving the bound again for the certificate");
    int rc = certify_chain(x, &from, stop);
    if (!rc && y->memory)
        rc = settle_bytes(x, y->memory, stop);
    if (!rc && x->in.p->n_ops <= ENGINE_EXACT_OPS && !y->memory && from.chain_ns < x->in.lower_ns)
        rc = certify_by_search(x, stop);
    int64_t block = rc || !x->one_block || y->memory ? 0 : certified(x->one_block, stop);
    if (rc)
        return rc;
    if (!y->memory && x->loads.lower_ns >= UTIL_MAX(from.chain_ns, block))
        return certify_by_loads(x);
    return write_proof(x, block > from.chain_ns ? &(bound_certificate){.c = x->one_block} : &from);
}

/* The load bound, with what paths add to it, where that is more than the relaxation has proven. */
static int take_load_bound(engine *x, const util_stop *stop)
{
    relax_answer answer = {0};
    if (x->loads.lower_ns >= x->in.lower_ns)
        return 0;
    int64_t weight[MOIRAI_MASK_DEVICES];
    schedule_bound_load(weight, x->in.p);
    int rc = relax_proof_of_devices(&answer.proof, x->in.p, weight, stop);
    if (!rc) {
        answer.lower_ns = answer.proof.proven_ns;
        incumbent_take_bound(&x->in, answer.lower_ns);
        engine_keep_loads(x, &answer);
    }
    relax_answer_clear(&answer);
    return rc;
}

/* Whether there is time for more than what is proven already: to weigh all operators on all devices once more takes several times what plain
 * bounds took, in one piece. */
static bool has_time(const engine *x, const util_stop *stop)
{
    double left_s = util_stopped(stop) ? CERTIFY_MOMENT_S : util_stop_left_s(stop);
    return left_s > CERTIFY_PLAIN_KEPT * x->plain_s;
}

int engine_certify(engine *x, const util_stop *stop)
{
    if (!has_time(x, stop))
        return certify_by_loads(x);
    int rc = take_load_bound(x, stop);
    if (rc)
        return rc;
    if (x->loads.lower_ns >= x->in.lower_ns)
        return certify_by_loads(x);
    engine *of = x->inner ? x->inner : x;
    rc = of->blocks || !util_stopped(stop) ? engine_blocks(of) : MOIRAI_ELIMIT;
    rc = rc ? rc : certify_by_blocks(x, stop);
    if (rc == MOIRAI_ELIMIT || (!rc && x->loads.lower_ns > x->certified_ns))
        rc = certify_by_loads(x);
    return rc;
}
