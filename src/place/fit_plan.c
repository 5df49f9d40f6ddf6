/* Plans that fit the memory (docs/placers.md, Pins, groups and memory).
 *
 * With static memory the assignment decides: where it is too full, fit_assignment.c moves units, and the
 * same priorities are dispatched again.
 *
 * With peak memory the schedule decides as well: several orders of one assignment, ever more serial; where none fits,
 * assignments of fewer bytes on what is short, single devices, and on small problems random ones. Large problems have
 * fewer orders and windows. Each try is O((V + E) log V). */
#include "place/fit.h"
#include "schedule/sim.h"
#include "util/util.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 8
#define N_ORDERS 3

typedef struct fitting {
    const moirai_problem *p;
    const place_units *u;
    moirai_sim *sim;
    int32_t *order[N_ORDERS];
    int32_t *stack, *input; /* of the walk backwards, and which input of each operator comes next */
    uint8_t *seen;
    int64_t *priority;
    int32_t *device;      /* the assignment on trial */
    int64_t least_excess; /* over all tries, for the message */
    int32_t short_device;
    int64_t over[MOIRAI_MAX_DEVICES]; /* bytes that each device lacks in the best try of this assignment */
    int64_t over_most;
    moirai_plan *best;
    const util_stop *stop; /* or NULL */
    util_memory memory;
} fitting;

static bool is_late(const fitting *f)
{
    return f->stop && util_stopped(f->stop);
}

/* ---- orders ---- */

static void order_of_log(fitting *f, int32_t *order)
{
    const moirai_task *log;
    int64_t n = moirai_sim_order(f->sim, &log);
    int32_t at = 0;
    for (int64_t j = 0; j < n; j++)
        if (log[j] < f->p->n_ops)
            order[at++] = (int32_t)log[j];
}

/* Producers right before their first reader: a walk backwards from the last operators. */
static void order_depth_first(fitting *f, int32_t *order)
{
    const moirai_problem *p = f->p;
    int32_t at = 0;
    memset(f->seen, 0, (size_t)p->n_ops);
    memcpy(f->input, p->op_in_off, (size_t)p->n_ops * sizeof *f->input);
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t depth = 0, root = p->topo[r];
        bool read = false;
        for (int32_t j = p->op_out_off[root]; j < p->op_out_off[root + 1]; j++)
            read = read || p->tensor_edge_off[p->op_out[j]] < p->tensor_edge_off[p->op_out[j] + 1];
        if (read)
            continue;
        f->stack[depth++] = root;
        while (depth > 0) {
            int32_t op = f->stack[depth - 1], next = MOIRAI_NONE;
            for (; f->input[op] < p->op_in_off[op + 1] && next == MOIRAI_NONE; f->input[op]++)
                if (!f->seen[p->tensor_producer[p->op_in[f->input[op]]]])
                    next = p->tensor_producer[p->op_in[f->input[op]]];
            if (next != MOIRAI_NONE) {
                f->stack[depth++] = next;
                continue;
            }
            depth--;
            f->seen[op] = 1;
            order[at++] = op;
        }
    }
}

/* ---- tries ---- */

static void note_excess(fitting *f)
{
    const moirai_problem *p = f->p;
    int32_t worst;
    int64_t excess = moirai_sim_memory_excess(f->sim, &worst);
    if (f->least_excess < 0 || excess < f->least_excess) {
        f->least_excess = excess;
        f->short_device = worst;
    }
    if (f->over_most >= 0 && excess >= f->over_most)
        return;
    f->over_most = excess;
    for (int32_t k = 0; k < p->n_devices; k++)
        f->over[k] = f->sim->need_bytes[k] - p->device_memory_bytes[k];
}

/* Keep the simulation if it fits and is the fastest yet. 1: fits, 0: not, negative: out of memory. */
static int keep(fitting *f, int64_t makespan_ns)
{
    if (makespan_ns < 0)
        return 0;
    if (moirai_sim_memory_excess(f->sim, NULL) > 0) {
        note_excess(f);
        return 0;
    }
    if (f->best && f->best->makespan_ns <= makespan_ns)
        return 1;
    moirai_plan *plan;
    int rc = moirai_sim_plan(&plan, f->sim);
    if (rc)
        return rc;
    moirai_plan_free(f->best);
    f->best = plan;
    return 1;
}

