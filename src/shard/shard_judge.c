/* What a cut is worth: the makespan of what it makes, placed with little effort.
 *
 * A strip is judged between its neighbours: of the network in which it alone is cut, the operators that the cut has made
 * (or, whole, those of the strip) and the ones beside them are a problem of their own, of a few dozen operators however
 * many layers the network has. */
#include "shard/shard_choose.h"

#include <stdlib.h>
#include <string.h>

#include <moirai/placer.h>

#define STRIP_EFFORT 0.001
#define LEAST_EFFORT 0.001 /* below it the search saves nothing */
#define GAP 0.02           /* a plan this near to the best is judged well enough */

static int take_measured(moirai_graph *coarse, const moirai_shard_choose_options *o)
{
    if (!coarse)
        return moirai_error(MOIRAI_EUSAGE,
                            "measured times of operators need the rules of fusion that they were made with");
    return moirai_shards_times(coarse, o->measured, o->n_measured);
}

int shard_judge_init(shard_judge *j, const moirai_shards *s, const moirai_shard_choose_options *o)
{
    *j = (shard_judge){.s = s, .o = o};
    if (o->budget.time_limit_s > 0)
        j->end_s = util_seconds() + o->budget.time_limit_s;
    const moirai_graph *g = s->net->graph;
    j->known = util_names_new((size_t)g->n_ops);
    int rc = j->known ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < g->n_ops && !rc; i++)
        rc = util_names_put(j->known, g->op_name[i], i) < 0 ? MOIRAI_EFAIL : 0;
    rc = rc || !o->rules ? rc : moirai_coarsen(&j->coarse, g, o->rules, NULL);
    rc = rc || !o->n_measured ? rc : take_measured(j->coarse, o);
    return rc ? rc : moirai_problem_new(&j->whole, j->coarse ? j->coarse : g, o->cluster, &o->problem);
}

void shard_judge_free(shard_judge *j)
{
    util_names_free(j->known);
    moirai_problem_free(j->whole);
    moirai_graph_free(j->coarse);
}

bool shard_judge_over(const shard_judge *j)
{
    return moirai_interrupt_raised(j->o->budget.interrupt) || (j->end_s > 0 && util_seconds() >= j->end_s);
}

int shard_judge_problem(shard_judge *j, const char *cut, moirai_problem **out)
{
    moirai_graph *g = NULL, *coarse = NULL;
    *out = NULL;
    int rc = moirai_shards_graph(&g, j->s, cut, MOIRAI_SHARD_CHAIN, NULL);
    rc = rc || !j->o->rules ? rc : moirai_coarsen(&coarse, g, j->o->rules, NULL);
    rc = rc || !j->o->n_measured ? rc : take_measured(coarse, j->o);
    rc = rc ? rc : moirai_problem_new(out, coarse ? coarse : g, j->o->cluster, &j->o->problem);
    moirai_graph_free(coarse);
    moirai_graph_free(g);
    return rc;
}

int shard_judge_place(shard_judge *j, const moirai_problem *p, double effort, int64_t *ns)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    moirai_place_options_init(&o);
    o.budget = j->o->budget;
    o.gap = GAP;
    o.budget.effort = UTIL_MAX(effort * j->o->budget.effort, LEAST_EFFORT);
    o.budget.progress = NULL;
    if (j->end_s > 0)
        o.budget.time_limit_s = UTIL_MAX(j->end_s - util_seconds(), 0.01);
    int rc = moirai_place(&plan, p, "moirai", &o);
    *ns = rc ? MOIRAI_UNKNOWN : plan->makespan_ns;
    moirai_plan_free(plan);
    return rc == MOIRAI_EINFEASIBLE || rc == MOIRAI_ELIMIT ? 0 : rc;
}

/* ---- a strip between its neighbours ---- */

/* Does the operator stand for one that `is_one` knows? */
static bool holds(const moirai_problem *p, int32_t op, bool (*is_one)(const void *, const char *), const void *data)
{
    if (p->op_member_off[op] == p->op_member_off[op + 1])
        return is_one(data, p->op_name[op]);
    for (int32_t e = p->op_member_off[op]; e < p->op_member_off[op + 1]; e++)
        if (is_one(data, p->op_member[e]))
            return true;
    return false;
}

static bool is_new(const void *data, const char *name)
{
    return util_names_get(data, name) < 0;
}

static bool is_old(const void *data, const char *name)
{
    return util_names_get(data, name) >= 0;
}

bool *shard_ops_of(const shard_judge *j, const moirai_problem *p, const shard_strip *x)
{
    util_names *mine = util_names_new((size_t)x->n_members);
    bool *in = mine ? util_alloc((size_t)p->n_ops, sizeof *in) : NULL;
    for (int32_t i = 0; in && i < x->n_members; i++)
        if (j->s->op_name[x->member[i].node])
            util_names_put(mine, j->s->op_name[x->member[i].node], i);
    for (int32_t op = 0; in && op < p->n_ops; op++)
        in[op] = holds(p, op, is_old, mine);
    util_names_free(mine);
    return in;
}

/* Everything that is neither `in` nor beside it. */
static bool *others(const moirai_problem *p, const bool *in)
{
    bool *gone = util_alloc((size_t)p->n_ops, sizeof *gone);
    for (int32_t op = 0; gone && op < p->n_ops; op++)
        gone[op] = !in[op];
    for (int32_t e = 0; gone && e < p->n_edges; e++) {
        int32_t from = p->tensor_producer[p->edge_tensor[e]], to = p->edge_reader[e];
        if (in[from])
            gone[to] = false;
        if (in[to])
            gone[from] = false;
    }
    return gone;
}

/* Names of the operators, before fusion, that `gone` leaves. */
static util_names *names_left(const moirai_problem *p, const bool *gone)
{
    util_names *left = util_names_new((size_t)p->n_ops);
    for (int32_t op = 0; left && op < p->n_ops; op++) {
        if (gone[op])
            continue;
        util_names_put(left, p->op_name[op], op);
        for (int32_t e = p->op_member_off[op]; e < p->op_member_off[op + 1]; e++)
            util_names_put(left, p->op_member[e], op);
    }
    return left;
}

/* Of the cut network: what is new, and what was beside the strip when it was whole, so that both do the same work. */
static int part_of_cut(shard_judge *j, const char *cut, const util_names *left, moirai_problem **part)
{
    moirai_problem *p;
    int rc = shard_judge_problem(j, cut, &p);
    bool *gone = rc ? NULL : util_alloc((size_t)p->n_ops, sizeof *gone);
    for (int32_t op = 0; gone && op < p->n_ops; op++)
        gone[op] = !holds(p, op, is_new, j->known) && !holds(p, op, is_old, left);
    rc = rc ? rc : gone ? moirai_problem_without(part, p, gone) : MOIRAI_EFAIL;
    moirai_problem_free(p);
    free(gone);
    return rc;
}

int shard_judge_strip(shard_judge *j, const shard_strip *x, const char *cut, int64_t *ns)
{
    moirai_problem *part = NULL;
    bool *in = shard_ops_of(j, j->whole, x), *gone = in ? others(j->whole, in) : NULL;
    util_names *left = gone ? names_left(j->whole, gone) : NULL;
    *ns = MOIRAI_UNKNOWN;
    int rc = left ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : cut ? part_of_cut(j, cut, left, &part) : moirai_problem_without(&part, j->whole, gone);
    rc = rc ? rc : shard_judge_place(j, part, STRIP_EFFORT, ns);
    moirai_problem_free(part);
    util_names_free(left);
    free(gone);
    free(in);
    return rc;
}
