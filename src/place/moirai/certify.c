/* What of the bound can be certified, and its certificate.
 *
 * Prices on loads, blocks, intervals and the exhaustive search prove in ways of their own; the strongest that leaves a
 * proof behind is written. What comes with its proof (loads) and is all of the bound goes first: it
 * takes no time. Where the search kept none, it is repeated by rules that a verifier can follow. */
#include <math.h>

#include "bound/certificate.h"
#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "problem/problem_build.h"
#include "schedule/load.h"
#include "schedule/paths.h"
#include "schedule/resources.h"
#include "util/util.h"

/* What is known of a chain, or what a certificate can claim of it, while there is time: 0 afterwards. What it takes to find out must not be lost for a moment
 * more. */
static int64_t known(const pair_chain *c, pair_chain_side side, const util_stop *stop)
{
    util_stop own = util_stop_at_least(stop, CERTIFY_MOMENT_S);
    return pair_chain_path_within(c, side, NULL, &own);
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

/* A chain proven again as far as its pairs can be by then, the time for its path at the end aside; `from` gets it where it proves more than
 * what is there. Of which less is known than of the loads is left alone: to price a hundred thousand operators takes long. */
static int try_chain(engine *x, bound_certificate *from, bound_certify_task job, pair_chain *c,
                     const decompose_spine *spine)
{
    util_stop stop = job.stop;
    double begun = util_seconds();
    int64_t lower = known(c, PAIR_CHAIN_LOWER, &stop);
    if (stop.deadline > 0)
        job.stop.deadline -= CERTIFY_PATHS_KEPT * (util_seconds() - begun);
    job.goal_ns =
        from->memory ? UTIL_MIN(lower, job.goal_ns) : job.goal_ns; /* prices on bytes have a part of their own */
    int rc = from->memory || lower > x->loads.lower_ns ? bound_certify(c, &job) : 0;
    int64_t ns = rc ? 0 : known(c, PAIR_CHAIN_CERTIFIED, &stop);
    if (ns > from->chain_ns) {
        from->c = c;
        from->spine = spine;
        from->chain_ns = ns;
    }
    return rc;
}

/* A small problem that was searched as a whole is searched once more as one block. */
static int try_whole(engine *x, bound_certificate *from, bound_certify_task job)
{
    int rc = engine_whole_block(&x->one_block, x->in.p);
    if (rc)
        return rc;
    job.levels = 0;
    job.nodes = CERTIFY_TREE_NODES;
    x->one_block->pair[0]->lower_ns = x->in.lower_ns;
    return try_chain(x, from, job, x->one_block, NULL);
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

/* The chain of blocks, of the spine where there is one, or of intervals where these have proven most: blocks keep what the search has left
 * then; of a small problem a search of the whole. */
static int certify_by_blocks(engine *x, const util_stop *stop)
{
    const blocks *y = (x->inner ? x->inner : x)->blocks;
    bound_certificate from = {.c = y->c, .memory = y->memory, .spine = x->spine, .lower_bound_ns = x->in.lower_ns};
    bound_certify_task job = {.goal_ns = x->in.lower_ns,
                              .levels = PAIR_LEVELS,
                              .nodes = CERTIFY_CHAIN_NODES,
                              .most_tree = CERTIFY_MOST_TREE,
                              .effort = x->in.o->budget.effort,
                              .threads = x->in.o->budget.threads,
                              .seed = x->in.o->budget.seed,
                              .stop = *stop};
    int rc;
    incumbent_tell(&x->in, ' ', "proving the bound again for the certificate");
    if (x->intervals && !y->memory && known(y->c, PAIR_CHAIN_LOWER, stop) < x->in.lower_ns) {
        from.chain_ns = known(y->c, PAIR_CHAIN_CERTIFIED, stop);
        job.levels = CERTIFY_INTERVAL_LEVELS;
        rc = try_chain(x, &from, job, x->intervals->c, x->intervals->spine);
    } else {
        rc = try_chain(x, &from, job, y->c, x->spine);
    }
    if (!rc && y->memory)
        rc = settle_bytes(x, y->memory, stop);
    else if (!rc && x->in.p->n_ops <= ENGINE_EXACT_OPS && from.chain_ns < x->in.lower_ns)
        rc = try_whole(x, &from, job);
    if (rc || (!y->memory && x->loads.lower_ns >= from.chain_ns))
        return rc ? rc : certify_by_loads(x);
    rc = bound_certificate_write(&from, x->in.o->certificate_path);
    x->certified_ns = from.certified_ns;
    return rc;
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

/* ---- more devices than a mask has: plain loads and longest paths ---- */

/* Without groups, of which verifiers know nothing: what may run an operator is all that has a time for it. */
static int without_groups(moirai_problem *out, util_memory *m, const moirai_problem *p)
{
    *out = *p;
    out->n_groups = 0;
    UTIL_TAKE(m, out->op_group, (size_t)p->n_ops);
    UTIL_TAKE(m, out->op_devices, (size_t)p->n_ops * (size_t)moirai_device_words(p));
    for (int32_t i = 0; !m->failed && i < p->n_ops; i++)
        out->op_group[i] = MOIRAI_NONE;
    return m->failed ? MOIRAI_EFAIL : problem_mask_devices(out);
}

/* The prices of loads, once more. */
static int prove_many(engine *x, const util_stop *stop)
{
    moirai_problem q;
    util_memory memory = {0};
    relax_leaf *leaf = util_alloc(1, sizeof *leaf);
    x->loads.proof = (relax_proof){.n_leaves = leaf != NULL, .leaf = leaf};
    int rc = leaf ? without_groups(&q, &memory, x->in.p) : MOIRAI_EFAIL;
    if (!rc && UTIL_TAKE(&leaf->memory, leaf->price, (size_t)schedule_resources(&q))) {
        util_stop part = util_stop_at_least(stop, CERTIFY_MOMENT_S);
        int64_t load = schedule_bound_load(leaf->price, &q), path = moirai_bound_critical_path(&q);
        if ((double)q.n_ops * q.n_devices * sizeof(int64_t) <= 4 * MANY_MOST_BYTES)
            path = UTIL_MAX(path, schedule_longest_path(&(schedule_paths){.p = &q, .stop = &part}));
        x->loads.lower_ns = UTIL_MAX(load, path);
    }
    rc = rc ? rc : util_taken_all(&leaf->memory);
    util_release(&memory);
    return rc;
}

/* Whether there is time for more than what is proven already: to weigh all operators on all devices once more takes several times what plain
 * bounds took, in one piece. */
static bool has_time(const engine *x, const util_stop *stop)
{
    bool many = x->in.p->n_devices > MOIRAI_MASK_DEVICES;
    double left_s = !util_stopped(stop) ? util_stop_left_s(stop) : many ? 0 : CERTIFY_MOMENT_S;
    return left_s > (many ? MANY_PLAIN_KEPT : CERTIFY_PLAIN_KEPT) * x->plain_s;
}

int engine_certify(engine *x, const util_stop *stop)
{
    if (!has_time(x, stop))
        return certify_by_loads(x);
    bool many = x->in.p->n_devices > MOIRAI_MASK_DEVICES;
    int rc = many ? prove_many(x, stop) : take_load_bound(x, stop);
    if (rc)
        return rc;
    if (many || x->loads.lower_ns >= x->in.lower_ns)
        return certify_by_loads(x);
    engine *of = x->inner ? x->inner : x;
    rc = of->blocks || !util_stopped(stop) ? engine_blocks(of) : MOIRAI_ELIMIT;
    rc = rc ? rc : certify_by_blocks(x, stop);
    if (rc == MOIRAI_ELIMIT || (!rc && x->loads.lower_ns > x->certified_ns))
        rc = certify_by_loads(x);
    return rc;
}
