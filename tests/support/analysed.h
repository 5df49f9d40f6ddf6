/* A problem, a plan for it and the plan's analysis: what tests of reports and exports begin with. */
#ifndef MOIRAI_TEST_ANALYSED_H
#define MOIRAI_TEST_ANALYSED_H

#include <moirai/moirai.h>

typedef struct analysed {
    moirai_problem *p;
    moirai_plan *plan;
    moirai_analysis *a;
} analysed;

/* A random problem in a random mode with a random plan; false where the placer finds none. */
bool analysed_draw(analysed *s, uint64_t seed);
/* That problem, planned by heft. */
void analysed_parse(analysed *s, const char *json, size_t length);
void analysed_close(analysed *s);

/* The plan in one of the export formats; free() it. */
char *analysed_export(const moirai_analysis *a, const char *format, size_t *length);

#endif
