/* moirai probe: what the ranks are and how fast they talk, as a cluster file. */
#include "cli/commands/commands.h"
#include "cli/run/step_ranks.h"
#include "cli/steps/steps.h"

#include <string.h>
#include <yyjson.h>

/* ---- the report ---- */

static void show_rank(cli_context *cli, yyjson_val *r)
{
    cli_print(cli, "%-14s %-10s %s, %lld cores, %s; ONNX Runtime %s: %s\n", cli_report_text(r, "device"),
              cli_report_text(r, "host"), cli_report_text(r, "cpu"), (long long)cli_report_count(r, "own_threads"),
              cli_human_bytes(cli_report_count(r, "memory_bytes")).s, cli_report_text(r, "onnxruntime"),
              cli_report_text(r, "providers"));
    yyjson_val *gpu;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(r, "gpus"), i, n, gpu) {
        cli_print(cli, "%-14s %-10s gpu %s, %s\n", "", "", cli_report_text(gpu, "name"),
                  cli_human_bytes(cli_report_count(gpu, "memory_bytes")).s);
    }
}

static void show_link(cli_context *cli, yyjson_val *l)
{
    yyjson_val *sizes = yyjson_obj_get(l, "sizes");
    int64_t largest = cli_report_count(yyjson_arr_get_last(sizes), "bytes"),
            messages = cli_report_count(yyjson_arr_get_first(sizes), "messages");
    cli_print(cli, "%-14s %-14s %12s %14s   %lld messages of each size up to %s\n", cli_report_text(l, "from"),
              cli_report_text(l, "to"), cli_human_rate(cli_report_count(l, "bytes_per_second")).s,
              cli_human_ns(cli_report_count(l, "latency_ns")).s, (long long)messages, cli_human_bytes(largest).s);
}

/* How much the rounds of a link differ. */
static void show_series(cli_context *cli, yyjson_val *l)
{
    yyjson_val *series = yyjson_obj_get(l, "series"), *rate;
    int64_t least = INT64_MAX, most = 0;
    size_t i, n;
    yyjson_arr_foreach(series, i, n, rate) {
        least = yyjson_get_sint(rate) < least ? yyjson_get_sint(rate) : least;
        most = yyjson_get_sint(rate) > most ? yyjson_get_sint(rate) : most;
    }
    if (most > 0)
        cli_print(cli, "%-14s %-14s %zu rounds, %s to %s\n", "", "", yyjson_arr_size(series), cli_human_rate(least).s,
                  cli_human_rate(most).s);
}

static int show(cli_context *cli, const cli_ranks *r)
{
    yyjson_doc *doc;
    yyjson_val *item;
    size_t i, n;
    int rc = cli_ranks_report(&doc, r);
    if (rc)
        return rc;
    yyjson_val *ranks = yyjson_obj_get(yyjson_doc_get_root(doc), "ranks"),
               *links = yyjson_obj_get(yyjson_doc_get_root(doc), "links");
    yyjson_arr_foreach(ranks, i, n, item) {
        show_rank(cli, item);
        bool again = i && !strcmp(cli_report_text(item, "host"), cli_report_text(yyjson_arr_get(ranks, i - 1), "host"));
        if (!again)
            cli_note_load(cli, cli_report_text(item, "host"), yyjson_get_num(yyjson_obj_get(item, "load_average")),
                          cli_report_count(item, "hardware_threads"));
    }
    cli_print(cli, "\n%-14s %-14s %12s %14s\n", "from", "to", "bandwidth", "latency");
    yyjson_arr_foreach(links, i, n, item) {
        show_link(cli, item);
        show_series(cli, item);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "ranks", yyjson_val_mut_copy(cli->doc, ranks));
    yyjson_mut_obj_add_val(cli->doc, cli->result, "links", yyjson_val_mut_copy(cli->doc, links));
    yyjson_doc_free(doc);
    return 0;
}

/* ---- the command ---- */

