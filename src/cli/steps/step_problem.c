/* From a network and a cluster to a problem, with the user's wishes. */
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

int cli_problem_read(moirai_problem **out, const char *path)
{
    cli_status_set("reading %s", path);
    int rc = moirai_problem_read(out, path);
    cli_status_set("%s", "");
    return rc;
}

int cli_cluster_of(moirai_cluster **out, const cli_context *cli, const char *name)
{
    int rc = moirai_cluster_open(out, name);
    for (const char *line = rc ? NULL : (*out)->notes; line && *line;) {
        int n = (int)strcspn(line, "\n");
        cli_say(cli, "%s%.*s\n", strncmp(line, "note: ", 6) ? "warning: " : "", n, line);
        line += n + (line[n] != '\0');
    }
    return rc;
}

int cli_cluster(moirai_cluster **out, cli_context *cli)
{
    const char *name = cli_text(cli, "cluster");
    if (!name)
        return moirai_error(MOIRAI_EUSAGE,
                            "%s: --cluster NAME|FILE is missing: 'moirai cluster list' shows the built-in ones",
                            cli->command->name);
    return cli_cluster_of(out, cli, name);
}

/* "PATTERN=DEVICES" is cut at the last '=': names of operators may hold one. */
static int add_wishes(moirai_wish *wish, int *n, char **copy, const cli_context *cli, const char *option,
                      moirai_wish_kind kind)
{
    for (int i = 0; i < cli_uses(cli, option); i++) {
        char *text = strdup(cli_use(cli, option, i));
        if (!text)
            return moirai_error(MOIRAI_EFAIL, "out of memory");
        copy[*n] = text;
        wish[*n] = (moirai_wish){.kind = kind, .pattern = text};
        if (kind != MOIRAI_TOGETHER) {
            char *equals = strrchr(text, '=');
            if (!equals || equals == text || !equals[1]) {
                ++*n;
                return moirai_error(MOIRAI_EUSAGE, "%s: --%s '%s': write PATTERN=DEVICE", cli->command->name, option,
                                    text);
            }
            *equals = '\0';
            wish[*n].devices = equals + 1;
        }
        ++*n;
    }
    return 0;
}

int cli_runtime(moirai_runtime *out, const cli_context *cli, const moirai_graph *g)
{
    const char *typed = cli_text(cli, "runtime");
    return moirai_runtime_parse(out, typed ? typed : g->from_onnx ? "ort" : NULL);
}

void cli_cut_costs(moirai_problem_options *o, const cli_context *cli)
{
    o->segment_ns = cli_has(cli, "segment-us") ? (int64_t)(1e3 * cli_real(cli, "segment-us") + 0.5) : MOIRAI_UNKNOWN;
    o->move_ns_per_mb = (int64_t)(1e3 * cli_real(cli, "move-us") + 0.5);
}

/* What an operator's launch costs, by device where they differ. */
static void tell_launches(cli_context *cli, const moirai_cluster *c, const moirai_cost_report *r,
                          moirai_runtime runtime)
{
    int64_t least = INT64_MAX, most = 0;
    yyjson_mut_val *o = yyjson_mut_obj(cli->doc);
    for (int32_t k = 0; k < c->n_devices; k++) {
        if (!r->launch_ns[k])
            continue;
        least = r->launch_ns[k] < least ? r->launch_ns[k] : least;
        most = r->launch_ns[k] > most ? r->launch_ns[k] : most;
        yyjson_mut_val *key = yyjson_mut_strcpy(cli->doc, c->device[k].name);
        yyjson_mut_obj_add(o, key, yyjson_mut_int(cli->doc, r->launch_ns[k]));
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "launch_ns", o);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "runtime", moirai_runtime_name(runtime));
    if (!most)
        return;
    int64_t mean = 0;
    for (int32_t k = 0; k < c->n_devices; k++)
        mean = r->mean_launch_ns[k] > mean ? r->mean_launch_ns[k] : mean;
    cli_say(cli, "a launch costs %s%s%s: %s%s%s%s\n", cli_human_ns(least).s, most > least ? " to " : "",
            most > least ? cli_human_ns(most).s : "",
            runtime ? moirai_runtime_name(runtime) : "the cost model's own; --runtime eager|ort|graph|tensorrt chooses",
            mean > most ? "; operators that launch several kernels pay more, " : "",
            mean > most ? cli_human_ns(mean).s : "", mean > most ? " on average" : "");
}

