/* Chapter: plans that were run. Predicted and measured side by side, the module itself beside them, a verdict on each
 * claim of the paper that these runs can speak to, and what parts held against what was computed. */
#include "study/measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIKE 0.15 /* as in the findings */
#define NOISE 0.01 /* runs that differ by less are equally fast */
#define NONE (-1)  /* of a filter's round: any */
#define MOST_RUNS 512

static const char *const graphs[] = {"original", "coarsened"};

/* A placer's first plan; NULL where there is none. */
static const study_measure *plan_of(const moirai_study *s, const char *network, const char *testbed, const char *graph,
                                    const char *link, const char *placer, int round)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_PLAN,
                              .network = network,
                              .testbed = testbed,
                              .graph = graph,
                              .link = link,
                              .placer = placer,
                              .round = round};
    return study_measure_find(s, &f);
}

static double ratio(const study_measure *slow, const study_measure *fast, bool measured)
{
    if (!slow || !fast)
        return NAN;
    return measured ? slow->took / fast->took : slow->predicted / fast->predicted;
}

/* ---- how ---- */

static void parts_and_links(study_document *d, const moirai_study *s)
{
    study_measure_filter parts = {.kind = STUDY_MEASURE_PARTS, .round = NONE};
    const study_measure *m, *l;
    study_table(d, "measured-parts", 5, "testbed|device|shares of it|multiprocessors|links|us|GB/s");
    for (size_t from = 0; (m = study_measure_next(s, &parts, &from));) {
        study_measure_filter links = {.kind = STUDY_MEASURE_LINK, .testbed = m->testbed, .round = NONE};
        for (size_t at = 0; (l = study_measure_next(s, &links, &at));) {
            study_cell(d, "%s", m->testbed);
            study_cell(d, "%s", m->text);
            study_cell(d, "%s", m->list[0]);
            study_cell(d, "%s", m->list[1]);
            study_cell(d, "%s", l->link);
            study_cell(d, "%.1f", l->predicted);
            study_cell(d, "%.1f", l->took);
        }
    }
}

static void how(study_document *d, const moirai_study *s)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_PLAN, .round = NONE};
    const study_measure *m;
    const char *first = NULL, *last = NULL;
    int runs = 0;
    for (size_t from = 0; (m = study_measure_next(s, &f, &from)); runs++) {
        first = !first || strcmp(m->date, first) < 0 ? m->date : first;
        last = !last || strcmp(m->date, last) > 0 ? m->date : last;
    }
    study_say(
        d,
        "The paper measures on two clusters of four GPUs. Here one GPU was cut into four parts by CUDA MPS, whose "
        "shares are the fp32 rates of the testbed's four GPUs and whose memories are theirs, and the zoo's networks "
        "were run on them as PyTorch modules with random weights (`bench/paper_measured.py`, %s to %s UTC, %d plans). "
        "*Original*: every operator of the paper's graph is a kernel of its own, heads and biases apart. *Coarsened*: "
        "a head's attention and a product with its bias are one kernel each, as PyTorch has them. Every distinct "
        "operator was profiled on every part, links were probed, and each placer made its plan from that; results "
        "were compared with the module's. Parts run CUDA graphs, so that launches hardly count: the paper's PyTorch "
        "1.12 launched every kernel. Parts share the GPU's memory and its bandwidth, which the testbeds' GPUs do not; "
        "a profile of all parts at once has that in it. Placers that search or learn had at most 6 s. Equal plans of "
        "two "
        "placers were run once. By IPC a reader looks at a tensor where it is, so that its rate is no rate of copies. "
        "Captured modules have some operators more than the paper's graphs (Swin 137). \"-\": not measured.",
        first, last, runs);
    parts_and_links(d, s);
}

/* ---- latencies ---- */

/* Was any plan made from what first ones took? */
static bool second_plans(const moirai_study *s)
{
    return study_measure_find(s, &(study_measure_filter){.kind = STUDY_MEASURE_PLAN, .round = 1});
}

