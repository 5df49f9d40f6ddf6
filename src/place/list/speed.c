/* Speeds of devices. Times are any numbers here, no device need be faster for all operators: this is a mean, weighted
 * by time. */
#include "place/list/speed.h"

void place_speeds(const moirai_problem *p, double *speed)
{
    double least[MOIRAI_MAX_DEVICES] = {0}, here[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t i = 0; i < p->n_ops; i++) {
        double best = (double)moirai_op_least_ns(p, i);
        for (int32_t k = 0; k < p->n_devices; k++) {
            if (!moirai_op_may(p, i, k))
                continue;
            least[k] += best;
            here[k] += (double)moirai_op_ns(p, i, k);
        }
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        speed[k] = here[k] > 0 ? least[k] / here[k] : 1;
}

void place_fastest_first(const moirai_problem *p, int32_t *device)
{
    double speed[MOIRAI_MAX_DEVICES];
    place_speeds(p, speed);
    for (int32_t k = 0; k < p->n_devices; k++) { /* insertion: devices are few */
        int32_t at = k;
        for (; at > 0 && speed[device[at - 1]] < speed[k]; at--)
            device[at] = device[at - 1];
        device[at] = k;
    }
}
