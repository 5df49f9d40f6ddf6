/* moirai profile: the times of a network's operators on every device, measured. */
#include "cli/commands.h"
#include "cli/launch.h"
#include "cli/steps.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "util/json.h"
#include "util/util.h"

enum { MOST_OPTIONS = 16, FIXED = 24 };

/* ---- progress ---- */

typedef struct bar {
    bool shown;
} bar;

static void draw(void *data, long done, long total, const char *what)
{
    bar *b = data;
    enum { WIDTH = 30 };
    int full = total > 0 ? (int)(done * WIDTH / total) : 0;
    fprintf(stderr, "\r%-12.12s [%.*s%*s] %ld/%ld", what, full, "##############################", WIDTH - full, "", done, total);
    fflush(stderr);
    b->shown = true;
}

/* ---- the report ---- */

static const char *text_at(yyjson_val *o, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(o, key));
    return text ? text : "";
}

static int64_t count_at(yyjson_val *o, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(o, key));
}

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

static void show_device(moirai_cli *cli, yyjson_val *d, double spread)
{
    moirai_cli_print(cli, "%-14s %12s %9lld %8lld %7lld %9.1f %%\n", text_at(d, "name"), moirai_text_ns(count_at(d, "total_ns")).s,
                     (long long)count_at(d, "measured"), (long long)count_at(d, "cached"), (long long)count_at(d, "failed"),
                     100 * spread);
    if (count_at(d, "failed"))
        moirai_cli_say(cli, "warning: %s: %lld operators are estimated, since some can't run alone there: %s\n",
                       text_at(d, "name"), (long long)count_at(d, "estimated_ops"), text_at(d, "first_failure"));
}

