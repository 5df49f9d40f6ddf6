/* The step of the engine that sees loads: bounds by prices on loads and ports (relax/cases.c), and plans from the devices
 * that balance them.
 *
 * The first of two is cheap: few rounds, the cases of the largest hub. Where it proves much less than is known (deep
 * networks, in which paths decide), the whole is not asked again. */
#include <math.h>
#include <stdlib.h>

#include "place/fit.h"
#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "util/util.h"

#define N_SENDS 3

static const int32_t send_percent[N_SENDS] = {108, 120, 135}; /* no plan keeps all resources busy: less is sent */

/* Blocks in a row know nothing of each other's bytes: as few operators as possible move until all fit. Where nothing is found, devices stay. */
static int make_fit(relax_choice *choice, const moirai_problem *p)
{
    place_units *units = NULL;
    int32_t *device = util_alloc((size_t)p->n_ops, sizeof *device);
    int rc = device ? place_units_new(&units, p) : MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops && !rc; i++) /* a group is where its first operator is */
        device[i] = choice->device[units->op[units->off[units->of_op[i]]]];
    rc = rc ? rc : place_fit_assignment(p, units, p->device_memory_bytes, device);
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        choice->device[i] = (uint8_t)device[i];
    place_units_free(units);
    free(device);
    return rc == MOIRAI_EINFEASIBLE ? 0 : rc;
}

static int offer_choices(incumbent *in, relax_answer *answer)
{
    int rc = 0;
    for (int32_t i = 0; i < answer->n_choices && !rc; i++) {
        moirai_plan *plan = NULL;
        if (in->best && answer->choice[i].load_ns >= in->best->makespan_ns)
            continue;
        if (in->p->n_ops < PLACE_FIT_LARGE)
            rc = make_fit(&answer->choice[i], in->p);
        rc = rc ? rc : relax_plan(&plan, in->p, &answer->choice[i], in->best != NULL, &in->stop);
        if (plan)
            rc = incumbent_offer(in, plan, 'L');
    }
    return rc;
}

static int64_t numbers_of(const relax_answer *answer, const moirai_problem *p)
{
    int64_t n = relax_proof_size(&answer->proof, p->n_edges, p->n_devices);
    for (int32_t i = 0; i < answer->row.n_pairs; i++)
        n += relax_proof_size(&answer->row.pair[i].proof, answer->row.pair[i].n_edges, p->n_devices);
    return n;
}

void engine_keep_loads(engine *x, relax_answer *answer)
{
    if (!x->in.o->certificate_path || answer->lower_ns <= x->loads.lower_ns ||
        numbers_of(answer, x->in.p) > RELAX_MOST_NUMBERS)
        return;
    relax_answer before = x->loads;
    x->loads = *answer;
    *answer = before;
}

typedef int (*solver)(relax_answer *out, const moirai_problem *p, const relax_task *job);

