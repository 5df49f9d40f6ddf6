/* moirai profile: the times of a network's operators on every device, measured. */
#include "cli/commands/commands.h"
#include "cli/measure/profile_wanted.h"
#include "cli/run/step_ranks.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

#define LOUD 0.1 /* what a batch may spread before it is measured again (rank_profile_bench.c) */

/* ---- progress ---- */

/* "DONE TOTAL DEVICE" */
static void draw(void *data, const char *text)
{
    (void)data;
    long done, total;
    int at = 0;
    if (sscanf(text, "%ld %ld %n", &done, &total, &at) >= 2 && at && total > 0 && done <= total)
        cli_status_now("measuring on %s: %ld of %ld operators", text + at, done, total);
}

/* ---- the report ---- */

/* The median over the distinct operators of their spreads. */
static double usual_spread(yyjson_val *pieces, size_t device)
{
    double *spread = calloc(yyjson_arr_size(pieces) + 1, sizeof *spread), result = 0;
    size_t i, n, used = 0;
    yyjson_val *piece;
    yyjson_arr_foreach(pieces, i, n, piece) {
        yyjson_val *t = yyjson_arr_get(yyjson_obj_get(piece, "times"), device);
        if (!spread || yyjson_is_null(yyjson_obj_get(t, "median_ns")))
            continue;
        double x = yyjson_get_num(yyjson_obj_get(t, "spread"));
        size_t at = used++;
        for (; at > 0 && spread[at - 1] > x; at--)
            spread[at] = spread[at - 1];
        spread[at] = x;
    }
    if (used)
        result = spread[used / 2];
    free(spread);
    return result;
}

static void show_device(cli_context *cli, yyjson_val *d, double spread)
{
    cli_print(cli, "%-14s %12s %12s %9lld %8lld %7lld %9.1f %%\n", cli_report_text(d, "name"),
              cli_human_ns(cli_report_count(d, "total_ns")).s, cli_human_ns(cli_report_count(d, "cold_total_ns")).s,
              (long long)cli_report_count(d, "measured"), (long long)cli_report_count(d, "cached"),
              (long long)cli_report_count(d, "failed"), 100 * spread);
    if (spread > LOUD)
        cli_say(cli,
                "warning: %s: runs of one operator differ by %.0f %% (interquartile range, in the median): something "
                "else ran; --fresh measures again\n",
                cli_report_text(d, "name"), 100 * spread);
    if (cli_report_count(d, "failed"))
        cli_say(cli, "warning: %s: %lld operators are estimated, since some can't run alone there: %s\n",
                cli_report_text(d, "name"), (long long)cli_report_count(d, "estimated_ops"),
                cli_report_text(d, "first_failure"));
}

static int show(cli_context *cli, const cli_ranks *r)
{
    static const char *const keys[] = {"network", "operators", "distinct", "cache", "devices", "distinct_operators"};
    yyjson_doc *doc;
    yyjson_val *item;
    size_t i, n;
    int rc = cli_ranks_report(&doc, r);
    if (rc)
        return rc;
    yyjson_val *root = yyjson_doc_get_root(doc), *pieces = yyjson_obj_get(root, "distinct_operators");
    cli_print(cli, "%s: %s operators, %s distinct\n\n", cli_report_text(root, "network"),
              cli_human_count(cli_report_count(root, "operators")).s,
              cli_human_count(cli_report_count(root, "distinct")).s);
    cli_print(cli, "%-14s %12s %12s %9s %8s %7s %11s\n", "device", "sum", "cold", "measured", "cached", "failed",
              "spread");
    yyjson_arr_foreach(yyjson_obj_get(root, "devices"), i, n, item) {
        const char *host = cli_report_text(item, "host"),
                   *before = cli_report_text(yyjson_arr_get(yyjson_obj_get(root, "devices"), i ? i - 1 : 0), "host");
        show_device(cli, item, usual_spread(pieces, i));
        if (cli_report_count(item, "measured") && (!i || strcmp(host, before)))
            cli_note_load(cli, host, yyjson_get_num(yyjson_obj_get(item, "load_average")),
                          cli_report_count(item, "hardware_threads"));
    }
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        yyjson_mut_obj_add_val(cli->doc, cli->result, keys[k],
                               yyjson_val_mut_copy(cli->doc, yyjson_obj_get(root, keys[k])));
    yyjson_doc_free(doc);
    return 0;
}