static int show(moirai_cli *cli, const char *path)
{
    char *json;
    size_t length, i, n;
    yyjson_doc *doc;
    yyjson_val *item;
    int rc = moirai_file_read(&json, &length, path);
    if (rc)
        return rc;
    rc = moirai_json_parse(&doc, json, length, path);
    free(json);
    if (rc)
        return rc;
    yyjson_val *root = yyjson_doc_get_root(doc), *pieces = yyjson_obj_get(root, "distinct_operators");
    moirai_cli_print(cli, "%s: %s operators, %s distinct\n\n", text_at(root, "network"),
                     moirai_text_count(count_at(root, "operators")).s, moirai_text_count(count_at(root, "distinct")).s);
    moirai_cli_print(cli, "%-14s %12s %9s %8s %7s %11s\n", "device", "sum", "measured", "cached", "failed", "spread");
    yyjson_arr_foreach(yyjson_obj_get(root, "devices"), i, n, item) show_device(cli, item, usual_spread(pieces, i));
    static const char *const keys[] = {"network", "operators", "distinct", "cache", "devices", "distinct_operators"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        yyjson_mut_obj_add_val(cli->doc, cli->result, keys[k], yyjson_val_mut_copy(cli->doc, yyjson_obj_get(root, keys[k])));
    yyjson_doc_free(doc);
    return 0;
}

/* ---- measuring ---- */

static int add_arguments(const char **args, const moirai_cli *cli, const char *graph_path, const char *report_path)
{
    static const char *const names[][2] = {{"cluster", "--cluster"}, {"rules", "--rules"}, {"cache", "--cache"},
                                           {"warmup", "--warmup"}, {"runs", "--runs"}, {"seconds", "--seconds"}};
    int n = 0;
    args[n++] = "--model";
    args[n++] = moirai_cli_arg(cli, 0);
    args[n++] = "--output";
    args[n++] = graph_path;
    if (report_path) {
        args[n++] = "--report";
        args[n++] = report_path;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (moirai_cli_text(cli, names[i][0])) {
            args[n++] = names[i][1];
            args[n++] = moirai_cli_text(cli, names[i][0]);
        }
    if (moirai_cli_has(cli, "fresh"))
        args[n++] = "--fresh";
    if (!cli->quiet && isatty(STDERR_FILENO))
        args[n++] = "--progress";
    for (int i = 0; i < moirai_cli_uses(cli, "dim"); i++) {
        args[n++] = "--dim";
        args[n++] = moirai_cli_use(cli, "dim", i);
    }
    for (int i = 0; i < moirai_cli_uses(cli, "shape"); i++) {
        args[n++] = "--shape";
        args[n++] = moirai_cli_use(cli, "shape", i);
    }
    return n;
}

static int launch(moirai_cli *cli, const char *graph_path, const char *report_path)
{
    char hosts[4096];
    const char *args[FIXED + 4 * MOST_OPTIONS];
    moirai_cluster *c = NULL;
    bar b = {0};
    if (moirai_cli_uses(cli, "dim") > MOST_OPTIONS || moirai_cli_uses(cli, "shape") > MOST_OPTIONS)
        return moirai_error(MOIRAI_EUSAGE, "profile: more than %d uses of --dim or --shape", MOST_OPTIONS);
    int rc = moirai_cli_cluster(&c, cli);
    if (rc)
        return rc;
    moirai_launch l = {.job = "profile", .args = args, .n_ranks = c->n_devices, .hosts = hosts, .progress = draw, .data = &b};
    rc = moirai_launch_hosts(hosts, sizeof hosts, cli, c, c->n_devices);
    l.n_args = add_arguments(args, cli, graph_path, report_path);
    rc = rc ? rc : moirai_launch_run(&l);
    if (b.shown)
        fprintf(stderr, "\n");
    moirai_cluster_free(c);
    return rc;
}

static int measure(moirai_graph **out, moirai_cli *cli)
{
    char folder[4000], graph_path[4096], report_path[4096];
    int rc = moirai_launch_folder_new(folder, sizeof folder);
    if (rc)
        return rc;
    snprintf(graph_path, sizeof graph_path, "%s/graph.json", folder);
    snprintf(report_path, sizeof report_path, "%s/report.json", folder);
    rc = launch(cli, graph_path, report_path);
    rc = rc ? rc : show(cli, report_path);
    rc = rc ? rc : moirai_graph_read(out, graph_path);
    moirai_launch_folder_remove(folder);
    return rc;
}

/* ---- refining ---- */

static int refine(moirai_cli *cli, moirai_graph *g)
{
    yyjson_mut_val *list = yyjson_mut_arr(cli->doc);
    for (int i = 0; i < moirai_cli_uses(cli, "refine"); i++) {
        const char *path = moirai_cli_use(cli, "refine", i);
        moirai_refine_report r;
        int rc = moirai_graph_refine(g, path, &r);
        if (rc)
            return rc;
        moirai_cli_print(cli, "%s: %d segments with %d operators took %.2f times what was predicted (median; %.2f to %.2f)\n",
                         path, r.n_segments, r.n_ops, r.median, r.least, r.most);
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "file", path);
        yyjson_mut_obj_add_int(cli->doc, o, "segments", r.n_segments);
        yyjson_mut_obj_add_int(cli->doc, o, "operators", r.n_ops);
        yyjson_mut_obj_add_real(cli->doc, o, "least_ratio", r.least);
        yyjson_mut_obj_add_real(cli->doc, o, "median_ratio", r.median);
        yyjson_mut_obj_add_real(cli->doc, o, "most_ratio", r.most);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "refined", list);
    return 0;
}

static bool is_onnx(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && !strcasecmp(path + n - 5, ".onnx");
}

static int run(moirai_cli *cli)
{
    const char *output = moirai_cli_text(cli, "output"), *model = moirai_cli_arg(cli, 0);
    bool refines = moirai_cli_uses(cli, "refine") > 0;
    moirai_graph *g = NULL;
    int rc = moirai_cli_writable(cli, output);
    if (!rc && !is_onnx(model) && !refines)
        rc = moirai_error(MOIRAI_EUSAGE, "profile: '%s' is no ONNX file (.onnx): operators of other networks can't run; "
                                         "--refine takes a measured graph", model);
    if (rc)
        return rc;
    if (moirai_launch_is_rank() && is_onnx(model))
        return output && !refines ? launch(cli, output, NULL)
                                  : moirai_error(MOIRAI_EUSAGE, "profile: under mpirun, --output FILE is needed, without --refine");
    rc = is_onnx(model) ? measure(&g, cli) : moirai_graph_read(&g, model);
    rc = rc || !refines ? rc : refine(cli, g);
    rc = rc || !output ? rc : moirai_graph_write(g, output);
    moirai_graph_free(g);
    return rc;
}

static const moirai_argument arguments[] = {
    {.name = "MODEL", .kind = MOIRAI_VALUE_FILE, .help = "an ONNX file; with --refine also a graph that was measured before"},
    {0},
};
static const moirai_option options[] = {
    MOIRAI_OPTION_CLUSTER,
    {.name = "rules", .argument = "SET|FILE", .standard = "onnxruntime", .kind = MOIRAI_VALUE_RULES,
     .help = "fusion rules; what they fuse is measured as one operator"},
    {.name = "refine", .argument = "FILE", .kind = MOIRAI_VALUE_FILE, .repeated = true,
     .help = "take the segments that 'moirai run' measured back into the times"},
    MOIRAI_OPTION_HOSTS,
    {.name = "warmup", .argument = "N", .kind = MOIRAI_VALUE_COUNT, .least = 1, .most = 1000, .standard = "3",
     .help = "runs of an operator before the first that counts"},
    {.name = "runs", .argument = "N", .kind = MOIRAI_VALUE_COUNT, .least = 5, .most = 1000, .standard = "20",
     .help = "runs of an operator; the median counts"},
    {.name = "seconds", .argument = "S", .kind = MOIRAI_VALUE_REAL, .least = 0.001, .most = 3600, .standard = "0.25",
     .help = "stop the runs of an operator after this time (but not before 5)"},
    {.name = "cache", .argument = "FOLDER", .kind = MOIRAI_VALUE_FOLDER,
     .help = "where measured times are kept (default ~/.cache/moirai)"},
    {.name = "fresh", .kind = MOIRAI_VALUE_FLAG, .help = "measure what is kept there, too"},
    MOIRAI_OPTIONS_NETWORK,
    MOIRAI_OPTION_OUTPUT("write the graph with its times"),
    {0},
};
static const moirai_example examples[] = {
    {"moirai profile model.onnx --cluster cluster.json -o measured.json", "Measure, for 'moirai plan measured.json'"},
    {"moirai profile measured.json --refine timeline.json -o refined.json", "What a run of the plan took, for a better plan"},
    {0},
};
const moirai_command moirai_command_profile = {
    .name = "profile",
    .summary = "measure the times of operators on every device",
    .text = "Every distinct operator (type, attributes, shapes) becomes a model of its own with made-up weights and runs on "
            "every device of the cluster: a network larger than any device can be measured. Ranks of one machine take turns. "
            "Times are kept on disk by content: a second run measures nothing.\n\n"
            "--refine scales the operators of each segment that 'moirai run --timeline' measured so that they sum to its time.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
