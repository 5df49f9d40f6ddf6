/* moirai profile --most-wanted: what is worth measuring before a plan is believed.
 *
 * A plan is made from the times that there are, measured or predicted, by HEFT: what counts is which operators it hangs
 * on, not its last percent. Then the error of every class on every type of device is let loose alone
 * (step_sure.c). A network whose times were all measured wants nothing. */
#include <yyjson.h>

#include "cli/measure/profile_wanted.h"

#include "cli/steps/steps.h"

typedef struct work {
    moirai_cluster *c;
    moirai_graph *network, *g;
    moirai_problem *p;
    moirai_plan *plan, *single;
} work;

static void work_free(work *w)
{
    moirai_plan_free(w->single);
    moirai_plan_free(w->plan);
    moirai_problem_free(w->p);
    moirai_graph_free(w->g);
    moirai_graph_free(w->network);
    moirai_cluster_free(w->c);
}

static int make_plan(work *w, cli_context *cli)
{
    moirai_rules *rules = NULL;
    moirai_problem_options how = {.segment_ns = MOIRAI_UNKNOWN};
    moirai_place_options o;
    moirai_place_options_init(&o);
    int rc = cli_cluster(&w->c, cli);
    rc = rc ? rc : cli_network(&w->network, cli, cli_arg(cli, 0));
    rc = rc ? rc : moirai_rules_open(&rules, cli_text(cli, "rules"));
    rc = rc ? rc : moirai_coarsen(&w->g, w->network, rules, NULL);
    moirai_rules_free(rules);
    rc = rc ? rc : moirai_runtime_parse(&how.runtime, w->network->from_onnx ? "ort" : NULL);
    rc = rc ? rc : moirai_problem_new(&w->p, w->g, w->c, &how);
    rc = rc ? rc : moirai_place(&w->plan, w->p, "heft", &o);
    return rc ? rc : moirai_place(&w->single, w->p, "single", &o);
}

static void show(cli_context *cli, const cli_interval *sure, double speed_up)
{
    if (!sure->known) {
        cli_print(cli, "all times were measured: nothing is wanted\n");
        return;
    }
    cli_print(cli, "HEFT's plan is %.2f times as fast as the best single device (%.2f to %.2f)\n", speed_up, sure->low,
              sure->high);
    if (!sure->n_wanted) {
        cli_print(cli, "it varies with no class of operators on a type of device: nothing is wanted\n");
        return;
    }
    cli_print(cli, "\n");
    cli_print(cli, "%-12s %-16s %10s %12s %10s\n", "class", "device", "operators", "predicted", "doubt");
    for (int i = 0; i < sure->n_wanted; i++) {
        const cli_wanted *w = &sure->wanted[i];
        cli_print(cli, "%-12s %-16s %10d %12s %8.0f %%\n", w->name, w->device, w->n_ops, cli_human_ns((int64_t)w->ns).s,
                  100 * w->doubt);
    }
}

int cli_profile_wanted(cli_context *cli)
{
    work w = {0};
    cli_interval sure = {0};
    int rc = make_plan(&w, cli);
    if (!rc) {
        double speed_up = w.plan->makespan_ns > 0 ? (double)w.single->makespan_ns / (double)w.plan->makespan_ns : 1;
        cli_how_sure(&sure, w.p, w.plan, w.g, w.c);
        sure.low = speed_up < sure.low ? speed_up : sure.low;
        sure.high = speed_up > sure.high ? speed_up : sure.high;
        show(cli, &sure, speed_up);
        yyjson_mut_obj_add_real(cli->doc, cli->result, "speed_up", speed_up);
        if (sure.known) {
            yyjson_mut_obj_add_real(cli->doc, cli->result, "speed_up_low", sure.low);
            yyjson_mut_obj_add_real(cli->doc, cli->result, "speed_up_high", sure.high);
        }
        cli_add_wanted(cli, &sure);
    }
    work_free(&w);
    return rc;
}
