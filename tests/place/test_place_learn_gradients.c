/* Every hand-written derivative of the learning placers against finite differences, in double precision: this test
 * links src/place/learn compiled once more with LEARN_DOUBLE. */
#include "place/learn/hrl_items.h"
#include "place/learn/placeto_net.h"
#include "place/learn/train.h"
#include "support/check.h"
#include "support/random_problem.h"

#include <math.h>

static double draw(util_rng *rng)
{
    return 2 * util_rng_real(rng) - 1;
}

static void fill(util_rng *rng, size_t n, learn_real *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = draw(rng);
}

/* ---- finite differences ---- */

typedef double (*loss_fn)(void *data);

/* The loss's derivative by *x, by central differences; kinks of relu are met with probability nearly 0. */
static double slope(loss_fn loss, void *data, learn_real *x)
{
    const double step = 1e-6;
    learn_real keep = *x;
    *x = keep + step;
    double above = loss(data);
    *x = keep - step;
    double below = loss(data);
    *x = keep;
    return (above - below) / (2 * step);
}

static void compare(const char *what, loss_fn loss, void *data, size_t n, learn_real *x, const learn_real *dx,
                    size_t every)
{
    double largest = 0;
    for (size_t i = 0; i < n; i += every) {
        double expected = slope(loss, data, &x[i]), error = fabs(expected - dx[i]);
        largest = UTIL_MAX(largest, fabs(expected));
        if (!(error <= 1e-6 + 1e-5 * fabs(expected)))
            fail_msg("%s[%zu]: %.12g by differences, %.12g by hand", what, i, expected, dx[i]);
    }
    if (largest == 0)
        fail_msg("%s: all derivatives are 0: nothing was tested", what);
}

/* ---- one layer ---- */

typedef struct bench {
    learn_params q;
    int32_t rows, in, out;
    size_t n_x, n_y;
    learn_real *x, *dx, *y, *weight, *grad; /* the loss is the sum of weight * y */
    void (*forward)(struct bench *b);
    learn_dense dense;
    learn_pair pair;
    learn_real *hidden, *spare;
} bench;

static double bench_loss(void *data)
{
    bench *b = data;
    double sum = 0;
    b->forward(b);
    for (size_t i = 0; i < b->n_y; i++)
        sum += b->weight[i] * b->y[i];
    return sum;
}

static void bench_open(bench *b, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    b->n_x = (size_t)b->rows * (size_t)b->in;
    b->n_y = (size_t)b->rows * (size_t)b->out;
    assert_ok(learn_params_make(&b->q));
    b->x = util_alloc(b->n_x, sizeof *b->x);
    b->dx = util_alloc(b->n_x, sizeof *b->dx);
    b->y = util_alloc(b->n_y, sizeof *b->y);
    b->weight = util_alloc(b->n_y, sizeof *b->weight);
    b->grad = util_alloc(b->q.n, sizeof *b->grad);
    b->hidden = util_alloc(1024, sizeof *b->hidden);
    b->spare = util_alloc(1024, sizeof *b->spare);
    fill(&rng, b->q.n, b->q.value);
    fill(&rng, b->n_x, b->x);
    fill(&rng, b->n_y, b->weight);
}

