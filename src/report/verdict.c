/* The verdict: what a plan's numbers mean, in a few sentences. Every number in it is one of the analysis.
 *
 * What limits a plan is decided in this order: a device or a port that is busy nearly all the time; else the largest
 * share of the critical path. It says where the time goes, not what would help most: that takes a search (what_if.c).
 * The shares are shown in whole percents that sum to 100: what rounding leaves goes to those that lost most by it. */
#include "problem/device_set.h"
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "util/util.h"

#define FULL_SHARE 0.95 /* of its memory: from here on a device is called full */
#define MUCH_PERCENT 10 /* of the critical path: worth a word beside what is most of it */

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

/* The shares in percent, rounded so that they sum to 100. */
static void percents(const moirai_analysis *a, int *out)
{
    double exact[MOIRAI_SHARES];
    int left = 100;
    for (int s = 0; s < MOIRAI_SHARES; s++) {
        exact[s] = 100 * share(a, a->share_ns[s]);
        left -= out[s] = (int)exact[s];
    }
    for (; left > 0 && a->plan->makespan_ns > 0; left--) {
        int best = 0;
        for (int s = 1; s < MOIRAI_SHARES; s++)
            if (exact[s] - out[s] > exact[best] - out[best])
                best = s;
        out[best]++;
    }
}

#define MOST_NAMED 8 /* of more devices than a mask has */

/* Names of the devices of a set, "A, B and C"; of many the first, "A, B and 500 more". */
static void list_devices(char *text, size_t size, const moirai_problem *p, const device_set *set)
{
    size_t used = 0;
    int32_t left = device_set_count(set), named = 0;
    bool many = p->n_devices > MOIRAI_MASK_DEVICES && left > MOST_NAMED;
    *text = '\0';
    for (int32_t k = 0; k < p->n_devices && used < size; k++) {
        if (!device_set_has(set, k))
            continue;
        if (many && named++ == MOST_NAMED - 1) {
            snprintf(text + used, size - used, " and %d more", left - MOST_NAMED + 1);
            return;
        }
        bool rest = device_set_next(set, k + 1) != MOIRAI_NONE;
        used += (size_t)snprintf(text + used, size - used, "%s%.40s",
                                 !used  ? ""
                                 : rest ? ", "
                                        : " and ",
                                 p->device_name[k]);
    }
}

static void say_proof(moirai_analysis *a)
{
    const moirai_plan *plan = a->plan;
    const char *ns = util_human_ns(plan->makespan_ns).s;
    if (a->problem->partial && plan->lower_bound_ns >= 0)
        say(a, "%s; the file claims a bound of %s, of which the plan alone shows nothing: give the problem to check it",
            ns, util_human_ns(plan->lower_bound_ns).s);
    else if (plan->lower_bound_ns < 0)
        say(a, "%s; nothing is proven of how much faster another plan could be", ns);
    else if (moirai_plan_is_optimal(plan))
        say(a, "%s, and no plan of this problem is faster: %s", ns, moirai_plan_verdict(plan));
    else
        say(a, "%s; proven: no plan is faster than %s, so at most %s is left to gain", ns,
            util_human_ns(plan->lower_bound_ns).s, util_human_gap(moirai_plan_gap(plan)).s);
}

/* A wide gap says nothing of which side it is on; the search may have an idea. */
static void say_weak(moirai_analysis *a)
{
    char text[256];
    moirai_plan_weak_text(a->plan, text, sizeof text);
    if (*text)
        say(a, "the weak side of the gap is %s", text);
}

static void say_port(moirai_analysis *a, const report_limit *limit)
{
    say(a, "limited by moving tensors: %.60s %s %d %% of the time", a->problem->device_name[limit->device],
        limit->track == REPORT_SEND ? "sends" : "receives", percent(a, limit->busy_ns));
}

