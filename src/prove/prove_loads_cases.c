/* Cases of prices on loads (prove_loads.c): the device of an operator, and where a tensor is read.
 *
 * Either leaves no plan out: an operator is on one of its devices; some reader of a tensor is on device l, or none is. In
 * the latter no reader may be there. In the former the transfer to l takes place wherever the tensor is written, unless on l itself, so that it is paid for by its
 * producer, and costs its readers on l nothing; and one of them is there, with what comes before and after it. */
#include "prove/prove_loads.h"

#include <stdlib.h>

static int judge_case(int64_t *ns, prove_court *x, yyjson_val *object);

/* The edges first .. end - 1 of a packet have readers that may be on l. */
static bool may_read(const prove_court *x, int32_t first, int32_t end, int32_t l)
{
    bool any = false;
    for (int32_t e = first; e < end; e++)
        any |= x->may[x->b->edge[e].to] >> l & 1;
    return any;
}

/* No reader is on l: *none where that leaves one of them no device, so that no plan is in this case. */
static int judge_unread(int64_t *ns, prove_court *x, yyjson_val *object, int32_t first, int32_t end, int32_t l)
{
    uint64_t *before = util_alloc((size_t)(end - first), sizeof *before);
    bool empty = false;
    if (!before)
        return MOIRAI_EFAIL;
    for (int32_t e = first; e < end; e++) {
        uint64_t *may = &x->may[x->b->edge[e].to];
        before[e - first] = *may;
        *may &= ~(UINT64_C(1) << l);
        empty |= !*may;
    }
    int rc = empty ? 0 : judge_case(ns, x, object);
    for (int32_t e = end - 1; e >= first; e--)
        x->may[x->b->edge[e].to] = before[e - first];
    free(before);
    return rc;
}

/* Some reader of a tensor is on the device, or none is: the lesser of these cases. */
static int judge_readers(int64_t *ns, prove_court *x, yyjson_val *object, yyjson_val *list)
{
    const prove_block *b = x->b;
    int32_t edge = prove_index(object, "edge", b->n_edges), l = prove_index(object, "device", x->K), first = 0, end = 0;
    if (edge < 0 || l < 0 || x->rate || yyjson_arr_size(list) != 2)
        return prove_wrong(x->rate ? "loads of a period go by cases" : "cases by readers are not two");
    for (; end <= edge; end = prove_packet_end(b, first))
        first = end;
    int64_t with = INT64_MAX, without = INT64_MAX;
    uint64_t before = x->read[first];
    int rc = 0;
    if (may_read(x, first, end, l)) {
        x->read[first] |= UINT64_C(1) << l;
        rc = judge_case(&with, x, yyjson_arr_get(list, 0));
        x->read[first] = before;
    }
    rc = rc ? rc : judge_unread(&without, x, yyjson_arr_get(list, 1), first, end, l);
    *ns = UTIL_MIN(with, without);
    return rc;
}

/* The operator is on one of the devices that it may use: the least of these cases. */
static int judge_case(int64_t *ns, prove_court *x, yyjson_val *object)
{
    yyjson_val *list = prove_get(object, "cases"), *value;
    if (!list)
        return prove_loads_leaf(ns, x, object);
    if (prove_get(object, "edge"))
        return judge_readers(ns, x, object, list);
    int32_t op = prove_index(object, "op", x->b->n);
    if (op < 0 || x->rate || yyjson_arr_size(list) != (size_t)x->K)
        return prove_wrong(x->rate ? "loads of a period go by cases" : "cases of loads are not one per device");
    uint64_t all = x->may[op];
    size_t k, max;
    int rc = 0;
    *ns = INT64_MAX;
    yyjson_arr_foreach(list, k, max, value) {
        int64_t one = 0;
        if (rc || !(all >> k & 1))
            continue;
        x->may[op] = UINT64_C(1) << k;
        rc = judge_case(&one, x, value);
        *ns = UTIL_MIN(*ns, one);
    }
    x->may[op] = all;
    return rc;
}

static int open_court(prove_court *x, int32_t a, int32_t z)
{
    size_t n = (size_t)x->b->n, K = (size_t)x->K, R = (size_t)prove_loads_resources(x->b),
           messages = (size_t)x->b->n_edges * K;
    util_memory *m = &x->memory;
    UTIL_TAKE(m, x->may, n);
    UTIL_TAKE(m, x->read, (size_t)x->b->n_edges);
    PROVE_TAKE(m, x->head, n * K);
    PROVE_TAKE(m, x->tail, n * K);
    UTIL_TAKE(m, x->first, R);
    UTIL_TAKE(m, x->last, R);
    UTIL_TAKE(m, x->price, R);
    UTIL_TAKE(m, x->byte_price, K);
    PROVE_TAKE(m, x->from, messages);
    PROVE_TAKE(m, x->to, messages);
    PROVE_TAKE(m, x->cost, n * K);
    for (int32_t i = 0; !m->failed && i < x->b->n; i++)
        x->may[i] = prove_allowed(x->b, i, a, z);
    return util_taken_all(m);
}

int prove_loads(int64_t *ns, bool *by_bytes, moirai_proof *proof, const prove_block *b, int32_t a, int32_t z, bool rate,
                yyjson_val *object)
{
    prove_court x = {.b = b, .K = b->p->K, .rate = rate, .proof = proof};
    int rc = open_court(&x, a, z);
    rc = rc ? rc : judge_case(ns, &x, object);
    *by_bytes = x.bytes;
    util_release(&x.memory);
    return rc;
}
