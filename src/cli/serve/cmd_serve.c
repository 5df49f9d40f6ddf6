/* moirai serve: a plan that answers requests, by the Open Inference Protocol. */
#include "cli/commands/commands.h"
#include "cli/measure/run_rate.h"
#include "cli/serve/serve_buckets.h"
#include "cli/steps/steps.h"

#include <string.h>
#include <time.h>
#include <yyjson.h>

/* A name as a part of an address. */
static void escape(char *out, size_t size, const char *name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t used = 0;
    *out = '\0';
    for (const char *c = name; *c && used + 4 < size; c++)
        used += (size_t)snprintf(out + used, size - used, strchr(plain, *c) ? "%c" : "%%%02X", (unsigned char)*c);
}

static void announce(const serve_buckets *b)
{
    const serve_keep *k = b->keep;
    cli_context *cli = k->cli;
    char shapes[40] = "", name[1024];
    int n = k->first.run.n_ranks;
    if (b->n > 1)
        snprintf(shapes, sizeof shapes, ", plans for %d shapes", b->n);
    escape(name, sizeof name, serve_model_of(k->server)->name);
    const char *address = cli_text(cli, "address");
    bool six = strchr(address, ':') != NULL;
    (cli->json ? cli_say : cli_print)(
        cli, "serving      http://%s%s%s:%d/v2/models/%s on %d device%s, %lld in flight%s\n", six ? "[" : "", address,
        six ? "]" : "", serve_port(k->server), name, n, n == 1 ? "" : "s", (long long)k->in_flight, shapes);
    fflush(stdout);
}

static void sum_up(const serve_buckets *b)
{
    cli_context *cli = b->cli;
    serve_keep all = {0};
    for (int i = 0; i < b->n; i++) {
        all.n_accepted += b->keep[i].n_accepted;
        all.n_repeated += b->keep[i].n_repeated;
        all.n_lost += b->keep[i].n_lost;
        all.longest_s = b->keep[i].longest_s > all.longest_s ? b->keep[i].longest_s : all.longest_s;
    }
    yyjson_mut_obj_add_int(cli->doc, cli->result, "accepted", all.n_accepted);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "repeated", all.n_repeated);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "lost_groups", all.n_lost);
    yyjson_mut_obj_add_real(cli->doc, cli->result, "longest_loss_s", all.longest_s);
    cli_say(cli, "%lld requests were accepted, and all of them answered\n", (long long)all.n_accepted);
}

