/* The exact search: branch and bound over devices, then over orders.
 *
 * Depth first. Propagation (exact_propagate.c) finds what a node and "faster than the best so far" imply. While a device is open
 * the search branches on devices (exact_branch.c), then on orders and lives (exact_order.c). Every plan found lowers `below_ns` at once
 * for all that follows. The lower bound holds at any moment (docs/theory.md, 7): a node's bound is valid for all of its plans that are
 * faster than the incumbent, and when a limit stops the search the least bound of what was left open counts, or the incumbent. Work is
 * counted in nodes, so that a node limit gives the same answer everywhere. */
#include "exact/exact_search.h"
#include "exact/exact_tuning.h"
#include "schedule/plan.h"

#include <stdlib.h>
#include <string.h>

void exact_options_init(exact_options *o)
{
    memset(o, 0, sizeof *o);
    o->below_ns = MOIRAI_UNKNOWN;
}

static void tell(exact_search *s, char letter)
{
    if (!s->o->progress)
        return;
    moirai_progress news = {util_seconds() - s->run.start_s,
                            letter,
                            s->r->found ? s->r->makespan_ns : MOIRAI_UNKNOWN,
                            UTIL_MIN(s->r->lower_bound_ns, s->below_ns),
                            s->run.nodes,
                            NULL};
    s->o->progress(s->o->progress_data, &news);
}

/* Counts a node; true when a limit is reached. */
static bool stop(exact_search *s)
{
    const exact_options *o = s->o;
    if (s->run.stopped)
        return true;
    if (o->node_limit > 0 && s->run.nodes >= o->node_limit)
        s->run.stopped = true;
    if (util_stopped(&o->stop))
        s->run.stopped = true;
    s->run.nodes += !s->run.stopped;
    if ((s->run.nodes & 8191) == 0)
        tell(s, ' ');
    return s->run.stopped;
}

void exact_visit(exact_search *s, int32_t depth)
{
    exact_state *st = s->stack.state[depth];
    bool closed = st->lb_ns >= s->below_ns;
    if (!closed && stop(s)) {
        exact_leave(s, st->lb_ns);
        return;
    }
    if (closed || !exact_propagate(s, st) || st->lb_ns >= s->below_ns)
        exact_note(s, EXACT_TREE_CLOSED);
    else if (st->n_open > 0)
        exact_branch(s, depth);
    else
        exact_order(s, depth);
}

static int64_t makespan_of(const exact_search *s, const exact_state *st)
{
    int64_t most = 0;
    for (int32_t i = 0; i < s->n; i++) {
        int64_t at = (int64_t)i * s->K + EXACT_FIRST(st->dom[i]);
        int64_t end = st->head[at] + s->p->op_time_ns[at];
        most = UTIL_MAX(most, end);
    }
    return most;
}

void exact_found(exact_search *s, const exact_state *st)
{
    const moirai_problem *p = s->p;
    exact_result *r = s->r;
    int64_t makespan = makespan_of(s, st);
    if (makespan >= s->below_ns)
        return;
    moirai_plan *plan;
    if (schedule_plan_new(&plan, p->name ? p->name : "", s->n, s->slot.n_active, s->K)) {
        s->run.failed = s->run.stopped = true;
        return;
    }
    for (int32_t i = 0; i < s->n; i++) {
        plan->op_device[i] = EXACT_FIRST(st->dom[i]);
        plan->op_start_ns[i] = st->head[(int64_t)i * s->K + plan->op_device[i]];
        plan->op_finish_ns[i] = plan->op_start_ns[i] + moirai_op_ns(p, i, plan->op_device[i]);
    }
    for (int32_t a = 0; a < s->slot.n_active; a++) {
        int32_t x = s->slot.active[a];
        plan->transfer[a] = (moirai_transfer){s->mode.edge ? p->edge_tensor[x] : x / s->K,
                                              s->mode.edge ? p->edge_reader[x] : MOIRAI_NONE,
                                              s->slot.from[x],
                                              s->slot.to[x],
                                              st->xhead[x],
                                              st->xhead[x] + s->slot.ns[x]};
    }
    schedule_plan_sort_transfers(plan);
    moirai_plan_free(r->plan);
    r->plan = plan;
    s->below_ns = r->makespan_ns = plan->makespan_ns = makespan;
    r->found = true;
    tell(s, 'X');
}

/* Search for plans below `target_ns` from the root. True: all of it was searched (a plan found is then the best, and
 * with none found none is below the target). */
