/* Plans handed to the independent checker (tests/verify/check_plan.py), many in one run of Python. */
#ifndef MOIRAI_TEST_VERIFY_H
#define MOIRAI_TEST_VERIFY_H

#include <moirai/plan.h>

typedef struct verify_batch {
    char *folder;
    int n;
} verify_batch;

void verify_begin(verify_batch *b);
/* Write both and note whether the checker is expected to accept the plan. */
void verify_add(verify_batch *b, const moirai_problem *p, const moirai_plan *plan, bool valid);
/* Number of plans of which the checker thinks otherwise (each is printed), not 0 where there is no python3. Removes the
 * files. */
int verify_run(verify_batch *b);

#endif
