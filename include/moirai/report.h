/* What people look at: why a plan takes as long as it does, and pages and pictures that show it.
 *
 * moirai_analysis_new works out everything that a plan says about itself, once: why each task starts when it does, the
 * critical path and what its time goes to, memory over time, the verdict in words. The page, the explanations, the
 * exports and --json all read that one object, so that no two of them can disagree (docs/report.md). */
#ifndef MOIRAI_REPORT_H
#define MOIRAI_REPORT_H

#include <moirai/placer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a measured run ---- */

typedef struct moirai_measured_segment {
    int32_t device;
    int64_t start_ns, finish_ns;
    int32_t first_op, n_ops; /* in moirai_measured.op */
} moirai_measured_segment;

typedef struct moirai_measured_transfer {
    const char *tensor; /* "" where the file does not say */
    int32_t from, to;
    int64_t bytes, start_ns, finish_ns;
} moirai_measured_transfer;

/* A moirai-timeline as `moirai run` writes it, its names resolved against a problem. */
typedef struct moirai_measured {
    int64_t latency_ns; /* the median run; the latest finish where the file does not say */
    int32_t n_segments, n_transfers, n_ops;
    moirai_measured_segment *segment; /* by device, in order */
    moirai_measured_transfer *transfer;
    int32_t *op; /* operators of the problem, by segment */
    void *store; /* owns the strings */
} moirai_measured;

/* The timeline in `path`; a device or operator that `p` does not have is MOIRAI_EINPUT. Free with moirai_measured_free.
 */
MOIRAI_API int moirai_measured_read(moirai_measured **out, const moirai_problem *p, const char *path);
/* The same from memory; `label` stands for the path in messages. */
MOIRAI_API int moirai_measured_parse(moirai_measured **out, const moirai_problem *p, const char *json, size_t length,
                                     const char *label);
/* Frees all of it. NULL is fine. */
MOIRAI_API void moirai_measured_free(moirai_measured *t);

/* ---- the log of a search ---- */

typedef struct moirai_search_event {
    double seconds;
    int64_t makespan_ns, lower_bound_ns; /* MOIRAI_UNKNOWN where there is none yet */
} moirai_search_event;

/* The events in a file that --log-json wrote, in its order; the caller frees *out. Events without a time (of a timeless
 * log) are counted in their place: second 0, 1, 2... MOIRAI_EINPUT, with the line, for what is not such a file. */
MOIRAI_API int moirai_search_log_read(moirai_search_event **out, int32_t *n, const char *path);

/* ---- the analysis ---- */

/* What the time on the critical path goes to. */
typedef enum moirai_share {
    MOIRAI_SHARE_COMPUTE,  /* operators run */
    MOIRAI_SHARE_TRANSFER, /* tensors move */
    MOIRAI_SHARE_DEVICE,   /* an operator has all its inputs, but its device runs others */
    MOIRAI_SHARE_PORT,     /* a tensor is there, but a port on its way is taken by others */
    MOIRAI_SHARE_HELD,     /* nothing hinders the task: the plan starts it later than it could */
    MOIRAI_SHARES
} moirai_share;
/* "computing", "transferring", "waiting for a busy device", "waiting for a busy port", "held back" */
MOIRAI_API const char *moirai_share_name(moirai_share s);

/* Why a task starts when it does. Tasks: operator i is i, transfer x of the plan is n_ops + x. */
typedef struct moirai_delay {
    int64_t ready_ns; /* when the last thing that it reads is there */
    int64_t busy_ns;  /* of [ready, start): its device, or one of its two ports (with congestion channel: its channel),
                         is taken */
    int64_t held_ns;  /* the rest of [ready, start) */
    int32_t cause;    /* the task that brought the last input; MOIRAI_NONE: it reads nothing that is made */
    int32_t behind;   /* the task that held the device or port last before it; MOIRAI_NONE where it waited for none */
} moirai_delay;

#define MOIRAI_VERDICT_LINES 12

