/* The steps that several commands share, each with its part of the option table. */
#ifndef MOIRAI_CLI_STEPS_STEPS_H
#define MOIRAI_CLI_STEPS_STEPS_H

#include "cli/framework/cli.h"

#include <moirai/moirai.h>

/* ---- a network: a name of the zoo, an ONNX file, a graph file, "-" ---- */
/* clang-format off */
#define CLI_OPTION_DTYPE \
    {.name = "dtype", .argument = "TYPE", .kind = CLI_VALUE_CHOICE, .choices = "fp32|fp16|bf16", \
     .help = "number type of a network of the zoo (default fp32); a file has its own, and another one is refused"}
#define CLI_OPTIONS_NETWORK \
    CLI_OPTION_DTYPE, \
    {.name = "dim", .argument = "NAME=N", \
     .help = "set a dimension that an ONNX network leaves open, by its name or as INPUT:AXIS=N; others get usual sizes, " \
             "which are shown", \
     .kind = CLI_VALUE_TEXT, .repeated = true}, \
    {.name = "shape", .argument = "INPUT:1x3x224x224", .help = "set the shape of an ONNX network's input", \
     .kind = CLI_VALUE_TEXT, .repeated = true}
/* clang-format on */

/* clang-format off */
#define CLI_OPTION_SUM \
    {.name = "sum", .argument = "HOW", .kind = CLI_VALUE_CHOICE, .choices = "chain|star|tree", .standard = "chain", \
     .help = "how partial results are added up: one after the other, all by one operator, or in pairs"}
#define CLI_OPTIONS_SHARD \
    {.name = "split-operators", .argument = "HOW", .kind = CLI_VALUE_TEXT, .standard = "off", \
     .help = "cut operators of an ONNX model into pieces first: auto chooses which and how, a FILE has the cut (docs/shard.md)"}, \
    {.name = "cut-out", .argument = "FILE", .kind = CLI_VALUE_FILE, \
     .help = "write the cut model, to which the plan belongs, if operators were cut"}
/* clang-format on */
moirai_shard_sum cli_shard_sum(const char *how);

bool cli_is_onnx(const char *path);
/* --dim and --shape; cli_onnx_options_free when done. */
int cli_onnx_options(moirai_onnx_options *out, const cli_context *cli);
void cli_onnx_options_free(moirai_onnx_options *o);
int cli_network(moirai_graph **out, cli_context *cli, const char *name_or_path);
/* moirai_problem_read, and the status line says so. */
int cli_problem_read(moirai_problem **out, const char *path);

/* ---- a problem: a network meets a cluster ---- */
/* clang-format off */
#define CLI_OPTION_CLUSTER \
    {.name = "cluster", .letter = 'c', .argument = "NAME|FILE", .kind = CLI_VALUE_CLUSTER, \
     .help = "built-in cluster, cluster file, or a line such as '4x v100 32GB nvlink 600Gbps'"}
