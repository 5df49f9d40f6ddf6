/* How sure a plan's speed-up is, and what to measure to be surer.
 *
 * Predicted times have errors, and the judge of the cost models knows how large (docs/cost-models.md). So have measured
 * ones, since operators are measured alone and run among others (sure_run.c). So the plan and the best single device are
 * looked at again under times as they might be: the same devices and the same order, 31 times with fixed seeds. The
 * middle 80 % of the speed-ups are the interval.
 *
 * What is wanted most is the class of operators on the type of device whose error alone moves the speed-up most: of the
 * few pairs with the largest product of time and error, each gets its times as they might be while all others keep
 * theirs.
 *
 * O((31 + 7 x 4) x (operators x devices + a simulation)). */
#include "cli/steps/steps.h"
#include "cli/steps/sure_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include "util/util.h"

#define TRIES 31
#define WANTED_TRIES 7
#define MOST_TIMES 2000000 /* operators x devices beyond which it would take seconds */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The speed-up with these times, `split` for the plan where a run of several devices has other ones than one alone; 0
 * where there is none. */
static double speed_up_of(const moirai_problem *p, const moirai_plan *plan, int64_t *time_ns,
                          const moirai_problem *split, moirai_alone *alone)
{
    moirai_problem other = *p;
    moirai_plan *again = NULL;
    other.op_time_ns = time_ns;
    double found = 0;
    if (!moirai_plan_tighten(&again, split ? split : &other, plan) && !moirai_alone_find(alone, &other, again) &&
        again->makespan_ns > 0)
        found = alone->speed_up;
    moirai_plan_free(again);
    return found;
}

/* ---- what is wanted ---- */

/* Times, their errors and whose they are. */
typedef struct doubts {
    const moirai_problem *p;
    const moirai_plan *plan, *single;
    const moirai_graph *g;
    const moirai_cluster *c;
    const double *spread;
    const char **name; /* class, by operator */
} doubts;

/* Devices of one type, and of as many threads, are wrong alike: the first of them stands for all. */
static int32_t kind_of(const moirai_cluster *c, int32_t d)
{
    for (int32_t e = 0; *c->device[d].type && e < d; e++)
        if (!strcmp(c->device[e].type, c->device[d].type) && c->device[e].threads == c->device[d].threads)
            return e;
    return d;
}

/* A class on a type of device. */
typedef struct pair {
    cli_wanted shown;
    int32_t kind;
    double weight; /* time x error, then the squares of what it moves */
} pair;

static void count(pair *found, int *n, int most, const doubts *d, int32_t op, int32_t device)
{
    int64_t at = (int64_t)op * d->p->n_devices + device;
    int32_t kind = kind_of(d->c, device);
    int i = 0;
    if (!(d->spread[at] > 1) || d->p->op_time_ns[at] <= 0)
        return;
    while (i < *n && (found[i].kind != kind || strcmp(found[i].shown.name, d->name[op])))
        i++;
    if (i == most)
        return;
    if (i == *n) {
        const moirai_device *of = &d->c->device[kind];
        found[(*n)++] = (pair){.shown = {.name = d->name[op]}, .kind = kind};
        snprintf(found[i].shown.device, sizeof found[i].shown.device, "%s", *of->type ? of->type : of->name);
    }
    found[i].shown.n_ops++;
    found[i].shown.ns += (double)d->p->op_time_ns[at];
    found[i].weight += (double)d->p->op_time_ns[at] * log(d->spread[at]);
}

static int by_weight(const void *a, const void *b)
{
    double x = ((const pair *)a)->weight, y = ((const pair *)b)->weight;
    return (x < y) - (x > y);
}

/* The operators on the plan's devices, and on the single device where that is another one. */
static int candidates(pair *found, int most, const doubts *d)
{
    int n = 0;
    for (int32_t i = 0; i < d->p->n_ops; i++) {
        int32_t here = d->plan->op_device[i], alone = d->single->op_device[i];
        count(found, &n, most, d, i, here);
        if (kind_of(d->c, here) != kind_of(d->c, alone))
            count(found, &n, most, d, i, alone);
    }
    qsort(found, (size_t)n, sizeof *found, by_weight);
    return n < CLI_WANTED ? n : CLI_WANTED;
}

