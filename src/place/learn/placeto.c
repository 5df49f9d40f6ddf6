/* placeto: a policy that looks at the graph and moves one group of operators after the other (Addanki et al. 2019).
 *
 * An episode begins with a placement (everything on the fastest device, or the plan given with --start) and visits
 * every node of the grouped graph (placeto_graph.c) once, in topological order. At each visit the network
 * (placeto_net.c) sees all nodes: their work on the device where they are, bytes sent, whether visited, whether
 * current, start in the simulated placement, memory, and the device; it chooses the current node's device. Columns are
 * scaled by their maximum. The reward is the drop in cost from step to step: simulated makespan over that of the start,
 * and a penalty for bytes above a device's memory.
 *
 * REINFORCE with a moving-average baseline per step, an entropy bonus that falls to nearly nothing, Adam with a falling
 * rate, gradient norm at most 1.25.
 *
 * What differs from the publication. All for lower variance, since minutes on one processor must do: later rewards are
 * discounted by 0.95 a step; a step's baseline also follows, by a moving linear regression, the cost at that step, so
 * that an episode that stood badly is not praised for what was easy to gain; and advantages are divided by their
 * running root mean square, so that the bonus means the same for every network. Adam goes from 3e-3 to 3e-4 instead of
 * 1e-3 to 1e-4. One step in four, drawn for each episode, is learnt from: neighbouring steps tell nearly the same, and
 * the way back costs three times the way forward. Every placement on the way is simulated exactly, so each is a
 * candidate plan. Devices are unequal, so the work of a node is that on its present device. Devices that can't run a
 * node have probability 0.
 *
 * An episode of n nodes costs n simulations, n passes of n rows forwards and, for learning, n / 4 forwards again and
 * back: storing all activations instead would take 4 KB n^2. O(n^2 + n (V + E) log V). */
#include "place/learn/placeto_net.h"
#include "place/learn/train.h"
#include "place/placers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES 4
#define EPISODES 2     /* per lane */
#define CHUNK_ROWS 512 /* rows at a time on the way back: 2 MB of activations */
#define SKIP 4         /* one step in so many is learnt from */
#define DISCOUNT 0.95

typedef struct lane {
    placeto_work play, teach;
    learn_real *features;    /* [step][episode][node][feature] */
    int32_t *chosen;         /* [step][episode] */
    double *before;          /* [step][episode]: cost before the choice */
    double *advantage;       /* [step][episode] */
    int32_t *current, *pick; /* spare, per sample of a chunk */
    learn_real *chunk;       /* spare: features of a chunk */
    double cost[EPISODES];
    int32_t *device[EPISODES];    /* per node */
    int32_t *op_device[EPISODES]; /* per operator */
    int64_t *start_ns[EPISODES];  /* per node */
} lane;

typedef struct step_average {
    double before, gain, square, product;
} step_average;

typedef struct state {
    placeto_graph *g;
    placeto_net net;
    int32_t chunk;
    step_average *average; /* per step: the baseline */
    bool has_baseline;
    double square; /* running mean square of what remains after it */
    double byte_scale;
    lane lanes[LANES];
} state;

/* ---- memory ---- */

static int open_lane(lane *l, const state *s, const moirai_problem *p)
{
    size_t n = (size_t)s->g->n, row = (size_t)s->net.n_features, steps = n * EPISODES;
    l->features = util_alloc(steps * n * row, sizeof *l->features);
    l->chosen = util_alloc(steps, sizeof *l->chosen);
    l->before = util_alloc(steps, sizeof *l->before);
    l->advantage = util_alloc(steps, sizeof *l->advantage);
    l->current = util_alloc((size_t)UTIL_MAX(s->chunk, EPISODES), sizeof *l->current);
    l->pick = util_alloc((size_t)s->chunk, sizeof *l->pick);
    l->chunk = util_alloc((size_t)s->chunk * n * row, sizeof *l->chunk);
    bool fine = l->pick && l->chunk && l->features && l->chosen && l->before && l->advantage && l->current;
    for (int e = 0; e < EPISODES; e++) {
        l->device[e] = util_alloc(n, sizeof *l->device[e]);
        l->op_device[e] = util_alloc((size_t)p->n_ops, sizeof *l->op_device[e]);
        l->start_ns[e] = util_alloc(n, sizeof *l->start_ns[e]);
        fine = fine && l->device[e] && l->op_device[e] && l->start_ns[e];
    }
    int rc = fine ? placeto_work_open(&l->play, &s->net, s->g, EPISODES) : MOIRAI_EFAIL;
    return !rc ? placeto_work_open(&l->teach, &s->net, s->g, s->chunk) : rc;
}

