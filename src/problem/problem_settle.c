/* What follows from a problem's numbers: transfer times, which devices an operator may use, and whether all sums stay
 * within int64.
 *
 * Transfer times: tensors of one size need one table of times, and a network has few sizes, so tables belong to classes
 * of tensors; a lookup is one multiplication away (moirai_transfer_ns) and 50,000 tensors of a transformer share a
 * dozen tables. A table that the file gives makes a class with the tensors that have the very same table. */
#include "problem/problem_build.h"
#include "util/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct classifier {
    const moirai_problem *p;
    const int64_t *const *table;
    size_t table_bytes;
    int32_t *slot; /* 1 + the first tensor of a class; 0 free */
    size_t n_slots;
} classifier;

static const int64_t *table_of(const classifier *c, int32_t t)
{
    return c->table ? c->table[t] : NULL;
}

static bool same_class(const classifier *c, int32_t a, int32_t b)
{
    const int64_t *x = table_of(c, a), *y = table_of(c, b);
    if (!x || !y)
        return x == y && c->p->tensor_bytes[a] == c->p->tensor_bytes[b];
    return !memcmp(x, y, c->table_bytes);
}

/* The first tensor of t's class: t itself if the class is new. */
static int32_t first_of_class(classifier *c, int32_t t)
{
    const int64_t *table = table_of(c, t);
    uint64_t hash = table ? util_hash((const char *)table, c->table_bytes)
                          : util_hash((const char *)&c->p->tensor_bytes[t], sizeof(int64_t));
    size_t i = hash & (c->n_slots - 1);
    while (c->slot[i] && !same_class(c, c->slot[i] - 1, t))
        i = (i + 1) & (c->n_slots - 1);
    if (!c->slot[i])
        c->slot[i] = t + 1;
    return c->slot[i] - 1;
}

static int classify(moirai_problem *p, const int64_t *const *table)
{
    classifier c = {p, table, (size_t)p->n_devices * (size_t)p->n_devices * sizeof(int64_t), NULL, 16};
    while (c.n_slots < 2 * (size_t)p->n_tensors)
        c.n_slots *= 2;
    c.slot = util_alloc(c.n_slots, sizeof *c.slot);
    if (!c.slot)
        return MOIRAI_EFAIL;
    p->n_classes = 0;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        int32_t first = first_of_class(&c, t);
        p->tensor_class[t] = first == t ? p->n_classes++ : p->tensor_class[first];
        p->tensor_has_table[t] = table_of(&c, t) != NULL;
    }
    free(c.slot);
    return 0;
}

static int computed_transfer(int64_t *out, const moirai_problem *p, int32_t t, int32_t a, int32_t b)
{
    int32_t pair = a * p->n_devices + b;
    uint64_t rate = (uint64_t)p->bytes_per_second[pair];
    unsigned __int128 scaled = (unsigned __int128)p->tensor_bytes[t] * 1000000000u;
    unsigned __int128 ns = (scaled + rate - 1) / rate + (uint64_t)p->latency_ns[pair];
    if (ns >= (uint64_t)PROBLEM_TOTAL_LIMIT)
        return moirai_error(MOIRAI_EINPUT,
                            "moving tensor '%.200s' (%" PRId64
                            " bytes) from '%.100s' to '%.100s' takes more than 2^61 ns",
                            p->tensor_name[t], p->tensor_bytes[t], p->device_name[a], p->device_name[b]);
    *out = (int64_t)ns;
    return 0;
}

static int fill_tables(moirai_problem *p, const int64_t *const *table)
{
    int32_t k = p->n_devices, done = 0;
    size_t cells = (size_t)k * (size_t)k;
    int64_t bytes;
    if (!util_mul64(&bytes, (int64_t)(cells * sizeof(int64_t)), p->n_classes) || bytes > PROBLEM_TABLES_LIMIT_BYTES)
        return moirai_error(MOIRAI_EINPUT,
                            "tensors of %d different sizes on %d devices: more than 1 GiB of transfer times",
                            p->n_classes, k);
    p->class_transfer_ns = util_alloc(cells * (size_t)p->n_classes, sizeof *p->class_transfer_ns);
    if (!p->class_transfer_ns)
        return MOIRAI_EFAIL;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        if (p->tensor_class[t] != done)
            continue;
        int64_t *row = p->class_transfer_ns + cells * (size_t)done++;
        if (p->tensor_has_table[t])
            memcpy(row, table[t], cells * sizeof *row);
        for (int32_t a = 0; !p->tensor_has_table[t] && a < k; a++)
            for (int32_t b = 0; b < k; b++)
                if (a != b && computed_transfer(&row[a * k + b], p, t, a, b))
                    return MOIRAI_EINPUT;
    }
    return 0;
}

/* Add, or stop at the limit: the sum of two values below it can't overflow. */
static int64_t add_limited(int64_t sum, int64_t more)
{
    return more >= PROBLEM_TOTAL_LIMIT || sum + more >= PROBLEM_TOTAL_LIMIT ? PROBLEM_TOTAL_LIMIT : sum + more;
}

