/* What tasks hold: devices 0 .. K-1; then, with congestion port, send ports K .. 2K-1 and receive ports 2K .. 3K-1; with channel, the
 * channel from k to l at K + k K + l; with device, transfers hold the two devices themselves, with none nothing. Private. */
#ifndef MOIRAI_SCHEDULE_RESOURCES_H
#define MOIRAI_SCHEDULE_RESOURCES_H

#include <moirai/problem.h>

static inline int32_t schedule_resources(const moirai_problem *p)
{
    int32_t K = p->n_devices;
    return p->congestion == MOIRAI_CONGESTION_PORT ? 3 * K : p->congestion == MOIRAI_CONGESTION_CHANNEL ? K + K * K : K;
}

/* What a transfer from k to l holds: two resources, or one and MOIRAI_NONE, or MOIRAI_NONE twice. */
typedef struct schedule_held {
    int32_t a, b;
} schedule_held;

static inline schedule_held schedule_holds(const moirai_problem *p, int32_t k, int32_t l)
{
    int32_t K = p->n_devices;
    switch (p->congestion) {
    case MOIRAI_CONGESTION_PORT: return (schedule_held){K + k, 2 * K + l};
    case MOIRAI_CONGESTION_CHANNEL: return (schedule_held){K + k * K + l, MOIRAI_NONE};
    case MOIRAI_CONGESTION_DEVICE: return (schedule_held){k, l};
    default: return (schedule_held){MOIRAI_NONE, MOIRAI_NONE};
    }
}

#endif
