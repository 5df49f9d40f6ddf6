/* Targets for the cases of a pair (branch/targets.c).
 *
 * Where a tensor is sent, what prices leave open is when it arrives (docs/theory.md, Lemma 32): hundreds of cases differ
 * in that alone; elsewhere it is how many components take which device. So a length is put to all cases, the *target*.
 * A master is left as soon as its prices exclude the target, or its LP finds room for it, mostly in its first solution,
 * since the columns of the case before are at hand. Then the time of the first arrival that is not yet known well is
 * halved; the halves begin with the prices of their neighbours, which often exclude the target at once. First arrivals
 * come first: until then receivers have next to nothing to do, so that most hangs on them, and the others matter little
 * once these are known.
 *
 * Targets climb from what is proven towards what is wanted. Leaves of one target are where the next one begins. One
 * solve of each sending, with its first arrival known, says about how far the first can be, or the bound of a pair with
 * the same entry, which is mostly within a hundredth; from there on steps are short, twice as long where one was easy.
 * Where nothing is left to divide and there is still room for the target, or its questions run out, the next one is
 * halfway: what a target in vain has divided and excluded stays, so that it takes few questions. Steps too long lose what
 * they cost: a layer of alphafold2-87M stays at 1.907 ms after 1,900 questions for 1.990, and is at 1.949 after 1,000 by
 * short ones.
 *
 * A climb can be left when it has gained a stride, and gone on with: the pair keeps its questions. */
#include "pair/climb.h"

#include <string.h>

#include "branch/branch.h"
#include "pair/pair_tuning.h"
#include "util/pool.h"
#include "util/util.h"

_Static_assert(PAIR_SOLVERS <= BRANCH_SOLVERS, "each solver has a share");

typedef struct climbing {
    pair_bound_task *r;
    int64_t target_ns;
} climbing;

/* Where a case is divided: the first arrival that is not known well is halved; else as the LP solution says. */
static pricing_branch choose(const pair_bound_task *r, int32_t solver, const pair_case *c, const int64_t *price)
{
    static const pricing_branch nowhere = {.on = PRICING_NO_BRANCH};
    const pair_state *x = r->pair;
    const pricing_master *m = x->master[solver];
    if (c->n_branches >= PAIR_MAX_SPLITS)
        return nowhere;
    pricing_branch arrival = pair_cases_halve_arrival(&x->sending.how[c->sending], m, PAIR_CLIMB_NARROWEST);
    if (arrival.on != PRICING_NO_BRANCH)
        return arrival;
    bool enough = pair_cases_numbers(c->n_branches, c->branch) >= r->numbers;
    return enough ? nowhere : pair_cases_branch_on(x, c->sending, m, price);
}

static bool is_reached(const void *c, int64_t target)
{
    return ((const pair_case *)c)->proven_ns >= target;
}

/* As many for each solver, neighbours together. */
static int32_t solver_of(void *data, const void *c, int32_t index, int32_t rank, int32_t below)
{
    const climbing *k = data;
    (void)c, (void)index;
    return (int32_t)((int64_t)rank * k->r->solvers / below);
}

/* Whether all plans of the case are as long as the target; else where to divide it. */
static int ask(void *data, int32_t solver, void *case_, bool begun, branch_answer *out)
{
    climbing *k = data;
    pair_bound_task *r = k->r;
    pair_case *c = case_;
    pricing_master_result found;
    int rc = pair_case_ask(r, solver, c, k->target_ns - 1, begun, &found);
    if (rc)
        return rc;
    if (found.proven) {
        out->verdict = BRANCH_REACHED;
        c->proven_ns = k->target_ns;
        c->estimate_ns = UTIL_MAX((int64_t)((double)k->target_ns * found.proven_part), k->target_ns);
        c->buckets = r->sent_buckets;
        return pair_case_store(r, solver, c, &found, &c->proof);
    }
    if (util_stopped(&r->stop) || !found.rounds)
        return 0;
    pricing_branch split = choose(r, solver, c, found.price);
    if (split.on != PRICING_NO_BRANCH) {
        out->verdict = BRANCH_DIVIDE;
        c->split = split;
        return 0;
    }
    out->verdict = BRANCH_STUCK;
    out->stuck_at = UTIL_MAX((int64_t)((double)k->target_ns * UTIL_MIN(found.theta, 1)), c->proven_ns);
    c->estimate_ns = out->stuck_at;
    return 0;
}

/* The earlier half is asked first. */
static int divide(void *data, void *c, void *d)
{
    return pair_case_halves(((climbing *)data)->r->pair, c, d);
}

static void clear(void *c)
{
    pair_case_free(c);
}

/* Put a target to all cases, by so many questions of each solver. */
static int attempt(branch_target_result *out, pair_bound_task *r, int64_t target_ns, int64_t questions)
{
    pair_state *x = r->pair;
    climbing k = {.r = r, .target_ns = target_ns};
    branch_list list = {x->cases, x->n_cases, x->case_capacity};
    int rc = branch_attempt(out, &list,
                            &(branch_target_task){.data = &k,
                                                  .case_size = sizeof(pair_case),
                                                  .target = target_ns,
                                                  .solvers = r->solvers,
                                                  .questions = (int32_t)questions,
                                                  .threads = r->threads,
                                                  .stop = &r->stop,
                                                  .reached = is_reached,
                                                  .solver_of = solver_of,
                                                  .ask = ask,
                                                  .divide = divide,
                                                  .clear = clear});
    x->cases = list.cases;
    x->n_cases = list.n;
    x->case_capacity = list.capacity;
    x->solves += out->asked;
    return rc;
}

/* ---- how far it may lead ---- */

/* The solver of a case: the same for those of one sending, so that neighbours follow each other, where there are
 * several. */