#define CLI_OPTIONS_PROBLEM \
    {.name = "flow", .argument = "F", .kind = CLI_VALUE_CHOICE, .choices = "tensor|edge", .standard = "tensor", \
     .help = "what is sent: a tensor once per device, or once per reader as in the paper"}, \
    {.name = "congestion", .argument = "C", .kind = CLI_VALUE_CHOICE, .choices = "port|channel|none|device", \
     .standard = "port", .help = "what may be sent at once"}, \
    {.name = "memory", .argument = "M", .kind = CLI_VALUE_CHOICE, .choices = "static|peak", .standard = "static", \
     .help = "what must fit: weights and workspace, or these and the tensors alive at once"}, \
    {.name = "cost", .argument = "MODEL", .kind = CLI_VALUE_COST, .standard = "auto", \
     .help = "cost model that gives the operators' times"}, \
    {.name = "runtime", .argument = "R", .kind = CLI_VALUE_CHOICE, .choices = "eager|ort|graph|tensorrt", \
     .help = "what will run the plan, for the cost of a launch where times are not measured: eager PyTorch, ONNX Runtime, " \
             "compiled into CUDA graphs, TensorRT (default ort for an ONNX file, else the cost model's own)"}, \
    {.name = "tf32", .kind = CLI_VALUE_FLAG, .help = "products of fp32 numbers at the tf32 rate, where a device has one"}, \
    {.name = "segment-us", .argument = "US", .kind = CLI_VALUE_REAL, .least = 0, .most = 1e9, \
     .help = "what a segment of its own takes in a run, part of every transfer's latency (default: what the runtime " \
             "needs: ort 8, on accelerators 17; eager 26.6; 0 where the cluster's cuts were measured)"}, \
    {.name = "move-us", .argument = "US", .kind = CLI_VALUE_REAL, .least = 0, .most = 1e9, .standard = "0", \
     .help = "time of devices for a MB that moves between them; part of every transfer"}, \
    {.name = "pin", .argument = "PATTERN=DEVICE", .kind = CLI_VALUE_TEXT, .repeated = true, \
     .help = "operators whose names match run on this device (or one of several, A,B)"}, \
    {.name = "forbid", .argument = "PATTERN=DEVICES", .kind = CLI_VALUE_TEXT, .repeated = true, \
     .help = "operators whose names match never run on these devices"}, \
    {.name = "together", .argument = "PATTERN", .kind = CLI_VALUE_TEXT, .repeated = true, \
     .help = "operators whose names match share one device"}
/* clang-format on */

/* Reads the options above; `name` may be NULL. Tells where the times came from. */
int cli_problem(moirai_problem **out, cli_context *cli, const moirai_graph *g, const moirai_cluster *c,
                const char *name);
/* The same without wishes, as options. */
int cli_problem_options(moirai_problem_options *o, const cli_context *cli, const moirai_graph *g);
/* What a cut costs, from the options above. */
void cli_cut_costs(moirai_problem_options *o, const cli_context *cli);
/* --runtime, or what fits the network. */
int cli_runtime(moirai_runtime *out, const cli_context *cli, const moirai_graph *g);
/* Warns of every two devices that can't work at the same time (moirai_cluster_sharing), and lists them in
 * cli->result. */
void cli_tell_sharing(cli_context *cli, const moirai_cluster *c, int host_cores, const char *consequence);
/* The wishes among the options above once more, for the problem of what `fused` was made from. */
int cli_wishes(const cli_context *cli, moirai_problem *p, const moirai_graph *fused);
/* Opens --cluster; its absence is a usage error. */
int cli_cluster(moirai_cluster **out, cli_context *cli);
/* Opens one, and says on stderr what looks odd in its file. */
int cli_cluster_of(moirai_cluster **out, const cli_context *cli, const char *name);

/* ---- a search ---- */
/* clang-format off */
#define CLI_OPTION_EFFORT(what) \
    {.name = "effort", .argument = "E", .kind = CLI_VALUE_REAL, .least = 1e-6, .most = 1e6, .standard = "1", \
     .help = what ", the same on every machine"}
#define CLI_OPTION_THREADS(what) \
    {.name = "threads", .argument = "N", .kind = CLI_VALUE_COUNT, .least = 0, .most = 1024, .standard = "0", \
     .help = what "; 0 is one per core"}
#define CLI_OPTION_SEED \
    {.name = "seed", .argument = "N", .kind = CLI_VALUE_COUNT, .standard = "1", .help = "seed of random choices"}
