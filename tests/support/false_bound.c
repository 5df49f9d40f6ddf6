#include "support/attack.h"
#include "support/false_bound.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact/exact.h"
#include "bound/certificate.h"
#include "bound/intervals/interval_chain.h"
#include "bytes/bytes.h"
#include "pair/pair_refine.h"
#include "prove/prove.h"
#include "util/util.h"

#define ATTACKS 60 /* on the part about bytes of one certificate */
#define NODES 300000

/* ---- problems ---- */

typedef struct text {
    char *s;
    size_t n, capacity;
} text;

static void put(text *x, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    while (x->n + (size_t)n + 1 > x->capacity)
        x->s = realloc(x->s, x->capacity = 2 * x->capacity + 4096);
    memcpy(x->s + x->n, line, (size_t)n + 1);
    x->n += (size_t)n;
}

typedef struct maker {
    text out;
    util_rng rng;
    int K, n_ops, scale;
    bool zeros, nulls, groups, first;
} maker;

static int draw(maker *m, int n)
{
    return (int)util_rng_below(&m->rng, (uint32_t)n);
}

/* What copies have in common. */
typedef struct model {
    int time[4], bytes[2], memory;
} model;

static model draw_model(maker *m)
{
    model x = {.memory = draw(m, 4)};
    int never = m->nulls && draw(m, 3) == 0 ? draw(m, m->K) : -1;
    for (int k = 0; k < m->K; k++)
        x.time[k] = k == never                    ? -1
                    : m->zeros && draw(m, 4) == 0 ? 0
                                                  : (1 + draw(m, 12)) * m->scale + draw(m, m->scale);
    for (int j = 0; j < 2; j++)
        x.bytes[j] = m->zeros && draw(m, 4) == 0 ? 0 : (1 + draw(m, 9)) * m->scale;
    return x;
}

static void put_op(maker *m, const char *name, model x, int outputs, const char *inputs)
{
    put(&m->out, "%s{\"name\":\"%s\",\"type\":\"T\",\"memory_bytes\":%d,\"time_ns\":[", m->first ? "" : ",\n", name,
        x.memory);
    for (int k = 0; k < m->K; k++)
        x.time[k] < 0 ? put(&m->out, "%snull", k ? "," : "") : put(&m->out, "%s%d", k ? "," : "", x.time[k]);
    put(&m->out, "],\"inputs\":[%s],\"outputs\":[", inputs);
    for (int j = 0; j < outputs; j++)
        put(&m->out, "%s{\"name\":\"%s_%d\",\"bytes\":%d}", j ? "," : "", name, j, x.bytes[j]);
    put(&m->out, "]");
    if (m->groups && draw(m, 5) == 0)
        put(&m->out, ",\"group\":\"g%d\"", draw(m, 2));
    put(&m->out, "}");
    m->first = false;
    m->n_ops++;
}

static void put_head(maker *m, uint64_t seed, int max_ops)
{
    static const char *const flow[] = {"tensor", "edge"}, *const congestion[] = {"port", "channel", "none"};
    m->K = 2 + draw(m, 10) / 4 % 3;
    m->scale = draw(m, 3) == 0 ? 1 : 1 + draw(m, 200);
    m->zeros = draw(m, 3) == 0;
    m->nulls = draw(m, 3) == 0;
    m->groups = draw(m, 6) == 0;
    bool tight = draw(m, 2);
    put(&m->out,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"layers-%llu\",\"flow\":\"%s\",\"congestion\":\"%s\","
        "\"memory\":\"%s\",\"devices\":[",
        (unsigned long long)seed, flow[draw(m, 2)], congestion[draw(m, 3)], draw(m, 4) ? "static" : "peak");
    for (int k = 0; k < m->K; k++)
        put(&m->out, "%s{\"name\":\"d%d\",\"memory_bytes\":%d}", k ? "," : "", k,
            tight ? 1 + draw(m, 3 * max_ops / m->K + 3) : 1000000);
    put(&m->out, "],\"channels\":[");
    for (int a = 0, n = 0; a < m->K; a++)
        for (int b = 0; b < m->K; b++)
            if (a != b)
                put(&m->out, "%s{\"from\":\"d%d\",\"to\":\"d%d\",\"bytes_per_second\":%d000000,\"latency_ns\":%d}",
                    n++ ? "," : "", a, b, 200 + draw(m, 4000), draw(m, 3) ? 0 : draw(m, 2 * m->scale));
    put(&m->out, "],\n\"ops\":[");
}

typedef struct part {
    int shape, copies, ops;
    model model[3];
    int input; /* which output of the entry */
} part;

static const int shape_ops[] = {1, 2, 3, 3, 3};

/* Component: 0 single, 1 chain, 2 two into one, 3 one into two, 4 triangle. Its sinks' tensors are read by the exit. */
static void put_component(maker *m, const part *x, const char *entry, int layer, int which, text *sinks)
{
    static const int feeds[5][3] = {{0, 0, 0}, {0, 1, 0}, {0, 0, 3}, {0, 1, 1}, {0, 1, 3}}; /* mask of sources */
    static const int is_sink[5][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 1, 1}, {0, 0, 1}};
    for (int i = 0; i < x->ops; i++) {
        char name[32], inputs[256] = "";
        snprintf(name, sizeof name, "l%dc%do%d", layer, which, i);
        int n = 0;
        for (int j = 0; j < i; j++)
            if (feeds[x->shape][i] >> j & 1)
                n +=
                    snprintf(inputs + n, sizeof inputs - (size_t)n, "%s\"l%dc%do%d_0\"", n ? "," : "", layer, which, j);
        if (!n && entry)
            snprintf(inputs, sizeof inputs, "\"%s_%d\"", entry, x->input);
        put_op(m, name, x->model[i], 1, inputs);
        if (is_sink[x->shape][i])
            put(sinks, "%s\"%s_0\"", sinks->n ? "," : "", name);
    }
}

