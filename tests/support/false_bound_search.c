/* Plans against the verifier's search (prove/prove_search.c): a node that has a plan in it is never closed. */
#include "support/false_bound_parts.h"

#include <stdlib.h>

#include "prove/prove_search.h"
#include "support/proving.h"
#include "util/util.h"

/* The number of a transfer of the plan in the verifier's search; -1: none. */
static int32_t transfer_number(const prove_search *s, const moirai_problem *p, const moirai_transfer *t)
{
    for (int32_t e = 0; e < s->b->n_edges; e++) {
        const prove_edge *f = &s->b->edge[e];
        int32_t from = p->topo[s->b->op[f->from]], to = p->topo[s->b->op[f->to]];
        if (p->op_out[p->op_out_off[from] + f->output] == t->tensor && (!s->b->p->by_edge || to == t->reader))
            return prove_search_transfer(s, e, t->to);
    }
    return -1;
}

/* Two tasks of the plan that certainly hold one machine, drawn at random, in the order that they have there. */
static void add_arc(prove_search *s, prove_known *k, const moirai_problem *p, const moirai_plan *plan, util_rng *rng)
{
    int32_t number[2];
    int64_t start[2], n = s->n + plan->n_transfers;
    for (int i = 0; i < 2; i++) {
        int32_t at = (int32_t)util_rng_below(rng, (uint32_t)n);
        bool op = at < s->n;
        number[i] = op ? at : transfer_number(s, p, &plan->transfer[at - s->n]);
        start[i] = op ? plan->op_start_ns[p->topo[s->b->op[at]]] : plan->transfer[at - s->n].start_ns;
    }
    if (number[0] < 0 || number[1] < 0 || !prove_search_apart(s, k, number[0], number[1]))
        return;
    bool turn = start[1] < start[0];
    s->arc[k->n_arcs][0] = number[turn];
    s->arc[k->n_arcs++][1] = number[!turn];
}

bool false_bound_plan_survives(const moirai_problem *p, const moirai_plan *plan, uint64_t seed, char *why)
{
    prove_problem q;
    prove_block b = {0};
    int32_t *op = calloc((size_t)p->n_ops, sizeof *op);
    util_rng rng;
    util_rng_seed(&rng, seed);
    for (int32_t i = 0; op && i < p->n_ops; i++)
        op[i] = i;
    bool good = proving_problem(&q, p) && op && !prove_block_new(&b, &q, p->n_ops, op, false, false);
    for (uint32_t round = 0; round < 6 && good; round++) {
        prove_search s;
        prove_known k = {0};
        good = !prove_search_new(&s, &b, 0, 0, plan->makespan_ns + (round == 5)) && prove_known_new(&k, &s, NULL);
        for (int32_t i = 0; i < s.n && good; i++)
            if (util_rng_below(&rng, 5) < round)
                k.may[i] = UINT64_C(1) << plan->op_device[p->topo[b.op[i]]];
        bool closed = good && prove_search_closes(&s, &k);
        for (int i = 0; i < 12 && good && !closed; i++) {
            add_arc(&s, &k, p, plan, &rng);
            closed = prove_search_closes(&s, &k);
        }
        if (closed)
            good = false_bound_fail(why, "search: a plan of %lld ns is closed, round %u", (long long)plan->makespan_ns,
                                    round);
        free(k.may);
        util_release(&s.memory);
    }
    prove_block_free(&b);
    prove_problem_free(&q);
    free(op);
    return good;
}
