/* Inside `moirai tune`: a run of the other commands, and what they measured. */
#ifndef MOIRAI_CLI_TUNE_TUNE_H
#define MOIRAI_CLI_TUNE_TUNE_H

#include <limits.h>

#include <moirai/moirai.h>

#include "cli/framework/cli.h"
#include "cli/run/run_steps.h"

enum { TUNE_PATH = 4200, TUNE_MOST_ROUNDS = 32, TUNE_MOST_SETS = 16, TUNE_MOST_PASSES = 400, TUNE_MOST_NETS = 4 };

/* A plan that was split: the words of its `moirai run`, and what is launched. */
typedef struct tune_parts {
    cli_context typed;
    cli_run run;
} tune_parts;

/* A network that is planned for: the model as it is, or cut (tune_cut.c). */
typedef struct tune_net {
    char model[TUNE_PATH], profile[TUNE_PATH]; /* as measured operator by operator */
    char graph[TUNE_PATH], links[TUNE_PATH];   /* as refined by runs of it */
    const char *cut;                           /* how it is cut; NULL: not at all */
    int n_rounds;                              /* that were run */
} tune_net;

/* A plan that was run: the network whole on one device or machine, or split. */
typedef struct tune_case {
    char name[160];          /* "A alone", "round 2", "this machine, 2 threads" */
    char tag[32];            /* "alone-0", "round-2", "machine": in names of files */
    char plan[TUNE_PATH];    /* its file */
    char cluster[TUNE_PATH]; /* to run it on */
    tune_net *net;           /* whose plan it is */
    int64_t promised_ns;     /* what the model said before its first run; MOIRAI_UNKNOWN: nothing was measured for it */
    int64_t measured_ns;     /* of the first run; in the end over all passes; MOIRAI_UNKNOWN: did not run */
    int64_t pass_ns[2 * TUNE_MOST_PASSES + 1]; /* the first run, then two halves in each pass: medians */
    int n_passes;                              /* all of these */
    int64_t transfers;
    uint64_t placement;      /* digest of (operator, device): equal plans are measured once */
    bool dropped;            /* out of the passes, as slower than the fastest beyond doubt */
    const char *kind;        /* of a plan for many requests: "latency", "stages", "replicas", "any"; else NULL */
    double busiest;          /* share of the time that its busiest device, */
    char limit[160];         /* of this name, computes */
    double promised_busiest; /* the same as simulated, of the device that it is there */
    tune_parts *loaded;      /* for the passes; NULL: not yet */
} tune_case;

typedef struct tune {
    cli_context *cli;
    tune_net net[TUNE_MOST_NETS]; /* whole, then as cut */
    int n_nets;
    tune_net *cut_net;     /* the one of these that is planned for; NULL: none */
    moirai_shards *shards; /* of the model, where operators may be cut */
    char *cut[TUNE_MOST_NETS];
    const char *cut_verdict; /* what came of it; NULL: it was not asked for */
    moirai_cluster *cluster; /* as probed */
    char folder[4000];       /* where everything lies */
    bool temporary;
    char cluster_path[TUNE_PATH];
    uint64_t set[TUNE_MOST_SETS]; /* devices that may work together */
    int n_sets, host_cores;
    int64_t segment_ns; /* what a sub-model that does nothing takes, on the slowest device; until a split was run */
    tune_case alone[MOIRAI_MASK_DEVICES], machine, round[2 * TUNE_MOST_ROUNDS]; /* whole, then cut */
    int n_rounds;
    tune_case *kept;
    int64_t predicted_ns; /* of the kept plan, by the model that did not see the passes that judge */
    int64_t judged_ns;    /* these passes; MOIRAI_UNKNOWN: there were none */
    double
        unsure; /* what predicted / judged can be off by the machine's noise alone: a standard error; INFINITY: too few runs */
    int n_passes;
    double noise;                     /* the interquartile range of one plan's passes, of their middle; the largest */
    double begin_s, limit_s, round_s; /* round_s: what the last round took */
    const char *stopped;              /* why there were no more rounds */
} tune;

