/* REINFORCE on the simulator (Williams 1992), as both learning placers use it.
 *
 * Batch by batch: every lane plays its episodes, the method compares what they cost with what was usual (its baseline),
 * every lane adds up the derivatives of -advantage log p(choice) - bonus * entropy, the sum is clipped, and Adam takes
 * a step. The plan is the shortest that fits among all placements that were ever simulated. Where none fitted, the one
 * that came nearest goes through the repair of place/fit.h, which all placers share; that may end in an honest
 * "infeasible".
 *
 * Budget. Without a time limit the number of episodes is fixed by the problem's size and --effort: one seed gives one
 * plan, whatever the number of threads, since lanes are fixed, each has random numbers and a gradient of its own, and
 * these are added in order. With a time limit training lasts as long as that; an effort below 1 limits the episodes as
 * well. It also ends when the best plan is proven to be within --gap, unless the policy is to be saved. */
#include "place/learn/train.h"
#include "place/learn/policy_file.h"
#include "util/pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_EPISODES 20000.0 /* at effort 1, of small problems */

typedef struct budget {
    int64_t episodes; /* 0: no end */
    double began, limit_s;
    int64_t bound_ns; /* plain bounds: a plan within the gap of it is enough */
    bool to_the_end;
} budget;

/* ---- setting up ---- */

/* Every unit on the device that runs all of the network quickest, or where it may not, on its own quickest. */
static void start_together(learn_run *run)
{
    const moirai_problem *p = run->p;
    const place_units *u = run->units;
    double least = INFINITY;
    int32_t best = 0;
    for (int32_t k = 0; k < p->n_devices; k++) {
        double sum = 0;
        for (int32_t i = 0; i < p->n_ops; i++)
            sum += (double)(p->op_devices[i] >> k & 1 ? moirai_op_ns(p, i, k) : 8 * moirai_op_least_ns(p, i));
        if (sum < least) {
            least = sum;
            best = k;
        }
    }
    for (int32_t unit = 0; unit < u->n; unit++) {
        int32_t to = best;
        if (!(u->devices[unit] >> best & 1)) {
            int64_t quickest = INT64_MAX;
            for (int32_t k = 0; k < p->n_devices; k++) {
                int64_t ns = u->devices[unit] >> k & 1 ? moirai_op_ns(p, u->op[u->off[unit]], k) : INT64_MAX;
                if (ns < quickest) {
                    quickest = ns;
                    to = k;
                }
            }
        }
        for (int32_t j = u->off[unit]; j < u->off[unit + 1]; j++)
            run->start_device[u->op[j]] = to;
    }
}

static int open_lanes(learn_run *run)
{
    size_t lanes = (size_t)run->method->lanes;
    run->judge = util_alloc(lanes, sizeof *run->judge);
    run->rng = util_alloc(lanes, sizeof *run->rng);
    run->length_ns = util_alloc(lanes * (size_t)run->method->width, sizeof *run->length_ns);
    run->start_device = util_alloc((size_t)run->p->n_ops, sizeof *run->start_device);
    if (!run->judge || !run->rng || !run->length_ns || !run->start_device)
        return MOIRAI_EFAIL;
    int rc = 0;
    for (size_t l = 0; l < lanes && !rc; l++) {
        rc = learn_judge_open(&run->judge[l], run->p);
        util_rng_seed(&run->rng[l], run->o->budget.seed * 1000003 + l);
    }
    return rc;
}

int learn_run_open(learn_run *run, const learn_method *method, const moirai_problem *p, const moirai_place_options *o)
{
    *run = (learn_run){.method = method, .p = p, .o = o, .stop = util_stop_of(&o->budget)};
    int rc = place_units_new(&run->units, p);
    rc = rc ? rc : open_lanes(run);
    if (rc)
        return rc;
    int64_t ns = MOIRAI_UNKNOWN;
    if (o->start && o->start->n_ops == p->n_ops) { /* its devices will do even where they are too full */
        memcpy(run->start_device, o->start->op_device, (size_t)p->n_ops * sizeof *run->start_device);
        ns = moirai_sim_dispatch(run->judge[0].sim, run->start_device, NULL);
    }
    if (ns < 0) {
        start_together(run);
        ns = moirai_sim_dispatch(run->judge[0].sim, run->start_device, NULL);
    }
    run->start_ns = UTIL_MAX(ns, 1);
    rc = method->open(run);
    rc = rc ? rc : learn_params_make(&run->params);
    run->grad = !rc ? util_alloc((size_t)method->lanes * run->params.n, sizeof *run->grad) : NULL;
    if (!run->grad)
        return MOIRAI_EFAIL;
    learn_params_draw(&run->params, o->budget.seed);
    return 0;
}