static void latency_cells(study_document *d, const moirai_study *s, const study_names *placers,
                          const study_measure *any)
{
    const char *where[] = {any->network, any->testbed, any->graph, any->link};
    for (int p = 0; p < placers->n; p++) {
        const study_measure *m = plan_of(s, where[0], where[1], where[2], where[3], placers->name[p], 0);
        if (m)
            study_cell(d, "%.1f / %.1f", m->predicted, m->took);
        else
            study_cell(d, "-");
    }
    const study_measure *best = plan_of(s, where[0], where[1], where[2], where[3], "moirai", 0);
    const study_measure *again = plan_of(s, where[0], where[1], where[2], where[3], "moirai", 1);
    if (again)
        study_cell(d, "%.1f / %.1f", again->predicted, again->took);
    else if (second_plans(s))
        study_cell(d, "-");
    study_cell(d, best ? "%d" : "-", best ? (int)best->parts : 0);
    study_cell_times(d, ratio(plan_of(s, where[0], where[1], where[2], where[3], "single", 0), best, true));
}

static void latencies(study_document *d, const moirai_study *s, const study_names *networks,
                      const study_names *testbeds, const study_names *links, const study_names *placers)
{
    char columns[512], name[32];
    size_t used = (size_t)snprintf(columns, sizeof columns, "network|graphs|links|operators");
    for (int p = 0; p < placers->n && used < sizeof columns; p++)
        used += (size_t)snprintf(columns + used, sizeof columns - used, "|%s", placers->name[p]);
    if (used < sizeof columns)
        snprintf(columns + used, sizeof columns - used, "%s|parts|times as fast as single",
                 second_plans(s) ? "|moirai, second plan" : "");
    for (int t = 0; t < testbeds->n; t++) {
        study_say(
            d,
            "**%s**: predicted / measured milliseconds of plans made from the profile alone%s. *Parts*: that the first "
            "plan of `moirai` uses.",
            testbeds->name[t], second_plans(s) ? "; the second plan of `moirai` knows what the first runs took" : "");
        snprintf(name, sizeof name, "measured-%.20s", testbeds->name[t]);
        study_table(d, name, 3, columns);
        for (int n = 0; n < networks->n; n++)
            for (int g = 0; g < 2; g++)
                for (int l = 0; l < links->n; l++) {
                    const study_measure *any =
                        plan_of(s, networks->name[n], testbeds->name[t], graphs[g], links->name[l], NULL, 0);
                    if (!any)
                        continue;
                    study_cell(d, "%s", any->network);
                    study_cell(d, "%s", any->graph);
                    study_cell(d, "%s", any->link);
                    study_cell(d, "%d", (int)any->operators);
                    latency_cells(d, s, placers, any);
                }
    }
}

/* ---- the module itself ---- */

static void cell_ms(study_document *d, const study_measure *m)
{
    if (m)
        study_cell(d, "%.1f", m->took);
    else
        study_cell(d, "-");
}

static const study_measure *fastest(const moirai_study *s, const char *network, const char *testbed, const char *graph,
                                    const char *placer)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_PLAN,
                              .network = network,
                              .testbed = testbed,
                              .graph = graph,
                              .placer = placer,
                              .round = NONE};
    const study_measure *m, *best = NULL;
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));)
        best = !best || m->took < best->took ? m : best;
    return best;
}

