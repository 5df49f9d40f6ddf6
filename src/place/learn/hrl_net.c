/* HRL's placer network (Mirhoseini, Goldie, Pham, Steiner, Le, Dean 2018), forwards and backwards.
 *
 * Groups are a sequence. An encoder of two LSTMs reads their embeddings, one from either end; a decoder LSTM, which
 * begins with the encoders' last states, takes at each step the code of the group in question and the device chosen
 * before, looks at all codes by attention, and gives a logit per device.
 *
 * What differs: the networks are small, 32 units per direction and 64 in the decoder, for graphs that are simulated in
 * microseconds; attention is multiplicative instead of additive, one product per pair of steps.
 *
 * The episodes of a batch are the rows of each product. T steps of B episodes cost O(T B (F + 64) 512 + T^2 B 64). */
#include "place/learn/hrl_net.h"

#include <stdlib.h>
#include <string.h>

#define E HRL_ENCODER
#define B HRL_BOTH

void hrl_net_declare(hrl_net *net, learn_params *q, int32_t n_devices)
{
    static const char *const grouper[] = {"grouper.w1", "grouper.b1", "grouper.w2", "grouper.b2"};
    static const char *const encoder[2][3] = {{"forward.wx", "forward.wh", "forward.b"},
                                              {"backward.wx", "backward.wh", "backward.b"}};
    static const char *const decoder[] = {"decoder.wx", "decoder.wh", "decoder.b"};
    net->n_devices = n_devices;
    net->n_groups = HRL_GROUPS(n_devices);
    net->n_features = HRL_GROUP_FEATURES(net->n_groups);
    net->grouper = learn_pair_new(q, grouper, HRL_ITEM_FEATURES, HRL_GROUPER, net->n_groups);
    for (int d = 0; d < 2; d++)
        net->encoder[d] = learn_lstm_new(q, encoder[d], net->n_features, E);
    net->decoder = learn_lstm_new(q, decoder, B + n_devices + 1, HRL_DECODER);
    net->query = learn_dense_new(q, "query.w", "query.b", HRL_DECODER, B);
    net->out = learn_dense_new(q, "out.w", "out.b", HRL_DECODER + B, n_devices);
}

/* ---- memory ---- */

static size_t lay_out(hrl_work *w, const hrl_net *net, learn_real *store)
{
    size_t rows = (size_t)w->rows, all = (size_t)w->steps * rows, K = (size_t)net->n_devices, in = B + K + 1, need = 0;
    struct {
        learn_real **place;
        size_t n;
    } parts[] = {
        {&w->code, all * B},     {&w->dcode, all * B},     {&w->in, all * in},
        {&w->din, rows * in},    {&w->query, all * B},     {&w->dquery, all * B},
        {&w->read, all * 2 * B}, {&w->dread, all * 2 * B}, {&w->weight, all * (size_t)w->steps},
        {&w->z, all * K},        {&w->dz, all * K},        {&w->dstate, rows * B},
        {&w->dbefore, rows * B}, {&w->dcell, rows * B},    {&w->spare, rows * B + (size_t)w->steps},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].place = store ? store + need : NULL;
        need += parts[i].n;
    }
    for (int t = 0; t < 3; t++) {
        hrl_tape *tape = t < 2 ? &w->encoder[t] : &w->decoder;
        size_t width = t < 2 ? E : HRL_DECODER;
        struct {
            learn_real **place;
            size_t n;
        } tapes[] = {{&tape->gates, all * 4 * width},
                     {&tape->dgates, all * 4 * width},
                     {&tape->squashed, all * width},
                     {&tape->cell, (all + rows) * width},
                     {&tape->state, (all + rows) * width}};
        for (size_t i = 0; i < sizeof tapes / sizeof *tapes; i++) {
            *tapes[i].place = store ? store + need : NULL;
            need += tapes[i].n;
        }
    }
    return need;
}