void learn_run_close(learn_run *run)
{
    if (run->state)
        run->method->close(run);
    for (int32_t l = 0; run->judge && l < run->method->lanes; l++)
        learn_judge_close(&run->judge[l]);
    learn_params_free(&run->params);
    place_units_free(run->units);
    free(run->judge);
    free(run->rng);
    free(run->length_ns);
    free(run->start_device);
    free(run->grad);
}

/* ---- batches ---- */

static int play_lane(void *data, int32_t lane)
{
    learn_run *run = data;
    run->method->play(run, lane, run->greedy);
    return 0;
}

static int teach_lane(void *data, int32_t lane)
{
    learn_run *run = data;
    learn_real *grad = run->grad + (size_t)lane * run->params.n;
    memset(grad, 0, run->params.n * sizeof *grad);
    run->method->teach(run, lane, run->bonus, grad);
    return 0;
}

static double mean_length(const learn_run *run, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += (double)run->length_ns[i];
    return sum / n;
}

static void merge_judges(learn_run *run)
{
    for (int32_t l = 1; l < run->method->lanes; l++)
        learn_judge_merge(&run->judge[0], &run->judge[l]);
}

/* One batch at point `t` (0: begin, 1: end) of the schedule. *cut: time ran out while it was played; what was found is
 * kept. */
static int train_batch(learn_run *run, double t, learn_news *news, bool *cut)
{
    const learn_method *m = run->method;
    run->greedy = false;
    run->bonus = m->entropy_first + t * (m->entropy_last - m->entropy_first);
    int rc = util_pool_run(play_lane, run, m->lanes, run->o->budget.threads);
    if (rc)
        return rc;
    merge_judges(run);
    *cut = util_stopped(&run->stop);
    if (*cut)
        return 0;
    m->appraise(run);
    rc = util_pool_run(teach_lane, run, m->lanes, run->o->budget.threads);
    if (rc)
        return rc;
    for (int32_t l = 1; l < m->lanes; l++)
        for (size_t i = 0; i < run->params.n; i++)
            run->grad[i] += run->grad[(size_t)l * run->params.n + i];
    news->norm = learn_clip(run->grad, run->params.n, m->clip);
    learn_adam(&run->params, run->grad, m->rate_first * pow(m->rate_last / m->rate_first, t));
    news->mean_ns = mean_length(run, m->lanes * m->width);
    news->best_ns = run->judge[0].best_ns;
    return 0;
}

/* ---- the whole of it ---- */

static budget plan_budget(const learn_run *run)
{
    const learn_method *m = run->method;
    const moirai_place_options *o = run->o;
    budget b = {.began = util_seconds(), .limit_s = o->budget.time_limit_s};
    int64_t path = moirai_bound_critical_path(run->p), load = moirai_bound_load(run->p);
    b.bound_ns = UTIL_MAX(path, load);
    b.to_the_end = moirai_setting_text(o, m->placer, "save") != NULL;
    b.episodes = (int64_t)moirai_setting_real(o, m->placer, "episodes");
    if (b.episodes == 0 && (o->budget.time_limit_s == 0 || o->budget.effort < 1)) {
        double e = o->budget.effort, share = e < 1 ? e * e * e : e; /* small efforts are quick, as with placer exact */
        b.episodes = (int64_t)UTIL_MAX(share * UTIL_MIN(m->work / m->episode_work(run), MOST_EPISODES), 1);
    }
    return b;
}

/* How much of the budget is used; 1 or more: all. */
static double used(const learn_run *run, const budget *b, int64_t episodes)
{
    double part = 0;
    if (b->episodes > 0)
        part = (double)episodes / (double)b->episodes;
    if (b->limit_s > 0)
        part = UTIL_MAX(part, (util_seconds() - b->began) / b->limit_s);
    int64_t best = run->judge[0].best_ns;
    if (!b->to_the_end && best != MOIRAI_UNKNOWN && (double)(best - b->bound_ns) <= run->o->gap * (double)best)
        part = 1;
    return util_stopped(&run->stop) ? 1 : part;
}

