/* Which one change of the cluster helps most: the problem is placed with each change by itself.
 *
 * A change is worth what the best plan gains by it, and a search does not find the best plan. So each run tells two
 * numbers, a makespan that is reached and a bound that is proven, and the unchanged problem is placed with the same
 * effort, too. What one run found holds for others: the given plan's devices and order, replayed under a change that
 * takes nothing away, end no later; a plan without a device is a plan of all devices; a bound on a problem with a
 * faster link or another device is one on the problem without. So the claims never say that more is worse than less. A
 * change has moved the bound where its plan is faster than anything that the unchanged problem can have; where it is
 * merely faster than the best plan at hand, only the plan moved.
 *
 * A change that takes nothing away starts from the given plan, replayed, and improves it: a search from nothing would
 * compare its own luck with the search that made the plan.
 *
 * Runs are independent: threads take them from a list, one thread each. A search of a few hundred operators that gets a
 * fraction of a second shows nothing, so a time limit is shared among as many runs as can have a useful search
 * (USEFUL_S an operator), the most promising first. Where these end before their time, the others have what is left, as
 * long as it is enough for one more useful search; what remains says that it was not tried. A run that the clock
 * or the user ended while its gap was open is marked. Without a time limit the runs give what moirai_place gives on the
 * problem of moirai_problem_change, whatever the number of threads. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/plan_order.h"
#include "util/pool.h"
#include "util/util.h"

#define USEFUL_S 2e-3 /* of one thread, for each operator: by then the search has left its starts behind */

typedef struct runner {
    const moirai_analysis *a;
    const moirai_what_if_options *o;
    moirai_what_if *list;
    int32_t n, sure; /* the first `sure` of n have a useful search, however long each takes */
    int threads;
    double deadline_s; /* 0: none */
    double useful_s;   /* what a search should have */
} runner;

void moirai_what_if_options_init(moirai_what_if_options *o)
{
    *o = (moirai_what_if_options){.placer = "moirai"};
    moirai_budget_init(&o->budget);
    o->budget.time_limit_s = 30;
}

/* ---- the list of changes ---- */

/* Devices of one kind: of one type where the cluster says, with the same memory, and the same times for everything. */
static bool same_kind(const moirai_analysis *a, const moirai_cluster *c, int32_t x, int32_t y)
{
    const moirai_problem *p = a->problem;
    if (p->device_memory_bytes[x] != p->device_memory_bytes[y] || (c && strcmp(c->device[x].type, c->device[y].type)))
        return false;
    for (int32_t i = 0; i < p->n_ops; i++)
        if (moirai_op_ns(p, i, x) != moirai_op_ns(p, i, y))
            return false;
    return true;
}

static bool is_link(const moirai_cluster *c, int32_t x, int32_t y)
{
    for (int32_t l = 0; c && l < c->n_links; l++)
        if ((c->link[l].from == x && c->link[l].to == y) || (c->link[l].from == y && c->link[l].to == x))
            return true;
    return !c;
}

/* Could the memory of device k ever keep something away from it? Where all of the network fits, more is no change. */
static bool memory_binds(const moirai_problem *p, int32_t k)
{
    double most = 0; /* a sum of all, which no plan exceeds */
    for (int32_t i = 0; i < p->n_ops; i++)
        most += (double)p->op_memory_bytes[i];
    for (int32_t i = 0; i < p->n_weights; i++)
        most += (double)p->weight_bytes[i];
    for (int32_t t = 0; t < p->n_tensors && p->memory == MOIRAI_MEMORY_PEAK; t++)
        most += (double)p->tensor_bytes[t];
    return most > (double)p->device_memory_bytes[k];
}

/* What of the critical path a change could touch: changes that touch most come first, and one device less, which can't
 * help, last. */
static int64_t at_stake(const moirai_analysis *a, const moirai_change *change)
{
    int32_t K = a->n_devices, x = change->a, y = change->b;
    int64_t sum = 0;
    if (change->kind == MOIRAI_CHANGE_NONE)
        return INT64_MAX;
    if (change->kind == MOIRAI_CHANGE_LINK)
        return a->path_link_ns[x * K + y] + a->path_link_ns[y * K + x];
    if (change->kind == MOIRAI_CHANGE_LESS)
        return -1;
    sum = a->path_compute_ns[x] + a->path_wait_ns[x];
    return change->kind == MOIRAI_CHANGE_SPEED ? sum
                                               : sum / 2; /* with equal stakes, speed before memory before number */
}