#define CLI_OPTIONS_SEARCH \
    {.name = "placer", .letter = 'p', .argument = "P", .kind = CLI_VALUE_PLACER, \
     .help = "method that makes the plan; 'moirai placers' lists them (default moirai)"}, \
    {.name = "time-limit", .argument = "SECONDS", .kind = CLI_VALUE_LIMIT, .least = 1e-3, .most = 1e9, \
     .help = "stop after this time with the best plan so far; until then effort grows while the gap is open. " \
             "'none': the effort alone decides, and the same seed gives the same plan (default 20, or none where " \
             "--effort is given)"}, \
    {.name = "gap", .argument = "G", .kind = CLI_VALUE_REAL, .least = 0, .most = 1, .standard = "0.01", \
     .help = "stop when the plan is proven to be within this share of the best"}, \
    CLI_OPTION_EFFORT("work to spend"), \
    CLI_OPTION_THREADS("threads to use"), \
    CLI_OPTION_SEED, \
    {.name = "set", .argument = "NAME=VALUE", .kind = CLI_VALUE_TEXT, .repeated = true, \
     .help = "parameter of the placer; --NAME VALUE does the same"}, \
    {.name = "certificate", .argument = "FILE", .kind = CLI_VALUE_FILE, \
     .help = "write the proof of the bound, for 'moirai prove' (placer moirai)"}, \
    {.name = "log", .kind = CLI_VALUE_FLAG, .help = "show the search even if stderr is no terminal"}, \
    {.name = "log-timeless", .kind = CLI_VALUE_FLAG, .help = "a log without times, to compare runs"}, \
    {.name = "log-json", .argument = "FILE", .kind = CLI_VALUE_FILE, .help = "write one JSON object per event"}
/* clang-format on */

/* The placer that will run: --placer or the default. MOIRAI_EUSAGE with the nearest name if there is none. */
int cli_placer(const moirai_placer **out, const cli_context *cli);
/* Checks what the search writes itself (certificate, log) before the work begins. */
int cli_search_writable(const cli_context *cli);
/* --time-limit, or 20 s: a command that people type should answer. None where --effort is given: work that is counted on
 * purpose should not depend on the clock. */
double cli_time_limit_s(const cli_context *cli);

/* ---- operators cut into pieces ---- */
typedef struct cli_cut {
    char *text; /* "" or NULL: nothing is cut */
    moirai_shards *shards;
    moirai_graph *whole;        /* the network before, where it was cut */
    moirai_shard_choice choice; /* of auto; zero otherwise */
} cli_cut;
/* --cut-out without --split-operators writes nothing: MOIRAI_EUSAGE. */
int cli_cut_check(const cli_context *cli);

/* --split-operators: what it says, or chooses for the cluster; *graph becomes that of the cut model. cli_cut_free in every
 * case. The time that it takes is the search's. */
int cli_cut_network(cli_cut *cut, moirai_graph **graph, cli_context *cli, const moirai_cluster *c);
int cli_cut_write(const cli_cut *cut, const cli_context *cli);
/* What was cut, and what the network whole takes. */
void cli_show_cut(const cli_cut *cut, cli_context *cli);
void cli_cut_free(cli_cut *cut);

/* Runs the placer with the log and Ctrl-C connected. `start` may be NULL. */
int cli_search(moirai_plan **out, cli_context *cli, const moirai_problem *p, const moirai_plan *start);

/* ---- many requests in flight ---- */
/* clang-format off */
#define CLI_OPTIONS_RATE \
    {.name = "objective", .argument = "O", .kind = CLI_VALUE_CHOICE, .choices = "latency|rate", .standard = "latency", \
     .help = "what counts: one inference as early as possible, or many per second"}, \
    {.name = "in-flight", .argument = "N", .kind = CLI_VALUE_COUNT, .least = 1, .most = MOIRAI_MOST_IN_FLIGHT, \
     .help = "for --objective rate: requests that are in flight at most (default: twice the devices)"}, \
    {.name = "latency-limit", .argument = "MS", .kind = CLI_VALUE_REAL, .least = 1e-6, .most = 1e9, \
     .help = "for --objective rate: no request may take longer, in milliseconds"}, \
    {.name = "copies", .argument = "N", .kind = CLI_VALUE_COUNT, .least = 1, .most = 64, \
     .help = "for --objective rate: copies of the network that share the requests, at most (default: any number)"}, \
    {.name = "kind", .argument = "KIND", .kind = CLI_VALUE_CHOICE, .choices = "any|latency|stages|replicas|loads", .standard = "any", \
     .help = "for --objective rate: plans of this kind alone: the plan of one request, a row of stages, a copy on each device, or one copy whose largest load is least, whatever a stream makes of it"}, \
    {.name = "curve", .kind = CLI_VALUE_FLAG, \
     .help = "for --objective rate: plans for 1, 2, 4 ... requests in flight, up to --in-flight; the last is written"}
/* clang-format on */

