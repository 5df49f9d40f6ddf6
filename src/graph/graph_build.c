/* Building a graph by names: flat lists of (operator, item) pairs in the order of the calls, which may jump between
 * operators. The first error sticks: later calls and `finish` repeat it, so a caller may check once at the end. */
#include "graph/graph_builder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int moirai_graph_builder_new(moirai_graph_builder **out, const char *name)
{
    *out = NULL;
    moirai_graph_builder *b = util_alloc(1, sizeof *b);
    if (!b)
        return MOIRAI_EFAIL;
    b->element_bytes = 4;
    b->name = util_strdup(name);
    b->strings = util_strings_new();
    b->op_names = util_names_new(256);
    b->tensor_names = util_names_new(256);
    b->key_names = util_names_new(8);
    b->weight_names = util_names_new(8);
    if (!b->name || !b->strings || !b->op_names || !b->tensor_names || !b->key_names || !b->weight_names) {
        moirai_graph_builder_free(b);
        return MOIRAI_EFAIL;
    }
    *out = b;
    return 0;
}

void moirai_graph_builder_free(moirai_graph_builder *b)
{
    if (!b)
        return;
    free(b->name);
    util_strings_free(b->strings);
    util_names_free(b->op_names);
    util_names_free(b->tensor_names);
    util_names_free(b->key_names);
    util_names_free(b->weight_names);
    free(b->op);
    free(b->tensor);
    free(b->member);
    free(b->key);
    free(b->time);
    free(b->inputs.row);
    free(b->outputs.row);
    free(b->members.row);
    free(b->times.row);
    free(b->weight);
    free(b->weight_bytes);
    free(b->weights.row);
    free(b->setting[0]);
    free(b->setting[1]);
    free(b->setting[2]);
    free(b->message);
    free(b);
}

/* Remember the current message as the builder's own. */
static int fail(moirai_graph_builder *b, int rc)
{
    if (!b->failed) {
        b->failed = rc;
        b->message = util_strdup(moirai_error_message());
    }
    return rc;
}

static int repeat_failure(const moirai_graph_builder *b)
{
    return moirai_error(b->failed, "%s", b->message ? b->message : "out of memory");
}

static int ready_for(moirai_graph_builder *b, int32_t op)
{
    if (b->failed)
        return repeat_failure(b);
    if (op < 0 || (size_t)op >= b->n_ops)
        return fail(b, moirai_error(MOIRAI_EUSAGE, "operator %d: there are only %zu", op, b->n_ops));
    return 0;
}

static const char *keep(moirai_graph_builder *b, const char *text)
{
    return util_strings_add(b->strings, text, strlen(text));
}

static int add_pair(pairs *list, int32_t op, int32_t item)
{
    if (list->n >= INT32_MAX - 1)
        return moirai_error(MOIRAI_EINPUT, "more than %d items of one kind", INT32_MAX - 1);
    if (util_grow(&list->row, &list->capacity, list->n + 1, sizeof *list->row))
        return MOIRAI_EFAIL;
    list->row[list->n++] = (pair){op, item};
    return 0;
}

void moirai_graph_builder_element_bytes(moirai_graph_builder *b, int32_t bytes)
{
    if (bytes != 2 && bytes != 4 && bytes != 8)
        fail(b, moirai_error(MOIRAI_EUSAGE, "element_bytes is %d, expected 4 (fp32), 2 (fp16) or 8 (fp64)", bytes));
    b->element_bytes = bytes;
}

void moirai_graph_builder_from_onnx(moirai_graph_builder *b, bool from_onnx)
{
    b->from_onnx = from_onnx;
}

static int32_t add_op(moirai_graph_builder *b, const char *name, const char *type)
{
    if (!*name)
        return moirai_error(MOIRAI_EINPUT, "operator %zu has an empty name", b->n_ops);
    if (b->n_ops >= INT32_MAX - 1)
        return moirai_error(MOIRAI_EINPUT, "more than %d operators", INT32_MAX - 1);
    if (util_grow(&b->op, &b->ops_capacity, b->n_ops + 1, sizeof *b->op))
        return MOIRAI_EFAIL;
    op_row row = {keep(b, name), keep(b, type), 0, 0, MOIRAI_UNKNOWN, MOIRAI_UNKNOWN};
    if (!row.name || !row.type)
        return MOIRAI_EFAIL;
    int32_t number = (int32_t)b->n_ops, found = util_names_put(b->op_names, row.name, number);
    if (found < 0)
        return MOIRAI_EFAIL;
    if (found != number)
        return moirai_error(MOIRAI_EINPUT, "two operators are named '%.200s'", name);
    b->op[b->n_ops++] = row;
    return number;
}

