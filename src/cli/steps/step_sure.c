/* How sure a plan's speed-up is.
 *
 * Predicted times have errors, and the judge of the cost models knows how large (docs/cost-models.md). So the plan and the
 * best single device are looked at again under times as they might be: the same devices and the same order, 31 times with
 * fixed seeds. The middle 80 % of the speed-ups are the interval. What is most worth measuring is the class of operators
 * to which most of the plan's predicted time belongs, weighted by how far it may be off.
 *
 * O(31 x (operators x devices + a simulation)). */
#include "cli/steps/steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "util/util.h"

#define TRIES 31
#define MOST_TIMES 2000000 /* operators x devices beyond which it would take seconds */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The speed-up with these times; 0 where there is none. */
static double speed_up_of(const moirai_problem *p, const moirai_plan *plan, int64_t *time_ns)
{
    moirai_problem other = *p;
    moirai_plan *again = NULL, *single = NULL;
    moirai_place_options o;
    moirai_place_options_init(&o);
    other.op_time_ns = time_ns;
    double found = 0;
    if (!moirai_plan_tighten(&again, &other, plan) && !moirai_place(&single, &other, "single", &o) &&
        again->makespan_ns > 0)
        found = (double)single->makespan_ns / (double)again->makespan_ns;
    moirai_plan_free(again);
    moirai_plan_free(single);
    return found;
}

/* The class with the largest sum of time x error. */
static void find_most_wanted(cli_interval *out, const moirai_problem *p, const moirai_plan *plan, const moirai_graph *g,
                             const double *spread)
{
    struct {
        const char *name;
        double sum;
    } found[64] = {{0}};
    int n = 0, best = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int64_t pair = (int64_t)i * p->n_devices + plan->op_device[i];
        const char *name = moirai_cost_class(g->op_type[i]);
        int at = 0;
        while (at < n && strcmp(found[at].name, name))
            at++;
        if (at == n && n < 64)
            found[n++].name = name;
        if (at < n)
            found[at].sum += (double)p->op_time_ns[pair] * log(spread[pair]);
    }
    for (int i = 1; i < n; i++)
        best = found[i].sum > found[best].sum ? i : best;
    if (n && found[best].sum > 0)
        snprintf(out->most_wanted, sizeof out->most_wanted, "%s", found[best].name);
}

void cli_how_sure(cli_interval *out, const moirai_problem *p, const moirai_plan *plan, const moirai_graph *g,
                  const moirai_cluster *c)
{
    size_t n = (size_t)p->n_ops * (size_t)p->n_devices;
    double speed_up[TRIES], *spread = util_alloc(n, sizeof *spread);
    int64_t *time_ns = util_alloc(n, sizeof *time_ns);
    int found = 0;
    *out = (cli_interval){0};
    bool ok = spread && time_ns && n && n <= MOST_TIMES && g->n_ops == p->n_ops && c->n_devices == p->n_devices &&
              !moirai_cost_spread(spread, g, c),
         predicted = false;
    for (size_t i = 0; ok && i < n; i++)
        predicted |= spread[i] > 1;
    for (int t = 0; ok && predicted && t < TRIES; t++) {
        memcpy(time_ns, p->op_time_ns, n * sizeof *time_ns);
        speed_up[found] = moirai_cost_perturb(time_ns, g, c, (uint64_t)t + 1) ? 0 : speed_up_of(p, plan, time_ns);
        found += speed_up[found] > 0;
    }
    if (found == TRIES) {
        qsort(speed_up, TRIES, sizeof *speed_up, by_value);
        out->known = true;
        out->low = speed_up[TRIES / 10];
        out->high = speed_up[TRIES - 1 - TRIES / 10];
        find_most_wanted(out, p, plan, g, spread);
    }
    free(spread);
    free(time_ns);
}

void cli_tell_sure(cli_context *cli, const cli_interval *sure, double speed_up)
{
    if (!sure->known)
        return;
    yyjson_mut_obj_add_real(cli->doc, cli->result, "speed_up_low", sure->low);
    yyjson_mut_obj_add_real(cli->doc, cli->result, "speed_up_high", sure->high);
    if (*sure->most_wanted)
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "most_wanted", sure->most_wanted);
    if (speed_up >= 1.005 && sure->low < 1.005)
        cli_say(
            cli,
            "note: whether splitting gains anything hangs on the error of predicted times: measure the network first "
            "('moirai profile'), most of all its operators of class %s\n",
            *sure->most_wanted ? sure->most_wanted : "unknown");
}
