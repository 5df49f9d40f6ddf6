/* Bytes in a certificate (docs/certificate.md, "Memory").
 *
 * At prices u(k) >= 0 per byte of device k, in units of which `unit` make a nanosecond, every plan that fits obeys
 *     unit * makespan  >=  (unit * makespan + sum of u(k) * bytes on k)  -  sum of u(k) * capacity(k).
 * The bracket splits along the chain. A block of length L between two devices costs at least unit * L + its bytes where
 * they are cheapest; and, at any prices in time, at least what its tasks and bytes pay + unit * L - (what all resources
 * are worth until L), since the tasks are done within L. A leaf says between which lengths L lies: the least over these
 * counts. */
#include <stdlib.h>
#include <string.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define MAX_BYTE_PRICE (INT64_C(1) << 50) /* times any memory, over all devices, fits 128 bits */
#define MAX_UNIT (INT64_C(1) << 40)
#define FAR ((__int128)1 << 120) /* what a path costs is counted up to here: less is still true */

typedef struct memory_proof {
    prove_chain *x;
    int64_t unit, *price;
    __int128 *value; /* per pair: length in units plus bytes, at least */
} memory_proof;

/* Every interior operator's bytes where they are cheapest. */
static __int128 cheapest_bytes(const memory_proof *y, const prove_block *b)
{
    __int128 sum = 0;
    for (int32_t i = 0; i < b->n; i++) {
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < b->p->n_devices; k++)
            if (b->p->op_devices[b->op[i]] >> k & 1)
                least = UTIL_MIN(least, y->price[k]);
        if (i != b->entry && i != b->exit)
            sum += (__int128)least * b->p->op_memory_bytes[b->op[i]];
    }
    return sum;
}

/* The lengths that the leaf is about. */
static void range_of(const prove_leaf *leaf, int64_t *least, int64_t *most)
{
    for (int32_t i = 0; i < leaf->n_branches; i++)
        if (leaf->branch[i].kind == PROVE_LENGTH) {
            *least = UTIL_MAX(*least, leaf->branch[i].least);
            *most = UTIL_MIN(*most, leaf->branch[i].most);
        }
}

/* Least over L from least_ns to the leaf's length of unit * L - (what all resources are worth until L): linear within a
 * bucket. */
static __int128 least_length(const memory_proof *y, const prove_leaf *leaf, int32_t resources, int64_t least_ns)
{
    __int128 worth = 0, least = (__int128)y->unit * leaf->length_ns;
    for (int32_t q = 0; q < leaf->n_buckets; q++) {
        int64_t from = UTIL_MIN(leaf->bucket[q] * leaf->step_ns, leaf->length_ns);
        int64_t to = UTIL_MIN(leaf->bucket[q + 1] * leaf->step_ns, leaf->length_ns);
        __int128 rate = 0;
        for (int32_t r = 0; r < resources; r++)
            rate += leaf->price[(int64_t)r * leaf->n_buckets + q];
        if (from <= least_ns && least_ns <= to)
            least = UTIL_MIN(least, (__int128)y->unit * least_ns - worth - rate * (least_ns - from));
        worth += rate * (to - from);
        if (to >= least_ns)
            least = UTIL_MIN(least, (__int128)y->unit * to - worth);
    }
    return least;
}

/* What a block within the leaf's case costs at least. */
static int leaf_value(__int128 *value, const memory_proof *y, const prove_block *b, int32_t a, int32_t z,
                      int64_t proven_ns, prove_leaf *leaf)
{
    int64_t least = proven_ns, most = INT64_MAX;
    prove_cost cost;
    range_of(leaf, &least, &most);
    *value = (__int128)least * y->unit + cheapest_bytes(y, b);
    if (least > most) {
        *value = (__int128)INT64_MAX * y->unit; /* no such plan */
        return 0;
    }
    if (!leaf->priced)
        return 0;
    if (leaf->length_ns < most)
        return prove_wrong("prices end before the lengths that they are for");
    leaf->byte_price = y->price;
    int rc = prove_least_cost(&cost, b, a, z, leaf);
    if (rc)
        return rc;
    if (!cost.usable)
        return prove_wrong("prices are too large");
    if (cost.never)
        *value = (__int128)INT64_MAX * y->unit;
    else
        *value =
            UTIL_MAX(*value, cost.sum - prove_branch_term(leaf) + least_length(y, leaf, prove_resources(b->p), least));
    return 0;
}

