/* moirai-problem files into problems (docs/formats.md). Names, tensors and order go through a graph builder, which
 * finds repeated names and cycles; then the numbers are filled in beside that structure. */
#include "graph/graph_read.h"
#include "problem/problem_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

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
    int rc = moirai_graph_builder_new(&b, "");
    if (rc)
        return rc;
    yyjson_arr_foreach(doc->ops, i, n, object) {
        util_json_at at = {.label = doc->label, .kind = "op", .index = i};
        int32_t op = graph_read_op(b, &at, object);
        if (op < 0) {
            moirai_graph_builder_free(b);
            return op;
        }
    }
    util_json_at top = {.label = doc->label};
    rc = graph_read_settings(b, &top, doc->root);
    if (rc) {
        moirai_graph_builder_free(b);
        return rc;
    }
    return moirai_graph_builder_finish(out, b);
}

/* ---- devices and channels ---- */

static int read_devices(moirai_problem *p, const document *doc)
{
    yyjson_val *object;
    size_t i, n;
    yyjson_arr_foreach(doc->devices, i, n, object) {
        util_json_at at = {.label = doc->label, .kind = "device", .index = i};
        const char *type = "";
        int rc;
        if ((rc = util_json_object(&at, object)) ||
            (rc = util_json_string(&at.name, NULL, &at, object, "name", true)) ||
            (rc = util_json_string(&type, NULL, &at, object, "type", false)) ||
            (rc = util_json_int64(&p->device_memory_bytes[i], &at, object, "memory_bytes", true, 0)) ||
            (rc = util_json_int64(&p->device_launch_ns[i], &at, object, "launch_ns", false, 0)) ||
            (rc = util_json_int64(&p->device_segment_ns[i], &at, object, "segment_ns", false, 0)) ||
            (rc = util_json_int64(&p->device_whole_ns[i], &at, object, "whole_ns", false, 0)))
            return rc;
        for (size_t j = 0; j < i; j++)
            if (!strcmp(p->device_name[j], at.name))
                return moirai_error(MOIRAI_EINPUT, "two devices are named '%.200s'", at.name);
        if (!(p->device_name[i] = problem_keep(p, at.name)) || !(p->device_type[i] = problem_keep(p, type)))
            return MOIRAI_EFAIL;
    }
    return 0;
}

static int read_end(int32_t *out, const moirai_problem *p, const util_json_at *at, yyjson_val *object, const char *key)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, key, true);
    if (rc)
        return rc;
    for (*out = 0; *out < p->n_devices; ++*out)
        if (!strcmp(p->device_name[*out], name))
            return 0;
    return util_json_fail(at, "%s is '%.200s': no such device", key, name);
}

static int read_channel(moirai_problem *p, const document *doc, yyjson_val *object, size_t index)
{
    util_json_at at = {.label = doc->label, .kind = "channel", .index = index};
    char name[256];
    int32_t a, b;
    int rc;
    if ((rc = util_json_object(&at, object)) || (rc = read_end(&a, p, &at, object, "from")) ||
        (rc = read_end(&b, p, &at, object, "to")))
        return rc;
    snprintf(name, sizeof name, "%.100s -> %.100s", p->device_name[a], p->device_name[b]);
    at.name = name;
    if (a == b)
        return util_json_fail(&at, "from a device to itself");
    int64_t *rate = &p->bytes_per_second[a * p->n_devices + b], *latency = &p->latency_ns[a * p->n_devices + b];
    if (*rate)
        return util_json_fail(&at, "is there twice");
    if ((rc = util_json_int64(rate, &at, object, "bytes_per_second", true, 1)))
        return rc;
    return util_json_int64(latency, &at, object, "latency_ns", false, 0);
}

static int read_channels(moirai_problem *p, const document *doc)
{
    yyjson_val *object;
    size_t i, n;
    if (doc->channels) {
        yyjson_arr_foreach(doc->channels, i, n, object) {
            int rc = read_channel(p, doc, object, i);
            if (rc)
                return rc;
        }
    }
    for (int32_t a = 0; a < p->n_devices; a++)
        for (int32_t b = 0; b < p->n_devices; b++)
            if (a != b && !p->bytes_per_second[a * p->n_devices + b])
                return moirai_error(MOIRAI_EINPUT,
                                    "no link between devices: the channel from '%.200s' to '%.200s' is missing",
                                    p->device_name[a], p->device_name[b]);
    return 0;
}