static void put(runner *r, moirai_change_kind kind, int32_t x, int32_t y)
{
    r->list[r->n++] = (moirai_what_if){.change = {kind, x, y},
                                       .makespan_ns = MOIRAI_UNKNOWN,
                                       .search_ns = MOIRAI_UNKNOWN,
                                       .replay_ns = MOIRAI_UNKNOWN,
                                       .lower_bound_ns = MOIRAI_UNKNOWN,
                                       .search_bound_ns = MOIRAI_UNKNOWN};
}

/* The first device of a kind speaks for it; the least busy one is the one to do without. */
static void put_kind(runner *r, int32_t first)
{
    const moirai_analysis *a = r->a;
    int32_t idlest = first, other = MOIRAI_NONE;
    for (int32_t k = 0; k < first; k++)
        if (same_kind(a, r->o->cluster, k, first))
            return;
    for (int32_t k = first + 1; k < a->n_devices; k++)
        if (same_kind(a, r->o->cluster, first, k)) {
            other = other == MOIRAI_NONE ? k : other;
            idlest = a->busy_ns[k] < a->busy_ns[idlest] ? k : idlest;
        }
    if (a->n_devices > 1)
        put(r, MOIRAI_CHANGE_LESS, idlest, MOIRAI_NONE);
    if (a->n_devices < MOIRAI_MAX_DEVICES)
        put(r, MOIRAI_CHANGE_MORE, first, other);
}

static int by_stake(const void *x, const void *y)
{
    const moirai_what_if *a = x, *b = y; /* spent_ns holds the stake until the run */
    if (a->spent_ns != b->spent_ns)
        return a->spent_ns > b->spent_ns ? -1 : 1;
    if (a->change.kind != b->change.kind)
        return a->change.kind < b->change.kind ? -1 : 1;
    return a->change.a != b->change.a ? a->change.a - b->change.a : a->change.b - b->change.b;
}

static int list_changes(runner *r)
{
    const moirai_analysis *a = r->a;
    int32_t K = a->n_devices;
    r->list = util_alloc(1 + (size_t)K * (size_t)K + 4 * (size_t)K, sizeof *r->list);
    if (!r->list)
        return MOIRAI_EFAIL;
    put(r, MOIRAI_CHANGE_NONE, MOIRAI_NONE, MOIRAI_NONE);
    for (int32_t x = 0; x < K; x++)
        for (int32_t y = x + 1; y < K; y++)
            if (is_link(r->o->cluster, x, y))
                put(r, MOIRAI_CHANGE_LINK, x, y);
    for (int32_t k = 0; k < K; k++) {
        put(r, MOIRAI_CHANGE_SPEED, k, MOIRAI_NONE);
        if (memory_binds(a->problem, k))
            put(r, MOIRAI_CHANGE_MEMORY, k, MOIRAI_NONE);
        put_kind(r, k);
    }
    for (int32_t i = 0; i < r->n; i++)
        r->list[i].spent_ns = at_stake(a, &r->list[i].change);
    qsort(r->list, (size_t)r->n, sizeof *r->list, by_stake);
    if (r->o->most > 0 && r->n > 1 + r->o->most)
        r->n = 1 + r->o->most;
    return 0;
}

static void name_change(moirai_what_if *w, const runner *r)
{
    const moirai_problem *p = r->a->problem;
    const char *x = w->change.a == MOIRAI_NONE ? "" : p->device_name[w->change.a];
    const char *y = w->change.b == MOIRAI_NONE ? "" : p->device_name[w->change.b];
    switch (w->change.kind) {
    case MOIRAI_CHANGE_NONE: snprintf(w->text, sizeof w->text, "as it is"); break;
    case MOIRAI_CHANGE_LINK: snprintf(w->text, sizeof w->text, "%.40s - %.40s: link twice as fast", x, y); break;
    case MOIRAI_CHANGE_SPEED: snprintf(w->text, sizeof w->text, "%.60s: twice as fast", x); break;
    case MOIRAI_CHANGE_MEMORY: snprintf(w->text, sizeof w->text, "%.60s: twice the memory", x); break;
    case MOIRAI_CHANGE_LESS: snprintf(w->text, sizeof w->text, "%.60s: one less", x); break;
    case MOIRAI_CHANGE_MORE: snprintf(w->text, sizeof w->text, "%.60s: one more like it", x); break;
    }
}

/* ---- one run ---- */

/* The given plan's devices and order under the change, and its makespan; MOIRAI_UNKNOWN and no plan where a device is
 * gone or memory does not fit. */