static int draw_parts(maker *m, part *x, int most)
{
    int parts = 1 + draw(m, 2), ops = 0, n = 0;
    for (int i = 0; i < parts; i++) {
        part y = {.shape = draw(m, 5), .copies = 1 + draw(m, 3), .input = draw(m, 3) == 0};
        y.ops = shape_ops[y.shape];
        for (int j = 0; j < 3; j++)
            y.model[j] = draw_model(m);
        while (y.copies > 0 && ops + y.copies * y.ops > most)
            y.copies--;
        ops += y.copies * y.ops;
        if (y.copies)
            x[n++] = y;
    }
    return n;
}

char *random_layers_json(uint64_t seed, int max_ops, size_t *length)
{
    maker m = {.first = true};
    util_rng_seed(&m.rng, seed * 7919 + 13);
    put_head(&m, seed, max_ops);
    part layer[2];
    int room = max_ops - 2, parts = draw_parts(&m, layer, 2 + draw(&m, room > 2 ? room - 1 : 1)), n = 0;
    model cut = draw_model(&m);
    char entry[32] = "", before[32] = "";
    bool ends = draw(&m, 3), starts = draw(&m, 3);
    int size = 1;
    for (int i = 0; i < parts; i++)
        size += layer[i].copies * layer[i].ops;
    if (starts) {
        put_op(&m, "cut", cut, 2, "");
        strcpy(entry, "cut");
    }
    do {
        text sinks = {0};
        int which = 0;
        for (int i = 0; i < parts; i++)
            for (int c = 0; c < layer[i].copies; c++)
                put_component(&m, &layer[i], entry[0] ? entry : NULL, n, which++, &sinks);
        if (entry[0] && draw(&m, 3) == 0)
            put(&sinks, "%s\"%s_%d\"", sinks.n ? "," : "", entry, draw(&m, 2)); /* past the block */
        if (before[0] && draw(&m, 3) == 0)
            put(&sinks, "%s\"%s_0\"", sinks.n ? "," : "", before); /* over a cut */
        strcpy(before, entry);
        snprintf(entry, sizeof entry, "cut%d", n++);
        if (m.n_ops < max_ops && (ends || m.n_ops + size <= max_ops))
            put_op(&m, entry, cut, 2, sinks.s ? sinks.s : "");
        free(sinks.s);
    } while (m.n_ops + size <= max_ops && n < 3 && !(m.n_ops + size == max_ops && ends));
    put(&m.out, "]}\n");
    *length = m.out.n;
    return m.out.s;
}

moirai_problem *random_layers(uint64_t seed, int max_ops)
{
    size_t length;
    moirai_problem *p = NULL;
    char *json = random_layers_json(seed, max_ops, &length);
    moirai_problem_parse(&p, json, length, "layers");
    free(json);
    return p;
}

/* ---- schedules that exist are never excluded ---- */

static bool fail(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, 256, format, args);
    va_end(args);
    return false;
}

/* The sending that a schedule belongs to. */
static pricing_sending sending_of(const decompose_block *b, const exact_result *found, int32_t entry_device)
{
    const moirai_problem *q = &b->problem;
    int32_t shared = decompose_block_shared_tensor(b);
    pricing_sending how = {.fixed = true};
    uint64_t readers = 0;
    for (int32_t e = q->tensor_edge_off[shared]; e < q->tensor_edge_off[shared + 1]; e++)
        readers |= UINT64_C(1) << found->op_device[q->edge_reader[e]];
    readers &= ~(UINT64_C(1) << entry_device);
    while (readers) {
        int32_t pick = __builtin_ctzll(readers);
        int64_t soonest = INT64_MAX;
        for (int32_t i = 0; i < found->n_transfers && q->congestion == MOIRAI_CONGESTION_PORT; i++)
            if (found->transfer[i].tensor == shared && (readers >> found->transfer[i].to & 1) &&
                found->transfer[i].finish_ns < soonest) {
                soonest = found->transfer[i].finish_ns;
                pick = found->transfer[i].to;
            }
        readers &= ~(UINT64_C(1) << pick);
        how.receiver[how.n_receivers++] = (int8_t)pick;
    }
    return how;
}

/* Up to two times of arrival that the schedule obeys. */
static int32_t arrivals_of(const decompose_block *b, const exact_result *found, const pricing_sending *how,
                           util_rng *rng, pricing_branch *count)
{
    int32_t n = 0, shared = decompose_block_shared_tensor(b);
    for (int32_t i = 0; how->fixed && i < found->n_transfers && n < 2; i++) {
        const exact_transfer *t = &found->transfer[i];
        if (t->tensor != shared || util_rng_below(rng, 2))
            continue;
        bool below = util_rng_below(rng, 2);
        count[n++] =
            (pricing_branch){PRICING_ARRIVAL, 0, 0, t->to, below ? 0 : t->finish_ns, below ? t->finish_ns : INT64_MAX};
    }
    return n;
}

