/* Seconds that the paper's placers took to make their plans: Moirai: Towards Optimal Placement for Distributed
 * Inference on Heterogeneous Devices, its table of placement generation times. Measured there on an Intel i7-8700, with
 * Gurobi as solver. The paper's table says HRL where its text says Placeto. Figures of others, kept here to print them
 * beside ours; nothing is computed from them. */
#ifndef MOIRAI_BENCH_PAPER_GENERATION_H
#define MOIRAI_BENCH_PAPER_GENERATION_H

typedef struct paper_generation {
    const char *network;
    double hrl, m_sct, getf, moirai;                                         /* on the original graph */
    double hrl_coarsened, m_sct_coarsened, getf_coarsened, moirai_coarsened; /* on the coarsened graph */
} paper_generation;

static const paper_generation paper_generations[] = {
    {"swin-1.8B", 14400, 17.63, 120, 129, 14400, 15.24, 94.8, 98.4},
    {"swin-6.6B", 18000, 64.32, 744, 796.8, 17280, 58.57, 583.2, 630.6},
    {"swin-13B", 18000, 148.25, 1185, 1352.4, 18000, 142.9, 897, 927.6},
    {"gpt3-330M", 12600, 15.92, 75, 82.8, 10800, 14.4, 58.04, 62.4},
    {"gpt3-1.3B", 14400, 39.82, 519, 541.2, 13860, 37.39, 317.4, 412.8},
    {"gpt3-2.7B", 18000, 54.17, 649.2, 688.8, 17100, 51.52, 470.4, 510.6},
    {"gpt3-13B", 19800, 125.53, 942, 990, 18000, 117.48, 655.2, 664.2},
    {"alphafold2-87M", 12600, 20.18, 106.8, 114, 11880, 18.62, 74.4, 82.8},
    {"alphafold2-930M", 18000, 56.62, 663, 772.2, 17352, 53.71, 477, 525},
    {"alphafold2-2.4B", 20700, 226.34, 1350, 1434.6, 18000, 215.48, 1075.2, 1081.2},
    {"alphafold2-3.2B", 25200, 507.65, 2145, 2305.2, 23400, 485.35, 1290, 1330.8},
};
enum { N_PAPER_GENERATIONS = sizeof paper_generations / sizeof *paper_generations };

#endif