/* ---- numbers of operators ---- */

static int read_times(int64_t *out, const util_json_at *at, yyjson_val *object, int32_t n_devices)
{
    yyjson_val *list = NULL, *item;
    size_t i, n;
    int rc = util_json_array(&list, at, object, "time_ns", true);
    if (rc)
        return rc;
    if (yyjson_arr_size(list) != (size_t)n_devices)
        return util_json_fail(at, "time_ns has %zu entries, there are %d devices", yyjson_arr_size(list), n_devices);
    yyjson_arr_foreach(list, i, n, item) {
        out[i] = MOIRAI_NEVER;
        if (!yyjson_is_null(item) && (rc = util_json_value_int64(&out[i], at, item, "time_ns", 0)))
            return rc;
    }
    return 0;
}

/* `names` numbers the groups in the order in which they are met. */
static int read_group(moirai_problem *p, int32_t op, const util_json_at *at, yyjson_val *object, util_names *names)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, "group", false);
    if (rc || !name)
        return rc;
    const char *kept = problem_keep(p, name);
    int32_t group = kept ? util_names_put(names, kept, p->n_groups) : -1;
    if (group < 0)
        return MOIRAI_EFAIL;
    if (group == p->n_groups)
        p->group_name[p->n_groups++] = kept;
    p->op_group[op] = group;
    return 0;
}

static int read_row(int64_t *out, const util_json_at *at, yyjson_val *row, int32_t from, int32_t k)
{
    yyjson_val *item;
    size_t i, n;
    if (!yyjson_is_arr(row) || yyjson_arr_size(row) != (size_t)k)
        return util_json_fail(at, "row %d of transfer_ns is not an array of %d times", from, k);
    yyjson_arr_foreach(row, i, n, item) {
        int rc = util_json_value_int64(&out[i], at, item, "transfer_ns", 0);
        if (rc)
            return rc;
        if ((int32_t)i == from && out[i])
            return util_json_fail(at, "transfer_ns from device %d to itself is %" PRId64 ", must be 0", from, out[i]);
    }
    return 0;
}

static int read_table(int64_t **out, const util_json_at *at, yyjson_val *object, int32_t k)
{
    yyjson_val *rows = NULL, *row;
    size_t i, n;
    int rc = util_json_array(&rows, at, object, "transfer_ns", false);
    if (rc || !rows)
        return rc;
    if (yyjson_arr_size(rows) != (size_t)k)
        return util_json_fail(at, "transfer_ns has %zu rows, there are %d devices", yyjson_arr_size(rows), k);
    if (!(*out = util_alloc((size_t)k * (size_t)k, sizeof **out)))
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(rows, i, n, row) {
        if ((rc = read_row(*out + i * (size_t)k, at, row, (int32_t)i, k)))
            return rc;
    }
    return 0;
}

/* `table[t]` gets the table of tensor t where the file has one. */
static int read_numbers(moirai_problem *p, const document *doc, util_names *groups, int64_t **table)
{
    yyjson_val *object, *output;
    size_t i, n, j, m;
    int32_t k = p->n_devices, t = 0; /* tensors are numbered in the order of the file */
    yyjson_arr_foreach(doc->ops, i, n, object) {
        util_json_at at = {.label = doc->label, .kind = "op", .name = p->op_name[i]};
        int rc;
        if ((rc = util_json_int64(&p->op_memory_bytes[i], &at, object, "memory_bytes", true, 0)) ||
            (rc = read_times(p->op_time_ns + i * (size_t)k, &at, object, k)) ||
            (rc = read_group(p, (int32_t)i, &at, object, groups)))
            return rc;
        yyjson_arr_foreach(yyjson_obj_get(object, "outputs"), j, m, output) {
            util_json_at tensor = {.label = doc->label, .kind = "output", .name = p->tensor_name[t]};
            if ((rc = read_table(&table[t++], &tensor, output, k)))
                return rc;
        }
    }
    return 0;
}

