/* What a case says, and the cases that it is divided into. Private. */
#ifndef MOIRAI_RELAX_DIVIDE_H
#define MOIRAI_RELAX_DIVIDE_H

#include "relax/relax_tuning.h"
#include "relax/view.h"

typedef struct relax_said {
    int32_t n;
    relax_fixed fixed[RELAX_CASES_MOST_SAID];
} relax_said;

typedef struct relax_divider {
    const relax_view *v;
    bool tensors; /* by where they are read, too */
    int32_t n_hubs, hub[RELAX_CASES_MOST_HUBS];
    uint64_t *devices; /* working memory: of a case */
} relax_divider;

/* To be closed in every case. */
int relax_divider_open(relax_divider *d, const relax_view *v, bool tensors);
void relax_divider_close(relax_divider *d);

/* At most K + 1 cases that leave out nothing of case x, of which so much is proven; how many they are. 0: it is as good as it
 * gets. */
int32_t relax_divide(relax_said *out, relax_divider *d, const relax_said *x, int64_t lower_ns);

#endif
