/* moirai-plan files, reading (formats.md). Names become numbers of the given problem; whether the plan is right is
 * moirai_plan_check's business, so what can be told apart from nonsense is read: operators may be missing, transfers
 * may go anywhere. */
#include "schedule/plan.h"
#include "util/json.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static int read_device(int32_t *out, const util_json_at *at, yyjson_val *object, const char *key,
                       const moirai_problem *p)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, key, true);
    if (rc)
        return rc;
    *out = moirai_problem_find_device(p, name);
    if (*out == MOIRAI_NONE)
        return util_json_fail(at, "%s '%s': not a device of problem '%s'", key, name, p->name);
    return 0;
}

static int read_op(moirai_plan *plan, const moirai_problem *p, const char *label, yyjson_val *value, size_t index)
{
    util_json_at at = {label, "op", NULL, index};
    const char *name = NULL;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : util_json_string(&name, NULL, &at, value, "name", true);
    if (rc)
        return rc;
    at.name = name;
    int32_t op = moirai_problem_find_op(p, name), device = MOIRAI_NONE;
    if (op == MOIRAI_NONE)
        return util_json_fail(&at, "not an operator of problem '%s'", p->name);
    if (plan->op_device[op] != MOIRAI_NONE)
        return util_json_fail(&at, "placed twice");
    rc = read_device(&device, &at, value, "device", p);
    rc = rc ? rc : util_json_int64(&plan->op_start_ns[op], &at, value, "start_ns", true, INT64_MIN);
    rc = rc ? rc : util_json_int64(&plan->op_finish_ns[op], &at, value, "finish_ns", true, INT64_MIN);
    plan->op_device[op] = device;
    return rc;
}

static int read_transfer(moirai_transfer *out, const moirai_problem *p, const char *label, yyjson_val *value,
                         size_t index)
{
    util_json_at at = {label, "transfer", NULL, index};
    const char *tensor = NULL, *consumer = NULL;
    bool per_edge = p->flow == MOIRAI_FLOW_EDGE;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : util_json_string(&tensor, NULL, &at, value, "tensor", true);
    if (rc)
        return rc;
    at.name = tensor;
    out->tensor = moirai_problem_find_tensor(p, tensor);
    if (out->tensor == MOIRAI_NONE)
        return util_json_fail(&at, "no operator of problem '%s' writes this tensor", p->name);
    out->reader = MOIRAI_NONE;
    if (per_edge) {
        rc = util_json_string(&consumer, NULL, &at, value, "consumer", true);
        if (rc)
            return rc;
        out->reader = moirai_problem_find_op(p, consumer);
        if (out->reader == MOIRAI_NONE)
            return util_json_fail(&at, "consumer '%s': not an operator of problem '%s'", consumer, p->name);
    }
    rc = read_device(&out->from, &at, value, "from", p);
    rc = rc ? rc : read_device(&out->to, &at, value, "to", p);
    rc = rc ? rc : util_json_int64(&out->start_ns, &at, value, "start_ns", true, INT64_MIN);
    rc = rc ? rc : util_json_int64(&out->finish_ns, &at, value, "finish_ns", true, INT64_MIN);
    return rc;
}

static int read_device_figures(moirai_plan *plan, const moirai_problem *p, const char *label, yyjson_val *value,
                               size_t index)
{
    util_json_at at = {label, "device", NULL, index};
    int32_t k = MOIRAI_NONE;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : read_device(&k, &at, value, "name", p);
    rc = rc ? rc : util_json_int64(&plan->device_busy_ns[k], &at, value, "busy_ns", false, 0);
    rc = rc ? rc : util_json_int64(&plan->device_memory_bytes[k], &at, value, "memory_bytes", false, 0);
    rc = rc ? rc : util_json_int64(&plan->device_peak_bytes[k], &at, value, "peak_bytes", false, 0);
    return rc;
}

/* Fused and unfused problems share many names: a plan of the one read as a plan of the other would be half a plan. */
static int another_problem(const moirai_problem *p, const util_json_at *at, size_t n_ops)
{
    return util_json_fail(at,
                          "a plan of another problem: problem '%.80s' has %d operators, the plan %zu: made with other "
                          "--rules? 'moirai plan --problem-out' writes the problem that its plan belongs to",
                          p->name, p->n_ops, n_ops);
}

/* What was proven of another problem is dropped. Of a plan alone (`partial`) nothing was proven: it is what the file
 * claims. */
static int read_digest(moirai_plan *plan, const moirai_problem *p, const util_json_at *at, yyjson_val *root)
{
    size_t n_ops = yyjson_arr_size(yyjson_obj_get(root, "ops"));
    const char *text = NULL;
    int rc = util_json_string(&text, NULL, at, root, "problem_digest", false);
    if (rc || !text)
        return rc;
    char *end;
    plan->problem_digest = strtoull(text, &end, 16);
    if (strlen(text) != 16 || *end != '\0')
        return util_json_fail(at, "problem_digest is \"%.40s\", expected 16 hexadecimal digits", text);
    if (p->partial || plan->problem_digest == moirai_problem_digest(p))
        return 0;
    plan->lower_bound_ns = plan->certified_bound_ns = plan->solver_bound_ns = MOIRAI_UNKNOWN;
    plan->uncertified = 0;
    schedule_origin_clear(&plan->origin);
    if (plan->rate)
        plan->rate->period_bound_ns = plan->rate->period_certified_ns = MOIRAI_UNKNOWN;
    return n_ops == (size_t)p->n_ops ? 0 : another_problem(p, at, n_ops);
}

