/* The part of a certificate about windows (docs/certificate.md, "Windows"): intervals with the proofs of their pairs. */
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

void bound_certificate_windows(util_writer *w, const bound_window_proof *x)
{
    util_writer_break(w);
    util_writer_pair_open(w, "windows", '{');
    util_writer_pair_open(w, "intervals", '[');
    for (size_t i = 0; i < x->n && !w->failed; i++) {
        const bound_proven_interval *v = &x->interval[i];
        util_writer_break(w);
        util_writer_open(w, '{');
        if (v->entry != MOIRAI_NONE)
            util_writer_pair_int(w, "entry", v->entry);
        if (v->exit != MOIRAI_NONE)
            util_writer_pair_int(w, "exit", v->exit);
        bound_certificate_keys(w, v->c, v->class_, false);
        write_between(w, v);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}
