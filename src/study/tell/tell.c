/* The whole document: how it was made, then its chapters. */
#include "study/measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct provenance {
    int32_t done, failed;
    const char *first_date, *last_date, *machine;
    bool machines; /* more than one */
    double load_sum, load_most;
    int32_t least_threads, most_threads;
} provenance;

static provenance gather(const moirai_study *s)
{
    provenance p = {0};
    for (int32_t i = 0; i < s->n; i++) {
        const moirai_study_row *r = &s->row[i];
        if (!r->done)
            continue;
        p.failed += r->result != 0;
        p.first_date = !p.done || strcmp(r->date, p.first_date) < 0 ? r->date : p.first_date;
        p.last_date = !p.done || strcmp(r->date, p.last_date) > 0 ? r->date : p.last_date;
        p.machines = p.machines || (p.machine && strcmp(p.machine, r->machine));
        p.machine = r->machine;
        p.load_sum += r->load;
        p.load_most = fmax(p.load_most, r->load);
        p.least_threads = !p.done || r->threads < p.least_threads ? r->threads : p.least_threads;
        p.most_threads = r->threads > p.most_threads ? r->threads : p.most_threads;
        p.done++;
    }
    return p;
}

/* Does it have plans that were run? */
static bool ran(const moirai_study *s)
{
    return study_measure_find(s, &(study_measure_filter){.kind = STUDY_MEASURE_PLAN, .round = -1}) != NULL;
}

static void introduction(study_document *d, const moirai_study *s)
{
    provenance p = gather(s);
    study_say(d,
              "The experiments of *Moirai: Towards Optimal Placement for Distributed Inference on Heterogeneous "
              "Devices*, run by `moirai bench paper`, with the paper's numbers beside ours. This page was written by "
              "that command.");
    study_say(
        d,
        "**Times of plans come from the fitted cost model** (docs/cost-models.md), with the launches of an eager "
        "framework, as the paper's PyTorch 1.12: %s. The paper's latencies were "
        "measured on real devices. So absolute times can't be compared, and ratios only with care; what both have "
        "in common is the model of the problem: flow edge, one transfer per port at a time, memory as a sum over "
        "operators (of weights and workspace here; the paper's footprints are a profiler's). Every plan was checked by "
        "the library's checker.",
        ran(s) ? "nothing but the chapter *Measured on parts of a GPU* was measured on one"
               : "nothing here was measured on a GPU");
    if (!p.done) {
        study_say(d, "No experiment is done yet.");
        return;
    }
    double load = moirai_study_load(s);
    study_say(
        d,
        "**How made.** moirai %s, %s to %s UTC, on %s%s, %d%s threads, seed %llu, a limit of %g s for placers that "
        "search. %d of %d experiments are done; %d of these have no plan, and say why. The machine's load average was "
        "%.1f in the mean and %.1f at most, %.2f per core in the mean%s.",
        MOIRAI_VERSION, p.first_date, p.last_date, p.machines ? "several machines, the last " : "", p.machine,
        p.most_threads, p.least_threads < p.most_threads ? " or fewer" : "", (unsigned long long)s->seed,
        s->time_limit_s, p.done, s->n, p.failed, p.load_sum / p.done, p.load_most, load,
        load > MOIRAI_STUDY_MOST_LOAD ? ": placers that search had less of the machine than their seconds say, so that "
                                        "gaps are wider and generation times longer than on a quiet one"
                                      : "");
}

static void again(study_document *d, const moirai_study *s)
{
    study_heading(d, "Running it again");
    study_say(
        d,
        "`moirai bench paper -o DIR --time-limit %g` runs everything, about 35 minutes on two cores with 10 s, and "
        "`--models gpt3-330M,alphafold2-87M` two networks in less than 10. After an interruption the same command goes "
        "on where it was: DIR/journal.jsonl has a line per experiment. `--parts`, `--testbeds` and `--placers` choose; "
        "`--show` runs nothing and writes what is there; `--markdown FILE` writes this page, `--measured FILE` adds "
        "what "
        "`bench/paper_measured.py` measured. Rows with all their numbers are in DIR/results.json and DIR/results.csv "
        "(docs/formats.md).",
        s->time_limit_s);
}

int study_document_make(study_document *d, const moirai_study *s)
{
    introduction(d, s);
    study_tell_places(d, s);
    study_tell_findings(d, s);
    study_tell_measured(d, s);
    study_tell_latency(d, s);
    study_tell_generation(d, s);
    study_tell_curves(d, s);
    study_tell_coarsening(d, s);
    study_tell_ablation(d, s);
    study_tell_sensitivity(d, s);
    study_tell_operators(d, s);
    again(d, s);
    return d->failed ? moirai_error(MOIRAI_EFAIL, "out of memory") : 0;
}
