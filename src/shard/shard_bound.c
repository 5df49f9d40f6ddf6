/* The all-cuts bound: what no cut of the family can beat, if work could be shared out at will.
 *
 * The family: every strip whole, or in any number of pieces whose sizes are multiples of its tile (shard_tile), with any
 * sum; the batch is not cut. For weights y >= 0 of the devices that add up to 1, a plan of any of these networks takes
 * at least
 *
 *     sum over devices of y_k load_k  >=  sum over strips of min(cut, whole) + sum over other operators of min_k y_k t(k)
 *
 *     whole = sum over the strip's operators o of min_k y_k t_o(k)
 *     cut   = sum over its operators as pieces of min_k y_k r_o(k),  r_o(k) = min over sizes n of t_o(n, k) units / n
 *
 * because pieces of an operator have all its units between them, and each takes at least r_o(k) per whole. Every size of
 * the family is tried, as the first and as the second piece, since rules of fusion see them differently, with three pieces
 * and every kind of sum, too. An operator counts only if every network that was made for this has it: what fusion made
 * other operators of counts nothing. So do sums, joins and messages. Any y proves a bound; a few hundred steps towards the
 * best y follow the loads. What is assumed, and only hunted for: no other mixture of cut and whole strips fuses operators in
 * ways that these networks do not show.
 *
 * O(sizes x network) to make the networks, O(operators x devices) a step. */
#include "shard/shard_choose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SIZES 128 /* of one class, beyond which no bound is tried */
#define STEPS 300
#define SLACK 1e-9 /* far above what rounding adds up to */

/* Rates of one operator of a class as pieces. */
typedef struct rate {
    double ns[MOIRAI_MASK_DEVICES]; /* per whole; INFINITY: it can't run there */
    int seen, seen_now;             /* pieces that had it */
} rate;

/* Strips that are alike. */
typedef struct kind {
    const shard_strip *strip; /* the first one */
    util_names *member;       /* names of the operators of all -> position among those of their strip */
    rate *rate;               /* [position] */
    int32_t n_rates, n_alike;
    int n_pieces; /* that were made of one */
    int32_t
        *list; /* operators of the network whole: those of the first strip that no other one has, those of the second */
    int32_t *list_off;
} kind;

typedef struct bounder {
    shard_judge *j;
    kind *kind;
    int32_t n_kinds;
    bool *outside; /* operators of the network whole that are in no strip, and in every network made */
    double *least; /* [op * devices] of these */
} bounder;

static double time_on(const moirai_problem *p, int32_t op, int32_t k)
{
    return moirai_op_may(p, op, k) ? (double)moirai_op_ns(p, op, k) : INFINITY;
}

static const char *member_name(const moirai_problem *p, int32_t op, int32_t i)
{
    int32_t n = p->op_member_off[op + 1] - p->op_member_off[op];
    return n ? i < n ? p->op_member[p->op_member_off[op] + i] : NULL : i ? NULL : p->op_name[op];
}

/* Which operator of a strip, as a piece of how many units, this one holds first; -1: none. */
static int32_t piece_in(const kind *x, const moirai_problem *p, int32_t op, int64_t *size)
{
    int32_t first = -1;
    const char *name;
    for (int32_t i = 0; (name = member_name(p, op, i)); i++)
        for (const char *at = strstr(name, " ("); at; at = strstr(at + 1, " (")) {
            char base[1024];
            int number, of;
            long long units;
            if (sscanf(at, " (%d of %d, %lld of ", &number, &of, &units) != 3 || (size_t)(at - name) >= sizeof base)
                continue;
            snprintf(base, sizeof base, "%.*s", (int)(at - name), name);
            int32_t position = util_names_get(x->member, base);
            if (position >= 0 && (first < 0 || position < first)) {
                first = position;
                *size = units;
            }
        }
    return first;
}

