/* Bytes in a certificate (docs/certificate.md, "Memory"): at prices u(k) >= 0 per byte of device k, in units of which `unit` make a
 * nanosecond, unit * makespan + (what all bytes pay) splits along the chain. A block of length L between two devices costs at least unit *
 * L + its bytes where they are cheapest; and, at any prices in time, what its tasks and bytes pay + unit * L - (what all resources are
 * worth until L). A leaf says between which lengths L lies: the least over these counts. */
#include <string.h>
#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

typedef struct memory_proof {
    prove_chain *x;
    int64_t unit, *price;
    __int128 *value; /* per pair: length in units plus bytes, at least */
    util_memory memory;
} memory_proof;

/* Every interior operator's bytes where they are cheapest. */
static __int128 cheapest_bytes(const memory_proof *y, const prove_block *b)
{
    __int128 sum = 0;
    for (int32_t i = 0; i < b->n; i++) {
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < b->p->K; k++)
            if (b->p->may[b->op[i]] >> k & 1)
                least = UTIL_MIN(least, y->price[k]);
        if (!prove_is_cut(b, i))
            sum += (__int128)least * b->p->bytes[b->op[i]];
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
    __int128 cost;
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
    bool never = cost >= PROVE_TOO_LATE;
    cost += least_length(y, leaf, prove_resources(b->p), least) - prove_branch_term(leaf);
    *value = never ? (__int128)INT64_MAX * y->unit : UTIL_MAX(*value, cost);
    return 0;
}

static int pair_value(memory_proof *y, const prove_block *b, int32_t a, int32_t z, int64_t index, yyjson_val *list)
{
    prove_leaf *leaf;
    util_memory memory = {0};
    int32_t n;
    __int128 least = 0;
    int rc = prove_read_leaves(&leaf, &n, &memory, b, a, z, list, false);
    for (int32_t i = 0; !rc && i < n; i++) {
        __int128 value = 0;
        rc = leaf_value(&value, y, b, a, z, y->x->bound[index], &leaf[i]);
        least = i ? UTIL_MIN(least, value) : value;
        y->x->proof->leaves++;
    }
    util_release(&memory);
    if (!rc && n)
        y->value[index] = UTIL_MAX(y->value[index], least);
    return rc;
}

static int read_pair(memory_proof *y, yyjson_val *object)
{
    int32_t K = y->x->p->K, class_ = prove_index(object, "class", y->x->n_classes), a = prove_index(object, "entry", K),
            z = prove_index(object, "exit", K);
    if (class_ < 0 || a < 0 || z < 0)
        return prove_wrong("memory: class, entry or exit of a pair is out of range");
    const prove_block *b = &y->x->class_[class_];
    if ((b->entry < 0 && a) || (b->exit < 0 && z) || (prove_interior(b) && !b->kind))
        return prove_wrong("memory: a pair of a class that was not described");
    y->x->proof->pairs++;
    int rc = pair_value(y, b, a, z, ((int64_t)class_ * K + a) * K + z, prove_get(object, "leaves"));
    return rc ? moirai_error_prefix(rc, "memory: class %d between devices %d and %d", class_, a, z) : 0;
}

static int bound_of(int64_t *bound_ns, const memory_proof *y)
{
    const prove_problem *p = y->x->p;
    __int128 sum = 0;
    int rc = prove_chain_cost(&sum, y->x, y->unit, y->price, y->value);
    for (int32_t k = 0; k < p->K; k++)
        sum -= (__int128)y->price[k] * p->capacity[k];
    sum = sum > 0 ? (sum + y->unit - 1) / y->unit : 0; /* the makespan is whole: up is right */
    *bound_ns = sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
    return rc;
}

int prove_memory(int64_t *bound_ns, prove_chain *x, yyjson_val *object)
{
    memory_proof y = {.x = x};
    size_t i, max, K = (size_t)x->p->K, pairs = (size_t)x->n_classes * K * K;
    *bound_ns = 0;
    if (!object)
        return 0;
    y.unit = prove_number(object, "unit");
    UTIL_TAKE(&y.memory, y.price, K);
    PROVE_TAKE(&y.memory, y.value, pairs);
    int rc = util_taken_all(&y.memory);
    rc = rc ? rc : prove_read_prices(y.price, K, prove_get(object, "byte_prices"), "byte_prices");
    __int128 bytes = 0;
    for (i = 0; !rc && i < pairs; i++) {
        if (i % (K * K) == 0) {
            bytes = cheapest_bytes(&y, &x->class_[i / (K * K)]);
            rc = prove_go_on(x->p);
        }
        y.value[i] = (__int128)x->bound[i] * y.unit + bytes;
    }
    yyjson_val *value;
    yyjson_arr_foreach(prove_get(object, "pairs"), i, max, value)
        rc = rc ? rc : read_pair(&y, value);
    rc = rc ? rc : bound_of(bound_ns, &y);
    util_release(&y.memory);
    return rc;
}
