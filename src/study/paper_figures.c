/* What the paper says, as data.
 *
 * Source: "Moirai: Towards Optimal Placement for Distributed Inference on Heterogeneous Devices", its table of models
 * (operators in the original and in the coarsened graph), its table of placement generation times, and the sentences on
 * end-to-end latency and on coarsening; times converted to seconds. Its latencies appear in a figure without numbers:
 * the speed-ups "up to" are all that the text gives, and all that can be compared. The table of generation times says
 * HRL where the text says Placeto. Measured there on an Intel i7-8700, with Gurobi as solver and PyTorch 1.12 on the
 * devices. Figures of others, kept to stand beside ours: nothing is computed from them. */
#include "study/study.h"

#include <string.h>

/* clang-format off */
static const moirai_paper_network networks[] = {
    {"swin-1.8B", 6496, 5204, {{14400, 17.63, 120, 129}, {14400, 15.24, 94.8, 98.4}}},
    {"swin-6.6B", 14352, 11512, {{18000, 64.32, 744, 796.8}, {17280, 58.57, 583.2, 630.6}}},
    {"swin-13B", 22120, 17947, {{18000, 148.25, 1185, 1352.4}, {18000, 142.9, 897, 927.6}}},
    {"gpt3-330M", 4872, 3682, {{12600, 15.92, 75, 82.8}, {10800, 14.4, 58.04, 62.4}}},
    {"gpt3-1.3B", 9480, 7308, {{14400, 39.82, 519, 541.2}, {13860, 37.39, 317.4, 412.8}}},
    {"gpt3-2.7B", 12640, 9825, {{18000, 54.17, 649.2, 688.8}, {17100, 51.52, 470.4, 510.6}}},
    {"gpt3-13B", 19640, 15283, {{19800, 125.53, 942, 990}, {18000, 117.48, 655.2, 664.2}}},
    {"alphafold2-87M", 5136, 3618, {{12600, 20.18, 106.8, 114}, {11880, 18.62, 74.4, 82.8}}},
    {"alphafold2-930M", 12992, 9252, {{18000, 56.62, 663, 772.2}, {17352, 53.71, 477, 525}}},
    {"alphafold2-2.4B", 37920, 26824, {{20700, 226.34, 1350, 1434.6}, {18000, 215.48, 1075.2, 1081.2}}},
    {"alphafold2-3.2B", 50560, 35096, {{25200, 507.65, 2145, 2305.2}, {23400, 485.35, 1290, 1330.8}}},
};

static const struct {
    const char *testbed;
    bool coarsened;
    double placeto, m_sct, getf;
} speedups[] = {
    {"inter-server", false, 2.98, 1.77, 1.33},
    {"intra-server", false, 4.12, 1.70, 1.35},
    {"inter-server", true, 3.15, 1.90, 1.25},
    {"intra-server", true, 4.28, 1.74, 1.34},
};
/* clang-format on */

int moirai_paper_network_count(void)
{
    return (int)(sizeof networks / sizeof *networks);
}

const moirai_paper_network *moirai_paper_network_at(int index)
{
    return index >= 0 && index < moirai_paper_network_count() ? &networks[index] : NULL;
}

const moirai_paper_network *moirai_paper_network_find(const char *name)
{
    for (int i = 0; i < moirai_paper_network_count(); i++)
        if (!strcmp(networks[i].name, name))
            return &networks[i];
    return NULL;
}

double moirai_paper_speedup(const char *testbed, bool coarsened, const char *placer)
{
    for (size_t i = 0; i < sizeof speedups / sizeof *speedups; i++)
        if (!strcmp(speedups[i].testbed, testbed) && speedups[i].coarsened == coarsened)
            return !strcmp(placer, "placeto") ? speedups[i].placeto
                   : !strcmp(placer, "m-sct") ? speedups[i].m_sct
                   : !strcmp(placer, "getf")  ? speedups[i].getf
                                              : 0;
    return 0;
}

double study_paper_latency_cut(const char *testbed)
{
    return !strcmp(testbed, "inter-server") ? 0.057 : !strcmp(testbed, "intra-server") ? 0.038 : 0;
}

double study_paper_generation_s(const char *network, bool coarsened, const char *placer)
{
    static const char *const column[] = {"hrl", "m-sct", "getf", "moirai"};
    const moirai_paper_network *n = moirai_paper_network_find(network);
    for (int i = 0; n && i < 4; i++)
        if (!strcmp(column[i], placer))
            return n->generation_s[coarsened][i];
    return 0;
}