static int64_t largest(const int64_t *values, size_t n)
{
    int64_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = UTIL_MAX(most, values[i]);
    return most;
}

static int check_totals(const moirai_problem *p)
{
    size_t k = (size_t)p->n_devices;
    int64_t time = 0, memory = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        time = add_limited(time, largest(p->op_time_ns + (size_t)i * k, k));
        memory = add_limited(memory, p->op_memory_bytes[i]);
    }
    for (int32_t w = 0; w < p->n_weights; w++)
        memory = add_limited(memory, p->weight_bytes[w]);
    if (time >= PROBLEM_TOTAL_LIMIT)
        return moirai_error(MOIRAI_EINPUT, "the operators' times add up to more than 2^61 ns");
    int64_t *worst = util_alloc((size_t)p->n_classes, sizeof *worst);
    if (!worst)
        return MOIRAI_EFAIL;
    for (int32_t c = 0; c < p->n_classes; c++)
        worst[c] = largest(p->class_transfer_ns + (size_t)c * k * k, k * k);
    for (int32_t e = 0; e < p->n_edges; e++)
        time = add_limited(time, worst[p->tensor_class[p->edge_tensor[e]]]);
    free(worst);
    for (int32_t t = 0; t < p->n_tensors; t++)
        memory = add_limited(memory, p->tensor_bytes[t]);
    if (time >= PROBLEM_TOTAL_LIMIT)
        return moirai_error(MOIRAI_EINPUT, "the times of operators and transfers add up to more than 2^61 ns");
    if (memory >= PROBLEM_TOTAL_LIMIT)
        return moirai_error(MOIRAI_EINPUT, "the sizes of operators and tensors add up to more than 2^61 bytes");
    return 0;
}

int problem_number_groups(moirai_problem *p)
{
    int32_t *number = util_alloc((size_t)p->n_groups, sizeof *number), n = 0;
    const char **name = util_alloc((size_t)p->n_groups, sizeof *name);
    if (!number || !name) {
        free(number);
        free(name);
        return MOIRAI_EFAIL;
    }
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t old = p->op_group[i];
        if (old == MOIRAI_NONE)
            continue;
        if (!number[old]) {
            name[n] = p->group_name[old];
            number[old] = ++n;
        }
        p->op_group[i] = number[old] - 1;
    }
    memcpy(p->group_name, name, (size_t)n * sizeof *name);
    p->n_groups = n;
    free(number);
    free(name);
    return 0;
}

/* The devices that operator i has a time on; false: none. */
static bool mask_times(uint64_t *mask, const moirai_problem *p, int32_t i)
{
    bool any = false;
    for (int32_t k = 0; k < p->n_devices; k++)
        if (moirai_op_ns(p, i, k) != MOIRAI_NEVER) {
            mask[k / 64] |= (uint64_t)1 << k % 64;
            any = true;
        }
    return any;
}

/* A group's members have the devices that all of them allow; false: there is none. */
static bool take_group(uint64_t *mask, const uint64_t *group, size_t words)
{
    uint64_t any = 0;
    for (size_t w = 0; w < words; w++)
        any |= mask[w] = group[w];
    return any != 0;
}

int problem_mask_devices(moirai_problem *p)
{
    size_t words = (size_t)moirai_device_words(p), cells = (size_t)p->n_groups * words;
    uint64_t *group = util_alloc(cells, sizeof *group);
    int rc = group ? 0 : MOIRAI_EFAIL;
    for (size_t j = 0; !rc && j < cells; j++)
        group[j] = UINT64_MAX;
    memset(p->op_devices, 0, (size_t)p->n_ops * words * sizeof *p->op_devices);
    for (int32_t i = 0; !rc && i < p->n_ops; i++) {
        uint64_t *mask = p->op_devices + (size_t)i * words;
        if (!mask_times(mask, p, i))
            rc = moirai_error(MOIRAI_EINFEASIBLE, "no device can run operator '%.200s'", p->op_name[i]);
        for (size_t w = 0; w < words && p->op_group[i] != MOIRAI_NONE; w++)
            group[(size_t)p->op_group[i] * words + w] &= mask[w];
    }
    for (int32_t i = 0; !rc && i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        if (g != MOIRAI_NONE && !take_group(p->op_devices + (size_t)i * words, group + (size_t)g * words, words))
            rc = moirai_error(MOIRAI_EINFEASIBLE,
                              "no device can run all operators of group '%.200s' (the first is '%.200s')",
                              p->group_name[g], p->op_name[i]);
    }
    free(group);
    return rc;
}

int problem_settle(moirai_problem *p, const int64_t *const *table)
{
    int rc;
    if ((rc = classify(p, table)) || (rc = fill_tables(p, table)) || (rc = check_totals(p)) ||
        (rc = problem_number_groups(p)))
        return rc;
    problem_own_weights(p);
    return problem_mask_devices(p);
}