static void baselines(study_document *d, const moirai_study *s, const study_names *networks,
                      const study_names *testbeds)
{
    static const char *const ways[] = {"plain", "graph", "compiled"};
    study_say(
        d, "**The module itself on the largest part**, milliseconds: eagerly, as one CUDA graph, and by "
           "`torch.compile` with the attention of all heads in one call, as people write it; beside that the largest "
           "part with our graphs, and the fastest plan of `moirai` over all links. What a plan has to beat is the "
           "compiled module, not the fastest part with heads apart: the paper's graph takes attention to pieces "
           "that nobody would run on one device. *In pieces*: what the program does with such a network today, beyond "
           "the paper: the module as people write it, its attention and feed-forward blocks cut in the ratio of the "
           "parts, compiled.");
    study_table(d, "measured-baselines", 3,
                "network|testbed|part|module|CUDA graph|torch.compile|one part, original|one part, coarsened|moirai, "
                "original|moirai, coarsened|moirai, in pieces|best of moirai against torch.compile");
    for (int n = 0; n < networks->n; n++)
        for (int t = 0; t < testbeds->n; t++) {
            const char *network = networks->name[n], *testbed = testbeds->name[t];
            const study_measure *way[3], *plan[4], *pieces = fastest(s, network, testbed, "pieces", "moirai");
            for (int w = 0; w < 3; w++) {
                study_measure_filter f = {.kind = STUDY_MEASURE_BASELINE,
                                          .network = network,
                                          .testbed = testbed,
                                          .how = ways[w],
                                          .round = NONE};
                way[w] = study_measure_find(s, &f);
            }
            if (!way[0])
                continue;
            study_cell(d, "%s", network);
            study_cell(d, "%s", testbed);
            study_cell(d, "%s", way[0]->part);
            for (int w = 0; w < 3; w++)
                cell_ms(d, way[w]);
            for (int g = 0; g < 4; g++) {
                plan[g] = fastest(s, network, testbed, graphs[g % 2], g < 2 ? "single" : "moirai");
                cell_ms(d, plan[g]);
            }
            cell_ms(d, pieces);
            double best = fmin(plan[2] ? plan[2]->took : NAN, plan[3] ? plan[3]->took : NAN);
            best = pieces ? fmin(best, pieces->took) : best;
            study_cell_times(d, way[2] ? way[2]->took / best : NAN);
        }
}

/* ---- verdicts ---- */

typedef struct claims {
    study_document *d;
    const moirai_study *s;
    const study_names *networks, *testbeds, *links, *placers;
} claims;

static const char *verdict(double paper, double ours)
{
    return isnan(ours) ? "not run" : fabs(ours / paper - 1) <= ALIKE ? "as there" : ours > paper ? "more" : "less";
}

/* moirai's first plan against another placer's, over all networks and links. */
static study_range speedup(const claims *c, const char *testbed, const char *graph, const char *placer, bool measured)
{
    study_range r = {0};
    for (int n = 0; n < c->networks->n; n++)
        for (int l = 0; l < c->links->n; l++) {
            const char *network = c->networks->name[n], *link = c->links->name[l];
            study_range_add(&r,
                            ratio(plan_of(c->s, network, testbed, graph, link, placer, 0),
                                  plan_of(c->s, network, testbed, graph, link, "moirai", 0), measured),
                            network);
        }
    return r;
}

static void speedup_claims(const claims *c)
{
    static const char *const over[] = {"placeto", "m-sct", "getf", "single"};
    for (int t = 0; t < c->testbeds->n; t++)
        for (int g = 0; g < 2; g++)
            for (int p = 0; p < 4; p++) {
                const char *testbed = c->testbeds->name[t];
                double paper = moirai_paper_speedup(testbed, g, over[p]);
                study_range planned = speedup(c, testbed, graphs[g], over[p], false);
                study_range ran = speedup(c, testbed, graphs[g], over[p], true);
                if (!ran.n)
                    continue;
                study_cell(c->d, "speed-up over %s, %s, %s", over[p], testbed, graphs[g]);
                study_cell(c->d, paper > 0 ? "up to %.2f" : "-", paper);
                study_cell(c->d, "up to %.2f", planned.most);
                study_cell(c->d, "up to %.2f, mean %.2f, least %.2f", ran.most, study_range_mean(&ran), ran.least);
                study_cell(c->d, "%s", paper > 0 ? verdict(paper, ran.most) : "not claimed");
            }
}