int hrl_work_open(hrl_work *w, const hrl_net *net, int32_t rows, int32_t steps)
{
    *w = (hrl_work){.rows = rows, .steps = steps};
    learn_real *store = util_alloc(lay_out(w, net, NULL), sizeof *store);
    if (!store)
        return MOIRAI_EFAIL;
    lay_out(w, net, store);
    w->store = store;
    return 0;
}

void hrl_work_close(hrl_work *w)
{
    free(w->store);
}

/* ---- forwards ---- */

/* Slot s of a tape is the s-th step taken; going backwards over the groups, that is group steps - 1 - s. */
static size_t group_of(int d, int32_t steps, int32_t s)
{
    return (size_t)(d == 0 ? s : steps - 1 - s);
}

static void step_lstm(const learn_lstm *l, const learn_real *value, int32_t rows, int32_t s, const learn_real *x,
                      hrl_tape *tape)
{
    size_t at = (size_t)s * (size_t)rows * (size_t)l->width, next = at + (size_t)rows * (size_t)l->width;
    learn_lstm_forward(l, value, rows, x, tape->state + at, tape->cell + at, tape->gates + 4 * at, tape->cell + next,
                       tape->squashed + at, tape->state + next);
}

void hrl_net_encode(const hrl_net *net, const learn_real *value, int32_t rows, int32_t steps,
                    const learn_real *features, hrl_work *w)
{
    size_t r = (size_t)rows, F = (size_t)net->n_features;
    for (int d = 0; d < 2; d++) {
        hrl_tape *tape = &w->encoder[d];
        memset(tape->state, 0, r * E * sizeof *tape->state);
        memset(tape->cell, 0, r * E * sizeof *tape->cell);
        for (int32_t s = 0; s < steps; s++) {
            size_t group = group_of(d, steps, s);
            step_lstm(&net->encoder[d], value, rows, s, features + group * r * F, tape);
            for (size_t e = 0; e < r; e++)
                memcpy(w->code + (group * r + e) * B + (size_t)d * E, tape->state + ((size_t)(s + 1) * r + e) * E,
                       E * sizeof *w->code);
        }
        for (size_t e = 0; e < r; e++) { /* the decoder begins where the encoders ended */
            size_t last = ((size_t)steps * r + e) * E, first = e * B + (size_t)d * E;
            memcpy(w->decoder.state + first, tape->state + last, E * sizeof *w->code);
            memcpy(w->decoder.cell + first, tape->cell + last, E * sizeof *w->code);
        }
    }
}

void hrl_net_decode(const hrl_net *net, const learn_real *value, int32_t rows, int32_t steps, int32_t step,
                    const int32_t *before, hrl_work *w)
{
    size_t r = (size_t)rows, at = (size_t)step * r, K = (size_t)net->n_devices, width = B + K + 1;
    for (size_t e = 0; e < r; e++) {
        learn_real *in = w->in + (at + e) * width;
        memcpy(in, w->code + (at + e) * B, B * sizeof *in);
        memset(in + B, 0, (K + 1) * sizeof *in);
        in[B + (size_t)(before[e] + 1)] = 1; /* MOIRAI_NONE is -1 */
    }
    step_lstm(&net->decoder, value, rows, step, w->in + at * width, &w->decoder);
    const learn_real *state = w->decoder.state + (at + r) * B;
    learn_dense_forward(&net->query, value, rows, state, w->query + at * B);
    for (size_t e = 0; e < r; e++) {
        learn_real *read = w->read + (at + e) * 2 * B;
        memcpy(read, state + e * B, B * sizeof *read);
        learn_attend_forward(steps, B, w->query + (at + e) * B, w->code + e * B, r * B,
                             w->weight + (at + e) * (size_t)steps, read + B);
    }
    learn_dense_forward(&net->out, value, rows, w->read + at * 2 * B, w->z + at * K);
}

/* ---- backwards ---- */

