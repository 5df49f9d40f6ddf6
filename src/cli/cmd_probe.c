/* moirai probe: what the ranks are and how fast they talk, as a cluster file. */
#include "cli/commands.h"
#include "cli/launch.h"
#include "cli/steps.h"

#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/util.h"

/* ---- the report ---- numbers of our own ranks: what is missing reads as nothing */

static const char *text_at(yyjson_val *o, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(o, key));
    return text ? text : "";
}

static int64_t count_at(yyjson_val *o, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(o, key));
}

static void show_rank(moirai_cli *cli, yyjson_val *r)
{
    moirai_cli_print(cli, "%-14s %-10s %s, %lld cores, %s; ONNX Runtime %s: %s\n", text_at(r, "device"), text_at(r, "host"),
                     text_at(r, "cpu"), (long long)count_at(r, "own_threads"), moirai_text_bytes(count_at(r, "memory_bytes")).s,
                     text_at(r, "onnxruntime"), text_at(r, "providers"));
    yyjson_val *gpu;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(r, "gpus"), i, n, gpu) {
        moirai_cli_print(cli, "%-14s %-10s gpu %s, %s\n", "", "", text_at(gpu, "name"),
                         moirai_text_bytes(count_at(gpu, "memory_bytes")).s);
    }
}

static void show_link(moirai_cli *cli, yyjson_val *l)
{
    yyjson_val *sizes = yyjson_obj_get(l, "sizes");
    int64_t largest = count_at(yyjson_arr_get_last(sizes), "bytes"), messages = count_at(yyjson_arr_get_first(sizes), "messages");
    moirai_cli_print(cli, "%-14s %-14s %12s %14s   %lld messages of each size up to %s\n", text_at(l, "from"), text_at(l, "to"),
                     moirai_text_rate(count_at(l, "bytes_per_second")).s, moirai_text_ns(count_at(l, "latency_ns")).s,
                     (long long)messages, moirai_text_bytes(largest).s);
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
    yyjson_val *root = yyjson_doc_get_root(doc), *links = yyjson_obj_get(root, "links");
    yyjson_arr_foreach(yyjson_obj_get(root, "ranks"), i, n, item) show_rank(cli, item);
    moirai_cli_print(cli, "\n%-14s %-14s %12s %14s\n", "from", "to", "bandwidth", "latency");
    yyjson_arr_foreach(links, i, n, item) show_link(cli, item);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "ranks", yyjson_val_mut_copy(cli->doc, yyjson_obj_get(root, "ranks")));
    yyjson_mut_obj_add_val(cli->doc, cli->result, "links", yyjson_val_mut_copy(cli->doc, links));
    yyjson_doc_free(doc);
    return 0;
}

/* ---- the command ---- */

static int count_ranks(int *out, const moirai_cli *cli, const moirai_cluster *c)
{
    const char *hosts = moirai_cli_text(cli, "hosts");
    int n = 1;
    for (const char *at = hosts; at && *at; at++)
        n += *at == ',';
    *out = moirai_cli_has(cli, "ranks") ? (int)moirai_cli_count(cli, "ranks") : c ? c->n_devices : hosts ? n : 2;
    if (c && *out != c->n_devices)
        return moirai_error(MOIRAI_EUSAGE, "probe: %d ranks for the %d devices of '%s'", *out, c->n_devices, c->name);
    return 0;
}

static int launch(moirai_cli *cli, const moirai_cluster *c, const char *cluster_path, const char *report_path)
{
    char hosts[4096];
    const char *args[8] = {"--seconds", moirai_cli_text(cli, "seconds")}, *from = moirai_cli_text(cli, "cluster");
    int n = 2, ranks;
    if (from) {
        args[n++] = "--cluster";
        args[n++] = from;
    }
    if (cluster_path) {
        args[n++] = "--output";
        args[n++] = cluster_path;
    }
    if (report_path) {
        args[n++] = "--report";
        args[n++] = report_path;
    }
    int rc = count_ranks(&ranks, cli, c);
    rc = rc ? rc : moirai_launch_hosts(hosts, sizeof hosts, cli, c, ranks);
    moirai_launch l = {.job = "probe", .args = args, .n_args = n, .n_ranks = ranks, .hosts = hosts};
    return rc ? rc : moirai_launch_run(&l);
}

static int probe(moirai_cli *cli, const moirai_cluster *c)
{
    const char *output = moirai_cli_text(cli, "output");
    char folder[4000], cluster_path[4096], report_path[4096];
    if (moirai_launch_is_rank())
        return output ? launch(cli, c, output, NULL)
                      : moirai_error(MOIRAI_EUSAGE, "probe: under mpirun, --output FILE is needed");
    int rc = moirai_launch_folder_new(folder, sizeof folder);
    if (rc)
        return rc;
    snprintf(cluster_path, sizeof cluster_path, "%s/cluster.json", folder);
    snprintf(report_path, sizeof report_path, "%s/report.json", folder);
    moirai_cluster *made = NULL;
    rc = launch(cli, c, cluster_path, report_path);
    rc = rc ? rc : show(cli, report_path);
    rc = rc || !output ? rc : moirai_cluster_open(&made, cluster_path);
    rc = rc || !output ? rc : moirai_cluster_write(made, output);
    moirai_cluster_free(made);
    moirai_launch_folder_remove(folder);
    return rc;
}

static int run(moirai_cli *cli)
{
    moirai_cluster *c = NULL;
    const char *from = moirai_cli_text(cli, "cluster");
    int rc = moirai_cli_writable(cli, moirai_cli_text(cli, "output"));
    rc = rc || !from ? rc : moirai_cluster_open(&c, from);
    rc = rc ? rc : probe(cli, c);
    moirai_cluster_free(c);
    return rc;
}

static const moirai_option options[] = {
    {.name = "cluster", .letter = 'c', .argument = "FILE", .kind = MOIRAI_VALUE_CLUSTER,
     .help = "cluster file whose devices the ranks are; its links are measured anew"},
    {.name = "ranks", .letter = 'n', .argument = "N", .kind = MOIRAI_VALUE_COUNT, .least = 1, .most = 64,
     .help = "how many ranks (default: one per device or host, else 2)"},
    MOIRAI_OPTION_HOSTS,
    {.name = "seconds", .argument = "S", .kind = MOIRAI_VALUE_REAL, .least = 0.01, .most = 1e6, .standard = "5",
     .help = "time to measure in, shared by all ordered pairs"},
    MOIRAI_OPTION_OUTPUT("write the cluster"),
    {0},
};
static const moirai_example examples[] = {
    {"moirai probe -n 3 -o cluster.json", "Three ranks on this machine"},
    {"moirai probe --hosts alpha,beta --seconds 100 -o cluster.json", "Two machines, measured as long as in the paper"},
    {"moirai probe --cluster mine.json -o measured.json", "The devices of a file, with measured links"},
    {0},
};
const moirai_command moirai_command_probe = {
    .name = "probe",
    .summary = "measure what ranks are and how fast they talk",
    .text = "Starts one rank per device with mpirun (or runs under a given one: mpirun -n 4 moirai probe -o cluster.json). "
            "Every rank tells its processor, cores, memory, GPUs and the execution providers of its ONNX Runtime. Every ordered "
            "pair measures messages of 0 bytes to 16 MiB: latency is the time of an empty one, bandwidth that of the largest.",
    .options = options,
    .examples = examples,
    .run = run,
};
