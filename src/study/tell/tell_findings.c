/* Chapter: where we agree with the paper and where not, and why.
 *
 * First a table: each claim of the paper that has a number, ours beside it, and a verdict computed from both: "as
 * there" within 15 %, else "more" or "less". Then the reasons, with the regime in which the paper's number would hold.
 * Reasons that can be computed (what the bounds exclude, what launches take) are; what we only suppose is said to be
 * supposed. A finding without rows is left out. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ALIKE 0.15

typedef struct scope {
    study_document *d;
    const moirai_study *s;
    study_names networks, clusters, placers;
} scope;

static const moirai_study_row *row(const scope *x, int network, int cluster, bool coarsened, const char *placer)
{
    return study_latency_row(x->s, x->networks.name[network], x->clusters.name[cluster], coarsened, placer);
}

/* ---- the table ---- */

static const char *verdict(double paper, double ours)
{
    return isnan(ours) ? "not run" : fabs(ours / paper - 1) <= ALIKE ? "as there" : ours > paper ? "more" : "less";
}

static void speedup_claims(scope *x, const char *placer, const char *title)
{
    for (int c = 0; c < x->clusters.n; c++)
        for (int coarsened = 0; coarsened < 2; coarsened++) {
            study_range r = {0};
            double paper = moirai_paper_speedup(x->clusters.name[c], coarsened, placer);
            for (int n = 0; n < x->networks.n; n++)
                study_range_add(&r, study_ratio(row(x, n, c, coarsened, placer), row(x, n, c, coarsened, "moirai")),
                                x->networks.name[n]);
            if (paper <= 0)
                continue;
            study_cell(x->d, "speed-up over %s, %s, %s", title, x->clusters.name[c],
                       coarsened ? "coarsened" : "original");
            study_cell(x->d, "up to %.2f", paper);
            if (r.n)
                study_cell(x->d, "up to %.2f, mean %.2f", r.most, study_range_mean(&r));
            else
                study_cell(x->d, "-");
            study_cell(x->d, "%s", verdict(paper, r.n ? r.most : NAN));
        }
}

/* Share of the latency that coarsening takes away; NAN without rows. */
static double cut_of(const scope *x, int network, int cluster, bool unfused)
{
    const moirai_study_row *fine = row(x, network, cluster, false, "moirai");
    const moirai_study_row *coarse = row(x, network, cluster, true, "moirai");
    if (!study_has_plan(fine) || !study_has_plan(coarse) || (unfused && coarse->unfused_ns < 0))
        return NAN;
    return 1 - (double)(unfused ? coarse->unfused_ns : coarse->makespan_ns) / (double)fine->makespan_ns;
}

static double most_cut(const scope *x, int cluster, bool unfused)
{
    double most = NAN;
    for (int n = 0; n < x->networks.n; n++)
        most = fmax(most, cut_of(x, n, cluster, unfused)); /* of a number and a NAN, fmax takes the number */
    return most;
}

static void coarsening_claims(scope *x)
{
    for (int c = 0; c < x->clusters.n; c++) {
        double paper = study_paper_latency_cut(x->clusters.name[c]);
        double fused = most_cut(x, c, false), unfused = most_cut(x, c, true);
        if (paper <= 0 || isnan(fused))
            continue;
        study_cell(x->d, "latency cut by coarsening, %s", x->clusters.name[c]);
        study_cell(x->d, "up to %.1f %%", 100 * paper);
        study_cell(x->d, "up to %.1f %%; without fused kernels %.1f %%", 100 * fused, 100 * unfused);
        study_cell(x->d, "%s", verdict(paper, fused));
    }
}

static double generation_left(const scope *x)
{
    double sum = 0;
    int count = 0;
    for (int n = 0; n < x->networks.n; n++)
        for (int c = 0; c < x->clusters.n; c++) {
            const moirai_study_row *fine = row(x, n, c, false, "moirai"), *coarse = row(x, n, c, true, "moirai");
            if (!study_has_plan(fine) || !study_has_plan(coarse) || fine->generation_ns <= 0)
                continue;
            sum += (double)coarse->generation_ns / (double)fine->generation_ns;
            count++;
        }
    return count ? sum / count : NAN;
}

