/* The parts of a certificate that are static programmes: loads as they are, multipliers as pairs of place and value,
 * and the cases that such a proof is divided into. */
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

static void write_groups(util_writer *w, const pair_static_tree *s)
{
    util_writer_pair_open(w, "groups", '[');
    for (int32_t g = 0; g < s->n_groups; g++) {
        util_writer_open(w, '[');
        for (int32_t i = s->group_off[g]; i < s->group_off[g + 1]; i++)
            util_writer_int(w, s->group_op[i]);
        util_writer_close(w, ']');
    }
    util_writer_close(w, ']');
}

static void write_case(util_writer *w, const pair_static_tree *s, int32_t at);

/* Who receives the tensor next, or returns results before, each with its case, and the case in which nobody does. */
static void write_next(util_writer *w, const pair_static_tree *s, const pair_static_case *c)
{
    int32_t last = c->child + c->n_children - 1;
    util_writer_pair_open(w, c->division == PAIR_BY_RETURN ? "returns" : "receivers", '[');
    for (int32_t i = c->child; i < last; i++)
        util_writer_int(w, s->cases[i].which);
    util_writer_close(w, ']');
    util_writer_pair_open(w, "next", '[');
    for (int32_t i = c->child; i < last; i++)
        write_case(w, s, i);
    util_writer_close(w, ']');
    util_writer_key(w, "nobody");
    write_case(w, s, last);
}

/* A case that is divided, with its parts, or its multipliers; nothing where it has no plans. */
static void write_case(util_writer *w, const pair_static_tree *s, int32_t at)
{
    const pair_static_case *c = &s->cases[at];
    util_writer_break(w);
    util_writer_open(w, '{');
    if (c->division == PAIR_BY_NUMBER) {
        util_writer_pair_int(w, "group", c->group);
        util_writer_pair_int(w, "device", c->device);
        util_writer_pair_int(w, "most", c->most);
        util_writer_key(w, "low");
        write_case(w, s, c->child);
        util_writer_key(w, "high");
        write_case(w, s, c->child + 1);
    } else if (c->division == PAIR_BY_DEVICE) {
        util_writer_pair_int(w, "op", c->group);
        util_writer_pair_int(w, "device", c->device);
        util_writer_key(w, "there");
        write_case(w, s, c->child);
        util_writer_key(w, "elsewhere");
        write_case(w, s, c->child + 1);
    } else if (c->division != PAIR_UNDIVIDED) {
        write_next(w, s, c);
    } else if (c->dual) {
        write_loads(w, c->load, c->n_loads);
        write_duals(w, c->dual, c->n_duals);
    }
    util_writer_close(w, '}');
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

void bound_certificate_cases(util_writer *w, const pair_static_tree *s, const decompose_block *b)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_int(w, "upper_ns", s->upper_ns);
    write_groups(w, s);
    if (s->sent != MOIRAI_NONE)
        util_writer_pair_int(w, "sent", s->sent - b->problem.op_out_off[b->entry]);
    if (s->return_ns > 0)
        util_writer_pair_int(w, "return_ns", s->return_ns);
    util_writer_key(w, "cases");
    write_case(w, s, 0);
    util_writer_close(w, '}');
}
