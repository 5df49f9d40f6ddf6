#include "support/brute_force.h"
#include "support/attack.h"
#include "support/false_bound.h"
#include "support/false_bound_parts.h"
#include "support/proving.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "exact/exact.h"
#include "bound/certificate.h"
#include "bound/intervals/interval_chain.h"
#include "bytes/bytes.h"
#include "pair/pair_refine.h"
#include "util/util.h"

#define BRUTE_OPS 7
#define BRUTE_NODES 200000
#define ATTACKS 60 /* on the part about bytes of one certificate */

bool false_bound_fail(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, 256, format, args);
    va_end(args);
    return false;
}

/* The sending that a schedule belongs to. */
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

/* The first list of leaves, depth first; NULL: there is none. */
static yyjson_mut_val *first_leaves(yyjson_mut_val *v)
{
    yyjson_mut_val *key, *value, *found = NULL;
    size_t i, n;
    if (yyjson_mut_is_obj(v))
        yyjson_mut_obj_foreach(v, i, n, key, value)
        {
            bool leaves = yyjson_mut_equals_str(key, "leaves") && yyjson_mut_arr_size(value) > 0;
            found = found ? found : leaves ? value : first_leaves(value);
        }
    if (yyjson_mut_is_arr(v))
        yyjson_mut_arr_foreach(v, i, n, value)
            found = found ? found : first_leaves(value);
    return found;
}

static size_t n_receivers(yyjson_mut_val *leaf)
{
    return yyjson_mut_arr_size(yyjson_mut_obj_get(leaf, "receivers"));
}

/* Without the first leaf of the first pair, and all of as many receivers: where devices are equal, one order of them stands
 * for the others, and would make up for a leaf alone. NULL: nothing would be left, and nothing claimed. */
static char *drop_leaves(const char *json)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    yyjson_mut_doc *copy = yyjson_doc_mut_copy(doc, NULL);
    yyjson_mut_val *leaves = first_leaves(yyjson_mut_doc_get_root(copy));
    size_t receivers = leaves ? n_receivers(yyjson_mut_arr_get_first(leaves)) : 0;
    for (size_t i = leaves ? yyjson_mut_arr_size(leaves) : 0; i-- > 0;)
        if (n_receivers(yyjson_mut_arr_get(leaves, i)) == receivers)
            yyjson_mut_arr_remove(leaves, i);
    char *out = leaves && yyjson_mut_arr_size(leaves) ? yyjson_mut_write(copy, 0, NULL) : NULL;
    yyjson_mut_doc_free(copy);
    yyjson_doc_free(doc);
    return out;
}

