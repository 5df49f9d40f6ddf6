/* The load bound: all work shared out over the devices at best.
 *
 * Whatever the assignment, for any weights w_k >= 0 of the devices the makespan T obeys
 *     T * sum_k w_k  >=  sum_k w_k load_k  >=  sum_u min_k w_k time_uk
 * over units u (operators, or groups that must share a device). That is the dual of the best fractional sharing of
 * the work; "work / sum of speeds" would be wrong, since each device may be best at something else. The weights are
 * found by a fixed number of multiplicative steps in plain arithmetic, and each candidate is then judged in whole
 * numbers, so that a rounding error can only cost quality, never validity. Units of equal times are counted once: a
 * network of 50,000 operators has a few dozen kinds. Where there are more, weights are found on every n-th of them in the order of their times:
 * near the best weights the bound hardly changes with them. Beyond MOIRAI_MASK_DEVICES devices, those on which all operators
 * take the same are one column, with one weight for each of them. O(V K + rounds * min(kinds, SAMPLE) * K). */
#include "schedule/load.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 300
#define SAMPLE 8192    /* kinds on which weights are found */
#define WEIGHT_BITS 24 /* weights are whole numbers below 2^24 */
#define MOST_STEPS 5e8 /* to look at single devices, where a mask does not hold them */

typedef struct kinds {
    int32_t n, K;
    int64_t *time_ns; /* [kind * K + device], -1: not there */
    int64_t *count;
    int32_t *device;  /* per column, of which there are K: one of its devices */
    int32_t *members; /* and how many it has */
    int32_t *column;  /* device -> its column */
} kinds;

/* ---- columns ---- */

static bool equal_times(const moirai_problem *p, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < p->n_ops; i++)
        if (moirai_op_ns(p, i, a) != moirai_op_ns(p, i, b) || moirai_op_may(p, i, a) != moirai_op_may(p, i, b))
            return false;
    return true;
}

static int find_columns(kinds *q, const moirai_problem *p)
{
    size_t K = (size_t)p->n_devices;
    q->device = util_alloc(K, sizeof *q->device);
    q->members = util_alloc(K, sizeof *q->members);
    q->column = util_alloc(K, sizeof *q->column);
    if (!q->device || !q->members || !q->column)
        return MOIRAI_EFAIL;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int32_t c = p->n_devices > MOIRAI_MASK_DEVICES ? 0 : q->K;
        while (c < q->K && !equal_times(p, q->device[c], k))
            c++;
        if (c == q->K)
            q->device[q->K++] = k;
        q->members[c]++;
        q->column[k] = c;
    }
    return 0;
}

/* ---- units ---- */

/* Times of all units, group members added up. Returns the number of units, -1 where a sum leaves int64. */
static int32_t collect_units(const kinds *q, const moirai_problem *p, int32_t *unit_of_group)
{
    int32_t K = q->K, n = 0;
    int64_t *row = q->time_ns;
    for (int32_t g = 0; g < p->n_groups; g++)
        unit_of_group[g] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        bool fresh = g == MOIRAI_NONE || unit_of_group[g] == MOIRAI_NONE;
        int32_t u = fresh ? n++ : unit_of_group[g];
        if (g != MOIRAI_NONE)
            unit_of_group[g] = u;
        for (int32_t c = 0; c < K; c++) {
            int32_t k = q->device[c];
            int64_t *at = &row[(int64_t)u * K + c];
            bool can = moirai_op_may(p, i, k);
            if (fresh)
                *at = can ? moirai_op_ns(p, i, k) : -1;
            else if (can && !util_add64(at, *at, moirai_op_ns(p, i, k)))
                return -1;
        }
    }
    return n;
}

static uint64_t hash_row(const int64_t *row, size_t K)
{
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t k = 0; k < K; k++) {
        h = (h ^ (uint64_t)row[k]) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    return h;
}

/* Equal rows become one with its count: a million rows of a few kinds are not sorted. `table` has a power of two of places, more than units. */
static void join_equals(kinds *q, int32_t n_units, int32_t *table, size_t places)
{
    size_t K = (size_t)q->K;
    memset(table, -1, places * sizeof *table);
    q->n = 0;
    for (int32_t u = 0; u < n_units; u++) {
        const int64_t *row = q->time_ns + (size_t)u * K;
        size_t at = hash_row(row, K) & (places - 1);
        while (table[at] >= 0 && memcmp(q->time_ns + (size_t)table[at] * K, row, K * sizeof *row))
            at = (at + 1) & (places - 1);
        if (table[at] >= 0) {
            q->count[table[at]]++;
            continue;
        }
        table[at] = q->n;
        memmove(q->time_ns + (size_t)q->n * K, row, K * sizeof *row);
        q->count[q->n++] = 1;
    }
}

