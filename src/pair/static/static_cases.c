/* The static programme by cases: where operators that are alike are, who receives the entry's tensor, who returns results.
 *
 * The programme (static_lp.c) puts 3.4 of eight experts on one device and 2.7 on another, and lets every device have
 * the entry's tensor as if the others did not want it. No plan does.
 *
 * *Numbers.* Let G be any set of operators and N the number of them on device k: a whole number, so that N <= v or N >=
 * v + 1, which leaves no plan out. A case restricts some numbers to ranges [least, most]. In a case N enters the
 * Lagrangian with a multiplier u of any sign: + u (least - N) for u > 0, u (most - N) for u < 0, at most 0 at every plan
 * of the case. It is a constant and a cost of y(i, k) for i in G, so that the verdict stays a sum of independent parts.
 * Groups are operators with equal times on all devices. (Any sets are valid; equal operators are those among which the
 * programme is indifferent, and dividing on one of them alone would take as many cases as there are ways to pick it.)
 *
 * *Sendings.* With flow tensor and congestion port the entry's tensor goes to one device after the other. A case says
 * which devices are the first to receive it, in the order of arrival k1, ..., kr; it is divided by who is next: one of
 * the others, or nobody. The tensor is on kj no sooner than all transfers to k1, ..., kj take together, on the others no
 * sooner than after all of these and their own: heads of everything behind rise with it. Readers are on each of k1, ...,
 * kr, at least one, and on no other device where nobody is next: two more ranges of numbers.
 *
 * *Returns.* The same at the other end, with congestion port: which devices are the last to send results to the exit's
 * device, from the last on. Results hold one port, so that the last results of l1, ..., lr arrive one after the other:
 * whatever comes from lj is followed by those of l1, ..., l(j-1) at least, and tails grow by it. On slow links this is
 * most of what loads alone do not see: that all devices hand in their last results at the same time.
 *
 * *Devices.* Where all numbers are whole and operators are not: one of them is on a device, or elsewhere.
 *
 * The case that proves least is divided; where, is decided in static_branch.c. Plans are spoken of up to little more
 * than what is proven (`climb`), so that windows (static_windows.c) are narrow; cases that were closed by that are judged
 * again when `upper` has climbed and they are the weakest. All cases are one programme: a case is a change of limits of
 * rows, and the dual simplex goes on from the last one. The bound is the least over the cases that are not divided. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/static/static_state.h"
#include "pair/static/static_tuning.h"
#include "util/util.h"

/* ---- multipliers to keep ---- */

/* Places of a certificate for the rows of a programme: all devices of all edges have one for sharing. */
static int64_t base_places(const pair_programme *x)
{
    return (int64_t)x->E * x->K * (2 + x->K) + x->E + x->n;
}

static void copy_base(pair_programme *x, int64_t *dual, bool out)
{
    int64_t both = (int64_t)2 * x->E * x->K, share = (int64_t)x->E * x->K * x->K;
    size_t ends = sizeof *dual * (size_t)(x->E + x->n);
    memcpy(out ? dual : x->found.dual + x->row.out, out ? x->found.dual + x->row.out : dual,
           sizeof *dual * (size_t)both);
    for (int64_t c = 0; c < share; c++)
        if (x->row.share_of[c] >= 0 && out)
            dual[both + c] = x->found.dual[x->row.share_of[c]];
        else if (x->row.share_of[c] >= 0)
            x->found.dual[x->row.share_of[c]] = dual[both + c];
    dual += both + share;
    memcpy(out ? dual : x->found.dual + x->row.path, out ? x->found.dual + x->row.path : dual, ends);
}

