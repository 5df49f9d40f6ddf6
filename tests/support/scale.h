/* Random tests draw fewer problems under a sanitizer, which takes five times as long and looks for other faults. */
#ifndef MOIRAI_TEST_SCALE_H
#define MOIRAI_TEST_SCALE_H

#if defined(__SANITIZE_ADDRESS__)
#define TEST_SHARE(n) ((n) / 4 + 1)
#else
#define TEST_SHARE(n) (n)
#endif

/* Whether these tests have run in another build: what runs much of the same code does so on fewer examples (scripts/check --long: on all). */
#ifndef MOIRAI_TESTS_AGAIN
#define MOIRAI_TESTS_AGAIN 0
#endif
#define TEST_AGAIN(few, all) (MOIRAI_TESTS_AGAIN ? (few) : (all))

#endif
