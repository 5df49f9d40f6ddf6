/* Placements judged by the simulator, and the best of them kept. Private. */
#ifndef MOIRAI_PLACE_LEARN_JUDGE_H
#define MOIRAI_PLACE_LEARN_JUDGE_H

#include <moirai/schedule.h>

typedef struct learn_judge {
    const moirai_problem *p;
    moirai_sim *sim;
    int64_t best_ns;                    /* MOIRAI_UNKNOWN: none fitted yet */
    int32_t *best;                      /* its devices */
    int64_t nearest_excess, nearest_ns; /* of what fitted least badly; MOIRAI_UNKNOWN: none */
    int32_t *nearest;
} learn_judge;

typedef struct learn_verdict {
    int64_t makespan_ns;
    int64_t excess_bytes; /* 0: it fits */
} learn_verdict;

int learn_judge_open(learn_judge *j, const moirai_problem *p);
void learn_judge_close(learn_judge *j);
/* Dispatch by upward ranks; op_device holds allowed devices, groups undivided. O((V + E) log V). */
learn_verdict learn_judge_try(learn_judge *j, const int32_t *op_device);
/* What `from` found, where it is better. */
void learn_judge_merge(learn_judge *j, const learn_judge *from);

#endif
