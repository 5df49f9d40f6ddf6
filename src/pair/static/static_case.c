/* The case at hand of a static programme: groups of operators alike, whose numbers on each device are divided on, and the
 * limits that a case sets to numbers, devices and receivers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/static/static_state.h"
#include "pair/static/static_tuning.h"
#include "util/util.h"

/* ---- groups ---- */

static bool alike(const moirai_problem *q, int32_t i, int32_t j)
{
    bool same = q->op_devices[i] == q->op_devices[j];
    for (int32_t k = 0; k < q->n_devices && same; k++)
        same = moirai_op_ns(q, i, k) == moirai_op_ns(q, j, k);
    return same;
}

/* group_of: the number of the first operator that is alike, MOIRAI_NONE where there is no other. */
static void find_alike(pair_programme *x)
{
    for (int32_t i = 0; i < x->n; i++)
        x->number.group_of[i] = MOIRAI_NONE;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t j = i + 1; j < x->n && x->number.group_of[i] == MOIRAI_NONE && moirai_op_least_ns(x->q, i) > 0;
             j++)
            if (x->number.group_of[j] == MOIRAI_NONE && alike(x->q, i, j)) {
                for (int32_t l = j; l < x->n; l++)
                    if (x->number.group_of[l] == MOIRAI_NONE && alike(x->q, i, l))
                        x->number.group_of[l] = i;
                x->number.group_of[i] = i;
            }
}

/* The groups with most work, numbered; the others are none. */
static void number_groups(pair_programme *x)
{
    int32_t first[STATIC_CASE_GROUPS], n = 0;
    for (; n < STATIC_CASE_GROUPS; n++) {
        double most = 0;
        int32_t best = MOIRAI_NONE;
        for (int32_t i = 0; i < x->n; i++) {
            double work = 0;
            bool taken = x->number.group_of[i] != i;
            for (int32_t g = 0; g < n && !taken; g++)
                taken = first[g] == i;
            for (int32_t j = i; j < x->n && !taken; j++)
                work += x->number.group_of[j] == i ? (double)moirai_op_least_ns(x->q, i) : 0;
            if (work > most) {
                most = work;
                best = i;
            }
        }
        if (best == MOIRAI_NONE)
            break;
        first[n] = best;
    }
    x->number.n_groups = n;
    for (int32_t i = 0; i < x->n; i++) {
        int32_t g = 0;
        while (g < n && x->number.group_of[i] != first[g])
            g++;
        x->number.group_of[i] = x->number.group_of[i] != MOIRAI_NONE && g < n ? g : MOIRAI_NONE;
    }
}

/* ---- the case at hand ---- */

/* Of a group, or of the readers of what is sent. */
static int64_t size_of(const pair_programme *x, int32_t group)
{
    return group < x->number.n_groups
               ? x->number.group_off[group + 1] - x->number.group_off[group]
               : x->q->tensor_edge_off[x->number.sent + 1] - x->q->tensor_edge_off[x->number.sent];
}

static void free_ranges(pair_programme *x)
{
    for (int32_t c = 0; c < x->number.n; c++) {
        x->at.least[c] = 0;
        x->at.most[c] = size_of(x, c / x->K);
    }
}

int pair_static_find_groups(pair_programme *x)
{
    size_t n = (size_t)x->n, cells = (size_t)(STATIC_CASE_GROUPS + 1) * (size_t)x->K;
    x->number.group_of = util_alloc(n, sizeof *x->number.group_of);
    x->number.group_off = util_alloc(STATIC_CASE_GROUPS + 1, sizeof *x->number.group_off);
    x->number.group_op = util_alloc(n, sizeof *x->number.group_op);
    x->at.least = util_alloc(cells, sizeof *x->at.least);
    x->at.most = util_alloc(cells, sizeof *x->at.most);
    if (!x->number.group_of || !x->number.group_off || !x->number.group_op || !x->at.least || !x->at.most)
        return MOIRAI_EFAIL;
    find_alike(x);
    number_groups(x);
    for (int32_t g = 0, m = 0; g < x->number.n_groups; g++) {
        for (int32_t i = 0; i < x->n; i++)
            if (x->number.group_of[i] == g)
                x->number.group_op[m++] = i;
        x->number.group_off[g + 1] = m;
    }
    x->number.n = (x->number.n_groups + (x->number.sent != MOIRAI_NONE)) * x->K;
    free_ranges(x);
    return 0;
}

