/* A plan for many requests in a few lines and tables, and the same numbers for --json. */
#include "cli/steps/steps.h"

#include <string.h>
#include <yyjson.h>

static double per_second(int64_t period_ns)
{
    return period_ns > 0 ? 1e9 / (double)period_ns : 0;
}

static double gap_of(const moirai_rate *r)
{
    if (r->period_bound_ns < 0)
        return -1;
    return r->period_ns > 0 ? (double)(r->period_ns - r->period_bound_ns) / (double)r->period_ns : 0;
}

static int32_t busiest(const moirai_rate_figures *f)
{
    int32_t most = 0;
    for (int32_t r = 1; r < f->n_resources; r++)
        most = f->resource_load_ns[r] > f->resource_load_ns[most] ? r : most;
    return most;
}

static double share_of(int64_t part_ns, const moirai_rate *r)
{
    return r->period_ns > 0 ? (double)part_ns / (double)r->period_ns : 0;
}

/* ---- numbers for --json ---- */

static void add_copies(cli_context *cli, const moirai_problem *p, const moirai_rate *r)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "copies");
    for (int32_t c = 0; c < r->n_copies; c++) {
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_real(cli->doc, o, "share", (double)r->copy[c].share_ppm / 1e6);
        if (r->copy[c].slots > 0)
            yyjson_mut_obj_add_int(cli->doc, o, "slots", r->copy[c].slots);
        yyjson_mut_val *ops = yyjson_mut_obj_add_obj(cli->doc, o, "ops");
        for (int32_t k = 0; k < p->n_devices; k++) {
            int32_t n = 0;
            for (int32_t i = 0; i < p->n_ops; i++)
                n += r->copy[c].op_device[i] == k;
            yyjson_mut_obj_add_val(cli->doc, ops, p->device_name[k], yyjson_mut_int(cli->doc, n));
        }
    }
}

static void add_figures(cli_context *cli, const moirai_problem *p, const moirai_plan *plan,
                        const moirai_rate_figures *f)
{
    const moirai_rate *r = plan->rate;
    yyjson_mut_doc *doc = cli->doc;
    yyjson_mut_val *o = cli->result;
    yyjson_mut_obj_add_strcpy(doc, o, "problem", p->name);
    yyjson_mut_obj_add_str(doc, o, "objective", "rate");
    yyjson_mut_obj_add_uint(doc, o, "seed", plan->seed);
    yyjson_mut_obj_add_int(doc, o, "in_flight", r->in_flight);
    yyjson_mut_obj_add_int(doc, o, "period_ns", r->period_ns);
    yyjson_mut_obj_add_bool(doc, o, "period_exact", f->exact);
    yyjson_mut_obj_add_real(doc, o, "requests_per_s", per_second(r->period_ns));
    if (r->period_bound_ns >= 0) {
        yyjson_mut_obj_add_int(doc, o, "period_bound_ns", r->period_bound_ns);
        yyjson_mut_obj_add_real(doc, o, "period_gap", gap_of(r));
    }
    if (r->period_certified_ns >= 0)
        yyjson_mut_obj_add_int(doc, o, "period_certified_ns", r->period_certified_ns);
    yyjson_mut_obj_add_int(doc, o, "latency_ns", r->latency_ns);
    yyjson_mut_obj_add_int(doc, o, "mean_latency_ns", f->mean_latency_ns);
    yyjson_mut_obj_add_int(doc, o, "makespan_ns", plan->makespan_ns);
    if (r->alone_ns >= 0)
        yyjson_mut_obj_add_int(doc, o, "alone_ns", r->alone_ns);
    yyjson_mut_obj_add_int(doc, o, "load_ns", f->load_ns);
    yyjson_mut_obj_add_int(doc, o, "generation_ns", plan->generation_ns);
    add_copies(cli, p, r);
}