typedef struct moirai_analysis {
    const moirai_problem *problem; /* not owned: must outlive the analysis */
    const moirai_plan *plan;
    int32_t n_ops, n_transfers, n_devices;

    moirai_delay *delay; /* n_ops + n_transfers */
    bool *on_path;       /* n_ops + n_transfers */

    /* The critical path: from the operator that finishes last to the task that brought the last input, and so on; where
     * a device or port is busy 90 % of the time or more, of a task that waited also to the one that it was behind,
     * such that most of the path is on that device or port. Its tasks and waits fill [0, makespan] without a hole: the
     * shares sum to the makespan. */
    int32_t n_steps;
    int32_t *step; /* tasks, in order of time */
    int64_t share_ns[MOIRAI_SHARES];
    int64_t *path_compute_ns; /* per device */
    int64_t *path_wait_ns;    /* per device: of MOIRAI_SHARE_DEVICE */
    int64_t *path_link_ns;    /* [from * n_devices + to]: of MOIRAI_SHARE_TRANSFER and MOIRAI_SHARE_PORT */

    /* Operators by depth: level 0 reads nothing that is made; others are one below their deepest producer. */
    int32_t n_levels;
    int32_t *op_level;

    /* Bytes held by each device from time to time: resident ones and tensors, whatever the memory mode. Device k has
     * points memory_off[k] .. memory_off[k+1]-1; a value holds until the next point, the last to the end. */
    int32_t *memory_off;
    int64_t *memory_ns, *memory_bytes;

    int32_t *device_ops;                               /* operators per device */
    int64_t *busy_ns, *send_busy_ns, *receive_busy_ns; /* per device: computing, sending, receiving */
    int64_t *resident_bytes, *peak_bytes;              /* per device: weights and workspace; the most at any time */
    int64_t sent_bytes;                                /* by all transfers */
    int32_t n_cut_edges;                               /* (tensor, reader) pairs whose ends are on two devices */

    const moirai_measured *timeline; /* or NULL; not owned */
    int64_t single_ns;               /* all on the best single device; MOIRAI_UNKNOWN where none can take it */
    int32_t single_device;

    /* The verdict: sentences, the most important first. */
    int n_verdict;
    char verdict[MOIRAI_VERDICT_LINES][320];

    /* Of the makespan, what launches take: those on the critical path, and their share of the work that it waits for. 0
     * where the problem does not say what a launch costs. */
    int64_t launch_ns;
    bool mostly_launches; /* more than half of the makespan; the verdict says so after the critical path */
    /* With memory static: the device whose peak, tensors included, exceeds its memory most; the verdict's second line
     * warns of it. MOIRAI_NONE where all fit. */
    int32_t over_device;
    double speed_up; /* against the best single device; 0 where none can take it */
} moirai_analysis;

/* Work a plan out. `timeline` may be NULL. MOIRAI_EFAIL, with the first broken rule, for a plan that breaks the model.
 * Free with moirai_analysis_free. O((V+E) log V + transfers * K). */
MOIRAI_API int moirai_analysis_new(moirai_analysis **out, const moirai_problem *p, const moirai_plan *plan,
                                   const moirai_measured *timeline);
/* Frees all of it. NULL is fine. */
MOIRAI_API void moirai_analysis_free(moirai_analysis *a);

/* When a task starts: an operator, or a transfer, which has its tensor's name. */
MOIRAI_API int64_t moirai_task_start(const moirai_analysis *a, int32_t task);
/* When it ends. */
MOIRAI_API int64_t moirai_task_finish(const moirai_analysis *a, int32_t task);
/* What it is called; owned by the problem. */
MOIRAI_API const char *moirai_task_name(const moirai_analysis *a, int32_t task);

/* ---- one operator elsewhere ---- */

typedef struct moirai_elsewhere {
    int64_t time_ns;     /* of the operator there; MOIRAI_NEVER where it can't run */
    int64_t makespan_ns; /* of the plan with it (and its group) there, all else in the same order; MOIRAI_UNKNOWN if it
                            can't */
    int64_t
        moving_ns; /* moving what it reads there, and what it writes on to its readers, takes this long altogether */
    int64_t excess_bytes; /* by which the fullest device would exceed its memory */
} moirai_elsewhere;

/* What every device would do with operator `op`, its own device included (as the plan is): `out` has room for
 * n_devices. O(K (V+E)). */
MOIRAI_API int moirai_explain_op(moirai_elsewhere *out, const moirai_analysis *a, int32_t op);
/* Why it is where it is, in a sentence or two, into `text`. */
MOIRAI_API void moirai_explain_op_text(char *text, size_t size, const moirai_analysis *a, int32_t op,
                                       const moirai_elsewhere *where);

/* ---- what if ---- */

typedef struct moirai_what_if {
    moirai_change change;
    char text[160];                     /* "the link between A and B twice as fast" */
    int result;                         /* 0; MOIRAI_EINFEASIBLE where no plan is left; MOIRAI_ELIMIT where it was not
                                           tried; what else failed */
    bool cut_short;                     /* the time or the interrupt ended its search while its gap was open */
    char message[200];                  /* of a failure */
    int64_t makespan_ns;                /* reached: the best of search, replay and what the other runs show */
    int64_t lower_bound_ns;             /* proven: the best of search and what the other runs show */
    int64_t search_ns, search_bound_ns; /* what the placer found on the changed problem; MOIRAI_UNKNOWN on failure */
    int64_t replay_ns; /* the given plan's devices and order there; MOIRAI_UNKNOWN where it can't be kept */
    int64_t spent_ns;
} moirai_what_if;

