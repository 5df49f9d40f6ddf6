/* The paper's experiments, repeated: which there are, running one, and what all of them say together.
 *
 * A study is a list of cases: a network on a cluster, given to a placer, sometimes with a part of the model left out.
 * Running a case fills its row. Rows are kept in a journal, a line each, so that a run that was interrupted goes on
 * where it was. Tables, figures and findings are computed from the rows alone, and stand beside the paper's own numbers
 * (docs/paper.md). All times of plans come from the cost model; what was measured on a GPU is read from a file, and is a
 * chapter of its own. */
#ifndef MOIRAI_STUDY_H
#define MOIRAI_STUDY_H

#include <moirai/placer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what the paper says ---- */

/* One network of the paper's tables of models and of placement generation times. */
typedef struct moirai_paper_network {
    const char *name; /* as the zoo has it */
    int32_t n_ops, n_coarsened;
    double generation_s[2][4]; /* [coarsened][hrl, m-sct, getf, moirai]: on an i7-8700, with Gurobi */
} moirai_paper_network;

/* How many networks the paper has. */
MOIRAI_API int moirai_paper_network_count(void);
/* The network of that number, 0 to moirai_paper_network_count() - 1, in the paper's order. Static. */
MOIRAI_API const moirai_paper_network *moirai_paper_network_at(int index);
/* The network of that name, or NULL. */
MOIRAI_API const moirai_paper_network *moirai_paper_network_find(const char *name);
/* "End-to-end latency speed-up of Moirai over `placer`, up to": placeto, m-sct or getf; 0 where the paper has none. */
MOIRAI_API double moirai_paper_speedup(const char *testbed, bool coarsened, const char *placer);

/* ---- cases and rows ---- */

typedef enum moirai_study_part {
    MOIRAI_STUDY_LATENCY,  /* the paper's tables: networks x testbeds x graphs x placers */
    MOIRAI_STUDY_ABLATION, /* plans made with a part of the model left out, judged by all of it */
    MOIRAI_STUDY_MILP,     /* the paper's program alone against the engine, under equal time */
    MOIRAI_STUDY_RUNTIME,  /* the same plans where launches cost less */
    MOIRAI_STUDY_FLOW,     /* a tensor sent once to a device, or once for every reader there */
    MOIRAI_STUDY_MAP,      /* equal devices x bandwidth: where does placing pay? */
    MOIRAI_STUDY_BATCH,    /* batch x bandwidth */
    MOIRAI_STUDY_PARTS
} moirai_study_part;
/* Its name: "latency", "ablation", "milp", "runtime", "flow", "map", "batch". Static. */
MOIRAI_API const char *moirai_study_part_name(moirai_study_part part);

/* What the placer does not know of. */
typedef enum moirai_study_without {
    MOIRAI_STUDY_WHOLE,
    MOIRAI_STUDY_NO_CONGESTION,    /* any number of transfers at once */
    MOIRAI_STUDY_NO_COMMUNICATION, /* transfers take no time */
    MOIRAI_STUDY_NO_MEMORY,        /* every device holds everything */
    MOIRAI_STUDY_WITHOUTS
} moirai_study_without;

typedef struct moirai_study_case {
    moirai_study_part part;
    char network[32]; /* of the zoo */
    char cluster[64]; /* as moirai_cluster_open takes it */
    char placer[24];
    bool coarsened;
    moirai_study_without without;
    moirai_flow flow;
    moirai_runtime runtime; /* whose launches */
    int32_t devices, gbps;  /* of MAP and BATCH, whose clusters are made up; else 0 */
    int32_t batch;
    double time_limit_s, gap;
} moirai_study_case;

/* A case and what came of it. Plain data: it can travel through a pipe. */
typedef struct moirai_study_row {
    moirai_study_case of;
    bool done;
    int result;        /* 0, or why there is no plan, with `message` */
    char message[240]; /* one line */
    int32_t n_ops;     /* of the problem: after coarsening */
    int32_t n_ops_original;
    int32_t element_bytes;  /* 4; 2 where the weights in fp32 do not fit the cluster together */
    int64_t makespan_ns;    /* under the whole model, whatever the placer knew */
    int64_t planned_ns;     /* what the placer believed */
    int64_t lower_bound_ns; /* proven for the whole model; MOIRAI_UNKNOWN where nothing is */
    int64_t generation_ns;
    int64_t single_ns;    /* all on the best single device; MOIRAI_UNKNOWN where none holds it */
    int64_t unfused_ns;   /* coarsened: the same devices and order, every operator a kernel of its own; else UNKNOWN */
    int64_t excess_bytes; /* by which the fullest device exceeds its memory: such a plan can't run */
    int64_t launch_ns;    /* of the makespan, what launches on the critical path take; 0 where that is not known */
    int64_t transfers, transfer_bytes;
    int64_t process_bytes; /* peak memory of the process that ran it; 0 where that was not measured */
    double load;           /* of the machine when it began (one minute's average) */
    int32_t threads;
    uint64_t seed, costs;
    char version[24], machine[96], date[24]; /* of the library; what ran it; UTC */
} moirai_study_row;

typedef struct moirai_study_options {
    const char *networks; /* names separated by commas; NULL: the paper's eleven */
    const char *testbeds; /* NULL: "inter-server,intra-server" */
    const char *placers;  /* NULL: the paper's and ours, nine */
    const char *parts;    /* NULL: all */
    double time_limit_s;  /* of a placer that searches on the paper's tables; other parts take a share of it. 10 */
    uint64_t seed;        /* 1 */
    int threads;          /* 0: one per core */
} moirai_study_options;

