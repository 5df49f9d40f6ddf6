/* What is known of intervals within an interval, for the search over it.
 *
 * Chains of all sizes compete, so that of a long interval many parts have been searched before. A part (u, v) between
 * devices k and l takes L(u, k, v, l) in every solution of the long interval's problem, which contains all that lies
 * between u and v (docs/theory.md, Lemma 10). The search takes these as links (exact/exact_link.c). */
#include "bound/intervals/interval_links.h"

#include <stdlib.h>

#include "util/util.h"

/* local[i]: operator i of the whole in the block's problem; MOIRAI_NONE: outside. */
static void find_local(bound_interval_chain *x, int32_t class_, int32_t *local)
{
    const decompose_cuts *s = x->c->s;
    const decompose_block *b = pair_chain_block(x->c, class_);
    int32_t block = s->class_block[class_], entry = decompose_entry(s, block), exit = decompose_exit(s, block);
    for (int32_t i = 0; i < x->spine->whole->n_ops; i++)
        local[i] = MOIRAI_NONE;
    for (int32_t i = b->first; i < b->first + b->n_interior; i++)
        local[x->spine->whole_op[decompose_block_global_op(b, x->c->p, s, block, i)]] = i;
    if (entry != MOIRAI_NONE)
        local[x->spine->whole_op[entry]] = b->entry;
    if (exit != MOIRAI_NONE)
        local[x->spine->whole_op[exit]] = b->exit;
}

static bool searched(const bound_interval *v, int32_t pairs)
{
    bool any = false;
    for (int32_t i = 0; i < pairs && !any; i++)
        any = v->tries[i] > 0;
    return any;
}

int bound_links_find(bound_links *out, bound_interval_chain *x, int32_t class_, const bound_interval_list *known)
{
    const decompose_block *b = pair_chain_block(x->c, class_);
    int32_t *local = util_alloc((size_t)x->spine->whole->n_ops, sizeof *local);
    *out = (bound_links){.list = util_alloc(known->n, sizeof *out->list)};
    if (!b || !local || !out->list) {
        free(local);
        bound_links_clear(out);
        return MOIRAI_EFAIL;
    }
    find_local(x, class_, local);
    for (size_t i = 0; i < known->n; i++) {
        const bound_interval *v = &known->list[i];
        int32_t from = v->entry == MOIRAI_NONE ? MOIRAI_NONE : local[v->entry],
                to = v->exit == MOIRAI_NONE ? MOIRAI_NONE : local[v->exit];
        bool begins = v->entry == MOIRAI_NONE ? b->entry == MOIRAI_NONE : from != MOIRAI_NONE,
             ends = v->exit == MOIRAI_NONE ? b->exit == MOIRAI_NONE : to != MOIRAI_NONE;
        if (begins && ends && !(from == b->entry && to == b->exit) && searched(v, x->c->K * x->c->K))
            out->list[out->n++] = (exact_link){from, to, v->lower_ns};
    }
    free(local);
    return 0;
}

int bound_links_add_up(pair_state *y, const bound_links *x)
{
    bound_interval_list parts = {.list = util_alloc((size_t)x->n, sizeof *parts.list), .n = (size_t)x->n};
    bound_windows w;
    if (!parts.list)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < x->n; i++) /* read only */
        parts.list[i] = (bound_interval){
            .entry = x->list[i].from, .exit = x->list[i].to, .lower_ns = (int64_t *)x->list[i].least_ns};
    int rc = bound_windows_find(&w, &y->block.problem, &parts);
    free(parts.list);
    if (rc)
        return rc;
    if (w.lower_ns > y->lower_ns) {
        y->lower_ns = w.lower_ns;
        y->exhausted = true;
    }
    bound_windows_clear(&w);
    return 0;
}

void bound_links_clear(bound_links *x)
{
    free(x->list);
    *x = (bound_links){0};
}
