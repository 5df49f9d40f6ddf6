/* Prices of paths.
 *
 * Of operators each of which reads what the one before makes one runs at a time, so that they take at most T together, the time between the cuts: a
 * path is a resource of all devices, whose price is added to what its operators cost. */
#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define MOST_PATHS 65536

typedef __int128 wide;

static bool reads(const prove_block *b, int32_t from, int32_t to)
{
    int32_t first = 0, end = b->n_edges;
    while (first < end) { /* edges ascend by their producers */
        int32_t middle = first + (end - first) / 2;
        first = b->edge[middle].from < from ? middle + 1 : first;
        end = b->edge[middle].from < from ? end : middle;
    }
    while (first < b->n_edges && b->edge[first].from == from && b->edge[first].to != to)
        first++;
    return first < b->n_edges && b->edge[first].from == from;
}

/* The next operator of a path with this price, after `last` (-1: the first). */
static int step_on_path(wide *cost, const prove_block *b, const uint64_t *may, int64_t price, int64_t last, int64_t op)
{
    if (op < 0 || op >= b->n || (last >= 0 && !reads(b, (int32_t)last, (int32_t)op)))
        return prove_wrong("a path's operator does not read what the one before makes");
    for (int32_t k = 0; k < b->p->K; k++)
        if (may[op] >> k & 1)
            cost[op * b->p->K + k] += (wide)price * prove_op_ns(b, (int32_t)op, k);
    return 0;
}

int prove_add_paths(wide *cost, wide *prices, const prove_block *b, const uint64_t *may, yyjson_val *list)
{
    size_t i, max, left = 0, paths = 0;
    int64_t price = -1, last = -1;
    yyjson_val *value;
    int rc = 0;
    yyjson_arr_foreach(list, i, max, value) {
        int64_t number = yyjson_get_sint(value);
        if (rc) {
            break;
        } else if (left > 0) {
            rc = step_on_path(cost, b, may, price, last, number);
            last = --left > 0 ? number : -1;
            price = left > 0 ? price : -1;
        } else if (price < 0) {
            price = number;
            *prices += price;
            rc = price > PROVE_MOST_ROW_PRICE ? prove_wrong("a price of a path is too large") : prove_go_on(b->p);
            rc = rc || ++paths <= MOST_PATHS ? rc : prove_too_large("more paths than the verifier takes");
        } else {
            left = (size_t)number;
            rc = number < 1 || number > b->n ? prove_wrong("a path has no operators, or more than there are") : 0;
        }
    }
    return rc || (left == 0 && price < 0) ? rc : prove_wrong("a path ends early");
}
