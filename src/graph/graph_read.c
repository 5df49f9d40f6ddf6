/* moirai-graph files into graphs (docs/formats.md). */
#include "graph/graph_read.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

/* The strings of a list, each given to `add`. */
static int read_strings(moirai_graph_builder *b, int32_t op, const util_json_at *at, yyjson_val *list, const char *what,
                        int (*add)(moirai_graph_builder *b, int32_t op, const char *name))
{
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach(list, i, n, item) {
        const char *name;
        int rc;
        if ((rc = util_json_value_string(&name, NULL, at, item, what)) || (rc = add(b, op, name)))
            return rc;
    }
    return 0;
}

static int read_outputs(moirai_graph_builder *b, int32_t op, const util_json_at *at, yyjson_val *list)
{
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach(list, i, n, item) {
        util_json_at tensor = {.label = at->label, .kind = "output", .index = i};
        int64_t bytes = 0;
        int rc;
        if (!yyjson_is_obj(item))
            return util_json_fail(at, "output %zu is not an object with name and bytes", i);
        if ((rc = util_json_object(&tensor, item)) ||
            (rc = util_json_string(&tensor.name, NULL, &tensor, item, "name", true)) ||
            (rc = util_json_int64(&bytes, &tensor, item, "bytes", true, 0)) ||
            (rc = moirai_graph_builder_output(b, op, tensor.name, bytes)))
            return rc;
    }
    return 0;
}

static int read_weights(moirai_graph_builder *b, int32_t op, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *list = NULL, *item;
    size_t i, n;
    int rc = util_json_array(&list, at, object, "shared_weights", false);
    if (rc || !list)
        return rc;
    yyjson_arr_foreach(list, i, n, item) {
        util_json_at weight = {.label = at->label, .kind = "shared weight", .index = i};
        int64_t bytes = 0;
        if ((rc = util_json_object(&weight, item)) ||
            (rc = util_json_string(&weight.name, NULL, &weight, item, "name", true)) ||
            (rc = util_json_int64(&bytes, &weight, item, "bytes", true, 0)) ||
            (rc = moirai_graph_builder_shared_weight(b, op, weight.name, bytes)))
            return rc;
    }
    return 0;
}

static int read_setting(moirai_graph_builder *b, const util_json_at *at, yyjson_val *object, const char *key,
                        int (*add)(moirai_graph_builder *b, const char *setting))
{
    yyjson_val *list = NULL, *item;
    size_t i, n;
    int rc = util_json_array(&list, at, object, key, false);
    if (rc || !list)
        return rc;
    yyjson_arr_foreach(list, i, n, item) {
        const char *text;
        if ((rc = util_json_value_string(&text, NULL, at, item, key)) || (rc = add(b, text)))
            return rc;
    }
    return 0;
}

int graph_read_settings(moirai_graph_builder *b, const util_json_at *at, yyjson_val *root)
{
    yyjson_val *object = yyjson_obj_get(root, "onnx");
    if (!object || yyjson_is_null(object))
        return 0;
    if (!yyjson_is_obj(object))
        return util_json_fail(at, "onnx is not an object with dims and shapes");
    int rc = read_setting(b, at, object, "dims", moirai_graph_builder_dim);
    rc = rc ? rc : read_setting(b, at, object, "shapes", moirai_graph_builder_shape);
    return rc ? rc : read_setting(b, at, object, "assumed", moirai_graph_builder_assumed);
}

static int read_members(moirai_graph_builder *b, int32_t op, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *list = NULL;
    int rc = util_json_array(&list, at, object, "members", false);
    if (rc || !list)
        return rc;
    return read_strings(b, op, at, list, "an item of members", moirai_graph_builder_member);
}

int32_t graph_read_op(moirai_graph_builder *b, util_json_at *at, yyjson_val *object)
{
    yyjson_val *inputs = NULL, *outputs = NULL;
    const char *type = "";
    int rc;
    if ((rc = util_json_object(at, object)) || (rc = util_json_string(&at->name, NULL, at, object, "name", true)) ||
        (rc = util_json_string(&type, NULL, at, object, "type", false)))
        return rc;
    int32_t op = moirai_graph_builder_op(b, at->name, type);
    if (op < 0)
        return op;
    if ((rc = util_json_array(&inputs, at, object, "inputs", true)) ||
        (rc = util_json_array(&outputs, at, object, "outputs", true)) ||
        (rc = read_strings(b, op, at, inputs, "an item of inputs", moirai_graph_builder_input)) ||
        (rc = read_outputs(b, op, at, outputs)) || (rc = read_weights(b, op, at, object)) ||
        (rc = read_members(b, op, at, object)))
        return rc;
    return op;
}

static int read_costs(moirai_graph_builder *b, int32_t op, const util_json_at *at, yyjson_val *object)
{
    int64_t weight = 0, workspace = 0, flops = MOIRAI_UNKNOWN, traffic = MOIRAI_UNKNOWN;
    int rc;
    if ((rc = util_json_int64(&weight, at, object, "weight_bytes", false, 0)) ||
        (rc = util_json_int64(&workspace, at, object, "workspace_bytes", false, 0)) ||
        (rc = util_json_int64(&flops, at, object, "flops", false, 0)) ||
        (rc = util_json_int64(&traffic, at, object, "traffic_bytes", false, 0)))
        return rc;
    return moirai_graph_builder_cost(b, op, weight, workspace, flops, traffic);
}