/* Up to three counts that the schedule obeys. */
static int32_t counts_of(const decompose_block *b, const exact_result *found, util_rng *rng, pricing_branch *count)
{
    int32_t n = b->n_kinds ? (int32_t)util_rng_below(rng, 4) : 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t kind = (int32_t)util_rng_below(rng, (uint32_t)b->n_kinds), c = b->kind_component[kind];
        int32_t ops = b->component_off[c + 1] - b->component_off[c], op = (int32_t)util_rng_below(rng, (uint32_t)ops);
        int32_t device = (int32_t)util_rng_below(rng, (uint32_t)b->problem.n_devices), here = 0;
        for (c = 0; c < b->n_components; c++)
            here +=
                b->component_kind[c] == kind && found->op_device[b->component_op[b->component_off[c] + op]] == device;
        bool below = util_rng_below(rng, 2);
        count[i] =
            (pricing_branch){PRICING_NUMBER, kind, op, device, below ? 0 : here, below ? here : b->kind_count[kind]};
    }
    return n;
}

/* The verifier's block for a class, with the placer's kinds and trees. */
static bool verifier_block(prove_block *v, pair_chain *c, int32_t class_)
{
    const decompose_block *b = pair_chain_block(c, class_);
    const moirai_problem *q = &b->problem;
    prove_cuts cuts = {0};
    pricing_pricer *w = NULL;
    pricing_tree_edge *edge = calloc((size_t)q->n_ops + 1, sizeof *edge);
    bool good = !prove_cuts_new(&cuts, c->p, c->s->n_cuts, c->s->cut) &&
                !prove_block_new(v, c->p, &cuts, c->s->class_block[class_]) && !prove_components(v) &&
                !pricing_pricer_new(&w, b, 1) && v->n == q->n_ops && v->n_components == b->n_components;
    if (good) {
        v->n_kinds = b->n_kinds;
        v->kind_component = calloc((size_t)b->n_kinds + 1, sizeof(int32_t));
        v->kind_count = calloc((size_t)b->n_kinds + 1, sizeof(int32_t));
        v->tree_off = calloc((size_t)b->n_kinds + 2, sizeof(int32_t));
        v->tree_edge = calloc((size_t)v->n + 1, sizeof(int32_t));
        for (int32_t kind = 0; kind < b->n_kinds; kind++) {
            v->kind_component[kind] = b->kind_component[kind];
            v->kind_count[kind] = b->kind_count[kind];
            int32_t n = pricing_pricer_tree(w, kind, edge);
            v->tree_off[kind + 1] = v->tree_off[kind] + n;
            for (int32_t i = 0; i < n; i++)
                for (int32_t e = 0; e < v->n_edges; e++)
                    if (v->edge[e].from == edge[i].producer && v->edge[e].to == edge[i].reader &&
                        v->edge[e].output == edge[i].tensor - q->op_out_off[edge[i].producer])
                        v->tree_edge[v->tree_off[kind] + i] = e;
        }
        int32_t shared = decompose_block_shared_tensor(b);
        if (shared >= 0)
            v->shared_tensor = c->p->op_out[c->p->op_out_off[v->op[0]] + shared - q->op_out_off[b->entry]];
    }
    pricing_pricer_free(w);
    prove_cuts_free(&cuts);
    free(edge);
    return good;
}

/* The verifier on the same prices. */
static bool verifier_excludes(const prove_block *v, const pair_state *x, int32_t a, int32_t z,
                              const pricing_master_task *task, const pricing_master_result *found,
                              const pricing_grid *grid, const pricing_sending *how)
{
    (void)x;
    prove_branch count[6];
    prove_leaf leaf = {.fixed = how->fixed,
                       .n_receivers = how->n_receivers,
                       .n_branches = task->n_branches,
                       .branch = count,
                       .priced = true,
                       .length_ns = grid->length_ns,
                       .step_ns = grid->step_ns,
                       .n_steps = grid->n_steps,
                       .n_buckets = grid->n_buckets,
                       .bucket = (int32_t *)grid->bucket_step,
                       .price = (int64_t *)found->price,
                       .branch_price = (int64_t *)found->branch_price};
    for (int32_t i = 0; i < how->n_receivers; i++)
        leaf.receiver[i] = how->receiver[i];
    for (int32_t i = 0; i < task->n_branches; i++)
        count[i] =
            (prove_branch){task->branch[i].on == PRICING_NUMBER ? task->branch[i].kind : PROVE_ARRIVAL,
                           task->branch[i].op, task->branch[i].device, task->branch[i].least, task->branch[i].most};
    bool holds = false;
    return !prove_prices(&holds, v, a, z, &leaf) && holds;
}