/* What a cut costs its receiver beside the message, by device where they differ. */
static void tell_cuts(cli_context *cli, const moirai_problem *p, const moirai_cluster *c)
{
    int64_t least = INT64_MAX, most = 0;
    yyjson_mut_val *o = yyjson_mut_obj(cli->doc);
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t ns = p->device_segment_ns[k];
        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
        yyjson_mut_obj_add(o, yyjson_mut_strcpy(cli->doc, p->device_name[k]), yyjson_mut_int(cli->doc, ns));
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "segment_ns", o);
    if (p->n_devices == 1)
        return;
    if (!most)
        cli_say(cli, "a cut costs its transfer alone%s\n",
                c->cuts_measured             ? ": the cluster's latencies are those of measured cuts"
                : cli_has(cli, "segment-us") ? ""
                                             : ": the runtime is not known; --runtime or --segment-us says more");
    else
        cli_say(cli, "a cut costs %s%s%s beside its transfer%s\n", cli_human_ns(least).s, most > least ? " to " : "",
                most > least ? cli_human_ns(most).s : "",
                cli_has(cli, "segment-us") ? "" : ", the runtime's price of a segment; --segment-us says otherwise");
}

/* Loud: such times decide between devices by where they come from. */
static void tell_scales(cli_context *cli, const moirai_cost_report *r)
{
    if (r->n_mixed)
        cli_say(cli,
                "warning: times of %s operators are NOT ON ONE SCALE: no cost model knows all devices, so each device "
                "has its "
                "own: give every device a known type, or its memory_bandwidth and gflops\n",
                cli_human_count(r->n_mixed).s);
    if (r->n_two_scales)
        cli_say(
            cli,
            "warning: times of %s operators are NOT ON ONE SCALE: measured on some devices, from figures on others: "
            "'moirai profile' measures the rest\n",
            cli_human_count(r->n_two_scales).s);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "mixed_scale_ops", r->n_mixed + r->n_two_scales);
}

void cli_tell_sharing(cli_context *cli, const moirai_cluster *c, int host_cores, const char *consequence)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "shared_devices");
    for (int32_t a = 0; a < c->n_devices; a++)
        for (int32_t b = a + 1; b < c->n_devices; b++) {
            moirai_sharing what = moirai_cluster_sharing(c, a, b, host_cores);
            if (!what)
                continue;
            cli_say(cli, "warning: devices '%s' and '%s' SHARE %s: %s\n", c->device[a].name, c->device[b].name,
                    moirai_sharing_name(what), consequence);
            yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
            yyjson_mut_obj_add_strcpy(cli->doc, o, "a", c->device[a].name);
            yyjson_mut_obj_add_strcpy(cli->doc, o, "b", c->device[b].name);
            yyjson_mut_obj_add_str(cli->doc, o, "what", moirai_sharing_name(what));
        }
}

