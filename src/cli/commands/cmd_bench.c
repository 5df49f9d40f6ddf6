/* moirai bench paper: the paper's experiments, by one command. */
#include "cli/commands/commands.h"
#include "cli/steps/step_child.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include <moirai/study.h>

#include "util/util.h"

/* ---- running ---- */

typedef struct work {
    moirai_study_row row;
    const moirai_study_setting *setting;
    const moirai_study *study;
} work;

static void run_row(void *data)
{
    work *w = data;
    moirai_study_run(&w->row, w->setting, w->study, cli_interrupt());
}

/* What the rest may take: those that search, and tell who found a plan by letters, to their limits. Others are quick. */
static double seconds_left(const moirai_study *s, int32_t from)
{
    double sum = 0;
    for (int32_t i = from; i < s->n; i++) {
        const moirai_placer *p = moirai_placer_find(s->row[i].of.placer);
        sum += !s->row[i].done && (!p || p->letters) ? s->row[i].of.time_limit_s : 0;
    }
    return sum;
}

static void tell(const cli_context *cli, const moirai_study *s, int32_t i)
{
    const moirai_study_row *r = &s->row[i];
    double left = seconds_left(s, i + 1);
    if (r->result)
        cli_say(cli, " no plan: %s\n", r->message);
    else
        cli_say(cli, " %s, made in %s; about %.0f %s left\n", cli_human_ns(r->makespan_ns).s,
                cli_human_ns(r->generation_ns).s, left < 90 ? left : left / 60, left < 90 ? "s" : "min");
}

/* One row in a process of its own, into the journal. */
static int run_one(const cli_context *cli, moirai_study *s, int32_t i, const moirai_study_setting *setting,
                   const char *journal)
{
    work w = {.row = s->row[i], .setting = setting, .study = s};
    cli_child_end end;
    char text[200];
    moirai_study_case_text(text, sizeof text, &s->row[i].of);
    cli_say(cli, "[%d/%d] %s ...", i + 1, s->n, text);
    int rc = cli_child_run(&end, run_row, &w, sizeof w, cli_interrupt());
    if (rc || moirai_interrupt_raised(cli_interrupt())) {
        cli_say(cli, "\n");
        return rc;
    }
    if (!end.answered)
        moirai_study_fail(&w.row, s, MOIRAI_EFAIL, end.message);
    w.row.process_bytes = end.process_bytes;
    s->row[i] = w.row;
    tell(cli, s, i);
    return end.answered ? moirai_study_journal_add(&s->row[i], journal) : 0; /* what died is tried again next time */
}

/* A network or cluster that can't be had is a row that says so. */
static int without_setting(const cli_context *cli, moirai_study *s, int32_t i, int rc, const char *journal)
{
    char text[200];
    moirai_study_case_text(text, sizeof text, &s->row[i].of);
    cli_say(cli, "[%d/%d] %s ...", i + 1, s->n, text);
    moirai_study_fail(&s->row[i], s, rc, moirai_error_message());
    tell(cli, s, i);
    return moirai_study_journal_add(&s->row[i], journal);
}

static int run_rows(const cli_context *cli, moirai_study *s, const char *journal)
{
    moirai_study_setting *setting = NULL;
    int rc = 0;
    for (int32_t i = 0; i < s->n && !rc && !moirai_interrupt_raised(cli_interrupt()); i++) {
        if (s->row[i].done)
            continue;
        if (!moirai_study_setting_fits(setting, &s->row[i].of)) {
            moirai_study_setting_free(setting);
            setting = NULL;
            if ((rc = moirai_study_setting_new(&setting, &s->row[i].of)))
                rc = without_setting(cli, s, i, rc, journal);
        }
        if (setting)
            rc = rc ? rc : run_one(cli, s, i, setting, journal);
    }
    moirai_study_setting_free(setting);
    if (!rc && moirai_interrupt_raised(cli_interrupt()))
        cli_say(cli, "interrupted: this is what is done; the same command goes on from here\n");
    return rc;
}

/* ---- writing ---- */

static int write_one(const cli_context *cli, const char *folder, const char *name, const moirai_study *s,
                     int (*make)(char **, size_t *, const moirai_study *))
{
    char path[4096], *text;
    size_t length;
    int rc = make(&text, &length, s);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    rc = rc ? rc : util_file_write(path, text, length);
    if (!rc)
        cli_say(cli, "%s, %s\n", path, cli_human_bytes((int64_t)length).s);
    free(text);
    return rc;
}

