/* The verifier's own reader of problem files.
 *
 * It shares nothing with src/problem, so that a fault there cannot hide one here: names, modes, times, groups, shared
 * weights, transfer times (latency + bytes / rate, rounded up, or a table) and the topological order are found again
 * from the file. The order is part of the format, as certificates number operators of a block by it: of the operators
 * that are ready, the one with the least number in the file comes next (prove_problem.c). */
#include "prove/prove_problem.h"

#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/util.h"

typedef struct tensor {
    const char *name;
    int64_t bytes;
    int32_t from, output, n_readers;
    int64_t *ns;          /* the file's own table, or NULL */
    const int64_t *table; /* that counts */
} tensor;

typedef struct weight {
    int64_t bytes;
    int32_t first, last, group; /* readers; the group of all of them, or PROVE_NONE */
    bool apart;                 /* readers may be on several devices */
} weight;

typedef struct reader {
    const char *label;
    yyjson_val *root, *ops;
    prove_problem *p;
    int64_t *rate, *latency; /* [a * K + b] */
    util_names *devices, *tensors, *groups, *weights;
    tensor *tensor;
    size_t n_tensors, tensor_room, n_edges, edge_room, n_weights, weight_room;
    weight *weight;
    int32_t *group;      /* per operator */
    uint64_t *group_may; /* per group */
    int32_t n_groups;
} reader;

/* ---- devices and channels ---- */

static int word(int *out, const reader *x, const char *key, const char *const *words)
{
    util_json_at at = {.label = x->label};
    const char *text = NULL;
    int rc = util_json_string(&text, NULL, &at, x->root, key, true);
    for (*out = 0; !rc && words[*out]; ++*out)
        if (!strcmp(words[*out], text))
            return 0;
    return rc ? rc : util_json_fail(&at, "%s is '%.60s', which is no mode", key, text);
}

static int read_modes(reader *x)
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

static int read_devices(reader *x)
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

static int read_channel(reader *x, yyjson_val *object, size_t index)
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

static int read_channels(reader *x)
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

static int read_times(reader *x, int32_t i, const util_json_at *at, yyjson_val *object)
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
        x->p->may[i] |= UINT64_C(1) << k;
    }
    return 0;
}

static int read_group(reader *x, int32_t i, const util_json_at *at, yyjson_val *object)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, "group", false);
    x->group[i] = PROVE_NONE;
    if (rc || !name)
        return rc;
    x->group[i] = util_names_put(x->groups, name, x->n_groups);
    if (x->group[i] < 0)
        return MOIRAI_EFAIL;
    if (x->group[i] == x->n_groups)
        x->group_may[x->n_groups++] = ~UINT64_C(0);
    x->group_may[x->group[i]] &= x->p->may[i];
    return 0;
}

/* A table of times that the file has for a tensor, beside those of the others. */
static int read_table(reader *x, tensor *t, const util_json_at *at, yyjson_val *object)
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

static int read_outputs(reader *x, int32_t i, const util_json_at *at, yyjson_val *object)
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
        tensor *t = &x->tensor[x->n_tensors++];
        *t = (tensor){.from = i, .output = (int32_t)j};
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
static int read_weights(reader *x, int32_t i, const util_json_at *at, yyjson_val *object)
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
            x->weight[x->n_weights++] = (weight){bytes, i, i, x->group[i], false};
        weight *old = &x->weight[w];
        if (old->bytes != bytes)
            return util_json_fail(&here, "has two sizes");
        if (old->last != i)
            old->apart |= x->group[i] == PROVE_NONE || x->group[i] != old->group;
        old->last = i;
    }
    return 0;
}

static int read_op(reader *x, int32_t i, yyjson_val *object)
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
static int read_inputs(reader *x, int32_t i, int32_t *seen, yyjson_val *object)
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

static int read_ops(reader *x)
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
    x->group = util_alloc(n, sizeof(int32_t));
    x->group_may = util_alloc(n, sizeof(uint64_t));
    int rc = x->p->time && x->p->bytes && x->p->may && x->p->name && x->group && x->group_may ? 0 : MOIRAI_EFAIL;
    yyjson_arr_foreach(x->ops, i, max, object) {
        rc = rc ? rc : read_op(x, (int32_t)i, object);
    }
    if (!rc && !(seen = util_alloc(x->n_tensors, sizeof *seen)))
        rc = MOIRAI_EFAIL;
    yyjson_arr_foreach(x->ops, i, max, object) {
        rc = rc ? rc : read_inputs(x, (int32_t)i, seen, object);
    }
    x->p->n_edges = (int32_t)x->n_edges;
    free(seen);
    return rc;
}

/* ---- what follows from the numbers ---- */

