/* moirai tune: measure, plan, run, refine, until it no longer gets faster; what is kept was measured to be the fastest.
 *
 * 1. probe and profile: links and operators.
 * 2. The network whole on every device, and whole on this machine with all its threads: what a split must beat, and
 *    what tells refine most.
 * 3. Rounds: refine with all runs so far, plan for every set of devices that are apart (moirai_cluster_apart), run the
 *    most promising plan. There is one in any case; it ends when a plan comes back, when PATIENCE rounds brought nothing, with the budget, or
 *    with Ctrl-C.
 * 4. With --split-operators, once more for the network cut into pieces (tune_cut.c).
 * 5. The fastest splits, the fastest devices alone and the machine are run again in turns (tune_passes.c), and these
 *    passes decide. A split is kept only if it is faster than the fastest device by more than WORTH.
 * 6. Half of these runs teach the model, the other half judges it.
 *
 * Nothing is kept on the word of the model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/measure/run_rate.h"
#include "cli/tune/tune.h"
#include "cli/run/run_steps.h"
#include "cli/run/step_ranks.h"
#include "cli/steps/steps.h"
#include "util/util.h"

enum { PATIENCE = 2 };
#define DECIDE 0.5       /* of the time, for the passes */
#define BEFORE_CUTS 0.75 /* and for cut networks */
#define WORTH 0.01       /* what two medians of one plan differ by on a quiet machine */

static bool interrupted(void)
{
    return moirai_interrupt_raised(cli_interrupt());
}

static bool is_rate(const cli_context *cli)
{
    return !strcmp(cli_text(cli, "objective"), "rate");
}

static int check_objective(const cli_context *cli)
{
    if (!is_rate(cli) && cli_has(cli, "in-flight"))
        return moirai_error(MOIRAI_EUSAGE, "tune: --in-flight is for --objective rate");
    if (is_rate(cli) && cli_has(cli, "split-operators"))
        return moirai_error(MOIRAI_EUSAGE, "tune: --split-operators is for --objective latency");
    if (is_rate(cli) && cli_has(cli, "placer"))
        return moirai_error(MOIRAI_EUSAGE, "tune: --objective rate has a search of its own, not --placer '%s'",
                            cli_text(cli, "placer"));
    return 0;
}

static int check(cli_context *cli)
{
    static const char *const outputs[] = {"output", "cluster-out", "graph-out", "cut-out"};
    int rank, size, rc = 0;
    if (cli_inside_mpi(&rank, &size))
        return moirai_error(MOIRAI_EUSAGE, "tune: starts ranks of its own: run it without mpirun");
    if (!cli_is_onnx(cli_arg(cli, 0)))
        return moirai_error(MOIRAI_EUSAGE,
                            "tune: '%s' is no ONNX file: only those can be run ('moirai zoo NAME --onnx "
                            "FILE' makes one)",
                            cli_arg(cli, 0));
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && !rc; i++)
        rc = cli_writable(cli, cli_text(cli, outputs[i]));
    rc = rc ? rc : cli_cut_check(cli);
    return rc ? rc : check_objective(cli);
}

/* ---- rounds ---- */

static bool was_measured(const tune *t, const tune_case *x)
{
    bool found = false;
    for (int r = 0; r < t->n_rounds; r++)
        found |= t->round[r].placement == x->placement;
    for (int32_t k = 0; k < t->cluster->n_devices; k++)
        found |= t->alone[k].measured_ns >= 0 && t->alone[k].placement == x->placement;
    return found;
}

/* One round; *over: there is nothing more to try. */
static int one_round(tune *t, tune_net *net, bool *over)
{
    double begin_s = util_seconds();
    tune_case *x = &t->round[t->n_rounds];
    int rc = net->cut && !net->n_rounds ? 0 : tune_refine(t, net, NULL);
    rc = rc ? rc : tune_plan(t, net, x);
    if (rc)
        return rc;
    *over = !*x->plan || was_measured(t, x);
    t->stopped = !*x->plan      ? "no two devices can work at the same time"
                 : !t->n_rounds ? "by what was measured none is faster than one device"
                                : "the best plan was one that had been run";
    if (*over)
        return 0;
    rc = tune_run(t, x);
    if (rc)
        return rc;
    t->n_rounds++;
    net->n_rounds++;
    tune_show_case(t, x);
    t->round_s = util_seconds() - begin_s;
    return 0;
}