static void decode_back(const hrl_net *net, const learn_real *value, int32_t rows, int32_t steps, hrl_work *w,
                        learn_real *grad)
{
    size_t r = (size_t)rows, width = (size_t)(B + net->n_devices + 1);
    memset(w->dbefore, 0, r * B * sizeof *w->dbefore);
    memset(w->dcell, 0, r * B * sizeof *w->dcell);
    for (int32_t s = steps - 1; s >= 0; s--) {
        size_t at = (size_t)s * r;
        for (size_t e = 0; e < r; e++)
            learn_attend_backward(steps, B, w->query + (at + e) * B, w->code + e * B, r * B,
                                  w->weight + (at + e) * (size_t)steps, w->dread + (at + e) * 2 * B + B, w->spare,
                                  w->dquery + (at + e) * B, w->dcode + e * B);
        learn_product(LEARN_PLAIN, LEARN_TURNED, rows, HRL_DECODER, B, w->dquery + at * B, value + net->query.w, false,
                      w->dstate);
        for (size_t e = 0; e < r; e++)
            for (size_t j = 0; j < B; j++)
                w->dstate[e * B + j] += w->dread[(at + e) * 2 * B + j] + w->dbefore[e * B + j];
        learn_lstm_backward(&net->decoder, value, rows, w->decoder.gates + at * 4 * B, w->decoder.squashed + at * B,
                            w->decoder.cell + at * B, w->dstate, w->dcell, w->decoder.dgates + at * 4 * B, w->din,
                            w->dbefore);
        for (size_t e = 0; e < r; e++)
            for (size_t j = 0; j < B; j++)
                w->dcode[(at + e) * B + j] += w->din[e * width + j];
    }
    int32_t all = rows * steps;
    learn_lstm_weights(&net->decoder, grad, all, w->in, w->decoder.state, w->decoder.dgates);
    learn_dense_backward(&net->query, value, grad, all, w->decoder.state + r * B, w->dquery, NULL);
}

/* w->dbefore and w->dcell hold the derivatives by the decoder's first state and cell, that is by the encoders' last. */
static void encode_back(const hrl_net *net, const learn_real *value, int32_t rows, int32_t steps, int d,
                        const learn_real *features, hrl_work *w, learn_real *grad)
{
    size_t r = (size_t)rows, F = (size_t)net->n_features;
    hrl_tape *tape = &w->encoder[d];
    learn_real *dstate = w->dstate, *dlater = w->spare, *dcell = w->din; /* din is free by now and large enough */
    for (size_t e = 0; e < r; e++) {
        memcpy(dlater + e * E, w->dbefore + e * B + (size_t)d * E, E * sizeof *dlater);
        memcpy(dcell + e * E, w->dcell + e * B + (size_t)d * E, E * sizeof *dcell);
    }
    for (int32_t s = steps - 1; s >= 0; s--) {
        size_t at = (size_t)s * r * E, group = group_of(d, steps, s);
        for (size_t e = 0; e < r; e++)
            for (size_t j = 0; j < E; j++)
                dstate[e * E + j] = w->dcode[(group * r + e) * B + (size_t)d * E + j] + dlater[e * E + j];
        learn_lstm_backward(&net->encoder[d], value, rows, tape->gates + 4 * at, tape->squashed + at, tape->cell + at,
                            dstate, dcell, tape->dgates + 4 * at, NULL, dlater);
        if (d == 1) /* features lie in the other order */
            learn_lstm_weights(&net->encoder[d], grad, rows, features + group * r * F, tape->state + at,
                               tape->dgates + 4 * at);
    }
    if (d == 0)
        learn_lstm_weights(&net->encoder[d], grad, rows * steps, features, tape->state, tape->dgates);
}

void hrl_net_backward(const hrl_net *net, const learn_real *value, int32_t rows, int32_t steps,
                      const learn_real *features, hrl_work *w, learn_real *grad)
{
    memset(w->dcode, 0, (size_t)steps * (size_t)rows * B * sizeof *w->dcode);
    learn_dense_backward(&net->out, value, grad, rows * steps, w->read, w->dz, w->dread);
    decode_back(net, value, rows, steps, w, grad);
    for (int d = 0; d < 2; d++)
        encode_back(net, value, rows, steps, d, features, w, grad);
}