/* " (If, LSTM)": the types of operators that no class has; "" where they can't be told. */
static const char *unknown_types(char *text, size_t size, const moirai_graph *g, const moirai_cluster *c)
{
    const char **name = calloc((size_t)g->n_ops + 1, sizeof *name);
    size_t used = 0;
    *text = '\0';
    bool told = name && !moirai_cost_classes(name, g, c);
    for (int32_t i = 0; told && i < g->n_ops && used + 60 < size; i++) {
        if (strcmp(name[i], "unknown") || strstr(text, g->op_type[i]))
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%.40s", used ? ", " : " (", g->op_type[i]);
    }
    if (used)
        snprintf(text + used, size - used, ")");
    free(name);
    return text;
}

/* Which model gave the times, and how many operators nothing was known of. */
static void tell_costs(cli_context *cli, const moirai_graph *g, const moirai_cluster *c,
                       const moirai_cost_report *report, moirai_runtime runtime)
{
    char text[256] = "", types[160];
    int used = 0;
    yyjson_mut_val *o = yyjson_mut_obj(cli->doc);
    for (int i = 0; i < moirai_cost_model_count() && i < 8; i++)
        if (report->n_by_model[i]) {
            const char *name = moirai_cost_model_at(i)->name;
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%s %s", used ? ", " : "", name,
                             cli_human_count(report->n_by_model[i]).s);
            yyjson_mut_obj_add_int(cli->doc, o, name, report->n_by_model[i]);
        }
    if (*text)
        cli_say(cli, "times of (operator, device) pairs by cost model: %s\n", text);
    tell_launches(cli, c, report, runtime);
    tell_scales(cli, report);
    for (int32_t k = 0; k < c->n_devices && report->n_by_model[0] < (int64_t)g->n_ops * c->n_devices; k++)
        if (c->device[k].generic)
            cli_say(cli,
                    "note: device '%s': nothing is known of %s%s%s: taken for a generic cpu where no time was "
                    "measured; 'moirai profile' measures\n",
                    c->device[k].name, *c->device[k].type ? "type '" : "it", c->device[k].type,
                    *c->device[k].type ? "'" : "");
    if (report->n_fallback)
        cli_say(cli, "warning: nothing is known of %s operators%s: they cost a launch and their traffic\n",
                cli_human_count(report->n_fallback).s, unknown_types(types, sizeof types, g, c));
    yyjson_mut_obj_add_int(cli->doc, o, "fallback_ops", report->n_fallback);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "times_by_model", o);
}

/* --pin, --forbid and --together as the library takes them. */
typedef struct wishes {
    moirai_wish *wish;
    char **copy;
    int n;
} wishes;

static int wishes_read(wishes *w, const cli_context *cli)
{
    size_t most = (size_t)(cli_uses(cli, "pin") + cli_uses(cli, "forbid") + cli_uses(cli, "together")) + 1;
    w->wish = calloc(most, sizeof *w->wish);
    w->copy = calloc(most, sizeof *w->copy);
    w->n = 0;
    int rc = w->wish && w->copy ? 0 : moirai_error(MOIRAI_EFAIL, "out of memory");
    rc = rc ? rc : add_wishes(w->wish, &w->n, w->copy, cli, "pin", MOIRAI_PIN);
    rc = rc ? rc : add_wishes(w->wish, &w->n, w->copy, cli, "forbid", MOIRAI_FORBID);
    return rc ? rc : add_wishes(w->wish, &w->n, w->copy, cli, "together", MOIRAI_TOGETHER);
}

static void wishes_free(wishes *w)
{
    for (int i = 0; i < w->n; i++)
        free(w->copy[i]);
    free(w->copy);
    free(w->wish);
}

int cli_wishes(const cli_context *cli, moirai_problem *p, const moirai_graph *fused)
{
    wishes w;
    int rc = wishes_read(&w, cli);
    rc = rc ? rc : moirai_problem_wish_fused(p, fused, w.wish, w.n);
    wishes_free(&w);
    return rc;
}

int cli_problem_options(moirai_problem_options *o, const cli_context *cli, const moirai_graph *g)
{
    *o = (moirai_problem_options){.cost_model = cli_text(cli, "cost"), .tf32 = cli_has(cli, "tf32")};
    cli_cut_costs(o, cli);
    int rc = cli_runtime(&o->runtime, cli, g);
    rc = rc ? rc : moirai_flow_parse(&o->flow, cli_text(cli, "flow"));
    rc = rc ? rc : moirai_congestion_parse(&o->congestion, cli_text(cli, "congestion"));
    return rc ? rc : moirai_memory_parse(&o->memory, cli_text(cli, "memory"));
}

