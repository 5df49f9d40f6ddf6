/* The part of a certificate about windows (docs/certificate.md, "Windows"): intervals with the proofs of their pairs, and
 * the pool within what follows from them. */
#include <stdlib.h>

#include "bound/certificate.h"
#include "util/util.h"

/* What the windows are made of. The verifier may prove more of some pairs, and then would have other windows. */
static void write_between(util_writer *w, const bound_proven_interval *v)
{
    util_writer_pair_open(w, "ns", '[');
    for (int32_t i = 0; i < v->c->K * v->c->K; i++) {
        int32_t a = i / v->c->K, z = i % v->c->K;
        bool there = (v->entry != MOIRAI_NONE || !a) && (v->exit != MOIRAI_NONE || !z);
        util_writer_int(w, there ? pair_certified_ns(pair_chain_at(v->c, v->class_, a, z)) : 0);
    }
    util_writer_close(w, ']');
}

/* `edge`: the format's numbers of the problem's edges; arcs of intervals follow as they are. */
static void write_pool(util_writer *w, const pair_pool_proof *p, const moirai_problem *q, const int32_t *edge)
{
    util_writer_break(w);
    util_writer_pair_open(w, "pool", '{');
    util_writer_pair_int(w, "length_ns", p->length_ns);
    util_writer_pair_int(w, "step_ns", p->step_ns);
    util_writer_pair_int(w, "bucket_ns", p->bucket_ns);
    util_writer_pair_longs(w, "weights", p->weight, q->n_devices);
    util_writer_pair_longs(w, "prices", p->price, p->n_buckets);
    util_writer_pair_open(w, "flows", '[');
    for (int32_t i = 0; i < p->n_flows; i++) {
        util_writer_int(w, p->flow[i].edge < q->n_edges ? edge[p->flow[i].edge] : p->flow[i].edge);
        util_writer_int(w, p->flow[i].step);
        util_writer_int(w, p->flow[i].value);
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

int bound_certificate_windows(util_writer *w, const bound_window_proof *x)
{
    int32_t *number = util_alloc((size_t)x->p->n_edges, sizeof *number);
    int rc = number ? relax_number_edges(number, x->p) : MOIRAI_EFAIL;
    util_writer_break(w);
    util_writer_pair_open(w, "windows", '{');
    util_writer_pair_open(w, "intervals", '[');
    for (size_t i = 0; i < x->n && !rc; i++) {
        const bound_proven_interval *v = &x->interval[i];
        util_writer_break(w);
        util_writer_open(w, '{');
        if (v->entry != MOIRAI_NONE)
            util_writer_pair_int(w, "entry", v->entry);
        if (v->exit != MOIRAI_NONE)
            util_writer_pair_int(w, "exit", v->exit);
        rc = bound_certificate_keys(w, v->c, v->class_, false);
        write_between(w, v);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    if (!rc && x->pool.price)
        write_pool(w, &x->pool, x->p, number);
    util_writer_close(w, '}');
    free(number);
    return rc;
}
