/* The verifier's own reader of problem files.
 *
 * It shares nothing with src/problem, so that a fault there cannot hide one here: names, modes, times, groups, shared
 * weights, transfer times (latency + bytes / rate, rounded up, or a table) and the topological order are found again
 * from the file. The order is part of the format, as certificates number operators of a block by it: of the operators
 * that are ready, the one with the least number in the file comes next (prove_problem.c). */
#include "prove/prove_problem_read.h"

#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/util.h"

#define LOOK 64 /* operators per look at the clock */

/* ---- devices and channels ---- */

static int word(int *out, const prove_reader *x, const char *key, const char *const *words)
{
    util_json_at at = {.label = x->label};
    const char *text = NULL;
    int rc = util_json_string(&text, NULL, &at, x->root, key, true);
    for (*out = 0; !rc && words[*out]; ++*out)
        if (!strcmp(words[*out], text))
            return 0;
    return rc ? rc : util_json_fail(&at, "%s is '%.60s', which is no mode", key, text);
}

static int read_modes(prove_reader *x)
{
    static const char *const flows[] = {"tensor", "edge", NULL},
                             *const ports[] = {"port", "channel", "none", "device", NULL},
                             *const memories[] = {"static", "peak", NULL};
    int flow, congestion, memory; /* what fits into peak fits into static: proofs take the latter */
    int rc = word(&flow, x, "flow", flows);
    rc = rc ? rc : word(&congestion, x, "congestion", ports);
    rc = rc ? rc : word(&memory, x, "memory", memories);
    if (!rc) {
        x->p->by_edge = flow == 1;
        x->p->holds_devices = congestion == 3; /* and so their ports: all but loads goes by these */
        x->p->congestion = x->p->holds_devices ? PROVE_PORT : (prove_congestion)congestion;
    }
    return rc;
}

static int read_devices(prove_reader *x)
{
    util_json_at at = {.label = x->label};
    yyjson_val *list = NULL, *object;
    size_t i, n;
    int rc = util_json_array(&list, &at, x->root, "devices", true);
    if (!rc && (yyjson_arr_size(list) < 1 || yyjson_arr_size(list) > PROVE_MAX_DEVICES))
        rc = util_json_fail(&at, "%zu devices, must be 1 to %d", yyjson_arr_size(list), PROVE_MAX_DEVICES);
    if (rc)
        return rc;
    size_t K = yyjson_arr_size(list);
    x->p->K = (int32_t)K;
    x->p->capacity = util_alloc(K, sizeof(int64_t));
    x->rate = util_alloc(K * K, sizeof(int64_t));
    x->latency = util_alloc(K * K, sizeof(int64_t));
    if (!x->p->capacity || !x->rate || !x->latency)
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, n, object) {
        util_json_at here = {.label = x->label, .kind = "device", .index = i};
        if ((rc = util_json_object(&here, object)) ||
            (rc = util_json_string(&here.name, NULL, &here, object, "name", true)) ||
            (rc = util_json_int64(&x->p->capacity[i], &here, object, "memory_bytes", true, 0)))
            return rc;
        if (util_names_put(x->devices, here.name, (int32_t)i) != (int32_t)i)
            return util_json_fail(&here, "two devices have this name, or memory is out");
    }
    return 0;
}

static int read_channel(prove_reader *x, yyjson_val *object, size_t index)
{
    util_json_at at = {.label = x->label, .kind = "channel", .index = index};
    const char *from = NULL, *to = NULL;
    int rc = util_json_object(&at, object);
    rc = rc ? rc : util_json_string(&from, NULL, &at, object, "from", true);
    rc = rc ? rc : util_json_string(&to, NULL, &at, object, "to", true);
    if (rc)
        return rc;
    int32_t a = util_names_get(x->devices, from), b = util_names_get(x->devices, to);
    if (a < 0 || b < 0 || a == b || x->rate[a * x->p->K + b])
        return util_json_fail(&at, "from '%.100s' to '%.100s': no two devices, or there twice", from, to);
    rc = util_json_int64(&x->rate[a * x->p->K + b], &at, object, "bytes_per_second", true, 1);
    return rc ? rc : util_json_int64(&x->latency[a * x->p->K + b], &at, object, "latency_ns", false, 0);
}