#define CLI_NEARLY_BUSY 0.98 /* of the period: a resource that works so long limits it */
#define CLI_MANY_MOST 12
typedef struct cli_many {
    moirai_plan *plan[CLI_MANY_MOST]; /* fewer requests in flight first */
    int n;
    int32_t asked[CLI_MANY_MOST]; /* requests in flight that each is for; it may have fewer */
    moirai_rate_figures figures;  /* of the last */
} cli_many;

bool cli_many_wanted(const cli_context *cli);
/* Whether the options above go together with each other and with those of a search. */
int cli_many_check(const cli_context *cli);
/* Searches with the log and Ctrl-C connected. `start` may be NULL. Free with cli_many_free, also after a failure. */
int cli_many_search(cli_many *out, cli_context *cli, const moirai_problem *p, const moirai_plan *start);
void cli_many_free(cli_many *r);
/* The last plan, the curve where there are several, and the page where --report asks for it. */
int cli_show_many(cli_context *cli, const moirai_problem *p, const cli_many *all);
/* What limits the plan's rate; and, in the time of --what-if, the rate with one more device of each kind (show_more.c). */
int cli_show_more(cli_context *cli, const moirai_problem *p, const moirai_plan *plan);

/* ---- a split ---- */
/* clang-format off */
#define CLI_OPTIONS_SPLIT \
    {.name = "rules", .argument = "RULES", .kind = CLI_VALUE_RULES, \
     .help = "fusion rules that the plan was made with (default: found out by the operators' names)"}, \
    {.name = "dim", .argument = "NAME=N", .help = "symbolic dimension of the model, as the plan had it", \
     .kind = CLI_VALUE_TEXT, .repeated = true}, \
    {.name = "shape", .argument = "INPUT:1x3x224x224", .help = "shape of an input, as the plan had it", \
     .kind = CLI_VALUE_TEXT, .repeated = true}, \
    {.name = "segment-us", .argument = "US", .kind = CLI_VALUE_REAL, .least = 0, .most = 1e6, \
     .help = "what a sub-model of its own takes; neighbours are merged where that saves time (0: never; default 8, " \
             "where 'run' has a GPU 17)"}
/* Of commands that start ranks (cli_start_limit_s). */
#define CLI_OPTION_START_LIMIT \
    {.name = "start-limit", .argument = "SECONDS", .kind = CLI_VALUE_REAL, .least = 0.1, .most = 1e6, \
     .help = "time for all ranks to come up (default 60, with several machines 30)"}
#define CLI_ARGUMENTS_PLAN_MODEL \
    {.name = "PLAN", .kind = CLI_VALUE_FILE, .help = "the plan file"}, \
    {.name = "MODEL", .kind = CLI_VALUE_FILE, .help = "the ONNX file that the plan was made for"}
/* clang-format on */

/* `gpu`: a device is one, where a sub-model costs more than on a CPU. */
int cli_split(moirai_split_report *report, const cli_context *cli, const char *plan, const char *model,
              const char *folder, bool gpu);

/* ---- showing a plan ---- text by cli_print, and the same numbers into cli->result */
/* clang-format off */
#define CLI_OPTION_PICTURE \
    {.name = "picture", .kind = CLI_VALUE_FLAG, .help = "draw when each device works"}
/* clang-format on */
void cli_show_plan(cli_context *cli, const moirai_problem *p, const moirai_plan *plan);
/* How many operators are on each device; free() it, or NULL. *n_left_out: devices without any, where these are too many for a line each, else 0. */
int32_t *cli_ops_on(int32_t *n_left_out, const moirai_plan *plan);
/* The part of the makespan in which device k computes. */
double cli_load_of(const moirai_plan *plan, int32_t k);
/* The steps behind the plan and its bound, into cli->result only. */
void cli_show_steps(cli_context *cli, const moirai_plan *plan);
void cli_show_picture(cli_context *cli, const moirai_problem *p, const moirai_plan *plan);
void cli_show_problem(cli_context *cli, const moirai_problem *p);
/* Lines [first, first + most) of the verdict as text, all of it and the critical path into cli->result. */
void cli_show_why(cli_context *cli, const moirai_analysis *a, int first, int most);
/* The warning alone, of a device whose tensors don't fit though memory static lets them pass; nothing where all fit. */
void cli_show_over(cli_context *cli, const moirai_analysis *a);

