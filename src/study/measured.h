/* What was measured on real devices, beside the study's rows: lines of a file, and finding among them. Private. */
#ifndef MOIRAI_STUDY_MEASURED_H
#define MOIRAI_STUDY_MEASURED_H

#include "study/study.h"

typedef enum study_measure_kind {
    STUDY_MEASURE_PARTS,     /* how a testbed was made of a device */
    STUDY_MEASURE_LINK,      /* what its links take */
    STUDY_MEASURE_BASELINE,  /* the module itself on one part */
    STUDY_MEASURE_PLAN,      /* a plan, predicted and measured */
    STUDY_MEASURE_NONE,      /* a plan or baseline that there is not, and why */
    STUDY_MEASURE_MEMORY,    /* what a part held */
    STUDY_MEASURE_CURVE,     /* the best plan of a placer after some time */
    STUDY_MEASURE_OPERATORS, /* how long the operators of a network take on a device */
    STUDY_MEASURES
} study_measure_kind;

typedef struct study_measure {
    study_measure_kind kind;
    char network[32], testbed[24], graph[16], link[16], placer[24], how[16], part[24];
    char text[240];       /* PARTS: the device; NONE: why */
    char list[2][64];     /* PARTS: shares, multiprocessors, as text */
    char date[24];        /* UTC */
    int64_t round;        /* PLAN: 0 by the profile, 1 after a run */
    int64_t operators;    /* PLAN */
    int64_t parts, bytes; /* PLAN: parts with work; MEMORY: of weights */
    double predicted,
        took; /* PLAN: ms; MEMORY: bytes; LINK: us, GB/s; BASELINE, CURVE: ms; OPERATORS: median, mean us */
    double seconds, cpu_s; /* CURVE: since it began, and processor time; OPERATORS: longest us, share of short ones */
} study_measure;

struct moirai_study_measured {
    study_measure *row;
    size_t n, capacity;
};

/* What to look for; NULL and -1 match everything. */
typedef struct study_measure_filter {
    study_measure_kind kind;
    const char *network, *testbed, *graph, *link, *placer, *how;
    int round;
} study_measure_filter;
/* The first match at or after *from, which then stands behind it; NULL where there is none. */
const study_measure *study_measure_next(const moirai_study *s, const study_measure_filter *f, size_t *from);
const study_measure *study_measure_find(const moirai_study *s, const study_measure_filter *f);
/* The words that rows of a kind have in that column, each once, in their order. */
typedef enum study_measure_column { STUDY_BY_NETWORK, STUDY_BY_TESTBED, STUDY_BY_LINK, STUDY_BY_PLACER } study_by;
void study_measure_names(study_names *out, const moirai_study *s, study_measure_kind kind, study_by column);

/* The chapter, and the table of learners over time. */
void study_tell_measured(study_document *d, const moirai_study *s);
void study_tell_curves(study_document *d, const moirai_study *s);

#endif
