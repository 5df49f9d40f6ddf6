/* Reading a certificate: numbers in their ranges, and leaves. What is missing or out of range proves nothing:
 * MOIRAI_EVERIFY. */
#include <stdlib.h>
#include <string.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define MAX_STEPS 65536
#define MAX_BUCKETS 4096
#define MAX_COUNTS 1024             /* questions of one leaf: the cover is looked at by recursion over them */
#define MAX_TIME (INT64_C(1) << 61) /* the reader keeps all times of a problem together below this */

int prove_wrong(const char *what)
{
    return moirai_error(MOIRAI_EVERIFY, "%s", what);
}

/* ---- reading ---- */

bool prove_int64(yyjson_val *value, int64_t least, int64_t most, int64_t *out)
{
    if (!yyjson_is_int(value) || (yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX))
        return false;
    int64_t number = yyjson_is_uint(value) ? (int64_t)yyjson_get_uint(value) : yyjson_get_sint(value);
    *out = number;
    return number >= least && number <= most;
}

bool prove_int32(yyjson_val *value, int32_t least, int32_t most, int32_t *out)
{
    int64_t wide = 0;
    bool good = prove_int64(value, least, most, &wide);
    *out = good ? (int32_t)wide : 0;
    return good;
}

/* An array of whole numbers in a range; free() it. */
int prove_list(int64_t **out, size_t *n, yyjson_val *array, int64_t least, int64_t most, const char *what)
{
    *out = NULL;
    *n = yyjson_arr_size(array);
    if (!yyjson_is_arr(array))
        return moirai_error(MOIRAI_EVERIFY, "%s: a list of numbers is missing", what);
    if (!(*out = util_alloc(*n, sizeof **out)))
        return MOIRAI_EFAIL;
    size_t i, max;
    yyjson_val *value;
    yyjson_arr_foreach(array, i, max, value)
        if (!prove_int64(value, least, most, &(*out)[i]))
            return moirai_error(MOIRAI_EVERIFY, "%s: number %zu is none, or out of range", what, i);
    return 0;
}

int prove_list32(int32_t **out, size_t *n, yyjson_val *array, int32_t least, int32_t most, const char *what)
{
    int64_t *wide;
    *out = NULL;
    int rc = prove_list(&wide, n, array, least, most, what);
    if (!rc && !(*out = util_alloc(*n, sizeof **out)))
        rc = MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < *n; i++)
        (*out)[i] = (int32_t)wide[i];
    free(wide);
    return rc;
}

/* ---- a leaf ---- */

void prove_free_leaf(prove_leaf *leaf)
{
    free(leaf->branch);
    free(leaf->bucket);
    free(leaf->price);
    free(leaf->branch_price);
}

/* Times end at MAX_TIME, or never: INT64_MAX. */
static bool count_exists(const prove_leaf *leaf, const prove_block *b, const int64_t *x)
{
    if (x[2] < 0 || x[2] >= b->p->n_devices || x[3] < 0 || x[4] < 0 || x[3] > MAX_TIME ||
        (x[4] > MAX_TIME && x[4] != INT64_MAX))
        return false;
    if (x[0] == PROVE_ARRIVAL || x[0] == PROVE_LENGTH)
        return leaf->fixed || x[0] == PROVE_LENGTH;
    int32_t c = x[0] >= 0 && x[0] < b->n_kinds ? b->kind_component[x[0]] : -1;
    return c >= 0 && x[1] >= 0 && x[1] < b->component_off[c + 1] - b->component_off[c] && x[3] <= INT32_MAX &&
           x[4] <= INT32_MAX;
}

static int read_counts(prove_leaf *leaf, const prove_block *b, yyjson_val *object)
{
    yyjson_val *list = yyjson_obj_get(object, "counts");
    if (!list)
        return 0;
    int64_t *number;
    size_t n;
    int rc = prove_list(&number, &n, list, PROVE_LENGTH, INT64_MAX, "counts");
    if (!rc && n % 5)
        rc = prove_wrong("counts do not come in fives");
    if (!rc && n / 5 > MAX_COUNTS)
        rc = prove_wrong("a leaf asks more than 1024 questions");
    if (!rc && !(leaf->branch = util_alloc(n / 5, sizeof *leaf->branch)))
        rc = MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < n / 5; i++) {
        const int64_t *x = number + 5 * i;
        if (!count_exists(leaf, b, x))
            rc = prove_wrong("a count is of a kind, operator or device that is not there");
        else
            leaf->branch[i] = (prove_branch){(int32_t)x[0], (int32_t)x[1], (int32_t)x[2], x[3], x[4]};
    }
    leaf->n_branches = rc ? 0 : (int32_t)(n / 5);
    free(number);
    return rc;
}

