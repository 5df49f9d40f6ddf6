/* Two scientific workflows whose shapes are used everywhere in the scheduling literature (Juve and others, 2013). */
#include "generate/dag.h"

enum { MOST_IMAGES = 2048, MOST_LANES = 16 };

/* Mosaics of the sky: images are projected, neighbours compared, the differences fitted at once; every image gets its
 * correction, and all of them are added. */
void generate_montage(generate_dag *d, int32_t n)
{
    static int32_t project[MOST_IMAGES];
    int32_t across = 2, images = UTIL_MIN(MOST_IMAGES, UTIL_MAX(4, (n - 6) / 4));
    while ((across + 1) * (across + 1) <= images)
        across++;
    for (int32_t i = 0; i < images; i++)
        project[i] = generate_add(d, 0, 1300);
    int32_t fit = generate_add(d, 3, 3000), model = generate_add(d, 3, 4000), table = generate_add(d, 3, 1000);
    for (int32_t i = 0; i < images; i++)
        for (int32_t o = 0; o < 2; o++) {
            int32_t other = o ? i + across : (i + 1) % across ? i + 1 : images;
            if (other >= images)
                continue;
            int32_t difference = generate_add(d, 1, 600);
            generate_edge(d, project[i], difference);
            generate_edge(d, project[other], difference);
            generate_edge(d, difference, fit);
        }
    generate_edge(d, fit, model);
    int32_t sum = generate_add(d, 3, 4000);
    generate_edge(d, table, sum);
    for (int32_t i = 0; i < images; i++) {
        int32_t correct = generate_add(d, 2, 900);
        generate_edge(d, project[i], correct);
        generate_edge(d, model, correct);
        generate_edge(d, correct, table);
        generate_edge(d, correct, sum);
    }
    int32_t shrunk = generate_add(d, 1, 1500), picture = generate_add(d, 0, 500);
    generate_edge(d, sum, shrunk);
    generate_edge(d, shrunk, picture);
}

/* Sequencing: each lane is split into pieces, every piece goes through four steps, the lane's are merged, all lanes'
 * are merged, then two more steps. */
void generate_epigenomics(generate_dag *d, int32_t n)
{
    static const int32_t work[4] = {400, 200, 150, 3200};
    int32_t lanes = generate_between(d, 1, UTIL_MIN(MOST_LANES, UTIL_MAX(1, n / 40)));
    int32_t pieces = UTIL_MAX(1, (n - 3 - 2 * lanes) / (4 * lanes)), merge = generate_add(d, 3, 1500);
    for (int32_t lane = 0; lane < lanes; lane++) {
        int32_t split = generate_add(d, 3, 500), merged = generate_add(d, 3, 800);
        for (int32_t i = 0; i < pieces; i++) {
            int32_t last = split;
            for (int32_t step = 0; step < 4; step++) {
                int32_t op = generate_add(d, step < 3 ? step : 0, work[step]);
                generate_edge(d, last, op);
                last = op;
            }
            generate_edge(d, last, merged);
        }
        generate_edge(d, merged, merge);
    }
    int32_t index = generate_add(d, 1, 1000), pile = generate_add(d, 2, 1500);
    generate_edge(d, merge, index);
    generate_edge(d, index, pile);
}