/* Takes the rates of a network in which every strip has `pieces` pieces. */
static void learn(kind *x, const moirai_problem *p, int pieces)
{
    for (int32_t i = 0; i < x->n_rates; i++)
        x->rate[i].seen_now = 0;
    for (int32_t op = 0; op < p->n_ops; op++) {
        int64_t size = 0;
        int32_t at = piece_in(x, p, op, &size);
        if (at < 0 || size < 1)
            continue;
        rate *r = &x->rate[at];
        r->seen_now++;
        for (int32_t k = 0; k < p->n_devices; k++)
            r->ns[k] = UTIL_MIN(r->ns[k], time_on(p, op, k) * (double)x->strip->units / (double)size);
    }
    for (int32_t i = 0; i < x->n_rates; i++)
        x->rate[i].seen += x->rate[i].seen_now >= pieces * x->n_alike ? pieces : 0;
    x->n_pieces += pieces;
}

/* Operators outside count at the least that any network says; those that one has not, not at all. */
static int learn_outside(bounder *b, const moirai_problem *p)
{
    const moirai_problem *whole = b->j->whole;
    util_names *names = util_names_new((size_t)p->n_ops);
    for (int32_t op = 0; names && op < p->n_ops; op++)
        util_names_put(names, p->op_name[op], op);
    for (int32_t op = 0; names && op < whole->n_ops; op++) {
        int32_t same = util_names_get(names, whole->op_name[op]);
        b->outside[op] &= same >= 0 && !strcmp(p->op_type[same], whole->op_type[op]);
        for (int32_t k = 0; b->outside[op] && k < p->n_devices; k++) {
            double *least = &b->least[(size_t)op * (size_t)p->n_devices + (size_t)k];
            *least = UTIL_MIN(*least, time_on(p, same, k));
        }
    }
    util_names_free(names);
    return names ? 0 : MOIRAI_EFAIL;
}

/* ---- the networks ---- */

/* How strips are cut in a network that is made to learn from: `step` tiles and the rest, or two such pieces and the rest. */
typedef struct form {
    int64_t step;
    bool three;
    const char *sum;
} form;

static int64_t rest_of(const shard_strip *x, const form *f)
{
    return x->units - (f->three ? 2 : 1) * f->step * shard_tile(x->units);
}

static bool takes_part(const shard_strip *x, const form *f)
{
    return !x->alternative && rest_of(x, f) >= 1;
}

static char *form_text(const bounder *b, const form *f)
{
    const moirai_shards *s = b->j->s;
    char *text = NULL;
    size_t capacity = 0, used = 0;
    for (size_t i = 0; i < s->n_strips; i++) {
        const shard_strip *x = &s->strip[i];
        long long part = (long long)(f->step * shard_tile(x->units)), rest = (long long)rest_of(x, f);
        if (!takes_part(x, f))
            continue;
        if (util_grow(&text, &capacity, used + strlen(x->name) + 80, 1)) {
            free(text);
            return NULL;
        }
        used += (size_t)snprintf(text + used, capacity - used, "%s: %lld,%lld", x->name, part, rest);
        if (f->three)
            used += (size_t)snprintf(text + used, capacity - used, ",%lld", part);
        used += (size_t)snprintf(text + used, capacity - used, " %s; ", f->sum);
    }
    return text ? text : util_strdup("");
}

static int learn_form(bounder *b, const form *f)
{
    moirai_problem *p = NULL;
    char *text = form_text(b, f);
    int rc = text ? 0 : MOIRAI_EFAIL;
    rc = rc || !*text ? rc : shard_judge_problem(b->j, text, &p);
    for (int32_t c = 0; p && c < b->n_kinds; c++)
        if (takes_part(b->kind[c].strip, f))
            learn(&b->kind[c], p, f->three ? 3 : 2);
    rc = rc || !p ? rc : learn_outside(b, p);
    moirai_problem_free(p);
    free(text);
    return rc;
}

/* false in *whole_family: the time was over. */
static int learn_all(bounder *b, bool *whole_family)
{
    static const char *const sums[] = {"chain", "star", "tree"};
    int64_t most = 0;
    int rc = 0;
    for (int32_t c = 0; c < b->n_kinds; c++)
        most = UTIL_MAX(most, b->kind[c].strip->units / shard_tile(b->kind[c].strip->units));
    *whole_family = most <= MOST_SIZES;
    for (int how = 0; how < 3 && *whole_family && !rc; how++)
        rc = learn_form(b, &(form){.step = 1, .three = true, .sum = sums[how]});
    for (int64_t step = 1; step < most && *whole_family && !rc; step++) {
        *whole_family = !shard_judge_over(b->j);
        rc = learn_form(b, &(form){.step = step, .sum = "chain"});
    }
    return rc;
}

