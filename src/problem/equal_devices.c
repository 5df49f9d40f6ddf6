/* Devices a and b are equal if exchanging them leaves memories, operator times, allowed devices and every table of
 * transfers as they are. That is an equivalence: the exchange of a and c is that of a and b, of b and c, and of a and b
 * again. So each class is known by its least device, and any permutation within classes changes nothing. */
#include "problem/equal_devices.h"

#include <string.h>

static bool equal_at(const moirai_problem *p, int32_t op, int32_t a, int32_t b)
{
    return moirai_op_ns(p, op, a) == moirai_op_ns(p, op, b) && moirai_op_may(p, op, a) == moirai_op_may(p, op, b);
}

static bool equal_times(const moirai_problem *p, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < p->n_ops; i++)
        if (!equal_at(p, i, a, b))
            return false;
    return true;
}

static bool equal_transfers(const moirai_problem *p, int32_t a, int32_t b)
{
    int32_t K = p->n_devices;
    for (int32_t c = 0; c < p->n_classes; c++) {
        const int64_t *table = p->class_transfer_ns + (int64_t)c * K * K;
        if (table[a * K + b] != table[b * K + a])
            return false;
        for (int32_t k = 0; k < K; k++)
            if (k != a && k != b && (table[a * K + k] != table[b * K + k] || table[k * K + a] != table[k * K + b]))
                return false;
    }
    return true;
}

bool problem_devices_equal(const moirai_problem *p, int32_t a, int32_t b)
{
    return p->device_memory_bytes[a] == p->device_memory_bytes[b] && equal_times(p, a, b) && equal_transfers(p, a, b);
}

/* Devices that were alike so far, by op's row as well: each class by its least device. A row at a time, because a device's times are far apart. */
static void divide(const moirai_problem *p, int32_t *least, int32_t op)
{
    int32_t K = p->n_devices, before[MOIRAI_MAX_DEVICES];
    bool alike = true;
    for (int32_t k = 0; k < K && alike; k++)
        alike = equal_at(p, op, k, least[k]);
    if (alike)
        return;
    memcpy(before, least, sizeof *least * (size_t)K);
    for (int32_t b = 0; b < K; b++) {
        least[b] = b;
        for (int32_t a = before[b]; a < b && least[b] == b; a++)
            if (least[a] == a && before[a] == before[b] && equal_at(p, op, a, b))
                least[b] = a;
    }
}

void problem_equal_devices(const moirai_problem *p, int32_t *least)
{
    int32_t before[MOIRAI_MAX_DEVICES], K = p->n_devices;
    for (int32_t b = 0; b < K; b++) {
        least[b] = b;
        for (int32_t a = 0; a < b && least[b] == b; a++)
            if (p->device_memory_bytes[a] == p->device_memory_bytes[b])
                least[b] = least[a];
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        divide(p, least, i);
    memcpy(before, least, sizeof *least * (size_t)K);
    for (int32_t b = 0; b < K; b++) {
        least[b] = b;
        for (int32_t a = before[b]; a < b && least[b] == b; a++)
            if (least[a] == a && before[a] == before[b] && equal_transfers(p, a, b))
                least[b] = a;
    }
}
