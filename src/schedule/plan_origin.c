/* Where a plan and its bound come from: the steps of the search that found them, and what every step has gained. */
#include "schedule/plan.h"
#include "util/util.h"

#include <stdlib.h>

void schedule_origin_clear(moirai_plan_origin *origin)
{
    for (int32_t i = 0; i < origin->n_steps; i++)
        free(origin->step[i].name);
    free(origin->step);
    free(origin->plan_by);
    free(origin->bound_by);
    *origin = (moirai_plan_origin){0};
}

static int set_name(char **out, const char *name)
{
    char *copy = name ? util_strdup(name) : NULL;
    if (name && !copy)
        return MOIRAI_EFAIL;
    free(*out);
    *out = copy;
    return 0;
}

int schedule_origin_bound_by(moirai_plan_origin *origin, const char *name)
{
    return set_name(&origin->bound_by, name);
}

int schedule_origin_plan_by(moirai_plan_origin *origin, const char *name)
{
    return set_name(&origin->plan_by, name);
}

int schedule_origin_add_step(moirai_plan_origin *origin, const char *name, const moirai_search_step *figures)
{
    size_t n = (size_t)origin->n_steps;
    char *copy = util_strdup(name);
    moirai_search_step *step = copy ? util_resize(origin->step, n + 1, sizeof *step) : NULL;
    if (!step) {
        free(copy);
        return MOIRAI_EFAIL;
    }
    origin->step = step;
    step[n] = *figures;
    step[n].name = copy;
    origin->n_steps++;
    return 0;
}

int schedule_origin_copy(moirai_plan_origin *origin, const moirai_plan_origin *from)
{
    moirai_plan_origin copy = {0};
    int rc = set_name(&copy.plan_by, from->plan_by);
    rc = rc ? rc : set_name(&copy.bound_by, from->bound_by);
    for (int32_t i = 0; i < from->n_steps && !rc; i++)
        rc = schedule_origin_add_step(&copy, from->step[i].name, &from->step[i]);
    if (rc) {
        schedule_origin_clear(&copy);
        return rc;
    }
    schedule_origin_clear(origin);
    *origin = copy;
    return 0;
}

void schedule_origin_write(util_writer *w, const moirai_plan_origin *origin)
{
    if (origin->plan_by)
        util_writer_pair_string(w, "plan_by", origin->plan_by);
    if (origin->bound_by)
        util_writer_pair_string(w, "bound_by", origin->bound_by);
    if (!origin->n_steps)
        return;
    util_writer_pair_open(w, "steps", '[');
    for (int32_t i = 0; i < origin->n_steps; i++) {
        const moirai_search_step *step = &origin->step[i];
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", step->name);
        util_writer_pair_int(w, "calls", step->calls);
        util_writer_pair_int(w, "plan_gain_ns", step->plan_gain_ns);
        util_writer_pair_int(w, "bound_gain_ns", step->bound_gain_ns);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_break(w);
}

static int read_step(moirai_plan_origin *origin, const char *label, yyjson_val *value, size_t index)
{
    util_json_at at = {label, "step", NULL, index};
    moirai_search_step step = {.cpu_ns = MOIRAI_UNKNOWN};
    const char *name = NULL;
    int64_t calls = 0;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : util_json_string(&name, NULL, &at, value, "name", true);
    if (rc)
        return rc;
    at.name = name;
    rc = util_json_int64(&calls, &at, value, "calls", true, 0);
    rc = rc ? rc : util_json_int64(&step.plan_gain_ns, &at, value, "plan_gain_ns", false, 0);
    rc = rc ? rc : util_json_int64(&step.bound_gain_ns, &at, value, "bound_gain_ns", false, 0);
    if (!rc && calls > INT32_MAX)
        rc = util_json_fail(&at, "calls is %lld, more than 2^31", (long long)calls);
    step.calls = (int32_t)calls;
    return rc ? rc : schedule_origin_add_step(origin, name, &step);
}

int schedule_origin_read(moirai_plan_origin *origin, const util_json_at *at, yyjson_val *root)
{
    const char *plan_by = NULL, *bound_by = NULL;
    yyjson_val *list = NULL, *item;
    size_t index, n;
    int rc = util_json_string(&plan_by, NULL, at, root, "plan_by", false);
    rc = rc ? rc : util_json_string(&bound_by, NULL, at, root, "bound_by", false);
    rc = rc ? rc : util_json_array(&list, at, root, "steps", false);
    rc = rc ? rc : set_name(&origin->plan_by, plan_by);
    rc = rc ? rc : set_name(&origin->bound_by, bound_by);
    yyjson_arr_foreach(list, index, n, item) {
        rc = rc ? rc : read_step(origin, at->label, item, index);
    }
    return rc;
}