/* ---- the bound for weights ---- */

/* The least that an operator adds, and who has it then. */
static double add_least(const double *ns, const double *y, int32_t n, int32_t *who)
{
    double least = INFINITY;
    for (int32_t k = 0; k < n; k++)
        if (ns[k] < INFINITY && y[k] * ns[k] < least) {
            least = y[k] * ns[k];
            *who = k;
        }
    return least < INFINITY ? least : 0;
}

/* One strip in pieces; its loads are added `times` to `load`. */
static double cut_worth(const kind *x, const double *y, int32_t n, double *load, double times)
{
    double sum = 0;
    for (int32_t i = 0; i < x->n_rates; i++) {
        int32_t who = -1;
        if (!x->rate[i].seen || x->rate[i].seen != x->n_pieces)
            continue;
        sum += add_least(x->rate[i].ns, y, n, &who);
        if (who >= 0)
            load[who] += times * x->rate[i].ns[who];
    }
    return sum;
}

/* Strip number i of its kind, whole. */
static double whole_worth(const bounder *b, const kind *x, int32_t i, const double *y, double *load, double times)
{
    const moirai_problem *p = b->j->whole;
    double sum = 0, ns[MOIRAI_MASK_DEVICES];
    for (int32_t e = x->list_off[i]; e < x->list_off[i + 1]; e++) {
        int32_t who = -1;
        for (int32_t k = 0; k < p->n_devices; k++)
            ns[k] = time_on(p, x->list[e], k);
        sum += add_least(ns, y, p->n_devices, &who);
        if (who >= 0)
            load[who] += times * ns[who];
    }
    return sum;
}

static double outside_worth(const bounder *b, const double *y, double *load)
{
    const moirai_problem *p = b->j->whole;
    double sum = 0;
    for (int32_t op = 0; op < p->n_ops; op++) {
        const double *ns = &b->least[(size_t)op * (size_t)p->n_devices];
        int32_t who = -1;
        if (!b->outside[op])
            continue;
        sum += add_least(ns, y, p->n_devices, &who);
        if (who >= 0)
            load[who] += ns[who];
    }
    return sum;
}

static double worth(const bounder *b, const double *y, double *load)
{
    int32_t n = b->j->whole->n_devices;
    memset(load, 0, (size_t)n * sizeof *load);
    double sum = outside_worth(b, y, load);
    for (int32_t c = 0; c < b->n_kinds; c++) {
        const kind *x = &b->kind[c];
        double none[MOIRAI_MASK_DEVICES] = {0}, cut = cut_worth(x, y, n, none, 0);
        for (int32_t i = 0; i < x->n_alike; i++) {
            bool cuts = cut < whole_worth(b, x, i, y, none, 0);
            sum += cuts ? cut_worth(x, y, n, load, 1) : whole_worth(b, x, i, y, load, 1);
        }
    }
    return sum;
}

/* Weights grow with the loads: each step is an exponentiated subgradient. */
static double best_worth(const bounder *b)
{
    int32_t n = b->j->whole->n_devices;
    double y[MOIRAI_MASK_DEVICES], load[MOIRAI_MASK_DEVICES], best = 0;
    for (int32_t k = 0; k < n; k++)
        y[k] = 1.0 / n;
    for (int step = 0; step < STEPS; step++) {
        double sum = 0, most = 0;
        best = UTIL_MAX(best, worth(b, y, load));
        for (int32_t k = 0; k < n; k++)
            most = UTIL_MAX(most, load[k]);
        for (int32_t k = 0; k < n && most > 0; k++)
            y[k] *= exp(load[k] / most / (1 + 0.1 * step));
        for (int32_t k = 0; k < n; k++)
            sum += y[k];
        for (int32_t k = 0; k < n; k++)
            y[k] = UTIL_MAX(y[k] / sum, 1e-12);
    }
    return best;
}

/* ---- beginning and end ---- */