static int write_figures(const moirai_study *s, const char *folder)
{
    int n = moirai_study_figure_count(s), rc = n < 0 ? n : util_folder_make(folder);
    for (int i = 0; i < n && !rc; i++) {
        char name[32], path[4200], *svg;
        size_t length;
        rc = moirai_study_figure(&svg, &length, name, s, i);
        snprintf(path, sizeof path, "%s/%s.svg", folder, name);
        rc = rc ? rc : util_file_write(path, svg, length);
        free(svg);
    }
    return rc;
}

/* docs/paper.md has its figures in docs/paper/. */
static int write_markdown(const cli_context *cli, const moirai_study *s, const char *path)
{
    char folder[4096], *text = NULL;
    size_t length, end = strlen(path);
    if (end > 3 && !strcmp(path + end - 3, ".md"))
        end -= 3;
    snprintf(folder, sizeof folder, "%.*s", (int)end, path);
    const char *slash = strrchr(folder, '/');
    int rc = write_figures(s, folder);
    rc = rc ? rc : moirai_study_markdown(&text, &length, s, slash ? slash + 1 : folder);
    rc = rc ? rc : util_file_write(path, text, length);
    if (!rc)
        cli_say(cli, "%s, %s, its figures in %s/\n", path, cli_human_bytes((int64_t)length).s, folder);
    free(text);
    return rc;
}

/* A page of a busy machine is what readers would judge the placers by. */
static int check_load(const cli_context *cli, const moirai_study *s)
{
    double load = moirai_study_load(s);
    if (load <= MOIRAI_STUDY_MOST_LOAD || cli_has(cli, "force"))
        return 0;
    return moirai_error(
        MOIRAI_EFAIL,
        "%s: not written: the load was %.1f per core in the mean, and above %.1f gaps are wider than on a "
        "quiet machine (all other files are there; --force writes this one, too)",
        cli_text(cli, "markdown"), load, MOIRAI_STUDY_MOST_LOAD);
}

static int show(cli_context *cli, const moirai_study *s, const char *folder)
{
    char *text, *json = NULL;
    size_t length;
    int32_t done = 0, failed = 0;
    int rc = moirai_study_text(&text, &length, s);
    for (char *at = rc ? NULL : text, *end; at && *at; at = end + 1) { /* a line at a time: a text may hold no breaks */
        end = strchr(at, '\n');
        *end = '\0';
        cli_print(cli, "%s\n", at);
    }
    free(text);
    for (int32_t i = 0; i < s->n; i++) {
        done += s->row[i].done;
        failed += s->row[i].done && s->row[i].result;
    }
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "folder", folder);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "cases", s->n);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "done", done);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "without_plan", failed);
    rc = rc ? rc : moirai_study_json(&json, &length, s);
    yyjson_doc *doc = rc ? NULL : yyjson_read(json, length, 0);
    if (doc)
        yyjson_mut_obj_add_val(cli->doc, cli->result, "study", yyjson_val_mut_copy(cli->doc, yyjson_doc_get_root(doc)));
    yyjson_doc_free(doc);
    free(json);
    return rc;
}

static int write_all(cli_context *cli, const moirai_study *s, const char *folder)
{
    int refused = 0, rc = write_one(cli, folder, "results.json", s, moirai_study_json);
    rc = rc ? rc : write_one(cli, folder, "results.csv", s, moirai_study_csv);
    rc = rc ? rc : write_one(cli, folder, "paper.html", s, moirai_study_page);
    if (!rc && cli_has(cli, "markdown"))
        rc = (refused = check_load(cli, s)) ? 0 : write_markdown(cli, s, cli_text(cli, "markdown"));
    rc = rc ? rc : show(cli, s, folder);
    return rc || !refused ? rc : check_load(cli, s); /* its words again */
}

