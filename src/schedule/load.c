/* The load bound: all work shared out over the devices at best.
 *
 * Whatever the assignment, for any weights w_k >= 0 of the devices the makespan T obeys
 *     T * sum_k w_k  >=  sum_k w_k load_k  >=  sum_u min_k w_k time_uk
 * over units u (operators, or groups that must share a device). That is the dual of the best fractional sharing of
 * the work; "work / sum of speeds" would be wrong, since each device may be best at something else. The weights are
 * found by a fixed number of multiplicative steps in plain arithmetic, and each candidate is then judged in whole
 * numbers, so that a rounding error can only cost quality, never validity. Units of equal times are counted once: a
 * network of 50,000 operators has a few dozen kinds. Where there are more, weights are found on every n-th of them in the order of their times:
 * near the best weights the bound hardly changes with them. O(V K + rounds * min(kinds, SAMPLE) * K). */
#include "schedule/load.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 300
#define SAMPLE 8192    /* kinds on which weights are found */
#define WEIGHT_BITS 24 /* weights are whole numbers below 2^24 */

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

static void read_row(int64_t *row, const kinds *q, const moirai_problem *p, int32_t op)
{
    for (int32_t c = 0; c < q->K; c++)
        row[c] = moirai_op_may(p, op, q->device[c]) ? moirai_op_ns(p, op, q->device[c]) : -1;
}

/* The same of an operator outside groups; where every device is a column and can run it, the times as they lie in the problem. */
static const int64_t *row_of(int64_t *room, const kinds *q, const moirai_problem *p, int32_t op)
{
    int32_t K = p->n_devices;
    if (K == q->K && K <= 64 && p->op_devices[op] == UINT64_MAX >> (64 - K))
        return p->op_time_ns + (int64_t)op * K;
    read_row(room, q, p, op);
    return room;
}

/* Times of all groups, members added up; false where a sum leaves int64. */
static bool add_members(int64_t *group_row, bool *seen, const kinds *q, const moirai_problem *p)
{
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        if (g == MOIRAI_NONE)
            continue;
        int64_t *row = group_row + (int64_t)g * q->K;
        if (!seen[g])
            read_row(row, q, p, i);
        for (int32_t c = 0; c < q->K && seen[g]; c++)
            if (moirai_op_may(p, i, q->device[c]) && !util_add64(&row[c], row[c], moirai_op_ns(p, i, q->device[c])))
                return false;
        seen[g] = true;
    }
    return true;
}

/* In four lanes that do not wait for each other. */
static uint64_t hash_row(const int64_t *row, size_t K)
{
    uint64_t lane[4] = {UINT64_C(0x9e3779b97f4a7c15), 1, 2, 3};
    for (size_t k = 0; k < K; k++) {
        uint64_t *h = &lane[k % 4];
        *h = (*h ^ (uint64_t)row[k]) * UINT64_C(0xff51afd7ed558ccd);
        *h ^= *h >> 32;
    }
    for (size_t j = 1; j < 4; j++)
        lane[0] = (lane[0] ^ lane[j] ^ lane[0] >> 32) * UINT64_C(0xff51afd7ed558ccd);
    return lane[0] ^ lane[0] >> 32;
}

/* Equal rows become one with its count: a million rows of a few kinds are neither kept nor sorted. `table` has a power of two of places,
 * more than units. */
static void add_unit(kinds *q, int32_t *table, size_t places, const int64_t *row)
{
    size_t K = (size_t)q->K, at = hash_row(row, K) & (places - 1);
    while (table[at] >= 0 && memcmp(q->time_ns + (size_t)table[at] * K, row, K * sizeof *row))
        at = (at + 1) & (places - 1);
    if (table[at] < 0) {
        table[at] = q->n++;
        memcpy(q->time_ns + (size_t)table[at] * K, row, K * sizeof *row);
    }
    q->count[table[at]]++;
}

static void add_units(kinds *q, int32_t *table, size_t places, const moirai_problem *p, const int64_t *group_row,
                      const bool *seen)
{
    int64_t row[MOIRAI_MAX_DEVICES];
    memset(table, -1, places * sizeof *table);
    for (int32_t i = 0; i < p->n_ops; i++)
        if (p->op_group[i] == MOIRAI_NONE)
            add_unit(q, table, places, row_of(row, q, p, i));
    for (int32_t g = 0; g < p->n_groups; g++)
        if (seen[g])
            add_unit(q, table, places, group_row + (int64_t)g * q->K);
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

static bool count_kinds(kinds *q, const moirai_problem *p)
{
    size_t places = 2, K = (size_t)q->K;
    while (places < 2 * (size_t)p->n_ops)
        places *= 2;
    int32_t *table = util_alloc(places, sizeof *table);
    int64_t *row = util_alloc(K, sizeof *row), *group_row = util_alloc((size_t)p->n_groups * K, sizeof *group_row);
    bool *seen = util_alloc((size_t)p->n_groups, sizeof *seen);
    bool ready = table && row && group_row && seen && add_members(group_row, seen, q, p);
    if (ready) {
        add_units(q, table, places, p, group_row, seen);
        sort_kinds(q, table, row);
    }
    free(table);
    free(row);
    free(group_row);
    free(seen);
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

/* The device of which most is proven by its own units, those that can be nowhere else: what weights of one device alone prove. */
static int32_t most_bound_device(const kinds *q)
{
    __int128 own[MOIRAI_MAX_DEVICES] = {0};
    int32_t best = 0;
    for (int32_t j = 0; j < q->n; j++) {
        int32_t n = 0, at = 0;
        for (int32_t k = 0; k < q->K; k++)
            if (q->time_ns[(int64_t)j * q->K + k] >= 0) {
                n++;
                at = k;
            }
        own[at] += n == 1 ? (__int128)q->time_ns[(int64_t)j * q->K + at] * q->count[j] : 0;
    }
    for (int32_t k = 1; k < q->K; k++)
        best = own[k] * q->members[best] > own[best] * q->members[k] ? k : best;
    return best;
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
    weight[most_bound_device(q)] = 1; /* one device's own load, whatever else happens */
    take(&best, whole, q, weight);
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
    int64_t whole[MOIRAI_MAX_DEVICES] = {0}, best = 0;
    size_t V = (size_t)p->n_ops;
    kinds q = {0};
    bool ready = !find_columns(&q, p);
    q.time_ns = util_alloc(V * (size_t)q.K, sizeof *q.time_ns);
    q.count = util_alloc(V, sizeof *q.count);
    if (ready && V > 0 && q.time_ns && q.count && count_kinds(&q, p))
        best = best_weights(whole, &q);
    for (int32_t k = 0; weight && k < p->n_devices; k++)
        weight[k] = ready ? whole[q.column[k]] : 0;
    free(q.device);
    free(q.members);
    free(q.column);
    free(q.time_ns);
    free(q.count);
    return best;
}

int64_t moirai_bound_load(const moirai_problem *p)
{
    return schedule_bound_load(NULL, p);
}