static int compare_sizes(const void *a, const void *b)
{
    const tensor *x = *(tensor *const *)a, *y = *(tensor *const *)b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int fill_table(const reader *x, const tensor *t, int64_t *out)
{
    for (int32_t c = 0; c < x->p->K * x->p->K; c++) {
        if (t->ns)
            out[c] = t->ns[c];
        else if (c / x->p->K != c % x->p->K) {
            __int128 ns = ((__int128)t->bytes * 1000000000 + x->rate[c] - 1) / x->rate[c] + x->latency[c];
            out[c] = (int64_t)UTIL_MIN(ns, PROVE_MAX_TIME);
        }
        if (out[c] >= PROVE_MAX_TIME)
            return moirai_error(MOIRAI_EINPUT, "moving tensor '%.200s' takes more than 2^61 ns", t->name);
    }
    return 0;
}

/* Tensors of one size share a table: networks have many tensors and few sizes. */
static int find_tables(reader *x)
{
    size_t cells = (size_t)x->p->K * (size_t)x->p->K, n = 0, n_tables = 0;
    tensor **by_size = util_alloc(x->n_tensors, sizeof *by_size);
    if (!by_size)
        return MOIRAI_EFAIL;
    for (size_t t = 0; t < x->n_tensors; t++)
        if (x->tensor[t].n_readers)
            by_size[n++] = &x->tensor[t];
    if (n)
        qsort(by_size, n, sizeof *by_size, compare_sizes);
    for (int pass = 0, rc = 0; pass < 2; pass++) {
        const tensor *last = NULL;
        size_t used = 0;
        for (size_t i = 0; i < n && !rc; i++) {
            bool shares = last && !by_size[i]->ns && last->bytes == by_size[i]->bytes;
            if (pass && !shares)
                rc = fill_table(x, by_size[i], x->p->table + used * cells);
            used += !shares;
            by_size[i]->table =
                pass ? x->p->table + (shares ? (size_t)(last->table - x->p->table) : (used - 1) * cells) : NULL;
            last = by_size[i]->ns ? last : by_size[i];
        }
        n_tables = used;
        if (!pass && !(x->p->table = prove_alloc(n_tables * cells, sizeof(int64_t))))
            rc = MOIRAI_EFAIL;
        if (rc || pass) {
            free(by_size);
            return rc;
        }
    }
    return 0;
}

static int mask_groups(reader *x)
{
    for (int32_t i = 0; i < x->p->n; i++) {
        if (x->group[i] != PROVE_NONE)
            x->p->may[i] = x->group_may[x->group[i]];
        if (!x->p->may[i])
            return moirai_error(MOIRAI_EINFEASIBLE, "no device can run operator '%.200s' and its group", x->p->name[i]);
    }
    return 0;
}

static int64_t most_of(const int64_t *value, int32_t n)
{
    int64_t most = 0;
    for (int32_t i = 0; i < n; i++)
        most = UTIL_MAX(most, value[i]);
    return most;
}

/* Sums of all times, and of all sizes, stay below 2^61. */
static int check_totals(const reader *x)
{
    __int128 ns = 0, bytes = 0;
    for (int32_t i = 0; i < x->p->n; i++) {
        ns += most_of(x->p->time + (int64_t)i * x->p->K, x->p->K);
        bytes += x->p->bytes[i];
    }
    for (size_t t = 0; t < x->n_tensors; t++) {
        bytes += x->tensor[t].bytes;
        if (x->tensor[t].table)
            ns += (__int128)most_of(x->tensor[t].table, x->p->K * x->p->K) * x->tensor[t].n_readers;
    }
    for (size_t w = 0; w < x->n_weights; w++)
        bytes += x->weight[w].bytes;
    if (ns >= PROVE_MAX_TIME || bytes >= PROVE_MAX_TIME)
        return moirai_error(MOIRAI_EINPUT, "its times or its sizes add up to more than 2^61");
    return 0;
}

static int settle(reader *x)
{
    int rc = find_tables(x);
    rc = rc ? rc : mask_groups(x);
    rc = rc ? rc : check_totals(x);
    for (int32_t e = 0; !rc && e < x->p->n_edges; e++) {
        x->p->edge[e].ns = x->tensor[x->p->edge[e].line].table;
        x->p->edge[e].line = 0;
    }
    for (size_t w = 0; !rc && w < x->n_weights; w++)
        if (!x->weight[w].apart)
            x->p->bytes[x->weight[w].first] += x->weight[w].bytes;
    return rc;
}

static int read_all(reader *x)
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
    return rc ? rc : settle(x);
}

int prove_problem_read(prove_problem *p, const moirai_prove_file *file)
{
    prove_problem raw = {.whole = true};
    reader x = {.label = file->label, .p = &raw};
    *p = (prove_problem){0};
    int rc = util_json_open(&raw.doc, file->text, file->length, file->label, "moirai-problem");
    if (rc)
        return rc;
    x.root = yyjson_doc_get_root(raw.doc);
    rc = read_all(&x);
    rc = rc ? rc : prove_problem_sort(p, &raw);
    for (size_t t = 0; t < x.n_tensors; t++)
        free(x.tensor[t].ns);
    void *all[] = {x.rate, x.latency, x.tensor, x.weight, x.group, x.group_may};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    util_names_free(x.devices);
    util_names_free(x.tensors);
    util_names_free(x.groups);
    util_names_free(x.weights);
    prove_problem_free(&raw);
    return rc ? util_json_label(rc, file->label) : 0;
}
