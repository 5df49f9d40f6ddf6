/* Cases, target by target.
 *
 * Where a tensor is sent, what prices leave open is when it arrives (docs/optimality.md, 3.2): hundreds of cases differ
 * in that alone; elsewhere it is how many components take which device. Best-first search (cases.c) solves a master to
 * its end for each case, on the way to those that are narrow enough. But no more than one question has to be answered
 * of each of them: is a plan of this length impossible? So a length is put to all cases, the *target*. A master is left
 * as soon as its prices exclude the target, or its LP finds room for it, mostly in its first solution, since the columns
 * of the case before are at hand. Then the time of the first arrival that is not yet known well is halved; the halves
 * begin with the prices of their neighbours, which often exclude the target at once. First arrivals come first: until
 * then receivers have next to nothing to do, so that most hangs on them, and the others matter little once these are
 * known.
 *
 * Targets climb from what is proven towards what is wanted. Leaves of one target are where the next one begins. One
 * solve of each sending, with its first arrival known, says about how far the first can be, or the bound of a pair with
 * the same entry, which is mostly within a hundredth; from there on steps are short, twice as long where one was easy.
 * Where nothing is left to divide and there is still room for the target, or its questions run out, the next one is
 * halfway: what a target in vain has divided and excluded stays, so that it takes few questions. Steps too long lose what they cost: a layer of alphafold2-87M stays at 1.907 ms after 1,900 questions for
 * 1.990, and is at 1.949 after 1,000 by short ones.
 *
 * A climb can be left when it has gained a stride, and gone on with: the pair keeps its questions.
 *
 * Each solver has its share of the cases, whatever the number of threads: the outcome does not depend on them. */
#include "pair/climb.h"

#include <stdlib.h>
#include <string.h>

#include "util/pool.h"
#include "util/util.h"

#define NARROWEST 256 /* parts of the length: an arrival's range below that is not halved again */
#define ATTEMPTS 24
#define QUESTIONS 4     /* in the time of a solve to its end */
#define LEAST_QUOTA 40  /* questions of each solver at a target; three times its cases are added */
#define NEAR 1000       /* parts of the length: what is left below that is not climbed for */
#define FIRST_STEP 160  /* parts of the length: beyond estimates; doubled where it is easy, halved where it fails */
#define LONGEST_STEP 40 /* parts of the length */

typedef struct climbing {
    pair_bound_task *r;
    int64_t target_ns;
    int32_t quota[PAIR_SOLVERS]; /* solves that each has left */
    int64_t room_ns[PAIR_SOLVERS];
    /* cases that each has in hand: those that are done, and those that are not, in `list`, done first */
    pair_case *list[PAIR_SOLVERS];
    int32_t n_done[PAIR_SOLVERS], n_list[PAIR_SOLVERS];
    size_t capacity[PAIR_SOLVERS];
} climbing;

/* Where a case is divided: the first arrival that is not known well is halved; else as the LP solution says. */
static pricing_branch choose(const pair_bound_task *r, int32_t solver, const pair_case *c, const int64_t *price)
{
    static const pricing_branch nowhere = {.on = PRICING_NO_BRANCH};
    const pair_state *x = r->pair;
    const pricing_master *m = x->master[solver];
    if (c->n_branches >= PAIR_MAX_SPLITS)
        return nowhere;
    pricing_branch arrival = pair_cases_halve_arrival(&x->sending[c->sending], m, NARROWEST);
    if (arrival.on != PRICING_NO_BRANCH)
        return arrival;
    bool enough = pair_cases_numbers(c->n_branches, c->branch) >= r->numbers;
    return enough ? nowhere : pair_cases_branch_on(x, c->sending, m, price);
}

/* The last case in hand is divided in two; the earlier half is looked at next. */
static int divide(climbing *k, int32_t solver, pricing_branch split)
{
    pair_state *x = k->r->pair;
    if (util_grow(&k->list[solver], &k->capacity[solver], (size_t)k->n_list[solver] + 1, sizeof(pair_case)))
        return MOIRAI_EFAIL;
    pair_case *c = &k->list[solver][k->n_list[solver] - 1];
    c->split = split;
    int rc = pair_case_halves(x, c, c + 1);
    if (rc)
        return rc;
    pair_case later = c[1]; /* the last is looked at first */
    c[1] = c[0];
    c[0] = later;
    k->n_list[solver]++;
    return 0;
}

static void set_aside(climbing *k, int32_t solver)
{
    pair_case *list = k->list[solver], last = list[k->n_list[solver] - 1];
    memmove(list + k->n_done[solver] + 1, list + k->n_done[solver],
            sizeof *list * (size_t)(k->n_list[solver] - 1 - k->n_done[solver]));
    list[k->n_done[solver]++] = last;
}

