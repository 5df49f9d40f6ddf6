/* moirai probe: what the ranks are and how fast they talk, as a cluster file. */
#include "cli/commands.h"
#include "cli/step_ranks.h"
#include "cli/steps.h"

/* ---- the report ---- */

static void show_rank(moirai_cli *cli, yyjson_val *r)
{
    moirai_cli_print(cli, "%-14s %-10s %s, %lld cores, %s; ONNX Runtime %s: %s\n", moirai_report_text(r, "device"),
                     moirai_report_text(r, "host"), moirai_report_text(r, "cpu"),
                     (long long)moirai_report_count(r, "own_threads"),
                     moirai_text_bytes(moirai_report_count(r, "memory_bytes")).s, moirai_report_text(r, "onnxruntime"),
                     moirai_report_text(r, "providers"));
    yyjson_val *gpu;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(r, "gpus"), i, n, gpu)
    {
        moirai_cli_print(cli, "%-14s %-10s gpu %s, %s\n", "", "", moirai_report_text(gpu, "name"),
                         moirai_text_bytes(moirai_report_count(gpu, "memory_bytes")).s);
    }
}

static void show_link(moirai_cli *cli, yyjson_val *l)
{
    yyjson_val *sizes = yyjson_obj_get(l, "sizes");
    int64_t largest = moirai_report_count(yyjson_arr_get_last(sizes), "bytes"),
            messages = moirai_report_count(yyjson_arr_get_first(sizes), "messages");
    moirai_cli_print(
        cli, "%-14s %-14s %12s %14s   %lld messages of each size up to %s\n", moirai_report_text(l, "from"),
        moirai_report_text(l, "to"), moirai_text_rate(moirai_report_count(l, "bytes_per_second")).s,
        moirai_text_ns(moirai_report_count(l, "latency_ns")).s, (long long)messages, moirai_text_bytes(largest).s);
}

static int show(moirai_cli *cli, const moirai_ranks *r)
{
    yyjson_doc *doc;
    yyjson_val *item;
    size_t i, n;
    int rc = moirai_ranks_report(&doc, r);
    if (rc)
        return rc;
    yyjson_val *ranks = yyjson_obj_get(yyjson_doc_get_root(doc), "ranks"),
               *links = yyjson_obj_get(yyjson_doc_get_root(doc), "links");
    yyjson_arr_foreach(ranks, i, n, item)
    {
        show_rank(cli, item);
    }
    moirai_cli_print(cli, "\n%-14s %-14s %12s %14s\n", "from", "to", "bandwidth", "latency");
    yyjson_arr_foreach(links, i, n, item)
    {
        show_link(cli, item);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "ranks", yyjson_val_mut_copy(cli->doc, ranks));
    yyjson_mut_obj_add_val(cli->doc, cli->result, "links", yyjson_val_mut_copy(cli->doc, links));
    yyjson_doc_free(doc);
    return 0;
}

/* ---- the command ---- */

static int count_ranks(int *out, const moirai_cli *cli, const moirai_cluster *c)
{
    const char *hosts = moirai_cli_text(cli, "hosts");
    int n = 1, rank, size = 2;
    for (const char *at = hosts; at && *at; at++)
        n += *at == ',';
    moirai_cli_inside_mpi(&rank, &size);
    *out = moirai_cli_has(cli, "ranks") ? (int)moirai_cli_count(cli, "ranks") : c ? c->n_devices : hosts ? n : size;
    if (c && *out != c->n_devices)
        return moirai_error(MOIRAI_EUSAGE, "probe: %d ranks for the %d devices of '%s'", *out, c->n_devices, c->name);
    if (*out > MOIRAI_MAX_DEVICES)
        return moirai_error(MOIRAI_EUSAGE, "probe: %d ranks: at most %d devices", *out, MOIRAI_MAX_DEVICES);
    return 0;
}

/* Only one of the ranks of a given mpirun speaks. */
static int tell(moirai_cli *cli, const moirai_ranks *r)
{
    const char *output = moirai_cli_text(cli, "output");
    moirai_cluster *made = NULL;
    if (r->inside && r->rank)
        return 0;
    int rc = show(cli, r);
    rc = rc || !output ? rc : moirai_cluster_open(&made, r->result);
    rc = rc || !output ? rc : moirai_cluster_write(made, output);
    moirai_cluster_free(made);
    return rc;
}

static int run(moirai_cli *cli)
{
    moirai_cluster *c = NULL;
    moirai_ranks r = {0};
    const char *from = moirai_cli_text(cli, "cluster");
    int n, rc = moirai_cli_writable(cli, moirai_cli_text(cli, "output"));
    rc = rc || !from ? rc : moirai_cli_cluster_of(&c, cli, from);
    rc = rc ? rc : count_ranks(&n, cli, c);
    rc = rc ? rc : moirai_ranks_open(&r, cli, "probe", c, n);
    if (!rc) {
        moirai_ranks_add(&r, "--cluster", from);
        moirai_ranks_add(&r, "--seconds", moirai_cli_text(cli, "seconds"));
        rc = moirai_ranks_run(&r);
    }
    rc = rc ? rc : tell(cli, &r);
    moirai_ranks_free(&r);
    moirai_cluster_free(c);
    return rc;
}

static const moirai_option options[] = {
    {.name = "cluster",
     .letter = 'c',
     .argument = "FILE",
     .kind = MOIRAI_VALUE_CLUSTER,
     .help = "cluster file whose devices the ranks are; its links are measured anew"},
    {.name = "ranks",
     .letter = 'n',
     .argument = "N",
     .kind = MOIRAI_VALUE_COUNT,
     .least = 1,
     .most = 64,
     .help = "how many ranks (default: one per device or host, else 2)"},
    MOIRAI_OPTION_HOSTS,
    {.name = "seconds",
     .argument = "S",
     .kind = MOIRAI_VALUE_REAL,
     .least = 0.01,
     .most = 1e6,
     .standard = "5",
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
