/* The certificate: everything that a verifier needs to prove the chain's bound again (docs/certificate.md).
 *
 * Cuts and classes say how the problem was taken apart; each class lists what is proven of its pairs of devices
 * (certificate_class.c). Where work floats, its operators are listed and everything else is about the problem without
 * them, in its numbers. */
#include "bound/certificate.h"

#include "util/util.h"

static void write_classes(util_writer *w, const pair_chain *c, bool whole)
{
    relax_certificate_cuts(w, c->s->n_cuts, c->s->cut, c->s->block_class);
    for (int32_t i = 0; !w->failed && i < c->s->n_classes; i++) {
        util_writer_break(w);
        util_writer_open(w, '{');
        bound_certificate_keys(w, c, i, whole);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_floating(util_writer *w, const decompose_spine *spine)
{
    util_writer_break(w);
    util_writer_key(w, "floating");
    util_writer_open(w, '[');
    for (int32_t i = 0; i < spine->whole->n_ops; i++)
        if (spine->floating[i])
            util_writer_int(w, i);
    util_writer_close(w, ']');
}

/* The claims come last: what the bytes prove is known only then. */
static void write_all(util_writer *w, bound_certificate *from)
{
    const pair_chain *c = from->c;
    int64_t certified = from->chain_ns, by_memory = 0;
    if (certified <= 0)
        certified = pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL);
    relax_certificate_names(w, from->spine ? from->spine->whole : c->p);
    if (from->spine)
        write_floating(w, from->spine);
    write_classes(w, c, from->memory != NULL);
    if (from->memory)
        by_memory = bound_certificate_bytes(w, c, from->memory);
    if (from->windows)
        bound_certificate_windows(w, from->windows);
    util_writer_break(w);
    util_writer_pair_int(w, "lower_bound_ns", from->lower_bound_ns);
    certified = UTIL_MAX(certified, from->windows ? from->windows->lower_ns : 0);
    from->certified_ns = UTIL_MIN(UTIL_MAX(certified, by_memory), from->lower_bound_ns);
    util_writer_pair_int(w, "certified_bound_ns", from->certified_ns);
    util_writer_close(w, '}');
}

int bound_certificate_write(bound_certificate *from, const char *path)
{
    util_writer w;
    write_all(&w, from);
    return util_writer_save(&w, path);
}

char *bound_certificate_text(bound_certificate *from, size_t *length)
{
    util_writer w;
    write_all(&w, from);
    return util_writer_take(&w, length);
}
