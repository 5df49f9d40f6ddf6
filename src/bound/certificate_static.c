/* The parts of a certificate that are static programmes. */
#include "bound/certificate.h"

static void write_duals(util_writer *w, const int64_t *dual, int64_t n)
{
    util_writer_pair_open(w, "duals", '[');
    for (int64_t i = 0; i < n; i++)
        if (dual[i]) {
            util_writer_int(w, i);
            util_writer_int(w, dual[i]);
        }
    util_writer_close(w, ']');
}

static void write_loads(util_writer *w, const pair_load *load, int32_t n)
{
    util_writer_pair_open(w, "loads", '[');
    for (int32_t i = 0; i < n; i++) {
        util_writer_int(w, load[i].kind);
        util_writer_int(w, load[i].which);
        util_writer_int(w, load[i].head_ns);
        util_writer_int(w, load[i].tail_ns);
    }
    util_writer_close(w, ']');
}

/* Loads as they are, multipliers as pairs of place and value. */
void bound_certificate_static(util_writer *w, const pair_static_proof *s)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_int(w, "upper_ns", s->upper_ns);
    write_loads(w, s->load, s->n_loads);
    write_duals(w, s->dual, s->n_duals);
    util_writer_close(w, '}');
}
