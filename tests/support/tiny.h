/* Problems written by hand, short enough to work out on paper. */
#ifndef MOIRAI_TEST_TINY_H
#define MOIRAI_TEST_TINY_H

#include <moirai/plan.h>

/* One line each, words separated by spaces:
 *
 *     flow tensor | edge         congestion port | channel | none         memory static | peak; the first is default
 *     device A 100               name and bytes of memory
 *     link 1000000000 0          bytes per second and latency of every channel; this is the default: a byte takes 1 ns
 *     op a 10,20 x y > z:4 w:0   times on the devices ("-": can't run there), tensors read, tensors written with bytes;
 *                                mem=5 and group=g anywhere after the times
 *
 * Fails the test, with the library's message, where that is no problem. */
moirai_problem *tiny_problem(const char *text);
/* The same as JSON; free() it. */
char *tiny_json(const char *text);

int32_t tiny_op(const moirai_problem *p, const char *name); /* fails the test if it is not there */
int32_t tiny_tensor(const moirai_problem *p, const char *name);
/* Devices of all operators by letter, in the order of the problem: "AAB". A static buffer. */
const char *tiny_devices(const moirai_problem *p, const moirai_plan *plan);
/* The plan of a placer with default options, checked; fails the test where there is none. */
moirai_plan *tiny_place(const moirai_problem *p, const char *placer);

#endif
