/* The relaxation of a whole problem, by cases: offsets (view.c), prices by cutting planes (prices.c) that messages
 * turn into a bound (messages.c), which is evaluated in whole numbers (evaluate.c).
 *
 * **Hubs.** A linear relaxation may have a hub, an operator on which much of all transfers hangs, half here and half
 * there, and then every neighbour is next to it for nothing. So hubs are cases: on which device is it? The bound is
 * the least over all cases. Best first: the case with the least bound is divided next, by the largest hub that is
 * still open in it; a case that reaches the goal is left alone. All devices of a hub are tried side by side, whatever
 * the number of threads. Loads of many requests have no such cases, since each request may have its hub elsewhere,
 * unless all have one assignment. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "relax/messages.h"
#include "relax/relax.h"
#include "relax/relax_tuning.h"
#include "schedule/load.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct node {
    int32_t n_fixed;
    relax_fixed fixed[RELAX_CASES_MOST_HUBS + RELAX_ENDS];
    int64_t lower_ns;
    relax_leaf leaf;
    relax_choice choice;
    bool divided; /* its children stand for it */
    bool skipped; /* the stop came first */
    int32_t parent;
} node;

typedef struct tree {
    const relax_task *job;
    relax_view v;
    int32_t n_hubs, hub[RELAX_CASES_MOST_HUBS];
    node *node;
    int32_t n_nodes, first_new; /* the nodes that are solved now, */
    double begun;               /* and since when */
    util_stop choices;          /* the end of all, where `job` ends sooner */
} tree;

/* ---- hubs ---- */

static double mean_transfer(const relax_view *v, int32_t packet)
{
    const int64_t *d = relax_transfers(v, packet);
    double sum = 0;
    for (int32_t at = 0; at < v->K * v->K; at++)
        sum += (double)d[at];
    return sum / fmax(v->K * (v->K - 1), 1);
}

static int find_hubs(tree *t)
{
    const relax_view *v = &t->v;
    double *part = util_alloc((size_t)v->n, sizeof *part), all = 0;
    if (!part)
        return MOIRAI_EFAIL;
    for (int32_t j = 0; j < v->n_packets; j++) {
        int32_t readers = v->packet_off[j + 1] - v->packet_off[j];
        double mean = mean_transfer(v, j), sent = mean * UTIL_MIN(readers, v->K - 1);
        all += sent;
        part[relax_producer(v, j)] += sent;
        for (int32_t e = v->packet_off[j]; e < v->packet_off[j + 1]; e++)
            part[v->p->edge_reader[e]] += mean;
    }
    while (t->n_hubs < RELAX_CASES_MOST_HUBS) {
        int32_t best = 0;
        for (int32_t i = 1; i < v->n; i++)
            if (part[i] > part[best])
                best = i;
        if (v->n == 0 || part[best] <= RELAX_CASES_HUB_SHARE * all)
            break;
        part[best] = 0;
        if (!relax_single(v->p->op_devices[best]))
            t->hub[t->n_hubs++] = best;
    }
    free(part);
    return 0;
}

/* The largest hub that is open in the case, or MOIRAI_NONE. */
static int32_t next_hub(const tree *t, const node *x)
{
    for (int32_t h = 0; h < t->n_hubs; h++) {
        bool open = true;
        for (int32_t i = 0; i < x->n_fixed; i++)
            open &= x->fixed[i].op != t->hub[h];
        if (open)
            return t->hub[h];
    }
    return MOIRAI_NONE;
}

/* ---- one case ---- */

/* Equal prices of all devices; where these are many, cutting planes take long to get from there to those of the load
 * bound. */
static void begin_at_loads(relax_state *s)
{
    const relax_view *v = s->v;
    int64_t weight[MOIRAI_MASK_DEVICES] = {0}, sum = 0;
    if (v->K > RELAX_CASES_MANY_DEVICES)
        schedule_bound_load(weight, v->p);
    for (int32_t k = 0; k < v->K; k++)
        sum += weight[k];
    for (int32_t k = 0; k < v->K; k++)
        s->price[k] = sum > 0 ? (double)weight[k] / (double)sum : 1.0 / v->K;
}

