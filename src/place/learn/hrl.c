/* hrl: hierarchical placement by reinforcement learning (Mirhoseini et al. 2018).
 *
 * An episode: the grouper, a two-layer net, draws for every operator one of min(256, 20 x devices) groups; groups are
 * described by what is in them (hrl_items.c); the placer (hrl_net.c) draws a device for each, one after the other. Both
 * are trained together by REINFORCE on the square root of the makespan, here over that of the start; a placement that
 * exceeds a device's memory costs a fixed 2. The baseline is the mean cost with memory 0.9 per batch; Adam, gradient
 * norm at most 1.
 *
 * What differs from the publication. The grouper begins with stretches of the topological order: a fixed term of its
 * logits that the net learns to overrule. Groups drawn evenly tear every chain apart, and minutes are not enough to
 * mend that. Of small networks only half as many groups are used as there are operators. Groups without operators are
 * no steps of the sequence: they would carry noise. An operator that its group's device can't run goes where it is
 * quickest. Advantages are divided by their running root mean square, and a small, falling entropy bonus keeps both
 * networks from settling early. The networks are smaller (hrl_net.c).
 *
 * An episode costs one simulation, a pass of V rows through the grouper per lane, and T <= 256 steps of the placer
 * forwards and back. O(V (groups + 26) 64 / width + T (F + 64) 512 + T^2 64 + (V + E) log V). */
#include "place/learn/hrl_items.h"
#include "place/learn/train.h"
#include "place/placers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES 2
#define EPISODES 8 /* per lane */
#define BAD_COST 2
#define PRIOR 2 /* a group away from an operator's own stretch begins less likely by e^-2 */

typedef struct lane {
    hrl_work work;
    int32_t steps;                                        /* of the longest sequence in this batch */
    learn_real *hidden, *probability, *dlogits, *dhidden; /* the grouper's, [item][...] */
    learn_real *features;                                 /* of groups, [step][episode][feature] */
    learn_real *embedding;                                /* spare: of one episode, [step][feature] */
    int32_t *count, *before;                              /* spare */
    int32_t *group[EPISODES];                             /* per item */
    int32_t *sequence[EPISODES];                          /* per step: its group */
    int32_t length[EPISODES];                             /* groups with items */
    int32_t *chosen[EPISODES];                            /* per step: its device */
    int32_t *device_of;                                   /* spare: per group */
    int32_t *op_device;
    double cost[EPISODES], advantage[EPISODES];
} lane;

typedef struct state {
    hrl_items *items;
    hrl_net net;
    int32_t groups; /* in use: the first so many of net.n_groups */
    bool has_baseline;
    double baseline, square;
    lane lanes[LANES];
} state;

/* ---- memory ---- */

static int open_lane(lane *l, const state *s, const moirai_problem *p)
{
    size_t n = (size_t)s->items->n, G = (size_t)s->net.n_groups, F = (size_t)s->net.n_features;
    size_t steps = UTIL_MAX(UTIL_MIN(n, G), 1);
    l->hidden = util_alloc(n * HRL_GROUPER, sizeof *l->hidden);
    l->dhidden = util_alloc(n * HRL_GROUPER, sizeof *l->dhidden);
    l->probability = util_alloc(n * G, sizeof *l->probability);
    l->dlogits = util_alloc(n * G, sizeof *l->dlogits);
    l->features = util_alloc(steps * EPISODES * F, sizeof *l->features);
    l->embedding = util_alloc(EPISODES * steps * F, sizeof *l->embedding);
    l->count = util_alloc(G, sizeof *l->count);
    l->before = util_alloc(EPISODES, sizeof *l->before);
    l->device_of = util_alloc(G, sizeof *l->device_of);
    l->op_device = util_alloc((size_t)p->n_ops, sizeof *l->op_device);
    bool fine = l->hidden && l->dhidden && l->probability && l->dlogits && l->features && l->embedding && l->count &&
                l->before && l->device_of && l->op_device;
    for (int e = 0; e < EPISODES; e++) {
        l->group[e] = util_alloc(n, sizeof *l->group[e]);
        l->sequence[e] = util_alloc(G, sizeof *l->sequence[e]);
        l->chosen[e] = util_alloc(G, sizeof *l->chosen[e]);
        fine = fine && l->group[e] && l->sequence[e] && l->chosen[e];
    }
    return fine ? hrl_work_open(&l->work, &s->net, EPISODES, (int32_t)steps) : MOIRAI_EFAIL;
}

static void close_lane(lane *l)
{
    void *all[] = {l->hidden,    l->dhidden, l->probability, l->dlogits,   l->features,
                   l->embedding, l->count,   l->before,      l->device_of, l->op_device};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    for (int e = 0; e < EPISODES; e++) {
        free(l->group[e]);
        free(l->sequence[e]);
        free(l->chosen[e]);
    }
    hrl_work_close(&l->work);
}

