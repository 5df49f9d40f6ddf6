/* The static programme by cases: how many operators that are alike are on a device.
 *
 * The programme (static_lp.c) puts 3.4 of eight experts on one device and 2.7 on another; no plan does. Let G be any
 * set of operators and N the number of them on device k: a whole number, so that N <= v or N >= v + 1, which leaves no
 * plan out. A case restricts some numbers to ranges [least, most]. In a case N enters the Lagrangian with a multiplier
 * u of any sign: + u (least - N) for u > 0, u (most - N) for u < 0, at most 0 at every plan of the case. It is a
 * constant and a cost of y(i, k) for i in G, so that the verdict stays a sum of independent parts.
 *
 * Groups are operators with equal times on all devices. (Any sets are valid; equal operators are those among which the
 * programme is indifferent, and dividing on one of them alone would take as many cases as there are ways to pick it.)
 * The case that proves least is divided at the number that is furthest from whole, weighted by time. Rows of the
 * numbers are there from the beginning with free ranges: a case is a change of a few limits, and the dual simplex goes
 * on from the last one. The bound is the least over the cases that are not divided. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/static_state.h"
#include "util/util.h"

#define GROUPS 8      /* at most, those with most work */
#define TRIAL_CASES 9 /* that must have raised the bound */
#define WORTH 1.005   /* to this, for more of them */
#define FRACTION 1e-4 /* of a number that counts as whole */

typedef struct search {
    pair_programme *x;
    pair_static_case *cases;
    int32_t n_cases;
    double *dual, *value; /* of the programme's rows */
    double *number;       /* [case * groups * K + group * K + device] */
} search;

/* ---- groups ---- */

static bool alike(const moirai_problem *q, int32_t i, int32_t j)
{
    bool same = q->op_devices[i] == q->op_devices[j];
    for (int32_t k = 0; k < q->n_devices && same; k++)
        same = moirai_op_ns(q, i, k) == moirai_op_ns(q, j, k);
    return same;
}

static int64_t least_time(const moirai_problem *q, int32_t i)
{
    return moirai_op_least_ns(q, i);
}

/* group_of: the number of the first operator that is alike, MOIRAI_NONE where there is no other. */
static void find_alike(pair_programme *x)
{
    for (int32_t i = 0; i < x->n; i++)
        x->group_of[i] = MOIRAI_NONE;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t j = i + 1; j < x->n && x->group_of[i] == MOIRAI_NONE && least_time(x->q, i) > 0; j++)
            if (x->group_of[j] == MOIRAI_NONE && alike(x->q, i, j)) {
                for (int32_t l = j; l < x->n; l++)
                    if (x->group_of[l] == MOIRAI_NONE && alike(x->q, i, l))
                        x->group_of[l] = i;
                x->group_of[i] = i;
            }
}

/* The groups with most work, numbered; the others are none. */
static void number_groups(pair_programme *x)
{
    int32_t first[GROUPS], n = 0;
    for (; n < GROUPS; n++) {
        double most = 0;
        int32_t best = MOIRAI_NONE;
        for (int32_t i = 0; i < x->n; i++) {
            double work = 0;
            bool taken = x->group_of[i] != i;
            for (int32_t g = 0; g < n && !taken; g++)
                taken = first[g] == i;
            for (int32_t j = i; j < x->n && !taken; j++)
                work += x->group_of[j] == i ? (double)least_time(x->q, i) : 0;
            if (work > most) {
                most = work;
                best = i;
            }
        }
        if (best == MOIRAI_NONE)
            break;
        first[n] = best;
    }
    x->n_groups = n;
    for (int32_t i = 0; i < x->n; i++) {
        int32_t g = 0;
        while (g < n && x->group_of[i] != first[g])
            g++;
        x->group_of[i] = x->group_of[i] != MOIRAI_NONE && g < n ? g : MOIRAI_NONE;
    }
}

static int find_groups(pair_programme *x)
{
    size_t n = (size_t)x->n, cells = (size_t)GROUPS * (size_t)x->K;
    x->group_of = util_alloc(n, sizeof *x->group_of);
    x->group_off = util_alloc(GROUPS + 1, sizeof *x->group_off);
    x->group_op = util_alloc(n, sizeof *x->group_op);
    x->least = util_alloc(cells, sizeof *x->least);
    x->most = util_alloc(cells, sizeof *x->most);
    if (!x->group_of || !x->group_off || !x->group_op || !x->least || !x->most)
        return MOIRAI_EFAIL;
    find_alike(x);
    number_groups(x);
    for (int32_t g = 0, m = 0; g < x->n_groups; g++) {
        for (int32_t i = 0; i < x->n; i++)
            if (x->group_of[i] == g)
                x->group_op[m++] = i;
        x->group_off[g + 1] = m;
    }
    return 0;
}