/* The largest share of the path, by what it is. */
static void say_share(moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    int64_t move = a->share_ns[MOIRAI_SHARE_TRANSFER] + a->share_ns[MOIRAI_SHARE_PORT];
    int64_t compute = a->share_ns[MOIRAI_SHARE_COMPUTE], queue = a->share_ns[MOIRAI_SHARE_DEVICE];
    int part[MOIRAI_SHARES];
    percents(a, part);
    if (move >= compute && move >= queue) {
        int32_t pair = report_largest(a->path_link_ns, a->n_devices * a->n_devices);
        say(a,
            "limited by moving tensors, which takes %d %% of the critical path, most of it (%d %%) from %.60s to %.60s",
            part[MOIRAI_SHARE_TRANSFER] + part[MOIRAI_SHARE_PORT], percent(a, a->path_link_ns[pair]),
            p->device_name[pair / a->n_devices], p->device_name[pair % a->n_devices]);
    } else if (queue >= compute) {
        int32_t k = report_largest(a->path_wait_ns, a->n_devices);
        say(a,
            "limited by a queue: operators of the critical path wait %d %% of the time for a device that runs others, "
            "mostly %.60s (%d %%)",
            part[MOIRAI_SHARE_DEVICE], p->device_name[k], percent(a, a->path_wait_ns[k]));
    } else {
        int32_t k = report_largest(a->path_compute_ns, a->n_devices);
        char more[160] = "";
        if (part[MOIRAI_SHARE_DEVICE] >= MUCH_PERCENT)
            snprintf(more, sizeof more, "; %d %% of it waits for a device that runs others, mostly %.60s",
                     part[MOIRAI_SHARE_DEVICE], p->device_name[report_largest(a->path_wait_ns, a->n_devices)]);
        say(a,
            "limited by a chain of operators, each waiting for the one before: computing is %d %% of the critical "
            "path, most of it on %.60s (%d %%)%s",
            part[MOIRAI_SHARE_COMPUTE], p->device_name[k], percent(a, a->path_compute_ns[k]), more);
    }
}

static device_set idle_devices(const moirai_analysis *a)
{
    device_set idle = {{0}};
    for (int32_t k = 0; k < a->n_devices; k++)
        if (!a->device_ops[k])
            device_set_add(&idle, k);
    return idle;
}

/* Does one device run everything? */
static bool is_alone(const moirai_analysis *a)
{
    int32_t used = 0;
    for (int32_t k = 0; k < a->n_devices; k++)
        used += a->device_ops[k] > 0;
    return used == 1;
}

/* That a device is busy does not make it the only thing that counts: others idle, and its path may have transfers. */
static void say_work(moirai_analysis *a, int32_t k)
{
    char more[260] = "", names[200];
    int part[MOIRAI_SHARES], moving;
    percents(a, part);
    moving = part[MOIRAI_SHARE_TRANSFER] + part[MOIRAI_SHARE_PORT];
    if (a->n_devices > 1 && is_alone(a)) {
        device_set idle = idle_devices(a);
        list_devices(names, sizeof names, a->problem, &idle);
        snprintf(more, sizeof more, ", while nothing runs on %s", names);
    } else if (2 * a->path_compute_ns[k] < a->share_ns[MOIRAI_SHARE_COMPUTE]) {
        snprintf(more, sizeof more, ", and by a chain of operators elsewhere: %d %% of the critical path is on %.60s",
                 percent(a, a->path_compute_ns[k]), a->problem->device_name[k]);
    } else if (moving > 0) {
        snprintf(more, sizeof more, "; moving tensors is %d %% of the critical path", moving);
    }
    say(a, "limited by the work on %.60s, which is busy %d %% of the time%s", a->problem->device_name[k],
        percent(a, a->busy_ns[k]), more);
}

static void say_limit(moirai_analysis *a)
{
    report_limit limit = report_find_limit(a);
    if (limit.device == MOIRAI_NONE)
        say_share(a);
    else if (limit.track == REPORT_COMPUTE)
        say_work(a, limit.device);
    else
        say_port(a, &limit);
}

/* "critical path: 61 % computing, 20 % transferring, ..." */
static void say_path(moirai_analysis *a)
{
    char text[300] = "";
    size_t used = 0;
    int part[MOIRAI_SHARES];
    int32_t k = report_largest(a->busy_ns, a->n_devices);
    report_limit limit = report_find_limit(a);
    if (is_alone(a) && a->busy_ns[k] == a->plan->makespan_ns) {
        say(a, "critical path: all operators one after another on %.60s, which never waits",
            a->problem->device_name[k]);
        return;
    }
    percents(a, part);
    for (int s = 0; s < MOIRAI_SHARES; s++) {
        if (part[s] > 0 && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d %% %s", used ? ", " : "", part[s],
                                     moirai_share_name(s));
        if (s == MOIRAI_SHARE_COMPUTE && part[s] > 0 && limit.device != MOIRAI_NONE && limit.track == REPORT_COMPUTE &&
            a->path_compute_ns[limit.device] < a->share_ns[s])
            used +=
                (size_t)snprintf(text + used, sizeof text - used, " (%d %% on %.60s)",
                                 percent(a, a->path_compute_ns[limit.device]), a->problem->device_name[limit.device]);
    }
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
        "most of it, %d %%, is launches (%s an operator on average), not work: a runtime that launches faster changes "
        "the plan "
        "and its gain "
        "(--runtime)",
        percent(a, a->launch_ns), util_human_ns(most).s);
}

