/* From the cheapest devices at good prices to loads that are balanced. Private. */
#ifndef MOIRAI_RELAX_BALANCE_H
#define MOIRAI_RELAX_BALANCE_H

#include "relax/messages.h"

/* Changes `device` until the largest load with its offset is about target_ns, or no move helps. *load_ns gets it. O(V K) memory;
 * a few passes of O(V K + E K). */
int relax_balance(int64_t *load_ns, uint8_t *device, const relax_state *s, int64_t target_ns, const util_stop *stop);

#endif
