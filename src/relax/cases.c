/* The relaxation of a whole problem, by cases.
 *
 * **Prices.** Every resource r, a device, a port or a channel, is busy for load(r) and has offset(r) of the makespan before and after it (view.c). So for any
 * prices that sum to 1 the makespan is at least the priced sum of load + offset, and that is a sum over operators and packets: the least of it over all
 * assignments is bounded by messages (messages.c), the best prices are found by cutting planes (prices.c), and the bound is evaluated in whole
 * numbers (evaluate.c).
 *
 * **Cases** (divide.c) are by where hubs are, and where tensors are read. The bound is the least over all of them. Best first: the case with the least bound is divided
 * next; one that reaches the goal is left alone. All cases below one are
 * tried side by side, whatever the number of threads. Loads of many requests have no cases, since each request may go its own way, unless all have one assignment. */
#include <math.h>
#include <stdlib.h>

#include "relax/divide.h"
#include "relax/messages.h"
#include "relax/relax.h"
#include "relax/relax_tuning.h"
#include "schedule/load.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct node {
    relax_said said;
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
    relax_divider divider;
    relax_said *part; /* working memory: the cases below one */
    node *node;
    int32_t n_nodes, first_new; /* the nodes that are solved now, */
    double begun;               /* and since when */
    util_stop choices;          /* the end of all, where `job` ends sooner */
    relax_least *least;         /* or NULL */
} tree;

/* ---- one case ---- */

/* Equal prices of all devices; where these are many, cutting planes take long to get from there to those of the load
 * bound. */
static void begin_at_loads(relax_state *s)
{
    const relax_view *v = s->v;
    int64_t weight[MOIRAI_MASK_DEVICES] = {0};
    double sum = 0;
    if (v->K > RELAX_CASES_MANY_DEVICES)
        schedule_bound_load(weight, v->p);
    for (int32_t k = 0; k < v->K; k++)
        sum += (double)weight[k];
    for (int32_t r = 0; r < v->n_resources; r++)
        s->price[r] = r >= v->K ? 0 : sum > 0 ? (double)weight[r] / sum : 1.0 / v->K;
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
    for (int32_t e = 0; e < v->p->n_edges && s->n_live > 0 && parent->from; e++)
        for (int32_t k = 0; k < v->K && s->live[e] != MOIRAI_NONE; k++) {
            s->from[(int64_t)s->live[e] * v->K + k] = (double)parent->from[(int64_t)e * v->K + k] / sum;
            s->to[(int64_t)s->live[e] * v->K + k] = (double)parent->to[(int64_t)e * v->K + k] / sum;
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
                             .least = t->least,
                             .stop = turn_of(t, x)};
    double value = 0;
    begin(s, parent);
    int rc = relax_find_prices(&value, s, &job);
    rc = rc ? rc : relax_leaf_write(&x->leaf, s, x->said.fixed, x->said.n, value);
    int64_t lower = 0;
    util_stop evaluation = util_stop_at_least(&t->job->stop, RELAX_CASES_MOMENT_S);
    if (!rc && !given_up(t))
        rc = relax_evaluate(&lower, t->v.p, &x->leaf, t->job->rate, &evaluation);
    if (!rc && parent && lower < parent->proven_ns) { /* no less here than there: fewer devices are left */
        relax_leaf_clear(&x->leaf);
        rc = relax_leaf_with(&x->leaf, parent, t->v.p, x->said.fixed, x->said.n);
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
    int rc = relax_case_open(&c, &t->v, x->said.fixed, x->said.n, t->job->rate, &t->job->stop);
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

/* All cases below this one; false: it is as good as it gets. */
static bool add_cases(tree *t, int32_t which)
{
    int32_t n = relax_divide(t->part, &t->divider, &t->node[which].said, t->node[which].lower_ns);
    t->first_new = t->n_nodes;
    for (int32_t i = 0; i < n; i++)
        t->node[t->n_nodes++] = (node){.said = t->part[i], .lower_ns = t->node[which].lower_ns, .parent = which};
    return n > 0;
}

static int divide(tree *t, int32_t which)
{
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
    t->node[0] = (node){.said.n = t->job->n_fixed, .parent = MOIRAI_NONE};
    for (int32_t i = 0; i < t->job->n_fixed; i++)
        t->node[0].said.fixed[i] = t->job->fixed[i];
    t->n_nodes = 1;
    t->begun = util_seconds();
    int rc = solve(t, 0);
    while (!rc && !util_stopped(&t->job->stop)) {
        int32_t which = least_open(t);
        if (t->node[which].lower_ns >= t->job->goal_ns || (t->job->rate && !t->job->one_copy) ||
            t->n_nodes + t->v.K > t->job->cases || !add_cases(t, which))
            break;
        rc = divide(t, which);
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
    int rc = relax_case_open(&c, &t->v, x->said.fixed, x->said.n, t->job->rate, &t->choices);
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
        relax_view_take_shifts(&t.v, job->first);
    if (!rc && (t.v.n_resources + t.v.K + 1 > RELAX_CASES_MOST_ROWS ||
                (int64_t)p->n_edges * t.v.K > RELAX_CASES_MOST_MESSAGES))
        rc = MOIRAI_ELIMIT;
    rc = rc ? rc : relax_divider_open(&t.divider, &t.v, !job->rate && !util_off(&job->stop, UTIL_METHOD_READERS));
    rc = rc || !job->rate ? rc : relax_least_new(&t.least, &t.v, NULL, 0, &cases.stop);
    t.node = rc ? NULL : util_alloc((size_t)(UTIL_MAX(job->cases, 1) + t.v.K + 1), sizeof *t.node);
    t.part = rc ? NULL : util_alloc((size_t)t.v.K + 1, sizeof *t.part);
    rc = rc ? rc : t.node && t.part ? search(&t) : MOIRAI_EFAIL;
    rc = rc ? rc : report(out, &t);
    for (int32_t i = 0; i < t.n_nodes; i++)
        clear_node(&t.node[i]);
    free(t.node);
    free(t.part);
    relax_divider_close(&t.divider);
    relax_least_free(t.least);
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
    for (int32_t i = 0; i < a->n_choices; i++) {
        free(a->choice[i].device);
        free(a->choice[i].start_ns);
    }
    *a = (relax_answer){0};
}