static bool schedule_survives(const pair_chain *c, pair_state *x, const prove_block *v, int32_t a, int32_t z,
                              const exact_result *found, uint64_t seed, char *why)
{
    static const int32_t grids[][2] = {{512, 1}, {512, 8}, {60, 6}, {7, 32}, {1, 1}, {200, 32}};
    util_rng rng;
    util_rng_seed(&rng, seed);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        pricing_sending how = {0};
        if (decompose_block_shared_tensor(&x->block) >= 0 && util_rng_below(&rng, 4))
            how = sending_of(&x->block, found, a);
        pricing_branch count[6];
        int32_t arrivals = arrivals_of(&x->block, found, &how, &rng, count);
        /* The schedule's own length, and sometimes more. */
        int64_t length = found->makespan_ns + (util_rng_below(&rng, 4) ? 0 : util_rng_below(&rng, 20));
        pricing_master_task task = {.how = &how,
                                    .form = PRICING_LENGTH_FORM,
                                    .length_ns = length,
                                    .buckets = grids[i][1],
                                    .n_branches = arrivals + counts_of(&x->block, found, &rng, count + arrivals),
                                    .branch = count,
                                    .max_rounds = 30,
                                    .converge = true};
        pricing_master *m;
        pricing_master_result result;
        if (pricing_master_new(&m, &x->block, a, z, grids[i][0]) ||
            pricing_pricer_new(&task.pricer, &x->block, grids[i][0] + 2))
            return fail(why, "out of memory");
        int rc = pricing_master_solve(&result, m, &task);
        bool false_proof = !rc && result.proven;
        bool false_verdict = !rc && verifier_excludes(v, x, a, z, &task, &result, pricing_master_grid(m), &how);
        pricing_master_free(m);
        pricing_pricer_free(task.pricer);
        if (rc || false_proof || false_verdict)
            return fail(
                why,
                "%s excludes a schedule of %lld ns at T = %lld, pair %d %d, steps %d, buckets %d, %d receivers, "
                "%d counts (%s)",
                false_proof     ? "pricing"
                : false_verdict ? "verifier"
                                : "failure",
                (long long)found->makespan_ns, (long long)length, a, z, grids[i][0], grids[i][1],
                how.fixed ? how.n_receivers : -1, task.n_branches, c->p->name);
    }
    return true;
}

/* ---- pairs at all levels ---- */

/* The static programme between two devices by some cases, in one go or two: numbers and receivers of the entry's tensor.
 */
static bool check_pair_cases(pair_state *x, const exact_result *found, uint64_t seed, false_bound_counts *counts,
                             char *why)
{
    int32_t cases = 1 + (int32_t)(seed * 31 % 29);
    for (int32_t i = 0; i < 1 + (int32_t)(seed % 2); i++)
        if (pair_raise_cases(x, INT64_MAX, cases, (util_stop){0}))
            return fail(why, "cases: %s", moirai_error_message());
    const pair_static_tree *tree = pair_static_proven(x->programme);
    for (int32_t i = 0; tree && i < tree->n_cases; i++)
        if (tree->cases[i].division == PAIR_BY_SENDING) {
            counts->sendings++;
            break;
        }
    return !found || x->lower_ns <= found->makespan_ns ||
           fail(why, "cases of a pair: bound %lld, optimum %lld", (long long)x->lower_ns,
                (long long)found->makespan_ns);
}

static bool check_pair(pair_chain *c, int32_t class_, int32_t a, int32_t z, const prove_block *v, uint64_t seed,
                       false_bound_counts *counts, char *why)
{
    int64_t index = pair_chain_index(c, class_, a, z);
    exact_options o;
    exact_result found;
    if (pair_open(c, class_, a, z))
        return fail(why, "pair %d %d does not open", a, z);
    pair_state *x = c->pair[index];
    exact_options_init(&o);
    o.node_limit = NODES;
    bool ran = !exact_solve(&x->block.problem, &o, &found), solved = ran && found.complete && found.found, good = true;
    int32_t levels = x->block.n_interior ? PAIR_LEVELS : 0;
    good = check_pair_cases(x, solved ? &found : NULL, seed, counts, why);
    for (int32_t level = 1; level <= levels && good; level++) {
        pair_refine_task job = {.class_ = class_,
                                .entry_device = a,
                                .exit_device = z,
                                .level = level,
                                .need_ns = INT64_MAX,
                                .prices_only = true,
                                .improve = level > 2,
                                .effort = 0.2,
                                .seed = seed};
        if (pair_refine(c, &job))
            good = fail(why, "level %d: %s", level, moirai_error_message());
        else if (solved && x->lower_ns > found.makespan_ns)
            good = fail(why, "pair %d %d, level %d: bound %lld, optimum %lld", a, z, level, (long long)x->lower_ns,
                        (long long)found.makespan_ns);
    }
    if (good && solved && x->lower_ns > found.makespan_ns)
        good = fail(why, "pair %d %d: bound %lld, optimum %lld", a, z, (long long)x->lower_ns,
                    (long long)found.makespan_ns);
    if (good && solved && levels) {
        good = schedule_survives(c, x, v, a, z, &found, seed, why);
        counts->schedules++;
    }
    if (ran)
        exact_result_clear(&found);
    counts->pairs++;
    return good;
}

