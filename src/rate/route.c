/* Routes: a placement unfolded into what the simulator asks at every event.
 *
 * The order of one request's operators is that of their starts in its plan, which is total (ties by topological rank) and agrees with
 * precedence. A device that always takes the oldest request first, and within it the least rank, can therefore never wait in a circle: of all
 * tasks that are left, the least by (request, rank) has all its inputs. */
#include "rate/route.h"

#include <stdlib.h>
#include <string.h>

#include <moirai/schedule.h>

#include "util/sort.h"
#include "util/util.h"

void rate_route_free(rate_route *r)
{
    if (!r)
        return;
    void *all[] = {r->device,    r->op_ns,     r->rank,      r->by_rank,     r->place,
                   r->local_off, r->local,     r->send_off,  r->send,        r->reader,
                   r->in_hold,   r->home_uses, r->hold_uses, r->hold_tensor, r->hold_device};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(r);
}

static int rank_ops(rate_route *r, const int64_t *op_start_ns)
{
    const moirai_problem *p = r->p;
    size_t n = (size_t)p->n_ops;
    uint64_t *key = util_alloc(2 * n, sizeof *key);
    int32_t *spare = util_alloc(n, sizeof *spare);
    if (!key || !spare) {
        free(key);
        free(spare);
        return MOIRAI_EFAIL;
    }
    for (int32_t z = 0; z < p->n_ops; z++) { /* equal keys keep the topological order */
        r->by_rank[z] = p->topo[z];
        key[z] = (uint64_t)op_start_ns[p->topo[z]];
    }
    util_sort(key, r->by_rank, key + n, spare, p->n_ops);
    int64_t span = 1;
    for (int32_t i = 0; i < p->n_ops; i++)
        span = UTIL_MAX(span, op_start_ns[i] + r->op_ns[i]);
    for (int32_t z = 0; z < p->n_ops; z++) {
        r->rank[r->by_rank[z]] = z;
        r->place[z] = (int32_t)((__int128)op_start_ns[r->by_rank[z]] * RATE_WHOLE / span);
    }
    free(key);
    free(spare);
    return 0;
}

/* Readers on the producer's own device. */
static void list_local(rate_route *r)
{
    const moirai_problem *p = r->p;
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        r->local_off[i] = n;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++)
            for (int32_t t = p->op_out[o], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                if (r->device[p->edge_reader[e]] == r->device[i]) {
                    r->local[n++] = p->edge_reader[e];
                    r->home_uses[t]++;
                }
    }
    r->local_off[p->n_ops] = n;
}

/* One transfer of tensor t to device d with all its readers there, or with the reader of edge `only`. */
static void add_send(rate_route *r, int32_t t, int32_t d, int32_t only, int32_t *n_readers)
{
    const moirai_problem *p = r->p;
    int32_t from = r->device[p->tensor_producer[t]];
    rate_send s = {.tensor = t, .from = from, .to = d, .rank = INT32_MAX, .hold = r->n_holds - 1, .first = *n_readers};
    s.ns = moirai_transfer_ns(p, t, from, d);
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        int32_t reader = p->edge_reader[e];
        if (r->device[reader] != d || (only != MOIRAI_NONE && e != only))
            continue;
        s.rank = UTIL_MIN(s.rank, r->rank[reader]);
        r->reader[(*n_readers)++] = reader;
    }
    s.end = *n_readers;
    r->home_uses[t]++;
    r->send[r->n_sends++] = s;
}

static void list_sends_of(rate_route *r, int32_t t, int32_t *n_readers)
{
    const moirai_problem *p = r->p;
    int32_t home = r->device[p->tensor_producer[t]], begin = p->tensor_edge_off[t], end = p->tensor_edge_off[t + 1];
    uint64_t to = 0;
    for (int32_t e = begin; e < end; e++)
        to |= UINT64_C(1) << r->device[p->edge_reader[e]];
    for (to &= ~(UINT64_C(1) << home); to; to &= to - 1) {
        int32_t d = __builtin_ctzll(to), h = r->n_holds++;
        r->hold_tensor[h] = t;
        r->hold_device[h] = d;
        for (int32_t e = begin; e < end; e++)
            if (r->device[p->edge_reader[e]] == d) {
                r->hold_uses[h]++;
                if (p->flow == MOIRAI_FLOW_EDGE)
                    add_send(r, t, d, e, n_readers);
            }
        if (p->flow == MOIRAI_FLOW_TENSOR)
            add_send(r, t, d, MOIRAI_NONE, n_readers);
    }
}