/* What the solver proves and chooses, in this part of the time that is left. */
static int ask(engine *x, solver solve, relax_task job, double part)
{
    incumbent *in = &x->in;
    relax_answer answer;
    job.goal_ns = in->best ? in->best->makespan_ns : INT64_MAX / 4;
    job.known_ns = in->lower_ns;
    job.plans = true;
    job.row = in->o->certificate_path != NULL;
    job.threads = in->o->budget.threads;
    job.stop = incumbent_part(in, part);
    int rc = solve(&answer, in->p, &job);
    if (!rc) {
        x->loads_ns = UTIL_MAX(x->loads_ns, answer.lower_ns);
        rc = offer_choices(in, &answer);
        incumbent_take_bound(in, answer.lower_ns);
        engine_keep_loads(x, &answer);
    }
    relax_answer_clear(&answer);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

static bool fits(const incumbent *in)
{
    int64_t K = in->p->n_devices;
    return K > 1 && in->p->n_ops * K <= STEP_LOADS_MOST_CELLS && in->p->n_edges * K * K <= STEP_LOADS_MOST_CELLS &&
           !incumbent_stopped(in);
}

/* As many rounds and cases as so much work allows, in cells of messages: 64 devices have 4,096 for each edge. */
static relax_task within(const moirai_problem *p, double work, double cases, double rounds)
{
    double n = p->n_ops, E = p->n_edges, K = p->n_devices, cells = n * K + STEP_LOADS_SWEEPS * E * K * K + 1;
    relax_task job = {.rounds = (int32_t)fmax(fmin(rounds, work / cells), STEP_LOADS_LEAST_ROUNDS)};
    job.cases = (int32_t)fmax(fmin(cases, work / (cells * job.rounds)), 1);
    return job;
}

static int run_first(engine *x, const engine_turn *turn)
{
    const moirai_problem *p = x->in.p;
    bool side_by_side = p->n_edges == 0; /* then loads are all there is */
    relax_task job = within(p, STEP_LOADS_FIRST_WORK, 1 + STEP_LOADS_FIRST_CASES * p->n_devices,
                            side_by_side ? STEP_LOADS_SIDE_ROUNDS : STEP_LOADS_FIRST_ROUNDS);
    return fits(&x->in) ? ask(x, relax_solve, job, side_by_side ? STEP_LOADS_SIDE_SHARE : turn->share) : 0;
}

/* Plans from devices that send less than would balance all resources. */
static int ask_for_less(engine *x, solver solve, relax_task job, double part)
{
    int rc = 0;
    for (int32_t i = 0; i < N_SENDS && !rc && !incumbent_stopped(&x->in); i++) {
        job.send_percent = send_percent[i];
        rc = ask(x, solve, job, part / N_SENDS);
    }
    return rc;
}

/* Where paths are all there is, shifts prove nearly as much as these: that is no sign of loads. */
static int ask_within_shifts(engine *x, relax_task job, double part)
{
    int64_t loads_ns = x->loads_ns, known_ns = x->in.lower_ns;
    int rc = ask(x, relax_solve_shifts, job, part);
    if (x->in.lower_ns == known_ns)
        x->loads_ns = loads_ns;
    return rc;
}

static bool loads_prove_less(const engine *x, int64_t loads_ns)
{
    return (double)loads_ns < STEP_LOADS_HOPE * (double)x->in.lower_ns;
}

static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    double effort = fmin(in->o->budget.effort, 100), part = turn->share;
    relax_task whole = within(in->p, STEP_LOADS_WORK * effort, 1 + STEP_LOADS_CASES * effort,
                              fmax(STEP_LOADS_FIRST_ROUNDS, STEP_LOADS_ROUNDS * effort)),
               block = whole,
               less = within(in->p, STEP_LOADS_FIRST_WORK, 1 + STEP_LOADS_FIRST_CASES * in->p->n_devices,
                             STEP_LOADS_FIRST_ROUNDS);
    block.cases = 1 + (int32_t)(STEP_LOADS_BLOCK_CASES * effort);
    if (!fits(in))
        return 0;
    bool paths_decide = loads_prove_less(x, x->loads_ns);
    int rc = incumbent_off(in, SHIFTS) ? 0 : ask_within_shifts(x, whole, part);
    if (rc || incumbent_gap(in) <= in->o->gap)
        return rc;
    int64_t wide_ns = x->loads_ns, known_ns = in->lower_ns;
    rc = incumbent_off(in, LOAD_CHAIN) ? 0 : ask(x, relax_solve_chain, block, part);
    if (rc || incumbent_gap(in) <= in->o->gap)
        return rc;
    if (paths_decide || loads_prove_less(x, wide_ns)) { /* the whole is not asked again */
        bool by_blocks = in->lower_ns > known_ns && incumbent_gap(in) > ENGINE_NEAR;
        return by_blocks ? ask_for_less(x, relax_solve_chain, block, part) : 0;
    }
    rc = ask(x, relax_solve, whole, part);
    return rc ? rc : ask_for_less(x, relax_solve, less, part);
}

const engine_step step_loads_first = {.method = UTIL_METHOD_LOADS, .without_plan = true, .run = run_first},
                  step_loads = {.method = UTIL_METHOD_LOADS, .run = run};