int pair_static_pack(pair_static_case *c, pair_programme *x, bool numbers)
{
    int64_t m = base_places(x);
    int32_t loads = 0;
    for (int32_t r = 0; r < x->loads.n; r++)
        loads += x->loads.load[r].head_ns >= 0 && x->found.dual[x->row.load + r] > 0;
    int64_t n = m + loads + (numbers ? x->number.n : 0);
    int64_t *dual = util_alloc((size_t)n, sizeof *dual);
    pair_load *load = util_alloc((size_t)loads, sizeof *load);
    if (!dual || !load) {
        free(dual);
        free(load);
        return MOIRAI_EFAIL;
    }
    copy_base(x, dual, true);
    loads = 0;
    for (int32_t r = 0; r < x->loads.n; r++)
        if (x->loads.load[r].head_ns >= 0 && x->found.dual[x->row.load + r] > 0) {
            load[loads++] = x->loads.load[r];
            dual[m++] = x->found.dual[x->row.load + r];
        }
    if (numbers)
        memcpy(dual + m, x->found.dual + x->row.number, (size_t)x->number.n * sizeof *dual);
    free(c->dual);
    free(c->load);
    c->dual = dual;
    c->n_duals = n;
    c->load = load;
    c->n_loads = loads;
    return 0;
}

/* ---- cases ---- */

/* What multipliers that were kept prove of the case at hand. */
static int64_t evaluate_packed(pair_programme *x, const pair_static_case *c)
{
    size_t rows = (size_t)base_places(x), loads = (size_t)c->n_loads;
    pair_load *own = x->loads.load;
    int32_t n_own = x->loads.n;
    copy_base(x, c->dual, false);
    memcpy(x->found.dual + x->row.load, c->dual + rows, loads * sizeof *x->found.dual);
    memcpy(x->found.dual + x->row.number, c->dual + rows + loads, (size_t)x->number.n * sizeof *x->found.dual);
    x->loads.load = c->load;
    x->loads.n = c->n_loads;
    int64_t bound = pair_programme_evaluate(x);
    x->loads.load = own;
    x->loads.n = n_own;
    return bound;
}

/* The parent's multipliers, which prove no less of a part of its plans. */
static int inherit(pair_programme *x, pair_static_case *c, const pair_static_case *parent)
{
    size_t duals = (size_t)parent->n_duals, loads = (size_t)parent->n_loads;
    int64_t *dual = util_alloc(duals, sizeof *dual);
    pair_load *load = util_alloc(loads, sizeof *load);
    if (!dual || !load) {
        free(dual);
        free(load);
        return MOIRAI_EFAIL;
    }
    memcpy(dual, parent->dual, duals * sizeof *dual);
    memcpy(load, parent->load, loads * sizeof *load);
    c->dual = dual;
    c->load = load;
    c->n_duals = parent->n_duals;
    c->n_loads = parent->n_loads;
    /* What was proven of the parent holds of its parts, for longer plans as well. */
    c->bound_ns = UTIL_MAX(evaluate_packed(x, c), parent->bound_ns);
    return 0;
}

static void keep_solution(pair_static *p, int32_t at)
{
    const pair_programme *x = &p->x;
    double *number = p->search.number + (size_t)at * pair_static_solution_size(x), *on = number + x->number.n;
    memcpy(number, x->found.row_value + x->row.number, (size_t)x->number.n * sizeof *number);
    for (int32_t c = 0; c < x->n * x->K; c++)
        on[c] = x->q->op_devices[c / x->K] >> (c % x->K) & 1 ? x->found.column_value[x->column.op[c]] : 0;
}

/* What the case has proven when it was judged first. */
static void note_rise(pair_static *p, int32_t at, int64_t own_ns)
{
    pair_static_case *c = &p->search.tree.cases[at];
    if (c->own_ns)
        return;
    c->own_ns = own_ns;
    pair_static_learn(p, at);
}