/* ---- cases ---- */

static int64_t size_of(const pair_programme *x, int32_t group)
{
    return x->group_off[group + 1] - x->group_off[group];
}

/* The ranges of a case: all divisions on the way to it. */
static void set_ranges(search *s, int32_t at)
{
    pair_programme *x = s->x;
    for (int32_t c = 0; c < x->n_groups * x->K; c++) {
        x->least[c] = 0;
        x->most[c] = size_of(x, c / x->K);
    }
    for (int32_t i = at; s->cases[i].parent != MOIRAI_NONE; i = s->cases[i].parent) {
        const pair_static_case *parent = &s->cases[s->cases[i].parent];
        int32_t c = parent->group * x->K + parent->device;
        if (parent->low == i)
            x->most[c] = UTIL_MIN(x->most[c], parent->most);
        else
            x->least[c] = UTIL_MAX(x->least[c], parent->most + 1);
    }
}

/* Every operator of a group is on some device. */
static bool adds_up(const pair_programme *x)
{
    for (int32_t g = 0; g < x->n_groups; g++) {
        int64_t least = 0, most = 0;
        for (int32_t k = 0; k < x->K; k++) {
            least += x->least[g * x->K + k];
            most += x->most[g * x->K + k];
        }
        if (least > size_of(x, g) || most < size_of(x, g))
            return false;
    }
    return true;
}

static int solve_case(search *s, bool first)
{
    pair_programme *x = s->x;
    int rc = 0;
    for (int32_t c = 0; c < x->n_groups * x->K && !rc; c++)
        rc = pricing_lp_set_row(x->lp, x->count_row + c, (double)x->least[c], (double)x->most[c]);
    if (!rc && first)
        rc = pricing_lp_solve_once(x->lp, &x->job->stop, s->dual, NULL);
    return rc ? rc : pricing_lp_solve_again(x->lp, &x->job->stop, s->dual, s->value);
}

/* Judges case `at` by its own multipliers or by those of its parent, whichever prove more. */
static int judge(search *s, int32_t at)
{
    pair_programme *x = s->x;
    pair_static_case *c = &s->cases[at];
    size_t n = (size_t)(x->n_rows - x->out_row), numbers = (size_t)x->n_groups * (size_t)x->K;
    set_ranges(s, at);
    if (!adds_up(x)) {
        c->bound_ns = x->job->upper_ns;
        c->settled = true;
        return 0;
    }
    c->dual = util_alloc(n, sizeof *c->dual);
    if (!c->dual)
        return MOIRAI_EFAIL;
    if (c->parent != MOIRAI_NONE) {
        memcpy(c->dual, s->cases[c->parent].dual, n * sizeof *c->dual);
        memcpy(x->dual + x->out_row, c->dual, n * sizeof *c->dual);
        c->bound_ns = pair_programme_evaluate(x);
    }
    int rc = solve_case(s, c->parent == MOIRAI_NONE);
    c->settled = rc == MOIRAI_ELIMIT;
    if (rc)
        return rc == MOIRAI_ELIMIT ? 0 : rc;
    pair_programme_round(x, s->dual);
    int64_t bound = pair_programme_evaluate(x);
    if (bound >= c->bound_ns) {
        c->bound_ns = bound;
        memcpy(c->dual, x->dual + x->out_row, n * sizeof *c->dual);
    }
    memcpy(s->number + (size_t)at * numbers, s->value + x->count_row, numbers * sizeof *s->number);
    return 0;
}

/* Where to divide: the number furthest from whole, by the time of what it counts. */
static bool choose_division(search *s, int32_t at)
{
    const pair_programme *x = s->x;
    pair_static_case *c = &s->cases[at];
    const double *number = s->number + (size_t)at * (size_t)(x->n_groups * x->K);
    double most = 0;
    for (int32_t i = 0; i < x->n_groups * x->K; i++) {
        double part = number[i] - floor(number[i]), far = fmin(part, 1 - part);
        double worth = far * (double)least_time(x->q, x->group_op[x->group_off[i / x->K]]);
        if (far > FRACTION && worth > most) {
            most = worth;
            c->group = i / x->K;
            c->device = i % x->K;
            c->most = (int64_t)floor(number[i]);
        }
    }
    return most > 0;
}