static void coarsening_claims(const claims *c)
{
    for (int t = 0; t < c->testbeds->n; t++) {
        double most[2] = {NAN, NAN}, paper = study_paper_latency_cut(c->testbeds->name[t]);
        for (int n = 0; n < c->networks->n; n++)
            for (int l = 0; l < c->links->n; l++)
                for (int measured = 0; measured < 2; measured++) {
                    const char *at[] = {c->networks->name[n], c->testbeds->name[t], c->links->name[l]};
                    double left = ratio(plan_of(c->s, at[0], at[1], graphs[1], at[2], "moirai", 0),
                                        plan_of(c->s, at[0], at[1], graphs[0], at[2], "moirai", 0), measured);
                    most[measured] = fmax(most[measured], 1 - left); /* of a number and a NAN, the number */
                }
        if (isnan(most[1]) || paper <= 0)
            continue;
        study_cell(c->d, "latency cut by coarsening, %s", c->testbeds->name[t]);
        study_cell(c->d, "up to %.1f %%", 100 * paper);
        study_cell(c->d, "up to %.1f %%", 100 * most[0]);
        study_cell(c->d, "up to %.1f %%", 100 * most[1]);
        study_cell(c->d, "%s", most[1] <= 0 ? "does not hold" : verdict(paper, most[1]));
    }
}

/* In how many cases a claim holds of predicted and of measured times, and what follows. */
static void count_cells(study_document *d, const int holds[2], int cases)
{
    study_cell(d, "in %d of %d", holds[0], cases);
    study_cell(d, "in %d of %d", holds[1], cases);
    study_cell(d, "%s", holds[1] == cases ? "as there" : 2 * holds[1] > cases ? "mostly" : "does not hold");
}

/* In how many cases was nobody's plan faster than moirai's? */
static void best_claim(const claims *c)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_PLAN, .placer = "moirai", .round = 0};
    const study_measure *m, *other;
    int cases = 0, ahead[2] = {0, 0};
    for (size_t from = 0; (m = study_measure_next(c->s, &f, &from));) {
        if (strcmp(m->graph, graphs[0]) && strcmp(m->graph, graphs[1]))
            continue; /* in pieces: no other placer has it */
        double least[2] = {m->predicted, m->took};
        study_measure_filter g = f;
        g.network = m->network, g.testbed = m->testbed, g.graph = m->graph, g.link = m->link, g.placer = NULL;
        for (size_t at = 0; (other = study_measure_next(c->s, &g, &at));) {
            least[0] = fmin(least[0], other->predicted);
            least[1] = fmin(least[1], other->took);
        }
        cases++;
        ahead[0] += m->predicted <= least[0] * (1 + NOISE);
        ahead[1] += m->took <= least[1] * (1 + NOISE);
    }
    if (!cases)
        return;
    study_cell(c->d, "\"consistently outperforms\": no other plan is more than 1 %% faster");
    study_cell(c->d, "always");
    count_cells(c->d, ahead, cases);
}

/* Faster links, more speed-up over one part? */
static void bandwidth_claim(const claims *c)
{
    int cases = 0, more[2] = {0, 0};
    if (c->links->n < 2)
        return;
    for (int n = 0; n < c->networks->n; n++)
        for (int t = 0; t < c->testbeds->n; t++)
            for (int g = 0; g < 2; g++) {
                const char *at[] = {c->networks->name[n], c->testbeds->name[t], graphs[g]};
                const study_measure *fast = plan_of(c->s, at[0], at[1], at[2], "ipc", "moirai", 0);
                const study_measure *slow = plan_of(c->s, at[0], at[1], at[2], "host", "moirai", 0);
                if (!fast || !slow)
                    continue;
                cases++;
                more[0] += fast->predicted <= slow->predicted * (1 + NOISE);
                more[1] += fast->took <= slow->took * (1 + NOISE);
            }
    if (!cases)
        return;
    study_cell(c->d, "higher bandwidth achieves better speed-up: plans by IPC no slower than through the host");
    study_cell(c->d, "yes");
    count_cells(c->d, more, cases);
}