static void say_single(moirai_analysis *a)
{
    bool pinned = false;
    for (int32_t i = 0; i < a->n_ops && !pinned; i++)
        for (int32_t k = 0; k < a->n_devices; k++)
            pinned |= !moirai_op_may(a->problem, i, k);
    const char *which = pinned ? "single device that may take every operator" : "single device";
    if (a->single_ns < 0) {
        say(a, "no single device %s take the whole network", pinned ? "can, or may," : "can");
        return;
    }
    if (a->problem->n_uncosted) /* say_uncosted has the rest */
        return;
    double speed_up = a->speed_up;
    const char *name = a->single_device == MOIRAI_NONE ? "" : a->problem->device_name[a->single_device];
    if (speed_up >= 1.005)
        say(a, "%.2f times as fast as the best %s, %.60s, with %s", speed_up, which, name,
            util_human_ns(a->single_ns).s);
    else
        say(a, "splitting gains nothing: the best %s, %.60s, takes %s", which, name, util_human_ns(a->single_ns).s);
}

/* "4 Loop, 1 If" */
static void list_texts(char *out, size_t size, int32_t n, const char *const *text)
{
    size_t used = 0;
    *out = '\0';
    for (int32_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", text[i]);
}

static void say_uncosted(moirai_analysis *a)
{
    char names[200];
    if (!a->problem->n_uncosted)
        return;
    list_texts(names, sizeof names, a->problem->n_uncosted, a->problem->uncosted);
    say(a,
        "no speed-up is claimed: nobody knows what %s take; they have the time of a launch and their traffic here: "
        "'moirai profile' measures them",
        names);
}

static void say_assumed(moirai_analysis *a)
{
    char names[200];
    if (!a->problem->n_assumed)
        return;
    list_texts(names, sizeof names, a->problem->n_assumed, a->problem->assumed);
    say(a, "sizes that the model leaves open were assumed: %s; --dim changes them", names);
}

static void say_measured(moirai_analysis *a)
{
    if (a->timeline && a->plan->makespan_ns > 0)
        say(a, "measured: %s, %.2f times the plan", util_human_ns(a->timeline->latency_ns).s,
            (double)a->timeline->latency_ns / (double)a->plan->makespan_ns);
}

static void say_devices(moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    bool peak = p->memory == MOIRAI_MEMORY_PEAK;
    const int64_t *held = peak ? a->peak_bytes : a->resident_bytes;
    device_set full = {{0}}, idle = idle_devices(a);
    char names[200];
    for (int32_t k = 0; k < p->n_devices; k++)
        if (held[k] > 0 && (double)held[k] >= FULL_SHARE * (double)p->device_memory_bytes[k])
            device_set_add(&full, k);
    if (device_set_count(&full)) {
        list_devices(names, sizeof names, p, &full);
        say(a, "memory is nearly full on %s", names);
    }
    if (device_set_count(&idle) && !is_alone(a)) { /* of one that does it all the limit has spoken */
        list_devices(names, sizeof names, p, &idle);
        say(a, "nothing runs on %s", names);
    }
}

/* Static memory is the paper's: tensors are not counted, and a plan may need more than there is (model.md). */
static void say_over(moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    int32_t worst = MOIRAI_NONE;
    for (int32_t k = 0; k < p->n_devices && p->memory == MOIRAI_MEMORY_STATIC; k++) {
        int64_t over = a->peak_bytes[k] - p->device_memory_bytes[k];
        if (over > 0 && (worst == MOIRAI_NONE || over > a->peak_bytes[worst] - p->device_memory_bytes[worst]))
            worst = k;
    }
    a->over_device = worst;
    if (worst != MOIRAI_NONE)
        say(a,
            "warning: %.60s needs %s at its peak and has %s: memory static counts weights and workspace, not the "
            "tensors alive; --memory peak plans for them, too",
            p->device_name[worst], util_human_bytes(a->peak_bytes[worst]).s,
            util_human_bytes(p->device_memory_bytes[worst]).s);
}

void report_find_verdict(moirai_analysis *a)
{
    say_proof(a);
    if (a->problem->partial) {
        say(a, "the plan alone does not say what depends on what: give its problem to see what limits it");
        say_measured(a);
        say_assumed(a);
        return;
    }
    say_over(a);
    say_limit(a);
    say_path(a);
    say_launches(a);
    say_weak(a);
    say_single(a);
    say_uncosted(a);
    say_measured(a);
    say_devices(a);
    say_assumed(a);
}