static bool check_pairs(pair_chain *c, uint64_t seed, false_bound_counts *counts, char *why)
{
    bool good = true;
    for (int32_t class_ = 0; class_ < c->s->n_classes && good; class_++) {
        prove_block v = {0};
        if (!verifier_block(&v, c, class_))
            good = fail(why, "the verifier sees another block");
        for (int32_t i = 0; i < c->K * c->K && good; i++) {
            int32_t a = i / c->K, z = i % c->K;
            if (!pair_chain_possible(c, class_, a, z))
                continue;
            if (counts->pair_every && (seed + (uint64_t)(class_ * c->K * c->K + i)) % (uint64_t)counts->pair_every)
                good = !pair_open(c, class_, a, z) || fail(why, "a pair can't be opened");
            else
                good = check_pair(c, class_, a, z, &v, seed + (uint64_t)i, counts, why);
        }
        prove_block_free(&v);
    }
    return good;
}

/* ---- certificates ---- */

/* The number after the last `key` before `limit`, changed by `by`; a new text, or NULL where there is none. */
static char *bump(const char *json, const char *key, int which, int64_t by)
{
    const char *at = json - 1;
    for (int i = 0; i <= which && at; i++)
        at = strstr(at + 1, key);
    if (!at)
        return NULL;
    at += strlen(key);
    while (*at && *at != '-' && (*at < '0' || *at > '9'))
        if (*at++ == ']')
            return NULL;
    char *end, *copy = malloc(strlen(json) + 32);
    long long value = strtoll(at, &end, 10);
    sprintf(copy, "%.*s%lld%s", (int)(at - json), json, value + (long long)by, end);
    return copy;
}

/* Without the first leaf of the first pair. */
static char *drop_leaf(const char *json)
{
    const char *at = strstr(json, "\"leaves\""), *end = at ? strchr(at, '}') : NULL,
               *begin = at ? strchr(at, '{') : NULL;
    if (!end || !begin || begin > end)
        return NULL;
    end++;
    while (*end == ',' || *end == '\n' || *end == ' ')
        end++;
    if (*end == ']')
        return NULL; /* it was the only one: then nothing is claimed beyond the path */
    char *copy = malloc(strlen(json) + 1);
    sprintf(copy, "%.*s%s", (int)(begin - json), json, end);
    return copy;
}

static bool rejected(const moirai_problem *p, char *json, false_bound_counts *counts)
{
    moirai_proof proof;
    if (!json)
        return true;
    int rc = moirai_prove_text(&proof, p, json, strlen(json), "tampered");
    free(json);
    counts->tampered++;
    return rc == MOIRAI_EVERIFY || rc == MOIRAI_EINPUT;
}

static bool check_tampered(const moirai_problem *p, const char *json, false_bound_counts *counts, char *why)
{
    struct {
        const char *what;
        char *json;
    } bad[] = {
        {"bound raised", bump(json, "\"certified_bound_ns\"", 0, 1)},
        {"pair raised", bump(json, "\"lower_ns\"", 0, 1)},
        {"operators", bump(json, "\"operators\"", 0, 1)},
        {"leaf missing", drop_leaf(json)},
        {"wrong cut", bump(json, "\"cuts\"", 0, 1)},
        {"wrong class", bump(json, "\"block_class\"", 0, 1)},
        {"bucket", bump(json, "\"buckets\"", 0, 1)},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!rejected(p, bad[i].json, counts) && good)
            good = fail(why, "certificate accepted although tampered with: %s", bad[i].what);
    return good;
}

/* Whatever is changed in a certificate: what is still accepted is still true. */
static bool check_mutations(const moirai_problem *p, const char *json, int64_t optimum, uint64_t seed,
                            false_bound_counts *counts, char *why)
{
    size_t length = strlen(json);
    char *copy = malloc(length + 1);
    util_rng rng;
    util_rng_seed(&rng, seed);
    bool good = true;
    for (int i = 0; i < 12 && good && optimum >= 0; i++) {
        memcpy(copy, json, length + 1);
        for (int tries = 0, changes = 0; tries < 1000 && changes < 1 + i / 6; tries++) {
            size_t at = util_rng_below(&rng, (uint32_t)length);
            if (copy[at] >= '0' && copy[at] <= '9') {
                copy[at] = (char)('0' + util_rng_below(&rng, 10));
                changes++;
            }
        }
        moirai_proof proof;
        counts->mutations++;
        if (!moirai_prove_text(&proof, p, copy, length, "changed") && proof.proven_ns > optimum)
            good = fail(why, "a changed certificate proves %lld, optimum %lld", (long long)proof.proven_ns,
                        (long long)optimum);
    }
    free(copy);
    return good;
}

static bool check_certificate(const pair_chain *c, int64_t optimum, uint64_t seed, false_bound_counts *counts,
                              char *why)
{
    int64_t lower = pair_chain_path(c, PAIR_CHAIN_LOWER, NULL);
    size_t length;
    char *json = bound_certificate_text(&(bound_certificate){.c = c, .lower_bound_ns = lower}, &length);
    moirai_proof proof = {0};
    bool good = json && !moirai_prove_text(&proof, c->p, json, length, "certificate");
    if (!good)
        fail(why, "not accepted: %s", moirai_error_message());
    else if (proof.proven_ns != lower || proof.certified_ns != lower)
        good = fail(why, "certificate proves %lld, claims %lld, chain %lld", (long long)proof.proven_ns,
                    (long long)proof.certified_ns, (long long)lower);
    else if (optimum >= 0 && proof.proven_ns > optimum)
        good = fail(why, "certificate proves %lld, optimum %lld", (long long)proof.proven_ns, (long long)optimum);
    else
        good = check_tampered(c->p, json, counts, why) && check_mutations(c->p, json, optimum, seed, counts, why);
    if (good && optimum >= 0 && strstr(json, "\"nobody\""))
        good = attack_certificate(c->p, json, length, "classes", optimum, seed, ATTACKS, &counts->attacks, NULL, why);
    counts->certificates++;
    if (optimum > 0) {
        counts->tight += proof.proven_ns == optimum;
        counts->gap += (double)(optimum - proof.proven_ns) / (double)optimum;
    }
    free(json);
    return good;
}

