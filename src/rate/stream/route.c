/* Routes: a placement unfolded into what the simulator asks at every event.
 *
 * The order of one request's operators is that of their starts in its plan, which is total (ties by topological rank) and agrees with
 * precedence. A device that always takes the oldest request first, and within it the least rank, can therefore never wait in a circle: of all
 * tasks that are left, the least by (request, rank) has all its inputs. */
#include "rate/stream/route.h"

#include <stdlib.h>
#include <string.h>

#include <moirai/schedule.h>

#include "util/sort.h"
#include "util/util.h"

void rate_route_free(rate_route *r)
{
    if (!r)
        return;
    void *all[] = {r->op, r->local, r->send, r->reader, r->shared, r->buffer, r->missing, r->left};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(r);
}

static int rank_ops(rate_route *r, const int64_t *op_start_ns)
{
    const moirai_problem *p = r->p;
    size_t n = (size_t)p->n_ops;
    uint64_t *key = util_alloc(2 * n, sizeof *key);
    int32_t *by_rank = util_alloc(n, sizeof *by_rank), *spare = util_alloc(n, sizeof *spare);
    int rc = key && by_rank && spare ? 0 : MOIRAI_EFAIL;
    for (int32_t z = 0; z < p->n_ops && !rc; z++) { /* equal keys keep the topological order */
        by_rank[z] = p->topo[z];
        key[z] = (uint64_t)op_start_ns[p->topo[z]];
    }
    if (!rc)
        util_sort(key, by_rank, key + n, spare, p->n_ops);
    int64_t span = 1;
    for (int32_t i = 0; i < p->n_ops; i++)
        span = UTIL_MAX(span, op_start_ns[i] + r->op[i].ns);
    for (int32_t z = 0; z < p->n_ops && !rc; z++) {
        rate_op *op = &r->op[by_rank[z]];
        op->rank = z;
        op->place = (int32_t)((__int128)op_start_ns[by_rank[z]] * RATE_WHOLE / span);
    }
    free(key);
    free(by_rank);
    free(spare);
    return rc;
}

/* Readers on the producer's own device. */
static void list_local(rate_route *r)
{
    const moirai_problem *p = r->p;
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        r->op[i].local = n;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++)
            for (int32_t t = p->op_out[o], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                if (r->op[p->edge_reader[e]].device == r->op[i].device) {
                    r->local[n++] = p->edge_reader[e];
                    r->buffer[t].uses++;
                }
        r->op[i].n_local = n - r->op[i].local;
    }
}

/* One transfer of tensor t into the last buffer with all its readers there, or with the reader of edge `only`. */
static void add_send(rate_route *r, int32_t t, int32_t only, int32_t *n_readers)
{
    const moirai_problem *p = r->p;
    int32_t there = r->n_buffers - 1, d = r->buffer[there].device, from = r->buffer[t].device;
    rate_send s = {.from = from, .to = d, .rank = INT32_MAX, .home = t, .there = there, .first = *n_readers};
    s.bytes = p->tensor_bytes[t];
    s.ns = moirai_transfer_ns(p, t, from, d);
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        const rate_op *reader = &r->op[p->edge_reader[e]];
        if (reader->device != d || (only != MOIRAI_NONE && e != only))
            continue;
        if (reader->rank < s.rank) {
            s.rank = reader->rank;
            s.place = reader->place;
        }
        r->reader[(*n_readers)++] = p->edge_reader[e];
    }
    s.end = *n_readers;
    r->buffer[t].uses++;
    r->send[r->n_sends++] = s;
}

static void list_sends_of(rate_route *r, int32_t t, int32_t *n_readers)
{
    const moirai_problem *p = r->p;
    int32_t home = r->buffer[t].device, begin = p->tensor_edge_off[t], end = p->tensor_edge_off[t + 1];
    uint64_t to = 0;
    for (int32_t e = begin; e < end; e++)
        to |= UINT64_C(1) << r->op[p->edge_reader[e]].device;
    for (to &= ~(UINT64_C(1) << home); to; to &= to - 1) {
        int32_t d = __builtin_ctzll(to), there = r->n_buffers++;
        r->buffer[there] = (rate_buffer){.bytes = p->tensor_bytes[t], .device = d};
        for (int32_t e = begin; e < end; e++)
            if (r->op[p->edge_reader[e]].device == d) {
                r->buffer[there].uses++;
                if (p->flow == MOIRAI_FLOW_EDGE)
                    add_send(r, t, e, n_readers);
            }
        if (p->flow == MOIRAI_FLOW_TENSOR)
            add_send(r, t, MOIRAI_NONE, n_readers);
    }
}