/* The times of one pair as they might be, all others as they are. */
static void mix(int64_t *out, const doubts *d, const int64_t *perturbed, const pair *of)
{
    memcpy(out, d->p->op_time_ns, (size_t)d->p->n_ops * (size_t)d->p->n_devices * sizeof *out);
    for (int32_t i = 0; i < d->p->n_ops; i++)
        for (int32_t k = 0; k < d->p->n_devices && !strcmp(d->name[i], of->shown.name); k++)
            if (kind_of(d->c, k) == of->kind)
                out[(int64_t)i * d->p->n_devices + k] = perturbed[(int64_t)i * d->p->n_devices + k];
}

static double squared(double speed_up, double usual)
{
    return speed_up > 0 ? log(speed_up / usual) * log(speed_up / usual) : 0;
}

static void find_wanted(cli_interval *out, const doubts *d, int64_t *perturbed)
{
    pair found[64];
    size_t size = (size_t)d->p->n_ops * (size_t)d->p->n_devices * sizeof *perturbed;
    int n = candidates(found, 64, d);
    int64_t *mixed = util_alloc(1, size);
    moirai_alone alone;
    double all = 0, usual = (double)d->single->makespan_ns / (double)d->plan->makespan_ns;
    for (int i = 0; i < n; i++)
        found[i].weight = 0;
    for (int t = 0; mixed && t < WANTED_TRIES; t++) {
        memcpy(perturbed, d->p->op_time_ns, size);
        if (moirai_cost_perturb(perturbed, d->g, d->c, (uint64_t)t + 1))
            break;
        for (int i = 0; i < n; i++) {
            mix(mixed, d, perturbed, &found[i]);
            found[i].weight += squared(speed_up_of(d->p, d->plan, mixed, NULL, &alone), usual);
        }
        all += squared(speed_up_of(d->p, d->plan, perturbed, NULL, &alone), usual);
    }
    free(mixed);
    qsort(found, (size_t)n, sizeof *found, by_weight);
    for (int i = 0; i < n && found[i].weight > 0; i++) {
        found[i].shown.doubt = found[i].weight < all ? found[i].weight / all : 1;
        out->wanted[out->n_wanted++] = found[i].shown;
    }
}

/* ---- the interval ---- */

static void say_what_is_wanted(cli_interval *out, const moirai_problem *p, const moirai_plan *plan,
                               const moirai_graph *g, const moirai_cluster *c, const double *spread, int64_t *scratch)
{
    const char **name = util_alloc((size_t)p->n_ops, sizeof *name);
    moirai_plan *single = NULL;
    moirai_place_options o;
    moirai_place_options_init(&o);
    if (name && !moirai_cost_classes(name, g, c) && !moirai_place(&single, p, "single", &o) && plan->makespan_ns > 0)
        find_wanted(out, &(doubts){p, plan, single, g, c, spread, name}, scratch);
    moirai_plan_free(single);
    free(name);
}

/* The speed-ups under times as they might be; how many were found. */
static int look_again(double *speed_up, const run_doubts *run, const moirai_graph *g)
{
    const moirai_problem *p = run->p;
    size_t n = (size_t)p->n_ops * (size_t)p->n_devices;
    int64_t *time_ns = util_alloc(n, sizeof *time_ns);
    moirai_alone alone;
    int found = 0;
    for (int t = 0; time_ns && t < TRIES; t++) {
        moirai_problem split = *p;
        memcpy(time_ns, p->op_time_ns, n * sizeof *time_ns);
        bool ok = !moirai_cost_perturb(time_ns, g, run->c, (uint64_t)t + 1);
        sure_measured(time_ns, run, (uint64_t)t + 1);
        ok = ok && !sure_split(&split, run, time_ns, (uint64_t)t + 1);
        speed_up[found] = ok ? speed_up_of(p, run->plan, time_ns, &split, &alone) : 0;
        if (ok && speed_up[found] > 0)
            speed_up[found] *= sure_alone(run, alone.device, (uint64_t)t + 1);
        found += speed_up[found] > 0;
        sure_split_free(&split, p);
    }
    free(time_ns);
    return found;
}

