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
    bool many = in->p->n_devices > MOIRAI_MASK_DEVICES;
    rc = rc ? rc : many ? engine_search_many(x) : engine_search(x);
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
        rc = p->n_devices > MOIRAI_MASK_DEVICES ? many_certify(&x->certified_ns, &x->in, x->plain_s, &stop)
                                                : engine_certify(x, &stop);
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