/* The paper's seconds over ours. */
static void generation_claim(scope *x, const char *placer, const char *title)
{
    study_range r = {0}, paper = {0}, ours = {0};
    for (int n = 0; n < x->networks.n; n++)
        for (int c = 0; c < x->clusters.n; c++)
            for (int coarsened = 0; coarsened < 2; coarsened++) {
                const moirai_study_row *m = row(x, n, c, coarsened, placer);
                double theirs = study_paper_generation_s(x->networks.name[n], coarsened, placer);
                if (!study_has_plan(m) || theirs <= 0)
                    continue;
                study_range_add(&r, theirs * 1e9 / (double)m->generation_ns, NULL);
                study_range_add(&paper, theirs, NULL);
                study_range_add(&ours, (double)m->generation_ns * 1e-9, NULL);
            }
    if (!r.n)
        return;
    study_cell(x->d, "generation time of %s", title);
    study_cell(x->d, "%.0f s to %.0f s", paper.least, paper.most);
    study_cell(x->d, "%.3f s to %.1f s", ours.least, ours.most);
    study_cell(x->d, "1/%.0f in the mean", study_range_mean(&r));
}

static void table(scope *x)
{
    double left = generation_left(x);
    study_table(x->d, "findings", 4, "what|the paper|here|verdict");
    speedup_claims(x, "placeto", "Placeto");
    speedup_claims(x, "m-sct", "m-SCT");
    speedup_claims(x, "getf", "GETF");
    coarsening_claims(x);
    if (!isnan(left)) {
        study_cell(x->d, "generation time of Moirai left after coarsening, mean");
        study_cell(x->d, "%.1f %%", 100 * STUDY_PAPER_GENERATION_LEFT);
        study_cell(x->d, "%.1f %%", 100 * left);
        study_cell(x->d, "%s", verdict(STUDY_PAPER_GENERATION_LEFT, left));
    }
    generation_claim(x, "hrl", "HRL");
    generation_claim(x, "m-sct", "m-SCT");
    generation_claim(x, "getf", "GETF");
    generation_claim(x, "moirai", "Moirai");
}

/* ---- reasons ---- */

/* Speed-ups over Placeto on one testbed: where one device holds the network, and where none does; and what the bounds
 * leave to any plan: best single device over the bound. */
typedef struct placeto_ranges {
    study_range held, apart, gain, proven;
} placeto_ranges;

static placeto_ranges placeto_on(const scope *x, int cluster)
{
    placeto_ranges p = {0};
    for (int n = 0; n < x->networks.n; n++)
        for (int coarsened = 0; coarsened < 2; coarsened++) {
            const moirai_study_row *m = row(x, n, cluster, coarsened, "moirai");
            double over = study_ratio(row(x, n, cluster, coarsened, "placeto"), m);
            if (!study_has_plan(m))
                continue;
            study_range_add(m->single_ns > 0 ? &p.held : &p.apart, over, x->networks.name[n]);
            study_range_add(&p.gain, study_gain(m), x->networks.name[n]);
            if (m->single_ns > 0 && m->lower_bound_ns > 0)
                study_range_add(&p.proven, (double)m->single_ns / (double)m->lower_bound_ns, x->networks.name[n]);
        }
    return p;
}

