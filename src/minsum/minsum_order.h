/* The order in which variables go. Private. */
#ifndef MOIRAI_MINSUM_ORDER_H
#define MOIRAI_MINSUM_ORDER_H

#include "minsum/minsum.h"

typedef struct minsum_order {
    int32_t *var;        /* by place */
    int32_t *off, *left; /* place -> the neighbours that are left then, the first to go last */
    int64_t cells;       /* of all tables, the variable that goes included */
} minsum_order;

/* MOIRAI_ELIMIT as minsum_new. To be closed in every case. */
int minsum_order_find(minsum_order *o, const minsum_shape *s, int64_t most_cells, const util_stop *stop);
void minsum_order_close(minsum_order *o);

#endif