/* ---- a plan with what belongs to it ---- */
#define CLI_OPTION_PLAN_PROBLEM \
    { \
        .name = "problem", .argument = "FILE", .kind = CLI_VALUE_FILE, .help = "the problem that the plan belongs to" \
    }
#define CLI_OPTION_REPORT \
    { \
        .name = "report", .argument = "FILE", .kind = CLI_VALUE_FILE, .help = "write a page that shows the plan" \
    }

typedef struct cli_read {
    moirai_plan *plan;
    moirai_measured *timeline; /* or NULL */
    moirai_analysis *analysis;
} cli_read;

/* --problem, or what the plan says by itself where it is not given. */
int cli_problem_of(moirai_problem **out, const cli_context *cli, const char *plan_path);
/* `timeline_path` may be NULL. Free with cli_read_free, also after a failure. */
int cli_read_plan(cli_read *out, const moirai_problem *p, const char *plan_path, const char *timeline_path);
void cli_read_free(cli_read *r);

typedef struct cli_page_plan {
    const char *label; /* NULL: the placer's name */
    const moirai_analysis *analysis;
    const char *log; /* a file of --log-json, or NULL */
} cli_page_plan;
/* Writes the page of n plans and says so. */
int cli_write_page(cli_context *cli, const char *path, const cli_page_plan *plan, int n);
/* What limits the plan, in two lines; and the page where --report asks for it. */
int cli_show_explained(cli_context *cli, const moirai_problem *p, const moirai_plan *plan);

/* ---- bounds ---- */
typedef struct cli_bound_found {
    const moirai_bound *bound;
    int result;       /* not 0: it could not be computed, `error` says why */
    int64_t lower_ns; /* MOIRAI_UNKNOWN: not meant for this problem */
    double seconds;
    char error[1024];
} cli_bound_found;
void cli_bound_find(cli_bound_found *f, const moirai_bound *b, const moirai_problem *p, const moirai_budget *budget);
/* The table and cli->result. Fails only where every bound did. */
int cli_bounds_show(cli_context *cli, const cli_bound_found *f, int n);

/* ---- the log of a search ---- */
typedef struct cli_log cli_log;
int cli_log_open(cli_log **out, const cli_context *cli, const moirai_placer *placer, const moirai_problem *p);
void cli_log_event(void *log, const moirai_progress *news); /* a moirai_progress_fn; any thread */
/* What the status line shows `seconds` after the beginning; writes a line where nothing was said for long. */
void cli_log_tick(cli_log *log, double seconds, char *text, size_t size);
int cli_log_close(cli_log *log);
/* After the log: what every step of the search has taken and gained; without times where two logs are to be compared. */
void cli_log_steps(const moirai_plan *plan, bool times);

/* How sure a speed-up is: what 80 % of the times that might be give (step_sure.c). */
#define CLI_WANTED 4
typedef struct cli_wanted {
    const char *name; /* of a class of operators (moirai_cost_classes) */
    char device[64];  /* type, or name where it has none */
    int32_t n_ops;    /* predicted ones there, in the plan or on the best single device */
    double ns;        /* what they take, as predicted */
    double doubt;     /* its part of the variance that the speed-up has, 0 to 1 */
} cli_wanted;
typedef struct cli_interval {
    bool known;     /* something could be said */
    bool predicted; /* some times are */
    double low, high;
    int n_wanted; /* what to measure first, the most wanted first */
    cli_wanted wanted[CLI_WANTED];
} cli_interval;
void cli_how_sure(cli_interval *out, const moirai_problem *p, const moirai_plan *plan, const moirai_graph *g,
                  const moirai_cluster *c);
/* What is wanted, into the result. */
void cli_add_wanted(cli_context *cli, const cli_interval *sure);
/* Into the result, and in words where the verdict hangs on it. */
void cli_tell_sure(cli_context *cli, const cli_interval *sure, double speed_up);

#endif
