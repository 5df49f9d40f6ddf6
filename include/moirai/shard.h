/* Operators cut into unequal pieces: a model of the same results in which several devices share what was one operator
 * (feature "onnx"). docs/shard.md says what can be cut, and how cuts are written. */
#ifndef MOIRAI_SHARD_H
#define MOIRAI_SHARD_H

#include <moirai/budget.h>
#include <moirai/coarsen.h>
#include <moirai/onnx.h>
#include <moirai/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How partial results are added up. */
typedef enum moirai_shard_sum {
    MOIRAI_SHARD_CHAIN, /* each piece is added to the sum of those before it */
    MOIRAI_SHARD_STAR,  /* one operator adds all */
    MOIRAI_SHARD_TREE   /* in pairs, then pairs of pairs */
} moirai_shard_sum;

/* A strip: operators that are cut the same way, so that no tensor crosses between the pieces inside. */
typedef struct moirai_shard_strip {
    const char *name; /* what --cut names; texts belong to the moirai_shards */
    const char *kind; /* "attention", "mlp", "linear", "conv", "embedding", "rows", "batch" */
    const char *unit; /* what sizes count: "heads", "columns", "channels", "groups", "rows", "samples" */
    int64_t units;
    int32_t n_ops;        /* operators in it */
    int32_t class_number; /* strips of one class are alike: a cut of one is a cut of all */
    int64_t flops;        /* of its operators; MOIRAI_UNKNOWN where one of them is unknown */
    int64_t weight_bytes; /* that are cut */
    int32_t n_sums;       /* results that are sums of partial ones */
    int32_t n_joins;      /* results that are put together */
    bool alternative;     /* shares operators with other strips: cut this one or those */
} moirai_shard_strip;

/* An operator with weights that is in no strip, and why; "by rows: ...": a convolution that is in none of rows. */
typedef struct moirai_shard_refusal {
    const char *op, *type, *why;
} moirai_shard_refusal;

/* A model, opened, with all that can be cut in it. */
typedef struct moirai_shards moirai_shards;

/* Opens a model and finds its strips. Fails as moirai_onnx_read does. `options` may be NULL; their texts are used by
 * this call only. O(nodes x strips) at worst. */
MOIRAI_API int moirai_shards_open(moirai_shards **out, const char *path, const moirai_onnx_options *options);
/* NULL is fine. */
MOIRAI_API void moirai_shards_free(moirai_shards *s);
/* How many strips there are: those that share no operator first, then alternatives. */
MOIRAI_API int32_t moirai_shards_count(const moirai_shards *s);
/* The strip of that number, 0 to count - 1. Its texts live as long as `s`. */
MOIRAI_API moirai_shard_strip moirai_shards_strip(const moirai_shards *s, int32_t index);
/* How many operators with weights are in no strip. */
MOIRAI_API int32_t moirai_shards_refusal_count(const moirai_shards *s);
/* The one of that number, with the reason. Its texts live as long as `s`. */
MOIRAI_API moirai_shard_refusal moirai_shards_refusal(const moirai_shards *s, int32_t index);

/* What a cut made. */
typedef struct moirai_shard_report {
    int32_t n_strips, n_pieces; /* that were cut, and pieces of them */
    int32_t n_nodes, n_nodes_before;
    int64_t cut_bytes; /* weights that are in slices now */
    char cut[512];     /* "a/mlp 2,3,5; b/mlp 2,3,5": the first, as many as there is room for */
} moirai_shard_report;

/* The model with `cut` applied ("layer0/mlp: 2:3:5; *attention: 2,4,6") as a file that any ONNX runtime loads. Weights
 * are sliced; above 256 MiB of slices, or where the model has external data, they go to "<path>.data". MOIRAI_EUSAGE,
 * with the strip and the values, for cuts that can't be; then nothing is written. `report` may be NULL. */
MOIRAI_API int moirai_shards_write(const moirai_shards *s, const char *cut, moirai_shard_sum sum, const char *path,
                                   moirai_shard_report *report);
/* The graph that moirai_onnx_read would make of that file, without writing it. No weight is read. */
MOIRAI_API int moirai_shards_graph(moirai_graph **out, const moirai_shards *s, const char *cut, moirai_shard_sum sum,
                                   moirai_shard_report *report);

/* Times of the operators of a cut network `g`, found by their names, on all devices that `measured` has times for: networks
 * as they were profiled, the whole one first, then any cuts of it. A piece's time comes from those of pieces of the same
 * operator, in proportion where only the whole was measured. `n` is at least 1. O(operators x devices x networks). */
MOIRAI_API int moirai_shards_times(moirai_graph *g, const moirai_graph *const *measured, int n);

/* What cuts are judged for. */
typedef struct moirai_shard_choose_options {
    const moirai_cluster *cluster;
    moirai_problem_options problem; /* as for moirai_problem_new */
    const moirai_rules *rules;      /* of fusion; NULL: none */
    moirai_budget budget;           /* of the choice alone; the plan is searched for afterwards */
    /* Networks with measured times, fused by `rules`, as for moirai_shards_times. None: the cost model's. */
    const moirai_graph *const *measured;
    int n_measured;
} moirai_shard_choose_options;

/* A class of strips, and what was found out about it. */
typedef struct moirai_shard_judgement {
    const char *strip;        /* the one that was judged; belongs to the moirai_shards */
    int32_t n_strips;         /* in the class */
    int32_t n_candidates;     /* cuts that were judged */
    int64_t whole_ns, cut_ns; /* of one strip between its neighbours: whole, and in its best cut; MOIRAI_UNKNOWN, as of
                                 rows, which are judged together */
    char sizes[160];          /* of the best cut, "2,4,6 tree" */
    bool cut;                 /* is it in the choice? */
} moirai_shard_judgement;

typedef struct moirai_shard_choice {
    char *cut;        /* for moirai_shards_graph and _write; "" where no cut pays */
    int64_t whole_ns; /* the network placed quickly as it is; MOIRAI_UNKNOWN: it fits on no devices */
    int64_t cut_ns;   /* and as cut; whole_ns where no cut pays */
    int64_t
        least_ns; /* the all-cuts bound: no plan of any cut of the family (docs/shard.md) is shorter, if work could be
                          shared out at will. 0: not known, since the time was over, there are too many sizes, or the
                          choice has rows or the batch, which are not in the family */
    int32_t n_judged;  /* networks that were placed whole for that */
    int32_t n_classes; /* in `judgement` */
    moirai_shard_judgement *judgement;
} moirai_shard_choice;

/* Which strips to cut, and how, so that the plan is as short as can be: a cut is judged by placing what it makes. First one
 * strip of every class between its neighbours, with sizes that balance devices and links, then the network with all cuts
 * that paid there, with images cut by rows, with the batch cut, and whole, which wins where no cut is shorter. Deterministic for an effort; a time
 * limit ends it early with what is known. moirai_shard_choice_free when done. */
MOIRAI_API int moirai_shards_choose(moirai_shard_choice *out, const moirai_shards *s,
                                    const moirai_shard_choose_options *options);
/* Frees what is inside. */
MOIRAI_API void moirai_shard_choice_free(moirai_shard_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