static void tell(const learn_run *run, const learn_news *news, bool better)
{
    char note[80];
    if (!run->o->budget.progress)
        return;
    snprintf(note, sizeof note, "mean of the batch %.6g ms", news->mean_ns * 1e-6);
    moirai_progress event = {.seconds = news->seconds,
                             .letter = better ? 'E' : ' ',
                             .makespan_ns = news->best_ns,
                             .lower_bound_ns = MOIRAI_UNKNOWN,
                             .work = news->episodes,
                             .note = note};
    run->o->budget.progress(run->o->budget.progress_data, &event);
}

static int train(learn_run *run, learn_watch_fn watch, void *data, int64_t *episodes)
{
    budget b = plan_budget(run);
    double told = 0, t;
    int64_t before = MOIRAI_UNKNOWN;
    while ((t = used(run, &b, *episodes)) < 1) {
        learn_news news = {0};
        bool cut = false;
        int rc = train_batch(run, t, &news, &cut);
        if (rc || cut)
            return rc;
        *episodes += run->method->lanes * run->method->width;
        news.episodes = *episodes;
        news.seconds = util_seconds() - b.began;
        bool better = news.best_ns != before;
        before = news.best_ns;
        if (better || news.seconds - told > 5) {
            tell(run, &news, better);
            told = news.seconds;
        }
        if (watch)
            watch(data, &news);
    }
    return 0;
}

/* The policy as it is: its likeliest placement, and, where it is all that is wanted, a batch of draws. */
static int use_policy(learn_run *run, bool draw, learn_watch_fn watch, void *data)
{
    run->method->play(run, 0, true);
    if (!draw)
        return 0;
    learn_news news = {.episodes = 1, .mean_ns = mean_length(run, 1), .best_ns = run->judge[0].best_ns};
    if (watch)
        watch(data, &news);
    run->greedy = false;
    int rc = util_pool_run(play_lane, run, run->method->lanes, run->o->budget.threads);
    if (rc)
        return rc;
    merge_judges(run);
    int32_t n = run->method->lanes * run->method->width;
    news = (learn_news){.episodes = 1 + n, .mean_ns = mean_length(run, n), .best_ns = run->judge[0].best_ns};
    if (watch)
        watch(data, &news);
    return 0;
}

static int best_plan(moirai_plan **out, learn_run *run)
{
    learn_judge *j = &run->judge[0];
    const moirai_plan *given = run->o->start;
    bool use_given = given && given->n_ops == run->p->n_ops && !moirai_plan_check(run->p, given, NULL, NULL);
    if (use_given && (j->best_ns == MOIRAI_UNKNOWN || given->makespan_ns <= j->best_ns))
        return moirai_plan_copy(out, given);
    if (j->best_ns == MOIRAI_UNKNOWN) {
        int32_t *device = j->nearest_excess == MOIRAI_UNKNOWN ? run->start_device : j->nearest;
        return place_fit_plan(out, j->sim, run->p, run->units, device, NULL, NULL, 0, NULL);
    }
    if (moirai_sim_dispatch(j->sim, j->best, NULL) != j->best_ns)
        return moirai_error(MOIRAI_EFAIL, "the best placement could not be simulated again");
    return moirai_sim_plan(out, j->sim);
}

static int learn(moirai_plan **out, learn_run *run, learn_watch_fn watch, void *data)
{
    const moirai_placer *placer = run->method->placer;
    const char *load = moirai_setting_text(run->o, placer, "load"), *save = moirai_setting_text(run->o, placer, "save");
    bool training = moirai_setting_real(run->o, placer, "train") != 0;
    learn_policy_head head = {placer->name, run->p->n_devices, run->p->name, 0};
    int64_t before = 0, episodes = 0;
    int rc = save ? learn_policy_writable(save) : 0;
    if (!rc && load)
        rc = learn_policy_read(&run->params, &head, &before, load);
    if (!rc && training)
        rc = train(run, watch, data, &episodes);
    rc = rc ? rc : use_policy(run, !training, watch, data);
    head.episodes = before + episodes;
    if (!rc && save)
        rc = learn_policy_write(&run->params, &head, save);
    rc = rc ? rc : best_plan(out, run);
    return rc;
}

int learn_place(moirai_plan **out, const learn_method *method, const moirai_problem *p, const moirai_place_options *o,
                learn_watch_fn watch, void *data)
{
    learn_run run;
    int threads = learn_blas_begin();
    int rc = learn_run_open(&run, method, p, o);
    rc = rc ? rc : learn(out, &run, watch, data);
    learn_run_close(&run);
    learn_blas_end(threads);
    return rc;
}
