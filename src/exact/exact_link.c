/* Links: distances between operators that are known from elsewhere.
 *
 * A link (u, v, L) says that v starts on l no sooner than L[k, l] after the finish of u on k, in every plan. The
 * interval between u and v has been searched before, say, and the problem at hand contains it. Edges and machines say
 * the same of what lies between u and v only after most of its devices are fixed; a link says it at once, for the
 * devices that u and v have left:
 *
 *     head(v, l) >= min over k in D(u) of head(u, k) + time(u, k) + L[k, l],
 *
 * and tails the same from the other end. So the search of a long interval begins where those of its parts have ended,
 * and is about what goes on between them. A link is a fact about plans, not a rule that takes plans away: symmetry and
 * the meaning of a node stay as they are (docs/theory.md, Lemma 38).
 *
 * Complexity: O(K^2) for each link and pass. */
#include "exact/exact_search.h"

#include <stdlib.h>

/* Numbers of links by one of their ends. */
static void list_by(const exact_link *link, int32_t n_links, bool by_to, int32_t *off, int32_t *list, int32_t n)
{
    for (int32_t a = 0; a < n_links; a++) {
        int32_t op = by_to ? link[a].to : link[a].from;
        if (op != MOIRAI_NONE)
            off[op + 1]++;
    }
    for (int32_t i = 0; i < n; i++)
        off[i + 1] += off[i];
    for (int32_t a = n_links - 1; a >= 0; a--) {
        int32_t op = by_to ? link[a].to : link[a].from;
        if (op != MOIRAI_NONE)
            list[--off[op + 1]] = a;
    }
    for (int32_t i = 0; i < n; i++) /* every end has moved to its beginning */
        off[i] = off[i + 1];
}

int exact_links_new(exact_search *s)
{
    size_t n = (size_t)s->n, links = (size_t)s->o->n_links;
    if (s->mode.plain || links == 0)
        return 0;
    s->link.in_off = util_alloc(n + 2, sizeof(int32_t));
    s->link.out_off = util_alloc(n + 2, sizeof(int32_t));
    s->link.in = util_alloc(links, sizeof(int32_t));
    s->link.out = util_alloc(links, sizeof(int32_t));
    if (!s->link.in_off || !s->link.out_off || !s->link.in || !s->link.out)
        return MOIRAI_EFAIL;
    list_by(s->o->link, s->o->n_links, true, s->link.in_off, s->link.in, s->n);
    list_by(s->o->link, s->o->n_links, false, s->link.out_off, s->link.out, s->n);
    return 0;
}

void exact_links_free(exact_search *s)
{
    free(s->link.in_off);
    free(s->link.out_off);
    free(s->link.in);
    free(s->link.out);
}

/* The start of the link's end on l, by the heads of its beginning. */
static int64_t start_after(const exact_search *s, const exact_state *st, const exact_link *x, int32_t l)
{
    int64_t least = EXACT_NONE_NS;
    if (x->from == MOIRAI_NONE)
        return x->least_ns[l];
    for (uint64_t m = st->dom[x->from]; m != 0; m &= m - 1) {
        int32_t k = EXACT_FIRST(m);
        int64_t at = st->head[(int64_t)x->from * s->K + k] + moirai_op_ns(s->p, x->from, k);
        least = UTIL_MIN(least, at + x->least_ns[k * s->K + l]);
    }
    return least;
}

/* What follows the finish of the link's beginning on k, by the tails of its end. */
static int64_t rest_before(const exact_search *s, const exact_state *st, const exact_link *x, int32_t k)
{
    int64_t least = EXACT_NONE_NS;
    if (x->to == MOIRAI_NONE)
        return x->least_ns[k * s->K];
    for (uint64_t m = st->dom[x->to]; m != 0; m &= m - 1) {
        int32_t l = EXACT_FIRST(m);
        int64_t rest = st->tail[(int64_t)x->to * s->K + l] + moirai_op_ns(s->p, x->to, l);
        least = UTIL_MIN(least, rest + x->least_ns[k * s->K + l]);
    }
    return least;
}

static void raise(int64_t *value, int64_t to, bool *changed)
{
    if (to > *value) {
        *value = to;
        *changed = true;
    }
}

void exact_link_heads(exact_search *s, exact_state *st, int32_t i, bool *changed)
{
    for (int32_t a = s->link.in_off[i]; a < s->link.in_off[i + 1]; a++)
        for (uint64_t m = st->dom[i]; m != 0; m &= m - 1) {
            int32_t l = EXACT_FIRST(m);
            raise(&st->head[(int64_t)i * s->K + l], start_after(s, st, &s->o->link[s->link.in[a]], l), changed);
        }
}

void exact_link_tails(exact_search *s, exact_state *st, int32_t j, bool *changed)
{
    for (int32_t a = s->link.out_off[j]; a < s->link.out_off[j + 1]; a++)
        for (uint64_t m = st->dom[j]; m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            raise(&st->tail[(int64_t)j * s->K + k], rest_before(s, st, &s->o->link[s->link.out[a]], k), changed);
        }
}