static void bench_close(bench *b)
{
    learn_params_free(&b->q);
    void *all[] = {b->x, b->dx, b->y, b->weight, b->grad, b->hidden, b->spare};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void forward_dense(bench *b)
{
    learn_dense_forward(&b->dense, b->q.value, b->rows, b->x, b->y);
}

static void test_learn_dense_gradient(void **state)
{
    (void)state;
    bench b = {.rows = 5, .in = 7, .out = 3, .forward = forward_dense};
    b.dense = learn_dense_new(&b.q, "w", "b", 7, 3);
    bench_open(&b, 1);
    bench_loss(&b);
    learn_dense_backward(&b.dense, b.q.value, b.grad, b.rows, b.x, b.weight, b.dx);
    compare("dense weights", bench_loss, &b, b.q.n, b.q.value, b.grad, 1);
    compare("dense input", bench_loss, &b, b.n_x, b.x, b.dx, 1);
    bench_close(&b);
}

static void forward_pair(bench *b)
{
    learn_pair_forward(&b->pair, b->q.value, b->rows, b->x, b->hidden, b->y);
}

static void test_learn_pair_gradient(void **state)
{
    (void)state;
    static const char *const names[] = {"w1", "b1", "w2", "b2"};
    bench b = {.rows = 6, .in = 4, .out = 3, .forward = forward_pair};
    b.pair = learn_pair_new(&b.q, names, 4, 9, 3);
    bench_open(&b, 2);
    bench_loss(&b);
    learn_pair_backward(&b.pair, b.q.value, b.grad, b.rows, b.x, b.hidden, b.weight, b.spare, b.dx);
    compare("pair weights", bench_loss, &b, b.q.n, b.q.value, b.grad, 1);
    compare("pair input", bench_loss, &b, b.n_x, b.x, b.dx, 1);
    bench_close(&b);
}

static void forward_relu(bench *b)
{
    memcpy(b->y, b->x, b->n_x * sizeof *b->x);
    learn_relu_forward(b->n_x, b->y);
}

static void test_learn_relu_gradient(void **state)
{
    (void)state;
    bench b = {.rows = 4, .in = 8, .out = 8, .forward = forward_relu};
    bench_open(&b, 3);
    bench_loss(&b);
    memcpy(b.dx, b.weight, b.n_x * sizeof *b.dx);
    learn_relu_backward(b.n_x, b.y, b.dx);
    compare("relu input", bench_loss, &b, b.n_x, b.x, b.dx, 1);
    bench_close(&b);
}

/* Nodes 0 -> 1, 0 -> 2, 1 -> 3, 2 -> 3: sums over parents, and back over children. */
static const int32_t parent_off[] = {0, 0, 1, 2, 4}, parent[] = {0, 0, 1, 2};
static const int32_t child_off[] = {0, 2, 3, 4, 4}, child[] = {1, 2, 3, 3};

static void forward_gather(bench *b)
{
    learn_gather(2, 4, 3, parent_off, parent, b->x, b->y);
}

static void test_learn_gather_gradient(void **state)
{
    (void)state;
    bench b = {.rows = 8, .in = 3, .out = 3, .forward = forward_gather};
    bench_open(&b, 4);
    bench_loss(&b);
    learn_gather(2, 4, 3, child_off, child, b.weight, b.dx);
    compare("gather input", bench_loss, &b, b.n_x, b.x, b.dx, 1);
    assert_true(b.y[0] == 0 && b.y[9] == b.x[3] + b.x[6]);
    bench_close(&b);
}

/* ---- choices ---- */

typedef struct choice_case {
    learn_real z[5];
    uint64_t mask;
} choice_case;

static double choice_loss(void *data)
{
    const choice_case *c = data;
    learn_real p[5];
    memcpy(p, c->z, sizeof p);
    learn_softmax(5, &c->mask, p);
    return -0.7 * log(p[2]) - 0.3 * learn_entropy(5, p);
}

static void test_learn_choice_gradient(void **state)
{
    (void)state;
    choice_case c = {.z = {0.3, -1, 0.8, 2, 0.1}, .mask = 0x17}; /* the likeliest is shut */
    learn_real p[5], dz[5] = {0};
    memcpy(p, c.z, sizeof p);
    learn_softmax(5, &c.mask, p);
    assert_true(p[3] == 0 && fabs(p[0] + p[1] + p[2] + p[4] - 1) < 1e-12);
    learn_choice_backward(5, p, 2, 0.7, 0.3, dz);
    compare("logits", choice_loss, &c, 5, c.z, dz, 1);
    assert_true(dz[3] == 0);
}

/* ---- lstm and attention ---- */

enum { ROWS = 3, IN = 4, WIDTH = 5, STEPS = 4 };

typedef struct lstm_case {
    learn_params q;
    learn_lstm l;
    learn_real x[STEPS * ROWS * IN], state[(STEPS + 1) * ROWS * WIDTH], cell[(STEPS + 1) * ROWS * WIDTH];
    learn_real gates[STEPS * ROWS * 4 * WIDTH], squashed[STEPS * ROWS * WIDTH], weight[STEPS * ROWS * WIDTH];
    learn_real last_cell[ROWS * WIDTH]; /* weights of the last cell */
    learn_real dx[STEPS * ROWS * IN], dgates[STEPS * ROWS * 4 * WIDTH], dstate[ROWS * WIDTH], dbefore[ROWS * WIDTH],
        dcell[ROWS * WIDTH];
} lstm_case;

static double lstm_loss(void *data)
{
    lstm_case *c = data;
    const int at = ROWS * WIDTH;
    double sum = 0;
    for (int s = 0; s < STEPS; s++)
        learn_lstm_forward(&c->l, c->q.value, ROWS, c->x + s * ROWS * IN, c->state + s * at, c->cell + s * at,
                           c->gates + 4 * s * at, c->cell + (s + 1) * at, c->squashed + s * at,
                           c->state + (s + 1) * at);
    for (int i = 0; i < STEPS * at; i++)
        sum += c->weight[i] * c->state[at + i];
    for (int i = 0; i < at; i++)
        sum += c->last_cell[i] * c->cell[STEPS * at + i];
    return sum;
}

static void lstm_back(lstm_case *c, learn_real *grad)
{
    const int at = ROWS * WIDTH;
    memset(c->dbefore, 0, sizeof c->dbefore);
    memcpy(c->dcell, c->last_cell, sizeof c->dcell);
    for (int s = STEPS - 1; s >= 0; s--) {
        for (int i = 0; i < at; i++)
            c->dstate[i] = c->weight[s * at + i] + c->dbefore[i];
        learn_lstm_backward(&c->l, c->q.value, ROWS, c->gates + 4 * s * at, c->squashed + s * at, c->cell + s * at,
                            c->dstate, c->dcell, c->dgates + 4 * s * at, c->dx + s * ROWS * IN, c->dbefore);
    }
    learn_lstm_weights(&c->l, grad, STEPS * ROWS, c->x, c->state, c->dgates);
}

static void test_learn_lstm_gradient(void **state)
{
    (void)state;
    static const char *const names[] = {"wx", "wh", "b"};
    static lstm_case c;
    util_rng rng;
    util_rng_seed(&rng, 5);
    c.l = learn_lstm_new(&c.q, names, IN, WIDTH);
    assert_ok(learn_params_make(&c.q));
    learn_real *grad = util_alloc(c.q.n, sizeof *grad);
    fill(&rng, c.q.n, c.q.value);
    fill(&rng, STEPS * ROWS * IN, c.x);
    fill(&rng, STEPS * ROWS * WIDTH, c.weight);
    fill(&rng, ROWS * WIDTH, c.last_cell);
    fill(&rng, ROWS * WIDTH, c.state); /* the first state and cell are inputs, too */
    fill(&rng, ROWS * WIDTH, c.cell);
    lstm_loss(&c);
    lstm_back(&c, grad);
    compare("lstm weights", lstm_loss, &c, c.q.n, c.q.value, grad, 1);
    compare("lstm input", lstm_loss, &c, STEPS * ROWS * IN, c.x, c.dx, 1);
    compare("lstm first state", lstm_loss, &c, ROWS * WIDTH, c.state, c.dbefore, 1);
    compare("lstm first cell", lstm_loss, &c, ROWS * WIDTH, c.cell, c.dcell, 1);
    learn_params_free(&c.q);
    free(grad);
}

enum { KEYS = 6, KEY = 7, STRIDE = 9 };

typedef struct attend_case {
    learn_real query[KEY], key[KEYS * STRIDE], weight[KEYS], context[KEY], slope[KEY];
} attend_case;

static double attend_loss(void *data)
{
    attend_case *c = data;
    double sum = 0;
    learn_attend_forward(KEYS, KEY, c->query, c->key, STRIDE, c->weight, c->context);
    for (int i = 0; i < KEY; i++)
        sum += c->slope[i] * c->context[i];
    return sum;
}

static void test_learn_attention_gradient(void **state)
{
    (void)state;
    attend_case c;
    util_rng rng;
    learn_real spare[KEYS], dquery[KEY], dkey[KEYS * STRIDE] = {0};
    util_rng_seed(&rng, 6);
    fill(&rng, KEY, c.query);
    fill(&rng, KEYS * STRIDE, c.key);
    fill(&rng, KEY, c.slope);
    attend_loss(&c);
    learn_attend_backward(KEYS, KEY, c.query, c.key, STRIDE, c.weight, c.slope, spare, dquery, dkey);
    compare("attention query", attend_loss, &c, KEY, c.query, dquery, 1);
    compare("attention keys", attend_loss, &c, KEYS * STRIDE, c.key, dkey, 1);
}

/* ---- whole policies ---- */

static moirai_problem *small_problem(uint64_t seed)
{
    random_spec spec = {
        .seed = seed, .shape = SHAPE_LAYERED, .n_ops = 14, .n_devices = 3, .scale = 1000, .nulls = true};
    moirai_problem *p = random_problem(&spec);
    assert_non_null(p);
    return p;
}

typedef struct placeto_case {
    learn_params q;
    placeto_net net;
    placeto_graph *g;
    placeto_work w;
    learn_real *features;
    int32_t samples, current[4], chosen[4];
} placeto_case;

static double placeto_loss(void *data)
{
    placeto_case *c = data;
    double sum = 0;
    placeto_net_forward(&c->net, c->g, c->q.value, c->samples, c->features, c->current, &c->w);
    for (int32_t s = 0; s < c->samples; s++) {
        learn_real *z = c->w.z + s * c->net.n_devices;
        learn_softmax(c->net.n_devices, &c->g->devices[c->current[s]], z);
        sum += -(1 + s) * log(z[c->chosen[s]]) - 0.5 * learn_entropy(c->net.n_devices, z);
    }
    return sum;
}

static void test_learn_placeto_gradient(void **state)
{
    (void)state;
    placeto_case c = {.samples = 4};
    moirai_problem *p = small_problem(7);
    place_units *u;
    util_rng rng;
    util_rng_seed(&rng, 7);
    assert_ok(place_units_new(&u, p));
    assert_ok(placeto_graph_new(&c.g, p, u, 12));
    assert_true(c.g->n > 5);
    placeto_net_declare(&c.net, &c.q, p->n_devices);
    assert_ok(learn_params_make(&c.q));
    learn_params_draw(&c.q, 8);
    for (size_t i = 0; i < c.q.n; i++)
        c.q.value[i] += 0.1 * draw(&rng); /* biases, too */
    assert_ok(placeto_work_open(&c.w, &c.net, c.g, c.samples));
    size_t n = (size_t)c.samples * (size_t)c.g->n * (size_t)c.net.n_features;
    c.features = util_alloc(n, sizeof *c.features);
    learn_real *grad = util_alloc(c.q.n, sizeof *grad);
    fill(&rng, n, c.features);
    for (int32_t s = 0; s < c.samples; s++) {
        c.current[s] = s * (c.g->n - 1) / 3;
        c.chosen[s] = __builtin_ctzll(c.g->devices[c.current[s]]);
    }
    placeto_loss(&c);
    memset(c.w.dz, 0, (size_t)c.samples * (size_t)c.net.n_devices * sizeof *c.w.dz);
    for (int32_t s = 0; s < c.samples; s++)
        learn_choice_backward(c.net.n_devices, c.w.z + s * c.net.n_devices, c.chosen[s], 1 + s, 0.5,
                              c.w.dz + s * c.net.n_devices);
    placeto_net_backward(&c.net, c.g, c.q.value, c.samples, c.features, c.current, &c.w, grad);
    compare("placeto", placeto_loss, &c, c.q.n, c.q.value, grad, 3);
    placeto_work_close(&c.w);
    placeto_graph_free(c.g);
    learn_params_free(&c.q);
    free(c.features);
    free(grad);
    place_units_free(u);
    moirai_problem_free(p);
}

enum { EPISODES = 2, GROUPS = 5 };

typedef struct hrl_case {
    learn_params q;
    hrl_net net;
    hrl_work w;
    learn_real *features;
    int32_t chosen[GROUPS][EPISODES];
} hrl_case;

static double hrl_loss(void *data)
{
    hrl_case *c = data;
    double sum = 0;
    int32_t before[EPISODES] = {MOIRAI_NONE, MOIRAI_NONE}, K = c->net.n_devices;
    hrl_net_encode(&c->net, c->q.value, EPISODES, GROUPS, c->features, &c->w);
    for (int32_t t = 0; t < GROUPS; t++) {
        hrl_net_decode(&c->net, c->q.value, EPISODES, GROUPS, t, before, &c->w);
        for (int e = 0; e < EPISODES; e++) {
            learn_real *z = c->w.z + (t * EPISODES + e) * K;
            learn_softmax(K, NULL, z);
            before[e] = c->chosen[t][e];
            sum += -(1.5 - 2 * e) * log(z[before[e]]) - 0.25 * learn_entropy(K, z);
        }
    }
    return sum;
}

static void test_learn_hrl_gradient(void **state)
{
    (void)state;
    hrl_case c = {0};
    util_rng rng;
    util_rng_seed(&rng, 9);
    hrl_net_declare(&c.net, &c.q, 2);
    assert_ok(learn_params_make(&c.q));
    learn_params_draw(&c.q, 10);
    assert_ok(hrl_work_open(&c.w, &c.net, EPISODES, GROUPS));
    size_t n = (size_t)(EPISODES * GROUPS * c.net.n_features);
    c.features = util_alloc(n, sizeof *c.features);
    learn_real *grad = util_alloc(c.q.n, sizeof *grad);
    fill(&rng, n, c.features);
    for (int t = 0; t < GROUPS; t++)
        for (int e = 0; e < EPISODES; e++)
            c.chosen[t][e] = (int32_t)util_rng_below(&rng, 2);
    hrl_loss(&c);
    memset(c.w.dz, 0, EPISODES * GROUPS * 2 * sizeof *c.w.dz);
    for (int t = 0; t < GROUPS; t++)
        for (int e = 0; e < EPISODES; e++)
            learn_choice_backward(2, c.w.z + (t * EPISODES + e) * 2, c.chosen[t][e], 1.5 - 2 * e, 0.25,
                                  c.w.dz + (t * EPISODES + e) * 2);
    hrl_net_backward(&c.net, c.q.value, EPISODES, GROUPS, c.features, &c.w, grad);
    for (int32_t i = 0; i < c.q.n_tensors; i++) {
        const learn_tensor *t = &c.q.tensor[i];
        size_t values = (size_t)t->rows * (size_t)t->cols;
        if (strncmp(t->name, "grouper", 7) != 0) /* the grouper's way back is the pair's, tested above and below */
            compare(t->name, hrl_loss, &c, values, c.q.value + t->at, grad + t->at, values / 60 + 1);
    }
    hrl_work_close(&c.w);
    learn_params_free(&c.q);
    free(c.features);
    free(grad);
}

/* ---- what a whole batch teaches ----
 * REINFORCE's estimate, from play to gradient: with one seed the same choices are drawn, so the surrogate loss of a
 * batch can be differenced. That both methods' estimates point downhill is seen in test_learn.c; here: the batch's
 * gradient is finite and not zero. */
static void check_batch(const learn_method *method)
{
    moirai_problem *p = small_problem(11);
    moirai_place_options o;
    moirai_place_options_init(&o);
    learn_run run;
    assert_ok(learn_run_open(&run, method, p, &o));
    for (int32_t l = 0; l < method->lanes; l++)
        method->play(&run, l, false);
    method->appraise(&run);
    double square = 0;
    for (int32_t l = 0; l < method->lanes; l++) {
        method->teach(&run, l, 0.01, run.grad + (size_t)l * run.params.n);
        for (size_t i = 0; i < run.params.n; i++)
            square += run.grad[(size_t)l * run.params.n + i] * run.grad[(size_t)l * run.params.n + i];
    }
    assert_true(isfinite(square) && square > 0);
    learn_run_close(&run);
    moirai_problem_free(p);
}

static void test_learn_batches_teach_something(void **state)
{
    (void)state;
    check_batch(&learn_placeto);
    check_batch(&learn_hrl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learn_dense_gradient),     cmocka_unit_test(test_learn_pair_gradient),
        cmocka_unit_test(test_learn_relu_gradient),      cmocka_unit_test(test_learn_gather_gradient),
        cmocka_unit_test(test_learn_choice_gradient),    cmocka_unit_test(test_learn_lstm_gradient),
        cmocka_unit_test(test_learn_attention_gradient), cmocka_unit_test(test_learn_placeto_gradient),
        cmocka_unit_test(test_learn_hrl_gradient),       cmocka_unit_test(test_learn_batches_teach_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