static void add_resources(cli_context *cli, const moirai_problem *p, const moirai_rate_figures *f)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "resources");
    for (int32_t i = 0; i < f->n_resources; i++) {
        char name[160];
        if (i >= p->n_devices && f->resource_load_ns[i] == 0)
            continue;
        moirai_rate_resource(name, sizeof name, p, i);
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "name", name);
        yyjson_mut_obj_add_int(cli->doc, o, "load_ns", f->resource_load_ns[i]);
        if (i < p->n_devices) {
            yyjson_mut_obj_add_int(cli->doc, o, "memory_bytes", f->device_memory_bytes[i]);
            yyjson_mut_obj_add_int(cli->doc, o, "peak_bytes", f->device_peak_bytes[i]);
            yyjson_mut_obj_add_int(cli->doc, o, "capacity_bytes", p->device_memory_bytes[i]);
        }
    }
}

/* ---- text ---- */

static void show_limit(cli_context *cli, const moirai_problem *p, const moirai_rate *r, const moirai_rate_figures *f)
{
    char name[160];
    int32_t most = busiest(f);
    double busy = share_of(f->resource_load_ns[most], r);
    moirai_rate_resource(name, sizeof name, p, most);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "busiest", name);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "limited_by", busy >= CLI_NEARLY_BUSY ? "load" : "in_flight");
    if (busy >= CLI_NEARLY_BUSY)
        cli_print(cli, "limited by   %s, which works %.1f %% of the time\n", name, 100 * busy);
    else
        cli_print(cli, "limited by   the requests in flight: the busiest, %s, works %.1f %% of the time\n", name,
                  100 * busy);
}

static void show_copies(cli_context *cli, const moirai_problem *p, const moirai_rate *r)
{
    for (int32_t c = 0; c < r->n_copies && r->n_copies > 1; c++) {
        cli_print(cli, "%-12s %5.1f %% of the requests", c ? "" : "copies", (double)r->copy[c].share_ppm / 1e4);
        if (r->copy[c].slots > 0)
            cli_print(cli, ", %d in flight", r->copy[c].slots);
        bool on[MOIRAI_MAX_DEVICES] = {false};
        for (int32_t i = 0; i < p->n_ops; i++)
            on[r->copy[c].op_device[i]] = true;
        const char *join = ", on ";
        for (int32_t k = 0; k < p->n_devices; k++)
            if (on[k]) {
                cli_print(cli, "%s%s", join, p->device_name[k]);
                join = ", ";
            }
        cli_print(cli, "\n");
    }
}

static void show_devices(cli_context *cli, const moirai_problem *p, const moirai_rate *r, const moirai_rate_figures *f)
{
    cli_print(cli, "\n%-16s %12s %7s %12s %12s %12s\n", "device", "per request", "busy", "memory", "with tensors",
              "of");
    for (int32_t k = 0; k < p->n_devices; k++)
        cli_print(cli, "%-16s %12s %5.1f %% %12s %12s %12s\n", p->device_name[k],
                  cli_human_ns(f->resource_load_ns[k]).s, 100 * share_of(f->resource_load_ns[k], r),
                  cli_human_bytes(f->device_memory_bytes[k]).s, cli_human_bytes(f->device_peak_bytes[k]).s,
                  cli_human_bytes(p->device_memory_bytes[k]).s);
}

