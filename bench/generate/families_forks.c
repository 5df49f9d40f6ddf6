/* Work side by side: forks and joins, phases of them, shuffles, chains, nothing in between at all. */
#include "generate/dag.h"

/* `width` branches of 1 .. depth operators between two operators. */
static void add_branches(generate_dag *d, int32_t fork, int32_t join, int32_t n, int32_t depth)
{
    while (n > 0 && !d->result) {
        int32_t length = generate_between(d, 1, depth), last = fork;
        length = UTIL_MIN(n, length);
        for (int32_t i = 0; i < length; i++) {
            int32_t op = generate_any(d);
            generate_edge(d, last, op);
            last = op;
        }
        generate_edge(d, last, join);
        n -= length;
    }
}

/* One operator that all others wait for, one that waits for all. Half of them have branches of several operators. */
void generate_fork_join(generate_dag *d, int32_t n)
{
    int32_t depth = generate_draw(d, 2) ? 1 : generate_between(d, 2, 4);
    int32_t fork = generate_any(d), join = generate_any(d);
    add_branches(d, fork, join, UTIL_MAX(1, n - 2), depth);
}

/* Fork-joins in a row, of different widths: what joins one forks the next, or hands on to it. */
void generate_phases(generate_dag *d, int32_t n)
{
    int32_t phases = generate_between(d, 4, 12), width = UTIL_MAX(2, n / phases - 1), fork = generate_any(d);
    bool hands_on = generate_draw(d, 2);
    for (int32_t i = 0; i < phases && !d->result; i++) {
        int32_t join = generate_any(d);
        add_branches(d, fork, join, generate_between(d, UTIL_MAX(1, width / 2), width + width / 2), 1);
        fork = join;
        if (hands_on) {
            fork = generate_any(d);
            generate_edge(d, join, fork);
        }
    }
}

/* Stages of maps; every reducer reads something of every map, and a map of the next stage reads one reducer. */
void generate_shuffle(generate_dag *d, int32_t n)
{
    int32_t width = generate_between(d, 8, 24), before[24];
    for (int32_t stage = 0; (int32_t)d->n_ops + 2 * width <= UTIL_MAX(n, 2 * width) && !d->result; stage++) {
        int32_t map[24];
        for (int32_t i = 0; i < width; i++) {
            map[i] = generate_add(d, 0, 1000);
            if (stage)
                generate_edge(d, before[i], map[i]);
        }
        for (int32_t i = 0; i < width; i++) {
            before[i] = generate_add(d, 1 + stage % 3, 1000);
            for (int32_t j = 0; j < width; j++)
                generate_edge(d, map[j], before[i]);
        }
    }
}

/* Chains side by side, of lengths that differ by up to 3, which two problems of three hang on one source. */
void generate_chains(generate_dag *d, int32_t n)
{
    int32_t chains = generate_between(d, 4, 40), length = UTIL_MAX(2, n / chains);
    int32_t source = generate_draw(d, 3) ? generate_any(d) : MOIRAI_NONE;
    while ((int32_t)d->n_ops < n && !d->result) {
        int32_t last = source, own = generate_between(d, UTIL_MAX(1, length / 2), length + length / 2);
        own = UTIL_MIN(own, n - (int32_t)d->n_ops);
        for (int32_t i = 0; i < own; i++) {
            int32_t op = generate_any(d);
            if (last != MOIRAI_NONE)
                generate_edge(d, last, op);
            last = op;
        }
    }
}

void generate_side_by_side(generate_dag *d, int32_t n)
{
    for (int32_t i = 0; i < n && !d->result; i++)
        generate_any(d);
}