/* Put the target to the last case in hand: it is done, or divided, or leaves room. */
static int look(climbing *k, int32_t solver, bool begun)
{
    pair_bound_task *r = k->r;
    pair_case *c = &k->list[solver][k->n_list[solver] - 1];
    pricing_master_result found;
    pricing_branch split;
    int rc = pair_case_ask(r, solver, c, k->target_ns - 1, begun, &found);
    k->quota[solver]--;
    if (rc)
        return rc;
    if (found.proven) {
        c->proven_ns = k->target_ns;
        c->estimate_ns = UTIL_MAX((int64_t)((double)k->target_ns * found.proven_part), k->target_ns);
        c->buckets = r->sent_buckets;
        rc = pair_case_store(r, solver, c, &found, &c->proof);
        set_aside(k, solver);
        return rc;
    }
    if (util_stopped(&r->stop) || !found.rounds)
        return 0;
    split = choose(r, solver, c, found.price);
    if (split.on != PRICING_NO_BRANCH)
        return divide(k, solver, split);
    int64_t room = UTIL_MAX((int64_t)((double)k->target_ns * UTIL_MIN(found.theta, 1)), c->proven_ns);
    k->room_ns[solver] = UTIL_MIN(k->room_ns[solver], room);
    c->estimate_ns = room;
    return 0;
}

/* All that is below the target of this solver's share, as far as the solves go or until one leaves room. */
static int climb_share(void *data, int32_t solver)
{
    climbing *k = data;
    bool begun = false;
    int rc = 0;
    while (!rc && k->n_done[solver] < k->n_list[solver]) {
        if (k->quota[solver] <= 0 || k->room_ns[solver] < INT64_MAX || util_stopped(&k->r->stop))
            break;
        rc = look(k, solver, begun);
        begun = true;
    }
    return rc;
}

/* The solver of a case: the same for those of one sending, so that neighbours follow each other, where there are
 * several. */
static int32_t sounder_of(const pair_bound_task *r, int32_t index)
{
    const pair_state *x = r->pair;
    return (x->n_sendings < r->solvers ? index : x->cases[index].sending) % r->solvers;
}

/* Cases below the target, as many for each solver, neighbours together; false: memory ran out. */
static bool share_out(climbing *k)
{
    pair_state *x = k->r->pair;
    int32_t n = 0, below = 0, shared = 0;
    for (int32_t i = 0; i < x->n_cases; i++)
        below += x->cases[i].proven_ns < k->target_ns;
    for (int32_t i = 0; i < x->n_cases; i++) {
        pair_case *c = &x->cases[i];
        int32_t solver = (int32_t)((int64_t)shared * k->r->solvers / UTIL_MAX(below, 1));
        if (c->proven_ns >= k->target_ns) {
            x->cases[n++] = *c;
            continue;
        }
        if (util_grow(&k->list[solver], &k->capacity[solver], (size_t)k->n_list[solver] + 1, sizeof *c)) {
            for (; i < x->n_cases; i++)
                x->cases[n++] = x->cases[i];
            x->n_cases = n;
            return false;
        }
        k->list[solver][k->n_list[solver]++] = *c;
        shared++;
    }
    x->n_cases = n;
    return true;
}

/* All cases back into the pair. */
static int gather(climbing *k)
{
    pair_state *x = k->r->pair;
    int rc = 0;
    for (int32_t s = 0; s < k->r->solvers; s++)
        for (int32_t i = 0; i < k->n_list[s]; i++) {
            if (!rc && util_grow(&x->cases, &x->case_capacity, (size_t)x->n_cases + 1, sizeof *x->cases))
                rc = MOIRAI_EFAIL;
            if (rc)
                pair_case_free(&k->list[s][i]);
            else
                x->cases[x->n_cases++] = k->list[s][i];
        }
    return rc;
}

/* Put a target to all cases. *reached: it is proven; else *room_ns: about what there is room for, INT64_MAX: the solves
 * were too few to tell. *solves is lowered by those used. */
static int attempt(pair_bound_task *r, int64_t target_ns, int64_t most, int64_t *solves, bool *reached,
                   int64_t *room_ns)
{
    climbing k = {.r = r, .target_ns = target_ns};
    pair_state *x = r->pair;
    int32_t quota = (int32_t)most;
    for (int32_t i = 0; i < r->solvers; i++) {
        k.quota[i] = quota;
        k.room_ns[i] = INT64_MAX;
    }
    int rc = share_out(&k) ? util_pool_run(climb_share, &k, r->solvers, r->threads) : MOIRAI_EFAIL;
    *reached = !rc;
    *room_ns = INT64_MAX;
    for (int32_t i = 0; i < r->solvers; i++) {
        *solves -= quota - k.quota[i];
        x->solves += quota - k.quota[i];
        *reached = *reached && k.n_done[i] == k.n_list[i];
        *room_ns = UTIL_MIN(*room_ns, k.room_ns[i]);
    }
    int gathered = gather(&k);
    for (int32_t i = 0; i < PAIR_SOLVERS; i++)
        free(k.list[i]);
    return rc ? rc : gathered;
}

