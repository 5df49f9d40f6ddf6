/* What `moirai explain` says of a plan for many requests: what limits the rate, and what one more device of each kind would give. */
#include <yyjson.h>

#include "cli/steps/steps.h"

/* Whether device k is just like an earlier one: the same memory, and the same time of every operator. */
static bool seen_before(const moirai_problem *p, int32_t k)
{
    for (int32_t j = 0; j < k; j++) {
        bool same = p->device_memory_bytes[j] == p->device_memory_bytes[k];
        for (int32_t i = 0; i < p->n_ops && same; i++)
            same = moirai_op_ns(p, i, j) == moirai_op_ns(p, i, k);
        if (same)
            return true;
    }
    return false;
}

static int show_limit(cli_context *cli, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_rate_figures f;
    char name[160];
    int32_t most = 0;
    int rc = moirai_rate_simulate(&f, p, plan);
    for (int32_t i = 1; i < f.n_resources && !rc; i++)
        most = f.resource_load_ns[i] > f.resource_load_ns[most] ? i : most;
    if (!rc && f.period_ns > 0) {
        double busy = (double)f.resource_load_ns[most] / (double)f.period_ns;
        moirai_rate_resource(name, sizeof name, p, most);
        cli_print(
            cli,
            "\nthe rate of %d request%s in flight, one every %s, is limited by %s%s, which works %.1f %% of the time\n",
            plan->rate->in_flight, plan->rate->in_flight == 1 ? "" : "s", cli_human_ns(f.period_ns).s,
            busy >= CLI_NEARLY_BUSY ? "" : "their number: they wait for each other; the busiest is ", name, 100 * busy);
        yyjson_mut_obj_add_int(cli->doc, cli->result, "period_ns", f.period_ns);
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "busiest", name);
        yyjson_mut_obj_add_str(cli->doc, cli->result, "limited_by", busy >= CLI_NEARLY_BUSY ? "load" : "in_flight");
    }
    moirai_rate_figures_clear(&f);
    return rc;
}

/* A row: the best plan found with one more device like k. Where that fails, the row says why. */
static void show_more(cli_context *cli, yyjson_mut_val *list, const moirai_problem *p, const moirai_plan *plan,
                      int32_t k, const moirai_rate_options *o)
{
    moirai_problem *q = NULL;
    moirai_plan *found = NULL;
    moirai_change change = {MOIRAI_CHANGE_MORE, k, MOIRAI_NONE};
    int rc = moirai_problem_change(&q, p, NULL, &change);
    rc = rc ? rc : moirai_rate_place(&found, q, o);
    yyjson_mut_val *row = yyjson_mut_arr_add_obj(cli->doc, list);
    yyjson_mut_obj_add_strcpy(cli->doc, row, "like", p->device_name[k]);
    if (rc) {
        cli_print(cli, "%-24.24s  %s\n", p->device_name[k], moirai_error_message());
    } else {
        const moirai_rate *r = found->rate;
        double base = (double)plan->rate->period_ns, more = base > 0 ? 100 * (base / (double)r->period_ns - 1) : 0;
        cli_print(cli, "%-24.24s %14s %+9.1f %% %14s\n", p->device_name[k], cli_human_ns(r->period_ns).s,
                  r->period_ns > 0 ? more : 0, cli_human_ns(r->period_bound_ns).s);
        yyjson_mut_obj_add_int(cli->doc, row, "period_ns", r->period_ns);
        yyjson_mut_obj_add_int(cli->doc, row, "period_bound_ns", r->period_bound_ns);
    }
    moirai_plan_free(found);
    moirai_problem_free(q);
}

int cli_show_more(cli_context *cli, const moirai_problem *p, const moirai_plan *plan)
{
    double seconds = cli_real(cli, "what-if");
    int32_t kinds = 0;
    moirai_rate_options o;
    int rc = show_limit(cli, p, plan);
    for (int32_t k = 0; k < p->n_devices; k++)
        kinds += !seen_before(p, k);
    if (rc || seconds <= 0 || p->n_devices == MOIRAI_MAX_DEVICES)
        return rc;
    moirai_rate_options_init(&o);
    o.budget.time_limit_s = seconds / kinds;
    o.budget.seed = (uint64_t)cli_count(cli, "seed");
    o.budget.effort = cli_real(cli, "effort");
    o.budget.threads = (int)cli_count(cli, "threads");
    o.budget.interrupt = cli_interrupt();
    o.in_flight = plan->rate->in_flight;
    o.copies = plan->rate->n_copies == 1 ? 1 : 0;
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "one_more");
    cli_print(cli, "\n%-24s %14s %11s %14s\n", "one more device like", "period", "rate", "proven bound");
    for (int32_t k = 0; k < p->n_devices && !moirai_interrupt_raised(cli_interrupt()); k++)
        if (!seen_before(p, k))
            show_more(cli, list, p, plan, k, &o);
    return 0;
}
