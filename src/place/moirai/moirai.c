/* The placer `moirai`: near-optimal plans with a proven gap, at any size.
 *
 * Steps (step_*.c) improve an incumbent (incumbent.h); schedule.c says which comes when. What they do is in docs/engine.md,
 * why their bounds are true in docs/theory.md. Here the steps are run, and the proof is certified where it is asked for. */
#include "bound/bounds.h"
#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/placers.h"
#include "place/starts.h"
#include "util/util.h"

#include <math.h>
#include <stdlib.h>

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

static int take_plain(void *data, int64_t lower_ns, const char *name)
{
    incumbent *in = data;
    in->at_work = name;
    incumbent_take_bound(in, lower_ns);
    return 0;
}

static int solve(engine *x)
{
    incumbent *in = &x->in;
    double begun = util_seconds();
    int rc = bound_each_plain(in->p, &in->o->budget, take_plain, in);
    x->plain_s = util_seconds() - begun;
    rc = rc ? rc : moirai_problem_check_memory(in->p); /* what no search can cure is said at once */
    rc = rc ? rc : engine_search(x);
    if (!rc && !in->best)
        rc = engine_explain(x, "has no plan that fits the memory, as far as was found");
    return rc;
}

/* The plan, and until when its bound is to be proven again. */
static int solve_within(util_stop *proof, engine *x)
{
    util_stop *search = &x->in.stop;
    *proof = *search;
    if (!x->in.o->certificate_path || search->deadline <= 0)
        return solve(x);
    double share_s = MOIRAI_CERTIFY_SHARE * x->in.o->budget.time_limit_s, end = search->deadline - share_s;
    search->deadline = end;
    int rc = solve(x);
    proof->deadline -= fmin(MOIRAI_AFTER_KEPT * (end - search->deadline), share_s);
    return rc;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    util_method_set off;
    util_stop stop;
    int rc = util_methods_parse(&off, moirai_setting_text(o, &place_moirai, "off"));
    if (rc)
        return rc;
    engine *x = engine_new(p, o);
    if (!x)
        return MOIRAI_EFAIL;
    x->in.stop.off = off;
    x->place = place;
    rc = solve_within(&stop, x);
    x->in.at_work = "certificate";
    if (!rc && o->certificate_path)
        rc = engine_certify(x, &stop);
    rc = rc ? rc : incumbent_sign(&x->in, x->in.best);
    if (!rc) {
        *out = x->in.best;
        (*out)->lower_bound_ns = x->in.lower_ns;
        (*out)->certified_bound_ns = o->certificate_path ? x->certified_ns : MOIRAI_UNKNOWN;
        x->in.best = NULL;
    }
    engine_free(x);
    return rc;
}

static const moirai_param params[] = {
    {.name = "off", .kind = MOIRAI_PARAM_TEXT, .help = "steps and methods to leave out, such as shifts,layers"},
};

const moirai_placer place_moirai = {
    .name = "moirai",
    .summary = "blocks between cuts, annealed and bounded by prices in time; any size, proven gap",
    .letters = PLACE_STARTS_KEY ", X exhaustive, B blocks, M blocks within memory, F floating work beside the spine, "
                                "I intervals, W the whole annealed, L loads balanced, D some of the devices",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .certifies = true,
    .bounds = true,
    .place = place,
};
