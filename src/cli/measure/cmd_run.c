/* moirai run: a plan, carried out: split, one process per device, measured, verified. */
#include "cli/commands/commands.h"
#include "cli/measure/run_best.h"
#include "cli/measure/run_outputs.h"
#include "cli/measure/run_rate.h"
#include "cli/measure/run_turns.h"
#include "cli/run/run_steps.h"
#include "cli/run/step_ranks.h"
#include "cli/steps/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/util.h"

static bool has_half(const cli_run *w)
{
    static const char *const list[] = {"inputs", "outputs", "transfers"};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        yyjson_val *value;
        size_t i, n;
        yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(w->manifest), list[k]), i, n, value) {
            const char *type = yyjson_get_str(yyjson_obj_get(value, "type"));
            if (type && (!strcmp(type, "float16") || !strcmp(type, "bfloat16")))
                return true;
        }
    }
    return false;
}

/* In parts of a GPU that MPS cuts, cuBLAS computes products in half precision wrongly where the number of
 * multiprocessors does not suit it, and says nothing (docs/pytorch.md has a table). So such runs are verified. */
static bool is_doubtful(const cli_run *w)
{
    for (int k = 0; k < w->n_ranks; k++) {
        const moirai_device *d = w->device[k];
        if (d && d->share > 0 && d->share < 1)
            return has_half(w);
    }
    return false;
}

static int prepare(cli_run *w)
{
    moirai_split_report report;
    int rc = cli_run_lay_out(w, cli_arg(w->cli, 0), &report);
    rc = rc ? rc : cli_outputs_check(w);
    rc = rc || w->in_flight < 2 ? rc : cli_rate_check(w, "run: --in-flight");
    if (rc)
        return rc;
    if (!cli_has(w->cli, "cluster"))
        cli_say(w->cli,
                "note: no --cluster: every device is one CPU thread of this machine; the planned time of a plan "
                "that was made for other devices is not comparable\n");
    cli_note_stand_ins(w->cli, w->device, w->n_ranks);
    cli_note_threads(w->cli, w->device, w->n_ranks);
    if (is_doubtful(w))
        cli_say(
            w->cli,
            "note: half precision on shares of a GPU: the outputs are verified, since its libraries are known to be "
            "wrong in shares of some sizes\n");
    cli_say(w->cli, "split into %s segments on %d devices, %s transfers\n", cli_human_count(report.n_segments).s,
            report.n_used, cli_human_count(report.n_transfers).s);
    yyjson_mut_obj_add_int(w->cli->doc, w->cli->result, "n_segments", report.n_segments);
    yyjson_mut_obj_add_int(w->cli->doc, w->cli->result, "n_transfers", report.n_transfers);
    yyjson_mut_obj_add_int(w->cli->doc, w->cli->result, "used_devices", report.n_used);
    return 0;
}

/* ---- running ---- */

/* "DONE TOTAL", warm-up included, as rank 0 counts; at most twice a second. */
static void draw(void *data, const char *text)
{
    const cli_run *w = data;
    long done, total, warm = (long)cli_count(w->cli, "warmup") + 1;
    if (sscanf(text, "in-flight %ld", &done) == 1)
        cli_status_now("%lld in flight: %ld have ended", (long long)w->in_flight, done);
    if (sscanf(text, "%ld %ld", &done, &total) != 2 || done > total)
        return;
    if (done < warm)
        cli_status_now("warming up: %ld of %ld", done, warm);
    else
        cli_status_now("running: %ld of %ld", done - warm, total - warm);
}

static int launch(const cli_run *w, bool inside)
{
    const char *argv[] = {"run", w->job, NULL};
    cli_launch_job l = {.n = w->n_ranks,
                        .name = w->name,
                        .host = w->has_hosts && !inside ? w->host : NULL,
                        .argv = argv,
                        .inside = inside,
                        .progress = draw,
                        .data = (void *)w,
                        .start_limit_s = cli_start_limit_s(w->cli, w->has_hosts)};
    cli_status_set("loading the sub-models on %d device%s", w->n_ranks, w->n_ranks == 1 ? "" : "s");
    int rc = cli_launch(&l);
    cli_status_set("%s", "");
    return rc;
}

/* Against the best plan so far, if --best names one. */
static int settle_best(const cli_run *w, const cli_best *b)
{
    cli_run other = {.cli = w->cli, .beside = "best"};
    moirai_split_report report;
    int rc = b->first || b->same ? 0 : cli_run_lay_out(&other, b->file, &report);
    rc = rc ? rc : cli_best_settle(b, w->cli, w, &other);
    cli_run_free(&other);
    return rc;
}