/* How many strips have one of theirs in each operator of the network whole; the caller frees. */
static int32_t *count_owners(const bounder *b)
{
    const moirai_shards *s = b->j->s;
    int32_t *owners = util_alloc((size_t)b->j->whole->n_ops, sizeof *owners);
    for (size_t i = 0; owners && i < s->n_strips; i++) {
        bool *in = s->strip[i].alternative ? NULL : shard_ops_of(b->j, b->j->whole, &s->strip[i]);
        for (int32_t op = 0; in && op < b->j->whole->n_ops; op++)
            owners[op] += in[op];
        if (!in && !s->strip[i].alternative) {
            free(owners);
            return NULL;
        }
        free(in);
    }
    return owners;
}

static int add_strip(bounder *b, kind *x, const shard_strip *strip, const int32_t *owners)
{
    const moirai_shards *s = b->j->s;
    bool *in = shard_ops_of(b->j, b->j->whole, strip);
    int32_t n = x->list_off[x->n_alike], n_ops = b->j->whole->n_ops;
    int32_t *list = in ? realloc(x->list, ((size_t)n + (size_t)n_ops) * sizeof *list) : NULL;
    x->list = list ? list : x->list;
    for (int32_t op = 0; list && op < n_ops; op++)
        if (in[op] && owners[op] == 1) /* what several have would count twice */
            list[n++] = op;
    x->list_off[++x->n_alike] = n;
    free(in);
    for (int32_t i = 0, position = 0; i < strip->n_members && position < x->n_rates; i++) {
        const char *name = s->op_name[strip->member[i].node]; /* NULL: folded, in some layers and not in others */
        if (name && util_names_put(x->member, name, position++) < 0)
            return MOIRAI_EFAIL;
    }
    return list ? 0 : MOIRAI_EFAIL;
}

static kind *open_kind(bounder *b, const shard_strip *strip)
{
    for (int32_t c = 0; c < b->n_kinds; c++)
        if (b->kind[c].strip->class_number == strip->class_number)
            return &b->kind[c];
    kind *x = &b->kind[b->n_kinds++];
    x->strip = strip;
    x->n_rates = strip->n_members;
    x->member = util_names_new((size_t)strip->n_members);
    x->rate = util_alloc((size_t)strip->n_members, sizeof *x->rate);
    x->list_off = util_alloc(b->j->s->n_strips + 1, sizeof *x->list_off);
    for (int32_t i = 0; x->rate && i < x->n_rates; i++)
        for (int32_t k = 0; k < MOIRAI_MASK_DEVICES; k++)
            x->rate[i].ns[k] = INFINITY;
    return x->member && x->rate && x->list_off ? x : NULL;
}

static int open_bounder(bounder *b, const int32_t *owners)
{
    const moirai_shards *s = b->j->s;
    const moirai_problem *p = b->j->whole;
    b->kind = util_alloc(s->n_strips, sizeof *b->kind);
    b->outside = util_alloc((size_t)p->n_ops, sizeof *b->outside);
    b->least = util_alloc((size_t)p->n_ops * (size_t)p->n_devices, sizeof *b->least);
    int rc = owners && b->kind && b->outside && b->least ? 0 : MOIRAI_EFAIL;
    for (int32_t op = 0; op < p->n_ops && !rc; op++) {
        b->outside[op] = !owners[op];
        for (int32_t k = 0; k < p->n_devices; k++)
            b->least[(size_t)op * (size_t)p->n_devices + (size_t)k] = time_on(p, op, k);
    }
    for (size_t i = 0; i < s->n_strips && !rc; i++) {
        kind *x = s->strip[i].alternative ? NULL : open_kind(b, &s->strip[i]);
        rc = s->strip[i].alternative ? 0 : x ? add_strip(b, x, &s->strip[i], owners) : MOIRAI_EFAIL;
    }
    return rc;
}

int shard_bound(shard_judge *j, int64_t *out)
{
    bounder b = {.j = j};
    bool whole_family = false;
    *out = 0;
    int32_t *owners = count_owners(&b);
    int rc = open_bounder(&b, owners);
    rc = rc ? rc : learn_all(&b, &whole_family);
    if (!rc && whole_family)
        *out = (int64_t)floor((1 - SLACK) * best_worth(&b));
    for (int32_t c = 0; b.kind && c < b.n_kinds; c++) {
        util_names_free(b.kind[c].member);
        free(b.kind[c].rate);
        free(b.kind[c].list);
        free(b.kind[c].list_off);
    }
    free(owners);
    free(b.kind);
    free(b.outside);
    free(b.least);
    return rc;
}