static int count_ranks(int *out, const cli_context *cli, const moirai_cluster *c)
{
    const char *hosts = cli_text(cli, "hosts");
    int n = 1, rank, size = 2;
    for (const char *at = hosts; at && *at; at++)
        n += *at == ',';
    cli_inside_mpi(&rank, &size);
    *out = cli_has(cli, "ranks") ? (int)cli_count(cli, "ranks") : c ? c->n_devices : hosts ? n : size;
    if (c && *out != c->n_devices)
        return moirai_error(MOIRAI_EUSAGE, "probe: %d ranks for the %d devices of '%s'", *out, c->n_devices, c->name);
    if (*out > MOIRAI_MAX_DEVICES)
        return moirai_error(MOIRAI_EUSAGE, "probe: %d ranks: at most %d devices", *out, MOIRAI_MAX_DEVICES);
    return 0;
}

/* Only one of the ranks of a given mpirun speaks. */
static int tell(cli_context *cli, const cli_ranks *r)
{
    const char *output = cli_text(cli, "output");
    moirai_cluster *made = NULL;
    if (r->inside && r->rank)
        return 0;
    int rc = show(cli, r);
    rc = rc || !output ? rc : moirai_cluster_open(&made, r->result);
    rc = rc || !output ? rc : moirai_cluster_write(made, output);
    moirai_cluster_free(made);
    return rc;
}

static int run(cli_context *cli)
{
    moirai_cluster *c = NULL;
    cli_ranks r = {0};
    const char *from = cli_text(cli, "cluster");
    int n, rc = cli_writable(cli, cli_text(cli, "output"));
    rc = rc || !from ? rc : cli_cluster_of(&c, cli, from);
    rc = rc ? rc : count_ranks(&n, cli, c);
    rc = rc ? rc : cli_ranks_open(&r, cli, "probe", c, n);
    if (!rc) {
        cli_ranks_add(&r, "--cluster", from);
        cli_ranks_add(&r, "--seconds", cli_text(cli, "seconds"));
        cli_ranks_add(&r, "--series", cli_text(cli, "series"));
        rc = cli_ranks_run(&r);
    }
    rc = rc ? rc : tell(cli, &r);
    cli_ranks_free(&r);
    moirai_cluster_free(c);
    return rc;
}

static const cli_option options[] = {
    {.name = "cluster",
     .letter = 'c',
     .argument = "FILE",
     .kind = CLI_VALUE_CLUSTER,
     .help = "cluster file whose devices the ranks are; its links are measured anew"},
    {.name = "ranks",
     .letter = 'n',
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 1,
     .most = 64,
     .help = "how many ranks (default: one per device or host, else 2)"},
    CLI_OPTION_HOSTS,
    {.name = "seconds",
     .argument = "S",
     .kind = CLI_VALUE_REAL,
     .least = 0.01,
     .most = 1e6,
     .standard = "5",
     .help = "time to measure in, shared by all ordered pairs"},
    {.name = "series",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 1,
     .most = 10000,
     .standard = "1",
     .help = "rounds in which the time is spent, all links in each: the cluster gets the means, --json every round"},
    CLI_OPTION_OUTPUT("write the cluster"),
    {0},
};
static const cli_example examples[] = {
    {"moirai probe -n 3 -o cluster.json", "Three ranks on this machine"},
    {"moirai probe --hosts alpha,beta --seconds 100 --series 100 -o cluster.json",
     "Two machines, bandwidths over 100 seconds as in the paper"},
    {"moirai probe --cluster mine.json -o measured.json", "The devices of a file, with measured links"},
    {0},
};
const cli_command cli_command_probe = {
    .name = "probe",
    .summary = "measure what ranks are and how fast they talk",
    .text =
        "Starts one rank per device with mpirun (or runs under a given one: mpirun -n 4 moirai probe -o cluster.json). "
        "Every rank tells its processor, cores, memory, GPUs and the execution providers of its ONNX Runtime. Every "
        "ordered "
        "pair measures messages of 0 bytes to 16 MiB: latency is the time of an empty one, bandwidth that of the "
        "largest.",
    .options = options,
    .examples = examples,
    .run = run,
};