static bool rejected(const moirai_problem *p, char *json, false_bound_counts *counts)
{
    moirai_proof proof;
    if (!json)
        return true;
    int rc = proving_text(&proof, p, json, strlen(json), "tampered");
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
        {"leaves missing", drop_leaves(json)},
        {"wrong cut", bump(json, "\"cuts\"", 0, 1)},
        {"wrong class", bump(json, "\"block_class\"", 0, 1)},
        {"bucket", bump(json, "\"buckets\"", 0, 1)},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!rejected(p, bad[i].json, counts) && good)
            good = false_bound_fail(why, "certificate accepted although tampered with: %s", bad[i].what);
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
        if (!proving_text(&proof, p, copy, length, "changed") && proof.proven_ns > optimum)
            good = false_bound_fail(why, "a changed certificate proves %lld, optimum %lld", (long long)proof.proven_ns,
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
    bool good = json && !proving_text(&proof, c->p, json, length, "certificate");
    if (!good)
        false_bound_fail(why, "not accepted: %s", moirai_error_message());
    else if (proof.proven_ns < lower || proof.certified_ns != lower) /* more: by images of pairs that were not tried */
        good = false_bound_fail(why, "certificate proves %lld, claims %lld, chain %lld", (long long)proof.proven_ns,
                                (long long)proof.certified_ns, (long long)lower);
    else if (optimum >= 0 && proof.proven_ns > optimum)
        good = false_bound_fail(why, "certificate proves %lld, optimum %lld", (long long)proof.proven_ns,
                                (long long)optimum);
    else
        good = (proof.proven_ns > lower || check_tampered(c->p, json, counts, why)) &&
               check_mutations(c->p, json, optimum, seed, counts, why);
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

/* By all placements and all orders where there are few, which shares no code with what is hunted; else by `exact`. */
int64_t false_bound_optimum(const moirai_problem *p)
{
    int64_t truth = p->n_ops <= BRUTE_OPS ? brute_force(p, BRUTE_NODES, NULL) : BRUTE_GAVE_UP;
    if (truth != BRUTE_GAVE_UP)
        return truth == BRUTE_INFEASIBLE ? -1 : truth;
    if (p->congestion == MOIRAI_CONGESTION_DEVICE) /* the search below lets transfers be beside operators */
        return -1;
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.node_limit = FALSE_BOUND_NODES;
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
        return false_bound_fail(why, "memory: no certificate");
    if (proving_text(&proof, c->p, json, length, "certificate"))
        good = false_bound_fail(why, "memory: not accepted: %s", moirai_error_message());
    else if (proof.proven_ns > optimum)
        good = false_bound_fail(why, "memory: certificate proves %lld, optimum %lld", (long long)proof.proven_ns,
                                (long long)optimum);
    /* Settling solves the path again, from better columns: it may end a little off, never far. */
    else if ((double)proof.proven_ns < 0.9 * (double)lower)
        good = false_bound_fail(why, "memory: certificate proves %lld of %lld", (long long)proof.proven_ns,
                                (long long)lower);
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
        return false_bound_fail(why, "out of memory");
    bool good = true;
    for (int32_t buckets = 1; buckets <= 8 && good && optimum >= 0; buckets *= 8) {
        bytes_bound_task job = {.upper_ns = optimum, .rounds = 12, .buckets = buckets, .solves = 12, .threads = 1};
        if (bytes_bound(&lower, m, &job))
            good = false_bound_fail(why, "memory: %s", moirai_error_message());
        else if (lower > optimum)
            good = false_bound_fail(why, "memory bound %lld, optimum %lld, %d buckets", (long long)lower,
                                    (long long)optimum, buckets);
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
            return false_bound_fail(why, "bound %s %lld, optimum %lld", moirai_bound_at(i)->name, (long long)lower,
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
        return false_bound_fail(why, "spine: %s", moirai_error_message());
    bound_certify_task job = {
        .goal_ns = INT64_MAX, .levels = 2, .nodes = 20000, .effort = 0.2, .threads = 1, .seed = seed};
    if (bound_certify(c, &job))
        good = false_bound_fail(why, "spine: %s", moirai_error_message());
    int64_t lower = pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL);
    if (good && lower > optimum)
        good = false_bound_fail(why, "spine bound %lld, optimum %lld", (long long)lower, (long long)optimum);
    size_t length;
    char *json =
        good ? bound_certificate_text(&(bound_certificate){.c = c, .spine = s, .lower_bound_ns = lower}, &length)
             : NULL;
    moirai_proof proof;
    if (good && (!json || proving_text(&proof, p, json, length, "certificate")))
        good = false_bound_fail(why, "spine: not accepted: %s", moirai_error_message());
    if (good && (proof.proven_ns < lower || proof.proven_ns > optimum || proof.floating != p->n_ops - left))
        good = false_bound_fail(why, "spine: proves %lld of %lld, optimum %lld", (long long)proof.proven_ns,
                                (long long)lower, (long long)optimum);
    good = good && check_mutations(p, json, optimum, seed, counts, why);
    counts->spines++;
    free(json);
    pair_chain_free(c);
    decompose_spine_free(s);
    return good;
}

/* Chains of intervals of any rule: no bound above the optimum, and a certificate that is accepted for the whole. */
static bool check_intervals(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_counts *counts,
                            char *why)
{
    util_rng rng;
    util_rng_seed(&rng, seed ^ 0x17e4);
    decompose_interval_rule rule = {1 + (int32_t)util_rng_below(&rng, 8), util_rng_real(&rng), util_rng_real(&rng), 2,
                                    seed};
    decompose_intervals *all;
    bound_interval_chain *x = NULL;
    int64_t lower = 0;
    bound_interval_task job = {.goal_ns = INT64_MAX, .tries = 5, .effort = 0.02, .threads = 1, .seed = seed};
    if (optimum < 0)
        return true;
    if (decompose_intervals_new(&all, p, 8) || bound_interval_chain_new(&x, p, all, &rule) ||
        bound_interval_chain_raise(&lower, x, &job))
        return false_bound_fail(why, "intervals: %s", moirai_error_message());
    bool good = lower <= optimum ||
                false_bound_fail(why, "intervals' bound %lld, optimum %lld", (long long)lower, (long long)optimum);
    bound_certify_task settle = {.goal_ns = lower,
                                 .levels = 1,
                                 .nodes = 20000,
                                 .effort = 0.2,
                                 .threads = 1,
                                 .seed = seed,
                                 .most_tree = seed / 2 % 2 ? 100000 : 0};
    if (good && bound_certify(x->c, &settle))
        good = false_bound_fail(why, "intervals: %s", moirai_error_message());
    size_t length;
    char *json = good ? bound_certificate_text(
                            &(bound_certificate){.c = x->c, .spine = x->spine, .lower_bound_ns = optimum}, &length)
                      : NULL;
    moirai_proof proof = {0};
    if (good && (!json || proving_text(&proof, p, json, length, "certificate")))
        good = false_bound_fail(why, "intervals: not accepted: %s", moirai_error_message());
    if (good && (proof.proven_ns > optimum || proof.proven_ns < pair_chain_path(x->c, PAIR_CHAIN_CERTIFIED, NULL)))
        good = false_bound_fail(why, "intervals: proves %lld, optimum %lld", (long long)proof.proven_ns,
                                (long long)optimum);
    good = good && check_mutations(p, json, optimum, seed, counts, why);
    bool by_loads = json && strstr(json, "\"loads\""), by_search = json && strstr(json, "\"search\"");
    counts->pair_loads += by_loads;
    counts->searches += by_search;
    counts->nodes += proof.searched;
    good = good && (!(by_loads || by_search) || attack_certificate(p, json, length, "classes", optimum, seed, ATTACKS,
                                                                   &counts->attacks, NULL, why));
    counts->interval_chains++;
    free(json);
    bound_interval_chain_free(x);
    decompose_intervals_free(all);
    return good;
}

/* No rule of the verifier's search excludes the best plan. The search lets transfers be beside operators: where they hold their devices
 * its best is no plan. */
static bool check_best_survives(const moirai_problem *p, int64_t optimum, uint64_t seed, char *why)
{
    exact_options o;
    exact_result best;
    exact_options_init(&o);
    o.node_limit = FALSE_BOUND_NODES;
    if (optimum < 0 || p->congestion == MOIRAI_CONGESTION_DEVICE)
        return true;
    if (exact_solve(p, &o, &best))
        return false_bound_fail(why, "search: %s", moirai_error_message());
    bool good = false_bound_plan_survives(p, best.plan, seed, why);
    exact_result_clear(&best);
    return good;
}

/* Prices on loads of the whole as one block: no bound above the optimum, and a certificate of it. */
static bool check_block_loads(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_counts *counts,
                              char *why)
{
    bool none[64] = {false}, good = true;
    pair_chain *c = NULL;
    size_t length;
    if (optimum < 0 || p->n_ops > 64)
        return true;
    if (pair_chain_over(&c, p, none) || pair_open(c, 0, 0, 0))
        return false_bound_fail(why, "loads of a block: %s", moirai_error_message());
    pair_state *x = c->pair[0];
    int64_t before = x->lower_ns;
    if (pair_raise_loads(x, (util_stop){0}))
        good = false_bound_fail(why, "loads of a block: %s", moirai_error_message());
    else if (x->lower_ns > optimum)
        good = false_bound_fail(why, "loads of a block: bound %lld, optimum %lld", (long long)x->lower_ns,
                                (long long)optimum);
    counts->block_loads += x->lower_ns > before;
    char *json = good && x->lower_ns > before
                     ? bound_certificate_text(&(bound_certificate){.c = c, .lower_bound_ns = optimum}, &length)
                     : NULL;
    moirai_proof proof = {0};
    if (json && proving_text(&proof, p, json, length, "certificate"))
        good = false_bound_fail(why, "loads of a block: not accepted: %s", moirai_error_message());
    else if (json && (proof.proven_ns < x->lower_ns ||
                      proof.proven_ns > optimum)) /* more: by paths of cases (docs/certificate.md) */
        good = false_bound_fail(why, "loads of a block: proves %lld of %lld, optimum %lld", (long long)proof.proven_ns,
                                (long long)x->lower_ns, (long long)optimum);
    good = good && (!json || (check_mutations(p, json, optimum, seed, counts, why) &&
                              attack_certificate(p, json, length, "classes", optimum, seed, ATTACKS / 2,
                                                 &counts->attacks, NULL, why)));
    free(json);
    pair_chain_free(c);
    return good;
}

/* A search tree of the whole as one block, of what is true of it: accepted, and no longer when it excludes a plan. */
static bool check_search(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_counts *counts, char *why)
{
    bool none[64] = {false};
    pair_chain *c = NULL;
    size_t length, left = 200000;
    if (optimum < 0 || p->n_ops > 64)
        return true;
    if (pair_chain_over(&c, p, none) || pair_open(c, 0, 0, 0))
        return false_bound_fail(why, "search: %s", moirai_error_message());
    c->pair[0]->lower_ns = optimum - (int64_t)(seed / 3 % 3) * optimum / 16;
    bool good = !pair_prove_by_search(c->pair[0], 3000, &left, (util_stop){0}) ||
                false_bound_fail(why, "search: %s", moirai_error_message());
    int64_t certified = pair_certified_ns(c->pair[0]);
    char *json = good && c->pair[0]->search.n_tree
                     ? bound_certificate_text(&(bound_certificate){.c = c, .lower_bound_ns = optimum}, &length)
                     : NULL;
    moirai_proof proof = {0};
    if (json && proving_text(&proof, p, json, length, "certificate"))
        good = false_bound_fail(why, "search: not accepted: %s", moirai_error_message());
    else if (json && proof.proven_ns != certified)
        good = false_bound_fail(why, "search: proves %lld of %lld", (long long)proof.proven_ns, (long long)certified);
    if (json && good && certified == optimum && !rejected(p, bump(json, "\"length_ns\"", 0, 1), counts))
        good = false_bound_fail(why, "search: excludes a plan of %lld ns", (long long)optimum);
    good = good && (!json || (check_mutations(p, json, optimum, seed, counts, why) &&
                              attack_certificate(p, json, length, "classes", optimum, seed, ATTACKS, &counts->attacks,
                                                 NULL, why)));
    counts->searches += json != NULL;
    counts->nodes += proof.searched;
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
        return false_bound_fail(why, "no chain: %s", moirai_error_message());
    bool join = seed / 2 % 2; /* equal devices, and receivers one by one */
    if (join) {
        pair_chain_join_equals(c);
        c->most_listed = (int32_t)(seed / 4 % 3);
    }
    bool good =
        (counts->quick || seed % 4 >= 2 || check_registry(p, optimum, why)) && false_bound_pairs(c, seed, counts, why);
    int64_t lower = good ? pair_chain_path(c, PAIR_CHAIN_LOWER, NULL) : 0;
    if (good && optimum >= 0 && lower > optimum)
        good = false_bound_fail(why, "chain bound %lld, optimum %lld", (long long)lower, (long long)optimum);
    /* Bytes tell equal devices apart. */
    good = good && (join || counts->quick || check_memory(c, optimum, seed, counts, why));
    good = good && check_certificate(c, optimum, seed, counts, why);
    good = good && (seed % 3 || check_spine(p, optimum, seed, counts, why));
    good = good && check_intervals(p, optimum, seed, counts, why);
    good = good && check_best_survives(p, optimum, seed, why);
    good = good && check_block_loads(p, optimum, seed, counts, why);
    good = good && check_search(p, optimum, seed, counts, why);
    good = good && (optimum < 0 || false_bound_loads(p, optimum, seed, &counts->loads, why));
    pair_chain_free(c);
    return good;
}
