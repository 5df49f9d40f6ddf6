/* Episodes, batches and the best plan: what the learning placers share. Private.
 *
 * A method plays episodes (devices for everything, judged by the simulator), appraises them against its baseline, and
 * adds the derivative of its loss to a gradient. The driver does the rest: lanes on threads, clipping, Adam with its
 * schedule, budgets, policy files, the plan. */
#ifndef MOIRAI_PLACE_LEARN_TRAIN_H
#define MOIRAI_PLACE_LEARN_TRAIN_H

#include "place/fit.h"
#include "place/learn/judge.h"
#include "place/learn/params.h"
#include "place/learn/real.h"
#include "util/stop.h"
#include "util/util.h"

#include <moirai/placer.h>

typedef struct learn_run learn_run;

typedef struct learn_method {
    const moirai_placer *placer;
    /* A batch is `lanes` x `width` episodes, whatever the number of threads: lanes run beside each other, the episodes
     * of a lane in step, as rows of one matrix. */
    int32_t lanes, width;
    double rate_first, rate_last;       /* Adam's step, falling geometrically */
    double clip;                        /* most norm of a gradient */
    double entropy_first, entropy_last; /* bonus, falling linearly */
    double work;                        /* effort 1 is so many `episode_work` */
    /* Declares the tensors in run->params and makes its state. */
    int (*open)(learn_run *run);
    void (*close)(learn_run *run);
    double (*episode_work)(const learn_run *run);
    /* One lane's episodes, by draws from run->rng[lane] or (greedy) by the likeliest choices. run->length_ns gets
     * makespans. Once run->stop says so it returns at once, with less or nothing played. */
    void (*play)(learn_run *run, int32_t lane, bool greedy);
    /* All lanes have played: advantages. */
    void (*appraise)(learn_run *run);
    /* Adds the loss's derivatives of one lane's episodes. */
    void (*teach)(learn_run *run, int32_t lane, double entropy, learn_real *grad);
} learn_method;

struct learn_run {
    const learn_method *method;
    const moirai_problem *p;
    const moirai_place_options *o;
    place_units *units;
    learn_params params;
    void *state;           /* the method's own */
    learn_judge *judge;    /* per lane */
    util_rng *rng;         /* per lane */
    int64_t *length_ns;    /* per episode of the batch: the makespan in the end */
    learn_real *grad;      /* per lane */
    int32_t *start_device; /* per operator: the placement to begin from */
    int64_t start_ns;      /* its makespan */
    double bonus;          /* entropy's, of this batch */
    bool greedy;
    util_stop stop; /* play ends early once it says so */
};

/* What a batch brought, for learning curves. */
typedef struct learn_news {
    int64_t episodes; /* so far */
    double seconds;
    double mean_ns;  /* over the batch: makespan at the end of an episode, feasible or not */
    int64_t best_ns; /* of a plan that fits, so far; MOIRAI_UNKNOWN: none */
    double norm;     /* of the gradient, before clipping */
} learn_news;
typedef void (*learn_watch_fn)(void *data, const learn_news *news);

/* The placers' place function. `watch` (may be NULL) sees every batch. */
int learn_place(moirai_plan **out, const learn_method *method, const moirai_problem *p, const moirai_place_options *o,
                learn_watch_fn watch, void *data);

/* Memory and policy of a run, without playing: for tests. learn_run_close after failure, too. */
int learn_run_open(learn_run *run, const learn_method *method, const moirai_problem *p, const moirai_place_options *o);
void learn_run_close(learn_run *run);

extern const learn_method learn_placeto, learn_hrl;

#endif