static int read_channels(prove_reader *x)
{
    util_json_at at = {.label = x->label};
    yyjson_val *list = NULL, *object;
    size_t i, n;
    int rc = util_json_array(&list, &at, x->root, "channels", false);
    if (!rc && list) {
        yyjson_arr_foreach(list, i, n, object) {
            rc = rc ? rc : read_channel(x, object, i);
        }
    }
    for (int32_t c = 0; !rc && c < x->p->K * x->p->K; c++)
        if (c / x->p->K != c % x->p->K && !x->rate[c])
            rc = util_json_fail(&at, "the channel from device %d to device %d is missing", c / x->p->K, c % x->p->K);
    return rc;
}

/* ---- operators ---- */

static int read_times(prove_reader *x, int32_t i, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *list = NULL, *value;
    size_t k, n;
    int64_t *time = x->p->time + (int64_t)i * x->p->K;
    int rc = util_json_array(&list, at, object, "time_ns", true);
    if (!rc && yyjson_arr_size(list) != (size_t)x->p->K)
        rc = util_json_fail(at, "time_ns has %zu entries, there are %d devices", yyjson_arr_size(list), x->p->K);
    if (rc)
        return rc;
    yyjson_arr_foreach(list, k, n, value) {
        time[k] = -1;
        if (yyjson_is_null(value))
            continue;
        if ((rc = util_json_value_int64(&time[k], at, value, "time_ns", 0)))
            return rc;
        x->p->may[i] |= UINT64_C(1) << k % 64;
    }
    return 0;
}

static int read_group(prove_reader *x, int32_t i, const util_json_at *at, yyjson_val *object)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, "group", false);
    x->group.of_op[i] = PROVE_NONE;
    if (rc || !name)
        return rc;
    x->group.of_op[i] = util_names_put(x->groups, name, x->group.n);
    if (x->group.of_op[i] < 0)
        return MOIRAI_EFAIL;
    if (x->group.of_op[i] == x->group.n)
        x->group.may[x->group.n++] = ~UINT64_C(0);
    x->group.may[x->group.of_op[i]] &= x->p->may[i];
    return 0;
}

/* A table of times that the file has for a tensor, beside those of the others. */
static int read_table(prove_reader *x, prove_tensor *t, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *rows = NULL, *row, *value;
    size_t K = (size_t)x->p->K, a, b, n, m;
    int rc = util_json_array(&rows, at, object, "transfer_ns", false);
    if (rc || !rows)
        return rc;
    if (yyjson_arr_size(rows) != K)
        return util_json_fail(at, "transfer_ns has %zu rows, there are %zu devices", yyjson_arr_size(rows), K);
    if (!(t->ns = prove_alloc(K * K, sizeof *t->ns)))
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(rows, a, n, row) {
        if (!yyjson_is_arr(row) || yyjson_arr_size(row) != K)
            return util_json_fail(at, "row %zu of transfer_ns is not an array of %zu times", a, K);
        yyjson_arr_foreach(row, b, m, value) {
            if ((rc = util_json_value_int64(&t->ns[a * K + b], at, value, "transfer_ns", 0)))
                return rc;
            if (a == b && t->ns[a * K + b])
                return util_json_fail(at, "transfer_ns from device %zu to itself is not 0", a);
        }
    }
    return 0;
}