static int pair_value(memory_proof *y, const prove_block *b, int32_t a, int32_t z, int64_t index, yyjson_val *list)
{
    size_t n = yyjson_arr_size(list), i, max, read = 0;
    if (n > PROVE_MAX_LEAVES)
        return prove_wrong("a pair has too many leaves");
    prove_leaf *leaf = util_alloc(n, sizeof *leaf);
    int rc = leaf ? 0 : MOIRAI_EFAIL;
    __int128 least = 0;
    yyjson_val *object;
    yyjson_arr_foreach(list, i, max, object) {
        if (rc)
            break;
        rc = prove_read_leaf(&leaf[read++], b, a, object);
    }
    if (!rc && !prove_cover(b, a, z, leaf, (int32_t)n, false))
        rc = prove_wrong("the leaves leave cases out");
    for (i = 0; !rc && i < n; i++) {
        __int128 value = 0;
        rc = leaf_value(&value, y, b, a, z, y->x->bound[index], &leaf[i]);
        least = i ? UTIL_MIN(least, value) : value;
        y->x->proof->leaves++;
    }
    for (i = 0; i < read; i++)
        prove_free_leaf(&leaf[i]);
    free(leaf);
    if (!rc && n)
        y->value[index] = UTIL_MAX(y->value[index], least);
    return rc;
}

static int read_pair(memory_proof *y, yyjson_val *object)
{
    int32_t K = y->x->p->n_devices, class_, a, z;
    if (!yyjson_is_obj(object) || !prove_int32(yyjson_obj_get(object, "class"), 0, y->x->n_classes - 1, &class_) ||
        !prove_int32(yyjson_obj_get(object, "entry"), 0, K - 1, &a) ||
        !prove_int32(yyjson_obj_get(object, "exit"), 0, K - 1, &z))
        return prove_wrong("class, entry or exit of a pair is missing or out of range");
    const prove_block *b = &y->x->class_[class_];
    if ((b->entry < 0 && a) || (b->exit < 0 && z) || (b->n_components && !b->tree_off))
        return prove_wrong("a pair of a class that was not described");
    y->x->proof->pairs++;
    int rc = pair_value(y, b, a, z, ((int64_t)class_ * K + a) * K + z, yyjson_obj_get(object, "leaves"));
    return rc ? moirai_error_prefix(rc, "memory: class %d between devices %d and %d", class_, a, z) : 0;
}

static int64_t chain_bound(const memory_proof *y)
{
    const prove_chain *x = y->x;
    const moirai_problem *p = x->p;
    int32_t K = p->n_devices, n = x->cuts.n_cuts;
    __int128 cost[MOIRAI_MAX_DEVICES] = {0}, next[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t i = 0; i <= n; i++) {
        uint64_t in = i > 0 ? p->op_devices[x->cuts.cut[i - 1]] : 1, out = i < n ? p->op_devices[x->cuts.cut[i]] : 1;
        for (int32_t z = 0; z < K; z++) {
            bool first = true;
            for (int32_t a = 0; a < K; a++)
                if ((in >> a & 1) && (out >> z & 1)) {
                    __int128 sum = UTIL_MIN(cost[a], FAR) + y->value[((int64_t)x->block_class[i] * K + a) * K + z];
                    next[z] = first ? sum : UTIL_MIN(next[z], sum);
                    first = false;
                }
            if (i < n && (out >> z & 1))
                next[z] += (__int128)moirai_op_ns(p, x->cuts.cut[i], z) * y->unit +
                           (__int128)y->price[z] * p->op_memory_bytes[x->cuts.cut[i]];
        }
        memcpy(cost, next, sizeof cost);
    }
    __int128 sum = cost[0];
    for (int32_t k = 0; k < K; k++)
        sum -= (__int128)y->price[k] * p->device_memory_bytes[k];
    sum = sum > 0 ? (sum + y->unit - 1) / y->unit : 0; /* the makespan is whole: up is right */
    return sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}

int prove_memory(int64_t *bound_ns, prove_chain *x, yyjson_val *object)
{
    memory_proof y = {.x = x};
    size_t n, i, max, K = (size_t)x->p->n_devices;
    *bound_ns = 0;
    if (!object)
        return 0;
    if (!prove_int64(yyjson_obj_get(object, "unit"), 1, MAX_UNIT, &y.unit))
        return prove_wrong("memory: unit is missing or out of range");
    int rc = prove_list(&y.price, &n, yyjson_obj_get(object, "byte_prices"), 0, MAX_BYTE_PRICE, "byte_prices");
    if (!rc && n != K)
        rc = prove_wrong("byte_prices has not one price per device");
    size_t pairs = (size_t)x->n_classes * K * K;
    if (!rc && !(y.value = util_alloc(pairs, sizeof *y.value)))
        rc = MOIRAI_EFAIL;
    for (i = 0; !rc && i < pairs; i++)
        y.value[i] = (__int128)x->bound[i] * y.unit + cheapest_bytes(&y, &x->class_[i / (K * K)]);
    yyjson_val *value;
    yyjson_arr_foreach(yyjson_obj_get(object, "pairs"), i, max, value)
        rc = rc ? rc : read_pair(&y, value);
    if (!rc)
        *bound_ns = chain_bound(&y);
    free(y.price);
    free(y.value);
    return rc;
}