static int read_grid(prove_leaf *leaf, yyjson_val *object)
{
    size_t n;
    if (!prove_int64(yyjson_obj_get(object, "length_ns"), 0, MAX_TIME, &leaf->length_ns) ||
        !prove_int64(yyjson_obj_get(object, "step_ns"), 1, MAX_TIME, &leaf->step_ns) ||
        leaf->length_ns / leaf->step_ns >= MAX_STEPS)
        return prove_wrong("a leaf's length or step is missing or out of range");
    leaf->n_steps = (int32_t)(leaf->length_ns / leaf->step_ns) + 1;
    int rc = prove_list32(&leaf->bucket, &n, yyjson_obj_get(object, "buckets"), 0, leaf->n_steps, "buckets");
    if (rc)
        return rc;
    if (n < 2 || n > MAX_BUCKETS || leaf->bucket[0] != 0 || leaf->bucket[n - 1] != leaf->n_steps)
        return prove_wrong("a leaf's buckets do not cover its steps");
    for (size_t i = 1; i < n; i++)
        if (leaf->bucket[i] <= leaf->bucket[i - 1])
            return prove_wrong("a leaf's buckets do not ascend");
    leaf->n_buckets = (int32_t)n - 1;
    return 0;
}

static int read_prices(prove_leaf *leaf, const prove_block *b, yyjson_val *object)
{
    int32_t R = prove_resources(b->p);
    int64_t *number;
    size_t n;
    int rc = prove_list(&number, &n, yyjson_obj_get(object, "prices"), 0, MAX_TIME, "prices");
    leaf->price = util_alloc((size_t)R * (size_t)leaf->n_buckets, sizeof(int64_t));
    if (!rc && !leaf->price)
        rc = MOIRAI_EFAIL;
    if (!rc && n % 3)
        rc = prove_wrong("prices do not come in threes");
    for (size_t i = 0; !rc && i < n; i += 3)
        if (number[i] >= R || number[i + 1] >= leaf->n_buckets ||
            leaf->price[number[i] * leaf->n_buckets + number[i + 1]])
            rc = prove_wrong("a price is on a resource or bucket that is not there, or is the second there");
        else
            leaf->price[number[i] * leaf->n_buckets + number[i + 1]] = number[i + 2];
    free(number);
    leaf->branch_price = util_alloc((size_t)leaf->n_branches, sizeof(int64_t));
    yyjson_val *list = yyjson_obj_get(object, "count_prices");
    if (rc || !leaf->branch_price)
        return rc ? rc : MOIRAI_EFAIL;
    if (!list)
        return 0;
    rc = prove_list(&number, &n, list, -MAX_TIME, MAX_TIME, "count_prices");
    if (!rc && n > (size_t)leaf->n_branches)
        rc = prove_wrong("more prices on counts than counts");
    if (!rc)
        memcpy(leaf->branch_price, number, n * sizeof *number);
    for (size_t i = 0; !rc && i < n; i++)
        if (leaf->branch[i].kind < 0 && number[i])
            rc = prove_wrong("a time has a price");
    free(number);
    return rc;
}

static int read_sending(prove_leaf *leaf, const prove_block *b, int32_t a, yyjson_val *list)
{
    uint64_t seen = UINT64_C(1) << a;
    leaf->fixed = list && !yyjson_is_null(list);
    if (!leaf->fixed)
        return 0;
    if (b->shared_tensor < 0 || !yyjson_is_arr(list) || yyjson_arr_size(list) >= (size_t)b->p->n_devices)
        return prove_wrong("a leaf lists receivers of a tensor that is not there");
    size_t i, max;
    yyjson_val *value;
    yyjson_arr_foreach(list, i, max, value) {
        int32_t k;
        if (!prove_int32(value, 0, b->p->n_devices - 1, &k) || (seen >> k & 1))
            return prove_wrong("a leaf's list of receivers has a wrong device");
        seen |= UINT64_C(1) << k;
        leaf->receiver[leaf->n_receivers++] = k;
    }
    return 0;
}

int prove_read_leaf(prove_leaf *leaf, const prove_block *b, int32_t a, yyjson_val *object)
{
    *leaf = (prove_leaf){0};
    int rc = yyjson_is_obj(object) ? 0 : prove_wrong("a leaf is no object");
    rc = rc ? rc : read_sending(leaf, b, a, yyjson_obj_get(object, "receivers"));
    leaf->open = yyjson_is_true(yyjson_obj_get(object, "open"));
    if (!rc && leaf->open && (!leaf->fixed || b->p->congestion != MOIRAI_CONGESTION_PORT))
        rc = prove_wrong("a leaf without an order of receivers is open");
    rc = rc ? rc : read_counts(leaf, b, object);
    leaf->priced = yyjson_obj_get(object, "prices");
    if (!rc && leaf->priced)
        rc = read_grid(leaf, object);
    if (!rc && leaf->priced)
        rc = read_prices(leaf, b, object);
    return rc;
}