static int try_order(fitting *f, const int32_t *order)
{
    int32_t n = f->p->n_ops;
    for (int32_t j = 0; j < n; j++)
        f->priority[order[j]] = n - j;
    int rc = keep(f, moirai_sim_dispatch(f->sim, f->device, f->priority));
    for (int32_t window = 256; window >= 1 && !rc && !is_late(f); window /= n < PLACE_FIT_LARGE ? 4 : 256)
        if (window < n || window == 1)
            rc = keep(f, schedule_sim_replay_window(f->sim, f->device, order, window));
    return rc;
}

/* All orders for the assignment on trial; the first is taken from a dispatch by upward ranks. */
static int try_assignment(fitting *f)
{
    f->over_most = -1;
    if (moirai_sim_dispatch(f->sim, f->device, NULL) < 0)
        return 0;
    order_of_log(f, f->order[0]);
    int found = 0, orders = f->p->n_ops < PLACE_FIT_LARGE ? N_ORDERS : N_ORDERS - 1;
    for (int i = 0; i < orders && (i == 0 || !is_late(f)); i++) {
        int rc = try_order(f, f->order[i]);
        if (rc < 0)
            return rc;
        found |= rc;
    }
    return found;
}

/* What a device lacks it gives up in operators. */
static int try_shedding(fitting *f)
{
    int64_t capacity[MOIRAI_MAX_DEVICES];
    int32_t K = f->p->n_devices;
    memcpy(capacity, f->p->device_memory_bytes, (size_t)K * sizeof *capacity);
    int rc = try_assignment(f);
    for (int round = 0; round < ROUNDS && !rc && !is_late(f); round++) {
        for (int32_t k = 0; k < K; k++)
            if (f->over[k] > 0)
                capacity[k] = UTIL_MAX(capacity[k] - f->over[k], 0);
        rc = place_fit_assignment(f->p, f->u, capacity, f->device);
        if (rc == MOIRAI_EINFEASIBLE)
            return 0;
        rc = rc ? rc : try_assignment(f);
    }
    return rc;
}

static int64_t bytes_around(const moirai_problem *p, int32_t op)
{
    int64_t bytes = 0;
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++)
        bytes += p->tensor_bytes[p->op_in[j]];
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
        bytes += p->tensor_bytes[p->op_out[j]];
    return bytes;
}

int64_t place_fit_least_bytes(const moirai_problem *p, int32_t k)
{
    int64_t need = 0, live = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        need += p->op_memory_bytes[i];
        if (p->memory == MOIRAI_MEMORY_PEAK && moirai_op_ns(p, i, k) > 0)
            live = UTIL_MAX(live, bytes_around(p, i));
    }
    for (int32_t w = 0; w < p->n_weights; w++)
        need += p->weight_bytes[w];
    return need + live;
}

static int try_single_devices(fitting *f)
{
    int found = 0;
    for (int32_t k = 0; k < f->p->n_devices && found >= 0 && !is_late(f); k++) {
        if (place_fit_least_bytes(f->p, k) > f->p->device_memory_bytes[k])
            continue;
        for (int32_t i = 0; i < f->p->n_ops; i++)
            f->device[i] = k;
        int rc = try_assignment(f);
        found = rc < 0 ? rc : found | rc;
    }
    return found;
}

static int try_random(fitting *f)
{
    util_rng rng;
    util_rng_seed(&rng, 1);
    int64_t tries = UTIL_MIN(200, 2000000 / (f->p->n_ops + 1));
    int rc = 0;
    for (int64_t round = 0; round < tries && !rc && !is_late(f); round++) {
        for (int32_t unit = 0; unit < f->u->n; unit++) {
            uint32_t n = util_rng_below(&rng, (uint32_t)place_unit_count(f->u, unit));
            int32_t k = place_unit_device(f->u, unit, (int32_t)n);
            for (int32_t j = f->u->off[unit]; j < f->u->off[unit + 1]; j++)
                f->device[f->u->op[j]] = k;
        }
        rc = place_fit_assignment(f->p, f->u, f->p->device_memory_bytes, f->device);
        if (rc == MOIRAI_EINFEASIBLE)
            return 0;
        rc = rc ? rc : try_assignment(f);
    }
    return rc;
}

/* ---- the whole ---- */