static void close_lane(lane *l)
{
    placeto_work_close(&l->play);
    placeto_work_close(&l->teach);
    free(l->features);
    free(l->chosen);
    free(l->before);
    free(l->advantage);
    free(l->current);
    free(l->pick);
    free(l->chunk);
    for (int e = 0; e < EPISODES; e++) {
        free(l->device[e]);
        free(l->op_device[e]);
        free(l->start_ns[e]);
    }
}

static int open_state(learn_run *run)
{
    state *s = run->state = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    int32_t limit = (int32_t)moirai_setting_real(run->o, &place_placeto, "nodes");
    int rc = placeto_graph_new(&s->g, run->p, run->units, limit);
    if (rc)
        return rc;
    placeto_net_declare(&s->net, &run->params, run->p->n_devices);
    s->chunk = UTIL_MAX(1, CHUNK_ROWS / UTIL_MAX(s->g->n, 1));
    s->average = util_alloc((size_t)s->g->n, sizeof *s->average);
    double bytes = 0;
    for (int32_t i = 0; i < run->p->n_ops; i++)
        bytes += (double)run->p->op_memory_bytes[i];
    s->byte_scale = UTIL_MAX(bytes / run->p->n_devices, 1);
    rc = s->average ? 0 : MOIRAI_EFAIL;
    for (int l = 0; l < LANES && !rc; l++)
        rc = open_lane(&s->lanes[l], s, run->p);
    return rc;
}

static void close_state(learn_run *run)
{
    state *s = run->state;
    for (int l = 0; l < LANES; l++)
        close_lane(&s->lanes[l]);
    placeto_graph_free(s->g);
    free(s->average);
    free(s);
}

static double episode_work(const learn_run *run)
{
    const state *s = run->state;
    return (double)UTIL_MAX(s->g->n, 1) * ((double)s->g->n + (double)run->p->n_ops / 32 + 1);
}

/* ---- playing ---- */

static void put(lane *l, const placeto_graph *g, int e, int32_t v, int32_t device)
{
    l->device[e][v] = device;
    for (int32_t j = g->off[v]; j < g->off[v + 1]; j++)
        l->op_device[e][g->op[j]] = device;
}

static void simulate(learn_run *run, int32_t number, int e)
{
    state *s = run->state;
    lane *l = &s->lanes[number];
    learn_verdict v = learn_judge_try(&run->judge[number], l->op_device[e]);
    const int64_t *start = moirai_sim_op_start(run->judge[number].sim);
    for (int32_t node = 0; node < s->g->n; node++) {
        int64_t first = INT64_MAX;
        for (int32_t j = s->g->off[node]; j < s->g->off[node + 1]; j++)
            first = UTIL_MIN(first, start[s->g->op[j]]);
        l->start_ns[e][node] = first;
    }
    l->cost[e] = (double)v.makespan_ns / (double)run->start_ns;
    if (v.excess_bytes > 0)
        l->cost[e] += 0.5 + UTIL_MIN((double)v.excess_bytes / s->byte_scale, 4);
    run->length_ns[number * EPISODES + e] = v.makespan_ns;
}

/* Where the start has a node's first operator, if the whole node may be there; else where the node is quickest. */
static void begin_episode(learn_run *run, int32_t number, int e)
{
    state *s = run->state;
    const placeto_graph *g = s->g;
    for (int32_t v = 0; v < g->n; v++) {
        int32_t device = run->start_device[g->op[g->off[v]]];
        if (!(g->devices[v] >> device & 1)) {
            int64_t least = INT64_MAX;
            for (int32_t k = 0; k < g->n_devices; k++)
                if ((g->devices[v] >> k & 1) && g->time_ns[(int64_t)v * g->n_devices + k] < least) {
                    least = g->time_ns[(int64_t)v * g->n_devices + k];
                    device = k;
                }
        }
        put(&s->lanes[number], g, e, v, device);
    }
    simulate(run, number, e);
}

