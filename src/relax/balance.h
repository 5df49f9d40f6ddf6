/* From the cheapest devices at good prices to loads that are balanced. Private. */
#ifndef MOIRAI_RELAX_BALANCE_H
#define MOIRAI_RELAX_BALANCE_H

#include "relax/messages.h"

/* Changes `device` until the largest load with its offset is about target_ns, or no move helps. *load_ns gets it. O(V K) memory;
 * a few passes of O(V K + E K). */
int relax_balance(int64_t *load_ns, uint8_t *device, const relax_state *s, int64_t target_ns, const util_stop *stop);
/* The same by annealing, from a device for each operator: O(steps x degree). Deterministic. */
int relax_balance_anneal(int64_t *load_ns, uint8_t *device, const relax_view *v, const relax_case *c, int64_t target_ns,
                         int64_t steps, const util_stop *stop);

#endif