int32_t moirai_graph_builder_op(moirai_graph_builder *b, const char *name, const char *type)
{
    if (b->failed)
        return repeat_failure(b);
    int32_t result = add_op(b, name, type);
    return result < 0 ? fail(b, result) : result;
}

/* The number of a tensor by name, added if new; negative on failure. */
static int32_t tensor_number(moirai_graph_builder *b, int32_t op, const char *name)
{
    if (!*name)
        return moirai_error(MOIRAI_EINPUT, "operator '%.200s' has a tensor with an empty name", b->op[op].name);
    int32_t number = util_names_get(b->tensor_names, name);
    if (number >= 0)
        return number;
    if (b->n_tensors >= INT32_MAX - 1)
        return moirai_error(MOIRAI_EINPUT, "more than %d tensors", INT32_MAX - 1);
    const char *kept = keep(b, name);
    number = (int32_t)b->n_tensors;
    if (!kept || util_grow(&b->tensor, &b->tensors_capacity, b->n_tensors + 1, sizeof *b->tensor) ||
        util_names_put(b->tensor_names, kept, number) < 0)
        return MOIRAI_EFAIL;
    b->tensor[b->n_tensors++] = (tensor_row){kept, 0, MOIRAI_NONE, MOIRAI_NONE};
    return number;
}

int moirai_graph_builder_input(moirai_graph_builder *b, int32_t op, const char *tensor)
{
    if (ready_for(b, op))
        return b->failed;
    int32_t t = tensor_number(b, op, tensor);
    int rc = t < 0 ? t : add_pair(&b->inputs, op, t);
    return rc ? fail(b, rc) : 0;
}

static int add_output(moirai_graph_builder *b, int32_t op, const char *tensor, int64_t bytes)
{
    if (bytes < 0)
        return moirai_error(MOIRAI_EINPUT,
                            "operator '%.200s': output '%.200s': bytes is %" PRId64 ", must be at least 0",
                            b->op[op].name, tensor, bytes);
    int32_t t = tensor_number(b, op, tensor);
    if (t < 0)
        return t;
    tensor_row *row = &b->tensor[t];
    if (row->producer == op)
        return moirai_error(MOIRAI_EINPUT, "tensor '%.200s' is written twice by '%.200s'", tensor, b->op[op].name);
    if (row->producer != MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "tensor '%.200s' is written by '%.200s' and by '%.200s'", tensor,
                            b->op[row->producer].name, b->op[op].name);
    row->producer = op;
    row->bytes = bytes;
    return add_pair(&b->outputs, op, t);
}

int moirai_graph_builder_output(moirai_graph_builder *b, int32_t op, const char *tensor, int64_t bytes)
{
    if (ready_for(b, op))
        return b->failed;
    int rc = add_output(b, op, tensor, bytes);
    return rc ? fail(b, rc) : 0;
}

int moirai_graph_builder_cost(moirai_graph_builder *b, int32_t op, int64_t weight_bytes, int64_t workspace_bytes,
                              int64_t flops, int64_t traffic_bytes)
{
    if (ready_for(b, op))
        return b->failed;
    if (weight_bytes < 0 || workspace_bytes < 0 || flops < MOIRAI_UNKNOWN || traffic_bytes < MOIRAI_UNKNOWN)
        return fail(b, moirai_error(MOIRAI_EINPUT,
                                    "operator '%.200s': negative cost (weight_bytes %" PRId64
                                    ", workspace_bytes %" PRId64 ", flops %" PRId64 ", traffic_bytes %" PRId64 ")",
                                    b->op[op].name, weight_bytes, workspace_bytes, flops, traffic_bytes));
    op_row *row = &b->op[op];
    row->weight_bytes = weight_bytes;
    row->workspace_bytes = workspace_bytes;
    row->flops = flops;
    row->traffic_bytes = traffic_bytes;
    return 0;
}

