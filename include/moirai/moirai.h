/* libmoirai: placing neural networks on unequal devices. One include for all of it. */
#ifndef MOIRAI_MOIRAI_H
#define MOIRAI_MOIRAI_H

#include <moirai/bound.h>
#include <moirai/budget.h>
#include <moirai/cluster.h>
#include <moirai/coarsen.h>
#include <moirai/cost.h>
#include <moirai/error.h>
#include <moirai/fit.h>
#include <moirai/graph.h>
#include <moirai/milp.h>
#include <moirai/onnx.h>
#include <moirai/placer.h>
#include <moirai/plan.h>
#include <moirai/problem.h>
#include <moirai/prove.h>
#include <moirai/rate.h>
#include <moirai/refine.h>
#include <moirai/report.h>
#include <moirai/schedule.h>
#include <moirai/segments.h>
#include <moirai/shard.h>
#include <moirai/split.h>
#include <moirai/stats.h>
#include <moirai/study.h>
#include <moirai/zoo.h>

#endif
