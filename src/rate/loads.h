/* Loads of an assignment that changes operator by operator. Private. */
#ifndef MOIRAI_RATE_LOADS_H
#define MOIRAI_RATE_LOADS_H

#include "rate/op_weights.h"
#include "relax/view.h"

typedef struct rate_balance {
    const relax_view *v;
    uint8_t *device;
    int64_t *load_ns; /* per resource */
    int64_t sent_ns;  /* all transfers */
    int64_t *bytes;   /* per device, shared weights included */
    int32_t n_over;   /* devices whose memory is overstepped */
    int32_t *readers; /* [packet * K + device] */
    int32_t *users;   /* [shared weight * K + device] */
    rate_op_weights shares;
} rate_balance;

int rate_balance_open(rate_balance *b, const relax_view *v, const int32_t *device);
void rate_balance_close(rate_balance *b);
/* The operator to device c. O(degree * K). */
void rate_balance_move(rate_balance *b, int32_t op, int32_t c);

#endif
