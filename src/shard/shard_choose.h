/* Inside `shard`: judging cuts by placing what they make. Private to shard_judge.c, shard_sizes.c, shard_choose.c,
 * shard_bound.c and rows/shard_rows_choose.c. */
#ifndef MOIRAI_SHARD_SHARD_CHOOSE_H
#define MOIRAI_SHARD_SHARD_CHOOSE_H

#include <moirai/plan.h>

#include "shard/shard.h"

#define SHARD_CUT_TEXT 256 /* of one strip's sizes */
#define SHARD_TRIED 16     /* sizes of one class */

typedef struct shard_judge {
    const moirai_shards *s;
    const moirai_shard_choose_options *o;
    double end_s;          /* of all judging; 0: never */
    moirai_graph *coarse;  /* the network whole, fused */
    moirai_problem *whole; /* and on the cluster */
    util_names *known;     /* its operators before fusion */
} shard_judge;

/* shard_judge_free in every case. */
int shard_judge_init(shard_judge *j, const moirai_shards *s, const moirai_shard_choose_options *o);
void shard_judge_free(shard_judge *j);
bool shard_judge_over(const shard_judge *j);
/* The cut network on the cluster. */
int shard_judge_problem(shard_judge *j, const char *cut, moirai_problem **out);
/* Its makespan, quickly placed; MOIRAI_UNKNOWN where nothing fits. */
int shard_judge_place(shard_judge *j, const moirai_problem *p, double effort, int64_t *ns);
/* Of strip `x` and the operators beside it, cut so or (NULL) whole. */
int shard_judge_strip(shard_judge *j, const shard_strip *x, const char *cut, int64_t *ns);

/* Operators of a fused problem that hold one of the strip's; the caller frees. */
bool *shard_ops_of(const shard_judge *j, const moirai_problem *p, const shard_strip *x);

/* ---- shard_sizes.c ---- sizes worth a look, as --cut takes them. */
int shard_sizes(shard_judge *j, const shard_strip *x, char text[SHARD_TRIED][SHARD_CUT_TEXT]);

/* ---- shard_choose.c ---- */
#define SHARD_CLASSES 64
#define SHARD_DROPS 6 /* classes that are tried without */
typedef struct shard_chooser {
    shard_judge judge;
    moirai_shard_choice *out;
    int32_t n_columns;                       /* classes before those of rows */
    const shard_strip *strip[SHARD_CLASSES]; /* of each class, the one that is judged */
    int32_t number[SHARD_CLASSES];
    char best[SHARD_CLASSES][SHARD_CUT_TEXT];     /* its sizes, "" while whole is best */
    bool pays[SHARD_CLASSES];                     /* on its own */
    moirai_shard_judgement chosen[SHARD_CLASSES]; /* those of the best network so far */
    bool of_family;                               /* which the all-cuts bound is about */
} shard_chooser;
/* The cuts of all classes that are marked, strip by strip; those that rows leave no operator to are left out. */
char *shard_choice_text(const shard_chooser *c);
/* [node] Operators that marked strips of rows have: no other strip may. The caller frees. */
bool *shard_busy(const shard_chooser *c);
bool shard_is_free(const shard_strip *x, const bool *busy);
/* Places the network cut so; takes it if it is the shortest so far. */
int shard_try_whole(shard_chooser *c, const char *cut, int64_t *ns, bool *taken);
/* "2,3,5" of "1:2:3" for that strip. */
int shard_exact_sizes(const moirai_shards *s, const shard_strip *x, const char *text, char *out, size_t size);

/* ---- rows/shard_rows_choose.c ---- */
int shard_try_rows(shard_chooser *c);

/* ---- shard_bound.c ---- */
/* No plan of any cut of the family (docs/shard.md) is shorter; 0 where the time was over, or sizes are too many. */
int shard_bound(shard_judge *j, int64_t *out);

#endif