int64_t false_bound_optimum(const moirai_problem *p)
{
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.node_limit = NODES;
    if (exact_solve(p, &o, &found))
        return -1;
    int64_t best = found.complete && found.found ? found.makespan_ns : -1;
    exact_result_clear(&found);
    return best;
}

/* The certificate with its part about bytes. */
static bool check_memory_certificate(pair_chain *c, bytes_prices *m, int64_t lower, int64_t optimum, uint64_t seed,
                                     false_bound_counts *counts, char *why)
{
    bytes_bound_task job = {.upper_ns = optimum, .buckets = 8, .solves = 12, .threads = 1};
    moirai_proof proof;
    size_t length = 0;
    bool good = !bytes_settle(m, &job);
    char *json =
        good ? bound_certificate_text(&(bound_certificate){.c = c, .memory = m, .lower_bound_ns = optimum}, &length)
             : NULL;
    if (!json)
        return fail(why, "memory: no certificate");
    if (moirai_prove_text(&proof, c->p, json, length, "certificate"))
        good = fail(why, "memory: not accepted: %s", moirai_error_message());
    else if (proof.proven_ns > optimum)
        good =
            fail(why, "memory: certificate proves %lld, optimum %lld", (long long)proof.proven_ns, (long long)optimum);
    /* Settling solves the path again, from better columns: it may end a little off, never far. */
    else if ((double)proof.proven_ns < 0.9 * (double)lower)
        good = fail(why, "memory: certificate proves %lld of %lld", (long long)proof.proven_ns, (long long)lower);
    else
        good =
            attack_certificate(c->p, json, length, "memory", optimum, seed, ATTACKS, &counts->attacks, NULL, why) &&
            attack_certificate(c->p, json, length, "classes", optimum, seed, ATTACKS / 4, &counts->attacks, NULL, why);
    counts->certificates++;
    free(json);
    return good;
}

/* Prices on bytes. */
static bool check_memory(pair_chain *c, int64_t optimum, uint64_t seed, false_bound_counts *counts, char *why)
{
    bytes_prices *m;
    int64_t lower = 0, plain = pair_chain_path(c, PAIR_CHAIN_LOWER, NULL);
    if (bytes_prices_new(&m, c))
        return fail(why, "out of memory");
    bool good = true;
    for (int32_t buckets = 1; buckets <= 8 && good && optimum >= 0; buckets *= 8) {
        bytes_bound_task job = {.upper_ns = optimum, .rounds = 12, .buckets = buckets, .solves = 12, .threads = 1};
        if (bytes_bound(&lower, m, &job))
            good = fail(why, "memory: %s", moirai_error_message());
        else if (lower > optimum)
            good =
                fail(why, "memory bound %lld, optimum %lld, %d buckets", (long long)lower, (long long)optimum, buckets);
    }
    if (good && lower > plain)
        good = check_memory_certificate(c, m, lower, optimum, seed, counts, why);
    counts->memory += lower > plain;
    bytes_prices_free(m);
    return good;
}

/* Every bound of the registry against the optimum. */
static bool check_registry(const moirai_problem *p, int64_t optimum, char *why)
{
    moirai_budget o;
    moirai_budget_init(&o);
    o.effort = 0.1;
    o.threads = 1;
    for (int i = 0; i < moirai_bound_count() && optimum >= 0; i++) {
        int64_t lower;
        if (!moirai_bound_at(i)->find(&lower, p, &o) && lower > optimum)
            return fail(why, "bound %s %lld, optimum %lld", moirai_bound_at(i)->name, (long long)lower,
                        (long long)optimum);
    }
    return true;
}

/* What holds without some operators holds with them: the chain of the rest, and its certificate for the whole. */
static bool check_spine(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_counts *counts, char *why)
{
    util_rng rng;
    util_rng_seed(&rng, seed ^ 0x5b1e);
    bool floating[64] = {false}, good = true;
    int32_t left = p->n_ops;
    for (int32_t i = 0; i < p->n_ops && i < 64; i++)
        if (left > 1 && util_rng_below(&rng, 4) == 0) {
            floating[i] = true;
            left--;
        }
    if (p->n_ops > 64 || left == p->n_ops || optimum < 0)
        return true;
    decompose_spine *s;
    pair_chain *c = NULL;
    if (decompose_spine_from(&s, p, floating) || pair_chain_new(&c, s->problem))
        return fail(why, "spine: %s", moirai_error_message());
    bound_certify_task job = {.goal_ns = INT64_MAX, .levels = 2, .effort = 0.2, .threads = 1, .seed = seed};
    if (bound_certify(c, &job))
        good = fail(why, "spine: %s", moirai_error_message());
    int64_t lower = pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL);
    if (good && lower > optimum)
        good = fail(why, "spine bound %lld, optimum %lld", (long long)lower, (long long)optimum);
    size_t length;
    char *json =
        good ? bound_certificate_text(&(bound_certificate){.c = c, .spine = s, .lower_bound_ns = lower}, &length)
             : NULL;
    moirai_proof proof;
    if (good && (!json || moirai_prove_text(&proof, p, json, length, "certificate")))
        good = fail(why, "spine: not accepted: %s", moirai_error_message());
    if (good && (proof.proven_ns != lower || proof.floating != p->n_ops - left))
        good = fail(why, "spine: proves %lld of %lld", (long long)proof.proven_ns, (long long)lower);
    good = good && check_mutations(p, json, optimum, seed, counts, why);
    counts->spines++;
    free(json);
    pair_chain_free(c);
    decompose_spine_free(s);
    return good;
}

