/* What HRL's networks see of operators and groups. Private. */
#ifndef MOIRAI_PLACE_LEARN_HRL_ITEMS_H
#define MOIRAI_PLACE_LEARN_HRL_ITEMS_H

#include "place/fit.h"
#include "place/learn/hrl_net.h"

/* Items are what is placed as one (operators, or keep-together groups), by unit number. */
typedef struct hrl_items {
    int32_t n;
    learn_real *features; /* [item][HRL_ITEM_FEATURES] */
    uint8_t *type;        /* column */
    int64_t *out_bytes;
    int32_t n_links; /* distinct pairs of items between which a tensor goes */
    int32_t *from, *to;
    int64_t *least_ns; /* [item * n_devices + device]; INT64_MAX where it can't run */
} hrl_items;

int hrl_items_new(hrl_items **out, const moirai_problem *p, const place_units *u);
void hrl_items_free(hrl_items *h);

/* Features of the groups of one episode: group[item] in 0 .. n_groups - 1. sequence (n_groups) gets the groups that
 * have items, ascending; returns how many. Row t is written to features + t * stride; `count` has room for n_groups. */
int32_t hrl_items_embed(const hrl_items *h, int32_t n_groups, const int32_t *group, int32_t *sequence, int32_t *count,
                        learn_real *features, size_t stride);

#endif