static int read_outputs(prove_reader *x, int32_t i, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *list = NULL, *item;
    size_t j, n;
    int rc = util_json_array(&list, at, object, "outputs", true);
    if (rc)
        return rc;
    yyjson_arr_foreach(list, j, n, item) {
        util_json_at here = {.label = x->label, .kind = "output", .index = j};
        if (util_grow(&x->tensor, &x->tensor_room, x->n_tensors + 1, sizeof *x->tensor))
            return MOIRAI_EFAIL;
        prove_tensor *t = &x->tensor[x->n_tensors++];
        *t = (prove_tensor){.from = i, .output = (int32_t)j};
        if ((rc = util_json_object(&here, item)) ||
            (rc = util_json_string(&here.name, NULL, &here, item, "name", true)) ||
            (rc = util_json_int64(&t->bytes, &here, item, "bytes", true, 0)) || (rc = read_table(x, t, &here, item)))
            return rc;
        t->name = here.name;
        if (util_names_put(x->tensors, t->name, (int32_t)x->n_tensors - 1) != (int32_t)x->n_tensors - 1)
            return util_json_fail(&here, "two tensors have this name, or memory is out");
    }
    return 0;
}

/* Weights that several operators read are held once per device that runs any; of these only such are counted, in the
 * end, whose readers share a device whatever the plan. Leaving out the others asks for less memory. */
static int read_weights(prove_reader *x, int32_t i, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *list = NULL, *item;
    size_t j, n;
    int rc = util_json_array(&list, at, object, "shared_weights", false);
    if (rc || !list)
        return rc;
    yyjson_arr_foreach(list, j, n, item) {
        util_json_at here = {.label = x->label, .kind = "shared weight", .index = j};
        int64_t bytes = 0;
        if ((rc = util_json_object(&here, item)) ||
            (rc = util_json_string(&here.name, NULL, &here, item, "name", true)) ||
            (rc = util_json_int64(&bytes, &here, item, "bytes", true, 0)))
            return rc;
        if (util_grow(&x->weight, &x->weight_room, x->n_weights + 1, sizeof *x->weight))
            return MOIRAI_EFAIL;
        int32_t w = util_names_put(x->weights, here.name, (int32_t)x->n_weights);
        if (w < 0)
            return MOIRAI_EFAIL;
        if ((size_t)w == x->n_weights)
            x->weight[x->n_weights++] = (prove_weight){bytes, i, i, x->group.of_op[i], false};
        prove_weight *old = &x->weight[w];
        if (old->bytes != bytes)
            return util_json_fail(&here, "has two sizes");
        if (old->last != i)
            old->apart |= x->group.of_op[i] == PROVE_NONE || x->group.of_op[i] != old->group;
        old->last = i;
    }
    return 0;
}

static int read_op(prove_reader *x, int32_t i, yyjson_val *object)
{
    util_json_at at = {.label = x->label, .kind = "op", .index = (size_t)i};
    int rc;
    if ((rc = util_json_object(&at, object)) || (rc = util_json_string(&at.name, NULL, &at, object, "name", true)) ||
        (rc = util_json_int64(&x->p->bytes[i], &at, object, "memory_bytes", true, 0)) ||
        (rc = read_times(x, i, &at, object)) || (rc = read_group(x, i, &at, object)) ||
        (rc = read_weights(x, i, &at, object)))
        return rc;
    x->p->name[i] = at.name;
    return read_outputs(x, i, &at, object);
}

/* What no operator writes comes from outside; what an operator reads twice it reads once. */
static int read_inputs(prove_reader *x, int32_t i, int32_t *seen, yyjson_val *object)
{
    util_json_at at = {.label = x->label, .kind = "op", .name = x->p->name[i]};
    yyjson_val *list = NULL, *item;
    size_t j, n;
    int rc = util_json_array(&list, &at, object, "inputs", true);
    if (rc)
        return rc;
    yyjson_arr_foreach(list, j, n, item) {
        const char *name;
        if ((rc = util_json_value_string(&name, NULL, &at, item, "an item of inputs")))
            return rc;
        int32_t t = util_names_get(x->tensors, name);
        if (t < 0 || seen[t] == i + 1)
            continue;
        seen[t] = i + 1;
        x->tensor[t].n_readers++;
        if (x->n_edges >= INT32_MAX || util_grow(&x->p->edge, &x->edge_room, x->n_edges + 1, sizeof *x->p->edge))
            return MOIRAI_EFAIL;
        /* the tensor's number stands in for its table until that is known */
        x->p->edge[x->n_edges++] =
            (prove_edge){.from = x->tensor[t].from, .output = x->tensor[t].output, .to = i, .line = t};
    }
    return 0;
}