static bool search_below(exact_search *s, int64_t target_ns)
{
    s->below_ns = target_ns;
    s->run.open_lb_ns = EXACT_NONE_NS;
    exact_root(s);
    exact_visit(s, 0);
    return !s->run.stopped || s->run.open_lb_ns >= s->below_ns;
}

/* Targets climb from the root's bound: the lower the target, the more propagation rules out, and a target that fails is
 * a proven bound. The first search that finds anything goes on to the optimum. */
static void climb(exact_search *s)
{
    exact_result *r = s->r;
    int64_t top = s->below_ns, step = 0; /* the first plan's makespan, or the caller's limit */
    exact_root(s);
    exact_state *st = s->stack.state[0];
    bool alive = exact_propagate(s, st) && st->lb_ns < top;
    r->lower_bound_ns = alive ? UTIL_MAX(st->lb_ns, UTIL_MIN(s->o->proven_ns, top)) : top;
    r->complete = !alive;
    if (!alive)
        exact_note(s, EXACT_TREE_CLOSED);
    while (!r->complete && !s->run.stopped) {
        int64_t gap = top - r->lower_bound_ns;
        step = s->o->proven_ns > 0 ? gap
               : step == 0
                   ? UTIL_MAX(UTIL_MIN(gap / EXACT_SOLVE_FIRST_STEP, r->lower_bound_ns / EXACT_SOLVE_FIRST_STEP), 1)
                   : 2 * step;
        int64_t target = step < gap ? r->lower_bound_ns + step : top;
        bool done = search_below(s, target);
        if (done && s->below_ns == target) {
            r->lower_bound_ns = target; /* nothing is faster */
            r->complete = target == top;
        } else {
            r->lower_bound_ns = UTIL_MAX(r->lower_bound_ns, UTIL_MIN(s->run.open_lb_ns, s->below_ns));
            r->complete = done;
        }
        tell(s, ' ');
    }
}

static void finish(exact_search *s)
{
    exact_result *r = s->r;
    r->nodes = s->run.nodes;
    if (r->found)
        r->lower_bound_ns = r->complete ? r->makespan_ns : UTIL_MIN(r->lower_bound_ns, r->makespan_ns);
    else if (r->complete && s->run.ceiling_ns == s->run.horizon_ns)
        r->lower_bound_ns = EXACT_NONE_NS;
    r->complete |= r->found && r->lower_bound_ns == r->makespan_ns;
    if (r->found || !r->complete || s->run.stopped || s->run.ceiling_ns != s->o->below_ns)
        r->n_tree = 0;
}

/* The caller's plan is the first to beat, and is kept unless something better is found. Its length says nothing where the
 * caller brings a makespan to beat. */
static int take_start(exact_search *s)
{
    const moirai_plan *plan = s->o->start;
    exact_result *r = s->r;
    if (!plan || s->o->below_ns >= 0)
        return 0;
    r->found = true;
    s->below_ns = r->makespan_ns = plan->makespan_ns;
    return moirai_plan_copy(&r->plan, plan);
}

int exact_solve(const moirai_problem *p, const exact_options *o, exact_result *r)
{
    exact_search s;
    memset(r, 0, sizeof *r);
    r->makespan_ns = MOIRAI_UNKNOWN;
    int rc = exact_search_new(&s, p, o, r);
    rc = rc ? rc : take_start(&s);
    if (!rc) {
        climb(&s);
        finish(&s);
        rc = s.run.failed ? MOIRAI_EFAIL : 0;
    }
    if (rc)
        exact_result_clear(r);
    exact_search_free(&s);
    return rc;
}

void exact_result_clear(exact_result *r)
{
    moirai_plan_free(r->plan);
    free(r->tree);
    *r = (exact_result){.makespan_ns = MOIRAI_UNKNOWN};
}

/* The times are taken as they are: with memory `peak` a task may wait on purpose, which a simulation of the order alone
 * would undo. */
int exact_plan(moirai_plan **out, const moirai_problem *p, exact_result *r)
{
    *out = NULL;
    if (!r->plan)
        return moirai_error(MOIRAI_EUSAGE, "problem '%s': the exact search found no plan", p->name);
    r->plan->lower_bound_ns = r->lower_bound_ns;
    int rc = schedule_plan_account(r->plan, p);
    if (rc)
        return rc;
    *out = r->plan;
    r->plan = NULL;
    return 0;
}
