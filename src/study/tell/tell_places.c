/* Chapter: where each figure and table of the paper is here, and what became of it; its testbeds and models. */
#include "study/measured.h"

#include <moirai/cluster.h>
#include <moirai/zoo.h>

typedef struct place {
    const char *there, *here, *verdict;
} place;

/* In the paper's order. What is computed stands in its chapter: here is where to look, and what can't be compared. */
static const place places[] = {
    {"Fig. 1, taxonomy of distributed deep learning",
     "docs/concepts.md; pieces of operators docs/shard.md; stages and copies docs/rate.md",
     "model parallelism, as there; tensor parallelism, pipelines and data parallelism (copies, batches cut), too"},
    {"Fig. 2, four steps", "docs/concepts.md, The paper's four steps", "as there"},
    {"Fig. 3, a cluster as a full mesh", "docs/model.md, Devices; `moirai cluster`", "as there"},
    {"Fig. 4, times of operators of four networks on four devices", "below, Times of operators",
     "no numbers in the text; a number of operators are short, as it says"},
    {"Fig. 5, operators that a backend fuses", "docs/concepts.md, Coarsening; `moirai coarsen`", "as there"},
    {"Table I, fusion rules of Eigen", "rules `eigen` (docs/coarsening.md)", "as there"},
    {"Fig. 6, kinds of connections; Fig. 7 and Algorithm 1, GCOF",
     "docs/concepts.md, The equations, and where they are: rows of Algorithm 1; Fig. 7 is a test "
     "(`test_coarsen_example_of_the_paper`)",
     "connections and example as there; of overlapping matches the longer wins, where the paper binds and unbinds"},
    {"Fig. 8, links become nodes", "docs/milp.md; `src/place/milp/milp_dag.c`", "as there"},
    {"Table II, nomenclature; equations (1) to (9)",
     "docs/concepts.md, The equations, and where they are; "
     "symbols of the exported program: docs/milp.md, Other solvers",
     "each equation as there; our own words"},
    {"Table III, testbeds", "below, Testbeds and models; `moirai cluster inter-server`", "the same numbers"},
    {"Table IV, models", "below, Testbeds and models; Coarsening; docs/zoo.md",
     "operators as there, parameters within 8.4 %; AlphaFold2's layers are those that its count implies, not its "
     "true dataflow; coarsened graphs are smaller here, by other rules"},
    {"Fig. 9, bandwidths over 100 s", "averages: below, Testbeds and models; `moirai probe --seconds 100 --series 100`",
     "not published there but for averages"},
    {"Fig. 10, speed-ups, four panels",
     "Latency, below, the same four panels; plans that were run: below, Measured on parts of a GPU",
     "the table below, claim by claim"},
    {"Table V, placement generation time", "Placement generation time, below", "far shorter here"},
    {"text, RQ1 and RQ2: latency, coarsening, generation time", "Where we agree with the paper, and where not",
     "claim by claim"},
    {"text, RQ3: bandwidth and size of models", "Where we agree with the paper, and where not: its last items",
     "claim by claim"},
    {"text, m-SCT takes the least time to place", "Placement generation time, below", "as there, HEFT aside"},
    {"text, future work: a metaheuristic, proofs of a ratio", "docs/concepts.md, docs/theory.md",
     "a search whose every plan has a proven gap; not a ratio for all problems"},
};

/* ---- the paper's two tables of what it ran ---- */

static void testbed_rows(study_document *d, const char *name)
{
    moirai_cluster *c = NULL;
    if (moirai_cluster_open(&c, name)) {
        d->failed = true;
        return;
    }
    for (int k = 0; k < c->n_devices; k++) {
        study_cell(d, "%s", name);
        study_cell(d, "%s", c->device[k].name);
        study_cell(d, "%s", c->device[k].type);
        study_cell(d, "%.0f", (double)c->device[k].memory_bytes / 1e9);
        for (int to = 0; to < 4; to++) {
            double rate = 0;
            for (int l = 0; l < c->n_links; l++)
                if (c->link[l].from == k && c->link[l].to == to)
                    rate = (double)c->link[l].bytes_per_second;
            if (rate > 0)
                study_cell(d, "%.2f", rate / 1e9);
            else
                study_cell(d, "-");
        }
    }
    moirai_cluster_free(c);
}

static void model_rows(study_document *d)
{
    for (int i = 0; i < moirai_zoo_count(); i++) {
        const moirai_zoo_entry *e = moirai_zoo_at(i);
        if (!e->paper_parameters)
            continue;
        study_cell(d, "%s", e->name);
        study_cell(d, "%s", e->paper_parameters);
        study_cell(d, "%d", e->hidden);
        study_cell(d, "%d", e->heads);
        study_cell(d, "%d", e->layers);
        study_cell(d, "%d", e->n_ops);
    }
}

static void testbeds_and_models(study_document *d)
{
    study_heading(d, "Testbeds and models");
    study_say(
        d, "The paper's testbeds as they are built in: memory in GB of 10^9 bytes, bandwidths in GB/s from the row's "
           "device to A, B, C, D (that rows send is our reading of its table). It states no latencies; here they are "
           "0. Of inter-server, GPU servers are joined by 100 Gbit/s InfiniBand; of intra-server, NVLink and "
           "NVSwitch join GPUs within a rack. It drops the first five batches of a measurement, and so does "
           "`bench/paper_measured.py`.");
    study_table(d, "testbeds", 3, "testbed|device|GPU|memory|to A|to B|to C|to D");
    testbed_rows(d, "inter-server");
    testbed_rows(d, "intra-server");
    study_say(d,
              "Its models. Swin sees an image of 1100 x 1100, GPT-3 2,048 tokens, AlphaFold2 128 sequences (so "
              "we read its \"batch size of 128\"); number types, residues and other batches are not stated, here fp32, "
              "256 residues and one sample. For GPT-3 1.3B the "
              "paper's table has 32 layers, but its operators are those of 24 (docs/zoo.md).");
    study_table(d, "models", 1, "network|parameters in the paper|hidden|heads|layers|operators");
    model_rows(d);
}

void study_tell_places(study_document *d, const moirai_study *s)
{
    (void)s;
    study_heading(d, "Where the paper's figures and tables are");
    study_table(d, "places", 3, "in the paper|here|verdict");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        study_cell(d, "%s", places[i].there);
        study_cell(d, "%s", places[i].here);
        study_cell(d, "%s", places[i].verdict);
    }
    testbeds_and_models(d);
}