/* ---- measuring ---- */

static void add_arguments(cli_ranks *r, const cli_context *cli)
{
    static const char *const names[][2] = {
        {"cluster", "--cluster"}, {"rules", "--rules"},     {"cache", "--cache"}, {"warmup", "--warmup"},
        {"runs", "--runs"},       {"seconds", "--seconds"}, {"times", "--times"}, {"cache-days", "--cache-days"}};
    cli_ranks_add(r, "--model", cli_arg(cli, 0));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cli_ranks_add(r, names[i][1], cli_text(cli, names[i][0]));
    cli_ranks_add(r, "--fresh", cli_has(cli, "fresh") ? "" : NULL);
    cli_ranks_add(r, "--progress", cli_status_terminal() ? "" : NULL);
    for (int i = 0; i < cli_uses(cli, "dim"); i++)
        cli_ranks_add(r, "--dim", cli_use(cli, "dim", i));
    for (int i = 0; i < cli_uses(cli, "shape"); i++)
        cli_ranks_add(r, "--shape", cli_use(cli, "shape", i));
}

/* *out stays NULL on all but one of the ranks of a given mpirun. */
static int measure(moirai_graph **out, cli_context *cli)
{
    moirai_cluster *c = NULL;
    cli_ranks r = {0};
    int rc = cli_cluster(&c, cli);
    rc = rc ? rc : cli_ranks_open(&r, cli, "profile", c, c->n_devices);
    if (!rc) {
        const moirai_device *device[MOIRAI_MAX_DEVICES];
        for (int32_t k = 0; k < c->n_devices; k++)
            device[k] = &c->device[k];
        cli_note_stand_ins(cli, device, c->n_devices);
        cli_note_threads(cli, device, c->n_devices);
        add_arguments(&r, cli);
        r.progress = draw;
        cli_status_set("starting the ranks");
        rc = cli_ranks_run(&r);
    }
    cli_status_set("%s", "");
    if (!rc && !(r.inside && r.rank)) {
        rc = show(cli, &r);
        rc = rc ? rc : moirai_graph_read(out, r.result);
    }
    cli_ranks_free(&r);
    moirai_cluster_free(c);
    return rc;
}

/* ---- refining ---- */

static void say_refined(cli_context *cli, yyjson_mut_val *list, const char *path, const moirai_refine_report *r)
{
    cli_print(cli, "%s: %d segments with %d operators took %.2f times what was predicted (median; %.2f to %.2f)\n",
              path, r->n_segments, r->n_ops, r->median, r->least, r->most);
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "file", path);
    yyjson_mut_obj_add_int(cli->doc, o, "segments", r->n_segments);
    yyjson_mut_obj_add_int(cli->doc, o, "operators", r->n_ops);
    yyjson_mut_obj_add_int(cli->doc, o, "transfers", r->n_transfers);
    yyjson_mut_obj_add_real(cli->doc, o, "least_ratio", r->least);
    yyjson_mut_obj_add_real(cli->doc, o, "median_ratio", r->median);
    yyjson_mut_obj_add_real(cli->doc, o, "most_ratio", r->most);
}