/* `read` [edge]: the buffer. */
static void list_sends(rate_route *r, int32_t *read)
{
    const moirai_problem *p = r->p;
    int32_t n_readers = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        r->op[i].send = r->n_sends;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++) {
            int32_t t = p->op_out[o], first = r->n_buffers;
            list_sends_of(r, t, &n_readers);
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                read[e] = t;
                for (int32_t b = first; b < r->n_buffers; b++)
                    if (r->buffer[b].device == r->op[p->edge_reader[e]].device)
                        read[e] = b;
            }
        }
        r->op[i].n_sends = r->n_sends - r->op[i].send;
    }
}

/* What is used once goes with its one use, what nobody uses with its request; the others are counted. */
static void count_uses(rate_route *r, const int32_t *read)
{
    const moirai_problem *p = r->p;
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        r->op[i].shared = n;
        for (int32_t a = p->op_in_off[i]; a < p->op_in_off[i + 1]; a++) {
            int32_t b = read[p->op_in_edge[a]];
            if (r->buffer[b].uses == 1)
                r->op[i].in_bytes += r->buffer[b].bytes;
            else
                r->shared[n++] = b;
        }
        r->op[i].n_shared = n - r->op[i].shared;
    }
    for (int32_t i = 0; i < r->n_sends; i++) {
        rate_send *s = &r->send[i];
        s->home = r->buffer[s->home].uses == 1 ? MOIRAI_NONE : s->home;
        s->there = r->buffer[s->there].uses == 1 ? MOIRAI_NONE : s->there;
    }
    for (int32_t b = 0; b < r->n_buffers; b++) {
        const rate_buffer *buffer = &r->buffer[b];
        r->left[b] = b < p->n_tensors ? buffer->uses : -1;
        r->result_bytes[buffer->device] += buffer->uses == 0 ? buffer->bytes : 0;
    }
}

static void take_devices(rate_route *r, const int32_t *op_device)
{
    const moirai_problem *p = r->p;
    for (int32_t i = 0; i < p->n_ops; i++) {
        rate_op *op = &r->op[i];
        op->device = op_device[i];
        op->ns = moirai_op_ns(p, i, op->device);
        op->inputs = r->missing[i] = p->op_in_off[i + 1] - p->op_in_off[i];
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++)
            op->out_bytes += p->tensor_bytes[p->op_out[o]];
    }
    for (int32_t t = 0; t < p->n_tensors; t++)
        r->buffer[r->n_buffers++] =
            (rate_buffer){.bytes = p->tensor_bytes[t], .device = op_device[p->tensor_producer[t]]};
}

static int open_route(rate_route *r, const int32_t *op_device, const int64_t *op_start_ns)
{
    const moirai_problem *p = r->p;
    size_t n = (size_t)p->n_ops, E = (size_t)p->n_edges, B = (size_t)p->n_tensors + E;
    r->op = util_alloc(n, sizeof *r->op);
    r->local = util_alloc(E, sizeof *r->local);
    r->send = util_alloc(E, sizeof *r->send);
    r->reader = util_alloc(E, sizeof *r->reader);
    r->shared = util_alloc(E, sizeof *r->shared);
    r->buffer = util_alloc(B, sizeof *r->buffer);
    r->missing = util_alloc(n, sizeof *r->missing);
    r->left = util_alloc(B, sizeof *r->left);
    int32_t *read = util_alloc(E, sizeof *read);
    int rc = r->op && r->local && r->send && r->reader && r->shared && r->buffer && r->missing && r->left && read
                 ? 0
                 : MOIRAI_EFAIL;
    if (!rc)
        take_devices(r, op_device);
    rc = rc ? rc : rank_ops(r, op_start_ns);
    if (!rc) {
        list_local(r);
        list_sends(r, read);
        count_uses(r, read);
    }
    free(read);
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

int64_t rate_count_sends(const moirai_problem *p, const int32_t *op_device)
{
    int64_t n = 0;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        uint64_t seen = UINT64_C(1) << op_device[p->tensor_producer[t]];
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            uint64_t there = UINT64_C(1) << op_device[p->edge_reader[e]];
            n += !(seen & there);
            seen |= p->flow == MOIRAI_FLOW_TENSOR ? there : 0;
        }
    }
    return n;
}