static void verdicts(const claims *c)
{
    study_say(c->d, "**The paper's claims, measured.** First plans, over all networks and links above; *predicted* is "
                    "the same ratio of the plans' own times. A speed-up below 1 is a loss.");
    study_table(c->d, "measured-verdicts", 5, "claim|the paper|predicted here|measured here|verdict");
    speedup_claims(c);
    coarsening_claims(c);
    best_claim(c);
    bandwidth_claim(c);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How far predictions were from runs, of plans that use several parts. */
static void predictions(study_document *d, const moirai_study *s)
{
    for (int round = 0; round < 2; round++) {
        study_measure_filter f = {.kind = STUDY_MEASURE_PLAN, .round = round};
        const study_measure *m;
        double off[MOST_RUNS];
        size_t n = 0;
        for (size_t from = 0; n < MOST_RUNS && (m = study_measure_next(s, &f, &from));)
            if (m->parts > 1)
                off[n++] = fabs(m->predicted / m->took - 1);
        if (!n)
            continue;
        qsort(off, n, sizeof *off, by_size);
        study_say(d, "%s with several parts were off by %.1f %% in the median, by %.1f %% at most (%zu plans).",
                  round ? "Second plans" : "Predictions of first plans", 100 * off[n / 2], 100 * off[n - 1], n);
    }
}

/* ---- memory ---- */

static void memory(study_document *d, const moirai_study *s)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_MEMORY, .round = NONE};
    const study_measure *m;
    if (!study_measure_find(s, &f))
        return;
    study_say(
        d, "**Memory footprints**, megabytes: the sum of operators' weights (what several operators read, as GPT-3's "
           "mask, counts for each), what the plan's "
           "schedule comes to with tensors alive (`--memory peak`), and the most that PyTorch's allocator gave out "
           "on the part (`torch.cuda.max_memory_allocated`, beyond what was there before the plan was loaded). Of "
           "the module itself, eagerly on one part, nothing was computed.");
    study_table(d, "measured-memory", 5,
                "network|testbed|graphs|plan|part|weights|computed|measured|computed / measured");
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));) {
        study_cell(d, "%s", m->network);
        study_cell(d, "%s", m->testbed);
        study_cell(d, "%s", m->graph);
        study_cell(d, "%s", m->placer);
        study_cell(d, "%s", m->part);
        study_cell(d, "%.1f", (double)m->bytes * 1e-6);
        study_cell(d, m->predicted > 0 ? "%.1f" : "-", m->predicted * 1e-6);
        study_cell(d, "%.1f", m->took * 1e-6);
        study_cell_times(d, m->predicted > 0 && m->took > 0 ? m->predicted / m->took : NAN);
    }
}

static void missing(study_document *d, const moirai_study *s)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_NONE, .round = NONE};
    const study_measure *m;
    int n = 0;
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));) {
        if (n++ == 0)
            study_say(d, "What could not be measured, and why:");
        study_item(d, "%s, %s, %s %s %s%s: %s", m->network, m->testbed, m->graph, m->link, m->placer, m->how, m->text);
    }
}

void study_tell_measured(study_document *d, const moirai_study *s)
{
    study_names networks, testbeds, links, placers;
    study_measure_names(&networks, s, STUDY_MEASURE_PLAN, STUDY_BY_NETWORK);
    study_measure_names(&testbeds, s, STUDY_MEASURE_PLAN, STUDY_BY_TESTBED);
    study_measure_names(&links, s, STUDY_MEASURE_PLAN, STUDY_BY_LINK);
    study_measure_names(&placers, s, STUDY_MEASURE_PLAN, STUDY_BY_PLACER);
    claims c = {d, s, &networks, &testbeds, &links, &placers};
    if (!networks.n)
        return;
    study_heading(d, "Measured on parts of a GPU");
    how(d, s);
    verdicts(&c);
    latencies(d, s, &networks, &testbeds, &links, &placers);
    predictions(d, s);
    baselines(d, s, &networks, &testbeds);
    memory(d, s);
    missing(d, s);
}
