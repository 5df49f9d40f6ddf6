/* A problem that fits a plan of which nothing else is known: a timeline can be shown without the problem's file.
 *
 * The plan's own text becomes a problem's text. Operators run where the plan has them, in the time that they take
 * there; tensors that are sent get a producer only because a problem needs one. Nothing is derived from either:
 * `partial` says so, and the analysis stops at what the plan itself shows. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

typedef struct alone {
    const char *path;
    yyjson_val *root, *ops, *transfers, *devices;
    int32_t n_devices;
    util_names *device;
    const char *name[MOIRAI_MAX_DEVICES];
} alone;

static int add_device(alone *x, const util_json_at *at, yyjson_val *object, const char *key)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, key, true);
    if (rc || util_names_get(x->device, name) >= 0)
        return rc;
    if (x->n_devices == MOIRAI_MAX_DEVICES)
        return util_json_fail(at, "more than %d devices", MOIRAI_MAX_DEVICES);
    x->name[x->n_devices] = name;
    return util_names_put(x->device, name, x->n_devices++) < 0 ? MOIRAI_EFAIL : 0;
}

static int find_devices(alone *x)
{
    size_t i, n;
    yyjson_val *v;
    int rc = 0;
    const struct {
        yyjson_val *list;
        const char *kind, *key;
    } all[] = {{x->devices, "device", "name"},
               {x->ops, "op", "device"},
               {x->transfers, "transfer", "from"},
               {x->transfers, "transfer", "to"}};
    for (size_t j = 0; j < sizeof all / sizeof *all && !rc; j++) {
        if (!all[j].list)
            continue;
        yyjson_arr_foreach(all[j].list, i, n, v) {
            util_json_at at = {x->path, all[j].kind, NULL, i};
            if ((rc = util_json_object(&at, v)) || (rc = add_device(x, &at, v, all[j].key)))
                return rc;
        }
    }
    if (!x->n_devices)
        return moirai_error(MOIRAI_EINPUT, "%s: the plan has no devices", x->path);
    return rc;
}

static void write_devices(util_writer *w, const alone *x)
{
    util_writer_pair_open(w, "devices", '[');
    for (int32_t k = 0; k < x->n_devices; k++) {
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", x->name[k]);
        util_writer_pair_int(w, "memory_bytes", 0);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_pair_open(w, "channels", '[');
    for (int32_t k = 0; k < x->n_devices * x->n_devices; k++) {
        if (k / x->n_devices == k % x->n_devices)
            continue;
        util_writer_open(w, '{');
        util_writer_pair_string(w, "from", x->name[k / x->n_devices]);
        util_writer_pair_string(w, "to", x->name[k % x->n_devices]);
        util_writer_pair_int(w, "bytes_per_second", 1);
        util_writer_pair_int(w, "latency_ns", 0);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

/* Tensors hang on the first operator: somebody has to make them. */
static int write_tensors(util_writer *w, yyjson_val *transfers, const alone *x, bool *per_edge)
{
    size_t i, n;
    yyjson_val *v;
    util_names *seen = util_names_new(64);
    int rc = seen ? 0 : MOIRAI_EFAIL;
    util_writer_pair_open(w, "outputs", '[');
    if (transfers && !rc) {
        yyjson_arr_foreach(transfers, i, n, v) {
            util_json_at at = {x->path, "transfer", NULL, i};
            const char *name = NULL;
            int64_t bytes = 0;
            *per_edge |= yyjson_is_str(yyjson_obj_get(v, "consumer"));
            rc = util_json_string(&name, NULL, &at, v, "tensor", true);
            rc = rc ? rc : util_json_int64(&bytes, &at, v, "bytes", false, 0);
            if (rc)
                break;
            if (util_names_put(seen, name, (int32_t)i) != (int32_t)i)
                continue;
            util_writer_open(w, '{');
            util_writer_pair_string(w, "name", name);
            util_writer_pair_int(w, "bytes", bytes);
            util_writer_pair_open(w, "transfer_ns", '[');
            for (int32_t a = 0; a < x->n_devices; a++) {
                util_writer_open(w, '[');
                for (int32_t b = 0; b < x->n_devices; b++)
                    util_writer_int(w, 0);
                util_writer_close(w, ']');
            }
            util_writer_close(w, ']');
            util_writer_close(w, '}');
        }
    }
    util_writer_close(w, ']');
    util_names_free(seen);
    return rc;
}