static int read_times(moirai_graph_builder *b, int32_t op, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *table = yyjson_obj_get(object, "time_ns"), *key, *value;
    size_t i, n;
    if (!table || yyjson_is_null(table))
        return 0;
    if (!yyjson_is_obj(table))
        return util_json_fail(at, "time_ns is not an object of device names or types");
    yyjson_obj_foreach(table, i, n, key, value) {
        const char *device;
        int64_t ns = 0;
        int rc;
        if (yyjson_is_null(value))
            continue;
        if ((rc = util_json_value_string(&device, NULL, at, key, "a key of time_ns")) ||
            (rc = util_json_value_int64(&ns, at, value, "time_ns", 0)) ||
            (rc = moirai_graph_builder_time(b, op, device, ns)))
            return rc;
    }
    return 0;
}

static int read_op(moirai_graph_builder *b, const char *label, yyjson_val *object, size_t index)
{
    util_json_at at = {.label = label, .kind = "op", .index = index};
    int32_t op = graph_read_op(b, &at, object);
    int rc;
    if (op < 0)
        return op;
    rc = read_costs(b, op, &at, object);
    return rc ? rc : read_times(b, op, &at, object);
}

static int read_dtype(moirai_graph_builder *b, const util_json_at *at, yyjson_val *root)
{
    const char *dtype = "fp32";
    int rc = util_json_string(&dtype, NULL, at, root, "dtype", false);
    if (rc)
        return rc;
    bool half = !strcmp(dtype, "fp16") || !strcmp(dtype, "bf16"); /* one size, and one rate on tensor cores */
    bool twice = !strcmp(dtype, "fp64");
    if (strcmp(dtype, "fp32") && !half && !twice)
        return util_json_fail(at, "dtype is \"%.60s\", expected \"fp32\", \"fp16\", \"bf16\" or \"fp64\"", dtype);
    moirai_graph_builder_element_bytes(b, half ? 2 : twice ? 8 : 4);
    return 0;
}

/* Origins that nobody knows are as good as none. */
static int read_origin(moirai_graph_builder *b, const util_json_at *at, yyjson_val *root)
{
    const char *origin = "";
    int rc = util_json_string(&origin, NULL, at, root, "origin", false);
    moirai_graph_builder_from_onnx(b, !rc && !strcmp(origin, "onnx"));
    return rc;
}

/* Of devices that no operator has a time for as well: they may have been run as a whole alone. */
static int read_whole(moirai_graph *g, const util_json_at *at, yyjson_val *root)
{
    yyjson_val *table = yyjson_obj_get(root, "whole_ns"), *key, *value;
    size_t i, n;
    if (!table || yyjson_is_null(table))
        return 0;
    if (!yyjson_is_obj(table))
        return util_json_fail(at, "whole_ns is not an object of device names or types");
    yyjson_obj_foreach(table, i, n, key, value) {
        const char *device;
        int64_t ns = 0;
        int rc;
        if ((rc = util_json_value_string(&device, NULL, at, key, "a key of whole_ns")) ||
            (rc = util_json_value_int64(&ns, at, value, "whole_ns", 1)) || (rc = moirai_graph_whole_set(g, device, ns)))
            return rc;
    }
    return 0;
}

static int read_document(moirai_graph **out, yyjson_val *root, const char *label)
{
    util_json_at at = {.label = label};
    moirai_graph_builder *b;
    const char *name = "";
    yyjson_val *ops = NULL, *op;
    size_t i, n;
    int rc;
    if ((rc = util_json_string(&name, NULL, &at, root, "name", false)) ||
        (rc = util_json_array(&ops, &at, root, "ops", true)) || (rc = moirai_graph_builder_new(&b, name)))
        return rc;
    rc = read_dtype(b, &at, root);
    rc = rc ? rc : read_origin(b, &at, root);
    rc = rc ? rc : graph_read_settings(b, &at, root);
    yyjson_arr_foreach(ops, i, n, op) {
        rc = rc ? rc : read_op(b, label, op, i);
    }
    if (rc) {
        moirai_graph_builder_free(b);
        return rc;
    }
    rc = moirai_graph_builder_finish(out, b);
    rc = rc ? rc : read_whole(*out, &at, root);
    if (rc) {
        moirai_graph_free(*out);
        *out = NULL;
    }
    return rc;
}

int moirai_graph_parse(moirai_graph **out, const char *json, size_t length, const char *label)
{
    yyjson_doc *doc;
    *out = NULL;
    int rc = util_json_open(&doc, json, length, label, "moirai-graph");
    if (!rc) {
        rc = read_document(out, yyjson_doc_get_root(doc), label);
        yyjson_doc_free(doc);
    }
    return rc ? util_json_label(rc, label) : 0;
}

int moirai_graph_read(moirai_graph **out, const char *path)
{
    char *text;
    size_t length;
    *out = NULL;
    int rc = util_file_read(&text, &length, path);
    if (rc)
        return rc;
    rc = moirai_graph_parse(out, text, length, !strcmp(path, "-") ? "standard input" : path);
    free(text);
    return rc;
}