static bool prepare(fitting *f, int32_t *op_device)
{
    size_t V = (size_t)f->p->n_ops;
    for (int i = 0; i < N_ORDERS; i++)
        UTIL_TAKE(&f->memory, f->order[i], V);
    UTIL_TAKE(&f->memory, f->stack, V);
    UTIL_TAKE(&f->memory, f->input, V);
    UTIL_TAKE(&f->memory, f->seen, V);
    UTIL_TAKE(&f->memory, f->priority, V);
    f->device = op_device;
    f->least_excess = -1;
    if (f->memory.failed)
        return false;
    order_depth_first(f, f->order[1]);
    memcpy(f->order[2], f->p->topo, V * sizeof *f->order[2]);
    return true;
}

static int late(void)
{
    return moirai_error(MOIRAI_ELIMIT, "the time was up before a plan was simulated");
}

/* From kind tries to desperate ones. 1: found. */
static int search(fitting *f)
{
    int rc = place_fit_assignment(f->p, f->u, f->p->device_memory_bytes, f->device);
    rc = rc ? rc : try_shedding(f);
    rc = rc ? rc : try_single_devices(f);
    rc = rc ? rc : try_random(f);
    if (!rc && f->sim->stopped && f->least_excess < 0)
        return late();
    rc = rc ? rc
            : moirai_error(MOIRAI_EINFEASIBLE, "device '%s' is %s short of the peak in the best try%s",
                           f->p->device_name[f->short_device], util_human_bytes(f->least_excess).s,
                           is_late(f) ? " when the time was up" : "");
    return rc;
}

/* f->best is a plan, or NULL where none was found. */
static int run(fitting *f, int32_t *op_device, int (*how)(fitting *f))
{
    int rc = prepare(f, op_device) ? how(f) : MOIRAI_EFAIL;
    util_release(&f->memory);
    if (rc < 0)
        moirai_plan_free(f->best);
    return UTIL_MIN(rc, 0);
}

int place_fit_schedule(moirai_plan **out, int64_t *excess_bytes, moirai_sim *sim, const moirai_problem *p,
                       int32_t *op_device, const util_stop *stop)
{
    fitting f = {.p = p, .sim = sim, .stop = stop};
    util_stop before = sim->stop;
    schedule_sim_obey(sim, stop);
    int rc = run(&f, op_device, try_assignment);
    schedule_sim_obey(sim, &before);
    *out = rc ? NULL : f.best;
    *excess_bytes = rc || f.best ? 0 : f.least_excess;
    return rc;
}

static int fit_peak(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, const place_units *u,
                    int32_t *op_device, const util_stop *stop)
{
    fitting f = {.p = p, .u = u, .sim = sim, .stop = stop};
    int rc = run(&f, op_device, search);
    if (rc)
        return rc;
    memcpy(op_device, f.best->op_device, (size_t)p->n_ops * sizeof *op_device);
    *out = f.best;
    return 0;
}

int place_fit_plan(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, const place_units *u,
                   int32_t *op_device, const int64_t *priority, const moirai_task *order, int64_t n_order,
                   const util_stop *stop)
{
    *out = NULL;
    int64_t makespan =
        order ? moirai_sim_replay(sim, op_device, order, n_order) : moirai_sim_dispatch(sim, op_device, priority);
    if (makespan >= 0 && moirai_sim_memory_excess(sim, NULL) == 0)
        return moirai_sim_plan(out, sim);
    if (sim->stopped)
        return late();
    if (p->memory == MOIRAI_MEMORY_PEAK)
        return fit_peak(out, sim, p, u, op_device, stop);
    int rc = place_fit_assignment(p, u, p->device_memory_bytes, op_device);
    if (rc)
        return rc;
    moirai_sim_dispatch(sim, op_device, priority);
    return sim->stopped ? late() : moirai_sim_plan(out, sim);
}

int place_fit_devices(moirai_plan **out, const moirai_problem *p, const int32_t *op_device, const util_stop *stop)
{
    moirai_sim *sim = NULL;
    place_units *units = NULL;
    int32_t *device = util_copy(op_device, (size_t)p->n_ops, sizeof *device);
    int rc = device ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    rc = rc ? rc : place_units_new(&units, p);
    rc = rc ? rc : place_fit_plan(out, sim, p, units, device, NULL, NULL, 0, stop);
    place_units_free(units);
    moirai_sim_free(sim);
    free(device);
    return rc;
}