static int run_whole(const cli_run *w, const char *job, const char *verdict)
{
    const char *atol = cli_text(w->cli, "atol"), *rtol = cli_text(w->cli, "rtol");
    const char *against = cli_text(w->cli, "against");
    const char *argv[] = {"whole", job, verdict, atol ? atol : "-1", rtol ? rtol : "-1", against, NULL};
    static const char *const name[] = {"whole model"};
    cli_launch_job l = {.n = 1, .name = name, .argv = argv, .inside = true};
    cli_status_set("running the whole model on one device");
    int rc = cli_launch(&l);
    cli_status_set("%s", "");
    return rc;
}

static int verify(const cli_run *w)
{
    const char *verdict[CLI_MOST_COPIES] = {w->verdict};
    int n = w->copies ? w->copies->n : 1, rc = run_whole(w, w->job, w->verdict);
    for (int c = 1; c < n && !rc; c++) {
        verdict[c] = w->copies->copy[c].verdict;
        rc = run_whole(w, w->copies->copy[c].job, verdict[c]);
    }
    return rc ? rc : cli_show_verdict(w->cli, verdict, n);
}

static int copy_file(const char *from, const char *to)
{
    char *data;
    size_t length;
    int rc = util_file_read(&data, &length, from);
    if (rc)
        return rc;
    rc = util_file_write(to, data, length);
    free(data);
    return rc;
}

/* The measured timeline lies beside the plan: plan.json -> plan.measured.json. */
static int write_timeline(const cli_run *w)
{
    const char *given = cli_text(w->cli, "timeline"), *plan = cli_arg(w->cli, 0);
    char path[4200];
    plan = strcmp(plan, "-") ? plan : "plan";
    size_t n = strlen(plan);
    if (n > 5 && !strcmp(plan + n - 5, ".json"))
        n -= 5;
    snprintf(path, sizeof path, "%.*s.measured.json", (int)n, plan);
    const char *to = given ? given : path;
    int rc = w->in_flight < 2 ? copy_file(w->result, to) : cli_rate_join(w->cli, w->result, to);
    if (!rc) {
        cli_print(w->cli, "timeline     %s\n", to);
        yyjson_mut_obj_add_strcpy(w->cli->doc, w->cli->result, "timeline", to);
    }
    return rc;
}

/* Under a given mpirun the other ranks wait for rank 0, whatever becomes of it. */
static void tell_others(int rc)
{
    char code[16], message[1024];
    const char *argv[] = {"fail", code, NULL};
    static const char *const name[] = {"rank 0"};
    cli_launch_job l = {.n = 1, .name = name, .argv = argv, .inside = true};
    snprintf(code, sizeof code, "%d", -rc);
    snprintf(message, sizeof message, "%s", moirai_error_message());
    cli_launch(&l);
    moirai_error(rc, "%s", message);
}

static int follow(void)
{
    cli_mpi mpi;
    int rc = cli_mpi_find(&mpi);
    if (rc)
        return rc;
    execl(mpi.rank, mpi.rank, "run", "-", (char *)NULL);
    return moirai_error(MOIRAI_EFAIL, "%s: %s", mpi.rank, strerror(errno));
}

static int check_against(const cli_context *cli)
{
    const char *model = cli_text(cli, "against");
    if (model && !cli_has(cli, "verify"))
        return moirai_error(MOIRAI_EUSAGE, "run: --against needs --verify");
    return model && access(model, R_OK) ? moirai_error(MOIRAI_EINPUT, "%s: %s", model, strerror(errno)) : 0;
}

static int run(cli_context *cli)
{
    cli_run w = {.cli = cli, .at_least_s = cli_real(cli, "seconds")};
    int rank = 0, size = 0;
    bool inside = cli_inside_mpi(&rank, &size);
    if (inside && rank)
        return follow();
    cli_best best = {0};
    cli_rate_plan planned;
    int rc = check_against(cli);
    rc = rc ? rc : cli_best_open(&best, cli);
    rc = rc ? rc : cli_rate_plan_read(&planned, cli_arg(cli, 0));
    rc = rc ? rc : cli_rate_in_flight(&w.in_flight, cli, &planned, 1);
    rc = rc ? rc : prepare(&w);
    if (rc && inside)
        tell_others(rc);
    rc = rc ? rc : launch(&w, inside);
    rc = rc ? rc : cli_show_timeline(cli, w.result, cli_has(cli, "compare"));
    rc = rc || w.in_flight < 2 ? rc : cli_show_rate(cli, w.rate, &planned);
    rc = rc ? rc : write_timeline(&w);
    rc = rc ? rc : cli_outputs_write(&w);
    rc = rc || !(cli_has(cli, "verify") || is_doubtful(&w)) ? rc : verify(&w);
    rc = rc || !best.file ? rc : settle_best(&w, &best);
    cli_run_free(&w);
    return rc;
}