static int32_t weakest(const search *s)
{
    int32_t best = -1;
    for (int32_t i = 0; i < s->n_cases; i++)
        if (s->cases[i].low == MOIRAI_NONE && (best < 0 || s->cases[i].bound_ns < s->cases[best].bound_ns))
            best = i;
    return best;
}

static int add_case(search *s, int32_t parent)
{
    int32_t at = s->n_cases++;
    s->cases[at] = (pair_static_case){.parent = parent, .low = MOIRAI_NONE, .high = MOIRAI_NONE};
    return at;
}

static int divide(search *s, int32_t most)
{
    const util_stop *stop = &s->x->job->stop;
    int rc = judge(s, add_case(s, MOIRAI_NONE));
    int64_t root_ns = s->cases[0].bound_ns;
    while (!rc && s->n_cases + 2 <= most && !util_stopped(stop)) {
        int32_t at = weakest(s);
        pair_static_case *c = &s->cases[at];
        bool idle = s->n_cases >= TRIAL_CASES && (double)c->bound_ns < WORTH * (double)root_ns;
        if (idle || c->settled || c->bound_ns >= s->x->job->upper_ns || !choose_division(s, at))
            break;
        c->low = add_case(s, at);
        c->high = add_case(s, at);
        rc = judge(s, c->low);
        rc = rc ? rc : judge(s, c->high);
        free(c->dual);
        c->dual = NULL;
    }
    return rc;
}

/* ---- ---- */

static int keep(pair_static_proof *out, const search *s, int64_t bound_ns)
{
    pair_programme *x = s->x;
    int rc = pair_programme_keep(out, x, bound_ns);
    if (rc)
        return rc;
    free(out->dual); /* every case has its own */
    out->dual = NULL;
    out->n_groups = x->n_groups;
    out->group_off = x->group_off;
    out->group_op = x->group_op;
    out->n_cases = s->n_cases;
    out->cases = s->cases;
    x->group_off = x->group_op = NULL;
    return 0;
}

static int by_cases(int64_t *lower_ns, pair_programme *x, int32_t most, pair_static_proof *proof, int32_t *n_proofs)
{
    search s = {.x = x};
    int rc = pair_programme_choose_loads(x);
    rc = rc ? rc : pair_programme_build(x);
    size_t rows = (size_t)x->n_rows;
    s.cases = util_alloc((size_t)most, sizeof *s.cases);
    s.number = util_alloc((size_t)most * (size_t)x->n_groups * (size_t)x->K, sizeof *s.number);
    s.dual = util_alloc(2 * rows, sizeof *s.dual);
    s.value = s.dual ? s.dual + rows : NULL;
    if (!rc && (!s.cases || !s.number || !s.dual))
        rc = MOIRAI_EFAIL;
    rc = rc ? rc : divide(&s, most);
    int64_t bound = rc ? 0 : s.cases[weakest(&s)].bound_ns;
    bool kept = false;
    if (!rc && bound > x->proven_ns) {
        *lower_ns = bound;
        if (proof && !(rc = keep(proof, &s, bound))) {
            kept = true;
            ++*n_proofs;
        }
    }
    for (int32_t i = 0; i < s.n_cases && !kept; i++)
        free(s.cases[i].dual);
    if (!kept)
        free(s.cases);
    free(s.number);
    free(s.dual);
    return rc;
}

int pair_static_by_cases(int64_t *lower_ns, const moirai_problem *q, const pair_static_task *job, int32_t cases,
                         pair_static_proof *proof, int32_t *n_proofs)
{
    *lower_ns = job->proven_ns;
    if (!pricing_lp_available() || q->n_ops == 0 || job->proven_ns >= job->upper_ns ||
        (int64_t)q->n_edges * q->n_devices * q->n_devices > PAIR_STATIC_CELLS)
        return 0;
    pair_programme x = {
        .q = q, .job = job, .n = q->n_ops, .K = q->n_devices, .E = q->n_edges, .proven_ns = job->proven_ns};
    int rc = pair_programme_prepare(&x);
    rc = rc ? rc : find_groups(&x);
    if (!rc && x.n_groups > 0) {
        for (int32_t c = 0; c < x.n_groups * x.K; c++)
            x.most[c] = size_of(&x, c / x.K);
        rc = by_cases(lower_ns, &x, UTIL_MAX(cases, 1), proof ? proof + *n_proofs : NULL, n_proofs);
    }
    pair_programme_clear(&x);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}
