/* Many requests in flight: plans for the best rate, their bound, their simulation (docs/rate.md).
 *
 * A server wants many inferences per second, not one as early as possible. At most N requests are in flight; the period is the mean time between two
 * finished requests in the long run, and 1 / period the rate. A plan may have several copies of the network that work at the same time. */
#ifndef MOIRAI_RATE_H
#define MOIRAI_RATE_H

#include <moirai/placer.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOIRAI_MOST_IN_FLIGHT 1024

/* What the simulator says of a plan for many requests. */
typedef struct moirai_rate_figures {
    int64_t period_ns;  /* rounded up */
    bool exact;         /* the stream comes back to an earlier state; else a mean over `requests` */
    int64_t requests;   /* that the period was taken over */
    int64_t latency_ns; /* of the slowest request in the steady state */
    int64_t mean_latency_ns;
    int64_t load_ns;              /* the largest load: no period is shorter */
    int32_t n_resources;          /* devices, then ports or channels (MOIRAI_CONGESTION_*) */
    int64_t *resource_load_ns;    /* per request */
    int64_t *copy_requests;       /* of `requests`, per copy */
    int64_t *device_memory_bytes; /* weights and workspaces of all copies, once */
    int64_t *device_peak_bytes;   /* these, and the most bytes of tensors of all requests at once */
} moirai_rate_figures;

typedef struct moirai_rate_options {
    moirai_budget budget;         /* effort, time limit, threads, seed, interrupt, progress */
    double gap;                   /* stop when proven within this share of the best; default 0.01 */
    int32_t in_flight;            /* requests at most, 1 .. MOIRAI_MOST_IN_FLIGHT; 0: twice the devices */
    int64_t latency_limit_ns;     /* of a request in the steady state; 0: none */
    const moirai_plan *start;     /* a plan of one request to begin with, or NULL; not owned */
    const char *certificate_path; /* the proof of the bound by prices on loads goes there, and is verified; or NULL */
    int32_t copies;               /* of the network, at most; 0: any number. The bound is of any number */
    const char *
        kind; /* of plan: "latency", the plan of one request; "stages"; "replicas", a copy on each device; "loads", one copy whose largest load is least; NULL: any. The bound
                                   * is of any kind */
    moirai_rate_figures *
        figures; /* what moirai_rate_simulate would say of the plan, of a curve's last one, goes there, if all is well; clear them; or NULL */
} moirai_rate_options;

/* No limits, no start, no figures, a gap of 1 %, and the budget of moirai_budget_init. */
MOIRAI_API void moirai_rate_options_init(moirai_rate_options *o);

/* The letters of its progress, as in moirai_placer.letters. Static. */
MOIRAI_API const char *moirai_rate_letters(void);

/* The plan of least period that was found, checked; plan->rate says what it is for, the rest of the plan is one request, alone, on the first copy.
 * In the progress lengths are periods. *out is the caller's. MOIRAI_EUSAGE: an option out of range; MOIRAI_EINFEASIBLE: nothing fits the memory,
 * or nothing that was found keeps the limit of latency. */
MOIRAI_API int moirai_rate_place(moirai_plan **out, const moirai_problem *p, const moirai_rate_options *o);

/* Plans for 1, 2, 4 ... requests in flight, up to o->in_flight, which is the last: *n of them, each as moirai_rate_place gives it, found side by side in one budget.
 * out[0 .. *n) are the caller's; there is room for 12. */
MOIRAI_API int moirai_rate_curve(moirai_plan **out, int *n, const moirai_problem *p, const moirai_rate_options *o);

/* A proven bound of the period with so many requests in flight: by prices on loads, ports and bytes, by loads alone, and, as many requests take turns, by
 * latency_bound_ns / in_flight, where that is a bound of one request's latency (0: none). */
MOIRAI_API int moirai_rate_bound(int64_t *bound_ns, const moirai_problem *p, int32_t in_flight,
                                 int64_t latency_bound_ns, const moirai_budget *budget);

/* Simulates the plan, which has a rate, with its requests in flight. The figures are the caller's; clear them in every case. MOIRAI_EFAIL: its shares don't sum to
 * 1, or its slots to the requests in flight. O(requests * (V + E) log). */
MOIRAI_API int moirai_rate_simulate(moirai_rate_figures *out, const moirai_problem *p, const moirai_plan *plan);
/* Frees what the figures own. */
MOIRAI_API void moirai_rate_figures_clear(moirai_rate_figures *f);
/* A resource in words, "device A", "sending from A", "receiving on B", "channel A to B", into `text`. */
MOIRAI_API void moirai_rate_resource(char *text, size_t size, const moirai_problem *p, int32_t resource);

/* What plan->rate breaks of its rules, one line each to `report` (may be NULL): devices and groups of all copies, shares, slots, memory, a period below a load that is
 * counted here anew, a bound above the period, a period or a latency that the simulator does not confirm. What moirai_plan_check says of the first
 * copy is not said again. 0 if there is none, MOIRAI_EFAIL with the first one as message. */
MOIRAI_API int moirai_rate_check(const moirai_problem *p, const moirai_plan *plan, moirai_report_fn report, void *data);

#ifdef __cplusplus
}
#endif
#endif