static void show_one(cli_context *cli, const moirai_problem *p, const moirai_plan *plan, const moirai_rate_figures *f)
{
    const moirai_rate *r = plan->rate;
    cli_print(cli, "plan         %s for many requests\n", p->name);
    cli_print(cli, "period       %s with %d request%s in flight%s\n", cli_human_ns(r->period_ns).s, r->in_flight,
              r->in_flight == 1 ? "" : "s", f->exact ? "" : ", a mean over many");
    cli_print(cli, "rate         %.6g requests per second\n", per_second(r->period_ns));
    if (r->period_bound_ns >= 0)
        cli_print(cli, "bound        %s, gap %s%s\n", cli_human_ns(r->period_bound_ns).s, cli_human_gap(gap_of(r)).s,
                  cli_has(cli, "latency-limit") ? "; of plans of any latency, --latency-limit apart" : "");
    if (r->period_certified_ns >= 0)
        cli_print(cli, "certified    %s, %s\n", cli_human_ns(r->period_certified_ns).s,
                  r->period_certified_ns >= r->period_bound_ns ? "all of the bound"
                                                               : "no proof of the rest was written");
    cli_print(cli, "latency      at most %s of a request in flight; %s alone\n", cli_human_ns(r->latency_ns).s,
              cli_human_ns(plan->makespan_ns).s);
    if (r->alone_ns > 0 && r->period_ns > 0)
        cli_print(cli, "one by one   %s by the best plan of one request: this one serves %.2f times as many\n",
                  cli_human_ns(r->alone_ns).s, (double)r->alone_ns / (double)r->period_ns);
    show_copies(cli, p, r);
    show_limit(cli, p, r, f);
    cli_print(cli, "made in      %s\n", cli_human_ns(plan->generation_ns).s);
    show_devices(cli, p, r, f);
    add_figures(cli, p, plan, f);
    add_resources(cli, p, f);
}

static void show_curve(cli_context *cli, const cli_many *all)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "curve");
    cli_print(cli, "\n%9s %14s %14s %14s %8s %14s %7s\n", "in flight", "requests/s", "period", "bound", "gap",
              "latency", "copies");
    for (int i = 0; i < all->n; i++) {
        const moirai_rate *r = all->plan[i]->rate;
        cli_print(cli, "%9d %14.6g %14s %14s %8s %14s %7d\n", all->asked[i], per_second(r->period_ns),
                  cli_human_ns(r->period_ns).s, cli_human_ns(r->period_bound_ns).s, cli_human_gap(gap_of(r)).s,
                  cli_human_ns(r->latency_ns).s, r->n_copies);
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_int(cli->doc, o, "in_flight", all->asked[i]);
        yyjson_mut_obj_add_int(cli->doc, o, "used", r->in_flight);
        yyjson_mut_obj_add_int(cli->doc, o, "period_ns", r->period_ns);
        yyjson_mut_obj_add_real(cli->doc, o, "requests_per_s", per_second(r->period_ns));
        yyjson_mut_obj_add_int(cli->doc, o, "period_bound_ns", r->period_bound_ns);
        yyjson_mut_obj_add_int(cli->doc, o, "latency_ns", r->latency_ns);
        yyjson_mut_obj_add_int(cli->doc, o, "copies", r->n_copies);
    }
}

/* The page has the plan of most requests first; with a curve, all of them. */
static int write_page(cli_context *cli, const moirai_problem *p, const cli_many *all)
{
    const char *path = cli_text(cli, "report"), *log = cli_text(cli, "log-json");
    moirai_analysis *a[CLI_MANY_MOST] = {0};
    cli_page_plan page[CLI_MANY_MOST];
    char label[CLI_MANY_MOST][32];
    int rc = 0;
    if (!path)
        return 0;
    for (int i = 0; i < all->n && !rc; i++) {
        const moirai_plan *plan = all->plan[all->n - 1 - i];
        rc = moirai_analysis_new(&a[i], p, plan, NULL);
        snprintf(label[i], sizeof label[i], "%d in flight", all->asked[all->n - 1 - i]);
        page[i] =
            (cli_page_plan){.label = label[i], .analysis = a[i], .log = i == 0 && log && strcmp(log, "-") ? log : NULL};
    }
    rc = rc ? rc : cli_write_page(cli, path, page, all->n);
    for (int i = 0; i < all->n; i++)
        moirai_analysis_free(a[i]);
    return rc;
}

int cli_show_many(cli_context *cli, const moirai_problem *p, const cli_many *all)
{
    show_one(cli, p, all->plan[all->n - 1], &all->figures);
    if (all->n > 1)
        show_curve(cli, all);
    return write_page(cli, p, all);
}
