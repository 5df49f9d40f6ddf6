/* Plans handed to the independent checker beside the checkout, many in one run of Python. */
#ifndef MOIRAI_TEST_VERIFY_H
#define MOIRAI_TEST_VERIFY_H

#include <moirai/plan.h>

typedef struct verify_batch {
    char *folder; /* NULL: the checker is not there; nothing is done */
    int n;
} verify_batch;

/* Where ../shared/verify_plan.py or python3 is missing the batch stays empty and verify_run returns -1. */
void verify_begin(verify_batch *b);
/* Write both and note whether the checker is expected to accept the plan. */
void verify_add(verify_batch *b, const moirai_problem *p, const moirai_plan *plan, bool valid);
/* Number of plans of which the checker thinks otherwise (each is printed), -1 where it is missing. Removes the files. */
int verify_run(verify_batch *b);

#endif
