/* A fit in the making. Private to this room. */
#ifndef MOIRAI_FIT_PRIVATE_H
#define MOIRAI_FIT_PRIVATE_H

#include <moirai/fit.h>
#include "cost/cost.h"

#define MOIRAI_FIT_DEVICES 32

struct moirai_fit {
    size_t n;
    moirai_fit_sample *sample;
    int64_t n_skipped;
    int n_devices;
    const moirai_device_type *device[MOIRAI_FIT_DEVICES];
    moirai_fitted_set set; /* of the last solve; the shipped one before */
};

#endif
