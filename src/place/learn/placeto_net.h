/* Placeto's policy network. Private. */
#ifndef MOIRAI_PLACE_LEARN_PLACETO_NET_H
#define MOIRAI_PLACE_LEARN_PLACETO_NET_H

#include "place/learn/layers.h"
#include "place/learn/placeto_graph.h"

#define PLACETO_WIDTH 8   /* of an embedding, per direction */
#define PLACETO_HIDDEN 16 /* of f and g */
#define PLACETO_ROUNDS 8
#define PLACETO_HEAD (8 * PLACETO_WIDTH)
#define PLACETO_FEATURES(n_devices) (6 + (n_devices))

typedef struct placeto_net {
    int32_t n_devices, n_features;
    learn_pair input;
    learn_pair f[2], g[2]; /* from parents, from children */
    learn_dense head[3];
} placeto_net;

/* Of one round in one direction, for all rows. */
typedef struct placeto_round {
    learn_real *x; /* before it */
    learn_real *f_hidden, *message;
    learn_real *sum, *g_hidden, *update;
} placeto_round;

/* Working memory for up to `samples` states of one graph. */
typedef struct placeto_work {
    int32_t samples;
    learn_real *store; /* owns all below */
    learn_real *input_hidden, *h;
    placeto_round round[2][PLACETO_ROUNDS];
    learn_real *x[2];                                   /* after the last round */
    learn_real *pooled, *head1, *head2, *z;             /* per sample; z: logits */
    learn_real *dh, *dx[2], *dmessage, *dsum, *dhidden; /* the way back */
    learn_real *dpooled, *dhead1, *dhead2, *dz;
} placeto_work;

void placeto_net_declare(placeto_net *net, learn_params *q, int32_t n_devices);
int placeto_work_open(placeto_work *w, const placeto_net *net, const placeto_graph *g, int32_t samples);
void placeto_work_close(placeto_work *w);

/* Logits (w->z) of `samples` states: features are [sample][node][feature], current[sample] the node to be placed. */
void placeto_net_forward(const placeto_net *net, const placeto_graph *g, const learn_real *value, int32_t samples,
                         const learn_real *features, const int32_t *current, placeto_work *w);
/* From w->dz, by the logits of the last forward pass, to the gradient. */
void placeto_net_backward(const placeto_net *net, const placeto_graph *g, const learn_real *value, int32_t samples,
                          const learn_real *features, const int32_t *current, placeto_work *w, learn_real *grad);

#endif
