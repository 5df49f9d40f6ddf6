/* Inside `split`: reading a plan on the operators of a model. Private to split_plan.c, split_match.c, split_order.c. */
#ifndef MOIRAI_SPLIT_SPLIT_READ_H
#define MOIRAI_SPLIT_SPLIT_READ_H

#include "split/split.h"
#include "util/json.h"

/* ---- split_match.c ---- sets p->units; p->label is for messages. */
int split_match(split_plan *p, const moirai_graph *fine, const char *rules, yyjson_val *ops);

/* ---- split_order.c ---- sets p->order and p->device_off, sorts the transfers and drops repeated ones. */
int split_order(split_plan *p);

#endif
