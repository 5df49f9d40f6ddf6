/* Ends alone: where devices are many, pairs of them are too many to be relaxed one by one.
 *
 * With one end of a block on a device and the other one anywhere, the relaxation proves something of all pairs with that end: there are K such
 * cases of an end, not K^2. And the numbers of one serve all others: any numbers prove something (docs/theory.md, Theorem 15),
 * so those of an end on k are tried for an end on l, with k and l exchanged in all of them. Where devices and links are much alike, what is slower than k
 * proves at least as much; it is evaluated in a fraction of the time that finding prices takes. */
#include "relax/chain.h"
#include "relax/messages.h"
#include "relax/view.h"
#include "util/util.h"

static int32_t other_name(int32_t k, int32_t a, int32_t b)
{
    return k == a ? b : k == b ? a : k;
}

static void swap(int64_t *x, int64_t *y)
{
    int64_t old = *x;
    *x = *y;
    *y = old;
}

/* Of numbers per device, in rows of K. */
static void swap_columns(int64_t *x, int64_t rows, int32_t K, int32_t a, int32_t b)
{
    for (int64_t r = 0; x && r < rows; r++)
        swap(&x[r * K + a], &x[r * K + b]);
}

/* The same numbers with devices a and b exchanged. To be cleared also after a failure. */
static int exchange(relax_leaf *out, const relax_leaf *leaf, const moirai_problem *p, int32_t a, int32_t b)
{
    int32_t K = p->n_devices;
    int rc = relax_leaf_with(out, leaf, p, leaf->fixed, leaf->n_fixed);
    if (rc)
        return rc;
    for (int32_t i = 0; i < out->n_fixed; i++)
        out->fixed[i].device = other_name(out->fixed[i].device, a, b);
    swap_columns(out->price, schedule_resources(p) / K, K, a,
                 b); /* devices; then ports, or channels by their receivers, */
    for (int32_t l = 0; l < K && p->congestion == MOIRAI_CONGESTION_CHANNEL; l++) /* and by their senders */
        swap(&out->price[K + a * K + l], &out->price[K + b * K + l]);
    swap_columns(out->byte_price, 1, K, a, b);
    swap_columns(out->from, p->n_edges, K, a, b);
    swap_columns(out->to, p->n_edges, K, a, b);
    return 0;
}

static void keep(relax_end *out, int32_t device, relax_leaf *leaf, bool wanted)
{
    out->leaf[device] = wanted ? *leaf : (relax_leaf){.proven_ns = leaf->proven_ns};
    if (wanted)
        *leaf = (relax_leaf){0};
}

static int try_others(relax_end *out, const relax_leaf *leaf, const moirai_problem *p, relax_fixed end,
                      const relax_task *job)
{
    int rc = 0;
    for (int32_t k = 0; k < p->n_devices && !rc && !util_stopped(&job->stop); k++) {
        relax_leaf other = {0};
        if (k == end.device || !(p->op_devices[end.op] >> k & 1))
            continue;
        rc = exchange(&other, leaf, p, end.device, k);
        rc = rc ? rc : relax_evaluate(&other.proven_ns, p, &other, false, &job->stop);
        if (!rc)
            keep(out, k, &other, job->row);
        relax_leaf_clear(&other);
    }
    return rc;
}

int relax_end_solve(relax_end *out, const moirai_problem *p, relax_fixed end, const relax_task *job)
{
    relax_answer answer;
    relax_task own = *job;
    own.fixed = &end;
    own.n_fixed = 1;
    own.cases = 1;
    own.plans = false;
    *out = (relax_end){.solved = UINT32_C(1) << end.device};
    int rc = relax_solve(&answer, p, &own);
    if (!rc && answer.proof.n_leaves == 1) {
        rc = try_others(out, answer.proof.leaf, p, end, job);
        keep(out, end.device, answer.proof.leaf, job->row);
    }
    relax_answer_clear(&answer);
    return rc;
}

void relax_end_take(relax_end *to, relax_end *from)
{
    for (int32_t k = 0; k < RELAX_CHAIN_DEVICES; k++) {
        if (from->leaf[k].proven_ns > to->leaf[k].proven_ns) {
            relax_leaf before = to->leaf[k];
            to->leaf[k] = from->leaf[k];
            from->leaf[k] = before;
        }
        relax_leaf_clear(&from->leaf[k]);
    }
    to->solved |= from->solved;
}

void relax_end_clear(relax_end *x)
{
    for (int32_t k = 0; k < RELAX_CHAIN_DEVICES; k++)
        relax_leaf_clear(&x->leaf[k]);
}