static int64_t fastest(tune *t)
{
    const tune_case *alone = tune_best_alone(t), *split = tune_best_round(t);
    int64_t a = alone ? alone->measured_ns : INT64_MAX, s = split ? split->measured_ns : INT64_MAX;
    return UTIL_MIN(a, s);
}

/* Whether there is time for one more. The first split of all is run in any case: without it there is nothing to say. */
static bool has_time(const tune *t, double reserve)
{
    return !t->n_rounds || tune_left_s(t) >= 1.5 * t->round_s + reserve * t->limit_s;
}

/* Of one network. `reserve` of the time is left for what comes afterwards. */
static int rounds(tune *t, tune_net *net, double reserve)
{
    int most = (int)cli_count(t->cli, "rounds"), since = 0, rc = 0;
    bool over = false;
    t->stopped = "the given number of rounds was over";
    for (int r = 0; r < most && !over && !rc; r++) {
        int64_t before = fastest(t);
        if (interrupted() || !has_time(t, reserve)) {
            t->stopped = interrupted() ? "Ctrl-C" : "the time was over";
            return 0;
        }
        rc = one_round(t, net, &over);
        since = before < INT64_MAX && (double)fastest(t) > (1 - WORTH) * (double)before ? since + 1 : 0;
        if (!rc && !over && since >= PATIENCE) {
            t->stopped = "it no longer got faster";
            return 0;
        }
    }
    return rc;
}

/* Rounds of the network as it is, then cut. Half of the time is left for the passes that decide. */
static int all_rounds(tune *t)
{
    int rc = rounds(t, &t->net[0], t->shards ? BEFORE_CUTS : DECIDE);
    if (rc || !t->shards || interrupted())
        return rc;
    rc = tune_refine(t, &t->net[0], NULL); /* links as the last round has them */
    rc = rc ? rc : tune_cut(t);
    if (rc || !t->cut_net)
        return rc;
    rc = rounds(t, t->cut_net, DECIDE);
    if (rc != MOIRAI_EVERIFY)
        return rc;
    cli_say(t->cli, "warning: the cut network's results differ, it is not kept: %s\n", moirai_error_message());
    t->cut_verdict = "the cut network's results differ from those of the model as it is";
    return 0;
}

/* ---- the end ---- */

static int decide(tune *t)
{
    tune_case *alone = tune_best_alone(t), *split = tune_best_round(t);
    bool pays = split && (!alone || (double)split->measured_ns < (1 - WORTH) * (double)alone->measured_ns);
    t->kept = pays ? split : alone;
    if (!t->kept)
        return moirai_error(interrupted() ? MOIRAI_ELIMIT : MOIRAI_EINFEASIBLE,
                            interrupted() ? "tune: interrupted before anything was run"
                                          : "tune: no device holds the whole network, and no split was found");
    return 0;
}

static int copy(const char *from, const char *to)
{
    char *data;
    size_t length;
    if (!to)
        return 0;
    int rc = util_file_read(&data, &length, from);
    if (rc)
        return rc;
    rc = util_file_write(to, data, length);
    free(data);
    return rc;
}

/* ---- the command ---- */

static int baselines(tune *t)
{
    int rc = 0;
    for (int32_t k = 0; k < t->cluster->n_devices && !rc && !interrupted(); k++) {
        rc = tune_alone(t, k);
        if (!rc)
            tune_show_case(t, &t->alone[k]);
    }
    if (rc || interrupted())
        return rc;
    rc = tune_machine(t);
    tune_show_case(t, &t->machine);
    return rc;
}

