/* A fit in the making. Private to this room. */
#ifndef MOIRAI_COST_FIT_H
#define MOIRAI_COST_FIT_H

#include <moirai/fit.h>
#include "cost/cost.h"

#define COST_FIT_DEVICES 32

struct moirai_fit {
    size_t n, capacity;
    cost_fit_sample *sample;
    int64_t n_skipped;
    int n_devices;
    const moirai_device_type *device[COST_FIT_DEVICES];
    cost_fitted_set set; /* of the last solve; the shipped one before */
};

#endif