static void placeto(scope *x)
{
    bool begun = false;
    for (int c = 0; c < x->clusters.n; c++) {
        placeto_ranges p = placeto_on(x, c);
        double paper = fmax(moirai_paper_speedup(x->clusters.name[c], false, "placeto"),
                            moirai_paper_speedup(x->clusters.name[c], true, "placeto"));
        if (!p.held.n && !p.apart.n)
            continue;
        if (!begun)
            study_item(
                x->d,
                "**Placeto.** Ours begins with everything on the fastest device and keeps the best placement that it "
                "ever simulated, not the last; where that device does not hold the network it must first find one that "
                "fits, and can end behind the one device that would do. It trained for %g s here. The paper states no "
                "time for its Placeto; its "
                "table of generation times has HRL instead, with hours, and no speed-up over that.",
                x->s->time_limit_s);
        begun = true;
        if (p.held.n && p.proven.n)
            study_item(
                x->d,
                "On %s, where one device holds the network, the speed-up over Placeto is at most %.2f (%s) and the "
                "gain over one device at most %.2f; the bounds exclude a gain of more than %.2f for every plan. %s",
                x->clusters.name[c], p.held.most, p.held.who, p.gain.most, p.proven.most,
                paper > p.proven.most ? "The paper's most, whose network it does not name, is beyond that: if one "
                                        "device held it, its Placeto was slower than one device, or its devices differ "
                                        "from the cost model."
                : paper > p.held.most ? "The paper's most is not excluded by these bounds, but no plan here comes near."
                                      : "The paper's most is reached.");
        if (p.apart.n)
            study_item(
                x->d,
                "On %s, where no single device holds the network, a learner must first find placements that fit, and "
                "the speed-up over Placeto is %.2f to %.2f: %s",
                x->clusters.name[c], p.apart.least, p.apart.most,
                p.apart.most >= paper ? "the regime in which numbers as the paper's appear."
                                      : "less than the paper's, too.");
    }
}

/* How much a plan made without congestion loses, by testbed: what a baseline that ignores it would lose. */
static void ablated(scope *x)
{
    for (int c = 0; c < x->clusters.n; c++) {
        study_range without[MOIRAI_STUDY_WITHOUTS] = {{0}};
        for (int32_t i = 0; i < x->s->n; i++) {
            const moirai_study_row *r = &x->s->row[i];
            if (r->of.part == MOIRAI_STUDY_ABLATION && !strcmp(r->of.cluster, x->clusters.name[c]))
                study_range_add(&without[r->of.without],
                                study_ratio(r, study_latency_row(x->s, r->of.network, r->of.cluster, true, "moirai")),
                                r->of.network);
        }
        const study_range *n = &without[MOIRAI_STUDY_NO_CONGESTION], *m = &without[MOIRAI_STUDY_NO_COMMUNICATION];
        if (n->n && m->n)
            study_item(
                x->d,
                "On %s a plan made without congestion takes %.2f to %.2f times as long as one made with it, and one "
                "made without communication %.2f to %.2f times (chapter Ablation): the paper's argument for its "
                "model holds. A baseline that ignores congestion would lose that much; the paper has up to %.2f over "
                "m-SCT and %.2f over GETF there.",
                x->clusters.name[c], n->least, n->most, m->least, m->most,
                moirai_paper_speedup(x->clusters.name[c], true, "m-sct"),
                moirai_paper_speedup(x->clusters.name[c], true, "getf"));
    }
}

static void others(scope *x)
{
    study_range held = {0}, apart = {0}, heft = {0};
    int rows = 0, beaten = 0;
    for (int n = 0; n < x->networks.n; n++)
        for (int c = 0; c < x->clusters.n; c++)
            for (int coarsened = 0; coarsened < 2; coarsened++) {
                const moirai_study_row *m = row(x, n, c, coarsened, "moirai");
                bool worse = false;
                if (!study_has_plan(m))
                    continue;
                for (int p = 0; p < x->placers.n; p++)
                    worse = worse || study_ratio(row(x, n, c, coarsened, x->placers.name[p]), m) < 1;
                study_range_add(&heft, study_ratio(row(x, n, c, coarsened, "heft"), m), x->networks.name[n]);
                study_range_add(m->single_ns > 0 ? &held : &apart, study_ratio(row(x, n, c, coarsened, "m-sct"), m),
                                x->networks.name[n]);
                beaten += worse;
                rows++;
            }
    if (!rows)
        return;
    study_item(
        x->d, "**m-SCT and GETF** schedule here with the true times of unequal devices and on simulated ports, so that "
              "they see congestion while they place (docs/placers.md says what was changed and why). That should "
              "make them stronger than a plain version, and the speed-ups smaller.");
    ablated(x);
    if (held.n && apart.n)
        study_item(
            x->d,
            "Over m-SCT the speed-up is %.2f in the mean, %.2f at most (%s), where one device holds the network, and "
            "%.2f in the mean, %.2f at most (%s), where none does.",
            study_range_mean(&held), held.most, held.who, study_range_mean(&apart), apart.most, apart.who);
    if (heft.n)
        study_item(x->d,
                   "**\"Consistently outperforms\"**: in %d of %d rows no other placer had a shorter plan than "
                   "`moirai`; that it "
                   "is no worse than the list schedulers is by construction, since it begins from their plans. HEFT, "
                   "which the "
                   "paper leaves out, comes within %.0f %% in the mean (%.2f times at most, %s), in milliseconds. A "
                   "comparison "
                   "without it flatters every method.",
                   rows - beaten, rows, 100 * (study_range_mean(&heft) - 1), heft.most, heft.who);
}