/* Groups of one operator would be no groups; but every device needs some. */
static int32_t count_groups(const learn_run *run, const state *s)
{
    int32_t set = (int32_t)moirai_setting_real(run->o, &place_hrl, "groups");
    int32_t wanted = set > 0 ? set : UTIL_MAX(s->items->n / 2, 2 * run->p->n_devices);
    return UTIL_MIN(wanted, s->net.n_groups);
}

static int open_state(learn_run *run)
{
    state *s = run->state = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    int rc = hrl_items_new(&s->items, run->p, run->units);
    if (!rc)
        hrl_net_declare(&s->net, &run->params, run->p->n_devices);
    if (!rc)
        s->groups = count_groups(run, s);
    for (int l = 0; l < LANES && !rc; l++)
        rc = open_lane(&s->lanes[l], s, run->p);
    return rc;
}

static void close_state(learn_run *run)
{
    state *s = run->state;
    for (int l = 0; l < LANES; l++)
        close_lane(&s->lanes[l]);
    hrl_items_free(s->items);
    free(s);
}

static double episode_work(const learn_run *run)
{
    const state *s = run->state;
    return (double)UTIL_MIN(s->items->n, s->groups) + (double)run->p->n_ops / 8 + 1;
}

/* ---- playing ---- */

static void draw_groups(learn_run *run, lane *l, int32_t number, int32_t episodes, bool greedy)
{
    const state *s = run->state;
    int32_t n = s->items->n, G = s->net.n_groups;
    learn_pair_forward(&s->net.grouper, run->params.value, n, s->items->features, l->hidden, l->probability);
    for (int32_t item = 0; item < n; item++) {
        learn_real *logit = l->probability + (size_t)item * (size_t)G;
        learn_real at = (learn_real)s->groups * s->items->features[(size_t)item * HRL_ITEM_FEATURES + HRL_PLACE];
        for (int32_t g = 0; g < s->groups; g++) {
            learn_real away = at - (learn_real)g - (learn_real)0.5;
            logit[g] -= PRIOR * away * away;
        }
        learn_softmax(s->groups, NULL, logit);
    }
    for (int32_t e = 0; e < episodes; e++)
        for (int32_t item = 0; item < n; item++) {
            const learn_real *p = l->probability + (size_t)item * (size_t)G;
            l->group[e][item] = greedy ? learn_likeliest(s->groups, p) : learn_draw(s->groups, p, &run->rng[number]);
        }
}

/* The groups' features of all episodes, in step; short sequences end in rows of zeros. */
static void describe_groups(const state *s, lane *l, int32_t episodes)
{
    size_t F = (size_t)s->net.n_features, most = (size_t)l->work.steps;
    l->steps = 0;
    for (int32_t e = 0; e < episodes; e++) {
        l->length[e] = hrl_items_embed(s->items, s->net.n_groups, l->group[e], l->sequence[e], l->count,
                                       l->embedding + (size_t)e * most * F, F);
        l->steps = UTIL_MAX(l->steps, l->length[e]);
    }
    for (int32_t t = 0; t < l->steps; t++)
        for (int32_t e = 0; e < episodes; e++) {
            learn_real *to = l->features + ((size_t)t * (size_t)episodes + (size_t)e) * F;
            if (t < l->length[e])
                memcpy(to, l->embedding + ((size_t)e * most + (size_t)t) * F, F * sizeof *to);
            else
                memset(to, 0, F * sizeof *to);
        }
}

static void draw_devices(learn_run *run, lane *l, int32_t number, int32_t episodes, bool greedy)
{
    const state *s = run->state;
    int32_t K = run->p->n_devices;
    hrl_net_encode(&s->net, run->params.value, episodes, l->steps, l->features, &l->work);
    for (int32_t e = 0; e < episodes; e++)
        l->before[e] = MOIRAI_NONE;
    for (int32_t t = 0; t < l->steps; t++) {
        hrl_net_decode(&s->net, run->params.value, episodes, l->steps, t, l->before, &l->work);
        for (int32_t e = 0; e < episodes; e++) {
            learn_real *z = l->work.z + ((size_t)t * (size_t)episodes + (size_t)e) * (size_t)K;
            learn_softmax(K, NULL, z);
            l->before[e] = greedy ? learn_likeliest(K, z) : learn_draw(K, z, &run->rng[number]);
            l->chosen[e][t] = l->before[e];
        }
    }
}

static int32_t allowed(const hrl_items *h, const place_units *u, int32_t K, int32_t item, int32_t device)
{
    if (u->devices[item] >> device & 1)
        return device;
    int32_t best = __builtin_ctzll(u->devices[item]);
    for (int32_t k = 0; k < K; k++)
        if (h->least_ns[(int64_t)item * K + k] < h->least_ns[(int64_t)item * K + best])
            best = k;
    return best;
}

