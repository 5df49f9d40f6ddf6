/* The best prices of a case, by cutting planes. Private. */
#ifndef MOIRAI_RELAX_PRICES_H
#define MOIRAI_RELAX_PRICES_H

#include "relax/least.h"
#include "relax/messages.h"

typedef struct relax_prices_task {
    double goal_ns; /* enough */
    int32_t rounds;
    bool bytes;               /* memory may be short: prices on bytes as well */
    const relax_least *least; /* the cheapest assignments, exactly; NULL: by messages */
    util_stop stop;
} relax_prices_task;

/* Raises the value of the state's case from the prices and messages that it has; it ends with the best. *value_ns: the solver's
 * number, no proof. */
int relax_find_prices(double *value_ns, relax_state *s, const relax_prices_task *job);

#endif