static void coarsening(scope *x)
{
    double fused = NAN, unfused = NAN, launches = 0;
    int count = 0;
    for (int c = 0; c < x->clusters.n; c++) {
        fused = fmax(fused, most_cut(x, c, false));
        unfused = fmax(unfused, most_cut(x, c, true));
        for (int n = 0; n < x->networks.n; n++) {
            const moirai_study_row *m = row(x, n, c, false, "moirai");
            if (!study_has_plan(m))
                continue;
            launches += (double)m->launch_ns / (double)m->makespan_ns;
            count++;
        }
    }
    if (isnan(fused))
        return;
    study_item(
        x->d,
        "**Coarsening.** Up to %.0f %% here, up to 5.7 %% in the paper, because a fused operator here is one "
        "kernel: its launches and the traffic inside are gone (launches on the critical path are %.0f %% of the "
        "original graphs' makespans in the mean), and our rules fuse more. Carried out without fusion (as PyTorch "
        "1.12 would run them, we suppose) the same placements %s: coarsening alone makes %s faster, and what the paper "
        "gains must be of kernels that are fused, or of a solver "
        "that gets further on smaller graphs.",
        100 * fused, 100 * launches / count,
        unfused < 0 ? "lengthen the latency in every row" : "shorten the latency, too",
        unfused < 0 ? "no plan" : "plans");
    study_item(x->d,
               "**Generation time after coarsening** can't be compared well: `moirai` ends when its plan is proven to "
               "be good enough, which coarsened graphs get to sooner, or when its time is up; how good the paper's "
               "solver had to become is not said.");
}

static void generation(scope *x)
{
    const moirai_study_row *m = NULL;
    for (int n = 0; n < x->networks.n && !m; n++)
        m = row(x, n, 0, false, "m-sct");
    if (!m)
        return;
    study_item(
        x->d,
        "**Generation times** of m-SCT and GETF are far below the paper's. Their linear programmes are solved in "
        "pieces, equal layers once, and without symmetric copies (docs/placers.md); GETF's is not a mixed-integer "
        "program here (`--mode milp` would be). `hrl` takes the time that it is given, `moirai` "
        "ends at its goal or with its time.");
}

static void program(scope *x)
{
    study_filter f = {STUDY_ANY};
    const moirai_study_row *r;
    int32_t from = 0;
    f.part = MOIRAI_STUDY_MILP;
    f.placer = "milp";
    while ((r = study_next(x->s, &f, &from)))
        if (r->result) {
            study_item(
                x->d,
                "**Solving the program itself** at the paper's sizes could not be repeated: \"%s\". The paper reports "
                "minutes with Gurobi, for graphs several times as large, and neither a gap nor the number of rows. "
                "What it calls optimal is then optimal up to the solver's gap, which it does not say. Here every plan "
                "has a proven gap, which the engine finds without the program.",
                r->message);
            return;
        }
}

/* ---- the paper's discussion ---- */

