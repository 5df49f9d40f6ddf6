/* getf: generalized earliest time first (Su, Ren, Vardi, Wierman 2020), for precedence on machines of different speeds.
 *
 * A linear programme without communication (place/list/getf/getf_lp.c) says how much of every operator belongs to which device.
 * Devices are grouped by speed. An operator goes to a group: take the fastest groups until half of its mass is covered,
 * and among those the one of largest total speed. Then earliest time first (etf.c), each operator only on the devices
 * of its group.
 *
 * The original's machines are related: p_ik = w_i / s_k. Ours are not, so speeds are means over the operators
 * (speed.h). With m devices, those slower than the fastest / m are dropped; gamma = log m / log log m to base 2, at
 * least 2; group g has the speeds in [gamma^(g-1), gamma^g), the slowest being 1.
 *
 * Changed to fit model.md: the programme has one variable for a keep-together group; an operator that no kept device
 * can run uses the others; a group of devices without room (or that can't run the operator) gives way to the next
 * faster one that has some, then to any device, dropped ones included; memory beyond that as in etf.c. With --mode milp
 * the shares are whole numbers, as the paper had it from Gurobi: branch and bound from the rounded linear programme,
 * until three quarters of the time limit (MILP_LIMIT_S where none is given) are over. Where no device was dropped, the
 * programme's value, proven in whole numbers, is the plan's bound. O(E K log V) besides the solver. */
#include "place/list/getf/getf_lp.h"
#include "place/list/etf.h"
#include "place/list/getf/getf.h"
#include "place/list/speed.h"
#include "place/placers.h"
#include "place/list/lp_whole.h"
#include "util/util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILP_LIMIT_S 60.0

static const moirai_param params[] = {
    {.name = "mode",
     .kind = MOIRAI_PARAM_CHOICE,
     .choices = "lp|milp",
     .help =
         "how operators are shared out: fractions, or whole operators as in the paper, until the time limit (or 60 s)"},
};

/* ---- speeds and groups ---- */

double place_getf_gamma(int32_t n_devices)
{
    double log_m = log2(n_devices), log_log = log_m > 1 ? log2(log_m) : 0;
    return log_log > 0 ? UTIL_MAX(log_m / log_log, 2) : 2;
}

void place_getf_group(place_getf_groups *g, const double *speed, int32_t n_devices)
{
    double fastest = 0, slowest = HUGE_VAL, gamma = place_getf_gamma(n_devices);
    *g = (place_getf_groups){0};
    for (int32_t k = 0; k < n_devices; k++)
        fastest = UTIL_MAX(fastest, speed[k]);
    for (int32_t k = 0; k < n_devices; k++)
        if (speed[k] * n_devices >= fastest) {
            g->kept |= (uint64_t)1 << k;
            slowest = UTIL_MIN(slowest, speed[k]);
        }
    for (int32_t k = 0; k < n_devices; k++) {
        if (!(g->kept >> k & 1))
            continue;
        int32_t at = 0;
        for (double top = gamma * slowest; speed[k] >= top && at < MOIRAI_MASK_DEVICES - 1; top *= gamma)
            at++;
        g->devices[at] |= (uint64_t)1 << k;
        g->n = UTIL_MAX(g->n, at + 1);
    }
}

int32_t place_getf_choose(const place_getf_groups *g, const double *speed, const double *share, uint64_t can_run)
{
    double covered = 0, most = 0;
    int32_t best = g->n - 1;
    for (int32_t at = g->n - 1; at >= 0 && covered < 0.5 - 1e-6; at--) {
        double total = 0;
        for (uint64_t open = g->devices[at] & can_run; open != 0; open &= open - 1) {
            covered += share[__builtin_ctzll(open)];
            total += speed[__builtin_ctzll(open)];
        }
        if (total > most) {
            most = total;
            best = at;
        }
    }
    return best;
}

/* ---- placing ---- */

typedef struct getf {
    const moirai_problem *p;
    place_getf_groups groups;
    int32_t *group; /* per operator */
} getf;

/* Its group, then the faster ones one by one, then any device. */
static uint64_t stage_devices(void *data, int32_t op, int32_t stage)
{
    const getf *x = data;
    uint64_t devices = 0;
    if (stage > x->groups.n)
        return 0;
    for (int32_t at = x->group[op]; at < x->groups.n; at++) {
        uint64_t more = x->groups.devices[at] & x->p->op_devices[op];
        devices |= more;
        if (more != 0 && stage-- == 0)
            return devices;
    }
    return x->p->op_devices[op];
}

static void tell(const moirai_place_options *o, const place_getf_result *g, const getf *x, double begun)
{
    char note[160];
    if (!o->budget.progress)
        return;
    snprintf(note, sizeof note, "linear programme %s: %.3f ms, %d of %d devices in %d groups%s",
             g->solved ? "solved" : "stopped, all devices for all", g->value_ns * 1e-6,
             __builtin_popcountll(x->groups.kept), x->p->n_devices, x->groups.n,
             g->milp_found ? ", whole operators by branch and bound" : "");
    o->budget.progress(o->budget.progress_data, &(moirai_progress){.seconds = util_seconds() - begun,
                                                                   .letter = ' ',
                                                                   .makespan_ns = MOIRAI_UNKNOWN,
                                                                   .lower_bound_ns = g->lower_ns,
                                                                   .note = note});
}

static int place_groups(moirai_plan **out, getf *x, const place_getf_result *g, const double *speed, util_stop stop)
{
    const moirai_problem *p = x->p;
    for (int32_t i = 0; g->share && i < p->n_ops; i++)
        x->group[i] = place_getf_choose(&x->groups, speed, g->share + (int64_t)i * p->n_devices, p->op_devices[i]);
    place_etf_rules rules = {.devices = g->share ? stage_devices : NULL, .data = x, .stop = place_etf_rest(stop)};
    int rc = place_etf(out, p, &rules);
    bool all = __builtin_popcountll(x->groups.kept) == p->n_devices;
    if (!rc && all)
        (*out)->lower_bound_ns = UTIL_MAX((*out)->lower_bound_ns, g->lower_ns);
    return rc;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    getf x = {.p = p, .group = util_alloc((size_t)p->n_ops, sizeof *x.group)};
    if (!x.group)
        return MOIRAI_EFAIL;
    double speed[MOIRAI_MASK_DEVICES], begun = util_seconds();
    bool milp = !strcmp(moirai_setting_choice(o, &place_getf, "mode"), "milp");
    util_stop stop = util_stop_of(&o->budget);
    util_stop first = milp && stop.deadline == 0 ? util_stop_within(&stop, MILP_LIMIT_S) : place_etf_first(&stop);
    place_speeds(p, speed);
    place_getf_group(&x.groups, speed, p->n_devices);
    place_getf_result g;
    place_getf_task task = {
        .devices = x.groups.kept, .milp = milp, .stop = first, .gap = o->gap, .seed = o->budget.seed};
    int rc = place_getf_solve(&g, p, &task);
    if (!rc) {
        tell(o, &g, &x, begun);
        rc = place_groups(out, &x, &g, speed, stop);
        place_getf_clear(&g);
    }
    free(x.group);
    return rc;
}

const moirai_placer place_getf = {
    .name = "getf",
    .summary = "GETF: speed groups by a linear programme without communication, then earliest time first",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .few_devices = true,
    .available = lp_whole_available,
    .place = place,
};
