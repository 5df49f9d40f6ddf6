/* moirai-problem files into problems (docs/formats.md). Names, tensors and order go through a graph builder, which
 * finds repeated names and cycles; then the numbers are filled in beside that structure. */
#include "graph/graph_read.h"
#include "problem/problem_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct document {
    const char *label;
    yyjson_val *root, *devices, *channels, *ops;
} document;

/* ---- structure ---- */

static int read_structure(moirai_graph **out, const document *doc)
{
    moirai_graph_builder *b;
    yyjson_val *object;
    size_t i, n;
    int result = moirai_graph_builder_new(&b, "");
    if (result)
        return result;
    yyjson_arr_foreach(doc->ops, i, n, object)
    {
        util_json_at at = {.label = doc->label, .kind = "op", .index = i};
        int32_t op = graph_read_op(b, &at, object);
        if (op < 0) {
            moirai_graph_builder_free(b);
            return op;
        }
    }
    util_json_at top = {.label = doc->label};
    result = graph_read_settings(b, &top, doc->root);
    if (result) {
        moirai_graph_builder_free(b);
        return result;
    }
    return moirai_graph_builder_finish(out, b);
}

/* ---- devices and channels ---- */

static int read_devices(moirai_problem *p, const document *doc)
{
    yyjson_val *object;
    size_t i, n;
    yyjson_arr_foreach(doc->devices, i, n, object)
    {
        util_json_at at = {.label = doc->label, .kind = "device", .index = i};
        int result;
        if ((result = util_json_object(&at, object)) ||
            (result = util_json_string(&at.name, NULL, &at, object, "name", true)) ||
            (result = util_json_int64(&p->device_memory_bytes[i], &at, object, "memory_bytes", true, 0)) ||
            (result = util_json_int64(&p->device_launch_ns[i], &at, object, "launch_ns", false, 0)))
            return result;
        for (size_t j = 0; j < i; j++)
            if (strcmp(p->device_name[j], at.name) == 0)
                return moirai_error(MOIRAI_EINPUT, "two devices are named '%.200s'", at.name);
        if (!(p->device_name[i] = problem_keep(p, at.name)))
            return MOIRAI_EFAIL;
    }
    return MOIRAI_OK;
}

static int read_end(int32_t *out, const moirai_problem *p, const util_json_at *at, yyjson_val *object,
                    const char *key)
{
    const char *name = NULL;
    int result = util_json_string(&name, NULL, at, object, key, true);
    if (result)
        return result;
    for (*out = 0; *out < p->n_devices; ++*out)
        if (strcmp(p->device_name[*out], name) == 0)
            return MOIRAI_OK;
    return util_json_fail(at, "%s is '%.200s': no such device", key, name);
}

static int read_channel(moirai_problem *p, const document *doc, yyjson_val *object, size_t index)
{
    util_json_at at = {.label = doc->label, .kind = "channel", .index = index};
    char name[256];
    int32_t a, b;
    int result;
    if ((result = util_json_object(&at, object)) || (result = read_end(&a, p, &at, object, "from")) ||
        (result = read_end(&b, p, &at, object, "to")))
        return result;
    snprintf(name, sizeof name, "%.100s -> %.100s", p->device_name[a], p->device_name[b]);
    at.name = name;
    if (a == b)
        return util_json_fail(&at, "from a device to itself");
    int64_t *rate = &p->bytes_per_second[a * p->n_devices + b], *latency = &p->latency_ns[a * p->n_devices + b];
    if (*rate)
        return util_json_fail(&at, "is there twice");
    if ((result = util_json_int64(rate, &at, object, "bytes_per_second", true, 1)))
        return result;
    return util_json_int64(latency, &at, object, "latency_ns", false, 0);
}

