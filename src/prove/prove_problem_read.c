/* The verifier's own reader of problem files.
 *
 * It shares nothing with src/problem, so that a fault there cannot hide one here: names, modes, times, groups, shared
 * weights, transfer times (latency + bytes / rate, rounded up, or a table) and the topological order are found again
 * from the file. The order is part of the format, as certificates number operators of a block by it: of the operators
 * that are ready, the one with the least number in the file comes next (prove_problem.c). */
#include "prove/prove_problem_read.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

/* Item j of a list; `at` is the object that has the list. */
typedef int item_reader(prove_reader *x, const util_json_at *at, size_t j, yyjson_val *item);

static int each(prove_reader *x, const util_json_at *at, yyjson_val *object, const char *key, bool needed,
                item_reader *read)
{
    yyjson_val *list = NULL, *item;
    size_t j, n;
    int rc = util_json_array(&list, at, object, key, needed);
    yyjson_arr_foreach(list, j, n, item) {
        rc = rc ? rc : prove_look(x->p, (int64_t)j);
        rc = rc ? rc : read(x, at, j, item);
    }
    return rc;
}

/* The beginning of every object: it is one, and has a name. */
static int open_item(util_json_at *here, const util_json_at *at, const char *kind, size_t j, yyjson_val *object)
{
    *here = (util_json_at){.label = at->label, .kind = kind, .index = j};
    int rc = util_json_object(here, object);
    return rc ? rc : util_json_string(&here->name, NULL, here, object, "name", true);
}

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

static int read_device(prove_reader *x, const util_json_at *at, size_t j, yyjson_val *object)
{
    util_json_at here;
    int rc = open_item(&here, at, "device", j, object);
    rc = rc ? rc : util_json_int64(&x->p->capacity[j], &here, object, "memory_bytes", true, 0);
    if (!rc && util_names_put(x->names[PROVE_DEVICE], here.name, (int32_t)j) != (int32_t)j)
        rc = util_json_fail(&here, "two devices have this name, or memory is out");
    return rc;
}

static int read_devices(prove_reader *x, const util_json_at *at)
{
    size_t K = yyjson_arr_size(yyjson_obj_get(x->root, "devices"));
    if (K > PROVE_MAX_DEVICES)
        return util_json_fail(at, "%zu devices, must be 1 to %d", K, PROVE_MAX_DEVICES);
    x->p->K = (int32_t)K;
    UTIL_TAKE(x->kept, x->p->capacity, K);
    UTIL_TAKE(&x->p->memory, x->rate, K * K);
    UTIL_TAKE(&x->p->memory, x->latency, K * K);
    if (x->kept->failed || x->p->memory.failed)
        return MOIRAI_EFAIL;
    int rc = each(x, at, x->root, "devices", true, read_device);
    return rc || K ? rc : util_json_fail(at, "0 devices, must be 1 to %d", PROVE_MAX_DEVICES);
}

static int read_channel(prove_reader *x, const util_json_at *top, size_t j, yyjson_val *object)
{
    util_json_at at = {.label = top->label, .kind = "channel", .index = j};
    const char *from = NULL, *to = NULL;
    int rc = util_json_object(&at, object);
    rc = rc ? rc : util_json_string(&from, NULL, &at, object, "from", true);
    rc = rc ? rc : util_json_string(&to, NULL, &at, object, "to", true);
    if (rc)
        return rc;
    int32_t a = util_names_get(x->names[PROVE_DEVICE], from), b = util_names_get(x->names[PROVE_DEVICE], to);
    if (a < 0 || b < 0 || a == b || x->rate[a * x->p->K + b])
        return util_json_fail(&at, "from '%.100s' to '%.100s': no two devices, or there twice", from, to);
    rc = util_json_int64(&x->rate[a * x->p->K + b], &at, object, "bytes_per_second", true, 1);
    return rc ? rc : util_json_int64(&x->latency[a * x->p->K + b], &at, object, "latency_ns", false, 0);
}

static int read_channels(prove_reader *x, const util_json_at *at)
{
    int32_t K = x->p->K;
    int rc = each(x, at, x->root, "channels", false, read_channel);
    for (int32_t c = 0; !rc && c < K * K; c++)
        if (c / K != c % K && !x->rate[c])
            rc = util_json_fail(at, "the channel from device %d to device %d is missing", c / K, c % K);
    return rc;
}

/* ---- operators ---- */

static int read_time(prove_reader *x, const util_json_at *at, size_t k, yyjson_val *value)
{
    int64_t *time = &x->p->time[at->index * (size_t)x->p->K + k];
    *time = -1;
    if (yyjson_is_null(value))
        return 0;
    x->p->may[at->index] |= UINT64_C(1) << k % 64;
    return util_json_value_int64(time, at, value, "time_ns", 0);
}

