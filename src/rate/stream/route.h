/* A copy of the network as the simulator of many requests reads it: who waits for what, on which device, for how long. Private. */
#ifndef MOIRAI_RATE_ROUTE_H
#define MOIRAI_RATE_ROUTE_H

#include <moirai/plan.h>

#define RATE_WHOLE 65536

/* A transfer: a tensor to a device with flow tensor, to a reader with flow edge. */
typedef struct rate_send {
    int64_t ns, bytes;
    int32_t from, to;
    int32_t rank, place; /* of its most urgent reader */
    int32_t home, there; /* buffers: what it sends, and what it fills; MOIRAI_NONE: used but once */
    int32_t first, end;  /* its readers, in rate_route.reader */
} rate_send;

/* An operator. */
typedef struct rate_op {
    int64_t ns;
    int64_t out_bytes; /* of all its outputs */
    int64_t in_bytes;  /* of buffers that it alone reads */
    int32_t device;
    int32_t rank;             /* in one request: the order in which a device takes what is ready */
    int32_t place;            /* when it starts in one request, in parts of RATE_WHOLE of that request */
    int32_t inputs;           /* that it waits for */
    int32_t local, n_local;   /* where its own begin in rate_route.local, and how many they are */
    int32_t send, n_sends;    /* the same in rate_route.send, */
    int32_t shared, n_shared; /* and in rate_route.shared */
} rate_op;

/* Room for a tensor: on its producer's device, or on one that it is sent to. */
typedef struct rate_buffer {
    int64_t bytes;
    int32_t device;
    int32_t uses; /* readers there, and at home transfers */
} rate_buffer;

/* What the simulator asks of a task lies side by side, and what is read once, as most tensors are, needs no count of its readers: a stream of many requests is as fast as memory is. */
typedef struct rate_route {
    const moirai_problem *p;
    rate_op *op;
    int32_t *local; /* readers of an operator's outputs on its own device */
    rate_send *send;
    int32_t n_sends;
    int32_t *reader;     /* of transfers */
    int32_t *shared;     /* buffers that an operator reads, and others use, too */
    rate_buffer *buffer; /* those at home, by tensor, and then the others */
    int32_t n_buffers;
    int32_t *missing;                          /* per operator: its inputs, as a request enters */
    int32_t *left;                             /* per buffer: uses to come; -1: nothing has been sent there yet */
    int64_t result_bytes[MOIRAI_MASK_DEVICES]; /* of what nobody uses: it is held until the request ends */
} rate_route;

/* Devices and the order of a plan's operators. The route refers to `p`, and has its own copies of all else. MOIRAI_EFAIL: out of
 * memory. O((V + E) log V + E K). */
int rate_route_new(rate_route **out, const moirai_problem *p, const int32_t *op_device, const int64_t *op_start_ns);
/* The same where there is no order: that of one request alone, by the longest remaining paths. MOIRAI_EFAIL where devices are not allowed. */
int rate_route_of(rate_route **out, const moirai_problem *p, const int32_t *op_device);
void rate_route_free(rate_route *r);
/* Transfers of one request that has its operators on these devices. */
int64_t rate_count_sends(const moirai_problem *p, const int32_t *op_device);

#endif