static int read_ops(prove_reader *x)
{
    size_t n = yyjson_arr_size(x->ops), i, max, cells;
    yyjson_val *object;
    int32_t *seen = NULL;
    if (n > INT32_MAX / 2)
        return moirai_error(MOIRAI_EINPUT, "too many operators");
    cells = n * (size_t)x->p->K;
    x->p->n = (int32_t)n;
    x->p->time = util_alloc(cells, sizeof(int64_t));
    x->p->bytes = util_alloc(n, sizeof(int64_t));
    x->p->may = util_alloc(n, sizeof(uint64_t));
    x->p->name = util_alloc(n, sizeof(char *));
    x->group.of_op = util_alloc(n, sizeof(int32_t));
    x->group.may = util_alloc(n, sizeof(uint64_t));
    int rc = x->p->time && x->p->bytes && x->p->may && x->p->name && x->group.of_op && x->group.may ? 0 : MOIRAI_EFAIL;
    yyjson_arr_foreach(x->ops, i, max, object) {
        rc = rc || i % LOOK ? rc : prove_go_on(x->p);
        rc = rc ? rc : read_op(x, (int32_t)i, object);
    }
    if (!rc && !(seen = util_alloc(x->n_tensors, sizeof *seen)))
        rc = MOIRAI_EFAIL;
    yyjson_arr_foreach(x->ops, i, max, object) {
        rc = rc || i % LOOK ? rc : prove_go_on(x->p);
        rc = rc ? rc : read_inputs(x, (int32_t)i, seen, object);
    }
    x->p->n_edges = (int32_t)x->n_edges;
    free(seen);
    return rc;
}

static int read_all(prove_reader *x)
{
    util_json_at at = {.label = x->label};
    x->p->title = "";
    int rc = util_json_string(&x->p->title, NULL, &at, x->root, "name", false);
    rc = rc ? rc : util_json_array(&x->ops, &at, x->root, "ops", true);
    size_t n = rc ? 0 : yyjson_arr_size(x->ops);
    x->devices = util_names_new(16);
    x->tensors = util_names_new(n);
    x->groups = util_names_new(16);
    x->weights = util_names_new(16);
    if (!rc && !(x->devices && x->tensors && x->groups && x->weights))
        rc = MOIRAI_EFAIL;
    rc = rc ? rc : read_modes(x);
    rc = rc ? rc : read_devices(x);
    rc = rc ? rc : read_channels(x);
    rc = rc ? rc : read_ops(x);
    return rc ? rc : prove_problem_settle(x);
}

int prove_problem_read(prove_problem *p, const moirai_prove_file *file, const util_stop *stop)
{
    prove_problem raw = {.whole = true, .stop = stop};
    prove_reader x = {.label = file->label, .p = &raw};
    *p = (prove_problem){0};
    int rc = util_json_open(&raw.doc, file->text, file->length, file->label, "moirai-problem");
    if (rc)
        return rc;
    x.root = yyjson_doc_get_root(raw.doc);
    rc = prove_go_on(&raw);
    rc = rc ? rc : read_all(&x);
    rc = rc ? rc : prove_problem_sort(p, &raw);
    for (size_t t = 0; t < x.n_tensors; t++)
        free(x.tensor[t].ns);
    void *all[] = {x.rate, x.latency, x.tensor, x.weight, x.group.of_op, x.group.may};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    util_names_free(x.devices);
    util_names_free(x.tensors);
    util_names_free(x.groups);
    util_names_free(x.weights);
    prove_problem_free(&raw);
    return rc ? util_json_label(rc, file->label) : 0;
}