static int run(cli_context *cli)
{
    const char *folder = cli_text(cli, "output"), *what = cli_arg(cli, 0);
    moirai_study_options o;
    moirai_study *s = NULL;
    char journal[4096];
    int32_t taken = 0;
    if (strcmp(what, "paper"))
        return moirai_error(MOIRAI_EUSAGE, "bench: nothing is called '%s': 'paper' is all that there is", what);
    if (!folder)
        return moirai_error(MOIRAI_EUSAGE, "bench: -o DIR says where results go");
    moirai_study_options_init(&o);
    o.networks = cli_text(cli, "models");
    o.testbeds = cli_text(cli, "testbeds");
    o.placers = cli_text(cli, "placers");
    o.parts = cli_text(cli, "parts");
    o.time_limit_s = cli_real(cli, "time-limit");
    o.seed = (uint64_t)cli_count(cli, "seed");
    o.threads = (int)cli_count(cli, "threads");
    int rc = moirai_study_new(&s, &o);
    rc = rc ? rc : util_folder_make(folder);
    snprintf(journal, sizeof journal, "%s/journal.jsonl", folder);
    rc = rc ? rc : moirai_study_journal_read(s, journal, &taken);
    if (!rc && taken > 0)
        cli_say(cli, "%s: %d of %d experiments are done\n", journal, taken, s->n);
    if (!rc && cli_has(cli, "measured"))
        rc = moirai_study_measured_read(s, cli_text(cli, "measured"));
    if (!rc && !cli_has(cli, "show"))
        rc = run_rows(cli, s, journal);
    rc = rc ? rc : write_all(cli, s, folder);
    moirai_study_free(s);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "WHAT", .kind = CLI_VALUE_TEXT, .help = "'paper': the experiments of the paper"},
    {0},
};
static const cli_option options[] = {
    {.name = "models",
     .argument = "A,B",
     .kind = CLI_VALUE_TEXT,
     .help = "networks of the zoo (default: the paper's eleven)"},
    {.name = "testbeds",
     .argument = "A,B",
     .kind = CLI_VALUE_TEXT,
     .standard = "inter-server,intra-server",
     .help = "the paper's testbeds"},
    {.name = "placers",
     .argument = "A,B",
     .kind = CLI_VALUE_TEXT,
     .standard = "placeto,hrl,m-sct,getf,m-etf,heft,single,chain,moirai",
     .help = "of the tables of latency"},
    {.name = "parts",
     .argument = "A,B",
     .kind = CLI_VALUE_TEXT,
     .help = "of latency, ablation, milp, runtime, flow, map, batch (default: all)"},
    {.name = "time-limit",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .least = 1e-3,
     .most = 1e6,
     .standard = "10",
     .help = "of each placer that searches or learns"},
    CLI_OPTION_THREADS("threads of each placer"),
    CLI_OPTION_SEED,
    {.name = "show", .kind = CLI_VALUE_FLAG, .help = "run nothing: write what the journal has"},
    {.name = "markdown",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "also write the results as Markdown, figures in a folder beside it; not where the machine was too busy"},
    {.name = "measured",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "what bench/paper_measured.py has measured on a GPU: the page gets a chapter of it"},
    {.name = "force", .letter = 'f', .kind = CLI_VALUE_FLAG, .help = "write it all the same"},
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .kind = CLI_VALUE_FOLDER,
     .help = "folder of the results; made where it is missing. What its journal has is not run again"},
    {0},
};
static const cli_example examples[] = {
    {"moirai bench paper --models gpt3-330M,alphafold2-87M -o results",
     "Two networks, all questions, within ten minutes"},
    {"moirai bench paper -o results", "All of it: about 40 minutes on two cores"},
    {"moirai bench paper -o results --show --markdown paper.md", "What is done so far, as a page of Markdown"},
    {"moirai bench paper -o results --show --measured measured.jsonl --markdown paper.md",
     "The same with what was measured"},
    {0},
};
const cli_command cli_command_bench = {
    .name = "bench",
    .summary = "repeat the paper's experiments, and set our numbers beside the paper's",
    .text =
        "Parts: latency (networks x testbeds x {original, coarsened} x placers), ablation (plans made without "
        "congestion, "
        "communication or memory, judged by the whole model), milp (the paper's program alone against the engine), "
        "runtime (what launches cost), flow (what sending a tensor once per reader costs), map and batch (where "
        "placing pays). All but latency take the smallest network "
        "of "
        "each family.\n\n"
        "DIR gets journal.jsonl (a line per experiment, written as each ends), results.json, results.csv and "
        "paper.html, "
        "a page with tables, figures and findings. Each experiment runs in a process of its own, and its plan is "
        "checked. After Ctrl-C the results so far are written; the same command goes on where it was. Times of plans "
        "come from the fitted cost model.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