static int read_channels(moirai_problem *p, const document *doc)
{
    yyjson_val *object;
    size_t i, n;
    if (doc->channels) {
        yyjson_arr_foreach(doc->channels, i, n, object)
        {
            int result = read_channel(p, doc, object, i);
            if (result)
                return result;
        }
    }
    for (int32_t a = 0; a < p->n_devices; a++)
        for (int32_t b = 0; b < p->n_devices; b++)
            if (a != b && !p->bytes_per_second[a * p->n_devices + b])
                return moirai_error(MOIRAI_EINPUT, "missing channel from device '%.200s' to '%.200s'",
                                    p->device_name[a], p->device_name[b]);
    return MOIRAI_OK;
}

/* ---- numbers of operators ---- */

static int read_times(int64_t *out, const util_json_at *at, yyjson_val *object, int32_t n_devices)
{
    yyjson_val *list = NULL, *item;
    size_t i, n;
    int result = util_json_array(&list, at, object, "time_ns", true);
    if (result)
        return result;
    if (yyjson_arr_size(list) != (size_t)n_devices)
        return util_json_fail(at, "time_ns has %zu entries, there are %d devices", yyjson_arr_size(list), n_devices);
    yyjson_arr_foreach(list, i, n, item)
    {
        out[i] = MOIRAI_NEVER;
        if (!yyjson_is_null(item) && (result = util_json_value_int64(&out[i], at, item, "time_ns", 0)))
            return result;
    }
    return MOIRAI_OK;
}

/* `names` numbers the groups in the order in which they are met. */
static int read_group(moirai_problem *p, int32_t op, const util_json_at *at, yyjson_val *object, util_names *names)
{
    const char *name = NULL;
    int result = util_json_string(&name, NULL, at, object, "group", false);
    if (result || !name)
        return result;
    const char *kept = problem_keep(p, name);
    int32_t group = kept ? util_names_put(names, kept, p->n_groups) : -1;
    if (group < 0)
        return MOIRAI_EFAIL;
    if (group == p->n_groups)
        p->group_name[p->n_groups++] = kept;
    p->op_group[op] = group;
    return MOIRAI_OK;
}

static int read_row(int64_t *out, const util_json_at *at, yyjson_val *row, int32_t from, int32_t k)
{
    yyjson_val *item;
    size_t i, n;
    if (!yyjson_is_arr(row) || yyjson_arr_size(row) != (size_t)k)
        return util_json_fail(at, "row %d of transfer_ns is not an array of %d times", from, k);
    yyjson_arr_foreach(row, i, n, item)
    {
        int result = util_json_value_int64(&out[i], at, item, "transfer_ns", 0);
        if (result)
            return result;
        if ((int32_t)i == from && out[i])
            return util_json_fail(at, "transfer_ns from device %d to itself is %" PRId64 ", must be 0", from, out[i]);
    }
    return MOIRAI_OK;
}

static int read_table(int64_t **out, const util_json_at *at, yyjson_val *object, int32_t k)
{
    yyjson_val *rows = NULL, *row;
    size_t i, n;
    int result = util_json_array(&rows, at, object, "transfer_ns", false);
    if (result || !rows)
        return result;
    if (yyjson_arr_size(rows) != (size_t)k)
        return util_json_fail(at, "transfer_ns has %zu rows, there are %d devices", yyjson_arr_size(rows), k);
    if (!(*out = util_alloc((size_t)k * (size_t)k, sizeof **out)))
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(rows, i, n, row)
    {
        if ((result = read_row(*out + i * (size_t)k, at, row, (int32_t)i, k)))
            return result;
    }
    return MOIRAI_OK;
}

/* `table[t]` gets the table of tensor t where the file has one. */
static int read_numbers(moirai_problem *p, const document *doc, util_names *groups, int64_t **table)
{
    yyjson_val *object, *output;
    size_t i, n, j, m;
    int32_t k = p->n_devices, t = 0; /* tensors are numbered in the order of the file */
    yyjson_arr_foreach(doc->ops, i, n, object)
    {
        util_json_at at = {.label = doc->label, .kind = "op", .name = p->op_name[i]};
        int result;
        if ((result = util_json_int64(&p->op_memory_bytes[i], &at, object, "memory_bytes", true, 0)) ||
            (result = read_times(p->op_time_ns + i * (size_t)k, &at, object, k)) ||
            (result = read_group(p, (int32_t)i, &at, object, groups)))
            return result;
        yyjson_arr_foreach(yyjson_obj_get(object, "outputs"), j, m, output)
        {
            util_json_at tensor = {.label = doc->label, .kind = "output", .name = p->tensor_name[t]};
            if ((result = read_table(&table[t++], &tensor, output, k)))
                return result;
        }
    }
    return MOIRAI_OK;
}