static void bandwidth(scope *x)
{
    study_range slow = {0}, fast = {0};
    for (int32_t i = 0; i < x->s->n; i++) {
        const moirai_study_row *r = &x->s->row[i];
        if (r->done && r->of.part == MOIRAI_STUDY_MAP && r->of.gbps <= 1)
            study_range_add(&slow, study_gain(r), r->of.network);
        if (r->done && r->of.part == MOIRAI_STUDY_MAP && r->of.gbps >= 600)
            study_range_add(&fast, study_gain(r), r->of.network);
    }
    if (slow.n && fast.n)
        study_item(
            x->d,
            "**Higher bandwidth, better speed-up**: %s. On equal V100s the plan is %.2f times as fast as one device at "
            "1 "
            "Gbit/s and %.2f times at 600 Gbit/s in the mean, %.2f at most (%s). The paper compares its two testbeds, "
            "and over m-SCT its own most is larger on the slower one (1.77 to 1.70, coarsened 1.90 to 1.74).",
            study_range_mean(&fast) > study_range_mean(&slow) ? "so it is" : "not here", study_range_mean(&slow),
            study_range_mean(&fast), fast.most, fast.who);
}

/* On coarsened graphs. */
static double over_placeto(scope *x, int network, int cluster)
{
    const moirai_study_row *placeto = row(x, network, cluster, true, "placeto"),
                           *moirai = row(x, network, cluster, true, "moirai");
    return study_has_plan(placeto) && study_has_plan(moirai)
               ? (double)placeto->makespan_ns / (double)moirai->makespan_ns
               : NAN;
}

static void add_over_placeto(int *more, int *all, double small, double large)
{
    if (isnan(small) || isnan(large))
        return;
    *more += large > small;
    *all += 1;
}

/* Of each family and testbed: does the largest gain more than the smallest? Networks come smallest first. */
static void size(scope *x)
{
    char text[800] = "";
    size_t used = 0;
    int more = 0, all = 0, learner_more = 0, learner_all = 0;
    for (int c = 0; c < x->clusters.n; c++)
        for (int n = 0; n < x->networks.n; n++) {
            const char *name = x->networks.name[n];
            size_t family = strcspn(name, "-");
            int last = n;
            if (n > 0 && !strncmp(x->networks.name[n - 1], name, family + 1))
                continue;
            while (last + 1 < x->networks.n && !strncmp(x->networks.name[last + 1], name, family + 1))
                last++;
            add_over_placeto(&learner_more, &learner_all, over_placeto(x, n, c), over_placeto(x, last, c));
            while (last > n && isnan(study_gain(row(x, last, c, true, "moirai"))))
                last--;
            double small = study_gain(row(x, n, c, true, "moirai")),
                   large = study_gain(row(x, last, c, true, "moirai"));
            if (last == n || isnan(small) || isnan(large) || used >= sizeof text)
                continue;
            more += large > small;
            all++;
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %.2f, %s %.2f (%s)", used ? "; " : "", name,
                                     small, x->networks.name[last], large, x->clusters.name[c]);
        }
    if (all)
        study_item(
            x->d,
            "**Larger models, better acceleration**: in %d of %d cases, as the gain over one device on coarsened "
            "graphs "
            "tells (the largest that one device holds): %s; in %d of %d, as the speed-up over Placeto tells, which the "
            "paper takes, where learners that were given the same seconds are further off for larger graphs. More "
            "heads are more work side by side, "
            "but hidden sizes grow as well, and with them the tensors that have to be sent; we suppose that this is "
            "why. On "
            "inter-server only the T4 holds more than 11 GB: for such networks one device is a slow one, and a gain "
            "over it "
            "is one of memory.",
            more, all, text, learner_more, learner_all);
}