/* Prices and messages to begin with: the parent's, if there is one. */
static void begin(relax_state *s, const relax_leaf *parent)
{
    const relax_view *v = s->v;
    double sum = 0;
    for (int32_t r = 0; r < v->n_resources && parent; r++)
        sum += (double)parent->price[r];
    if (!(sum > 0)) {
        begin_at_loads(s);
        return;
    }
    for (int32_t r = 0; r < v->n_resources; r++)
        s->price[r] = (double)parent->price[r] / sum;
    for (int32_t k = 0; k < v->K && parent->byte_price; k++)
        s->byte_price[k] = (double)parent->byte_price[k] / sum;
    for (size_t at = 0; at < s->n_messages && parent->from; at++) {
        s->from[at] = (double)parent->from[at] / sum;
        s->to[at] = (double)parent->to[at] / sum;
    }
}

static int choose(node *x, const tree *t, const relax_state *s)
{
    x->choice.device = util_alloc((size_t)t->v.n, sizeof *x->choice.device);
    if (!x->choice.device)
        return MOIRAI_EFAIL;
    relax_decode(x->choice.device, s);
    return relax_balance(&x->choice.load_ns, x->choice.device, s, x->lower_ns, &t->job->stop);
}

/* The cases of a hub count only together: each has its part of the time that is left, as they come to their turns. */
static util_stop turn_of(const tree *t, const node *x)
{
    util_stop stop = t->job->stop;
    int32_t threads = UTIL_MAX(t->job->threads, 1), n = t->n_nodes - t->first_new,
            which = (int32_t)(x - t->node) - t->first_new;
    double turns = (n + threads - 1) / threads, turn = which / threads;
    if (n > 1 && stop.deadline > t->begun)
        stop.deadline = t->begun + (stop.deadline - t->begun) * (turn + RELAX_CASES_PRICES_PART) / turns;
    return stop;
}

/* Whether somebody waits for the answer who would wait too long for this evaluation. */
static bool given_up(const tree *t)
{
    return moirai_interrupt_raised(t->job->stop.interrupt) && (int64_t)t->v.n * t->v.K > RELAX_CASES_MOMENT_CELLS;
}

static int solve_with(node *x, const tree *t, relax_state *s, const relax_leaf *parent)
{
    relax_prices_task job = {.goal_ns = (double)t->job->goal_ns * 1.001,
                             .rounds = t->job->rounds,
                             .bytes = t->v.bytes_bind,
                             .exactly = t->job->exactly,
                             .stop = turn_of(t, x)};
    double value = 0;
    begin(s, parent);
    int rc = relax_find_prices(&value, s, &job);
    rc = rc ? rc : relax_leaf_write(&x->leaf, s, x->fixed, x->n_fixed, value);
    int64_t lower = 0;
    util_stop evaluation = util_stop_at_least(&t->job->stop, RELAX_CASES_MOMENT_S);
    if (!rc && !given_up(t))
        rc = relax_evaluate(&lower, t->v.p, &x->leaf, t->job->rate, &evaluation);
    if (!rc && parent && lower < parent->proven_ns) { /* no less here than there: fewer devices are left */
        relax_leaf_clear(&x->leaf);
        rc = relax_leaf_with(&x->leaf, parent, t->v.p, x->fixed, x->n_fixed);
        rc = rc ? rc : relax_evaluate(&lower, t->v.p, &x->leaf, t->job->rate, &evaluation);
    }
    x->lower_ns = UTIL_MAX(x->lower_ns, lower);
    x->leaf.proven_ns = lower;
    return !rc && t->job->plans ? choose(x, t, s) : rc;
}