/* Chains of intervals of any taste: no bound above the optimum, and a certificate that is accepted for the whole. */
static bool check_intervals(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_counts *counts,
                            char *why)
{
    util_rng rng;
    util_rng_seed(&rng, seed ^ 0x17e4);
    decompose_interval_taste taste = {1 + (int32_t)util_rng_below(&rng, 8), util_rng_real(&rng), util_rng_real(&rng), 2,
                                      seed};
    decompose_intervals *all;
    bound_interval_chain *x = NULL;
    int64_t lower = 0;
    bound_interval_task job = {.goal_ns = INT64_MAX, .tries = 5, .effort = 0.02, .threads = 1, .seed = seed};
    if (optimum < 0)
        return true;
    if (decompose_intervals_new(&all, p, 8) || bound_interval_chain_new(&x, p, all, &taste) ||
        bound_interval_chain_raise(&lower, x, &job))
        return fail(why, "intervals: %s", moirai_error_message());
    bool good =
        lower <= optimum || fail(why, "intervals' bound %lld, optimum %lld", (long long)lower, (long long)optimum);
    bound_certify_task settle = {
        .goal_ns = lower, .levels = 1, .statics = true, .effort = 0.2, .threads = 1, .seed = seed};
    if (good && bound_certify(x->c, &settle))
        good = fail(why, "intervals: %s", moirai_error_message());
    size_t length;
    char *json = good ? bound_certificate_text(
                            &(bound_certificate){.c = x->c, .spine = x->spine, .lower_bound_ns = optimum}, &length)
                      : NULL;
    moirai_proof proof = {0};
    if (good && (!json || moirai_prove_text(&proof, p, json, length, "certificate")))
        good = fail(why, "intervals: not accepted: %s", moirai_error_message());
    if (good && (proof.proven_ns > optimum || proof.proven_ns < pair_chain_path(x->c, PAIR_CHAIN_CERTIFIED, NULL)))
        good = fail(why, "intervals: proves %lld, optimum %lld", (long long)proof.proven_ns, (long long)optimum);
    good = good && check_mutations(p, json, optimum, seed, counts, why);
    bool by_static = json && strstr(json, "\"static\"");
    counts->statics += by_static;
    good = good && (!by_static || attack_certificate(p, json, length, "classes", optimum, seed, ATTACKS,
                                                     &counts->attacks, NULL, why));
    counts->interval_chains++;
    free(json);
    bound_interval_chain_free(x);
    decompose_intervals_free(all);
    return good;
}

/* What several chains, drawn at random, know of their intervals. */
static int draw_intervals(bound_interval_list *known, const moirai_problem *p, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed ^ 0x3a9d);
    decompose_intervals *all;
    int rc = decompose_intervals_new(&all, p, 8);
    for (uint64_t i = 0; i < 3 && !rc; i++) {
        decompose_interval_taste taste = {(int32_t)util_rng_below(&rng, 7), util_rng_real(&rng), util_rng_real(&rng), 2,
                                          seed + i};
        bound_interval_task job = {.goal_ns = INT64_MAX, .tries = 3, .effort = 0.02, .threads = 1, .seed = seed};
        bound_interval_chain *x = NULL;
        int64_t lower;
        rc = bound_interval_chain_new(&x, p, all, &taste);
        rc = rc ? rc : bound_interval_chain_raise(&lower, x, &job);
        rc = rc ? rc : bound_interval_chain_share(x, known);
        bound_interval_chain_free(x);
    }
    decompose_intervals_free(all);
    return rc;
}

/* Every operator of a plan lies within its window, and every two within their arc. */
static bool plan_is_within(const moirai_problem *p, const exact_result *plan, const bound_windows *w, char *why)
{
    for (int32_t i = 0; i < p->n_ops; i++) {
        int64_t at = (int64_t)i * p->n_devices + plan->op_device[i], start = plan->op_start_ns[i];
        if (w->head[at] > start || start + p->op_time_ns[at] + w->tail[at] > plan->makespan_ns)
            return fail(why, "windows: %s starts at %lld, head %lld, tail %lld", p->op_name[i], (long long)start,
                        (long long)w->head[at], (long long)w->tail[at]);
    }
    for (int32_t i = 0; i < w->n_arcs; i++)
        if (plan->op_start_ns[w->arc[i].to] < plan->op_start_ns[w->arc[i].from] + w->arc[i].ns)
            return fail(why, "windows: %s is less than %lld behind %s", p->op_name[w->arc[i].to],
                        (long long)w->arc[i].ns, p->op_name[w->arc[i].from]);
    return true;
}