/* ---- how far it may lead ---- */

typedef struct sounding {
    pair_bound_task *r;
    int64_t length_ns, room_ns[PAIR_SOLVERS];
} sounding;

/* About what the case could prove, were its first arrival known: at the soonest, where it proves least as a rule. */
static int sound(sounding *k, int32_t solver, const pair_case *c)
{
    pair_bound_task *r = k->r;
    const pair_state *x = r->pair;
    const pricing_sending *how = &x->sending[c->sending];
    pricing_branch branch[PAIR_MAX_SPLITS + 1];
    pair_case narrow = *c;
    if (c->n_branches)
        memcpy(branch, c->branch, sizeof *branch * (size_t)c->n_branches);
    narrow.branch = branch;
    if (pricing_is_sent(how)) {
        int64_t soonest = moirai_transfer_ns(&x->block.problem, decompose_block_shared_tensor(&x->block),
                                             r->entry_device, how->receiver[0]);
        branch[narrow.n_branches++] =
            (pricing_branch){PRICING_ARRIVAL, 0, 0, how->receiver[0], 0, soonest + k->length_ns / NARROWEST};
    }
    pricing_master_result found;
    int rc = pair_case_sound(r, solver, &narrow, k->length_ns, &found);
    if (!rc && !found.proven)
        k->room_ns[solver] =
            UTIL_MIN(k->room_ns[solver], (int64_t)((double)k->length_ns * UTIL_MIN(found.proven_part, 1)));
    return rc;
}

static int sound_some(void *data, int32_t solver)
{
    sounding *k = data;
    const pair_state *x = k->r->pair;
    int rc = 0;
    for (int32_t i = 0; i < x->n_cases && !rc && !util_stopped(&k->r->stop); i++)
        if (sounder_of(k->r, i) == solver)
            rc = sound(k, solver, &x->cases[i]);
    return rc;
}

static int sound_all(pair_bound_task *r, int64_t length_ns)
{
    pair_state *x = r->pair;
    sounding k = {.r = r, .length_ns = length_ns};
    for (int32_t i = 0; i < r->solvers; i++)
        k.room_ns[i] = INT64_MAX;
    int rc = util_pool_run(sound_some, &k, r->solvers, r->threads);
    x->room_ns = INT64_MAX;
    for (int32_t i = 0; i < r->solvers; i++)
        x->room_ns = UTIL_MIN(x->room_ns, k.room_ns[i]);
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
        s->step = UTIL_MIN(2 * s->step, target / LONGEST_STEP);
    s->failed = false;
}

static void go_lower(slope *s, int64_t target, int64_t room)
{
    s->failed = true;
    s->step = (UTIL_MIN(target, room) - s->low) / 2;
}

int pair_climb(pair_bound_task *r, int64_t from_ns, int64_t ceiling_ns)
{
    pair_state *x = r->pair;
    int rc = 0;
    if (!x->room_ns && r->likely_ns)
        x->room_ns = r->likely_ns;
    else if (!x->room_ns)
        rc = sound_all(r, ceiling_ns);
    bool again = x->climbing;
    if (!again)
        x->questions = (int64_t)r->solves * QUESTIONS;
    x->climbing = false;
    slope s = {.low = UTIL_MAX(from_ns, x->cases[pair_cases_weakest(x)].proven_ns),
               .ceiling = ceiling_ns,
               .left = x->questions};
    int64_t enough = r->stride_ns ? s.low + r->stride_ns : INT64_MAX;
    int64_t near = UTIL_MIN(x->room_ns, ceiling_ns) - s.low;
    s.step = UTIL_MAX(again ? near : near - near / 8, s.low / FIRST_STEP);
    for (int32_t i = 0; i < ATTEMPTS && !rc && s.left > 0 && s.low < UTIL_MIN(enough, s.ceiling); i++) {
        int64_t target = next_target(&s), left = s.left, room;
        bool reached;
        if (util_stopped(&r->stop) || (target - s.low < s.low / NEAR && target < s.ceiling))
            break;
        int64_t quota = LEAST_QUOTA + (int64_t)x->n_cases * 3 / r->solvers;
        rc = attempt(r, target, UTIL_MIN(quota, s.left), &s.left, &reached, &room);
        if (reached)
            go_higher(&s, target, left - s.left, x->n_cases);
        else
            go_lower(&s, target, room);
        x->room_ns = s.low + s.step;
        x->climbing = s.low >= UTIL_MIN(enough, s.ceiling) && s.low < x->plan.length_ns && s.left > 0;
    }
    x->questions = s.left;
    return rc;
}
