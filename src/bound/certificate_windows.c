/* The part of a certificate about windows (docs/certificate.md, "Windows"): intervals with the proofs of their pairs, and
 * the pool within what follows from them. */
#include <stdlib.h>

#include "bound/certificate.h"
#include "util/util.h"

/* Edges of the whole by producer, output and reader, all in topological order; arcs of intervals follow as they are. */
static int32_t *number_edges(const moirai_problem *p, size_t arcs)
{
    int32_t *number = util_alloc((size_t)p->n_edges + arcs, sizeof *number), next = 0;
    for (int32_t z = 0; number && z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++) {
            int32_t t = p->op_out[o], begin = p->tensor_edge_off[t], end = p->tensor_edge_off[t + 1];
            for (int32_t e = begin; e < end; e++) {
                number[e] = next;
                for (int32_t f = begin; f < end; f++)
                    number[e] += p->topo_rank[p->edge_reader[f]] < p->topo_rank[p->edge_reader[e]];
            }
            next += end - begin;
        }
    }
    for (size_t i = 0; number && i < arcs; i++)
        number[(size_t)p->n_edges + i] = p->n_edges + (int32_t)i;
    return number;
}

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

static void write_numbers(util_writer *w, const char *key, const int64_t *value, int32_t n)
{
    util_writer_pair_open(w, key, '[');
    for (int32_t i = 0; i < n; i++)
        util_writer_int(w, value[i]);
    util_writer_close(w, ']');
}

/* edge: the format's numbers of edges. */
static void write_pool(util_writer *w, const pair_pool_proof *p, int32_t devices, const int32_t *edge)
{
    util_writer_break(w);
    util_writer_pair_open(w, "pool", '{');
    util_writer_pair_int(w, "length_ns", p->length_ns);
    util_writer_pair_int(w, "step_ns", p->step_ns);
    util_writer_pair_int(w, "bucket_ns", p->bucket_ns);
    write_numbers(w, "weights", p->weight, devices);
    write_numbers(w, "prices", p->price, p->n_buckets);
    util_writer_pair_open(w, "flows", '[');
    for (int32_t i = 0; i < p->n_flows; i++) {
        util_writer_int(w, edge[p->flow[i].edge]);
        util_writer_int(w, p->flow[i].step);
        util_writer_int(w, p->flow[i].value);
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

int bound_certificate_windows(util_writer *w, const bound_window_proof *x)
{
    int32_t *number = number_edges(x->p, x->n);
    int rc = number ? 0 : MOIRAI_EFAIL;
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
        write_pool(w, &x->pool, x->p->n_devices, number);
    util_writer_close(w, '}');
    free(number);
    return rc;
}
