/* The verdict: what a plan's numbers mean, in a few sentences. Every number in it is one of the analysis.
 *
 * What limits a plan is decided in this order: a device that is busy nearly all the time leaves nothing to gain but
 * work taken from it or a faster device; else the largest share of the critical path names it. */
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "util/util.h"

#define BUSY_SHARE 0.9  /* of the makespan: from here on a device or a port is called the bottleneck */
#define FULL_SHARE 0.95 /* of its memory: from here on a device is called full */

static void say(moirai_analysis *a, const char *format, ...) MOIRAI_PRINTF(2, 3);
static void say(moirai_analysis *a, const char *format, ...)
{
    if (a->n_verdict == MOIRAI_VERDICT_LINES)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(a->verdict[a->n_verdict++], sizeof a->verdict[0], format, args);
    va_end(args);
}

static double share(const moirai_analysis *a, int64_t ns)
{
    return a->plan->makespan_ns > 0 ? (double)ns / (double)a->plan->makespan_ns : 0;
}

static int percent(const moirai_analysis *a, int64_t ns)
{
    return (int)(100 * share(a, ns) + 0.5);
}

static int32_t largest(const int64_t *value, int32_t n)
{
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        if (value[k] > value[best])
            best = k;
    return best;
}

static void say_proof(moirai_analysis *a)
{
    const moirai_plan *plan = a->plan;
    const char *ns = util_human_ns(plan->makespan_ns).s;
    if (plan->lower_bound_ns < 0)
        say(a, "%s; nothing is proven of how much faster another plan could be", ns);
    else if (moirai_plan_is_optimal(plan))
        say(a, "%s, and no plan of this problem is faster: proven", ns);
    else
        say(a, "%s; proven: no plan is faster than %s, so at most %s is left to gain", ns,
            util_human_ns(plan->lower_bound_ns).s, util_human_gap(moirai_plan_gap(plan)).s);
}

static void say_port(moirai_analysis *a, const char *what, const int64_t *busy_ns)
{
    int32_t k = largest(busy_ns, a->n_devices);
    say(a, "limited by moving tensors: %.60s %s %d %% of the time", a->problem->device_name[k], what,
        percent(a, busy_ns[k]));
}

/* The largest share of the path, by what it is. */
static void say_share(moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    int64_t move = a->share_ns[MOIRAI_SHARE_TRANSFER] + a->share_ns[MOIRAI_SHARE_PORT];
    int64_t compute = a->share_ns[MOIRAI_SHARE_COMPUTE], queue = a->share_ns[MOIRAI_SHARE_DEVICE];
    if (move >= compute && move >= queue) {
        int32_t pair = largest(a->path_link_ns, a->n_devices * a->n_devices);
        say(a,
            "limited by moving tensors, which takes %d %% of the critical path, most of it (%d %%) from %.60s to %.60s",
            percent(a, move), percent(a, a->path_link_ns[pair]), p->device_name[pair / a->n_devices],
            p->device_name[pair % a->n_devices]);
    } else if (queue >= compute) {
        int32_t k = largest(a->path_wait_ns, a->n_devices);
        say(a,
            "limited by a queue: operators of the critical path wait %d %% of the time for a device that runs others, "
            "mostly %.60s (%d %%)",
            percent(a, queue), p->device_name[k], percent(a, a->path_wait_ns[k]));
    } else {
        int32_t k = largest(a->path_compute_ns, a->n_devices);
        say(a,
            "limited by a chain of operators, each waiting for the one before: computing is %d %% of the critical "
            "path, most of it on %.60s (%d %%)",
            percent(a, compute), p->device_name[k], percent(a, a->path_compute_ns[k]));
    }
}

static void say_limit(moirai_analysis *a)
{
    int32_t k = largest(a->busy_ns, a->n_devices);
    if (share(a, a->busy_ns[k]) >= BUSY_SHARE)
        say(a,
            "limited by the work on %.60s, which is busy %d %% of the time: only less work there or a faster device "
            "helps",
            a->problem->device_name[k], percent(a, a->busy_ns[k]));
    else if (share(a, a->send_busy_ns[largest(a->send_busy_ns, a->n_devices)]) >= BUSY_SHARE)
        say_port(a, "sends", a->send_busy_ns);
    else if (share(a, a->receive_busy_ns[largest(a->receive_busy_ns, a->n_devices)]) >= BUSY_SHARE)
        say_port(a, "receives", a->receive_busy_ns);
    else
        say_share(a);
}