/* Judges case `at` by multipliers of its own, or by its parent's where these prove more. */
static int judge(pair_static *p, int32_t at, int64_t enough_ns, const util_stop *stop)
{
    pair_programme *x = &p->x;
    pair_static_search *s = &p->search;
    pair_static_case *c = &s->tree.cases[at];
    int64_t before = c->bound_ns;
    int rc = pair_static_enter_case(x, &s->tree, at);
    c->upper_ns = x->upper_ns;
    if (!rc && !pair_static_adds_up(x)) {
        c->bound_ns = x->upper_ns;
        c->settled = true;
        note_rise(p, at, x->upper_ns);
        return 0;
    }
    c->settled = false;
    rc = rc ? rc : pair_programme_solve(x, enough_ns, stop);
    if (rc)
        return rc;
    int64_t bound = pair_programme_evaluate(x);
    keep_solution(p, at);
    note_rise(p, at, bound);
    const pair_static_case *parent = c->parent == MOIRAI_NONE ? NULL : &s->tree.cases[c->parent];
    if (parent && parent->dual && parent->bound_ns > bound)
        return inherit(x, c, parent);
    c->bound_ns = UTIL_MAX(bound, before);
    return bound >= before ? pair_static_pack(c, x, true) : 0;
}

static int32_t weakest(const pair_static_tree *s)
{
    int32_t best = -1;
    for (int32_t i = 0; i < s->n_cases; i++)
        if (s->cases[i].division == PAIR_UNDIVIDED && (best < 0 || s->cases[i].bound_ns < s->cases[best].bound_ns))
            best = i;
    return best;
}

static int make_room(pair_static *p, int32_t more)
{
    pair_static_search *s = &p->search;
    size_t n = (size_t)(s->tree.n_cases + more);
    return util_grow(&s->tree.cases, &s->tree.capacity, n, sizeof *s->tree.cases) ||
                   util_grow(&s->number, &s->number_capacity, n * pair_static_solution_size(&p->x), sizeof *s->number)
               ? MOIRAI_EFAIL
               : 0;
}

static void add_case(pair_static_tree *s, int32_t parent, int32_t which)
{
    s->cases[s->n_cases++] = (pair_static_case){.parent = parent, .which = which};
}

static void undo(pair_static_tree *s, int32_t at, int32_t before)
{
    for (int32_t i = before; i < s->n_cases; i++) {
        free(s->cases[i].dual);
        free(s->cases[i].load);
    }
    s->n_cases = before;
    if (at != MOIRAI_NONE)
        s->cases[at].division = PAIR_UNDIVIDED;
}

/* All children of case `at`, or, where time is short, none. */
static int divide(pair_static *p, int32_t at, uint64_t devices, const pair_static_case *how, const util_stop *stop)
{
    pair_static_tree *s = &p->search.tree;
    int32_t before = s->n_cases;
    int rc = make_room(p, p->x.K + 2);
    if (rc)
        return rc;
    s->cases[at].division = how->division;
    s->cases[at].group = how->group;
    s->cases[at].device = how->device;
    s->cases[at].most = how->most;
    for (uint64_t rest = devices; rest; rest &= rest - 1)
        add_case(s, at, __builtin_ctzll(rest));
    if (devices)
        add_case(s, at, MOIRAI_NONE);
    for (int32_t i = 0; i < 2 && !devices; i++)
        add_case(s, at, i);
    int64_t enough = s->cases[at].bound_ns + (int64_t)(STATIC_CASES_ENOUGH * (double)s->cases[at].bound_ns);
    for (int32_t i = before; i < s->n_cases && !rc; i++)
        rc = judge(p, i, UTIL_MIN(enough, p->x.upper_ns), stop);
    if (rc) {
        undo(s, at, before);
        return rc;
    }
    s->cases[at].child = before;
    s->cases[at].n_children = s->n_cases - before;
    free(s->cases[at].dual);
    free(s->cases[at].load);
    s->cases[at].dual = NULL;
    s->cases[at].load = NULL;
    return 0;
}

