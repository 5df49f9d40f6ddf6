/* Which of many devices can matter.
 *
 * Devices that can be exchanged are of one kind (problem/equal_devices.h). Units (operators, or groups that share a device) that
 * may be on a kind use at most as many of its devices as there are such units, and which of them does not matter: so that a
 * part with that many of each kind has an optimum of the whole. */
#include "place/fit.h"
#include "place/moirai/many/many.h"
#include "problem/equal_devices.h"
#include "util/util.h"

/* Units that may be on each kind, known by its least device. */
static void count_units(int32_t *n, const moirai_problem *p, const place_units *u, const int32_t *least)
{
    for (int32_t unit = 0; unit < u->n; unit++)
        for (int32_t k = 0; k < p->n_devices; k++)
            n[k] += least[k] == k && place_unit_may(u, unit, k);
}

int many_choose(many_part *out, const moirai_problem *p)
{
    int32_t least[MOIRAI_MAX_DEVICES], units[MOIRAI_MAX_DEVICES] = {0}, used[MOIRAI_MAX_DEVICES] = {0};
    place_units *u = NULL;
    *out = (many_part){0};
    int rc = place_units_new(&u, p);
    if (rc)
        return rc;
    problem_equal_devices(p, least);
    count_units(units, p, u, least);
    place_units_free(u);
    for (int32_t k = 0; k < p->n_devices; k++) {
        if (used[least[k]]++ >= units[least[k]])
            continue;
        if (out->n == MOIRAI_MASK_DEVICES) {
            out->n = 0;
            return 0;
        }
        out->device[out->n++] = k;
    }
    return 0;
}