static int compare_kinds(const void *left, const void *right, void *data)
{
    const kinds *q = data;
    size_t K = (size_t)q->K;
    return memcmp(q->time_ns + (size_t) * (const int32_t *)left * K, q->time_ns + (size_t) * (const int32_t *)right * K,
                  K * sizeof *q->time_ns);
}

/* Kinds in the order of their times, whatever the order of the operators: order[i] is the kind that comes to i, round by round. */
static void sort_kinds(kinds *q, int32_t *order, int64_t *row)
{
    size_t K = (size_t)q->K, bytes = K * sizeof *row;
    for (int32_t j = 0; j < q->n; j++)
        order[j] = j;
    qsort_r(order, (size_t)q->n, sizeof *order, compare_kinds, q);
    for (int32_t first = 0; first < q->n; first++) {
        int32_t to = first;
        int64_t count = q->count[first];
        if (order[first] < 0) /* it is there already */
            continue;
        memcpy(row, q->time_ns + (size_t)first * K, bytes);
        for (int32_t from = order[to]; from != first; from = order[to]) {
            memcpy(q->time_ns + (size_t)to * K, q->time_ns + (size_t)from * K, bytes);
            q->count[to] = q->count[from];
            order[to] = -1;
            to = from;
        }
        order[to] = -1;
        memcpy(q->time_ns + (size_t)to * K, row, bytes);
        q->count[to] = count;
    }
}

static bool count_kinds(kinds *q, int32_t n_units)
{
    size_t places = 2;
    while (places < 2 * (size_t)n_units)
        places *= 2;
    int32_t *table = util_alloc(places, sizeof *table);
    int64_t *row = util_alloc((size_t)q->K, sizeof *row);
    bool ready = table && row;
    if (ready) {
        join_equals(q, n_units, table, places);
        sort_kinds(q, table, row);
    }
    free(table);
    free(row);
    return ready;
}

/* The bound for whole weights: ceil(sum_u min_k w_k t_uk / sum_k w_k); T is whole, so rounding up is sound.
 * The products stay far below 2^127: 2^24 * 2^63 * 2^31 units. */
static int64_t judge(const kinds *q, const int64_t *weight)
{
    __int128 total = 0, sum = 0;
    for (int32_t k = 0; k < q->K; k++)
        sum += (__int128)weight[k] * q->members[k];
    for (int32_t j = 0; j < q->n; j++) {
        __int128 least = -1;
        for (int32_t k = 0; k < q->K; k++) {
            int64_t t = q->time_ns[(int64_t)j * q->K + k];
            if (t >= 0 && (least < 0 || (__int128)t * weight[k] < least))
                least = (__int128)t * weight[k];
        }
        if (least > 0)
            total += least * q->count[j];
    }
    __int128 bound = sum > 0 ? (total + sum - 1) / sum : 0;
    return bound > INT64_MAX ? 0 : (int64_t)bound;
}

/* Loads of each member when every unit goes where weight * time is least, shared evenly among members. */
static void loads(const kinds *q, const double *weight, double *load)
{
    for (int32_t k = 0; k < q->K; k++)
        load[k] = 0;
    for (int32_t j = 0; j < q->n; j++) {
        const int64_t *t = q->time_ns + (int64_t)j * q->K;
        double least = -1;
        int32_t at = 0;
        for (int32_t k = 0; k < q->K; k++)
            if (t[k] >= 0 && (least < 0 || weight[k] * (double)t[k] < least))
                least = weight[k] * (double)t[k], at = k;
        if (least >= 0)
            load[at] += (double)t[at] * (double)q->count[j] / q->members[at];
    }
}

static void make_whole(int64_t *whole, const double *weight, int32_t K)
{
    for (int32_t k = 0; k < K; k++)
        whole[k] = (int64_t)(weight[k] * (double)((int64_t)1 << WEIGHT_BITS));
}

