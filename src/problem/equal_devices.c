/* Devices a and b are equal if exchanging them leaves memories, operator times, allowed devices and every table of
 * transfers as they are. That is an equivalence: the exchange of a and c is that of a and b, of b and c, and of a and b
 * again. So each class is known by its least device, and any permutation within classes changes nothing. */
#include "problem/equal_devices.h"

static bool equal_times(const moirai_problem *p, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < p->n_ops; i++)
        if (moirai_op_ns(p, i, a) != moirai_op_ns(p, i, b) || moirai_op_may(p, i, a) != moirai_op_may(p, i, b))
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

void problem_equal_devices(const moirai_problem *p, int32_t *least)
{
    for (int32_t b = 0; b < p->n_devices; b++) {
        least[b] = b;
        for (int32_t a = 0; a < b && least[b] == b; a++)
            if (least[a] == a && problem_devices_equal(p, a, b))
                least[b] = a;
    }
}