static int read_ops(moirai_problem *p, const document *doc)
{
    util_names *groups = util_names_new(16);
    int64_t **table = util_alloc((size_t)p->n_tensors, sizeof *table);
    int rc = groups && table ? read_numbers(p, doc, groups, table) : MOIRAI_EFAIL;
    rc = rc ? rc : problem_settle(p, (const int64_t *const *)table);
    for (int32_t t = 0; table && t < p->n_tensors; t++)
        free(table[t]);
    free(table);
    util_names_free(groups);
    return rc;
}

/* ---- the file ---- */

static int read_modes(moirai_problem *p, const document *doc)
{
    util_json_at at = {.label = doc->label};
    const char *flow = NULL, *congestion = NULL, *memory = NULL;
    int rc;
    if ((rc = util_json_string(&flow, NULL, &at, doc->root, "flow", true)) ||
        (rc = util_json_string(&congestion, NULL, &at, doc->root, "congestion", true)) ||
        (rc = util_json_string(&memory, NULL, &at, doc->root, "memory", true)) ||
        (rc = util_json_int64(&p->move_ns_per_mb, &at, doc->root, "move_ns_per_mb", false, 0)) ||
        (rc = moirai_flow_parse(&p->flow, flow)) || (rc = moirai_congestion_parse(&p->congestion, congestion)))
        return rc;
    return moirai_memory_parse(&p->memory, memory);
}

static int open_document(document *doc, const char **name)
{
    util_json_at at = {.label = doc->label};
    int rc;
    if ((rc = util_json_string(name, NULL, &at, doc->root, "name", false)) ||
        (rc = util_json_array(&doc->devices, &at, doc->root, "devices", true)) ||
        (rc = util_json_array(&doc->channels, &at, doc->root, "channels", false)) ||
        (rc = util_json_array(&doc->ops, &at, doc->root, "ops", true)))
        return rc;
    size_t n = yyjson_arr_size(doc->devices);
    if (n < 1 || n > MOIRAI_MAX_DEVICES)
        return util_json_fail(&at, "%zu devices, must be 1 to %d", n, MOIRAI_MAX_DEVICES);
    return 0;
}

static int read_uncosted(moirai_problem *p, const document *doc)
{
    enum { MOST = 64 };
    util_json_at at = {.label = doc->label};
    yyjson_val *list = NULL, *item;
    const char *text[MOST];
    size_t i, n;
    int rc = util_json_array(&list, &at, doc->root, "uncosted", false);
    if (rc || !list)
        return rc;
    if (yyjson_arr_size(list) > MOST)
        return util_json_fail(&at, "uncosted has %zu entries, must be at most %d", yyjson_arr_size(list), MOST);
    yyjson_arr_foreach(list, i, n, item) {
        if ((rc = util_json_value_string(&text[i], NULL, &at, item, "uncosted")))
            return rc;
    }
    return problem_keep_texts(p, &p->uncosted, &p->n_uncosted, (int32_t)n, text);
}

static int read_document(moirai_problem **out, document *doc)
{
    moirai_graph *g = NULL;
    moirai_problem *p = NULL;
    const char *name = "";
    int rc;
    if ((rc = open_document(doc, &name)) || (rc = read_structure(&g, doc)))
        return rc;
    rc = problem_start(&p, g, name, (int32_t)yyjson_arr_size(doc->devices));
    moirai_graph_free(g);
    if (!rc && !(rc = read_modes(p, doc)) && !(rc = read_devices(p, doc)) && !(rc = read_channels(p, doc)) &&
        !(rc = read_ops(p, doc)))
        rc = read_uncosted(p, doc);
    if (rc)
        moirai_problem_free(p);
    else
        *out = p;
    return rc;
}

int moirai_problem_parse(moirai_problem **out, const char *json, size_t length, const char *label)
{
    yyjson_doc *json_doc;
    *out = NULL;
    int rc = util_json_open(&json_doc, json, length, label, "moirai-problem");
    if (!rc) {
        document doc = {.label = label, .root = yyjson_doc_get_root(json_doc)};
        rc = read_document(out, &doc);
        yyjson_doc_free(json_doc);
    }
    return rc ? util_json_label(rc, label) : 0;
}

int moirai_problem_read(moirai_problem **out, const char *path)
{
    char *text;
    size_t length;
    *out = NULL;
    int rc = util_file_read(&text, &length, path);
    if (rc)
        return rc;
    rc = moirai_problem_parse(out, text, length, !strcmp(path, "-") ? "standard input" : path);
    free(text);
    return rc;
}
