/* Coarsening every network of the zoo: operators before and after, and the time of one call.
 * Aim: 50,560 operators in under 100 ms. Prints; never fails on a timing. */
#include <stdio.h>
#include <sys/resource.h>

#include <moirai/coarsen.h>
#include <moirai/zoo.h>
#include "util/util.h"

enum { ROUNDS = 5 };

/* Best of several rounds, in seconds; the coarse operators go to *n_ops. Negative on failure. */
static double coarsen_seconds(const moirai_graph *g, const char *set, int32_t *n_ops)
{
    moirai_rules *rules;
    double best = -1;

    if (moirai_rules_open(&rules, set))
        return -1;
    for (int i = 0; i < ROUNDS; i++) {
        moirai_graph *c;
        double start = util_seconds(), seconds;

        if (moirai_coarsen(&c, g, rules, NULL)) {
            best = -1;
            break;
        }
        seconds = util_seconds() - start;
        best = best < 0 || seconds < best ? seconds : best;
        *n_ops = c->n_ops;
        moirai_graph_free(c);
    }
    moirai_rules_free(rules);
    return best;
}

int main(void)
{
    static const char *const sets[] = {"none", "eigen", "onnxruntime"};
    struct rusage usage;

    printf("%-16s %9s", "network", "operators");
    for (int s = 0; s < 3; s++)
        printf("  %11s %8s", sets[s], "ms");
    printf("\n");
    for (int n = 0; n < moirai_zoo_count(); n++) {
        const char *name = moirai_zoo_at(n)->name;
        moirai_graph *g;

        if (moirai_zoo_graph(&g, name, 4)) {
            fprintf(stderr, "%s\n", moirai_error_message());
            return 1;
        }
        printf("%-16s %9d", name, g->n_ops);
        for (int s = 0; s < 3; s++) {
            int32_t n_ops = 0;
            double seconds = coarsen_seconds(g, sets[s], &n_ops);

            if (seconds < 0) {
                fprintf(stderr, "%s: %s\n", name, moirai_error_message());
                return 1;
            }
            printf("  %11d %8.2f", n_ops, 1e3 * seconds);
        }
        printf("\n");
        moirai_graph_free(g);
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("peak memory %.0f MB\n", (double)usage.ru_maxrss / 1024);
    return 0;
}