static int read_times(prove_reader *x, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *list = yyjson_obj_get(object, "time_ns");
    if (yyjson_is_arr(list) && yyjson_arr_size(list) != (size_t)x->p->K)
        return util_json_fail(at, "time_ns has %zu entries, there are %d devices", yyjson_arr_size(list), x->p->K);
    return each(x, at, object, "time_ns", true, read_time);
}

static int read_group(prove_reader *x, const util_json_at *at, yyjson_val *object)
{
    int32_t *group = &x->group[at->index];
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, "group", false);
    *group = PROVE_NONE;
    if (rc || !name)
        return rc;
    *group = util_names_put(x->names[PROVE_GROUP], name, x->n_groups);
    if (*group < 0)
        return MOIRAI_EFAIL;
    if (*group == x->n_groups)
        x->group_may[x->n_groups++] = ~UINT64_C(0);
    x->group_may[*group] &= x->p->may[at->index];
    return 0;
}

/* A row of the table of times that the file has for a tensor. */
static int read_row(prove_reader *x, const util_json_at *at, size_t a, yyjson_val *row)
{
    size_t K = (size_t)x->p->K, b, n;
    int64_t *ns = x->tensor[x->n_tensors - 1].own + a * K;
    yyjson_val *value;
    if (!yyjson_is_arr(row) || yyjson_arr_size(row) != K)
        return util_json_fail(at, "row %zu of transfer_ns is not an array of %zu times", a, K);
    yyjson_arr_foreach(row, b, n, value) {
        int rc = util_json_value_int64(&ns[b], at, value, "transfer_ns", 0);
        if (rc)
            return rc;
    }
    return ns[a] ? util_json_fail(at, "transfer_ns from device %zu to itself is not 0", a) : 0;
}

static int read_table(prove_reader *x, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *rows = yyjson_obj_get(object, "transfer_ns");
    size_t K = (size_t)x->p->K;
    if (yyjson_is_arr(rows) && yyjson_arr_size(rows) != K)
        return util_json_fail(at, "transfer_ns has %zu rows, there are %zu devices", yyjson_arr_size(rows), K);
    if (yyjson_is_arr(rows) && !PROVE_TAKE(&x->p->memory, x->tensor[x->n_tensors - 1].own, K * K))
        return MOIRAI_EFAIL;
    return each(x, at, object, "transfer_ns", false, read_row);
}

static int read_output(prove_reader *x, const util_json_at *at, size_t j, yyjson_val *item)
{
    prove_tensor *t = &x->tensor[x->n_tensors++];
    *t = (prove_tensor){.from = (int32_t)at->index, .output = (int32_t)j, .last_reader = PROVE_NONE};
    util_json_at here;
    int rc = open_item(&here, at, "output", j, item);
    t->name = here.name;
    rc = rc ? rc : util_json_int64(&t->bytes, &here, item, "bytes", true, 0);
    rc = rc ? rc : read_table(x, &here, item);
    if (!rc && util_names_put(x->names[PROVE_TENSOR], t->name, x->n_tensors - 1) != x->n_tensors - 1)
        rc = util_json_fail(&here, "two tensors have this name, or memory is out");
    return rc;
}

/* Weights that several operators read are held once per device that runs any; of these only such are counted, in the
 * end, whose readers share a device whatever the plan. Leaving out the others asks for less memory. */
static int read_weight(prove_reader *x, const util_json_at *at, size_t j, yyjson_val *item)
{
    int32_t i = (int32_t)at->index, group = x->group[i];
    int64_t bytes = 0;
    util_json_at here;
    int rc = open_item(&here, at, "shared weight", j, item);
    rc = rc ? rc : util_json_int64(&bytes, &here, item, "bytes", true, 0);
    if (rc)
        return rc;
    int32_t w = util_names_put(x->names[PROVE_WEIGHT], here.name, x->n_weights);
    if (w < 0)
        return MOIRAI_EFAIL;
    prove_weight *old = &x->weight[w];
    if (w == x->n_weights)
        x->weight[x->n_weights++] = (prove_weight){bytes, i, i, group, false};
    if (old->bytes != bytes)
        return util_json_fail(&here, "has two sizes");
    old->apart |= old->last != i && (group == PROVE_NONE || group != old->group);
    old->last = i;
    return 0;
}