static int measure(tune *t)
{
    int rc = tune_probe(t);
    if (!rc)
        cli_tell_sharing(t->cli, t->cluster, t->host_cores, "no plan uses both");
    rc = rc ? rc : tune_profile(t, &t->net[0]);
    for (int32_t k = 0; !rc && k < t->cluster->n_devices; k++)
        t->alone[k].measured_ns = MOIRAI_UNKNOWN;
    t->machine.measured_ns = MOIRAI_UNKNOWN;
    rc = rc ? rc : baselines(t);
    if (is_rate(t->cli))
        return rc ? rc : tune_rate(t);
    rc = rc ? rc : all_rounds(t);
    if (rc && !interrupted())
        return rc;
    return t->cluster ? tune_passes(t) : rc;
}

static int hand_out_rate(const tune *t)
{
    int rc = copy(t->kept->plan, cli_text(t->cli, "output"));
    rc = rc ? rc : copy(t->net[0].links, cli_text(t->cli, "cluster-out"));
    return rc ? rc : copy(t->net[0].graph, cli_text(t->cli, "graph-out"));
}

static int hand_out(tune *t)
{
    int rc = tune_refine(t, t->kept->net, t->kept);
    tune_judge(t);
    rc = rc ? rc : tune_predict(t, t->kept, &t->predicted_ns);
    rc = rc ? rc : copy(t->kept->plan, cli_text(t->cli, "output"));
    rc = rc ? rc : copy(t->kept->net->links, cli_text(t->cli, "cluster-out"));
    rc = rc ? rc : copy(t->kept->net->graph, cli_text(t->cli, "graph-out"));
    return rc ? rc : tune_cut_write(t);
}