static const cli_argument arguments[] = {
    CLI_ARGUMENTS_PLAN_MODEL,
    {0},
};
static const cli_option options[] = {
    {.name = "cluster",
     .letter = 'c',
     .argument = "NAME|FILE",
     .kind = CLI_VALUE_CLUSTER,
     .help =
         "the plan's cluster: gives each device's ep, threads, cores and host (default: one CPU thread each, here)"},
    {.name = "hosts",
     .argument = "HOST,HOST",
     .kind = CLI_VALUE_TEXT,
     .help = "machines for the devices in order; a host in the cluster file wins"},
    {.name = "warmup",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "5",
     .least = 0,
     .most = 1e6,
     .help = "runs before the measured ones"},
    {.name = "runs",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "50",
     .least = 1,
     .most = 1e6,
     .help = "measured runs"},
    {.name = "in-flight",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 1,
     .most = CLI_MOST_IN_FLIGHT,
     .help = "then keep N requests in flight and measure the rate; every result must be that of the request alone "
             "(default: as many as the plan was made for)"},
    {.name = "seconds",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .standard = "0",
     .least = 0,
     .most = 1e6,
     .help = "with --in-flight: measure at least that long, and at least --runs requests"},
    {.name = "input",
     .argument = "NAME:FILE.npy",
     .kind = CLI_VALUE_TEXT,
     .repeated = true,
     .help = "value of an input, from a .npy or .pb file; or an ONNX test_data_set folder with all of them"},
    {.name = "seed",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "1",
     .help = "draws the inputs that are not given"},
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .kind = CLI_VALUE_FOLDER,
     .help = "write the outputs there as .npy, and outputs.json, which has their names"},
    CLI_OPTION_FORCE,
    {.name = "verify",
     .kind = CLI_VALUE_FLAG,
     .help = "compare the outputs with those of the whole model on one device; exit code 6 if they differ (always done "
             "in half precision on shares of a GPU)"},
    {.name = "against",
     .argument = "MODEL",
     .kind = CLI_VALUE_FILE,
     .help = "with --verify: compare with this model, of the same inputs and outputs: the one that MODEL was cut from"},
    {.name = "atol",
     .argument = "X",
     .kind = CLI_VALUE_REAL,
     .least = 0,
     .most = 1e30,
     .help = "absolute tolerance of --verify (default 1e-4, half precision 1e-2)"},
    {.name = "rtol",
     .argument = "X",
     .kind = CLI_VALUE_REAL,
     .least = 0,
     .most = 1e30,
     .help = "relative tolerance of --verify (default 1e-3, half precision 1e-2)"},
    {.name = "compare", .kind = CLI_VALUE_FLAG, .help = "predicted against measured, per segment and end to end"},
    {.name = "timeline",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "where the measured timeline goes (default: beside the plan, PLAN.measured.json); replaced if it exists"},
    {.name = "best",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "the best plan so far: it is run in turns with this one, which takes its place only if it is faster; "
             "made if it does not exist"},
    {.name = "work",
     .argument = "FOLDER",
     .kind = CLI_VALUE_FOLDER,
     .help = "folder for the sub-models, kept; with several machines all must see it (default: a temporary one)"},
    {.name = "keep", .kind = CLI_VALUE_FLAG, .help = "keep the temporary folder"},
    CLI_OPTION_START_LIMIT,
    {.name = "stall",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .least = 0,
     .most = 1e6,
     .standard = "120",
     .help =
         "give up when a device waits that long for another, and ten times as long as the plan takes; 0 is for ever"},
    CLI_OPTIONS_SPLIT,
    {0},
};
static const cli_example examples[] = {
    {"moirai run plan.json model.onnx --cluster mine.json --verify", "Run, measure and check the outputs"},
    {"moirai run plan.json model.onnx --runs 20 --compare", "Predicted against measured"},
    {"moirai run plan.json model.onnx --cluster mine.json --in-flight 4 --seconds 10",
     "The rate with four requests in flight"},
    {"moirai run again.json model.onnx --cluster mine.json --best plan.json",
     "plan.json becomes again.json if that is faster"},
    {"mpirun -n 3 moirai run plan.json model.onnx", "The same under a given mpirun, one rank per device"},
    {0},
};
const cli_command cli_command_run = {
    .name = "run",
    .summary = "carry out a plan: distributed inference, one process per device",
    .text =
        "Splits the model, starts one process per device with mpirun, and measures the end-to-end latency over several "
        "runs. Every device runs its sub-models with ONNX Runtime; tensors travel by MPI while devices compute, and "
        "stay "
        "where they are between parts of one GPU.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
