/* How much of a test is run. */
#ifndef MOIRAI_TEST_SCALE_H
#define MOIRAI_TEST_SCALE_H

#include <stddef.h>

/* Whether these tests have run in another build: what runs much of the same code does so on fewer examples (scripts/check --long: on all). */
#ifndef MOIRAI_TESTS_AGAIN
#define MOIRAI_TESTS_AGAIN 0
#endif
#define TEST_AGAIN(few, all) (MOIRAI_TESTS_AGAIN ? (few) : (all))

/* Random tests draw fewer problems under a sanitizer, which takes five times as long and looks for other faults. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_SHARE(n) ((n) / TEST_AGAIN(8, 4) + 1)
#else
#define TEST_SHARE(n) (n)
#endif

/* Runs a program's cases; where they have run in another build, the first `few` alone: those that run most of its code in the least time. */
#define RUN_CASES_AGAIN(few, cases) run_cases(cases, (few), sizeof(cases) / sizeof *(cases))
struct CMUnitTest;
int run_cases(const struct CMUnitTest *cases, size_t few, size_t all);

#endif