/* Where the network as a whole is faster than its operators, segments may be so as well: at best as much. */
static void keep_what_is_fused(cli_interval *out, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_alone alone;
    if (moirai_alone_find(&alone, p, plan) || alone.speed_up <= 0 || alone.ns >= alone.ops_ns)
        return;
    double best = alone.speed_up * (double)alone.ops_ns / (double)alone.ns;
    out->high = best > out->high ? best : out->high;
}

void cli_how_sure(cli_interval *out, const moirai_problem *p, const moirai_plan *plan, const moirai_graph *g,
                  const moirai_cluster *c)
{
    size_t n = (size_t)p->n_ops * (size_t)p->n_devices;
    double speed_up[TRIES], *spread = util_alloc(n, sizeof *spread);
    int64_t *scratch = util_alloc(n, sizeof *scratch);
    *out = (cli_interval){0};
    bool ok = spread && scratch && n && n <= MOST_TIMES && g->n_ops == p->n_ops && c->n_devices == p->n_devices &&
              !moirai_cost_spread(spread, g, c);
    for (size_t i = 0; ok && i < n; i++)
        out->predicted |= spread[i] > 1;
    if (ok && look_again(speed_up, &(run_doubts){p, plan, c, spread}, g) == TRIES) {
        qsort(speed_up, TRIES, sizeof *speed_up, by_value);
        out->known = true;
        out->low = speed_up[TRIES / 10];
        out->high = speed_up[TRIES - 1 - TRIES / 10];
        keep_what_is_fused(out, p, plan);
        if (out->predicted)
            say_what_is_wanted(out, p, plan, g, c, spread, scratch);
    }
    free(spread);
    free(scratch);
}

void cli_add_wanted(cli_context *cli, const cli_interval *sure)
{
    yyjson_mut_val *list = yyjson_mut_arr(cli->doc);
    for (int i = 0; i < sure->n_wanted; i++) {
        const cli_wanted *w = &sure->wanted[i];
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_str(cli->doc, o, "class", w->name);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "device", w->device);
        yyjson_mut_obj_add_int(cli->doc, o, "operators", w->n_ops);
        yyjson_mut_obj_add_real(cli->doc, o, "predicted_ns", w->ns);
        yyjson_mut_obj_add_real(cli->doc, o, "doubt", w->doubt);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "most_wanted", list);
}

void cli_tell_sure(cli_context *cli, const cli_interval *sure, double speed_up)
{
    if (!sure->known)
        return;
    yyjson_mut_obj_add_real(cli->doc, cli->result, "speed_up_low", sure->low);
    yyjson_mut_obj_add_real(cli->doc, cli->result, "speed_up_high", sure->high);
    cli_add_wanted(cli, sure);
    if (speed_up < 1.005 || sure->low >= 1.005)
        return;
    if (!sure->predicted)
        cli_say(cli,
                "note: whether splitting gains anything hangs on what devices take when they work at the same time, "
                "which nobody measured: 'moirai tune' runs it\n");
    if (!sure->n_wanted)
        return;
    const cli_wanted *w = sure->wanted;
    char then[160] = "";
    if (sure->n_wanted > 1)
        snprintf(then, sizeof then, ", then %s on %s (%.0f %%)", w[1].name, w[1].device, 100 * w[1].doubt);
    cli_say(cli,
            "note: whether splitting gains anything hangs on the error of predicted times: measure first ('moirai "
            "profile'), most of all class %s on %s (%d operators, %.0f %% of the doubt)%s; 'moirai profile "
            "--most-wanted' lists them\n",
            w[0].name, w[0].device, w[0].n_ops, 100 * w[0].doubt, then);
}