/* `hold_at` [edge]: the buffer that it reads. */
static void list_sends(rate_route *r, int32_t *hold_at)
{
    const moirai_problem *p = r->p;
    int32_t n_readers = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        r->send_off[i] = r->n_sends;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++) {
            int32_t t = p->op_out[o], first = r->n_holds;
            list_sends_of(r, t, &n_readers);
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                hold_at[e] = MOIRAI_NONE;
                for (int32_t h = first; h < r->n_holds; h++)
                    if (r->hold_device[h] == r->device[p->edge_reader[e]])
                        hold_at[e] = h;
            }
        }
    }
    r->send_off[p->n_ops] = r->n_sends;
    for (int32_t a = 0; a < p->op_in_off[p->n_ops]; a++)
        r->in_hold[a] = hold_at[p->op_in_edge[a]];
}

static int open_route(rate_route *r, const int32_t *op_device, const int64_t *op_start_ns)
{
    const moirai_problem *p = r->p;
    size_t n = (size_t)p->n_ops, E = (size_t)p->n_edges;
    r->device = util_alloc(n, sizeof *r->device);
    r->op_ns = util_alloc(n, sizeof *r->op_ns);
    r->rank = util_alloc(n, sizeof *r->rank);
    r->by_rank = util_alloc(n, sizeof *r->by_rank);
    r->place = util_alloc(n, sizeof *r->place);
    r->local_off = util_alloc(n + 1, sizeof *r->local_off);
    r->local = util_alloc(E, sizeof *r->local);
    r->send_off = util_alloc(n + 1, sizeof *r->send_off);
    r->send = util_alloc(E, sizeof *r->send);
    r->reader = util_alloc(E, sizeof *r->reader);
    r->in_hold = util_alloc(E, sizeof *r->in_hold);
    r->home_uses = util_alloc((size_t)p->n_tensors, sizeof *r->home_uses);
    r->hold_uses = util_alloc(E, sizeof *r->hold_uses);
    r->hold_tensor = util_alloc(E, sizeof *r->hold_tensor);
    r->hold_device = util_alloc(E, sizeof *r->hold_device);
    int32_t *hold_at = util_alloc(E, sizeof *hold_at);
    int rc = r->device && r->op_ns && r->rank && r->by_rank && r->place && r->local_off && r->local && r->send_off &&
                     r->send && r->reader && r->in_hold && r->home_uses && r->hold_uses && r->hold_tensor &&
                     r->hold_device && hold_at
                 ? 0
                 : MOIRAI_EFAIL;
    if (!rc && n > 0)
        memcpy(r->device, op_device, sizeof *r->device * n);
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        r->op_ns[i] = moirai_op_ns(p, i, r->device[i]);
    rc = rc ? rc : rank_ops(r, op_start_ns);
    if (!rc) {
        list_local(r);
        list_sends(r, hold_at);
    }
    free(hold_at);
    return rc;
}

int rate_route_new(rate_route **out, const moirai_problem *p, const int32_t *op_device, const int64_t *op_start_ns)
{
    rate_route *r = *out = util_alloc(1, sizeof *r);
    if (!r)
        return MOIRAI_EFAIL;
    r->p = p;
    int rc = open_route(r, op_device, op_start_ns);
    if (rc) {
        rate_route_free(r);
        *out = NULL;
    }
    return rc;
}

int rate_route_of(rate_route **out, const moirai_problem *p, const int32_t *op_device)
{
    moirai_sim *sim = NULL;
    *out = NULL;
    int rc = moirai_sim_new(&sim, p);
    if (!rc && moirai_sim_dispatch(sim, op_device, NULL) < 0)
        rc = moirai_error(MOIRAI_EFAIL, "a copy of '%s' is where its operators may not be", p->name);
    rc = rc ? rc : rate_route_new(out, p, op_device, moirai_sim_op_start(sim));
    moirai_sim_free(sim);
    return rc;
}