/* A loop by hand goes on with the last plan; where an earlier run was faster, that has to be said. */
static int tell_fastest(cli_context *cli, const char *const *path, int n)
{
    int64_t least = INT64_MAX, ns = 0;
    int best = 0, rc = 0;
    for (int i = 0; i < n && !rc; i++) {
        rc = cli_timeline_ns(&ns, path[i]);
        if (ns > 0 && ns < least) {
            least = ns;
            best = i;
        }
    }
    if (rc || n < 2 || ns <= 0)
        return rc;
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "fastest_run", path[best]);
    yyjson_mut_obj_add_bool(cli->doc, cli->result, "last_is_slower", ns > least);
    if (ns > least)
        cli_say(
            cli,
            "warning: the last run, %s, took %s, %s took %s: keep the plan of that one, and let 'moirai run NEW MODEL "
            "--best PLAN' replace it only by one that measures faster\n",
            path[n - 1], cli_human_ns(ns).s, path[best], cli_human_ns(least).s);
    return 0;
}

/* With --cluster-out the latencies, too. */
static int refine(cli_context *cli, moirai_graph *g)
{
    const char *output = cli_text(cli, "cluster-out");
    yyjson_mut_val *list = yyjson_mut_arr(cli->doc);
    int n = cli_uses(cli, "refine");
    const char **path = calloc((size_t)n, sizeof *path);
    moirai_refine_report *report = calloc((size_t)n, sizeof *report);
    moirai_cluster *c = NULL;
    int rc = path && report ? 0 : moirai_error(MOIRAI_EFAIL, "out of memory");
    rc = rc || !output ? rc : cli_cluster(&c, cli);
    for (int i = 0; i < n && !rc; i++)
        path[i] = cli_use(cli, "refine", i);
    const moirai_refine_options how = {.as_measured = cli_has(cli, "as-measured")};
    rc = rc ? rc : moirai_refine_with(g, c, path, n, &how, report);
    for (int i = 0; i < n && !rc; i++)
        say_refined(cli, list, path[i], &report[i]);
    if (!rc && c)
        cli_print(cli, "a segment of its own takes %s, a cut %s %s than its transfer shows\n",
                  cli_human_ns(report[0].segment_ns).s, cli_human_ns(llabs(report[0].extra_ns)).s,
                  report[0].extra_ns < 0 ? "less" : "more");
    if (!rc && c && report[0].n_rates)
        cli_print(cli, "bandwidths of %d channels are those of the transfers\n", report[0].n_rates);
    rc = rc ? rc : tell_fastest(cli, path, n);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "refined", list);
    if (!rc && c) {
        yyjson_mut_obj_add_int(cli->doc, cli->result, "segment_ns", report[0].segment_ns);
        yyjson_mut_obj_add_int(cli->doc, cli->result, "extra_ns", report[0].extra_ns);
        yyjson_mut_obj_add_int(cli->doc, cli->result, "refined_bandwidths", report[0].n_rates);
    }
    rc = rc || !output ? rc : moirai_cluster_write(c, output);
    moirai_cluster_free(c);
    free(path);
    free(report);
    return rc;
}

