/* A copy of the network as the simulator of many requests reads it: who waits for what, on which device, for how long. Private. */
#ifndef MOIRAI_RATE_ROUTE_H
#define MOIRAI_RATE_ROUTE_H

#include <moirai/plan.h>

#define RATE_WHOLE 65536

/* A transfer: a tensor to a device with flow tensor, to a reader with flow edge. */
typedef struct rate_send {
    int32_t tensor, from, to;
    int32_t rank;       /* of its most urgent reader */
    int32_t hold;       /* the buffer that it fills */
    int32_t first, end; /* its readers, in rate_route.reader */
    int64_t ns;
} rate_send;

typedef struct rate_route {
    const moirai_problem *p;
    int32_t *device;
    int64_t *op_ns;
    int32_t *rank, *by_rank;    /* of one request, the order in which a device takes what is ready */
    int32_t *place;             /* by rank: when it starts in one request, in parts of RATE_WHOLE of that request */
    int32_t *local_off, *local; /* operator -> readers of its outputs on its own device */
    int32_t *send_off;          /* operator -> transfers of its outputs */
    rate_send *send;
    int32_t n_sends;
    int32_t *reader;
    int32_t *in_hold;   /* parallel to p->op_in: the buffer that is read, MOIRAI_NONE where it is the producer's */
    int32_t *home_uses; /* tensor -> readers on its own device and transfers */
    int32_t *hold_uses; /* buffer -> readers */
    int32_t *hold_tensor, *hold_device;
    int32_t n_holds;
} rate_route;

/* Devices and the order of a plan's operators. The route refers to `p`, and has its own copies of all else. MOIRAI_EFAIL: out of
 * memory. O((V + E) log V + E K). */
int rate_route_new(rate_route **out, const moirai_problem *p, const int32_t *op_device, const int64_t *op_start_ns);
/* The same where there is no order: that of one request alone, by the longest remaining paths. MOIRAI_EFAIL where devices are not allowed. */
int rate_route_of(rate_route **out, const moirai_problem *p, const int32_t *op_device);
void rate_route_free(rate_route *r);

#endif
