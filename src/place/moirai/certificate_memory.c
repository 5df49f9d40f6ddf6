/* The part of a certificate about bytes (docs/certificate.md, "Memory").
 *
 * At the prices on bytes that gave the best bound, every pair that was refined lists its cases: sending, counts,
 * arrivals and range of lengths, and prices in time. What the verifier will find is computed here in the same way, with
 * the certified lengths in place of the proven ones. */
#include <stdlib.h>

#include "place/moirai/certificate.h"
#include "place/moirai/value.h"
#include "util/util.h"

/* Writes the pair's cases if they tell more than its length does; *value: in units. */
static void write_pair(moirai_writer *w, const moirai_chain *c, moirai_memory_prices *m, int32_t index, int64_t *value)
{
    moirai_value *v = moirai_memory_value(m, index);
    const moirai_pair *x = &c->pair[index];
    const int64_t *price = moirai_memory_byte_prices(m);
    int64_t lower = moirai_pair_certified_ns(x), least = INT64_MAX;
    int32_t K = c->K;
    *value = lower * MOIRAI_PRICE_UNIT + moirai_value_cheapest_bytes(&x->block, price, NULL);
    for (int32_t i = 0; i < v->n_cases; i++)
        least = MOIRAI_MIN(least, moirai_value_of_case(v, &v->cases[i], price, lower));
    if (!v->n_cases || least <= *value)
        return;
    *value = least;
    moirai_writer_break(w);
    moirai_writer_open(w, '{');
    moirai_writer_pair_int(w, "class", index / (K * K));
    moirai_writer_pair_int(w, "entry", index / K % K);
    moirai_writer_pair_int(w, "exit", index % K);
    moirai_writer_pair_open(w, "leaves", '[');
    for (const moirai_value_case *y = v->cases; y < v->cases + v->n_cases; y++)
        moirai_certificate_leaf(w, x, y->sending, y->n_counts, y->count, &y->prices);
    moirai_writer_close(w, ']');
    moirai_writer_close(w, '}');
}

int moirai_certificate_memory(moirai_writer *w, const moirai_chain *c, moirai_memory_prices *m, int64_t *bound_ns)
{
    int32_t n = c->s->n_classes * c->K * c->K;
    const int64_t *price = moirai_memory_byte_prices(m);
    int64_t *value = moirai_alloc((size_t)n, sizeof *value);
    int result = value ? MOIRAI_OK : MOIRAI_EFAIL;
    moirai_writer_break(w);
    moirai_writer_pair_open(w, "memory", '{');
    moirai_writer_pair_int(w, "unit", MOIRAI_PRICE_UNIT);
    moirai_writer_pair_open(w, "byte_prices", '[');
    for (int32_t k = 0; k < c->K; k++)
        moirai_writer_int(w, price[k]);
    moirai_writer_close(w, ']');
    moirai_writer_pair_open(w, "pairs", '[');
    for (int32_t i = 0; i < n && !result; i++)
        if (c->pair[i].open)
            write_pair(w, c, m, i, &value[i]);
    moirai_writer_close(w, ']');
    moirai_writer_close(w, '}');
    *bound_ns = result ? 0 : moirai_memory_proven_ns(m, value);
    free(value);
    return result;
}