static int write_op(util_writer *w, const alone *x, yyjson_val *v, size_t index, bool *per_edge)
{
    util_json_at at = {x->path, "op", NULL, index};
    const char *name = NULL, *device = NULL;
    int64_t start = 0, finish = 0;
    int rc = util_json_string(&name, NULL, &at, v, "name", true);
    rc = rc ? rc : util_json_string(&device, NULL, &at, v, "device", true);
    rc = rc ? rc : util_json_int64(&start, &at, v, "start_ns", true, 0);
    rc = rc ? rc : util_json_int64(&finish, &at, v, "finish_ns", true, start);
    if (rc)
        return rc;
    int32_t k = util_names_get(x->device, device);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", name);
    util_writer_pair_string(w, "type", "operator");
    util_writer_pair_int(w, "memory_bytes", 0);
    util_writer_pair_open(w, "time_ns", '[');
    for (int32_t d = 0; d < x->n_devices; d++)
        if (d == k)
            util_writer_int(w, finish - start);
        else
            util_writer_null(w);
    util_writer_close(w, ']');
    util_writer_pair_open(w, "inputs", '[');
    util_writer_close(w, ']');
    rc = write_tensors(w, index == 0 ? x->transfers : NULL, x, per_edge);
    util_writer_close(w, '}');
    return rc;
}

static void write_texts(util_writer *w, const char *key, yyjson_val *list)
{
    size_t i, n;
    yyjson_val *v;
    if (!yyjson_is_arr(list))
        return;
    util_writer_pair_open(w, key, '[');
    yyjson_arr_foreach(list, i, n, v) {
        if (yyjson_is_str(v))
            util_writer_string(w, yyjson_get_str(v));
    }
    util_writer_close(w, ']');
}

/* What must stand beside the plan wherever it is shown. */
static void write_said(util_writer *w, const alone *x)
{
    yyjson_val *assumed = yyjson_obj_get(yyjson_obj_get(x->root, "onnx"), "assumed");
    if (yyjson_is_arr(assumed)) {
        util_writer_pair_open(w, "onnx", '{');
        write_texts(w, "assumed", assumed);
        util_writer_close(w, '}');
    }
    write_texts(w, "uncosted", yyjson_obj_get(x->root, "uncosted"));
}

static int write_problem(util_writer *w, const alone *x, const char *name)
{
    size_t i, n;
    yyjson_val *v;
    bool per_edge = false;
    int rc = 0;
    util_writer_begin(w, "moirai-problem");
    util_writer_pair_string(w, "name", name);
    write_said(w, x);
    write_devices(w, x);
    util_writer_pair_open(w, "ops", '[');
    yyjson_arr_foreach(x->ops, i, n, v) {
        if ((rc = write_op(w, x, v, i, &per_edge)))
            return rc;
    }
    util_writer_close(w, ']');
    util_writer_pair_string(w, "flow", per_edge ? "edge" : "tensor");
    util_writer_pair_string(w, "congestion", "port");
    util_writer_pair_string(w, "memory", "static");
    util_writer_close(w, '}');
    return 0;
}

static int build(moirai_problem **out, alone *x)
{
    util_json_at at = {.label = x->path};
    util_writer w;
    const char *name = "plan";
    char *json;
    size_t length;
    int rc = util_json_array(&x->ops, &at, x->root, "ops", true);
    rc = rc ? rc : util_json_array(&x->transfers, &at, x->root, "transfers", false);
    rc = rc ? rc : util_json_array(&x->devices, &at, x->root, "devices", false);
    rc = rc ? rc : util_json_string(&name, NULL, &at, x->root, "problem", false);
    rc = rc ? rc : find_devices(x);
    if (rc)
        return rc;
    util_writer_init(&w);
    rc = write_problem(&w, x, name);
    if (rc) {
        util_writer_free(&w);
        return rc;
    }
    if (!(json = util_writer_take(&w, &length)))
        return MOIRAI_EFAIL;
    rc = moirai_problem_parse(out, json, length, x->path);
    free(json);
    if (!rc)
        (*out)->partial = true;
    return rc;
}

int moirai_problem_of_plan(moirai_problem **out, const char *plan_path)
{
    alone x = {.path = plan_path};
    yyjson_doc *doc;
    *out = NULL;
    int rc = util_json_read(&doc, plan_path, "moirai-plan");
    if (rc)
        return rc;
    x.root = yyjson_doc_get_root(doc);
    x.device = util_names_new(MOIRAI_MAX_DEVICES);
    rc = x.device ? build(out, &x) : MOIRAI_EFAIL;
    util_names_free(x.device);
    yyjson_doc_free(doc);
    return rc;
}