/* The defaults that the fields name. */
MOIRAI_API void moirai_study_options_init(moirai_study_options *o);

typedef struct moirai_study {
    int32_t n;
    moirai_study_row *row; /* n, in the order in which they run; those of one setting are neighbours */
    double time_limit_s;
    uint64_t seed;
    uint64_t costs; /* names what the library makes of networks, coarsening and costs: rows of others do not compare */
    int threads;
    struct moirai_study_measured *measured; /* what moirai_study_measured_read has read; NULL: nothing */
} moirai_study;

/* All cases of these options, none done. MOIRAI_EUSAGE names what is not known. `o` may be NULL. Free with
 * moirai_study_free. */
MOIRAI_API int moirai_study_new(moirai_study **out, const moirai_study_options *o);
/* Frees all of it. NULL is fine. */
MOIRAI_API void moirai_study_free(moirai_study *s);
/* "gpt3-330M inter-server coarsened moirai", for progress. */
MOIRAI_API void moirai_study_case_text(char *text, size_t size, const moirai_study_case *c);

/* ---- running ---- */

/* The problem of a case, with what judging needs; cases that differ in placer, limit or what is left out share it. */
typedef struct moirai_study_setting moirai_study_setting;
/* Makes it: *out is the caller's. Fails where the network or cluster can't be had. O(V K + E). */
MOIRAI_API int moirai_study_setting_new(moirai_study_setting **out, const moirai_study_case *c);
/* Frees it. NULL is fine. */
MOIRAI_API void moirai_study_setting_free(moirai_study_setting *s);
/* Whether the setting serves this case, too. */
MOIRAI_API bool moirai_study_setting_fits(const moirai_study_setting *s, const moirai_study_case *c);
/* Runs the case of `row` within this process and fills the row in, all but process_bytes. The plan is checked against
 * the whole model. A placer without a plan is a row that says why. `interrupt` may be NULL: once it is raised the row
 * stays undone, since a plan that was cut short compares to nothing. */
MOIRAI_API void moirai_study_run(moirai_study_row *row, const moirai_study_setting *s, const moirai_study *study,
                                 const moirai_interrupt *interrupt);

/* Makes the row one that has no plan, for this reason: where its setting can't be had, or its process died. */
MOIRAI_API void moirai_study_fail(moirai_study_row *row, const moirai_study *study, int result, const char *message);

/* ---- the journal ---- */

/* Takes the rows of a journal that are of this study: the same case, limit, seed, costs and version of the library. Later
 * lines replace earlier ones; a last line without an end, as a crash leaves it, is passed over. *taken gets how many
 * rows are done now. No file is an empty journal. MOIRAI_EINPUT names the line. */
MOIRAI_API int moirai_study_journal_read(moirai_study *s, const char *path, int32_t *taken);
/* The same from memory; `label` stands for the path in messages. */
MOIRAI_API int moirai_study_journal_parse(moirai_study *s, const char *data, size_t length, const char *label,
                                          int32_t *taken);
/* Adds a row at the end of the journal, which is made where it is missing. */
MOIRAI_API int moirai_study_journal_add(const moirai_study_row *row, const char *path);

/* The mean load per core of the machines that ran what is done; 0 where nothing is. Well above 1, placers that search had
 * less of their machine than their seconds say, and the rows mislead. */
MOIRAI_API double moirai_study_load(const moirai_study *s);
#define MOIRAI_STUDY_MOST_LOAD 1.2 /* per core, of a page that is to be published */

/* ---- what was measured ---- */

/* Reads what bench/paper_measured.py has measured on real devices (docs/formats.md): the texts then have a chapter of it.
 * Later lines about the same replace earlier ones, also of files that were read before. MOIRAI_EINPUT names the line. */
MOIRAI_API int moirai_study_measured_read(moirai_study *s, const char *path);
/* The same from memory; `label` stands for the path in messages. */
MOIRAI_API int moirai_study_measured_parse(moirai_study *s, const char *data, size_t length, const char *label);

/* ---- what the rows say ---- each text goes to *out (free() it) and ends with a NUL */

/* Tables for a terminal, ours beside the paper's, and the findings. */
MOIRAI_API int moirai_study_text(char **out, size_t *length, const moirai_study *s);
/* The same as Markdown, a whole page; figures are links to `figures`/NAME.svg. */
MOIRAI_API int moirai_study_markdown(char **out, size_t *length, const moirai_study *s, const char *figures);
/* The same as a page of HTML, figures in it, that needs nothing else. */
MOIRAI_API int moirai_study_page(char **out, size_t *length, const moirai_study *s);
/* All rows, tables and findings as JSON (format moirai-study, docs/formats.md). */
MOIRAI_API int moirai_study_json(char **out, size_t *length, const moirai_study *s);
/* All rows that are done, with a header. */
MOIRAI_API int moirai_study_csv(char **out, size_t *length, const moirai_study *s);
/* How many figures the page has. Negative on failure. */
MOIRAI_API int moirai_study_figure_count(const moirai_study *s);
/* Figure `index` as SVG, its name into `name`. */
MOIRAI_API int moirai_study_figure(char **out, size_t *length, char name[32], const moirai_study *s, int index);

#ifdef __cplusplus
}
#endif
#endif
