/* Making and freeing an engine. */
#include "place/moirai/engine.h"

#include <stdlib.h>

#include "util/util.h"

engine *engine_new(const moirai_problem *p, const moirai_place_options *o)
{
    engine *x = util_alloc(1, sizeof *x);
    if (x)
        incumbent_begin(&x->in, p, o);
    return x;
}

int engine_blocks(engine *x)
{
    return x->blocks ? 0 : blocks_new(&x->blocks, &x->in, NULL);
}

int engine_whole_block(pair_chain **out, const moirai_problem *p)
{
    bool *none = util_alloc((size_t)p->n_ops, sizeof *none);
    int rc = none ? pair_chain_over(out, p, none) : MOIRAI_EFAIL;
    free(none);
    return rc ? rc : pair_open(*out, 0, 0, 0);
}

int engine_explain(const engine *x, const char *how)
{
    return moirai_error(MOIRAI_EINFEASIBLE, "'%s' %s%s%s", x->in.p->name, how, *x->why ? "; the nearest try: " : "",
                        x->why);
}

void engine_free(engine *x)
{
    if (!x)
        return;
    engine_free(x->inner);
    decompose_spine_free(x->spine);
    bound_portfolio_free(x->portfolio);
    pair_chain_free(x->one_block);
    relax_answer_clear(&x->loads);
    blocks_free(x->layers);
    blocks_free(x->blocks);
    incumbent_clear(&x->in);
    free(x);
}