static int solve(void *data, int32_t which)
{
    const tree *t = data;
    node *x = &t->node[t->first_new + which];
    relax_case c;
    relax_state s = {0};
    x->skipped = which > 0 && util_stopped(&t->job->stop);
    if (x->skipped)
        return 0;
    int rc = relax_case_open(&c, &t->v, x->fixed, x->n_fixed, t->job->rate, &t->job->stop);
    rc = rc ? rc : relax_state_open(&s, &t->v, &c);
    rc = rc ? rc : solve_with(x, t, &s, x->parent == MOIRAI_NONE ? t->job->first : &t->node[x->parent].leaf);
    relax_state_close(&s);
    relax_case_close(&c);
    return rc;
}

/* ---- all cases ---- */

static int32_t least_open(const tree *t)
{
    int32_t best = MOIRAI_NONE;
    for (int32_t i = 0; i < t->n_nodes; i++)
        if (!t->node[i].divided && (best == MOIRAI_NONE || t->node[i].lower_ns < t->node[best].lower_ns))
            best = i;
    return best;
}

static void clear_node(node *x)
{
    relax_leaf_clear(&x->leaf);
    free(x->choice.device);
}

/* The case by the devices of a hub. */
static int divide(tree *t, int32_t which, int32_t hub)
{
    t->first_new = t->n_nodes;
    for (uint64_t left = t->v.p->op_devices[hub]; left; left &= left - 1) {
        node *y = &t->node[t->n_nodes++];
        *y = (node){.n_fixed = t->node[which].n_fixed + 1, .lower_ns = t->node[which].lower_ns, .parent = which};
        memcpy(y->fixed, t->node[which].fixed, sizeof y->fixed);
        y->fixed[y->n_fixed - 1] = (relax_fixed){hub, __builtin_ctzll(left)};
    }
    t->node[which].divided = true;
    t->begun = util_seconds();
    int rc = util_pool_run(solve, t, t->n_nodes - t->first_new, t->job->threads);
    for (int32_t i = t->first_new; i < t->n_nodes; i++)
        t->node[which].divided &= !t->node[i].skipped;
    if (rc || t->node[which].divided)
        return rc;
    for (int32_t i = t->first_new; i < t->n_nodes; i++) /* not all cases were looked at: none counts */
        clear_node(&t->node[i]);
    t->n_nodes = t->first_new;
    return 0;
}

static int search(tree *t)
{
    t->node[0] = (node){.n_fixed = t->job->n_fixed, .parent = MOIRAI_NONE};
    if (t->job->n_fixed > 0)
        memcpy(t->node[0].fixed, t->job->fixed, sizeof *t->job->fixed * (size_t)t->job->n_fixed);
    t->n_nodes = 1;
    t->begun = util_seconds();
    int rc = solve(t, 0);
    while (!rc && !util_stopped(&t->job->stop)) {
        int32_t which = least_open(t), hub = next_hub(t, &t->node[which]);
        if (t->node[which].lower_ns >= t->job->goal_ns || hub == MOIRAI_NONE || (t->job->rate && !t->job->one_copy) ||
            t->n_nodes + t->v.K > t->job->cases)
            break;
        rc = divide(t, which, hub);
    }
    return rc;
}

/* Leaves as cases were divided: those below one node are neighbours. */
static void list_leaves(relax_proof *proof, tree *t, int32_t which)
{
    if (!t->node[which].divided) {
        proof->leaf[proof->n_leaves++] = t->node[which].leaf;
        t->node[which].leaf = (relax_leaf){0};
        return;
    }
    for (int32_t i = which + 1; i < t->n_nodes; i++)
        if (t->node[i].parent == which)
            list_leaves(proof, t, i);
}

/* What single moves have balanced, annealed. */
static int anneal_choice(node *x, const tree *t)
{
    relax_case c;
    if (util_stopped(&t->choices))
        return 0;
    int64_t steps = UTIL_MIN((int64_t)RELAX_CASES_STEPS * t->v.n, RELAX_CASES_MOST_STEPS);
    int rc = relax_case_open(&c, &t->v, x->fixed, x->n_fixed, t->job->rate, &t->choices);
    rc = rc ? rc
            : relax_balance_anneal(&x->choice.load_ns, x->choice.device, &t->v, &c, x->lower_ns, steps, &t->choices);
    relax_case_close(&c);
    return rc;
}

