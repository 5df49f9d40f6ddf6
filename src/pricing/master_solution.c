/* What the last master chose: its LP solution, read in several ways.
 *
 * The LP solution is no plan, since parts of schedules are chosen and only sums over buckets are kept to; but it tells
 * where good plans are (the schedules themselves, as hints for annealing), and what is wrong with it is where a case is
 * best split: a number that is not whole, a tensor that is read before it arrives, block times that are far apart. Each
 * query is linear in the LP solution. */
#include <math.h>
#include <string.h>

#include "pricing/master_state.h"
#include "util/util.h"

/* A schedule that is in the LP solution; NULL: no schedule, or not in it. */
static const pricing_column *chosen(const pricing_master *m, size_t x)
{
    const pricing_column *c = pricing_master_column(m, x);
    return c && c->kind >= 0 && m->lp.primal[x] > 1e-6 ? c : NULL;
}

/* How often a schedule is told, each time with other devices in place of stand-ins. */
static int32_t versions(const pricing_master *m, const pricing_column *c)
{
    int32_t most = 1;
    for (int32_t i = 0; i < c->n_ops; i++)
        most = UTIL_MAX(most, pricing_pricer_copies(m->w, pricing_pricer_stand_in(m->w, c->device[i])));
    return most;
}

/* The number-th of the devices for which the stand-in of k stands, counted round and round. */
static int8_t copy_of(const pricing_master *m, int32_t k, int32_t number)
{
    int32_t own = pricing_pricer_stand_in(m->w, k), left = number % pricing_pricer_copies(m->w, own), i = 0;
    while (pricing_pricer_stand_in(m->w, i) != own || left-- > 0)
        i++;
    return (int8_t)i;
}

/* Patterns, then starts, then devices, in one piece of memory. */
pricing_chosen_column *pricing_master_solution(const pricing_master *m, int32_t *n)
{
    size_t columns = 0, ops = 0;
    for (size_t x = 0; x < m->lp.n_solved; x++)
        if (chosen(m, x)) {
            size_t times = (size_t)versions(m, chosen(m, x));
            columns += times;
            ops += times * (size_t)chosen(m, x)->n_ops;
        }
    char *memory = util_alloc(1, (columns + 1) * sizeof(pricing_chosen_column) + ops * (sizeof(int64_t) + 1));
    pricing_chosen_column *kept = (pricing_chosen_column *)(void *)memory;
    int64_t *start = (int64_t *)(void *)(memory + (columns + 1) * sizeof *kept);
    int8_t *device = (int8_t *)(start + ops);
    *n = 0;
    for (size_t x = 0; memory && x < m->lp.n_solved; x++) {
        const pricing_column *c = chosen(m, x);
        if (!c)
            continue;
        int32_t times = versions(m, c);
        for (int32_t v = 0; v < times; v++) {
            memcpy(start, c->start, sizeof *start * (size_t)c->n_ops);
            for (int32_t i = 0; i < c->n_ops; i++)
                device[i] = copy_of(m, c->device[i], v);
            kept[(*n)++] = (pricing_chosen_column){c->kind, m->lp.primal[x] / times, device, start};
            start += c->n_ops;
            device += c->n_ops;
        }
    }
    return kept;
}

double pricing_master_number(const pricing_master *m, int32_t kind, int32_t op, int32_t device)
{
    double sum = 0;
    for (size_t x = 0; x < m->lp.n_solved; x++) {
        const pricing_column *c = pricing_master_column(m, x);
        if (c && c->kind == kind && pricing_pricer_stand_in(m->w, c->device[op]) == device)
            sum += m->lp.primal[x];
    }
    return sum / UTIL_MAX(pricing_pricer_copies(m->w, device), 1); /* equal devices share it evenly */
}

static double mean_arrival(const pricing_master *m, int32_t send)
{
    double arrival = 0, sum = 0;
    for (size_t x = 0; x < m->lp.n_solved; x++) {
        const pricing_column *c = pricing_master_column(m, x);
        if (c && c->kind == -1 - send) {
            arrival += m->lp.primal[x] * (double)c->finish_ns;
            sum += m->lp.primal[x];
        }
    }
    return arrival / fmax(sum, 1e-9);
}

static bool reads(const moirai_problem *q, int32_t op, int32_t tensor)
{
    for (int32_t j = q->op_in_off[op]; j < q->op_in_off[op + 1]; j++)
        if (q->op_in[j] == tensor)
            return true;
    return false;
}

double pricing_master_early(const pricing_master *m, int32_t send, double *mean_arrival_ns)
{
    const decompose_block *b = m->b;
    int32_t device = m->how.receiver[send], shared = decompose_block_shared_tensor(b);
    double arrival = mean_arrival(m, send), early = 0;
    for (size_t x = 0; x < m->lp.n_solved; x++) {
        const pricing_column *c = pricing_master_column(m, x);
        for (int32_t i = 0; c && c->kind >= 0 && i < c->n_ops; i++) {
            int32_t op = b->component_op[b->component_off[b->kind_component[c->kind]] + i];
            if (c->device[i] == device && (double)c->start[i] < arrival && reads(&b->problem, op, shared))
                early += m->lp.primal[x] * (double)moirai_op_ns(&b->problem, op, device);
        }
    }
    *mean_arrival_ns = arrival;
    return early;
}

int64_t pricing_master_arrival(const pricing_master *m, int32_t send)
{
    return pricing_pricer_arrival(m->w, m->how.receiver[send]);
}

int64_t pricing_master_arrived(const pricing_master *m, int32_t send)
{
    return pricing_pricer_arrived(m->w, m->how.receiver[send]);
}

double pricing_master_length(const pricing_master *m, double *spread_ns)
{
    double sum = 0, mean = 0;
    *spread_ns = 0;
    for (int32_t j = 0; m->lp.n_solved && j < m->n_lengths; j++) {
        sum += m->lp.primal[j];
        mean += m->lp.primal[j] * m->length_ns[j];
    }
    mean /= fmax(sum, 1e-9);
    for (int32_t j = 0; m->lp.n_solved && j < m->n_lengths; j++)
        *spread_ns += m->lp.primal[j] / fmax(sum, 1e-9) * fabs(m->length_ns[j] - mean);
    return mean;
}