static void describe(const state *s, const lane *l, int e, int32_t current, learn_real *row)
{
    const placeto_graph *g = s->g;
    int32_t F = s->net.n_features;
    double most[6] = {0, 0, 1, 1, 0, 0};
    for (int pass = 0; pass < 2; pass++) /* maxima, then features */
        for (int32_t v = 0; v < g->n; v++) {
            int32_t device = l->device[e][v];
            double column[6] = {(double)g->time_ns[(int64_t)v * g->n_devices + device],
                                (double)g->out_bytes[v],
                                v < current,
                                v == current,
                                (double)l->start_ns[e][v],
                                (double)g->memory_bytes[v]};
            learn_real *x = row + (size_t)v * (size_t)F;
            if (pass == 1)
                memset(x, 0, (size_t)F * sizeof *x);
            for (int c = 0; c < 6; c++) {
                if (pass == 0)
                    most[c] = UTIL_MAX(most[c], column[c]);
                else
                    x[c] = most[c] > 0 ? (learn_real)(column[c] / most[c]) : 0;
            }
            if (pass == 1)
                x[6 + device] = 1;
        }
}

static void play(learn_run *run, int32_t number, bool greedy)
{
    state *s = run->state;
    lane *l = &s->lanes[number];
    int32_t n = s->g->n, K = run->p->n_devices, episodes = greedy ? 1 : EPISODES;
    size_t states = (size_t)n * (size_t)s->net.n_features;
    for (int e = 0; e < episodes; e++)
        begin_episode(run, number, e);
    for (int32_t v = 0; v < n && !util_stopped(&run->stop); v++) {
        learn_real *features = l->features + (size_t)v * EPISODES * states;
        for (int e = 0; e < episodes; e++) {
            describe(s, l, e, v, features + (size_t)e * states);
            l->current[e] = v;
        }
        placeto_net_forward(&s->net, s->g, run->params.value, episodes, features, l->current, &l->play);
        for (int e = 0; e < episodes; e++) {
            learn_real *z = l->play.z + (size_t)e * (size_t)K;
            learn_softmax(K, &s->g->devices[v], z);
            int32_t device = greedy ? learn_likeliest(K, z) : learn_draw(K, z, &run->rng[number]);
            l->chosen[v * EPISODES + e] = device;
            l->before[v * EPISODES + e] = l->cost[e];
            if (device == l->device[e][v])
                continue;
            put(l, s->g, e, v, device);
            simulate(run, number, e);
        }
    }
}

/* ---- learning ---- */

static double follow(bool known, double average, double value)
{
    return known ? 0.9 * average + 0.1 * value : value;
}

/* What each step brought from there on; later drops count less. */
static void sum_rewards(lane *l, int32_t n)
{
    for (int e = 0; e < EPISODES; e++) {
        double after = l->cost[e], sum = 0;
        for (int32_t v = n - 1; v >= 0; v--) {
            double before = l->before[v * EPISODES + e];
            sum = before - after + DISCOUNT * sum;
            l->advantage[v * EPISODES + e] = sum;
            after = before;
        }
    }
}

/* Moving averages, per step, of the cost before it, of what it brought, and of how the two vary together. */
static void follow_step(state *s, int32_t v)
{
    step_average *a = &s->average[v];
    double before = 0, gain = 0, square = 0, product = 0;
    for (int i = 0; i < LANES * EPISODES; i++) {
        const lane *l = &s->lanes[i / EPISODES];
        before += l->before[v * EPISODES + i % EPISODES] / (LANES * EPISODES);
        gain += l->advantage[v * EPISODES + i % EPISODES] / (LANES * EPISODES);
    }
    a->before = follow(s->has_baseline, a->before, before);
    a->gain = follow(s->has_baseline, a->gain, gain);
    for (int i = 0; i < LANES * EPISODES; i++) {
        const lane *l = &s->lanes[i / EPISODES];
        double d = l->before[v * EPISODES + i % EPISODES] - a->before;
        square += d * d / (LANES * EPISODES);
        product += d * (l->advantage[v * EPISODES + i % EPISODES] - a->gain) / (LANES * EPISODES);
    }
    a->square = follow(s->has_baseline, a->square, square);
    a->product = follow(s->has_baseline, a->product, product);
}