static int64_t replay(moirai_plan **start, const runner *r, const moirai_problem *q, const moirai_change *change)
{
    moirai_task *order = NULL;
    moirai_sim *sim = NULL;
    int64_t n = 0, makespan = MOIRAI_UNKNOWN;
    if (change->kind == MOIRAI_CHANGE_LESS)
        return MOIRAI_UNKNOWN;
    if (!schedule_plan_order(&order, &n, q, r->a->plan) && !moirai_sim_new(&sim, q)) {
        makespan = moirai_sim_replay(sim, r->a->plan->op_device, order, n);
        if (makespan >= 0 && moirai_sim_memory_excess(sim, NULL) > 0)
            makespan = MOIRAI_UNKNOWN;
        if (makespan >= 0 && moirai_sim_plan(start, sim))
            *start = NULL; /* the search does without */
    }
    moirai_sim_free(sim);
    free(order);
    return makespan;
}

/* An even share of the time that is left, for the runs that are left; of those that are not sure of their turn each one
 * a useful search. */
static double share_of_time(const runner *r, int32_t index)
{
    int32_t runs = (index < r->sure ? r->sure : r->n) - index, rounds = (runs + r->threads - 1) / r->threads;
    double left = r->deadline_s - util_seconds(), share = left / rounds;
    if (index >= r->sure)
        share = UTIL_MIN(UTIL_MAX(share, r->useful_s), left);
    return r->deadline_s == 0 ? 0 : UTIL_MAX(share, 0.02);
}

/* Why a change is not searched at all, or NULL. The unchanged problem always is: all others are compared with it. */
static const char *passed_over(const runner *r, int32_t index)
{
    if (index == 0)
        return NULL;
    if (moirai_interrupt_raised(r->o->budget.interrupt))
        return "not tried: interrupted";
    double left = r->deadline_s > 0 ? r->deadline_s - util_seconds() : INFINITY;
    bool late = index > 1 && left < (index < r->sure ? 0 : r->useful_s); /* one change always has its turn */
    return late ? "not tried: too little time" : NULL;
}

/* Did the clock or the user end this search, with something left to find? */
static bool was_cut(const runner *r, const moirai_plan *plan, double limit_s, double seconds)
{
    bool ended = moirai_interrupt_raised(r->o->budget.interrupt) || (limit_s > 0 && seconds > 0.8 * limit_s);
    return ended && moirai_plan_gap(plan) > r->o->gap;
}

static void search(const runner *r, moirai_what_if *w, const moirai_problem *q, double began)
{
    moirai_plan *plan = NULL, *start = NULL;
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.gap = r->o->gap;
    o.budget = r->o->budget;
    o.budget.progress = NULL; /* many runs at once have no one story */
    o.budget.threads = 1;
    o.budget.time_limit_s = share_of_time(r, (int32_t)(w - r->list));
    w->replay_ns = replay(&start, r, q, &w->change);
    o.start = start;
    w->result = moirai_place(&plan, q, r->o->placer, &o);
    if (!w->result) {
        w->search_ns = plan->makespan_ns;
        w->search_bound_ns = w->lower_bound_ns = plan->lower_bound_ns;
        w->cut_short = was_cut(r, plan, o.budget.time_limit_s, util_seconds() - began);
    }
    moirai_plan_free(start);
    moirai_plan_free(plan);
}

static void run_one(const runner *r, moirai_what_if *w)
{
    moirai_problem *q = NULL;
    double began = util_seconds();
    const char *why = passed_over(r, (int32_t)(w - r->list));
    name_change(w, r);
    w->spent_ns = 0;
    if (why) {
        w->result = MOIRAI_ELIMIT;
        snprintf(w->message, sizeof w->message, "%s", why);
        return;
    }
    w->result = moirai_problem_change(&q, r->a->problem, r->o->cluster, &w->change);
    if (!w->result)
        search(r, w, q, began);
    if (w->result)
        snprintf(w->message, sizeof w->message, "%s", moirai_error_message());
    bool kept = w->replay_ns >= 0 && (w->search_ns < 0 || w->replay_ns < w->search_ns);
    w->makespan_ns = kept ? w->replay_ns : w->search_ns;
    w->spent_ns = (int64_t)(1e9 * (util_seconds() - began));
    moirai_problem_free(q);
}

static int run_job(void *data, int32_t i)
{
    const runner *r = data;
    run_one(r, &r->list[i]);
    return 0; /* each run keeps its own result */
}

/* ---- all ---- */

