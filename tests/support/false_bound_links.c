/* The exhaustive search with links (exact/exact_link.c), and long intervals that are searched with what is known of
 * their parts: nothing is proven that is not true, and no best plan is lost. */
#include "support/false_bound_parts.h"

#include <stdlib.h>

#include "bound/intervals/interval_parts.h"
#include "util/util.h"

/* Some operators of a chain that has been drawn: a chain of longer intervals. */
static int draw_longer(bound_interval_chain **out, const moirai_problem *p, uint64_t seed)
{
    size_t n = (size_t)p->n_ops;
    util_rng rng;
    util_rng_seed(&rng, seed ^ 0x51f3);
    decompose_interval_rule rule = {(int32_t)util_rng_below(&rng, 6), util_rng_real(&rng), util_rng_real(&rng), 2,
                                    seed};
    uint32_t keep = util_rng_below(&rng, 4); /* 0: the whole is one interval */
    decompose_intervals *all;
    bool *mark = calloc(3 * n, sizeof *mark);
    *out = NULL;
    int rc = decompose_intervals_new(&all, p, 8);
    rc = rc ? rc : decompose_intervals_choose(all, &rule, mark, mark + n);
    for (size_t i = 0; i < n && !rc; i++)
        mark[i] = mark[i] && util_rng_below(&rng, 4) < keep;
    if (!rc) {
        decompose_intervals_floating(all, mark, mark + n);
        rc = bound_interval_chain_over(out, p, mark);
    }
    decompose_intervals_free(all);
    free(mark);
    return rc;
}

/* The whole, searched with links: the optimum is found, and proven. */
static bool check_search_of_whole(const moirai_problem *p, const bound_interval_list *known, int64_t optimum, char *why)
{
    exact_link *link = calloc(known->n + 1, sizeof *link);
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    for (size_t i = 0; i < known->n; i++)
        link[i] = (exact_link){known->list[i].entry, known->list[i].exit, known->list[i].lower_ns};
    o.node_limit = FALSE_BOUND_NODES;
    o.link = link;
    o.n_links = (int32_t)known->n;
    bool good = !exact_solve(p, &o, &found) || false_bound_fail(why, "links: %s", moirai_error_message());
    free(link);
    if (!good)
        return false;
    bool ports = p->congestion != MOIRAI_CONGESTION_DEVICE; /* else it searches a relaxation */
    if (found.lower_bound_ns > optimum ||
        (found.complete && (ports ? found.makespan_ns != optimum : found.makespan_ns > optimum)))
        good = false_bound_fail(why, "links: search proves %lld, finds %lld, optimum %lld",
                                (long long)found.lower_bound_ns, (long long)found.makespan_ns, (long long)optimum);
    exact_result_clear(&found);
    return good;
}

/* All parts of the whole, from the smallest up: the windows that they leave, and the search that believes them. */
static bool check_parts(const moirai_problem *p, int64_t optimum, false_bound_counts *counts, char *why)
{
    bound_interval_task job = {.goal_ns = INT64_MAX, .effort = 1, .threads = 1};
    bound_part_task whole = {MOIRAI_NONE, MOIRAI_NONE, p->n_ops};
    bound_interval_list known = {0};
    bound_windows w = {0};
    decompose_intervals *all;
    int rc = decompose_intervals_new(&all, p, 8);
    rc = rc ? rc : bound_interval_parts(&known, p, all, &whole, &job);
    rc = rc ? rc : bound_windows_find(&w, p, &known);
    bool good = !rc || false_bound_fail(why, "parts: %s", moirai_error_message());
    if (good && w.lower_ns > optimum)
        good = false_bound_fail(why, "parts prove %lld, optimum %lld", (long long)w.lower_ns, (long long)optimum);
    counts->parts += (int64_t)known.n;
    good = good && check_search_of_whole(p, &known, optimum, why);
    bound_windows_clear(&w);
    bound_interval_list_clear(&known);
    decompose_intervals_free(all);
    return good;
}

bool false_bound_links(const moirai_problem *p, const bound_interval_list *known, int64_t optimum, uint64_t seed,
                       false_bound_counts *counts, char *why)
{
    bound_interval_task job = {.goal_ns = INT64_MAX, .tries = 3, .effort = 0.05, .threads = 1, .seed = seed};
    bound_interval_chain *x;
    int64_t lower = 0, parts = 0;
    if (!check_search_of_whole(p, known, optimum, why) || !check_parts(p, optimum, counts, why))
        return false;
    int rc = draw_longer(&x, p, seed);
    if (!rc) {
        x->known = known;
        x->merged = true;
        rc = bound_interval_chain_open(x, &job);
        rc = rc ? rc : bound_interval_chain_add_up(x, 1);
        parts = pair_chain_path(x->c, PAIR_CHAIN_LOWER, NULL);
        rc = rc ? rc : bound_interval_chain_raise(&lower, x, &job);
    }
    bool good = !rc || false_bound_fail(why, "links: %s", moirai_error_message());
    if (good && UTIL_MAX(parts, lower) > optimum)
        good = false_bound_fail(why, "links: parts prove %lld, longer intervals %lld, optimum %lld", (long long)parts,
                                (long long)lower, (long long)optimum);
    counts->links += lower > parts;
    bound_interval_chain_free(x);
    return good;
}