/* Heads and tails from random intervals: the best plan is within them, and the pool within them stays below it. */
static bool check_windows(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_counts *counts,
                          char *why)
{
    exact_options o;
    exact_result best;
    bound_interval_list known = {0};
    bound_windows w = {0};
    int64_t lower = 0;
    exact_options_init(&o);
    o.node_limit = NODES;
    if (optimum < 0)
        return true;
    if (exact_solve(p, &o, &best))
        return fail(why, "windows: %s", moirai_error_message());
    pair_pool_task job = {.upper_ns = 2 * optimum + 2, .rounds = 2, .cuts = 15, .nodes = 200, .threads = 1};
    bool good = (!draw_intervals(&known, p, seed) && !bound_windows_find(&w, p, &known)) ||
                fail(why, "windows: %s", moirai_error_message());
    good = good && (w.lower_ns <= optimum ||
                    fail(why, "windows' bound %lld, optimum %lld", (long long)w.lower_ns, (long long)optimum));
    good = good && plan_is_within(p, &best, &w, why);
    if (good && bound_windows_pool(&lower, &w, p, &job))
        good = fail(why, "windows: %s", moirai_error_message());
    good = good && (lower <= optimum ||
                    fail(why, "pool within windows %lld, optimum %lld", (long long)lower, (long long)optimum));
    counts->windows += lower > w.lower_ns;
    bound_windows_clear(&w);
    bound_interval_list_clear(&known);
    exact_result_clear(&best);
    return good;
}

/* The static programme by cases and the pool of all devices, over the whole as one block: no bound above the optimum,
 * and a certificate of it. */
static bool check_pool(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_counts *counts, char *why)
{
    static const int32_t nodes[] = {1, 12, 60, 400, 3000};
    bool none[64] = {false}, good = true;
    pair_chain *c = NULL;
    size_t length;
    if (optimum < 0 || p->n_ops > 64)
        return true;
    if (pair_chain_over(&c, p, none) || pair_open(c, 0, 0, 0))
        return fail(why, "pool: %s", moirai_error_message());
    pair_state *x = c->pair[0];
    pair_pool_task job = {
        .upper_ns = 2 * optimum + 2, .rounds = 3, .cuts = 25, .nodes = nodes[seed / 7 % 5], .threads = 1};
    int64_t before = x->lower_ns, by_cases = before;
    if ((seed % 5 ? 0 : pair_raise_static(x, job.stop)) ||
        pair_raise_cases(x, 2 * optimum + 2, 1 + (int32_t)(seed % 23), job.stop))
        good = fail(why, "cases: %s", moirai_error_message());
    else if ((by_cases = x->lower_ns) > optimum)
        good = fail(why, "cases' bound %lld, optimum %lld", (long long)x->lower_ns, (long long)optimum);
    counts->cases += by_cases > before && pair_static_proven(x->programme);
    if (good && pair_raise_pool(x, &job))
        good = fail(why, "pool: %s", moirai_error_message());
    else if (good && x->lower_ns > optimum)
        good = fail(why, "pool's bound %lld, optimum %lld", (long long)x->lower_ns, (long long)optimum);
    counts->pools += x->lower_ns > by_cases;
    char *json = good && x->lower_ns > before
                     ? bound_certificate_text(&(bound_certificate){.c = c, .lower_bound_ns = optimum}, &length)
                     : NULL;
    moirai_proof proof = {0};
    if (json && moirai_prove_text(&proof, p, json, length, "certificate"))
        good = fail(why, "pool: not accepted: %s", moirai_error_message());
    else if (json && proof.proven_ns != x->lower_ns)
        good = fail(why, "pool: proves %lld of %lld", (long long)proof.proven_ns, (long long)x->lower_ns);
    good = good && (!json || (check_mutations(p, json, optimum, seed, counts, why) &&
                              attack_certificate(p, json, length, "classes", optimum, seed, ATTACKS / 2,
                                                 &counts->attacks, NULL, why)));
    free(json);
    pair_chain_free(c);
    return good;
}

bool false_bound_check(const moirai_problem *p, uint64_t seed, false_bound_counts *counts, char *why)
{
    pair_chain *c;
    int64_t optimum = false_bound_optimum(p);
    counts->problems++;
    counts->optimal += optimum >= 0;
    if (pair_chain_new(&c, p))
        return fail(why, "no chain: %s", moirai_error_message());
    bool good = (seed % 4 >= 2 || check_registry(p, optimum, why)) && check_pairs(c, seed, counts, why);
    int64_t lower = good ? pair_chain_path(c, PAIR_CHAIN_LOWER, NULL) : 0;
    if (good && optimum >= 0 && lower > optimum)
        good = fail(why, "chain bound %lld, optimum %lld", (long long)lower, (long long)optimum);
    good = good && check_memory(c, optimum, seed, counts, why);
    good = good && check_certificate(c, optimum, seed, counts, why);
    good = good && (seed % 3 || check_spine(p, optimum, seed, counts, why));
    good = good && check_intervals(p, optimum, seed, counts, why);
    good = good && check_windows(p, optimum, seed, counts, why);
    good = good && check_pool(p, optimum, seed, counts, why);
    pair_chain_free(c);
    return good;
}
