/* The choice of cuts.
 *
 * Layers that are alike get one cut, so that there are as many questions as classes, not as layers: 40 layers are hardly
 * more work than one. Per class, sizes that balance devices and links (shard_sizes.c) are judged on one strip between
 * its neighbours (shard_judge.c), whole among them, then sums as a star and as a tree. Then whole networks are placed:
 * as it is, with all cuts that paid, without each of these in turn, with images cut by rows (rows/shard_rows_choose.c), and
 * with the batch cut. The shortest wins; a tie goes to the one with fewer cuts. Whatever the strips promised, the choice is never worse than the network as it is by this
 * measure. */
#include "shard/shard_choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_EFFORT 0.001
#define STRIP_TIME 0.6  /* of the time, at most, for strips */
#define BOUND_TIME 0.25 /* for the all-cuts bound, beside it */
#define WORTH 0.995     /* a cut that gains less only makes a network larger */

/* ---- classes ---- */

static int by_work(const void *x, const void *y)
{
    const shard_strip *a = *(const shard_strip *const *)x, *b = *(const shard_strip *const *)y;
    return a->flops > b->flops ? -1 : a->flops < b->flops ? 1 : a->class_number - b->class_number;
}

/* The strip in the middle of every class: the first and the last layer may have other neighbours. */
static void take_middle(shard_chooser *c, int i)
{
    const moirai_shards *s = c->judge.s;
    int32_t number = c->strip[i]->class_number, seen = 0;
    for (size_t k = 0; k < s->n_strips; k++)
        c->out->judgement[i].n_strips += s->strip[k].class_number == number;
    for (size_t k = 0; k < s->n_strips; k++)
        if (s->strip[k].class_number == number && seen++ == c->out->judgement[i].n_strips / 2)
            c->strip[i] = &s->strip[k];
    c->number[i] = number;
    c->out->judgement[i].strip = c->strip[i]->name;
    c->out->judgement[i].whole_ns = c->out->judgement[i].cut_ns = MOIRAI_UNKNOWN;
}

/* Those that are judged one by one, then rows; each group by its work. */
static int list_classes(shard_chooser *c)
{
    const moirai_shards *s = c->judge.s;
    int n = 0;
    for (int rows = 0; rows < 2; rows++) {
        int begin = n;
        for (size_t i = 0; i < s->n_strips && n < SHARD_CLASSES; i++) {
            const shard_strip *x = &s->strip[i];
            bool first = (rows ? x->map != NULL : !x->alternative) && x->flops != 0;
            for (size_t k = 0; k < i && first; k++)
                first = s->strip[k].class_number != x->class_number;
            if (first)
                c->strip[n++] = x;
        }
        qsort(c->strip + begin, (size_t)(n - begin), sizeof *c->strip, by_work);
        c->n_columns = rows ? c->n_columns : n;
    }
    for (int i = 0; i < n; i++)
        take_middle(c, i);
    return n;
}