static void restrict_numbers(pair_programme *x, const pair_static_tree *s, int32_t at)
{
    free_ranges(x);
    for (int32_t i = at; s->cases[i].parent != MOIRAI_NONE; i = s->cases[i].parent) {
        const pair_static_case *parent = &s->cases[s->cases[i].parent];
        int32_t c = parent->group * x->K + parent->device;
        if (parent->division != PAIR_BY_NUMBER)
            continue;
        if (s->cases[i].which == 0)
            x->at.most[c] = UTIL_MIN(x->at.most[c], parent->most);
        else
            x->at.least[c] = UTIL_MAX(x->at.least[c], parent->most + 1);
    }
}

static void restrict_devices(pair_programme *x, const pair_static_tree *s, int32_t at)
{
    memcpy(x->at.told, x->q->op_devices, (size_t)x->n * sizeof *x->at.told);
    for (int32_t i = at; s->cases[i].parent != MOIRAI_NONE; i = s->cases[i].parent) {
        const pair_static_case *parent = &s->cases[s->cases[i].parent];
        uint64_t there = UINT64_C(1) << parent->device;
        if (parent->division == PAIR_BY_DEVICE)
            x->at.told[parent->group] &= s->cases[i].which == 0 ? there : ~there;
    }
}

static void restrict_receivers(pair_programme *x)
{
    int64_t *least = x->at.least + x->number.n_groups * x->K, *most = x->at.most + x->number.n_groups * x->K;
    uint64_t named = UINT64_C(1) << x->number.sender;
    for (int32_t i = 0; i < x->at.to.n; i++) {
        named |= UINT64_C(1) << x->at.to.device[i];
        least[x->at.to.device[i]] = 1;
    }
    for (int32_t k = 0; k < x->K && x->at.to.closed; k++)
        if (!(named >> k & 1))
            most[k] = 0;
}

/* Limits of all numbers' rows: none where the range says nothing. */
static int set_limits(pair_programme *x)
{
    int rc = 0;
    for (int32_t c = 0; c < x->number.n && !rc; c++) {
        int64_t all = size_of(x, c / x->K);
        rc = pricing_lp_set_row(x->lp, x->row.number + c, x->at.least[c] > 0 ? (double)x->at.least[c] : -HUGE_VAL,
                                x->at.most[c] < all ? (double)x->at.most[c] : HUGE_VAL);
    }
    return rc;
}

int pair_static_enter_case(pair_programme *x, const pair_static_tree *s, int32_t at)
{
    x->at.to = pair_static_listed(s, at, PAIR_BY_SENDING);
    x->at.back = pair_static_listed(s, at, PAIR_BY_RETURN);
    restrict_numbers(x, s, at);
    restrict_devices(x, s, at);
    if (x->number.sent != MOIRAI_NONE)
        restrict_receivers(x);
    pair_windows_find(x);
    if (pair_windows_empty(x))
        return 0;
    int rc = pair_loads_refresh(x);
    rc = rc ? rc : pair_programme_fix(x);
    return rc ? rc : set_limits(x);
}

bool pair_static_adds_up(const pair_programme *x)
{
    if (pair_windows_empty(x))
        return false;
    for (int32_t g = 0; g * x->K < x->number.n; g++) {
        int64_t least = 0, most = 0;
        for (int32_t k = 0; k < x->K; k++) {
            if (x->at.least[g * x->K + k] > x->at.most[g * x->K + k])
                return false;
            least += x->at.least[g * x->K + k];
            most += x->at.most[g * x->K + k];
        }
        if (least > size_of(x, g) || most < size_of(x, g))
            return false;
    }
    return true;
}