static int32_t key_number(moirai_graph_builder *b, const char *device)
{
    int32_t number = util_names_get(b->key_names, device);
    if (number >= 0)
        return number;
    if (b->n_keys >= GRAPH_MAX_TIME_KEYS)
        return moirai_error(MOIRAI_EINPUT, "times for more than %d device names or types, the last: '%.200s'",
                            GRAPH_MAX_TIME_KEYS, device);
    const char *kept = keep(b, device);
    number = (int32_t)b->n_keys;
    if (!kept || util_grow(&b->key, &b->keys_capacity, b->n_keys + 1, sizeof *b->key) ||
        util_names_put(b->key_names, kept, number) < 0)
        return MOIRAI_EFAIL;
    b->key[b->n_keys++] = kept;
    return number;
}

static int add_time(moirai_graph_builder *b, int32_t op, const char *device, int64_t ns)
{
    if (ns < 0)
        return moirai_error(MOIRAI_EINPUT, "operator '%.200s': time_ns for '%.200s' is %" PRId64 ", must be at least 0",
                            b->op[op].name, device, ns);
    if (util_grow(&b->time, &b->time_capacity, b->times.n + 1, sizeof *b->time))
        return MOIRAI_EFAIL;
    int32_t key = key_number(b, device);
    if (key < 0)
        return key;
    b->time[b->times.n] = ns;
    return add_pair(&b->times, op, key);
}

int moirai_graph_builder_time(moirai_graph_builder *b, int32_t op, const char *device, int64_t ns)
{
    if (ready_for(b, op))
        return b->failed;
    int rc = add_time(b, op, device, ns);
    return rc ? fail(b, rc) : 0;
}

int moirai_graph_builder_member(moirai_graph_builder *b, int32_t op, const char *member)
{
    if (ready_for(b, op))
        return b->failed;
    size_t n = b->members.n;
    if (util_grow(&b->member, &b->member_capacity, n + 1, sizeof *b->member) || !(b->member[n] = keep(b, member)))
        return fail(b, MOIRAI_EFAIL);
    int rc = add_pair(&b->members, op, (int32_t)n);
    return rc ? fail(b, rc) : 0;
}

static int32_t weight_number(moirai_graph_builder *b, int32_t op, const char *name, int64_t bytes)
{
    if (bytes < 0 || !*name)
        return moirai_error(MOIRAI_EINPUT, "operator '%.200s': shared weight '%.200s' of %" PRId64 " bytes",
                            b->op[op].name, name, bytes);
    int32_t number = util_names_get(b->weight_names, name);
    if (number >= 0 && b->weight_bytes[number] != bytes)
        return moirai_error(MOIRAI_EINPUT,
                            "operator '%.200s': shared weight '%.200s' has %" PRId64 " bytes here, %" PRId64 " before",
                            b->op[op].name, name, bytes, b->weight_bytes[number]);
    if (number >= 0)
        return number;
    const char *kept = keep(b, name);
    size_t n = b->n_weights;
    if (!kept || n >= INT32_MAX || util_grow(&b->weight, &b->weights_capacity, n + 1, sizeof *b->weight) ||
        util_grow(&b->weight_bytes, &b->weight_bytes_capacity, n + 1, sizeof *b->weight_bytes) ||
        util_names_put(b->weight_names, kept, (int32_t)n) < 0)
        return MOIRAI_EFAIL;
    b->weight[n] = kept;
    b->weight_bytes[n] = bytes;
    b->n_weights++;
    return (int32_t)n;
}

int moirai_graph_builder_shared_weight(moirai_graph_builder *b, int32_t op, const char *name, int64_t bytes)
{
    if (ready_for(b, op))
        return b->failed;
    int32_t number = weight_number(b, op, name, bytes);
    int rc = number < 0 ? number : add_pair(&b->weights, op, number);
    return rc ? fail(b, rc) : 0;
}

static int add_setting(moirai_graph_builder *b, int which, const char *setting)
{
    if (b->failed)
        return repeat_failure(b);
    size_t n = b->n_settings[which];
    const char *kept = keep(b, setting);
    if (!kept || n >= INT32_MAX || util_grow(&b->setting[which], &b->settings_capacity[which], n + 1, sizeof kept))
        return fail(b, MOIRAI_EFAIL);
    b->setting[which][b->n_settings[which]++] = kept;
    return 0;
}

int moirai_graph_builder_dim(moirai_graph_builder *b, const char *setting)
{
    return add_setting(b, 0, setting);
}

int moirai_graph_builder_shape(moirai_graph_builder *b, const char *setting)
{
    return add_setting(b, 1, setting);
}

int moirai_graph_builder_assumed(moirai_graph_builder *b, const char *setting)
{
    return add_setting(b, 2, setting);
}
