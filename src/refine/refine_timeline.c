/* Reading a moirai-timeline, as far as refining needs it. */
#include "refine/refine.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/sort.h"
#include "util/util.h"

#define MOST_NS 1000000000000000000ll /* 30 years; far from int64's end */

typedef struct reader {
    refine_timeline *t;
    size_t segment_capacity, op_capacity;
} reader;

void refine_timeline_free(refine_timeline *t)
{
    free(t->segment);
    free(t->transfer);
    free(t->op);
    free(t->op_number);
    yyjson_doc_free(t->doc);
}

/* Clocks of several machines may differ, so that a time is below 0; differences of two are never beyond int64. */
static int read_time(int64_t *out, const util_json_at *at, yyjson_val *object, const char *key, bool required,
                     int64_t least)
{
    int rc = util_json_int64(out, at, object, key, required, least);
    return rc || *out <= MOST_NS
               ? rc
               : util_json_fail(at, "%s is %lld, must be at most %lld", key, (long long)*out, MOST_NS);
}

static int read_times(int64_t *start, int64_t *finish, int64_t *median, const util_json_at *at, yyjson_val *object)
{
    int rc = read_time(start, at, object, "start_ns", false, -MOST_NS);
    rc = rc ? rc : read_time(finish, at, object, "finish_ns", false, -MOST_NS);
    return rc ? rc : read_time(median, at, object, "median_ns", true, -MOST_NS);
}

static int read_segment(reader *r, const util_json_at *at, yyjson_val *object)
{
    refine_timeline *t = r->t;
    yyjson_val *ops = NULL, *op;
    size_t i, n;
    int rc = util_json_object(at, object);
    rc = rc ? rc : util_json_array(&ops, at, object, "ops", true);
    if (rc)
        return rc;
    if (util_grow(&t->segment, &r->segment_capacity, t->n_segments + 1, sizeof *t->segment) ||
        util_grow(&t->op, &r->op_capacity, t->n_ops + yyjson_arr_size(ops), sizeof *t->op))
        return MOIRAI_EFAIL;
    refine_segment *s = &t->segment[t->n_segments++];
    *s =
        (refine_segment){.device = t->n_devices, .first_op = (int32_t)t->n_ops, .n_ops = (int32_t)yyjson_arr_size(ops)};
    rc = read_times(&s->start_ns, &s->finish_ns, &s->median_ns, at, object);
    rc = rc ? rc : read_time(&s->work_ns, at, object, "planned_work_ns", false, 0);
    if (rc)
        return rc;
    if (s->median_ns < 0)
        return util_json_fail(at, "median_ns is %lld, must be at least 0", (long long)s->median_ns);
    yyjson_arr_foreach(ops, i, n, op) {
        if ((rc = util_json_value_string(&t->op[t->n_ops++], NULL, at, op, "ops")))
            return rc;
    }
    return 0;
}

static int read_device(reader *r, const char *label, yyjson_val *object, size_t index)
{
    util_json_at at = {.label = label, .kind = "device", .index = index};
    yyjson_val *segments = NULL, *segment;
    size_t i, n;
    int rc = util_json_object(&at, object);
    rc = rc ? rc : util_json_string(&at.name, NULL, &at, object, "name", true);
    rc = rc ? rc : util_json_array(&segments, &at, object, "segments", true);
    if (rc)
        return rc;
    if (r->t->n_devices == MOIRAI_MASK_DEVICES)
        return util_json_fail(&at, "more than %d devices", MOIRAI_MASK_DEVICES);
    r->t->device[r->t->n_devices] = at.name;
    yyjson_arr_foreach(segments, i, n, segment) {
        if ((rc = read_segment(r, &at, segment)))
            return rc;
    }
    r->t->n_devices++;
    return 0;
}

static int read_end(int32_t *out, const refine_timeline *t, const util_json_at *at, yyjson_val *object, const char *key)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, key, true);
    if (rc)
        return rc;
    for (*out = 0; *out < t->n_devices; ++*out)
        if (!strcmp(t->device[*out], name))
            return 0;
    return util_json_fail(at, "%s is '%.200s': no such device", key, name);
}