/* The choices of least load, one after the other; of the ends of a block the first alone is taken. */
static int list_choices(relax_answer *out, tree *t)
{
    int32_t most = t->job->n_fixed > 0 ? 1 : RELAX_CHOICES;
    int rc = 0;
    while (out->n_choices < most && !rc) {
        int32_t best = MOIRAI_NONE;
        for (int32_t i = 0; i < t->n_nodes; i++)
            if (t->node[i].choice.device &&
                (best == MOIRAI_NONE || t->node[i].choice.load_ns < t->node[best].choice.load_ns))
                best = i;
        if (best == MOIRAI_NONE)
            break;
        rc = anneal_choice(&t->node[best], t);
        out->choice[out->n_choices++] = t->node[best].choice;
        t->node[best].choice = (relax_choice){0};
    }
    return rc;
}

static int report(relax_answer *out, tree *t)
{
    relax_proof *proof = &out->proof;
    proof->leaf = util_alloc((size_t)t->n_nodes, sizeof *proof->leaf);
    if (!proof->leaf)
        return MOIRAI_EFAIL;
    out->lower_ns = t->node[least_open(t)].lower_ns;
    list_leaves(proof, t, 0);
    proof->rate = t->job->rate;
    proof->proven_ns = INT64_MAX;
    for (int32_t i = 0; i < proof->n_leaves; i++)
        proof->proven_ns = UTIL_MIN(proof->proven_ns, proof->leaf[i].proven_ns);
    return list_choices(out, t);
}

int relax_solve(relax_answer *out, const moirai_problem *p, const relax_task *job)
{
    relax_task cases = *job;
    tree t = {.job = &cases, .choices = job->stop};
    *out = (relax_answer){0};
    if (p->n_devices > MOIRAI_MASK_DEVICES)
        return MOIRAI_ELIMIT;
    if (job->plans)
        cases.stop = util_stop_part(&job->stop, RELAX_CASES_CASES_PART);
    if (p->n_ops == 0)
        return 0;
    int rc = relax_view_open(&t.v, p, job->send_percent ? job->send_percent : 100);
    if (!rc && job->first)
        relax_view_take_rows(&t.v, &job->first->rows);
    if (!rc && (t.v.n_resources + t.v.K + 1 > RELAX_CASES_MOST_ROWS ||
                (int64_t)p->n_edges * t.v.K > RELAX_CASES_MOST_MESSAGES))
        rc = MOIRAI_ELIMIT;
    rc = rc ? rc : find_hubs(&t);
    t.node = rc ? NULL : util_alloc((size_t)(UTIL_MAX(job->cases, 1) + t.v.K), sizeof *t.node);
    rc = rc ? rc : t.node ? search(&t) : MOIRAI_EFAIL;
    rc = rc ? rc : report(out, &t);
    for (int32_t i = 0; i < t.n_nodes; i++)
        clear_node(&t.node[i]);
    free(t.node);
    relax_view_close(&t.v);
    return rc;
}

static void clear_proof(relax_proof *proof)
{
    for (int32_t i = 0; i < proof->n_leaves; i++)
        relax_leaf_clear(&proof->leaf[i]);
    free(proof->leaf);
}

void relax_answer_clear(relax_answer *a)
{
    clear_proof(&a->proof);
    for (int32_t i = 0; i < a->row.n_pairs; i++)
        clear_proof(&a->row.pair[i].proof);
    free(a->row.pair);
    decompose_cuts_free(a->row.cuts);
    for (int32_t i = 0; i < a->n_choices; i++)
        free(a->choice[i].device);
    *a = (relax_answer){0};
}