static int run(cli_context *cli)
{
    tune *t = util_alloc(1, sizeof *t);
    int rc = t ? check(cli) : MOIRAI_EFAIL;
    if (!rc) {
        t->cli = cli;
        t->stopped = "nothing";
        rc = tune_open(t);
        rc = rc ? rc : tune_cut_open(t);
        rc = rc ? rc : measure(t);
        cli_status_set("%s", "");
        bool rate = is_rate(cli);
        rc = rc || rate ? rc : decide(t);
        rc = rc ? rc : rate ? hand_out_rate(t) : hand_out(t);
        if (!rc)
            (rate ? tune_rate_show : tune_show)(t);
        tune_close(t);
    }
    free(t);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "MODEL", .kind = CLI_VALUE_FILE, .help = "an ONNX file"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTION_CLUSTER,
    {.name = "objective",
     .argument = "WHAT",
     .kind = CLI_VALUE_CHOICE,
     .choices = "latency|rate",
     .standard = "latency",
     .help = "one inference as fast as can be, or as many per second as can be"},
    {.name = "in-flight",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 2,
     .most = CLI_MOST_IN_FLIGHT,
     .help = "for --objective rate: requests at a time, at most (default: twice the devices)"},
    {.name = "time-limit",
     .argument = "SECONDS",
     .kind = CLI_VALUE_LIMIT,
     .least = 1,
     .most = 1e9,
     .standard = "180",
     .help = "time for all of it; probing, profiling, one run on every device and one of a split are done in any case. "
             "'none': rounds decide"},
    {.name = "rounds",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 0,
     .most = TUNE_MOST_ROUNDS,
     .standard = "8",
     .help = "most rounds of refine, plan, run"},
    {.name = "runs",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 3,
     .most = 1e6,
     .standard = "30",
     .help = "measured runs of a plan at a time, at least; fewer where the network takes long"},
    {.name = "run-seconds",
     .argument = "S",
     .kind = CLI_VALUE_REAL,
     .least = 0,
     .most = 1e4,
     .standard = "0.3",
     .help = "as many runs of a plan at a time as fit into this, or in turns into a fifth of it"},
    {.name = "passes",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 2,
     .most = TUNE_MOST_PASSES,
     .standard = "300",
     .help = "most times that the fastest plans are run again, in turns; fewer on a quiet machine, or "
             "where the time is over"},
    {.name = "warmup",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 1,
     .most = 1e6,
     .standard = "5",
     .help = "runs before the measured ones"},
    {.name = "placer", .letter = 'p', .argument = "P", .kind = CLI_VALUE_PLACER, .help = "method that makes the plans"},
    {.name = "plan-limit",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .least = 0.01,
     .most = 1e6,
     .standard = "5",
     .help = "time for a plan"},
    {.name = "memory",
     .argument = "M",
     .kind = CLI_VALUE_CHOICE,
     .choices = "static|peak",
     .help = "what must fit: weights and workspace, or these and the tensors alive at once (default static)"},
    {.name = "seed", .argument = "N", .kind = CLI_VALUE_COUNT, .help = "seed of random choices (default 1)"},
    {.name = "threads",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 0,
     .most = 1024,
     .help = "threads for planning (default one per core)"},
    {.name = "rules", .argument = "SET|FILE", .kind = CLI_VALUE_RULES, .help = "fusion rules (default onnxruntime)"},
    {.name = "input",
     .argument = "NAME:FILE.npy",
     .kind = CLI_VALUE_TEXT,
     .repeated = true,
     .help = "value of an input, or a test_data_set folder (default: random numbers)"},
    {.name = "probe-seconds",
     .argument = "S",
     .kind = CLI_VALUE_REAL,
     .least = 0.01,
     .most = 1e6,
     .standard = "3",
     .help = "time to measure links in"},
    {.name = "keep-links", .kind = CLI_VALUE_FLAG, .help = "take the links as the cluster file gives them"},
    CLI_OPTION_HOSTS,
    {.name = "cache",
     .argument = "FOLDER",
     .kind = CLI_VALUE_FOLDER,
     .help = "where measured times of operators are kept (default ~/.cache/moirai)"},
    {.name = "fresh", .kind = CLI_VALUE_FLAG, .help = "measure what is kept there, too"},
    {.name = "work",
     .argument = "FOLDER",
     .kind = CLI_VALUE_FOLDER,
     .help = "folder for all files on the way, kept (default: a temporary one)"},
    {.name = "dim",
     .argument = "NAME=N",
     .help = "set a symbolic dimension of the network",
     .kind = CLI_VALUE_TEXT,
     .repeated = true},
    {.name = "shape",
     .argument = "INPUT:1x3x224x224",
     .help = "set the shape of an input",
     .kind = CLI_VALUE_TEXT,
     .repeated = true},
    {.name = "cluster-out",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "write the cluster with the latencies and bandwidths that the runs had"},
    {.name = "graph-out",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "write the network with the times that the runs had"},
    CLI_OPTIONS_SHARD,
    CLI_OPTION_OUTPUT("write the plan that is kept"),
    {0},
};
static const cli_example examples[] = {
    {"moirai tune model.onnx --cluster mine.json -o plan.json", "The fastest plan that was measured"},
    {"moirai tune model.onnx --cluster mine.json --split-operators auto --cut-out cut.onnx -o plan.json",
     "Operators in pieces as well, where that was measured to be faster: then the plan is for cut.onnx"},
    {"moirai tune model.onnx --cluster mine.json --objective rate --in-flight 8 -o plan.json",
     "What was measured to serve the most requests per second: a plan for 'moirai serve'"},
    {"moirai tune model.onnx --cluster mine.json --time-limit 600 --work tuning --json", "Longer, and keep all files"},
    {0},
};
const cli_command cli_command_tune = {
    .name = "tune",
    .summary = "probe, profile, plan, run and refine until it no longer gets faster",
    .text =
        "Measures links and operators, runs the whole network on every device alone and on this machine with all its "
        "threads, then plans, runs and refines in rounds. What is kept is the plan that was measured to be the "
        "fastest; the verdict says plainly where one device, or this machine without any plan, is faster. Devices that "
        "share cores or a GPU are never used together.\n\n"
        "With --objective rate several requests are in flight: the plan of one request, a row of stages, a copy on "
        "each "
        "device and what the search for the best rate says are run, each result compared with that of the request "
        "alone, and what was measured to serve the most is kept.\n\n"
        "Ctrl-C ends the rounds and keeps the best so far.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