/* What sending a tensor once per reader costs. */
static void flow(scope *x)
{
    study_range edge = {0}, tensor = {0};
    for (int32_t i = 0; i < x->s->n; i++) {
        const moirai_study_row *r = &x->s->row[i];
        study_filter f = {STUDY_ANY};
        if (r->of.part != MOIRAI_STUDY_FLOW || !r->of.devices || !study_has_plan(r))
            continue;
        f.part = MOIRAI_STUDY_MAP;
        f.network = r->of.network;
        f.cluster = r->of.cluster;
        study_range_add(&edge, study_gain(r), r->of.network);
        study_range_add(&tensor, study_gain(study_find(x->s, &f)), r->of.network);
    }
    if (edge.n && tensor.n)
        study_item(
            x->d,
            "**The paper's flow.** Its program sends a tensor once for every operator that reads it, also to the same "
            "device. On equal V100s with 600 Gbit/s that makes the gain over one device %.2f in the mean, %.2f at "
            "most; a runtime that sends it once to each device has %.2f in the mean, %.2f at most (%s). The paper's "
            "model understates what placing gives such a runtime.",
            study_range_mean(&edge), edge.most, study_range_mean(&tensor), tensor.most, tensor.who);
}

/* What is left of the gain over one device when launches cost next to nothing. */
static void launches(scope *x)
{
    study_range eager = {0}, graph = {0};
    for (int32_t i = 0; i < x->s->n; i++) {
        const moirai_study_row *r = &x->s->row[i];
        if (r->of.part != MOIRAI_STUDY_RUNTIME || r->of.runtime != MOIRAI_RUNTIME_GRAPH ||
            strcmp(r->of.placer, "moirai") || !study_has_plan(r))
            continue;
        study_range_add(&graph, study_gain(r), r->of.network);
        study_range_add(&eager, study_gain(study_latency_row(x->s, r->of.network, r->of.cluster, false, "moirai")),
                        r->of.network);
    }
    if (eager.n && graph.n)
        study_item(
            x->d,
            "**Launches.** On original graphs the gain over one device is %.2f in the mean with the launches of an "
            "eager framework, as the paper had them, and %.2f with those of a CUDA graph: a part of the paper's "
            "speed-ups may be devices that launch side by side.",
            study_range_mean(&eager), study_range_mean(&graph));
}

static void limits(scope *x)
{
    study_item(
        x->d,
        "**What the paper does not say**, and how it was closed here: latencies in milliseconds (ours come from the "
        "cost "
        "model); which fusion rules were used beyond three examples (rules `onnxruntime`, docs/coarsening.md); "
        "bandwidths "
        "over time (their averages); the solver's gap (1 %% here); which testbed the generation times are of (both are "
        "shown); number types, batches, residues, latencies of links, the direction of its table of bandwidths "
        "(Testbeds and models, above). GPT-3 13B and Swin 13B do not fit inter-server in fp32 and are placed in fp16 "
        "there: the column \"type\" says so. Its text forbids two transfers on one channel at a time, its equation "
        "two at one device: ours is the equation's (docs/model.md). It gives Inception v4 490 operators in one place "
        "and 492 in another.");
}

void study_tell_findings(study_document *d, const moirai_study *s)
{
    scope x = {.d = d, .s = s};
    study_networks(&x.networks, s, MOIRAI_STUDY_LATENCY);
    study_clusters(&x.clusters, s, MOIRAI_STUDY_LATENCY);
    study_placers(&x.placers, s, MOIRAI_STUDY_LATENCY);
    if (!x.networks.n)
        return;
    study_heading(d, "Where we agree with the paper, and where not");
    study_say(
        d,
        "The numbers of the paper's text on latency, coarsening and generation time, ours beside them; the tables of "
        "the chapters below have the rest. *As there*: within 15 %%. Its introduction says \"up to 1.87x\" over the "
        "heuristic-based solution, its results 1.90 over m-SCT: the results' are taken.");
    table(&x);
    study_say(d, "Why, and in which regime the paper's would hold:");
    placeto(&x);
    others(&x);
    coarsening(&x);
    generation(&x);
    program(&x);
    bandwidth(&x);
    size(&x);
    launches(&x);
    flow(&x);
    limits(&x);
}