static int run(cli_context *cli)
{
    const char *output = cli_text(cli, "output"), *model = cli_arg(cli, 0);
    bool refines = cli_uses(cli, "refine") > 0;
    moirai_graph *g = NULL;
    int rc = cli_writable(cli, output);
    rc = rc ? rc : cli_writable(cli, cli_text(cli, "cluster-out"));
    if (!rc && cli_has(cli, "cluster-out") && !refines)
        rc = moirai_error(MOIRAI_EUSAGE, "profile: --cluster-out needs --refine");
    if (!rc && cli_has(cli, "most-wanted"))
        return refines || output ? moirai_error(MOIRAI_EUSAGE, "profile: --most-wanted measures and writes nothing")
                                 : cli_profile_wanted(cli);
    if (!rc && !cli_is_onnx(model) && !refines)
        rc = moirai_error(MOIRAI_EUSAGE,
                          "profile: '%s' is no ONNX file: operators of other networks can't run; "
                          "--refine takes a measured graph",
                          model);
    rc = rc ? rc : cli_is_onnx(model) ? measure(&g, cli) : moirai_graph_read(&g, model);
    rc = rc || !refines || !g ? rc : refine(cli, g);
    rc = rc || !output || !g ? rc : moirai_graph_write(g, output);
    moirai_graph_free(g);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "MODEL",
     .kind = CLI_VALUE_NETWORK,
     .help = "an ONNX file; with --refine also a graph that was measured before, with --most-wanted any network"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTION_CLUSTER,
    {.name = "rules",
     .argument = "SET|FILE",
     .standard = "onnxruntime",
     .kind = CLI_VALUE_RULES,
     .help = "fusion rules; what they fuse is measured as one operator"},
    {.name = "refine",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .repeated = true,
     .help = "take the segments that 'moirai run' measured back into the times"},
    {.name = "cluster-out",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "with --refine: write the cluster with the latencies that the transfers of these runs had"},
    {.name = "as-measured",
     .kind = CLI_VALUE_FLAG,
     .help = "with --refine: to predict the plan of the last run, not to make a new one: that run is met as it was"},
    {.name = "most-wanted",
     .kind = CLI_VALUE_FLAG,
     .help = "measure nothing: say which operators on which devices are worth it, since a plan hangs on the error of "
             "their predicted times"},
    CLI_OPTION_HOSTS,
    {.name = "warmup",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 1,
     .most = 1000,
     .standard = "3",
     .help = "runs of an operator before the first that counts"},
    {.name = "runs",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 5,
     .most = 1000,
     .standard = "20",
     .help = "runs of an operator; the median counts"},
    {.name = "seconds",
     .argument = "S",
     .kind = CLI_VALUE_REAL,
     .least = 0.001,
     .most = 3600,
     .standard = "0.25",
     .help = "stop the runs of an operator after this time (but not before 5)"},
    {.name = "cache",
     .argument = "FOLDER",
     .kind = CLI_VALUE_FOLDER,
     .help = "where measured times are kept (default ~/.cache/moirai)"},
    {.name = "fresh", .kind = CLI_VALUE_FLAG, .help = "measure what is kept there, too"},
    {.name = "cache-days",
     .argument = "DAYS",
     .kind = CLI_VALUE_REAL,
     .least = 0,
     .most = 1e5,
     .standard = "30",
     .help = "measure again what is kept there for longer: drivers, firmware and cooling change"},
    {.name = "times",
     .argument = "T",
     .kind = CLI_VALUE_CHOICE,
     .choices = "hot|cold",
     .standard = "hot",
     .help = "times of the graph: an operator run again and again, or after something else had the caches"},
    CLI_OPTIONS_NETWORK,
    CLI_OPTION_OUTPUT("write the graph with its times"),
    {0},
};
static const cli_example examples[] = {
    {"moirai profile model.onnx --cluster cluster.json -o measured.json", "Measure, for 'moirai plan measured.json'"},
    {"moirai profile measured.json --refine timeline.json -o refined.json",
     "What a run of the plan took, for a better plan"},
    {"moirai profile model.onnx --cluster '2x v100, 1x l4, 100Gbps 5us' --most-wanted",
     "What to measure first, on devices that need not be there"},
    {0},
};
const cli_command cli_command_profile = {
    .name = "profile",
    .summary = "measure the times of operators on every device",
    .text = "Every distinct operator (type, attributes, shapes) becomes a model of its own with made-up weights and "
            "runs on "
            "every device of the cluster: a network larger than any device can be measured. Ranks of one machine take "
            "turns. "
            "Times are kept on disk by content: a second run measures nothing.\n\n"
            "--refine scales the operators of each segment that 'moirai run' measured (its --timeline) so that they "
            "sum to its time.\n\n"
            "--most-wanted says what to measure first: HEFT's plan is looked at under times as they might be, and the "
            "classes of operators on types of devices are listed whose errors move its gain most.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
