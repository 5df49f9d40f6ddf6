/* A problem on some of its devices: arrays by device are copied, all else is shared. */
#include "problem/device_part.h"

#include <stdlib.h>
#include <string.h>

#include "problem/problem_build.h"

static bool reserve(moirai_problem *q, size_t ops)
{
    size_t n = (size_t)q->n_devices;
    q->device_name = util_alloc(n, sizeof *q->device_name);
    q->device_type = util_alloc(n, sizeof *q->device_type);
    q->device_memory_bytes = util_alloc(n, sizeof *q->device_memory_bytes);
    q->device_launch_ns = util_alloc(n, sizeof *q->device_launch_ns);
    q->device_segment_ns = util_alloc(n, sizeof *q->device_segment_ns);
    q->device_whole_ns = util_alloc(n, sizeof *q->device_whole_ns);
    q->bytes_per_second = util_alloc(n * n, sizeof *q->bytes_per_second);
    q->latency_ns = util_alloc(n * n, sizeof *q->latency_ns);
    q->op_time_ns = util_alloc(ops * n, sizeof *q->op_time_ns);
    q->op_devices = util_alloc(ops * (size_t)moirai_device_words(q), sizeof *q->op_devices);
    q->class_transfer_ns = util_alloc((size_t)q->n_classes * n * n, sizeof *q->class_transfer_ns);
    return q->device_name && q->device_type && q->device_memory_bytes && q->device_launch_ns && q->device_segment_ns &&
           q->device_whole_ns && q->bytes_per_second && q->latency_ns && q->op_time_ns && q->op_devices &&
           q->class_transfer_ns;
}

static void copy_pairs(int64_t *to, const int64_t *from, int32_t K, const int32_t *device, int32_t n)
{
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = 0; b < n; b++)
            to[a * n + b] = from[(int64_t)device[a] * K + device[b]];
}

/* An operator may be where it and its group may be in the whole. */
static bool copy_op(moirai_problem *q, const moirai_problem *p, const int32_t *device, int32_t op)
{
    uint64_t *mask = q->op_devices + (int64_t)op * moirai_device_words(q);
    bool any = false;
    for (int32_t k = 0; k < q->n_devices; k++) {
        q->op_time_ns[(int64_t)op * q->n_devices + k] = moirai_op_ns(p, op, device[k]);
        if (moirai_op_may(p, op, device[k])) {
            mask[k / 64] |= UINT64_C(1) << k % 64;
            any = true;
        }
    }
    return any;
}

int problem_part(moirai_problem *out, const moirai_problem *p, const int32_t *device, int32_t n)
{
    *out = *p;
    out->n_devices = n;
    if (!reserve(out, (size_t)p->n_ops))
        return MOIRAI_EFAIL;
    for (int32_t k = 0; k < n; k++) {
        out->device_name[k] = p->device_name[device[k]];
        out->device_type[k] = p->device_type[device[k]];
        out->device_memory_bytes[k] = p->device_memory_bytes[device[k]];
        out->device_launch_ns[k] = p->device_launch_ns[device[k]];
        out->device_segment_ns[k] = p->device_segment_ns[device[k]];
        out->device_whole_ns[k] = p->device_whole_ns[device[k]];
    }
    copy_pairs(out->bytes_per_second, p->bytes_per_second, p->n_devices, device, n);
    copy_pairs(out->latency_ns, p->latency_ns, p->n_devices, device, n);
    for (int32_t c = 0; c < p->n_classes; c++)
        copy_pairs(out->class_transfer_ns + (int64_t)c * n * n,
                   p->class_transfer_ns + (int64_t)c * p->n_devices * p->n_devices, p->n_devices, device, n);
    for (int32_t i = 0; i < p->n_ops; i++)
        if (!copy_op(out, p, device, i))
            return moirai_error(MOIRAI_EINFEASIBLE, "none of the devices can run '%.200s'", p->op_name[i]);
    return 0;
}

void problem_part_clear(moirai_problem *q)
{
    void *own[] = {q->device_name,       q->device_type,     q->device_memory_bytes, q->device_launch_ns,
                   q->device_segment_ns, q->device_whole_ns, q->bytes_per_second,    q->latency_ns,
                   q->op_time_ns,        q->op_devices,      q->class_transfer_ns};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    *q = (moirai_problem){0};
}