static int64_t judge_real(const kinds *q, const double *weight)
{
    int64_t whole[MOIRAI_MAX_DEVICES];
    make_whole(whole, weight, q->K);
    return judge(q, whole);
}

/* Every n-th kind; q itself where there are few. */
static int sample_of(kinds *sample, const kinds *q)
{
    int32_t most = SAMPLE / ((q->K + MOIRAI_MASK_DEVICES - 1) / MOIRAI_MASK_DEVICES), stride = (q->n + most - 1) / most;
    *sample = (kinds){.K = q->K, .members = q->members};
    sample->time_ns = util_alloc((size_t)SAMPLE * (size_t)q->K, sizeof *sample->time_ns);
    sample->count = util_alloc(SAMPLE, sizeof *sample->count);
    if (!sample->time_ns || !sample->count)
        return MOIRAI_EFAIL;
    for (int32_t j = 0; j < q->n; j += stride, sample->n++) {
        memcpy(sample->time_ns + (int64_t)sample->n * q->K, q->time_ns + (int64_t)j * q->K,
               sizeof *q->time_ns * (size_t)q->K);
        sample->count[sample->n] = q->count[j];
    }
    return 0;
}

/* The weights that prove most of `q`, by multiplicative steps. */
static void find_weights(double *best_weight, const kinds *q)
{
    double weight[MOIRAI_MAX_DEVICES], load[MOIRAI_MAX_DEVICES];
    int32_t K = q->K;
    int64_t best = -1;
    for (int32_t k = 0; k < K; k++)
        weight[k] = 1.0 / K;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t bound = judge_real(q, weight);
        if (bound > best) {
            best = bound;
            memcpy(best_weight, weight, sizeof *weight * (size_t)K);
        }
        loads(q, weight, load);
        double most = 0, sum = 0, step = 1.0 / (1.0 + 0.25 * round);
        for (int32_t k = 0; k < K; k++)
            most = UTIL_MAX(most, load[k]);
        if (most <= 0)
            break;
        for (int32_t k = 0; k < K; k++) {
            weight[k] *= 1.0 + step * load[k] / most;
            sum += weight[k];
        }
        for (int32_t k = 0; k < K; k++)
            weight[k] /= sum;
    }
}

static void take(int64_t *best, int64_t *whole, const kinds *q, const double *weight)
{
    int64_t bound = judge_real(q, weight);
    if (bound <= *best)
        return;
    *best = bound;
    make_whole(whole, weight, q->K);
}

static int64_t best_weights(int64_t *whole, const kinds *q)
{
    double weight[MOIRAI_MAX_DEVICES] = {0};
    int64_t best = 0;
    kinds sample;
    bool each = (double)q->K * q->K * q->n <= MOST_STEPS || q->K <= MOIRAI_MASK_DEVICES;
    for (int32_t k = 0; each && k < q->K; k++) { /* one device's own load, whatever else happens */
        weight[k] = 1;
        take(&best, whole, q, weight);
        weight[k] = 0;
    }
    if (!sample_of(&sample, q)) {
        find_weights(weight, &sample);
        take(&best, whole, q, weight);
    }
    free(sample.time_ns);
    free(sample.count);
    return best;
}

int64_t schedule_bound_load(int64_t *weight, const moirai_problem *p)
{
    int64_t whole[MOIRAI_MAX_DEVICES] = {0};
    size_t V = (size_t)p->n_ops;
    kinds q = {0};
    int32_t *unit_of_group = util_alloc((size_t)p->n_groups, sizeof *unit_of_group);
    bool ready = !find_columns(&q, p);
    q.time_ns = util_alloc(V * (size_t)q.K, sizeof *q.time_ns);
    q.count = util_alloc(V, sizeof *q.count);
    int64_t best = 0;
    if (unit_of_group && q.time_ns && q.count && ready) {
        int32_t n_units = collect_units(&q, p, unit_of_group);
        if (n_units > 0 && count_kinds(&q, n_units))
            best = best_weights(whole, &q);
    }
    for (int32_t k = 0; weight && k < p->n_devices; k++)
        weight[k] = ready ? whole[q.column[k]] : 0;
    free(q.device);
    free(q.members);
    free(q.column);
    free(unit_of_group);
    free(q.time_ns);
    free(q.count);
    return best;
}

int64_t moirai_bound_load(const moirai_problem *p)
{
    return schedule_bound_load(NULL, p);
}