static int read_op(prove_reader *x, const util_json_at *top, size_t i, yyjson_val *object)
{
    util_json_at at;
    int rc = open_item(&at, top, "op", i, object);
    x->p->name[i] = at.name;
    rc = rc ? rc : util_json_int64(&x->p->bytes[i], &at, object, "memory_bytes", true, 0);
    rc = rc ? rc : read_times(x, &at, object);
    rc = rc ? rc : read_group(x, &at, object);
    rc = rc ? rc : each(x, &at, object, "shared_weights", false, read_weight);
    return rc ? rc : each(x, &at, object, "outputs", true, read_output);
}

/* What no operator writes comes from outside; what an operator reads twice it reads once. */
static int read_input(prove_reader *x, const util_json_at *at, size_t j, yyjson_val *item)
{
    const char *name;
    int32_t i = (int32_t)at->index;
    (void)j;
    int rc = util_json_value_string(&name, NULL, at, item, "an item of inputs");
    int32_t t = rc ? -1 : util_names_get(x->names[PROVE_TENSOR], name);
    if (t < 0 || x->tensor[t].last_reader == i)
        return rc;
    x->tensor[t].last_reader = i;
    x->tensor[t].n_readers++;
    x->p->edge[x->p->n_edges++] =
        (prove_edge){.from = x->tensor[t].from, .output = x->tensor[t].output, .to = i, .packet = t};
    return 0;
}

static int read_inputs(prove_reader *x, const util_json_at *top, size_t i, yyjson_val *object)
{
    util_json_at at = {.label = top->label, .kind = "op", .name = x->p->name[i], .index = i};
    return each(x, &at, object, "inputs", true, read_input);
}

/* How many items the operators' lists of this name have together. */
static size_t count(yyjson_val *ops, const char *key)
{
    size_t sum = 0, i, n;
    yyjson_val *object;
    yyjson_arr_foreach(ops, i, n, object)
        sum += yyjson_arr_size(yyjson_obj_get(object, key));
    return sum;
}

static int read_ops(prove_reader *x, const util_json_at *at)
{
    yyjson_val *ops = yyjson_obj_get(x->root, "ops");
    size_t n = yyjson_arr_size(ops), tensors = count(ops, "outputs"), weights = count(ops, "shared_weights"),
           edges = count(ops, "inputs");
    util_memory *m = &x->p->memory;
    if (n > INT32_MAX / 2)
        return moirai_error(MOIRAI_EINPUT, "too many operators");
    if (tensors > INT32_MAX || weights > INT32_MAX || edges > INT32_MAX)
        return MOIRAI_EFAIL;
    x->p->n = (int32_t)n;
    UTIL_TAKE(m, x->p->time, n * (size_t)x->p->K);
    UTIL_TAKE(m, x->p->bytes, n);
    UTIL_TAKE(m, x->p->may, n);
    UTIL_TAKE(m, x->p->name, n);
    UTIL_TAKE(m, x->p->edge, edges);
    UTIL_TAKE(m, x->group, n);
    UTIL_TAKE(m, x->group_may, n);
    UTIL_TAKE(m, x->tensor, tensors);
    UTIL_TAKE(m, x->weight, weights);
    int rc = util_taken_all(m);
    rc = rc ? rc : each(x, at, x->root, "ops", true, read_op);
    return rc ? rc : each(x, at, x->root, "ops", true, read_inputs);
}

static int read_all(prove_reader *x)
{
    util_json_at at = {.label = x->label};
    int rc = prove_go_on(x->p);
    for (int i = 0; i < PROVE_NAMES && !rc; i++)
        rc = (x->names[i] = util_names_new(16)) ? 0 : MOIRAI_EFAIL;
    x->p->title = "";
    rc = rc ? rc : util_json_string(&x->p->title, NULL, &at, x->root, "name", false);
    rc = rc ? rc : read_modes(x);
    rc = rc ? rc : read_devices(x, &at);
    rc = rc ? rc : read_channels(x, &at);
    rc = rc ? rc : read_ops(x, &at);
    return rc ? rc : prove_problem_settle(x);
}

int prove_problem_read(prove_problem *p, const moirai_prove_file *file, const util_stop *stop)
{
    prove_problem raw = {.stop = stop};
    prove_reader x = {.label = file->label, .p = &raw, .kept = &p->memory};
    *p = (prove_problem){0};
    int rc = util_json_open(&raw.doc, file->text, file->length, file->label, "moirai-problem");
    if (rc)
        return rc;
    x.root = yyjson_doc_get_root(raw.doc);
    rc = read_all(&x);
    rc = rc ? rc : prove_problem_sort(p, &raw);
    p->doc = raw.doc;
    util_release(&raw.memory);
    for (int i = 0; i < PROVE_NAMES; i++)
        util_names_free(x.names[i]);
    return rc ? util_json_label(rc, file->label) : 0;
}
