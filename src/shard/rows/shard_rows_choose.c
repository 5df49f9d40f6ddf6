/* Rows among the candidates.
 *
 * A strip of rows on its own hands whole images in and out; together with its neighbours only rows beside a cut move. So
 * they are judged together: all of them in the same shares, which are those that balance devices for all their work, on
 * the whole network. Of the best one, what is not cut by rows may be cut as it paid on its own, and classes that do not
 * help, the least work first (small images), are taken out again. */
#include "shard/shard_choose.h"

#include <stdlib.h>
#include <string.h>

/* One strip of all that can be cut by rows, for the question how to share it out. */
static int all_rows(const moirai_shards *s, shard_strip *all)
{
    size_t capacity = 0;
    *all = (shard_strip){0};
    for (size_t k = 0; k < s->n_strips; k++) {
        const shard_strip *x = &s->strip[k];
        if (!x->map)
            continue;
        size_t n = (size_t)all->n_members + (size_t)x->n_members;
        if (util_grow(&all->member, &capacity, n, sizeof *all->member))
            return MOIRAI_EFAIL;
        memcpy(all->member + all->n_members, x->member, (size_t)x->n_members * sizeof *x->member);
        all->n_members = (int32_t)n;
        all->units = UTIL_MAX(all->units, x->units);
    }
    return 0;
}

/* All rows in these shares, where there are enough of them; nothing else. */
static int mark(shard_chooser *c, const char *shares)
{
    int pieces = 1, rc = 0;
    for (const char *at = shares; *at; at++)
        pieces += *at == ':';
    for (int32_t i = 0; i < c->out->n_classes && !rc; i++) {
        moirai_shard_judgement *m = &c->out->judgement[i];
        m->cut = i >= c->n_columns && c->strip[i]->units >= pieces;
        if (m->cut)
            rc = shard_exact_sizes(c->judge.s, c->strip[i], shares, m->sizes, sizeof m->sizes);
    }
    return rc;
}

/* The network with all that is marked; *best is lowered where it is shorter. */
static int try_marked(shard_chooser *c, int64_t *best, bool *better)
{
    bool taken;
    int64_t ns = MOIRAI_UNKNOWN;
    char *text = shard_choice_text(c);
    int rc = !text ? MOIRAI_EFAIL : *text ? shard_try_whole(c, text, &ns, &taken) : 0;
    free(text);
    *better = !rc && ns >= 0 && (*best < 0 || ns < *best);
    *best = *better ? ns : *best;
    return rc;
}

/* What rows leave free is cut as it paid on its own. */
static int mark_others(shard_chooser *c, bool *any)
{
    const moirai_shards *s = c->judge.s;
    bool *busy = shard_busy(c);
    *any = false;
    for (int32_t i = 0; busy && i < c->n_columns; i++) {
        bool free_one = false;
        for (size_t k = 0; k < s->n_strips && c->pays[i]; k++)
            free_one |= s->strip[k].class_number == c->number[i] && shard_is_free(&s->strip[k], busy);
        c->out->judgement[i].cut = free_one;
        *any |= free_one;
    }
    free(busy);
    return busy ? 0 : MOIRAI_EFAIL;
}

static int improve(shard_chooser *c, int64_t *best)
{
    moirai_shard_judgement *m = c->out->judgement, kept[SHARD_CLASSES];
    bool better = false, others;
    size_t size = (size_t)c->out->n_classes * sizeof *kept;
    memcpy(kept, m, size);
    int rc = mark_others(c, &others);
    rc = rc || !others ? rc : try_marked(c, best, &better);
    for (int32_t i = c->out->n_classes - 1, drops = 0; !rc; i--) {
        memcpy(better ? kept : m, better ? m : kept, size);
        while (i >= c->n_columns && !m[i].cut)
            i--;
        if (i < c->n_columns || ++drops > SHARD_DROPS || shard_judge_over(&c->judge))
            break;
        m[i].cut = false;
        rc = mark_others(c, &others);
        rc = rc ? rc : try_marked(c, best, &better);
    }
    return rc;
}

int shard_try_rows(shard_chooser *c)
{
    char text[SHARD_TRIED][SHARD_CUT_TEXT];
    shard_strip all;
    int64_t best = MOIRAI_UNKNOWN;
    int rc = all_rows(c->judge.s, &all), at = -1, n = rc || !all.n_members ? 0 : shard_sizes(&c->judge, &all, text);
    free(all.member);
    for (int32_t i = c->n_columns; i < c->out->n_classes; i++)
        c->out->judgement[i].n_candidates = n;
    for (int i = 0; i < n && !rc && !shard_judge_over(&c->judge); i++) {
        bool better = false;
        rc = mark(c, text[i]);
        rc = rc ? rc : try_marked(c, &best, &better);
        at = better ? i : at;
    }
    if (rc || at < 0)
        return rc;
    rc = mark(c, text[at]);
    return rc || shard_judge_over(&c->judge) ? rc : improve(c, &best);
}
