/* What `moirai run --in-flight` prints. */
#include "cli/measure/run_rate.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

/* On a GPU a sub-model is recorded with the addresses of its tensors, so every lane would need a recording of its own. */
int cli_rate_check(const cli_run *w, const char *what)
{
    for (int k = 0; k < w->n_ranks; k++)
        if (w->device[k] && moirai_ep_gpu(w->device[k]->ep) >= 0)
            return moirai_error(MOIRAI_EUSAGE,
                                "%s: device '%s' is a GPU (ep %s), and several requests in flight are for devices that "
                                "are CPUs",
                                what, w->name[k], w->device[k]->ep);
    return 0;
}

/* ---- what was planned ---- */

int cli_rate_plan_read(cli_rate_plan *out, const char *path)
{
    yyjson_doc *doc;
    *out = (cli_rate_plan){.n_copies = 1};
    if (!strcmp(path, "-"))
        return 0;
    int rc = util_json_read(&doc, path, "moirai-plan");
    if (rc)
        return rc;
    yyjson_val *root = yyjson_doc_get_root(doc), *copies = yyjson_obj_get(root, "copies");
    util_json_at at = {.label = path};
    rc = util_json_int64(&out->in_flight, &at, root, "in_flight", false, 1);
    rc = rc ? rc : util_json_int64(&out->period_ns, &at, root, "period_ns", false, 0);
    out->n_copies = copies ? (int64_t)yyjson_arr_size(copies) : 1;
    yyjson_doc_free(doc);
    return rc;
}

int cli_rate_in_flight(int64_t *out, const cli_context *cli, const cli_rate_plan *plan, int64_t otherwise)
{
    *out = cli_has(cli, "in-flight") ? cli_count(cli, "in-flight") : plan->in_flight ? plan->in_flight : otherwise;
    if (*out > CLI_MOST_IN_FLIGHT)
        return moirai_error(MOIRAI_EUSAGE,
                            "the plan is for %lld requests in flight, at most %d can be: give --in-flight",
                            (long long)*out, CLI_MOST_IN_FLIGHT);
    if (plan->n_copies > 1 && *out < 2)
        cli_say(cli, "note: the plan has %lld copies; one request at a time, the first alone is run\n",
                (long long)plan->n_copies);
    return 0;
}

/* ---- what was measured ---- */

static double real(yyjson_val *object, const char *key)
{
    return yyjson_get_num(yyjson_obj_get(object, key));
}

static int64_t number(yyjson_val *object, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(object, key));
}

static void show_devices(cli_context *cli, yyjson_val *root)
{
    yyjson_val *d;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(root, "devices"), i, n, d) {
        cli_print(cli, "%-12s %-10.10s %5.1f %%, %s a request", i ? "" : "busy",
                  yyjson_get_str(yyjson_obj_get(d, "name")), 100 * real(d, "busy_share"),
                  cli_human_ns(number(d, "busy_ns")).s);
        cli_print(cli, " (planned %s)\n", cli_human_ns(number(d, "planned_ns")).s);
    }
}

static void show_copies(cli_context *cli, yyjson_val *root)
{
    yyjson_val *c;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(root, "copies"), i, n, c) {
        cli_print(cli, "%-12s %zu: %5.1f %% of the requests (planned %.1f %%)\n", i ? "" : "copies", i + 1,
                  100 * (double)number(c, "requests") / (double)UTIL_MAX(number(root, "requests"), 1),
                  100 * real(c, "planned_share"));
    }
}

/* The prediction is for so many requests. */
static void show_planned(cli_context *cli, yyjson_val *root, const cli_rate_plan *plan)
{
    if (plan->in_flight != number(root, "in_flight") || plan->period_ns <= 0)
        return;
    cli_print(cli, "planned      one every %s: measured is %.2f times that\n", cli_human_ns(plan->period_ns).s,
              (double)number(root, "period_ns") / (double)plan->period_ns);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "planned_period_ns", plan->period_ns);
}

static void show(cli_context *cli, yyjson_val *root, const cli_rate_plan *plan)
{
    yyjson_val *latency = yyjson_obj_get(root, "latency");
    int64_t period_ns = number(root, "period_ns");
    int64_t alone_ns = yyjson_mut_get_sint(yyjson_mut_obj_get(cli->result, "median_ns"));
    cli_print(cli, "in flight    %lld requests: %.6g per second, one every %s", (long long)number(root, "in_flight"),
              real(root, "rate_per_s"), cli_human_ns(period_ns).s);
    cli_print(cli, "; %.2f times the rate one by one\n", (double)alone_ns / (double)UTIL_MAX(period_ns, 1));
    show_planned(cli, root, plan);
    cli_print(cli, "latency      %s median", cli_human_ns(number(latency, "median_ns")).s);
    cli_print(cli, ", %s p90", cli_human_ns(number(latency, "p90_ns")).s);
    cli_print(cli, ", %s p99", cli_human_ns(number(latency, "p99_ns")).s);
    cli_print(cli, ", %s most, of %lld requests in flight\n", cli_human_ns(number(latency, "most_ns")).s,
              (long long)number(root, "requests"));
    show_copies(cli, root);
    show_devices(cli, root);
    cli_print(cli, "compared     %lld requests, each equal to the same one alone\n",
              (long long)number(root, "compared"));
}

int cli_show_rate(cli_context *cli, const char *path, const cli_rate_plan *plan)
{
    yyjson_doc *doc;
    int rc = util_json_read(&doc, path, "moirai-rate");
    if (rc)
        return rc;
    yyjson_val *root = yyjson_doc_get_root(doc);
    show(cli, root, plan);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "rate", yyjson_val_mut_copy(cli->doc, root));
    yyjson_doc_free(doc);
    return 0;
}

int cli_rate_join(const cli_context *cli, const char *timeline, const char *path)
{
    yyjson_doc *doc;
    int rc = util_json_read(&doc, timeline, "moirai-timeline");
    if (rc)
        return rc;
    yyjson_mut_doc *out = yyjson_doc_mut_copy(doc, NULL);
    yyjson_mut_val *rate = yyjson_mut_val_mut_copy(out, yyjson_mut_obj_get(cli->result, "rate"));
    yyjson_mut_obj_add_val(out, yyjson_mut_doc_get_root(out), "rate", rate);
    rc = util_json_save(out, path);
    yyjson_mut_doc_free(out);
    yyjson_doc_free(doc);
    return rc;
}
