/* moirai cluster: devices and the mesh between them. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <string.h>
#include <yyjson.h>

static int list(cli_context *cli)
{
    yyjson_mut_val *clusters = yyjson_mut_arr(cli->doc), *types = yyjson_mut_arr(cli->doc);
    cli_print(cli, "built-in clusters:\n");
    for (int i = 0; i < moirai_cluster_builtin_count(); i++) {
        cli_print(cli, "  %s\n", moirai_cluster_builtin_name(i));
        yyjson_mut_arr_add_str(cli->doc, clusters, moirai_cluster_builtin_name(i));
    }
    cli_print(cli, "\n%-14s %10s %12s %13s %8s %8s %7s %5s\n", "device type", "memory", "bandwidth", "fp32", "tf32",
              "fp16", "power", "SMs");
    for (int i = 0; i < moirai_device_type_count(); i++) {
        const moirai_device_type *t = moirai_device_type_at(i);
        char fp32[32], tf32[16] = "-", fp16[16] = "-", power[16] = "-";
        if (t->gflops_tf32 > 0)
            snprintf(tf32, sizeof tf32, "%.1f", t->gflops_tf32 / 1000);
        if (t->gflops_fp16 > 0)
            snprintf(fp16, sizeof fp16, "%.1f", t->gflops_fp16 / 1000);
        if (t->watt > 0)
            snprintf(power, sizeof power, "%.0f W", t->watt);
        if (t->gflops_fp32 < 100) /* boards at the edge */
            snprintf(fp32, sizeof fp32, "%.1f Gflop/s", t->gflops_fp32);
        else
            snprintf(fp32, sizeof fp32, "%.1f Tflop/s", t->gflops_fp32 / 1000);
        cli_print(cli, "%-14s %10s %7.0f GB/s %13s %8s %8s %7s %5d\n", t->name, cli_human_bytes(t->memory_bytes).s,
                  t->bandwidth_gb_s, fp32, tf32, fp16, power, t->sm);
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, types);
        yyjson_mut_obj_add_str(cli->doc, o, "name", t->name);
        yyjson_mut_obj_add_int(cli->doc, o, "memory_bytes", t->memory_bytes);
        yyjson_mut_obj_add_real(cli->doc, o, "bandwidth_gb_s", t->bandwidth_gb_s);
        yyjson_mut_obj_add_real(cli->doc, o, "gflops_fp32", t->gflops_fp32);
        yyjson_mut_obj_add_real(cli->doc, o, "gflops_tf32", t->gflops_tf32);
        yyjson_mut_obj_add_real(cli->doc, o, "gflops_fp16", t->gflops_fp16);
        yyjson_mut_obj_add_real(cli->doc, o, "watt", t->watt);
        yyjson_mut_obj_add_int(cli->doc, o, "sm", t->sm);
        yyjson_mut_obj_add_str(cli->doc, o, "source", t->source);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "clusters", clusters);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "device_types", types);
    return 0;
}

static void show_devices(cli_context *cli, const moirai_cluster *c)
{
    yyjson_mut_val *devices = yyjson_mut_arr(cli->doc);
    cli_print(cli, "cluster %s: %d device%s, %d links\n\n%-10s %-14s %10s\n", c->name, c->n_devices,
              c->n_devices == 1 ? "" : "s", c->n_links, "device", "type", "memory");
    for (int32_t k = 0; k < c->n_devices; k++) {
        const moirai_device *v = &c->device[k];
        cli_print(cli, "%-10s %-14s %10s\n", v->name, *v->type ? v->type : "-", cli_human_bytes(v->memory_bytes).s);
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, devices);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "name", v->name);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "type", v->type);
        yyjson_mut_obj_add_int(cli->doc, o, "memory_bytes", v->memory_bytes);
    }
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "name", c->name);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "links", c->n_links);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "devices", devices);
}

static void show_mesh(cli_context *cli, const moirai_cluster *c)
{
    yyjson_mut_val *channels = yyjson_mut_arr(cli->doc);
    cli_print(cli, "\n%-10s", "from \\ to");
    for (int32_t b = 0; b < c->n_devices; b++)
        cli_print(cli, " %12s", c->device[b].name);
    cli_print(cli, "\n");
    for (int32_t a = 0; a < c->n_devices; a++) {
        cli_print(cli, "%-10s", c->device[a].name);
        for (int32_t b = 0; b < c->n_devices; b++) {
            int64_t rate = c->bytes_per_second[a * c->n_devices + b], wait = c->latency_ns[a * c->n_devices + b];
            cli_print(cli, " %12s", a == b ? "-" : cli_human_rate(rate).s);
            if (a == b)
                continue;
            yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, channels);
            yyjson_mut_obj_add_strcpy(cli->doc, o, "from", c->device[a].name);
            yyjson_mut_obj_add_strcpy(cli->doc, o, "to", c->device[b].name);
            yyjson_mut_obj_add_int(cli->doc, o, "bytes_per_second", rate);
            yyjson_mut_obj_add_int(cli->doc, o, "latency_ns", wait);
        }
        cli_print(cli, "\n");
    }
    int64_t most = 0;
    for (int32_t i = 0; i < c->n_devices * c->n_devices; i++)
        most = c->latency_ns[i] > most ? c->latency_ns[i] : most;
    if (c->n_devices > 1)
        cli_print(cli, "\nlatency %s%s\n", most ? "up to " : "", most ? cli_human_ns(most).s : "0");
    yyjson_mut_obj_add_val(cli->doc, cli->result, "channels", channels);
}

static int run(cli_context *cli)
{
    const char *name = cli_arg(cli, 0), *output = cli_text(cli, "output");
    if (!name || !strcmp(name, "list"))
        return list(cli);
    moirai_cluster *c = NULL;
    int rc = cli_writable(cli, output);
    rc = rc ? rc : cli_cluster_of(&c, cli, name);
    rc = rc ? rc : output ? moirai_cluster_write(c, output) : 0;
    if (!rc) {
        show_devices(cli, c);
        show_mesh(cli, c);
    }
    moirai_cluster_free(c);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "CLUSTER",
     .kind = CLI_VALUE_CLUSTER,
     .optional = true,
     .help = "a built-in name, a cluster file, a description in one line, or 'list'"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTION_OUTPUT("write it as a moirai-cluster file"),
    {0},
};
static const cli_example examples[] = {
    {"moirai cluster inter-server", "The paper's inter-server testbed, closed into a full mesh"},
    {"moirai cluster '4x v100 32GB nvlink 600Gbps' -o four.json", "Make a cluster file from one line"},
    {"moirai cluster '2x v100: pcie4 2us; orin: 1Gbps 50us'",
     "Links that differ: groups of devices, each with its own"},
    {0},
};
const cli_command cli_command_cluster = {
    .name = "cluster",
    .summary = "show a cluster and the mesh that its links make",
    .text =
        "Every two devices are joined by the direct link, or else by the path with the largest bottleneck bandwidth.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
