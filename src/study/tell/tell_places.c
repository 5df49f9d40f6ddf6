/* Chapter: where each figure and table of the paper is here, and what became of it. */
#include "study/measured.h"

typedef struct place {
    const char *there, *here, *verdict;
} place;

/* In the paper's order. What is computed stands in its chapter: here is where to look, and what can't be compared. */
static const place places[] = {
    {"figure: taxonomy of distributed deep learning", "docs/concepts.md, docs/shard.md, docs/rate.md",
     "model parallelism, as there; operators in pieces (tensor parallelism) and pipelines of requests, too"},
    {"figure: four steps", "docs/concepts.md, The paper's four steps", "as there"},
    {"figure: a cluster as a full mesh", "docs/model.md; `moirai cluster`", "as there"},
    {"figure: times of operators of four networks on four devices", "below, Times of operators",
     "drawn without numbers there; most are short, as it says, but for Inception v4 on one GPU of its published "
     "samples"},
    {"figure: operators that a backend fuses", "docs/concepts.md; `moirai coarsen`", "as there"},
    {"table: fusion rules of Eigen", "rules `eigen` (`src/coarsen/rules_shipped.c`)", "as there"},
    {"figure: three kinds of connections; figure and algorithm of GCOF", "docs/coarsening.md; `src/coarsen`",
     "as there"},
    {"figure: links become nodes", "`src/place/milp/milp_dag.c`", "as there"},
    {"table: nomenclature; equations", "docs/concepts.md, The equations, and where they are", "as there"},
    {"table: testbeds", "`moirai cluster inter-server`, `intra-server`", "the same numbers"},
    {"table: models", "Coarsening, below; docs/zoo.md",
     "operators as there; coarsened graphs are smaller here, by other rules"},
    {"figure: bandwidth over 100 s", "links of the table of testbeds; `moirai probe --seconds 100 --series 100`",
     "drawn without numbers there, and not published; averages are"},
    {"figure: speed-ups, four panels",
     "Latency, below, the same four panels; plans that are run: `bench/paper_measured.py`",
     "the table above, claim by claim"},
    {"table: placement generation time", "Placement generation time, below", "the table above; far shorter here"},
    {"text: latency cut by coarsening, generation time left", "Coarsening, below", "the table above"},
    {"text: future work, a metaheuristic with a proven ratio", "docs/concepts.md; docs/theory.md",
     "exists: a search whose every plan has a proven gap"},
};

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
}