typedef struct moirai_what_if_options {
    const moirai_cluster
        *cluster;         /* the problem's, so that links are its links; NULL: every pair of devices is a link */
    const char *placer;   /* default "moirai" */
    moirai_budget budget; /* seed and effort of each run; time for all runs together (default 30 s); threads: runs at
                             once; no progress is told */
    double gap;           /* at which a run stops; default 0 */
    int32_t most;         /* try no more changes than this, those first that touch most of the critical path; 0: all */
} moirai_what_if_options;

/* The defaults that the fields name. */
MOIRAI_API void moirai_what_if_options_init(moirai_what_if_options *o);
/* Place the plan's problem as it is (first in *out: change MOIRAI_CHANGE_NONE) and with one change at a time: each link
 * twice as fast, each device twice as fast and, where its memory can bind, with twice of it, one device less and one
 * more of each kind. Searches start from the given plan where the change leaves it possible. They share the time: where
 * it is too little for a useful search of all, the most promising changes are searched, and the others say that they
 * were not tried (MOIRAI_ELIMIT), as do those that an interrupt forestalls. The same seed and effort without time limit
 * give what moirai_place gives on the problem of moirai_problem_change from that start. The others are ordered by
 * makespan. The caller frees *out. */
MOIRAI_API int moirai_what_if_run(moirai_what_if **out, int32_t *n, const moirai_analysis *a,
                                  const moirai_what_if_options *o);
/* "bound": no plan of the unchanged problem is as fast as this one. "plan": only the plan is better, the unchanged
 * problem may have one as good. "worse": even the best plan is slower than what there is now. "none": neither is shown.
 */
MOIRAI_API const char *moirai_what_if_moved(const moirai_what_if *base, const moirai_what_if *w);

/* ---- pages and pictures ---- */

/* One plan of a report. */
typedef struct moirai_report_plan {
    const char *label; /* NULL: the placer's name */
    const moirai_analysis *analysis;
    const moirai_search_event *event; /* of its search, or NULL */
    int32_t n_events;
} moirai_report_plan;

/* A page of HTML, complete in itself: no requests, no fonts, no scripts but its own. All plans belong to one problem;
 * the first is shown first. The text goes to *out (free() it), ends with a NUL, and has *length bytes before that. */
MOIRAI_API int moirai_report_page(char **out, size_t *length, const moirai_report_plan *plan, int32_t n_plans);
/* The same for one plan and problem, for notebooks. */
MOIRAI_API int moirai_report_html(char **out, size_t *length, const moirai_problem *p, const moirai_plan *plan);
/* The Gantt chart as an SVG element, also fit to be put into a page or a notebook. */
MOIRAI_API int moirai_report_svg(char **out, size_t *length, const moirai_problem *p, const moirai_plan *plan);

/* ---- exports: plug-ins of one shape behind one registry ---- */

typedef struct moirai_export_options {
    int depth; /* device-map: parts of a module's name that must stay together; 0: the whole name */
} moirai_export_options;

typedef struct moirai_exporter {
    const char *name;    /* "trace" */
    const char *summary; /* one line */
    /* The text to *out (free() it). `o` is not NULL. */
    int (*write)(char **out, size_t *length, const moirai_analysis *a, const moirai_export_options *o);
} moirai_exporter;

/* How many exporters there are. */
MOIRAI_API int moirai_exporter_count(void);
/* The exporter of that number, 0 to moirai_exporter_count() - 1. Static. */
MOIRAI_API const moirai_exporter *moirai_exporter_at(int index);
/* The exporter of that name, or NULL. */
MOIRAI_API const moirai_exporter *moirai_exporter_find(const char *name);
/* MOIRAI_EUSAGE for a format that there is none of. `o` may be NULL. */
MOIRAI_API int moirai_export(char **out, size_t *length, const moirai_analysis *a, const char *format,
                             const moirai_export_options *o);

/* ---- a plan without its problem ---- */

/* What a plan file says by itself, as a problem that fits it: devices, operators with their time where they run,
 * transfers; neither dependencies nor memory. Good for timelines; the analysis of such a problem knows no critical path
 * and no memory. */
MOIRAI_API int moirai_problem_of_plan(moirai_problem **out, const char *plan_path);

#ifdef __cplusplus
}
#endif
#endif
