/* Random tests draw fewer problems under a sanitizer, which takes five times as long and looks for other faults. */
#ifndef MOIRAI_TEST_SCALE_H
#define MOIRAI_TEST_SCALE_H

#if defined(__SANITIZE_ADDRESS__)
#define TEST_SHARE(n) ((n) / 4 + 1)
#else
#define TEST_SHARE(n) (n)
#endif

#endif