static int read_ops(moirai_problem *p, const document *doc)
{
    util_names *groups = util_names_new(16);
    int64_t **table = util_alloc((size_t)p->n_tensors, sizeof *table);
    int result = groups && table ? read_numbers(p, doc, groups, table) : MOIRAI_EFAIL;
    if (!result)
        result = problem_settle(p, (const int64_t *const *)table);
    for (int32_t t = 0; table && t < p->n_tensors; t++)
        free(table[t]);
    free(table);
    util_names_free(groups);
    return result;
}

/* ---- the file ---- */

static int read_modes(moirai_problem *p, const document *doc)
{
    util_json_at at = {.label = doc->label};
    const char *flow = NULL, *congestion = NULL, *memory = NULL;
    int result;
    if ((result = util_json_string(&flow, NULL, &at, doc->root, "flow", true)) ||
        (result = util_json_string(&congestion, NULL, &at, doc->root, "congestion", true)) ||
        (result = util_json_string(&memory, NULL, &at, doc->root, "memory", true)) ||
        (result = moirai_flow_parse(&p->flow, flow)) || (result = moirai_congestion_parse(&p->congestion, congestion)))
        return result;
    return moirai_memory_parse(&p->memory, memory);
}

static int open_document(document *doc, const char **name)
{
    util_json_at at = {.label = doc->label};
    int result;
    if ((result = util_json_string(name, NULL, &at, doc->root, "name", false)) ||
        (result = util_json_array(&doc->devices, &at, doc->root, "devices", true)) ||
        (result = util_json_array(&doc->channels, &at, doc->root, "channels", false)) ||
        (result = util_json_array(&doc->ops, &at, doc->root, "ops", true)))
        return result;
    size_t n = yyjson_arr_size(doc->devices);
    if (n < 1 || n > MOIRAI_MAX_DEVICES)
        return util_json_fail(&at, "%zu devices, must be 1 to %d", n, MOIRAI_MAX_DEVICES);
    return MOIRAI_OK;
}

static int read_document(moirai_problem **out, document *doc)
{
    moirai_graph *g = NULL;
    moirai_problem *p = NULL;
    const char *name = "";
    int result;
    if ((result = open_document(doc, &name)) || (result = read_structure(&g, doc)))
        return result;
    result = problem_start(&p, g, name, (int32_t)yyjson_arr_size(doc->devices));
    moirai_graph_free(g);
    if (!result && !(result = read_modes(p, doc)) && !(result = read_devices(p, doc)) &&
        !(result = read_channels(p, doc)))
        result = read_ops(p, doc);
    if (result)
        moirai_problem_free(p);
    else
        *out = p;
    return result;
}

int moirai_problem_parse(moirai_problem **out, const char *json, size_t length, const char *label)
{
    yyjson_doc *json_doc;
    *out = NULL;
    int result = util_json_open(&json_doc, json, length, label, "moirai-problem");
    if (!result) {
        document doc = {.label = label, .root = yyjson_doc_get_root(json_doc)};
        result = read_document(out, &doc);
        yyjson_doc_free(json_doc);
    }
    return result ? util_json_label(result, label) : MOIRAI_OK;
}

int moirai_problem_read(moirai_problem **out, const char *path)
{
    char *text;
    size_t length;
    *out = NULL;
    int result = util_file_read(&text, &length, path);
    if (result)
        return result;
    result = moirai_problem_parse(out, text, length, strcmp(path, "-") == 0 ? "standard input" : path);
    free(text);
    return result;
}
