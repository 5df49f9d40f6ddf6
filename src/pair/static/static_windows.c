/* The static programme's windows: where and when operators can be, for plans of at most `upper`.
 *
 * Heads and tails are longest paths; an operator whose head, time and tail on a device sum to more than `upper` is not
 * there in any plan of at most `upper`, and neither are the ends of an edge on two devices between which it would take too
 * long. Fewer devices make later heads and longer tails: all of this is repeated until nothing changes. Every step removes
 * something, and what is left at the end does not depend on the order of steps: each of them only asks for more if less is
 * allowed. O(passes edges K^2), a few passes. */
#include "pair/static/static_state.h"
#include "schedule/paths.h"

#include <string.h>

#include "util/util.h"

/* What follows the finish of its producer on a, tensor t being read by j on b. */
static int64_t departure_ns(const pair_programme *x, int32_t t, int32_t a, int32_t j, int32_t b)
{
    int64_t after = x->at.tail[(int64_t)j * x->K + b] + moirai_op_ns(x->q, j, b);
    return UTIL_MIN(after + moirai_transfer_ns(x->q, t, a, b), SCHEDULE_NEVER_NS);
}

static void find_heads(pair_programme *x)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    for (int32_t z = 0; z < x->n; z++)
        for (int32_t i = q->topo[z], k = 0; k < K; k++) {
            int64_t head = pair_programme_allows(x, i, k) ? 0 : SCHEDULE_NEVER_NS;
            for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++) {
                int32_t t = q->op_in[j];
                head = UTIL_MAX(head, schedule_arrival_ns(q, x->at.head, x->at.mask[q->tensor_producer[t]], t, k, 0));
            }
            x->at.head[(int64_t)i * K + k] = UTIL_MIN(head, SCHEDULE_NEVER_NS);
        }
}

static int64_t tail_of(const pair_programme *x, int32_t i, int32_t k)
{
    const moirai_problem *q = x->q;
    int64_t tail = 0;
    for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
        for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++) {
            int64_t least = SCHEDULE_NEVER_NS;
            for (int32_t l = 0; l < x->K; l++)
                if (pair_programme_allows(x, q->edge_reader[e], l))
                    least = UTIL_MIN(least, departure_ns(x, t, k, q->edge_reader[e], l));
            tail = UTIL_MAX(tail, least);
        }
    return tail;
}

static void find_tails(pair_programme *x)
{
    for (int32_t z = x->n - 1; z >= 0; z--)
        for (int32_t i = x->q->topo[z], k = 0; k < x->K; k++)
            x->at.tail[(int64_t)i * x->K + k] = pair_programme_allows(x, i, k) ? tail_of(x, i, k) : SCHEDULE_NEVER_NS;
}

/* ---- what the windows leave ---- */

/* What the shortest path through operator i on k takes; it may be NEVER. */
static int64_t through_ns(const pair_programme *x, int32_t i, int32_t k)
{
    int64_t cell = (int64_t)i * x->K + k;
    return UTIL_MIN(x->at.head[cell] + moirai_op_ns(x->q, i, k) + x->at.tail[cell], SCHEDULE_NEVER_NS);
}

/* Devices on which an operator would be too late; false: there are none. */
static bool drop_devices(pair_programme *x)
{
    bool any = false;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t k = 0; k < x->K; k++)
            if (pair_programme_allows(x, i, k) && through_ns(x, i, k) > x->upper_ns) {
                x->at.mask[i] &= ~(UINT64_C(1) << k);
                any = true;
            }
    return any;
}

/* ---- transfers ---- */

/* The ends of an edge on two devices, if a plan can have them there. */
static void find_cells(pair_programme *x)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    for (int32_t e = 0; e < x->E; e++)
        for (int32_t ab = 0; ab < K * K; ab++) {
            int32_t i = x->edges.from[e], j = q->edge_reader[e], a = ab / K, b = ab % K;
            bool *cell = &x->at.cell[(int64_t)e * K * K + ab];
            *cell =
                pair_programme_allows(x, i, a) && pair_programme_allows(x, j, b) &&
                x->at.head[(int64_t)i * K + a] + moirai_op_ns(q, i, a) + departure_ns(x, q->edge_tensor[e], a, j, b) <=
                    x->upper_ns;
        }
}

/* A transfer begins when its tensor exists; some reader follows where it arrives. */
static void find_transfer_windows(pair_programme *x)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    for (int32_t t = 0; t < q->n_tensors; t++)
        for (int32_t k = 0; k < K; k++) {
            int32_t i = q->tensor_producer[t];
            int64_t least = INT64_MAX;
            x->at.send[(int64_t)t * K + k] =
                pair_programme_allows(x, i, k) ? x->at.head[(int64_t)i * K + k] + moirai_op_ns(q, i, k) : INT64_MAX;
            for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++) {
                int32_t r = q->edge_reader[e];
                if (pair_programme_allows(x, r, k))
                    least = UTIL_MIN(least, moirai_op_ns(q, r, k) + x->at.tail[(int64_t)r * K + k]);
            }
            x->at.arrive[(int64_t)t * K + k] = least; /* INT64_MAX: never arrives here */
        }
}

static void find_start_windows(pair_programme *x)
{
    for (int32_t i = 0; i < x->n; i++) {
        int64_t first = SCHEDULE_NEVER_NS, after = SCHEDULE_NEVER_NS;
        for (int32_t k = 0; k < x->K; k++)
            if (pair_programme_allows(x, i, k)) {
                first = UTIL_MIN(first, x->at.head[(int64_t)i * x->K + k]);
                after = UTIL_MIN(after, moirai_op_ns(x->q, i, k) + x->at.tail[(int64_t)i * x->K + k]);
            }
        x->at.first[i] = first;
        x->at.last[i] = x->upper_ns - after;
    }
}

void pair_windows_find(pair_programme *x)
{
    memcpy(x->at.mask, x->q->op_devices, sizeof *x->at.mask * (size_t)x->n);
    do {
        find_heads(x);
        find_tails(x);
    } while (drop_devices(x));
    find_cells(x);
    find_transfer_windows(x);
    find_start_windows(x);
}

bool pair_windows_empty(const pair_programme *x)
{
    int32_t cells = x->K * x->K;
    for (int32_t i = 0; i < x->n; i++)
        if (!x->at.mask[i])
            return true;
    for (int32_t e = 0; e < x->E; e++) {
        bool any = false;
        for (int32_t ab = 0; ab < cells && !any; ab++)
            any = x->at.cell[(int64_t)e * cells + ab];
        if (!any)
            return true;
    }
    return false;
}