static void simulate(learn_run *run, lane *l, int32_t number, int32_t e)
{
    const state *s = run->state;
    const place_units *u = run->units;
    for (int32_t t = 0; t < l->length[e]; t++)
        l->device_of[l->sequence[e][t]] = l->chosen[e][t];
    for (int32_t item = 0; item < u->n; item++) {
        int32_t device = allowed(s->items, u, run->p->n_devices, item, l->device_of[l->group[e][item]]);
        for (int32_t j = u->off[item]; j < u->off[item + 1]; j++)
            l->op_device[u->op[j]] = device;
    }
    learn_verdict v = learn_judge_try(&run->judge[number], l->op_device);
    run->length_ns[number * EPISODES + e] = v.makespan_ns;
    l->cost[e] = v.excess_bytes > 0 ? BAD_COST : sqrt((double)v.makespan_ns / (double)run->start_ns);
}

static void play(learn_run *run, int32_t number, bool greedy)
{
    state *s = run->state;
    lane *l = &s->lanes[number];
    int32_t episodes = greedy ? 1 : EPISODES;
    draw_groups(run, l, number, episodes, greedy);
    describe_groups(s, l, episodes);
    draw_devices(run, l, number, episodes, greedy);
    for (int32_t e = 0; e < episodes && !util_stopped(&run->stop); e++)
        simulate(run, l, number, e);
}

/* ---- learning ---- */

static void appraise(learn_run *run)
{
    state *s = run->state;
    double mean = 0, square = 0;
    for (int i = 0; i < LANES * EPISODES; i++)
        mean += s->lanes[i / EPISODES].cost[i % EPISODES] / (LANES * EPISODES);
    s->baseline = s->has_baseline ? 0.9 * s->baseline + 0.1 * mean : mean;
    for (int i = 0; i < LANES * EPISODES; i++) {
        lane *l = &s->lanes[i / EPISODES];
        l->advantage[i % EPISODES] = s->baseline - l->cost[i % EPISODES];
        square += l->advantage[i % EPISODES] * l->advantage[i % EPISODES] / (LANES * EPISODES);
    }
    s->square = s->has_baseline ? 0.9 * s->square + 0.1 * square : square;
    s->has_baseline = true;
    for (int i = 0; i < LANES * EPISODES; i++)
        s->lanes[i / EPISODES].advantage[i % EPISODES] /= sqrt(s->square) + 1e-9;
}

/* All episodes drew from the same probabilities: their derivatives add up before the one way back. */
static void teach_grouper(learn_run *run, lane *l, double entropy, learn_real *grad)
{
    const state *s = run->state;
    int32_t n = s->items->n, G = s->net.n_groups;
    double share = 1.0 / ((double)LANES * EPISODES * UTIL_MAX(n, 1));
    memset(l->dlogits, 0, (size_t)n * (size_t)G * sizeof *l->dlogits);
    for (int32_t item = 0; item < n; item++) {
        size_t at = (size_t)item * (size_t)G;
        double sum = 0;
        for (int e = 0; e < EPISODES; e++) {
            sum += l->advantage[e];
            l->dlogits[at + (size_t)l->group[e][item]] -= (learn_real)(share * l->advantage[e]);
        }
        /* No choice (-1): what is left of the derivative is advantage * probability, and the bonus. */
        learn_choice_backward(s->groups, l->probability + at, -1, share * sum, share * EPISODES * entropy,
                              l->dlogits + at);
    }
    learn_pair_backward(&s->net.grouper, run->params.value, grad, n, s->items->features, l->hidden, l->dlogits,
                        l->dhidden, NULL);
}

static void teach(learn_run *run, int32_t number, double entropy, learn_real *grad)
{
    state *s = run->state;
    lane *l = &s->lanes[number];
    int32_t K = run->p->n_devices;
    double share = 1.0 / ((double)LANES * EPISODES * UTIL_MAX(l->steps, 1));
    memset(l->work.dz, 0, (size_t)l->steps * EPISODES * (size_t)K * sizeof *l->work.dz);
    for (int32_t t = 0; t < l->steps; t++)
        for (int32_t e = 0; e < EPISODES; e++) {
            size_t at = ((size_t)t * EPISODES + (size_t)e) * (size_t)K;
            if (t < l->length[e])
                learn_choice_backward(K, l->work.z + at, l->chosen[e][t], share * l->advantage[e], share * entropy,
                                      l->work.dz + at);
        }
    hrl_net_backward(&s->net, run->params.value, EPISODES, l->steps, l->features, &l->work, grad);
    teach_grouper(run, l, entropy, grad);
}

const learn_method learn_hrl = {
    .placer = &place_hrl,
    .lanes = LANES,
    .width = EPISODES,
    .rate_first = 5e-3,
    .rate_last = 5e-4,
    .clip = 1.0,
    .entropy_first = 0.002,
    .entropy_last = 0.0001,
    .work = 2e5,
    .open = open_state,
    .close = close_state,
    .episode_work = episode_work,
    .play = play,
    .appraise = appraise,
    .teach = teach,
};
