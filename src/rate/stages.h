/* Contiguous stages: the network as a row of parts, each on one device. Private. */
#ifndef MOIRAI_RATE_STAGES_H
#define MOIRAI_RATE_STAGES_H

#include "relax/view.h"

typedef struct rate_stages_task {
    const relax_view *v;
    const int32_t *order; /* operators, in an order of precedence */
    uint64_t devices;     /* that may be used */
    util_stop stop;
} rate_stages_task;

/* Stages of this order whose largest load is as small as they get. *load_ns -1 where no stages fit the memory and the devices; `device` is
 * then unspecified. Deterministic, unless the stop ends it. */
int rate_stages(int32_t *device, int64_t *load_ns, const rate_stages_task *task);

#endif