static int read_transfer(refine_timeline *t, const char *label, yyjson_val *object, size_t index)
{
    util_json_at at = {.label = label, .kind = "transfer", .index = index};
    refine_transfer *x = &t->transfer[t->n_transfers++];
    int rc = util_json_object(&at, object);
    rc = rc ? rc : read_end(&x->from, t, &at, object, "from");
    rc = rc ? rc : read_end(&x->to, t, &at, object, "to");
    rc = rc ? rc : util_json_string(&x->tensor, NULL, &at, object, "tensor", false);
    rc = rc ? rc : util_json_int64(&x->bytes, &at, object, "bytes", true, 0);
    rc = rc ? rc : read_time(&x->planned_ns, &at, object, "planned_start_ns", false, -MOST_NS);
    rc = rc ? rc : read_times(&x->start_ns, &x->finish_ns, &x->median_ns, &at, object);
    if (!rc && x->from == x->to)
        rc = util_json_fail(&at, "from '%.200s' to itself", t->device[x->from]);
    return rc;
}

/* What the run says of requests in flight. */
static int read_load(refine_timeline *t, const char *label, yyjson_val *root)
{
    util_json_at at = {.label = label};
    yyjson_val *rate = yyjson_obj_get(root, "rate"), *devices = NULL, *item;
    size_t i, n;
    if (!rate || yyjson_is_null(rate))
        return 0;
    at.kind = "rate";
    int rc = util_json_object(&at, rate);
    rc = rc ? rc : util_json_array(&devices, &at, rate, "devices", true);
    if (rc)
        return rc;
    yyjson_arr_foreach(devices, i, n, item) {
        util_json_at where = {.label = label, .kind = "rate's device", .index = i};
        int32_t k = 0;
        rc = util_json_object(&where, item);
        rc = rc ? rc : read_end(&k, t, &where, item, "name");
        rc = rc ? rc : read_time(&t->busy_ns[k], &where, item, "busy_ns", true, 0);
        rc = rc ? rc : read_time(&t->load_ns[k], &where, item, "planned_ns", true, 0);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_all(reader *r, yyjson_val *root, const char *label)
{
    util_json_at at = {.label = label};
    yyjson_val *devices = NULL, *transfers = NULL, *item;
    size_t i, n;
    int rc = read_time(&r->t->latency_ns, &at, root, "median_ns", false, 0);
    rc = rc ? rc : read_time(&r->t->planned_ns, &at, root, "planned_ns", false, 0);
    rc = rc ? rc : util_json_array(&devices, &at, root, "devices", true);
    rc = rc ? rc : util_json_array(&transfers, &at, root, "transfers", false);
    if (rc)
        return rc;
    yyjson_arr_foreach(devices, i, n, item) {
        if ((rc = read_device(r, label, item, i)))
            return rc;
    }
    if ((rc = read_load(r->t, label, root)))
        return rc;
    r->t->transfer = util_alloc(transfers ? yyjson_arr_size(transfers) : 0, sizeof *r->t->transfer);
    if (!r->t->transfer)
        return MOIRAI_EFAIL;
    if (!transfers)
        return 0;
    yyjson_arr_foreach(transfers, i, n, item) {
        if ((rc = read_transfer(r->t, label, item, i)))
            return rc;
    }
    return 0;
}

int refine_timeline_parse(refine_timeline *out, const char *json, size_t length, const char *label)
{
    reader r = {.t = out};
    yyjson_doc *doc;
    memset(out, 0, sizeof *out);
    int rc = util_json_open(&doc, json, length, label, "moirai-timeline");
    if (rc)
        return rc;
    out->doc = doc;
    out->label = label;
    rc = read_all(&r, yyjson_doc_get_root(doc), label);
    if (rc)
        refine_timeline_free(out);
    return rc;
}

double refine_median(double *number, size_t n)
{
    if (!n)
        return 0;
    qsort(number, n, sizeof *number, util_by_real);
    return number[(n - 1) / 2];
}