/* What is known of one problem and holds for another; list[0] is the unchanged one. */
static void share_claims(moirai_what_if *list, int32_t n, int64_t proven_ns)
{
    moirai_what_if *base = &list[0];
    base->lower_bound_ns = UTIL_MAX(base->lower_bound_ns, proven_ns); /* whoever found it */
    for (int32_t i = 1; i < n; i++)
        if (list[i].change.kind == MOIRAI_CHANGE_LESS && list[i].makespan_ns >= 0)
            base->makespan_ns = UTIL_MIN(base->makespan_ns, list[i].makespan_ns);
        else if (list[i].change.kind != MOIRAI_CHANGE_LESS)
            base->lower_bound_ns = UTIL_MAX(base->lower_bound_ns, list[i].lower_bound_ns);
    for (int32_t i = 1; i < n; i++) {
        moirai_what_if *w = &list[i];
        if (w->result)
            continue;
        if (w->change.kind == MOIRAI_CHANGE_LESS)
            w->lower_bound_ns = UTIL_MAX(w->lower_bound_ns, base->lower_bound_ns);
        else
            w->makespan_ns = UTIL_MIN(w->makespan_ns, base->makespan_ns);
    }
}

static int by_makespan(const void *x, const void *y)
{
    const moirai_what_if *a = x, *b = y;
    bool a_none = a->change.kind == MOIRAI_CHANGE_NONE, b_none = b->change.kind == MOIRAI_CHANGE_NONE;
    if (a_none != b_none)
        return a_none ? -1 : 1;
    if ((a->makespan_ns < 0) != (b->makespan_ns < 0))
        return a->makespan_ns < 0 ? 1 : -1;
    if (a->makespan_ns != b->makespan_ns)
        return a->makespan_ns < b->makespan_ns ? -1 : 1;
    if (a->change.kind != b->change.kind)
        return a->change.kind < b->change.kind ? -1 : 1;
    return a->change.a != b->change.a ? a->change.a - b->change.a : a->change.b - b->change.b;
}

/* As many runs as can have a useful search in the time, but always one change. */
static void share_out(runner *r)
{
    double limit = r->o->budget.time_limit_s;
    r->useful_s = USEFUL_S * (double)r->a->n_ops;
    double runs = limit > 0 ? limit * r->threads / UTIL_MAX(r->useful_s, 1e-9) : (double)r->n;
    r->sure = (int32_t)UTIL_MIN(UTIL_MAX(runs, 2), (double)r->n);
    r->deadline_s = limit > 0 ? util_seconds() + limit : 0;
}

int moirai_what_if_run(moirai_what_if **out, int32_t *n, const moirai_analysis *a, const moirai_what_if_options *o)
{
    runner r = {.a = a, .o = o};
    *out = NULL;
    *n = 0;
    if (a->problem->partial)
        return moirai_error(MOIRAI_EUSAGE, "what-ifs need the plan's problem");
    int bad = moirai_budget_check(&o->budget);
    if (bad)
        return bad;
    moirai_problem *same; /* a cluster of another problem is told before anything is looked up in it */
    int rc = moirai_problem_change(&same, a->problem, o->cluster,
                                   &(moirai_change){MOIRAI_CHANGE_NONE, MOIRAI_NONE, MOIRAI_NONE});
    moirai_problem_free(same);
    rc = rc ? rc : list_changes(&r);
    if (rc)
        return rc;
    int32_t cores = o->budget.threads > 0 ? o->budget.threads : util_cores();
    r.threads = (int)UTIL_MAX(1, UTIL_MIN(cores, r.n));
    share_out(&r);
    if ((rc = util_pool_run(run_job, &r, r.n, r.threads))) {
        free(r.list);
        return rc;
    }
    if (r.list[0].result) { /* what is wrong with the problem itself is wrong with all */
        rc = moirai_error(r.list[0].result, "%s", r.list[0].message);
        free(r.list);
        return rc;
    }
    share_claims(r.list, r.n, a->plan->lower_bound_ns);
    qsort(r.list, (size_t)r.n, sizeof *r.list, by_makespan);
    *out = r.list;
    *n = r.n;
    return 0;
}

const char *moirai_what_if_moved(const moirai_what_if *base, const moirai_what_if *w)
{
    if (w->makespan_ns >= 0 && base->lower_bound_ns >= 0 && w->makespan_ns < base->lower_bound_ns)
        return "bound";
    if (w->lower_bound_ns > base->makespan_ns)
        return "worse";
    return w->makespan_ns >= 0 && w->makespan_ns < base->makespan_ns ? "plan" : "none";
}