static int run(cli_context *cli)
{
    serve_buckets all;
    int rc = serve_buckets_open(&all, cli, &cli_command_serve);
    if (!rc) {
        announce(&all);
        while (!moirai_interrupt_raised(cli_interrupt())) {
            serve_buckets_tick(&all);
            nanosleep(&(struct timespec){0, 5000000}, NULL);
        }
        cli_say(cli, "ending: no more requests are taken\n");
    }
    char message[1024];
    snprintf(message, sizeof message, "%s", moirai_error_message());
    serve_buckets_close(&all);
    if (!rc)
        sum_up(&all);
    serve_buckets_free(&all);
    return rc ? moirai_error(rc, "%s", message) : 0;
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
     .help = "the plan's cluster: gives each device's ep, threads, cores and host, and lets plans be made for the case "
             "that a device leaves (default: one CPU thread each, here)"},
    {.name = "in-flight",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 1,
     .most = CLI_MOST_IN_FLIGHT,
     .help = "requests that the devices work on at a time (default: as many as the plan was made for, else 4)"},
    {.name = "address",
     .argument = "IP",
     .kind = CLI_VALUE_TEXT,
     .standard = "127.0.0.1",
     .help = "where to listen; there is no encryption and no password: what others can reach, others can use"},
    {.name = "port",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "8000",
     .least = 0,
     .most = 65535,
     .help = "where to listen; 0 takes one that is free"},
    {.name = "name",
     .argument = "NAME",
     .kind = CLI_VALUE_TEXT,
     .help = "the model's name for clients (default: the file's)"},
    {.name = "bucket",
     .argument = "PLAN,MODEL[,NAME=N]",
     .kind = CLI_VALUE_TEXT,
     .repeated = true,
     .help =
         "another plan, of the same model for other shapes (with symbolic dimensions of its own); requests go to the "
         "plan whose shapes they have, and nothing is padded"},
    {.name = "queue",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "64",
     .least = 1,
     .most = 1e6,
     .help = "requests that may wait beside those in flight; one more is refused with status 429"},
    {.name = "timeout",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .standard = "30",
     .least = 1e-3,
     .most = 1e6,
     .help = "a request that takes longer is answered with status 504; a request may ask for less"},
    {.name = "idle",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .standard = "30",
     .least = 1e-3,
     .most = 1e6,
     .help = "a client that takes longer to send a request, to take its answer, or between two is cut off"},
    {.name = "connections",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "256",
     .least = 2,
     .most = 10000,
     .help = "clients at a time; where all of them are taken, one that sends no request for a second is cut off"},
    {.name = "network",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "what plans without a device are made of: a graph file with measured times (default: MODEL)"},
    {.name = "plan-limit",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .standard = "3",
     .least = 1e-3,
     .most = 1e6,
     .help = "time for each plan without a device, made by one thread beside the server"},
    {.name = "no-fallback",
     .kind = CLI_VALUE_FLAG,
     .help = "make no plans without a device: when one leaves, all start again"},
    {.name = "standby",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .least = 0,
     .most = 1e6,
     .help =
         "plans without a device that are kept loaded, so that one of them goes on at once (default: as many as half "
         "of this machine's memory has room for, none where devices are on others)"},
    {.name = "retake",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .standard = "5",
     .least = 0,
     .most = 1e6,
     .help = "after that time without a device the whole plan is started again, and takes over when it is loaded"},
    {.name = "slow",
     .argument = "FACTOR",
     .kind = CLI_VALUE_REAL,
     .standard = "2",
     .least = 0,
     .most = 1e6,
     .help = "a device that takes so many times as long as expected, beside the others, is planned around; 0: never"},
    {.name = "slow-for",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .standard = "10",
     .least = 0,
     .most = 1e6,
     .help = "after it has been slow, or fast again, for that long"},
    {.name = "hosts",
     .argument = "HOST,HOST",
     .kind = CLI_VALUE_TEXT,
     .help = "machines for the devices in order, the first of them this one; a host in the cluster file wins"},
    {.name = "seed",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "1",
     .help = "draws the inputs of the first run, which shows the sizes of all tensors"},
    {.name = "work",
     .argument = "FOLDER",
     .kind = CLI_VALUE_FOLDER,
     .help = "folder for the sub-models, kept; with several machines all must see it (default: temporary ones)"},
    CLI_OPTION_START_LIMIT,
    {.name = "stall",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .least = 0,
     .most = 1e6,
     .standard = "20",
     .help = "a device that gives no sign of life for that long is lost, as one that has died; 0: never"},
    CLI_OPTIONS_SPLIT,
    {0},
};
static const cli_example examples[] = {
    {"moirai serve plan.json model.onnx --cluster mine.json", "Answer requests on http://127.0.0.1:8000"},
    {"curl -d '{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [2], \"data\": [1, 2]}]}' "
     "http://127.0.0.1:8000/v2/models/model/infer",
     "Ask it"},
    {"moirai serve one.json model.onnx --dim batch=1 --bucket eight.json,model.onnx,batch=8",
     "Requests of one image and of eight, a plan each"},
    {"curl http://127.0.0.1:8000/metrics", "What Prometheus reads"},
    {0},
};
const cli_command cli_command_serve = {
    .name = "serve",
    .summary = "answer requests by a plan: HTTP with the Open Inference Protocol",
    .text =
        "Splits the model, starts one process per device, and keeps them. Clients of the Open Inference Protocol, "
        "version 2, such as those of Triton and KServe, send requests; several are in flight at a time. When a device "
        "leaves, the others go on by a plan without it, and requests that were under way are repeated. A device that "
        "becomes slow is planned around, until it is fast again.\n\n"
        "SIGTERM and Ctrl-C end it: what was accepted is answered first.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