/* ---- tune_steps.c: other commands, called as if they were typed ---- */
/* The folder, the cluster with measured links, the operators' times. */
int tune_open(tune *t);
int tune_probe(tune *t);
int tune_profile(tune *t, tune_net *net);
/* Names of the network's files: "<folder>/<tag>profile.json". */
void tune_name_files(const tune *t, tune_net *net, const char *tag);
/* The network whole on device k, or on this machine with all of its cores. A device that can't hold it is no failure:
 * measured_ns stays MOIRAI_UNKNOWN. */
int tune_alone(tune *t, int32_t k);
int tune_machine(tune *t);
/* All first runs of the network so far into its times, latencies and bandwidths. With `x`, to predict it: its passes that teach take the
 * place of its first run, and every run counts as it was measured. */
int tune_refine(tune *t, const tune_net *net, const tune_case *x);
/* A plan of `graph` on `cluster` to x->plan, with what it promises: its length, or its period. `more`: words of `moirai
 * plan`, NULL at the end; or NULL. x->promised_ns is to be MOIRAI_UNKNOWN before. */
int tune_make_plan(tune *t, tune_case *x, const char *graph, const char *cluster, const char *placer,
                   const char *const *more);
/* "*=A,B": the devices that are not in the set; "" where all are. */
void tune_forbid(char *out, size_t size, const tune *t, uint64_t set);
/* The most promising plan over all sets of devices that are apart; plan[0] is '\0' where none has two devices. */
int tune_plan(tune *t, tune_net *net, tune_case *out);
/* What the model says now of the plan of `x`. */
int tune_predict(tune *t, const tune_case *x, int64_t *out);
void tune_close(tune *t);

/* Seconds that are left of the budget, 0 where there are none; INFINITY without a limit. */
double tune_left_s(const tune *t);

/* ---- tune_cut.c: operators cut into pieces ---- */
/* Whether --split-operators asks for that; opens the model for it, and reads a FILE. */
int tune_cut_open(tune *t);
void tune_cut_close(tune *t);
/* Chooses a cut by what was measured, writes the model and profiles its pieces: t->cut_net, which stays NULL where no
 * cut pays. */
int tune_cut(tune *t);
/* --cut-out, where what is kept is a plan of the cut model. */
int tune_cut_write(const tune *t);

/* ---- tune_run.c ---- */
/* Runs the plan of `x` once more: x->pass_ns, x->measured_ns where it was the first time, and a timeline. A plan of a cut
 * model is verified against the model as it is: MOIRAI_EVERIFY where results differ. */
int tune_run(tune *t, tune_case *x);
/* Runs the plans of `list` in turns, in the passes number `first` and so many; by one start where that is possible. Each
 * turn has two halves whose runs alternate: two numbers in x->pass_ns, and two timelines. */
int tune_turns(tune *t, tune_case *const *list, int n, int first, int passes);
/* How long a pass of these takes, without what a start takes. */
double tune_turns_s(const tune *t, tune_case *const *list, int n);
void tune_turns_free(tune_case *x);

/* ---- tune_rate.c: --objective rate ---- */
/* Rounds, then passes: what is fastest with so many requests in flight is t->kept. */
int tune_rate(tune *t);
void tune_rate_show(tune *t);

/* ---- tune_passes.c: what may be kept, measured in turns ---- */
int tune_passes(tune *t);
/* Of the runs of `x`, does number i teach the model, does it judge? */
bool tune_teaches(const tune_case *x, int i);
bool tune_judges(const tune_case *x, int i);
/* Where the timeline of its run number i lies, if it teaches. */
void tune_timeline(char out[TUNE_PATH], const tune *t, const tune_case *x, int i);
/* judged_ns and unsure of the kept plan. */
void tune_judge(tune *t);

/* ---- tune_show.c ---- */
void tune_show_case(const tune *t, const tune_case *x);
void tune_show(tune *t);
/* A line of the table of everything that was run, and its object in a list of the result; nothing for what was not run. */
typedef void tune_row(tune *t, yyjson_mut_val *list, const tune_case *x);
/* Devices alone, the whole machine, plans in the order in which they were run. */
void tune_table(tune *t, tune_row *show);
yyjson_mut_val *tune_case_json(const tune *t, const tune_case *x);
/* The fastest device alone, of those that count; or NULL. */
tune_case *tune_best_alone(tune *t);
/* The fastest split, or NULL. */
tune_case *tune_best_round(tune *t);

#endif