int cli_problem(moirai_problem **out, cli_context *cli, const moirai_graph *g, const moirai_cluster *c,
                const char *name)
{
    moirai_cost_report report = {0};
    moirai_problem_options o;
    wishes w;
    int rc = wishes_read(&w, cli);
    rc = rc ? rc : cli_problem_options(&o, cli, g);
    o.name = name;
    o.cost_report = &report;
    o.wishes = w.wish;
    o.n_wishes = w.n;
    rc = rc ? rc : moirai_problem_new(out, g, c, &o);
    if (!rc) {
        tell_costs(cli, g, c, &report, o.runtime);
        tell_cuts(cli, *out, c);
    }
    if (!rc)
        cli_tell_sharing(cli, c, 0,
                         "a plan that lets them work at the same time promises what no run keeps; 'moirai tune' uses "
                         "only devices that are apart, --forbid '*=DEVICE' leaves one out");
    wishes_free(&w);
    return rc;
}

void cli_show_problem(cli_context *cli, const moirai_problem *p)
{
    int64_t memory = 0, capacity = 0; /* of one problem: readers guarantee that the sums fit */
    for (int32_t i = 0; i < p->n_ops; i++)
        memory = memory > INT64_MAX - p->op_memory_bytes[i] ? INT64_MAX : memory + p->op_memory_bytes[i];
    for (int32_t i = 0; i < p->n_weights; i++)
        memory = memory > INT64_MAX - p->weight_bytes[i] ? INT64_MAX : memory + p->weight_bytes[i];
    for (int32_t k = 0; k < p->n_devices; k++)
        capacity = capacity > INT64_MAX - p->device_memory_bytes[k] ? INT64_MAX : capacity + p->device_memory_bytes[k];
    int64_t path = moirai_bound_critical_path(p), load = moirai_bound_load(p);
    cli_print(cli, "problem      %s\n", p->name);
    cli_print(cli, "operators    %s, %s tensors, %s edges\n", cli_human_count(p->n_ops).s,
              cli_human_count(p->n_tensors).s, cli_human_count(p->n_edges).s);
    cli_print(cli, "devices      %d, %s\n", p->n_devices, cli_human_bytes(capacity).s);
    cli_print(cli, "needs        %s for weights and workspace\n", cli_human_bytes(memory).s);
    cli_print(cli, "modes        flow %s, congestion %s, memory %s\n", moirai_flow_name(p->flow),
              moirai_congestion_name(p->congestion), moirai_memory_name(p->memory));
    cli_print(cli, "bounds       critical path %s, load %s\n", cli_human_ns(path).s, cli_human_ns(load).s);
    yyjson_mut_doc *d = cli->doc;
    yyjson_mut_val *o = cli->result;
    yyjson_mut_obj_add_strcpy(d, o, "problem", p->name);
    yyjson_mut_obj_add_int(d, o, "ops", p->n_ops);
    yyjson_mut_obj_add_int(d, o, "tensors", p->n_tensors);
    yyjson_mut_obj_add_int(d, o, "edges", p->n_edges);
    yyjson_mut_obj_add_int(d, o, "n_devices", p->n_devices);
    yyjson_mut_obj_add_int(d, o, "device_memory_bytes", capacity);
    yyjson_mut_obj_add_int(d, o, "op_memory_bytes", memory);
    yyjson_mut_obj_add_str(d, o, "flow", moirai_flow_name(p->flow));
    yyjson_mut_obj_add_str(d, o, "congestion", moirai_congestion_name(p->congestion));
    yyjson_mut_obj_add_str(d, o, "memory", moirai_memory_name(p->memory));
    yyjson_mut_obj_add_int(d, o, "critical_path_bound_ns", path);
    yyjson_mut_obj_add_int(d, o, "load_bound_ns", load);
}
