/* A problem as resources, packets and times: what all of this room reads. Private. */
#ifndef MOIRAI_RELAX_VIEW_H
#define MOIRAI_RELAX_VIEW_H

#include "relax/relax.h"
#include "schedule/resources.h"
#include "util/util.h"

/* A packet is what is sent at once: a tensor with flow tensor, an edge with flow edge. Resources are those of schedule/resources.h, then each device
 * within each shift, then paths, each of which is busy with one of its operators at a time, wherever that is. */
typedef struct relax_view {
    const moirai_problem *p;
    int32_t n, K, n_resources;
    int32_t n_packets;            /* 0 where transfers load nothing */
    const int32_t *packet_off;    /* packet -> its edges, which are neighbours */
    const int64_t *transfer_ns;   /* of all classes: the problem's, or made longer */
    const int32_t *out_off, *out; /* operator -> packets that it produces, read or not */
    bool bytes_bind;              /* memory may be short */
    relax_rows rows;
    util_memory memory;
} relax_view;

/* `send_percent`: 100, or transfers are made so much longer or shorter: for plans that send less, never for bounds. */
int relax_view_open(relax_view *v, const moirai_problem *p, int32_t send_percent);
void relax_view_close(relax_view *v);
/* The rows' arrays must outlive the view. */
void relax_view_take_rows(relax_view *v, const relax_rows *rows);

/* The packet of an edge. */
static inline int32_t relax_packet_of(const relax_view *v, int32_t e)
{
    return v->packet_off == v->p->tensor_edge_off ? v->p->edge_tensor[e] : e;
}

static inline int32_t relax_tensor_of(const relax_view *v, int32_t packet)
{
    return v->packet_off == v->p->tensor_edge_off ? packet : v->p->edge_tensor[packet];
}

static inline int32_t relax_producer(const relax_view *v, int32_t packet)
{
    return v->p->tensor_producer[relax_tensor_of(v, packet)];
}

static inline const int64_t *relax_transfers(const relax_view *v, int32_t packet)
{
    return v->transfer_ns + (int64_t)v->p->tensor_class[relax_tensor_of(v, packet)] * v->K * v->K;
}

static inline bool relax_single(uint64_t devices)
{
    return (devices & (devices - 1)) == 0;
}

/* What an operator on a device loads of a shift or a path. */
typedef struct relax_part {
    int32_t resource;
    int64_t ns;
} relax_part;

/* A case: which devices are left, and what must come before and after the use of each resource. */
typedef struct relax_case {
    uint64_t *devices;  /* per operator */
    int64_t *offset_ns; /* per resource */
    int64_t *part_off;  /* op * K + device -> its parts; NULL: there are none */
    relax_part *part;
    int64_t path_ns; /* the longest path */
    util_memory memory;
} relax_case;

/* The first part of op * K + device: they end with the first of the next. */
static inline int64_t relax_first_part(const relax_case *c, int64_t at)
{
    return c->part_off ? c->part_off[at] : 0;
}

/* O(E K^2). With `rate` offsets are 0. */
int relax_case_open(relax_case *c, const relax_view *v, const relax_fixed *fixed, int32_t n_fixed, bool rate,
                    const util_stop *stop);
void relax_case_close(relax_case *c);

/* Loads of devices, ports or channels when operators are where `device` says, added to load_ns. */
void relax_loads(int64_t *load_ns, const relax_view *v, const uint8_t *device);
/* The same of devices within shifts, and of paths. */
void relax_row_loads(int64_t *load_ns, const relax_view *v, const relax_case *c, const uint8_t *device);

/* What of an operator that starts after `head`, takes time_ns and has `tail` after it lies within the shift at least, where no plan is
 * shorter than path_ns. */
static inline int64_t relax_within(relax_shift s, int64_t head, int64_t time_ns, int64_t tail, int64_t path_ns)
{
    int64_t part = UTIL_MIN(time_ns, UTIL_MIN(head + time_ns - s.head_ns, tail + time_ns - s.tail_ns));
    if (head < s.head_ns && tail < s.tail_ns)
        part = UTIL_MIN(part, path_ns - s.head_ns - s.tail_ns);
    return UTIL_MAX(part, 0);
}

#endif
