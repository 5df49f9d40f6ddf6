/* Placers: methods that turn a problem into a plan, behind one registry.
 *
 * A placer is one file with one struct; adding one touches that file and one line of
 * src/place/placer_registry.c. Every placer honours devices that can't run an operator, groups and memory. */
#ifndef MOIRAI_PLACER_H
#define MOIRAI_PLACER_H

#include <moirai/budget.h>
#include <moirai/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum moirai_param_kind {
    MOIRAI_PARAM_INT,
    MOIRAI_PARAM_REAL,
    MOIRAI_PARAM_BOOL,
    MOIRAI_PARAM_CHOICE,
    MOIRAI_PARAM_TEXT /* any text, such as a file's name; none by default */
} moirai_param_kind;
typedef struct moirai_param {
    const char *name;
    moirai_param_kind kind;
    const char *help;
    double value, least, most; /* default and range of INT, REAL and BOOL */
    const char *choices;       /* CHOICE: "tight|paper", the first is the default */
} moirai_param;

typedef struct moirai_setting {
    const char *name, *value;
} moirai_setting; /* --set name=value */

typedef struct moirai_place_options {
    moirai_budget budget;          /* effort, time limit, threads, seed, interrupt, progress */
    double gap;                    /* stop when proven within this share of the best; default 0.01 */
    const moirai_setting *setting; /* n_settings of them; not owned */
    int n_settings;
    const moirai_plan *start;     /* a plan to begin from, or NULL; not owned. One that does not fit is mended first */
    const char *certificate_path; /* where to write the proof, or NULL (placer moirai) */
} moirai_place_options;

/* No settings, no start, no certificate, a gap of 1 %, and the budget of moirai_budget_init. */
MOIRAI_API void moirai_place_options_init(moirai_place_options *o);

typedef struct moirai_placer {
    const char *name;
    const char *summary; /* one line */
    const char *letters; /* key of the progress letters: "H heft, A annealing", or NULL */
    const moirai_param *params;
    int n_params;
    bool certifies;   /* writes certificate_path; others refuse it */
    bool few_devices; /* up to MOIRAI_MASK_DEVICES; more are refused */
    bool bounds;      /* its lower_bound_ns is no less than the plain bounds: they need not be computed again */
    /* NULL: always there; else returns false with the reason when a feature is not built in. */
    bool (*available)(const char **why);
    /* Never called directly: use moirai_place. Fills *out with a simulated plan that fits the memory. */
    int (*place)(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o);
} moirai_placer;

/* How many placers there are. */
MOIRAI_API int moirai_placer_count(void);
/* The placer of that number, 0 to moirai_placer_count() - 1. Static. */
MOIRAI_API const moirai_placer *moirai_placer_at(int index);
/* The placer of that name, or NULL. */
MOIRAI_API const moirai_placer *moirai_placer_find(const char *name);

/* Run a placer: checks settings against its declared parameters, measures generation_ns, fills in
 * problem, placer, seed, checks the plan with moirai_plan_check (a wrong plan is MOIRAI_EFAIL, never returned), and
 * sets lower_bound_ns to the best of the placer's own bound and the plain bounds. */
MOIRAI_API int moirai_place(moirai_plan **out, const moirai_problem *p, const char *placer,
                            const moirai_place_options *o);

/* A plan beside the best device alone: what users compare with first. */
typedef struct moirai_alone {
    int32_t device; /* MOIRAI_NONE where there is no operator */
    int64_t ns;     /* the network there: run as one where that was measured (device_whole_ns), else by its operators */
    int64_t ops_ns; /* by its operators */
    double speed_up; /* of the plan; of one on a single device with that device's own time as a whole */
} moirai_alone;

/* `plan` may be one of another problem with the same devices: one with pins, or one that was cut into pieces.
 * MOIRAI_EINFEASIBLE where no device can take the whole network; the message says of each why. */
MOIRAI_API int moirai_alone_find(moirai_alone *out, const moirai_problem *p, const moirai_plan *plan);

/* For placers: the value of a declared parameter (setting or default). */
MOIRAI_API double moirai_setting_real(const moirai_place_options *o, const moirai_placer *placer, const char *name);
/* The same for a choice: the value given, or the first of its choices. */
MOIRAI_API const char *moirai_setting_choice(const moirai_place_options *o, const moirai_placer *placer,
                                             const char *name);
/* Of a text: NULL where it was not set. The caller of moirai_place owns it. */
MOIRAI_API const char *moirai_setting_text(const moirai_place_options *o, const moirai_placer *placer,
                                           const char *name);

#ifdef __cplusplus
}
#endif
#endif