static int begin(pair_static *p, const util_stop *stop)
{
    pair_static_tree *s = &p->search.tree;
    pair_programme *x = &p->x;
    int rc = make_room(p, 1);
    if (!rc && !p->search.rise)
        p->search.rise = util_alloc(2 * (size_t)x->number.n, sizeof *p->search.rise);
    if (rc || !p->search.rise)
        return MOIRAI_EFAIL;
    s->n_groups = x->number.n_groups;
    s->group_off = x->number.group_off;
    s->group_op = x->number.group_op;
    s->sent = x->number.sent;
    s->return_ns = x->result.exit_device == MOIRAI_NONE ? 0 : x->result.return_ns;
    add_case(s, MOIRAI_NONE, 0);
    rc = pair_loads_refresh(x);
    rc = rc ? rc : judge(p, 0, x->upper_ns, stop);
    if (rc)
        undo(s, MOIRAI_NONE, 0);
    return rc;
}

/* How far plans are spoken of: little beyond what is proven, since windows are the narrower. */
static void climb(pair_static *p, int64_t bound_ns)
{
    if ((double)p->x.upper_ns < (1 + STATIC_CASES_LEAST_AHEAD) * (double)bound_ns || p->search.tree.n_cases == 0)
        p->x.upper_ns = UTIL_MIN(p->most_ns, bound_ns + 1 + (int64_t)(STATIC_CASES_AHEAD * (double)bound_ns));
}

/* The weakest case is judged for longer plans, if it was for short ones, or divided. */
static int step(pair_static *p, int32_t at, const util_stop *stop)
{
    pair_static_search *s = &p->search;
    pair_static_case *c = &s->tree.cases[at], how = {0};
    if (c->bound_ns >= c->upper_ns && c->upper_ns < p->x.upper_ns)
        return judge(p, at, p->x.upper_ns, stop);
    bool any = false, helps = s->tree.n_cases < STATIC_CASES_TRIAL_CASES ||
                              (double)c->bound_ns > STATIC_CASES_WORTH * (double)p->x.proven_ns;
    uint64_t devices = helps && !c->settled ? pair_static_choose(p, at, &how, &any) : 0;
    s->idle = !any;
    return s->idle ? 0 : divide(p, at, devices, &how, stop);
}

int pair_static_divide(int64_t *lower_ns, pair_static *p, int32_t cases, int64_t need_ns, const util_stop *stop)
{
    pair_static_search *s = &p->search;
    int rc = 0;
    *lower_ns = UTIL_MAX(p->x.proven_ns, s->tree.bound_ns);
    if (s->idle || !p->x.number.n)
        return 0;
    p->x.found.violated = STATIC_CASES_VIOLATED;
    climb(p, *lower_ns);
    if (!s->tree.n_cases)
        rc = begin(p, stop);
    int32_t end = s->tree.n_cases + cases;
    while (!rc && !s->idle && s->tree.n_cases < end && !util_stopped(stop)) {
        int32_t at = weakest(&s->tree);
        s->tree.bound_ns = s->tree.cases[at].bound_ns;
        if (s->tree.bound_ns >= UTIL_MIN(need_ns, p->most_ns))
            break;
        climb(p, s->tree.bound_ns);
        rc = step(p, at, stop);
    }
    if (s->tree.n_cases)
        s->tree.bound_ns = s->tree.upper_ns = s->tree.cases[weakest(&s->tree)].bound_ns;
    *lower_ns = UTIL_MAX(p->x.proven_ns, s->tree.bound_ns);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

const pair_static_tree *pair_static_proven(const pair_static *p)
{
    return p && p->search.tree.bound_ns > p->x.proven_ns ? &p->search.tree : NULL;
}

int32_t pair_static_cases(const pair_static *p)
{
    return p->search.tree.n_cases;
}

bool pair_static_exhausted(const pair_static *p)
{
    return p->search.idle || !p->x.number.n;
}

void pair_static_search_clear(pair_static_search *s)
{
    undo(&s->tree, MOIRAI_NONE, 0);
    free(s->tree.cases);
    free(s->number);
    free(s->rise);
}
