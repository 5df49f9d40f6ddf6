/* What most tests need: cmocka's includes, results with their messages, paths, equality of the large objects. */
#ifndef MOIRAI_TEST_CHECK_H
#define MOIRAI_TEST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <moirai/cluster.h>
#include <moirai/graph.h>
#include <moirai/plan.h>
#include <moirai/problem.h>

/* Fails with the library's message unless `call` returns 0. */
#define assert_ok(call) check_ok((call), #call, __FILE__, __LINE__)
void check_ok(int result, const char *call, const char *file, int line);

/* A test that can't run says why: scripts/check lists it. */
#define skip_because(...) (print_message("skipped: " __VA_ARGS__), print_message("\n"), _skip(__FILE__, __LINE__))
#undef skip
#define skip() skip_because("a library that it needs is not built in (%s:%d)", __FILE__, __LINE__)

/* A path for a scratch file of this process (one of eight static buffers). */
char *temporary_path(const char *name);
/* A file of tests/data. */
char *data_path(const char *name);

void assert_graphs_equal(const moirai_graph *a, const moirai_graph *b);
void assert_clusters_equal(const moirai_cluster *a, const moirai_cluster *b);
void assert_problems_equal(const moirai_problem *a, const moirai_problem *b);
/* Length, devices and starts. */
void assert_schedules_equal(const moirai_plan *a, const moirai_plan *b);
/* A network of the zoo, in fp32, on a cluster; times by the roofline model. */
moirai_problem *zoo_problem(const char *network, const char *cluster, moirai_flow flow);

#endif
