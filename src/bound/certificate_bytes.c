/* The part of a certificate about bytes (docs/certificate.md, "Memory").
 *
 * At the prices on bytes that gave the best bound, every pair that was refined lists its cases: sending, branches,
 * arrivals and range of lengths, and prices in time. What the verifier will find is computed here in the same way, with
 * the certified lengths in place of the proven ones. */
#include <stdlib.h>

#include "bound/certificate.h"
#include "pair/priced/priced.h"
#include "util/util.h"

/* Writes the pair's cases if they tell more than its length does; *value: in units. */
static void write_pair(util_writer *w, const pair_chain *c, bytes_prices *m, int32_t index, int64_t *value)
{
    pair_priced *v = bytes_priced_at(m, index);
    const pair_state *x = pair_chain_get(c, index);
    const int64_t *price = bytes_prices_per_byte(m);
    int64_t lower = pair_certified_ns(x), least = INT64_MAX;
    int32_t K = c->K;
    *value = pricing_units(x->block.unit, lower) + pair_priced_cheapest_bytes(&x->block, price, NULL);
    for (int32_t i = 0; i < v->n_cases; i++)
        least = UTIL_MIN(least, pair_priced_of_case(v, &v->cases[i], price, lower));
    if (!v->n_cases || least <= *value)
        return;
    *value = least;
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_int(w, "class", index / (K * K));
    util_writer_pair_int(w, "entry", index / K % K);
    util_writer_pair_int(w, "exit", index % K);
    util_writer_pair_open(w, "leaves", '[');
    for (const pair_priced_case *y = v->cases; y < v->cases + v->n_cases; y++)
        bound_certificate_leaf(w, x, y->sending, y->n_branches, y->branch, &y->found.prices);
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

int64_t bound_certificate_bytes(util_writer *w, const pair_chain *c, bytes_prices *m)
{
    int32_t n = c->s->n_classes * c->K * c->K;
    int64_t *value = util_alloc((size_t)n, sizeof *value);
    w->failed |= !value;
    util_writer_break(w);
    util_writer_pair_open(w, "memory", '{');
    util_writer_pair_int(w, "unit", c->s->unit);
    util_writer_pair_longs(w, "byte_prices", bytes_prices_per_byte(m), c->K);
    util_writer_pair_open(w, "pairs", '[');
    for (int32_t i = 0; i < n && !w->failed; i++)
        if (c->pair[i])
            write_pair(w, c, m, i, &value[i]);
    util_writer_close(w, ']');
    util_writer_close(w, '}');
    int64_t proven_ns = w->failed ? 0 : bytes_proven_ns(m, value);
    free(value);
    return proven_ns;
}
