/* The static programme's windows: where and when operators can be in a case, for plans of at most `upper`.
 *
 * A case says who receives the entry's tensor and how many operators of a group are on a device. From that follow
 * devices, from these heads and tails by longest paths; an operator whose head, time and tail on a device sum to more
 * than `upper` is not there in any plan of at most `upper`, and neither are the ends of an edge on two devices between
 * which it would take too long. Fewer devices make later heads and longer tails, and narrow the numbers: of the
 * operators of a group no more can be on a device than may be there, no fewer than the others leave over. All of this is
 * repeated until nothing changes. Every step removes something, and what is left at the end does not depend on the order
 * of steps: each of them only asks for more if less is allowed. O(passes edges K^2), a few passes.
 *
 * A search that asks for little more than is proven has a small `upper`, and narrow windows. */
#include "pair/static/static_state.h"
#include "schedule/paths.h"

#include <string.h>

#include "util/util.h"

/* When the entry's tensor is on device k at the soonest, by the order in which devices receive it. */
static int64_t received_ns(const pair_programme *x, int32_t k)
{
    int64_t ns = moirai_op_ns(x->q, x->q->tensor_producer[x->number.sent], x->number.sender);
    for (int32_t i = 0; i < x->at.to.n; i++) {
        ns += moirai_transfer_ns(x->q, x->number.sent, x->number.sender, x->at.to.device[i]);
        if (x->at.to.device[i] == k)
            return ns;
    }
    return ns + moirai_transfer_ns(x->q, x->number.sent, x->number.sender, k);
}

static bool is_in(const pair_receivers *list, int32_t k)
{
    bool one = !list->closed;
    for (int32_t i = 0; i < list->n && !one; i++)
        one = list->device[i] == k;
    return one;
}

static bool receives(const pair_programme *x, int32_t k)
{
    return k == x->number.sender || is_in(&x->at.to, k);
}

/* What follows the arrival of a result from k on the exit's device: the last results of those that come later. */
static int64_t returned_ns(const pair_programme *x, int32_t k)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < x->at.back.n && x->at.back.device[i] != k; i++)
        ns += x->result.ns[x->at.back.device[i]];
    return ns;
}

/* Whether tensor t can go from a to b at all. */
static bool may_go(const pair_programme *x, int32_t t, int32_t a, int32_t b)
{
    return a == b || b != x->result.exit_device || !x->result.is[t] || is_in(&x->at.back, a);
}

/* What follows the finish of its producer on a, tensor t being read by j on b. */
static int64_t departure_ns(const pair_programme *x, int32_t t, int32_t a, int32_t j, int32_t b)
{
    int64_t after = x->at.tail[(int64_t)j * x->K + b] + moirai_op_ns(x->q, j, b);
    if (a != b && b == x->result.exit_device && x->result.is[t])
        after = UTIL_MAX(after, returned_ns(x, a));
    return UTIL_MIN(after + moirai_transfer_ns(x->q, t, a, b), SCHEDULE_NEVER_NS);
}

static void restrict_readers(pair_programme *x)
{
    const moirai_problem *q = x->q;
    memcpy(x->at.mask, x->at.told, sizeof *x->at.mask * (size_t)x->n);
    if (x->number.sent == MOIRAI_NONE)
        return;
    for (int32_t e = q->tensor_edge_off[x->number.sent]; e < q->tensor_edge_off[x->number.sent + 1]; e++)
        for (int32_t k = 0; k < x->K; k++)
            if (!receives(x, k))
                x->at.mask[q->edge_reader[e]] &= ~(UINT64_C(1) << k);
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
                uint64_t devices = x->at.mask[q->tensor_producer[t]];
                for (int32_t l = 0; l < K; l++)
                    devices &= may_go(x, t, l, k) ? ~UINT64_C(0) : ~(UINT64_C(1) << l);
                int64_t at = schedule_arrival_ns(q, x->at.head, devices, t, k, 0);
                if (t == x->number.sent && k != x->number.sender)
                    at = UTIL_MAX(at, received_ns(x, k));
                head = UTIL_MAX(head, at);
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
                if (pair_programme_allows(x, q->edge_reader[e], l) && may_go(x, t, k, l))
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

static void count_group(const pair_programme *x, int32_t g, int32_t k, int64_t *may, int64_t *must)
{
    uint64_t here = UINT64_C(1) << k;
    *may = *must = 0;
    for (int32_t i = x->number.group_off[g]; i < x->number.group_off[g + 1]; i++) {
        *may += (x->at.mask[x->number.group_op[i]] & here) != 0;
        *must += x->at.mask[x->number.group_op[i]] == here;
    }
}

/* The ranges of a group's numbers, by its operators' devices and by each other; true: some device is lost. */
static bool narrow_group(pair_programme *x, int32_t g)
{
    int64_t *least = x->at.least + g * x->K, *most = x->at.most + g * x->K,
            size = x->number.group_off[g + 1] - x->number.group_off[g];
    bool any = false;
    for (int32_t again = 1; again;) {
        int64_t sum_least = 0, sum_most = 0;
        again = 0;
        for (int32_t k = 0; k < x->K; k++) {
            sum_least += least[k];
            sum_most += most[k];
        }
        for (int32_t k = 0; k < x->K && least[k] <= most[k]; k++) {
            int64_t may, must;
            count_group(x, g, k, &may, &must);
            int64_t low = UTIL_MAX(UTIL_MAX(least[k], must), size - (sum_most - most[k])),
                    high = UTIL_MIN(UTIL_MIN(most[k], may), size - (sum_least - least[k]));
            again |= low > least[k] || high < most[k];
            sum_least += low - least[k];
            sum_most += high - most[k];
            least[k] = low;
            most[k] = high;
            if (low > high)
                return false; /* no plans: pair_windows_empty sees it */
        }
    }
    for (int32_t i = x->number.group_off[g]; i < x->number.group_off[g + 1]; i++)
        for (int32_t k = 0; k < x->K; k++)
            if (most[k] == 0 && pair_programme_allows(x, x->number.group_op[i], k)) {
                x->at.mask[x->number.group_op[i]] &= ~(UINT64_C(1) << k);
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
                may_go(x, q->edge_tensor[e], a, b) &&
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
    restrict_readers(x);
    for (bool again = true; again;) {
        again = false;
        for (int32_t g = 0; g < x->number.n_groups; g++)
            again |= narrow_group(x, g);
        find_heads(x);
        find_tails(x);
        again |= drop_devices(x);
    }
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
