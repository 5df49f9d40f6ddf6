/* A problem as text while there is time. Private. */
#ifndef MOIRAI_PROBLEM_WRITE_H
#define MOIRAI_PROBLEM_WRITE_H

#include <moirai/problem.h>

#include "util/stop.h"

/* As moirai_problem_text; MOIRAI_ELIMIT and no text where `stop` comes first: a million operators on 64 devices take seconds. */
int problem_text_within(char **out, size_t *length, const moirai_problem *p, const util_stop *stop);

#endif
