/* The list of problems: 190 of families, 24 of operators side by side, 96 of networks.
 *
 * Ten settings, six of them with known figures of earlier builds. Families take turns: of a family, five settings are
 * for tuning and the other five judge, and the next family has them the other way round, so that either half has seen
 * every family and every setting, but hardly one together with the other. */
#include <stdio.h>

#include "generate/families.h"
#include "generate/generate.h"

enum { SETTINGS = 10, ROUNDS = 5, NETWORK_SETTINGS = 12, NETWORK_ROUNDS = 6, SIDE_BY_SIDE = 12 };

static const char *const settings[SETTINGS] = {
    "400/4/kinds/1.0",   "400/2/unrelated/0.1", "100/3/kinds/0.3",       "2000/4/kinds/0.1", "2000/6/unrelated/0.5",
    "400/4/related/0.1", "1000/8/related/0.3",  "5000/4/unrelated/0.05", "200/16/kinds/0.2", "5000/16/related/0.1",
};

static const char *const network_settings[NETWORK_SETTINGS] = {
    "medium/inter-server/fitted/coarsened",
    "small/intra-server/fitted/coarsened",
    "small/2/fitted/coarsened",
    "large/inter-server/fitted/coarsened",
    "large/intra-server/fitted/coarsened",
    "medium/3/roofline/coarsened",
    "medium/8/fitted/coarsened",
    "small/16/roofline/coarsened",
    "medium/inter-server/fitted/original",
    "large/6/roofline/coarsened",
    "small/inter-server/roofline/coarsened",
    "medium/intra-server/roofline/original",
};

static const char *const side_by_side[SIDE_BY_SIDE] = {
    "1000/2",   "10000/4", "1000/16",   "100000/2",  "1000/4",    "10000/16",
    "100000/4", "10000/2", "100000/16", "1000000/2", "1000000/4", "1000000/16",
};

enum {
    N_FAMILIES = GENERATE_GRAPHS - 1,
    N_GRAPH_ROWS = 2 * ROUNDS * N_FAMILIES,
    N_NETWORK_ROWS = 2 * NETWORK_ROUNDS * GENERATE_NETWORKS,
    N_SIDE_ROWS = 2 * SIDE_BY_SIDE,
    N_ROWS = N_GRAPH_ROWS + N_NETWORK_ROWS + N_SIDE_ROWS
};

int generate_count(void)
{
    return N_ROWS;
}

/* Row `i` of `families` families, each with half of `n` settings in either half of the seeds. Halves alternate. */
static const generate_family *row_of(int *setting, int *seed, int i, const generate_family *first, int families, int n)
{
    int judges = i % 2, f = i / 2 % families, round = i / 2 / families;
    *setting = (f + 2 * round + judges) % n;
    *seed = 2 * round + 1 + judges;
    return first + f;
}

static void graph_name(char *out, int i)
{
    int setting, seed;
    const generate_family *f = row_of(&setting, &seed, i, generate_families, N_FAMILIES, SETTINGS);
    snprintf(out, GENERATE_NAME, "%s/%s/%d", f->name, settings[setting], seed);
}

static void network_name(char *out, int i)
{
    int setting, seed;
    const generate_family *f =
        row_of(&setting, &seed, i, generate_families + GENERATE_GRAPHS, GENERATE_NETWORKS, NETWORK_SETTINGS);
    snprintf(out, GENERATE_NAME, "%s/%s/%d", f->name, network_settings[setting], seed);
}

/* The three lists are dealt in pairs of both halves, by their lengths. */
void generate_name(char *out, int index)
{
    static const int length[3] = {N_GRAPH_ROWS / 2, N_NETWORK_ROWS / 2, N_SIDE_ROWS / 2};
    int given[3] = {0}, which = 0, pair = index / 2;
    for (int i = 0; i <= pair; i++) {
        which = 0;
        for (int l = 1; l < 3; l++) /* the list that is furthest behind its share */
            if ((given[l] + 1) * length[which] < (given[which] + 1) * length[l])
                which = l;
        given[which]++;
    }
    int i = 2 * (given[which] - 1) + index % 2;
    if (which == 0)
        graph_name(out, i);
    else if (which == 1)
        network_name(out, i);
    else
        snprintf(out, GENERATE_NAME, "%s/%s/unrelated/0/%d", generate_families[GENERATE_GRAPHS - 1].name,
                 side_by_side[i / 2], i % 2 + 1);
}
