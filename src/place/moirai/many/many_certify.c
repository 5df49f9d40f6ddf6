/* What is certified on more devices than a mask has: plain loads and longest paths. */
#include <stdlib.h>

#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/many/many.h"
#include "problem/problem_build.h"
#include "relax/relax.h"
#include "schedule/load.h"
#include "schedule/paths.h"
#include "util/util.h"

/* Without groups, of which verifiers know nothing: what may run an operator is all that has a time for it. */
static int without_groups(moirai_problem *out, const moirai_problem *p)
{
    *out = *p;
    out->n_groups = 0;
    out->op_group = util_alloc((size_t)p->n_ops, sizeof *out->op_group);
    out->op_devices = util_alloc((size_t)p->n_ops * (size_t)moirai_device_words(p), sizeof *out->op_devices);
    for (int32_t i = 0; out->op_group && i < p->n_ops; i++)
        out->op_group[i] = MOIRAI_NONE;
    return out->op_group && out->op_devices ? problem_mask_devices(out) : MOIRAI_EFAIL;
}

/* The verifier finds longest paths by itself. */
static int certify_paths(const incumbent *in)
{
    relax_certificate from = {.p = in->p, .lower_bound_ns = in->lower_ns};
    return relax_certificate_write(&from, in->o->certificate_path);
}

int many_certify(int64_t *certified_ns, incumbent *in, double plain_s, const util_stop *stop)
{
    *certified_ns = 0;
    if (util_stopped(stop) || util_stop_left_s(stop) < MANY_PLAIN_KEPT * plain_s)
        return certify_paths(in);
    moirai_problem q;
    relax_leaf leaf = {0};
    relax_proof proof = {.n_leaves = 1, .leaf = &leaf};
    size_t R = (size_t)UTIL_MAX(in->p->n_devices * 3, in->p->n_devices * (in->p->n_devices + 1));
    int rc = without_groups(&q, in->p);
    leaf.price = util_alloc(R, sizeof *leaf.price);
    rc = rc ? rc : leaf.price ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        int64_t load = schedule_bound_load(leaf.price, &q), path = moirai_bound_critical_path(&q);
        util_stop part = util_stop_at_least(stop, 0.1);
        if ((double)q.n_ops * q.n_devices * sizeof(int64_t) <= 4 * MANY_MOST_BYTES)
            path = UTIL_MAX(path, schedule_longest_path(&(schedule_paths){.p = &q, .stop = &part}));
        *certified_ns = UTIL_MIN(UTIL_MAX(load, path), in->lower_ns);
        relax_certificate from = {
            .p = in->p, .whole = &proof, .proven_ns = *certified_ns, .lower_bound_ns = in->lower_ns};
        rc = relax_certificate_write(&from, in->o->certificate_path);
    }
    free(leaf.price);
    free(q.op_group);
    free(q.op_devices);
    return rc;
}
