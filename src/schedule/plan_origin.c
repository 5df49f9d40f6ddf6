/* Where a plan and its bound come from: the steps of the search that found them, and what every step has gained. */
#include "schedule/plan.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

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
    copy.starts_ns = from->starts_ns;
    copy.rival_ns = from->rival_ns;
    copy.tries = from->tries;
    copy.stale = from->stale;
    schedule_origin_clear(origin);
    *origin = copy;
    return 0;
}

/* What the weak side is told from. */
static void write_evidence(util_writer *w, const moirai_plan_origin *origin)
{
    if (!origin->tries)
        return;
    util_writer_pair_open(w, "evidence", '{');
    util_writer_pair_int(w, "starts_ns", origin->starts_ns);
    util_writer_pair_int(w, "rival_ns", origin->rival_ns);
    util_writer_pair_int(w, "tries", origin->tries);
    util_writer_pair_int(w, "stale", origin->stale);
    util_writer_close(w, '}');
    util_writer_break(w);
}

void schedule_origin_write(util_writer *w, const moirai_plan_origin *origin)
{
    if (origin->plan_by)
        util_writer_pair_string(w, "plan_by", origin->plan_by);
    if (origin->bound_by)
        util_writer_pair_string(w, "bound_by", origin->bound_by);
    write_evidence(w, origin);
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

static int read_evidence(moirai_plan_origin *origin, const char *label, yyjson_val *value)
{
    util_json_at at = {label, "evidence", NULL, 0};
    int64_t tries = 0, stale = 0;
    if (!value)
        return 0;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : util_json_int64(&origin->starts_ns, &at, value, "starts_ns", false, 0);
    rc = rc ? rc : util_json_int64(&origin->rival_ns, &at, value, "rival_ns", false, 0);
    rc = rc ? rc : util_json_int64(&tries, &at, value, "tries", false, 0);
    rc = rc ? rc : util_json_int64(&stale, &at, value, "stale", false, 0);
    if (!rc && (tries > INT32_MAX || stale > tries))
        rc = util_json_fail(&at, "stale is %lld of %lld tries", (long long)stale, (long long)tries);
    origin->tries = rc ? 0 : (int32_t)tries;
    origin->stale = rc ? 0 : (int32_t)stale;
    return rc;
}

int schedule_origin_read(moirai_plan_origin *origin, const util_json_at *at, yyjson_val *root)
{
    const char *plan_by = NULL, *bound_by = NULL;
    yyjson_val *list = NULL, *item;
    size_t index, n;
    int rc = util_json_string(&plan_by, NULL, at, root, "plan_by", false);
    rc = rc ? rc : util_json_string(&bound_by, NULL, at, root, "bound_by", false);
    rc = rc ? rc : util_json_array(&list, at, root, "steps", false);
    rc = rc ? rc : read_evidence(origin, at->label, yyjson_obj_get(root, "evidence"));
    rc = rc ? rc : set_name(&origin->plan_by, plan_by);
    rc = rc ? rc : set_name(&origin->bound_by, bound_by);
    yyjson_arr_foreach(list, index, n, item) {
        rc = rc ? rc : read_step(origin, at->label, item, index);
    }
    return rc;
}

/* ---- the weak side of a wide gap ----
 *
 * Is it the plan or the bound that is weak? Nothing of this is proven. The search's own evidence says how much shorter a plan
 * it might still have found: where the second best of several hot annealing runs has ended by itself (runs that end alike have
 * probably found what there is), and whether the last plans that were offered still gained. What that leaves of the gap is
 * the bound's, probably. */

#define WIDE_GAP 0.1
#define MOST_OF_GAP 0.5   /* what runs lie apart, of the gap: from here on the plan is suspected, */
#define LITTLE_OF_GAP 0.2 /* and up to here the bound */
#define STILL_GAINING 2   /* fewer plans than this in vain: nobody knows where the search would have ended */

typedef enum side { NOTHING, BOUND, PLAN, OPEN } side;

/* How far `other` lies above the plan, as a share of it; negative where it is shorter. */
static double above(const moirai_plan *plan, int64_t other_ns)
{
    return plan->makespan_ns > 0 ? (double)other_ns / (double)plan->makespan_ns - 1 : 0;
}

static side find_side(const moirai_plan *plan)
{
    const moirai_plan_origin *o = &plan->origin;
    double gap = moirai_plan_gap(plan);
    if (gap <= WIDE_GAP || !o->tries)
        return NOTHING;
    if (!o->rival_ns || (o->starts_ns && o->rival_ns >= o->starts_ns)) /* it had no time to get anywhere */
        return OPEN;
    double apart = above(plan, o->rival_ns);
    if (apart >= MOST_OF_GAP * gap)
        return PLAN;
    return apart <= LITTLE_OF_GAP * gap && o->stale >= STILL_GAINING ? BOUND : OPEN;
}

const char *moirai_plan_weak_side(const moirai_plan *plan)
{
    static const char *const name[] = {NULL, "bound", "plan", "open"};
    return name[find_side(plan)];
}

void moirai_plan_weak_text(const moirai_plan *plan, char *out, size_t size)
{
    static const char *const words[] = {"", "likely the bound", "likely the plan", "not known"};
    const moirai_plan_origin *o = &plan->origin;
    side weak = find_side(plan);
    char starts[80] = "", rival[80] = "no annealing was long enough to tell";
    if (size)
        *out = '\0';
    if (weak == NOTHING)
        return;
    if (o->starts_ns)
        snprintf(starts, sizeof starts, "; the best list scheduler's plan is %.1f %% longer",
                 100 * above(plan, o->starts_ns));
    if (o->rival_ns)
        snprintf(rival, sizeof rival, "the second of several annealing runs ended %.1f %% above it",
                 100 * above(plan, o->rival_ns));
    snprintf(out, size, "%s: %s, the last %d of %d plans were no shorter%s", words[weak], rival, o->stale, o->tries,
             starts);
}
