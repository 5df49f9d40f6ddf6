/* A network by whatever name the user has for it. */
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/util.h"

#define ONNX_FIRST 8 /* the field of the version, which ONNX files begin with */

/* By its name, or by its first byte: our files begin with a brace or space, ONNX with the field of its version.
 * Pipes are not looked into. */
bool cli_is_onnx(const char *path)
{
    size_t n = path ? strlen(path) : 0;
    struct stat s;
    if (!path)
        return false;
    if (n >= 5 && !strcasecmp(path + n - 5, ".onnx"))
        return true;
    if (stat(path, &s) || !S_ISREG(s.st_mode))
        return false;
    FILE *f = fopen(path, "rb");
    int first = f ? fgetc(f) : EOF;
    if (f)
        fclose(f);
    return first == ONNX_FIRST;
}

static void add_inputs(cli_context *cli, yyjson_mut_val *o, const moirai_onnx_report *report)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, o, "inputs");
    yyjson_mut_obj_add_int(cli->doc, o, "n_inputs", report->n_inputs);
    for (int32_t i = 0; i < report->n_inputs && i < MOIRAI_ONNX_INPUTS; i++) {
        yyjson_mut_val *in = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_strcpy(cli->doc, in, "name", report->input[i].name);
        yyjson_mut_obj_add_strcpy(cli->doc, in, "type", report->input[i].type);
        yyjson_mut_obj_add_strcpy(cli->doc, in, "shape", report->input[i].shape);
        yyjson_mut_obj_add_int(cli->doc, in, "bytes", report->input[i].bytes);
    }
}

int cli_onnx_options(moirai_onnx_options *out, const cli_context *cli)
{
    *out = (moirai_onnx_options){.n_dims = cli_uses(cli, "dim"), .n_shapes = cli_uses(cli, "shape")};
    const char **text = calloc((size_t)(out->n_dims + out->n_shapes) + 1, sizeof *text);
    if (!text)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    for (int i = 0; i < out->n_dims; i++)
        text[i] = cli_use(cli, "dim", i);
    for (int i = 0; i < out->n_shapes; i++)
        text[out->n_dims + i] = cli_use(cli, "shape", i);
    out->dims = text;
    out->shapes = text + out->n_dims;
    return 0;
}

moirai_shard_sum cli_shard_sum(const char *how)
{
    return !how || !strcmp(how, "chain") ? MOIRAI_SHARD_CHAIN
           : !strcmp(how, "star")        ? MOIRAI_SHARD_STAR
                                         : MOIRAI_SHARD_TREE;
}

void cli_onnx_options_free(moirai_onnx_options *o)
{
    free((void *)o->dims);
    *o = (moirai_onnx_options){0};
}

/* From a file, or from `data` that came through a pipe. */
static int read_onnx(moirai_graph **out, cli_context *cli, const char *path, const char *data, size_t length)
{
    moirai_onnx_options options;
    moirai_onnx_report report = {0};
    int rc = cli_onnx_options(&options, cli);
    if (rc)
        return rc;
    rc = data ? moirai_onnx_parse(out, data, length, path, &options, &report)
              : moirai_onnx_read(out, path, &options, &report);
    cli_onnx_options_free(&options);
    if (rc)
        return rc;
    cli_say(cli, "read %s: %s nodes, %s folded away, %s parameters\n", path, cli_human_count(report.n_nodes).s,
            cli_human_count(report.n_folded).s, cli_human_count(report.parameter_count).s);
    if (*report.assumed)
        cli_say(cli, "note: assumed sizes of dimensions that the model leaves open: %s; --dim NAME=N changes one\n",
                report.assumed);
    if (report.n_unknown_ops)
        cli_say(cli, "warning: %d operators of unknown type (the first: %s) get a fallback cost\n",
                report.n_unknown_ops, report.first_unknown);
    if (report.n_unknown_sizes)
        cli_say(cli,
                "warning: %d tensors of unknown size (%s%s): taken to be as large as what their operator reads, which "
                "is a guess\n",
                report.n_unknown_sizes, report.unknown_sizes, report.n_unknown_sizes > 3 ? ", ..." : "");
    yyjson_mut_val *o = yyjson_mut_obj(cli->doc);
    yyjson_mut_obj_add_int(cli->doc, o, "nodes", report.n_nodes);
    yyjson_mut_obj_add_int(cli->doc, o, "folded", report.n_folded);
    yyjson_mut_obj_add_int(cli->doc, o, "unused", report.n_unused);
    yyjson_mut_obj_add_int(cli->doc, o, "default_dims", report.n_default_dims);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "open_dims", report.open_dims);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "unnamed_dims", report.unnamed_dims);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "assumed", report.assumed);
    yyjson_mut_obj_add_int(cli->doc, o, "unknown_ops", report.n_unknown_ops);
    yyjson_mut_obj_add_int(cli->doc, o, "unknown_sizes", report.n_unknown_sizes);
    if (report.n_unknown_sizes)
        yyjson_mut_obj_add_strcpy(cli->doc, o, "first_unknown_sizes", report.unknown_sizes);
    add_inputs(cli, o, &report);
    yyjson_mut_obj_add_int(cli->doc, o, "parameters", report.parameter_count);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "onnx", o);
    return 0;
}

static int no_such_network(const char *name)
{
    return moirai_error(MOIRAI_EINPUT, "%s: neither a file nor a network of the zoo: %s", name,
                        cli_hint(name, CLI_VALUE_NETWORK, "'moirai zoo list' shows them").s);
}

/* A file's numbers are what they are: another type would be another network. */
static int check_dtype(moirai_graph **g, const char *path, const char *dtype)
{
    int32_t has = (*g)->element_bytes;
    if (!dtype || has == (strcmp(dtype, "fp32") ? 2 : 4))
        return 0;
    moirai_graph_free(*g);
    *g = NULL;
    return moirai_error(MOIRAI_EUSAGE, "%s: --dtype %s: the file's numbers have %d bytes: convert the model itself",
                        path, dtype, has);
}

/* A pipe can't be looked into twice: all of it is read first. */
static int read_stdin(moirai_graph **out, cli_context *cli)
{
    char *data;
    size_t length;
    int rc = util_file_read(&data, &length, "-");
    if (rc)
        return rc;
    bool onnx = length > 0 && data[0] == ONNX_FIRST;
    rc = onnx ? read_onnx(out, cli, "standard input", data, length)
              : moirai_graph_parse(out, data, length, "standard input");
    free(data);
    return rc;
}

static int check_operators(moirai_graph **g, const char *name)
{
    if ((*g)->n_ops > 0)
        return 0;
    moirai_graph_free(*g);
    *g = NULL;
    return moirai_error(MOIRAI_EINPUT, "%s: the network has no operators: there is nothing to place", name);
}

int cli_network(moirai_graph **out, cli_context *cli, const char *name)
{
    const char *dtype = cli_text(cli, "dtype");
    if (moirai_zoo_find(name))
        return moirai_zoo_graph(out, name, !dtype || !strcmp(dtype, "fp32") ? 4 : 2);
    if (strcmp(name, "-") && access(name, F_OK))
        return no_such_network(name);
    cli_status_set("reading %s", name);
    int rc = !strcmp(name, "-")  ? read_stdin(out, cli)
             : cli_is_onnx(name) ? read_onnx(out, cli, name, NULL, 0)
                                 : moirai_graph_read(out, name);
    rc = rc ? rc : check_operators(out, name);
    return rc ? rc : check_dtype(out, name, dtype);
}