static int32_t estimator_of(const pair_bound_task *r, int32_t index)
{
    const pair_state *x = r->pair;
    return (x->sending.n < r->solvers ? index : x->cases[index].sending) % r->solvers;
}

typedef struct estimating {
    pair_bound_task *r;
    int64_t length_ns, reach_ns[PAIR_SOLVERS];
} estimating;

/* About what the case could prove, were its first arrival known: at the soonest, where it proves least as a rule. */
static int estimate(estimating *k, int32_t solver, const pair_case *c)
{
    pair_bound_task *r = k->r;
    const pair_state *x = r->pair;
    const pricing_sending *how = &x->sending.how[c->sending];
    pricing_branch branch[PAIR_MAX_SPLITS + 1];
    pair_case narrow = *c;
    if (c->n_branches)
        memcpy(branch, c->branch, sizeof *branch * (size_t)c->n_branches);
    narrow.branch = branch;
    if (pricing_is_sent(how)) {
        int64_t soonest = moirai_transfer_ns(&x->block.problem, decompose_block_shared_tensor(&x->block),
                                             r->entry_device, how->receiver[0]);
        branch[narrow.n_branches++] =
            (pricing_branch){PRICING_ARRIVAL, 0, 0, how->receiver[0], 0, soonest + k->length_ns / PAIR_CLIMB_NARROWEST};
    }
    pricing_master_result found;
    int rc = pair_case_solve(r, solver, &narrow, k->length_ns, &found);
    if (!rc && !found.proven)
        k->reach_ns[solver] =
            UTIL_MIN(k->reach_ns[solver], (int64_t)((double)k->length_ns * UTIL_MIN(found.proven_part, 1)));
    return rc;
}

static int estimate_some(void *data, int32_t solver)
{
    estimating *k = data;
    const pair_state *x = k->r->pair;
    int rc = 0;
    for (int32_t i = 0; i < x->n_cases && !rc && !util_stopped(&k->r->stop); i++)
        if (estimator_of(k->r, i) == solver)
            rc = estimate(k, solver, &x->cases[i]);
    return rc;
}

static int estimate_all(pair_bound_task *r, int64_t length_ns)
{
    pair_state *x = r->pair;
    estimating k = {.r = r, .length_ns = length_ns};
    for (int32_t i = 0; i < r->solvers; i++)
        k.reach_ns[i] = INT64_MAX;
    int rc = util_pool_run(estimate_some, &k, r->solvers, r->threads);
    x->climb.reach_ns = INT64_MAX;
    for (int32_t i = 0; i < r->solvers; i++)
        x->climb.reach_ns = UTIL_MIN(x->climb.reach_ns, k.reach_ns[i]);
    x->solves += x->n_cases;
    return rc;
}

/* ---- climbing ---- */

/* From what is proven (low) to the ceiling, step by step. */
typedef struct slope {
    int64_t low, ceiling, step;
    int64_t left; /* questions, in all */
    bool failed;  /* at the target before */
} slope;

static int64_t next_target(const slope *s)
{
    int64_t rest = s->ceiling - s->low;
    return rest < s->step + s->step / 2 ? s->ceiling : s->low + s->step;
}

/* A target was reached: a longer step, where it took little more than a question for each case. */
static void go_higher(slope *s, int64_t target, int64_t used, int64_t cases)
{
    s->low = target;
    if (!s->failed && used <= cases + cases / 2)
        s->step = UTIL_MIN(2 * s->step, target / PAIR_CLIMB_LONGEST_STEP);
    s->failed = false;
}

static void go_lower(slope *s, int64_t target, int64_t stuck_at)
{
    s->failed = true;
    s->step = (UTIL_MIN(target, stuck_at) - s->low) / 2;
}

int pair_climb(pair_bound_task *r, int64_t from_ns, int64_t ceiling_ns)
{
    pair_state *x = r->pair;
    int rc = 0;
    if (!x->climb.reach_ns && r->likely_ns)
        x->climb.reach_ns = r->likely_ns;
    else if (!x->climb.reach_ns)
        rc = estimate_all(r, ceiling_ns);
    bool again = x->climb.on;
    if (!again)
        x->climb.questions = (int64_t)r->solves * PAIR_CLIMB_QUESTIONS;
    x->climb.on = false;
    slope s = {.low = UTIL_MAX(from_ns, x->cases[pair_cases_weakest(x)].proven_ns),
               .ceiling = ceiling_ns,
               .left = x->climb.questions};
    int64_t enough = r->stride_ns ? s.low + r->stride_ns : INT64_MAX;
    int64_t near = UTIL_MIN(x->climb.reach_ns, ceiling_ns) - s.low;
    s.step = UTIL_MAX(again ? near : near - near / 8, s.low / PAIR_CLIMB_FIRST_STEP);
    for (int32_t i = 0; i < PAIR_CLIMB_ATTEMPTS && !rc && s.left > 0 && s.low < UTIL_MIN(enough, s.ceiling); i++) {
        int64_t target = next_target(&s);
        branch_target_result found;
        if (util_stopped(&r->stop) || (target - s.low < s.low / PAIR_CLIMB_NEAR && target < s.ceiling))
            break;
        int64_t quota = PAIR_CLIMB_LEAST_QUOTA + (int64_t)x->n_cases * 3 / r->solvers;
        rc = attempt(&found, r, target, UTIL_MIN(quota, s.left));
        s.left -= found.asked;
        if (found.reached)
            go_higher(&s, target, found.asked, x->n_cases);
        else
            go_lower(&s, target, found.stuck_at);
        x->climb.reach_ns = s.low + s.step;
        x->climb.on = s.low >= UTIL_MIN(enough, s.ceiling) && s.low < x->plan.length_ns && s.left > 0;
    }
    x->climb.questions = s.left;
    return rc;
}