/* What the choices brought, against what was to be expected at each step. */
static void appraise(learn_run *run)
{
    state *s = run->state;
    int32_t n = s->g->n, all = LANES * EPISODES;
    double square = 0;
    for (int i = 0; i < LANES; i++)
        sum_rewards(&s->lanes[i], n);
    for (int32_t v = 0; v < n; v++) {
        step_average *a = &s->average[v];
        follow_step(s, v);
        double slope = a->square > 1e-12 ? a->product / a->square : 0;
        for (int i = 0; i < all; i++) {
            lane *l = &s->lanes[i / EPISODES];
            int32_t at = v * EPISODES + i % EPISODES;
            l->advantage[at] -= a->gain + slope * (l->before[at] - a->before);
            square += l->advantage[at] * l->advantage[at] / ((double)all * n);
        }
    }
    s->square = follow(s->has_baseline, s->square, square);
    s->has_baseline = true;
    double scale = 1 / (sqrt(s->square) + 1e-9);
    for (int i = 0; i < LANES; i++)
        for (int32_t at = 0; at < n * EPISODES; at++)
            s->lanes[i].advantage[at] *= scale;
}

/* Samples `pick` of this lane, forwards and back. */
static void teach_samples(learn_run *run, lane *l, int32_t samples, const int32_t *pick, double entropy,
                          learn_real *grad)
{
    state *s = run->state;
    int32_t n = s->g->n, K = run->p->n_devices;
    size_t states = (size_t)n * (size_t)s->net.n_features;
    double share = (double)SKIP / ((double)LANES * n * EPISODES);
    for (int32_t i = 0; i < samples; i++) {
        l->current[i] = pick[i] / EPISODES;
        memcpy(l->chunk + (size_t)i * states, l->features + (size_t)pick[i] * states, states * sizeof *l->chunk);
    }
    placeto_net_forward(&s->net, s->g, run->params.value, samples, l->chunk, l->current, &l->teach);
    memset(l->teach.dz, 0, (size_t)samples * (size_t)K * sizeof *l->teach.dz);
    for (int32_t i = 0; i < samples; i++) {
        learn_real *z = l->teach.z + (size_t)i * (size_t)K;
        learn_softmax(K, &s->g->devices[l->current[i]], z);
        learn_choice_backward(K, z, l->chosen[pick[i]], share * l->advantage[pick[i]], share * entropy,
                              l->teach.dz + (size_t)i * (size_t)K);
    }
    placeto_net_backward(&s->net, s->g, run->params.value, samples, l->chunk, l->current, &l->teach, grad);
}

static void teach(learn_run *run, int32_t number, double entropy, learn_real *grad)
{
    state *s = run->state;
    lane *l = &s->lanes[number];
    int32_t samples = 0;
    for (int e = 0; e < EPISODES; e++) {
        int32_t first = (int32_t)util_rng_below(&run->rng[number], SKIP);
        for (int32_t v = first; v < s->g->n; v += SKIP) {
            l->pick[samples++] = v * EPISODES + e;
            if (samples == s->chunk) {
                teach_samples(run, l, samples, l->pick, entropy, grad);
                samples = 0;
            }
        }
    }
    if (samples > 0)
        teach_samples(run, l, samples, l->pick, entropy, grad);
}

const learn_method learn_placeto = {
    .placer = &place_placeto,
    .lanes = LANES,
    .width = EPISODES,
    .rate_first = 3e-3,
    .rate_last = 3e-4,
    .clip = 1.25,
    .entropy_first = 0.003,
    .entropy_last = 0.0001,
    .work = 4e6,
    .open = open_state,
    .close = close_state,
    .episode_work = episode_work,
    .play = play,
    .appraise = appraise,
    .teach = teach,
};
