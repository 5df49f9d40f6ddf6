/* HRL's networks: grouper and placer. Private. */
#ifndef MOIRAI_PLACE_LEARN_HRL_NET_H
#define MOIRAI_PLACE_LEARN_HRL_NET_H

#include "place/learn/lstm.h"
#include "place/learn/door/learnt.h"

#define HRL_TYPES 16              /* operator types share so many columns, by hash */
#define HRL_NEAR 4                /* producers and readers whose place an item knows */
#define HRL_PLACE (HRL_TYPES + 1) /* column: the place in topological order, 0 to 1 */
#define HRL_ITEM_FEATURES (HRL_TYPES + 2 + 2 * HRL_NEAR)
#define HRL_GROUPER 64 /* hidden */
#define HRL_ENCODER 32 /* state, per direction */
#define HRL_BOTH (2 * HRL_ENCODER)
#define HRL_DECODER HRL_BOTH
#define HRL_MAX_GROUPS PLACE_LEARNT_MAX_GROUPS

#define HRL_GROUPS(n_devices) (20 * (n_devices) < HRL_MAX_GROUPS ? 20 * (n_devices) : HRL_MAX_GROUPS)
#define HRL_GROUP_FEATURES(n_groups) (HRL_TYPES + 3 + (n_groups))

typedef struct hrl_net {
    int32_t n_devices, n_groups, n_features; /* n_features: of a group */
    learn_pair grouper;
    learn_lstm encoder[2]; /* forwards, backwards */
    learn_lstm decoder;
    learn_dense query, out;
} hrl_net;

/* Activations of one recurrent layer over up to `steps` steps of up to `rows` episodes: step t of episode e is row t *
 * rows in use + e. state and cell have a step more: what was there before the first. */
typedef struct hrl_tape {
    learn_real *gates, *cell, *squashed, *state, *dgates;
} hrl_tape;

/* Working memory for up to `rows` episodes of up to `steps` groups. */
typedef struct hrl_work {
    int32_t rows, steps;
    learn_real *store; /* owns all below */
    hrl_tape encoder[2], decoder;
    learn_real *code; /* both directions, [step][row][HRL_BOTH] */
    learn_real *in;   /* the decoder's, [step][row][HRL_BOTH + n_devices + 1] */
    learn_real *query, *weight, *read, *z;
    learn_real *dcode, *din, *dquery, *dread, *dz;
    learn_real *dstate, *dbefore, *dcell, *spare;
} hrl_work;

void hrl_net_declare(hrl_net *net, learn_params *q, int32_t n_devices);
int hrl_work_open(hrl_work *w, const hrl_net *net, int32_t rows, int32_t steps);
void hrl_work_close(hrl_work *w);

/* The placer, step by step, since each device chosen is an input of the next step. Features are [step][row][feature];
 * hrl_net_encode first, then for each step hrl_net_decode: `before` are the devices of the step before (MOIRAI_NONE at
 * the first), w->z gets the logits, [step][row][device]. */
void hrl_net_encode(const hrl_net *net, const learn_real *value, int32_t rows, int32_t steps,
                    const learn_real *features, hrl_work *w);
void hrl_net_decode(const hrl_net *net, const learn_real *value, int32_t rows, int32_t steps, int32_t step,
                    const int32_t *before, hrl_work *w);
/* From w->dz of all steps to the gradient. */
void hrl_net_backward(const hrl_net *net, const learn_real *value, int32_t rows, int32_t steps,
                      const learn_real *features, hrl_work *w, learn_real *grad);

#endif