/* Reasons that this version does not know are passed over. */
static int read_uncertified(moirai_plan *plan, const util_json_at *at, yyjson_val *root)
{
    yyjson_val *list = NULL, *item;
    size_t index, n;
    int rc = util_json_array(&list, at, root, "uncertified_because", false);
    if (rc || !list)
        return rc;
    yyjson_arr_foreach(list, index, n, item) {
        const char *text;
        if ((rc = util_json_value_string(&text, NULL, at, item, "an item of uncertified_because")))
            return rc;
        for (int i = 0; i < MOIRAI_UNCERTIFIED_BITS; i++)
            if (!strcmp(text, moirai_uncertified_text(1u << i)))
                plan->uncertified |= 1u << i;
    }
    return 0;
}

static int read_head(moirai_plan *plan, const util_json_at *at, yyjson_val *root)
{
    const char *placer = "", *problem = plan->problem;
    int64_t seed = 1;
    int rc = util_json_string(&problem, NULL, at, root, "problem", false);
    rc = rc ? rc : util_json_string(&placer, NULL, at, root, "placer", false);
    yyjson_val *given = yyjson_obj_get(root, "seed");
    if (!rc && !yyjson_is_uint(given)) /* seeds above 2^63 are seeds too */
        rc = util_json_int64(&seed, at, root, "seed", false, 0);
    rc = rc ? rc : util_json_int64(&plan->makespan_ns, at, root, "makespan_ns", true, 0);
    rc = rc ? rc : util_json_int64(&plan->lower_bound_ns, at, root, "lower_bound_ns", false, 0);
    rc = rc ? rc : util_json_int64(&plan->certified_bound_ns, at, root, "certified_bound_ns", false, 0);
    rc = rc ? rc : util_json_int64(&plan->solver_bound_ns, at, root, "solver_bound_ns", false, 0);
    rc = rc ? rc : read_uncertified(plan, at, root);
    rc = rc ? rc : schedule_origin_read(&plan->origin, at, root);
    rc = rc ? rc : util_json_int64(&plan->generation_ns, at, root, "generation_ns", false, 0);
    if (rc)
        return rc;
    plan->seed = yyjson_is_uint(given) ? yyjson_get_uint(given) : (uint64_t)seed;
    char *problem_copy = util_strdup(problem), *placer_copy = util_strdup(placer);
    if (!problem_copy || !placer_copy) {
        free(problem_copy);
        free(placer_copy);
        return MOIRAI_EFAIL;
    }
    free(plan->problem);
    free(plan->placer);
    plan->problem = problem_copy;
    plan->placer = placer_copy;
    return 0;
}

static int read_lists(moirai_plan *plan, const moirai_problem *p, const char *label, yyjson_val *ops,
                      yyjson_val *transfers, yyjson_val *devices)
{
    size_t index, n;
    yyjson_val *value;
    int rc = 0;
    yyjson_arr_foreach(ops, index, n, value) {
        rc = rc ? rc : read_op(plan, p, label, value, index);
    }
    yyjson_arr_foreach(transfers, index, n, value) {
        rc = rc ? rc : read_transfer(&plan->transfer[index], p, label, value, index);
    }
    yyjson_arr_foreach(devices, index, n, value) {
        rc = rc ? rc : read_device_figures(plan, p, label, value, index);
    }
    return rc;
}

static int read_root(moirai_plan **out, const moirai_problem *p, yyjson_val *root, const char *label)
{
    util_json_at at = {label, NULL, NULL, 0};
    yyjson_val *ops = NULL, *transfers = NULL, *devices = NULL;
    int rc = util_json_array(&ops, &at, root, "ops", true);
    rc = rc ? rc : util_json_array(&transfers, &at, root, "transfers", true);
    rc = rc ? rc : util_json_array(&devices, &at, root, "devices", false);
    if (!rc && yyjson_arr_size(transfers) > INT32_MAX)
        rc = util_json_fail(&at, "%zu transfers, more than 2^31", yyjson_arr_size(transfers));
    rc = rc ? rc : schedule_plan_new(out, p->name, p->n_ops, (int32_t)yyjson_arr_size(transfers), p->n_devices);
    rc = rc ? rc : read_head(*out, &at, root);
    rc = rc ? rc : schedule_rate_read(*out, p, &at, root);
    rc = rc ? rc : read_digest(*out, p, &at, root);
    rc = rc ? rc : read_lists(*out, p, label, ops, transfers, devices);
    rc = rc ? rc : schedule_rate_finish(*out, p, &at);
    if (!rc)
        schedule_plan_sort_transfers(*out);
    return rc;
}

int moirai_plan_parse(moirai_plan **out, const moirai_problem *p, const char *json, size_t length, const char *label)
{
    *out = NULL;
    yyjson_doc *doc;
    int rc = util_json_open(&doc, json, length, label, "moirai-plan");
    if (rc)
        return rc;
    rc = read_root(out, p, yyjson_doc_get_root(doc), label);
    yyjson_doc_free(doc);
    if (rc) {
        moirai_plan_free(*out);
        *out = NULL;
    }
    return rc;
}

int moirai_plan_read(moirai_plan **out, const moirai_problem *p, const char *path)
{
    *out = NULL;
    char *data;
    size_t length;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    rc = moirai_plan_parse(out, p, data, length, path);
    free(data);
    return rc;
}