/* "critical path: 61 % computing, 20 % transferring, ..." */
static void say_path(moirai_analysis *a)
{
    char text[240] = "";
    size_t used = 0;
    for (int s = 0; s < MOIRAI_SHARES; s++)
        if (percent(a, a->share_ns[s]) > 0 && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d %% %s", used ? ", " : "",
                                     percent(a, a->share_ns[s]), moirai_share_name(s));
    if (used)
        say(a, "critical path: %s", text);
}

/* More devices launch more at once, which says little of how fast they compute. */
static void say_launches(moirai_analysis *a)
{
    if (!a->mostly_launches)
        return;
    int64_t most = 0;
    for (int32_t k = 0; k < a->n_devices; k++)
        most = a->device_ops[k] ? UTIL_MAX(most, a->problem->device_launch_ns[k]) : most;
    say(a,
        "most of it, %d %%, is launches (%s an operator), not work: a runtime that launches faster changes the plan "
        "and its gain "
        "(--runtime)",
        percent(a, a->launch_ns), util_human_ns(most).s);
}

static void say_single(moirai_analysis *a)
{
    if (a->single_ns < 0) {
        say(a, "no single device can take the whole network");
        return;
    }
    double speed_up = a->plan->makespan_ns > 0 ? (double)a->single_ns / (double)a->plan->makespan_ns : 1;
    const char *name = a->single_device == MOIRAI_NONE ? "" : a->problem->device_name[a->single_device];
    if (speed_up >= 1.005)
        say(a, "%.2f times as fast as the best single device, %.60s, with %s", speed_up, name,
            util_human_ns(a->single_ns).s);
    else
        say(a, "splitting gains nothing: the best single device, %.60s, takes %s", name, util_human_ns(a->single_ns).s);
}

static void say_measured(moirai_analysis *a)
{
    if (a->timeline && a->plan->makespan_ns > 0)
        say(a, "measured: %s, %.2f times the plan", util_human_ns(a->timeline->latency_ns).s,
            (double)a->timeline->latency_ns / (double)a->plan->makespan_ns);
}

/* Names of the devices in a mask, "A, B and C". */
static void list_devices(char *text, size_t size, const moirai_problem *p, uint64_t mask)
{
    size_t used = 0;
    *text = '\0';
    for (int32_t k = 0; k < p->n_devices && used < size; k++) {
        if (!(mask >> k & 1))
            continue;
        uint64_t rest = k + 1 < 64 ? mask >> (k + 1) : 0;
        used += (size_t)snprintf(text + used, size - used, "%s%.40s",
                                 !used  ? ""
                                 : rest ? ", "
                                        : " and ",
                                 p->device_name[k]);
    }
}

static void say_devices(moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    bool peak = p->memory == MOIRAI_MEMORY_PEAK;
    const int64_t *held = peak ? a->peak_bytes : a->resident_bytes;
    uint64_t full = 0, idle = 0;
    char names[200];
    for (int32_t k = 0; k < p->n_devices; k++) {
        if (!a->device_ops[k])
            idle |= (uint64_t)1 << k;
        if (held[k] > 0 && (double)held[k] >= FULL_SHARE * (double)p->device_memory_bytes[k])
            full |= (uint64_t)1 << k;
    }
    if (full) {
        list_devices(names, sizeof names, p, full);
        say(a, "memory is nearly full on %s", names);
    }
    if (idle) {
        list_devices(names, sizeof names, p, idle);
        say(a, "nothing runs on %s", names);
    }
}

void report_find_verdict(moirai_analysis *a)
{
    say_proof(a);
    if (a->problem->partial) {
        say(a, "the plan alone does not say what depends on what: give its problem to see what limits it");
        say_measured(a);
        return;
    }
    say_limit(a);
    say_path(a);
    say_launches(a);
    say_single(a);
    say_measured(a);
    say_devices(a);
}