/* Units instead of shares, for people. */
int shard_exact_sizes(const moirai_shards *s, const shard_strip *x, const char *text, char *out, size_t size)
{
    char cut[SHARD_CUT_TEXT + 512];
    onnx_arena arena = {0};
    shard_cuts cuts;
    snprintf(cut, sizeof cut, "%s: %s", x->name, text);
    int rc = shard_cuts_read(&cuts, s, cut, &arena);
    size_t used = 0;
    for (int32_t k = 0; !rc && cuts.n == 1 && k < cuts.cut[0].n_pieces && used < size; k++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", k ? "," : "", (long long)cuts.cut[0].size[k]);
    const char *word = strchr(text, ' ');
    if (!rc && word && used < size)
        snprintf(out + used, size - used, "%s", word);
    onnx_arena_free(&arena);
    return rc;
}

static int try_sizes(shard_chooser *c, int i, const char *sizes)
{
    moirai_shard_judgement *m = &c->out->judgement[i];
    char cut[SHARD_CUT_TEXT + 512];
    int64_t ns;
    snprintf(cut, sizeof cut, "%s: %s", c->strip[i]->name, sizes);
    int rc = shard_judge_strip(&c->judge, c->strip[i], cut, &ns);
    m->n_candidates++;
    if (!rc && ns >= 0 && (m->cut_ns < 0 || ns < m->cut_ns)) {
        m->cut_ns = ns;
        snprintf(c->best[i], sizeof c->best[i], "%s", sizes);
    }
    return rc;
}

static int judge_class(shard_chooser *c, int i)
{
    moirai_shard_judgement *m = &c->out->judgement[i];
    char text[SHARD_TRIED][SHARD_CUT_TEXT], chain[SHARD_CUT_TEXT];
    int n = shard_sizes(&c->judge, c->strip[i], text), rc = 0;
    m->cut_ns = MOIRAI_UNKNOWN;
    if (n)
        rc = shard_judge_strip(&c->judge, c->strip[i], NULL, &m->whole_ns);
    for (int k = 0; k < n && !rc && !shard_judge_over(&c->judge); k++)
        rc = try_sizes(c, i, text[k]);
    memcpy(chain, c->best[i], sizeof chain);
    int pieces = 1;
    for (const char *at = chain; *at; at++)
        pieces += *at == ':';
    for (int how = 0; how < 2 && pieces > 2 && c->strip[i]->n_sums && !rc && !shard_judge_over(&c->judge); how++) {
        char sizes[SHARD_CUT_TEXT + 8];
        snprintf(sizes, sizeof sizes, "%s %s", chain, how ? "tree" : "star");
        rc = try_sizes(c, i, sizes);
    }
    bool pays = m->cut_ns >= 0 && (m->whole_ns < 0 || (double)m->cut_ns < WORTH * (double)m->whole_ns);
    rc = rc || !*c->best[i] ? rc : shard_exact_sizes(c->judge.s, c->strip[i], c->best[i], m->sizes, sizeof m->sizes);
    m->cut = c->pays[i] = pays;
    return rc;
}

/* ---- whole networks ---- */

bool *shard_busy(const shard_chooser *c)
{
    const moirai_shards *s = c->judge.s;
    bool *busy = util_alloc((size_t)s->n_nodes, sizeof *busy);
    for (size_t k = 0; busy && k < s->n_strips; k++)
        for (int32_t i = c->n_columns; i < c->out->n_classes; i++)
            for (int32_t m = 0;
                 c->out->judgement[i].cut && c->number[i] == s->strip[k].class_number && m < s->strip[k].n_members; m++)
                busy[s->strip[k].member[m].node] = true;
    return busy;
}

bool shard_is_free(const shard_strip *x, const bool *busy)
{
    for (int32_t m = 0; m < x->n_members && !x->map; m++)
        if (busy[x->member[m].node])
            return false;
    return true;
}

char *shard_choice_text(const shard_chooser *c)
{
    const moirai_shards *s = c->judge.s;
    char *text = NULL;
    size_t capacity = 0, used = 0;
    bool *busy = shard_busy(c);
    int rc = busy ? util_grow(&text, &capacity, 1, 1) : MOIRAI_EFAIL;
    if (!rc)
        text[0] = 0;
    for (size_t k = 0; k < s->n_strips && !rc; k++)
        for (int32_t i = 0; i < c->out->n_classes && !rc; i++) {
            const shard_strip *x = &s->strip[k];
            if (!c->out->judgement[i].cut || c->number[i] != x->class_number || !shard_is_free(x, busy))
                continue;
            rc = util_grow(&text, &capacity, used + strlen(x->name) + strlen(c->out->judgement[i].sizes) + 8, 1);
            if (!rc)
                used += (size_t)snprintf(text + used, capacity - used, "%s%s: %s", used ? "; " : "", x->name,
                                         c->out->judgement[i].sizes);
        }
    free(busy);
    if (rc) {
        free(text);
        text = NULL;
    }
    return text;
}

int shard_try_whole(shard_chooser *c, const char *cut, int64_t *ns, bool *taken)
{
    moirai_problem *p = NULL;
    *ns = MOIRAI_UNKNOWN;
    *taken = false;
    int rc = shard_judge_problem(&c->judge, cut, &p);
    rc = rc ? rc : shard_judge_place(&c->judge, p, WHOLE_EFFORT, ns);
    moirai_problem_free(p);
    c->out->n_judged++;
    if (rc || *ns < 0 || (c->out->cut_ns >= 0 && (double)*ns >= WORTH * (double)c->out->cut_ns))
        return rc;
    char *copy = util_strdup(cut);
    if (!copy)
        return MOIRAI_EFAIL;
    free(c->out->cut);
    c->out->cut = copy;
    c->out->cut_ns = *ns;
    *taken = true;
    memcpy(c->chosen, c->out->judgement, sizeof c->chosen);
    c->of_family = true;
    for (int32_t i = c->n_columns; i < c->out->n_classes; i++)
        c->of_family &= !c->out->judgement[i].cut;
    return 0;
}

/* All that paid on their own, then without one of them, the least gain first. */
static int try_classes(shard_chooser *c)
{
    bool taken = false;
    int64_t ns;
    char *text = shard_choice_text(c);
    int rc = text ? 0 : MOIRAI_EFAIL, n_cut = 0;
    for (int32_t i = 0; i < c->n_columns; i++)
        n_cut += c->out->judgement[i].cut;
    rc = rc || !*text ? rc : shard_try_whole(c, text, &ns, &taken);
    free(text);
    for (int32_t i = c->n_columns - 1, drops = 0; i >= 0 && drops < SHARD_DROPS && n_cut > 1 && !rc; i--) {
        if (!c->out->judgement[i].cut || shard_judge_over(&c->judge))
            continue;
        c->out->judgement[i].cut = false;
        drops++;
        text = shard_choice_text(c);
        rc = text ? shard_try_whole(c, text, &ns, &taken) : MOIRAI_EFAIL;
        free(text);
        c->out->judgement[i].cut = !taken;
        n_cut -= taken;
    }
    return rc;
}

static int try_batch(shard_chooser *c)
{
    const moirai_shards *s = c->judge.s;
    char text[SHARD_TRIED][SHARD_CUT_TEXT];
    int rc = 0;
    for (size_t k = 0; k < s->n_strips && !rc; k++) {
        if (!s->strip[k].alternative || s->strip[k].map)
            continue;
        for (int32_t m = 0; m < c->out->n_classes; m++)
            c->out->judgement[m].cut = false;
        int n = shard_sizes(&c->judge, &s->strip[k], text);
        for (int i = 0; i < n && !rc && !shard_judge_over(&c->judge); i++) {
            char cut[SHARD_CUT_TEXT + 512], sizes[160] = "";
            bool taken = false;
            int64_t ns;
            rc = shard_exact_sizes(s, &s->strip[k], text[i], sizes, sizeof sizes);
            snprintf(cut, sizeof cut, "%s: %s", s->strip[k].name, sizes);
            rc = rc ? rc : shard_try_whole(c, cut, &ns, &taken);
            c->of_family &= !taken;
        }
    }
    return rc;
}

static int choose(shard_chooser *c)
{
    moirai_shard_choice *out = c->out;
    double end_s = c->judge.end_s;
    if (end_s > 0)
        c->judge.end_s -= (1 - STRIP_TIME) * c->judge.o->budget.time_limit_s;
    int rc = 0;
    for (int32_t i = 0; i < c->n_columns && !rc; i++)
        rc = shard_judge_over(&c->judge) ? 0 : judge_class(c, i);
    c->judge.end_s = end_s;
    rc = rc ? rc : shard_judge_place(&c->judge, c->judge.whole, WHOLE_EFFORT, &out->whole_ns);
    out->n_judged = 1;
    out->cut_ns = out->whole_ns;
    c->of_family = true;
    rc = rc ? rc : try_classes(c);
    rc = rc ? rc : shard_try_rows(c);
    rc = rc ? rc : try_batch(c);
    bool any = !rc && *out->cut;
    for (int32_t i = 0; i < out->n_classes && !rc; i++)
        if (any)
            out->judgement[i] = c->chosen[i];
        else
            out->judgement[i].cut = false;
    if (end_s > 0) /* the bound's own share */
        c->judge.end_s = util_seconds() + BOUND_TIME * c->judge.o->budget.time_limit_s;
    return rc || !c->of_family ? rc : shard_bound(&c->judge, &out->least_ns);
}

int moirai_shards_choose(moirai_shard_choice *out, const moirai_shards *s, const moirai_shard_choose_options *options)
{
    shard_chooser *c = util_alloc(1, sizeof *c);
    if (options->cluster->n_devices > MOIRAI_MASK_DEVICES) {
        free(c);
        return moirai_error(MOIRAI_EUSAGE, "cuts are chosen for up to %d devices, there are %d", MOIRAI_MASK_DEVICES,
                            options->cluster->n_devices);
    }
    *out = (moirai_shard_choice){.whole_ns = MOIRAI_UNKNOWN, .cut_ns = MOIRAI_UNKNOWN};
    out->cut = util_strdup("");
    out->judgement = util_alloc(SHARD_CLASSES, sizeof *out->judgement);
    int rc = c && out->cut && out->judgement ? moirai_budget_check(&options->budget) : MOIRAI_EFAIL;
    if (!rc) {
        c->out = out;
        rc = shard_judge_init(&c->judge, s, options);
        out->n_classes = rc ? 0 : list_classes(c);
        rc = rc || options->cluster->n_devices < 2 ? rc : choose(c);
        shard_judge_free(&c->judge);
    }
    free(c);
    if (rc)
        moirai_shard_choice_free(out);
    return rc;
}

void moirai_shard_choice_free(moirai_shard_choice *choice)
{
    free(choice->cut);
    free(choice->judgement);
    *choice = (moirai_shard_choice){0};
}
