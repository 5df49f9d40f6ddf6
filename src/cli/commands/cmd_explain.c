/* moirai explain: why a plan takes as long as it does, and what would help. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

enum { MOST_OPS = 10 }; /* of one pattern */

/* ---- one operator ---- */

static void show_where(cli_context *cli, const moirai_analysis *a, int32_t op, const moirai_elsewhere *w)
{
    const moirai_problem *p = a->problem;
    yyjson_mut_val *list = yyjson_mut_arr(cli->doc);
    cli_print(cli, "\n%-16s %14s %14s %14s\n", "device", "runs in", "moving", "makespan");
    for (int32_t d = 0; d < p->n_devices; d++) {
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
        const char *note = d == a->plan->op_device[op] ? "  here"
                           : w[d].makespan_ns < 0      ? "  can't run there"
                           : w[d].excess_bytes         ? "  does not fit"
                                                       : "";
        cli_print(cli, "%-16.16s %14s %14s %14s%s\n", p->device_name[d], cli_human_ns(w[d].time_ns).s,
                  cli_human_ns(w[d].makespan_ns < 0 ? -1 : w[d].moving_ns).s, cli_human_ns(w[d].makespan_ns).s, note);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "device", p->device_name[d]);
        if (w[d].makespan_ns < 0)
            continue;
        yyjson_mut_obj_add_int(cli->doc, o, "time_ns", w[d].time_ns);
        yyjson_mut_obj_add_int(cli->doc, o, "moving_ns", w[d].moving_ns);
        yyjson_mut_obj_add_int(cli->doc, o, "makespan_ns", w[d].makespan_ns);
        yyjson_mut_obj_add_int(cli->doc, o, "excess_bytes", w[d].excess_bytes);
    }
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, yyjson_mut_obj_get(cli->result, "ops"));
    yyjson_mut_obj_add_strcpy(cli->doc, o, "name", p->op_name[op]);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "device", p->device_name[a->plan->op_device[op]]);
    yyjson_mut_obj_add_int(cli->doc, o, "ready_ns", a->delay[op].ready_ns);
    yyjson_mut_obj_add_int(cli->doc, o, "start_ns", a->plan->op_start_ns[op]);
    yyjson_mut_obj_add_int(cli->doc, o, "finish_ns", a->plan->op_finish_ns[op]);
    yyjson_mut_obj_add_int(cli->doc, o, "waited_busy_ns", a->delay[op].busy_ns);
    yyjson_mut_obj_add_int(cli->doc, o, "held_ns", a->delay[op].held_ns);
    yyjson_mut_obj_add_bool(cli->doc, o, "critical", a->on_path[op]);
    yyjson_mut_obj_add_val(cli->doc, o, "elsewhere", list);
}

static int explain_op(cli_context *cli, const moirai_analysis *a, int32_t op)
{
    moirai_elsewhere where[MOIRAI_MAX_DEVICES];
    char text[1200];
    int rc = moirai_explain_op(where, a, op);
    if (rc)
        return rc;
    moirai_explain_op_text(text, sizeof text, a, op, where);
    cli_print(cli, "\n%s\n", text);
    show_where(cli, a, op, where);
    return 0;
}

/* An operator's own name, or all that --pin would find: by a pattern, by a name that was fused into it. */
static int explain_ops(cli_context *cli, const moirai_analysis *a, const char *name)
{
    const moirai_problem *p = a->problem;
    int32_t op = moirai_problem_find_op(p, name), found = 0;
    int rc = 0;
    if (p->partial)
        return moirai_error(MOIRAI_EUSAGE, "explain: --op needs the plan's problem: give it with --problem");
    if (op != MOIRAI_NONE)
        return explain_op(cli, a, op);
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        if (moirai_problem_op_fits(p, i, name) && found++ < MOST_OPS)
            rc = explain_op(cli, a, i);
    if (!found)
        return moirai_error(MOIRAI_EUSAGE,
                            "explain: problem '%s' has no operator '%s', nor one that fits it as a pattern", p->name,
                            name);
    if (found > MOST_OPS)
        cli_say(cli, "--op '%s' fits %s operators: these are the first %d\n", name, cli_human_count(found).s, MOST_OPS);
    return rc;
}

/* ---- what if ---- */

static const char *status_of(const moirai_what_if *w)
{
    return w->result == MOIRAI_ELIMIT ? "not tried" : w->result ? "failed" : w->cut_short ? "cut short" : "searched";
}

static void add_change(cli_context *cli, yyjson_mut_val *list, const moirai_what_if *w, const char *moved)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "change", w->text);
    yyjson_mut_obj_add_str(cli->doc, o, "status", status_of(w));
    if (w->result) {
        yyjson_mut_obj_add_strcpy(cli->doc, o, "error", w->message);
    } else {
        yyjson_mut_obj_add_int(cli->doc, o, "search_ns", w->search_ns);
        yyjson_mut_obj_add_int(cli->doc, o, "search_bound_ns", w->search_bound_ns);
        yyjson_mut_obj_add_str(cli->doc, o, "moved", moved);
    }
    if (w->makespan_ns >= 0)
        yyjson_mut_obj_add_int(cli->doc, o, "makespan_ns", w->makespan_ns);
    if (w->replay_ns >= 0)
        yyjson_mut_obj_add_int(cli->doc, o, "replay_ns", w->replay_ns);
    if (w->lower_bound_ns >= 0)
        yyjson_mut_obj_add_int(cli->doc, o, "lower_bound_ns", w->lower_bound_ns);
    yyjson_mut_obj_add_int(cli->doc, o, "spent_ns", w->spent_ns);
}

/* A bound of a better cluster is below that of today's by nature; halfway through a search it says little more than
 * that. It is shown where the search came to its end, and where what is proven of today holds for the change, too. */
static bool shows_bound(const moirai_what_if *w)
{
    return !w->cut_short || w->change.kind == MOIRAI_CHANGE_NONE || w->change.kind == MOIRAI_CHANGE_LESS;
}

static void show_change(cli_context *cli, yyjson_mut_val *list, const moirai_what_if *base, const moirai_what_if *w)
{
    static const char *const words[][2] = {{"bound", "no plan is that fast today"},
                                           {"plan", "faster than any plan known today"},
                                           {"worse", "slower, whatever the plan"},
                                           {"none", ""}};
    bool is_base = w->change.kind == MOIRAI_CHANGE_NONE;
    const char *moved = is_base ? "none" : moirai_what_if_moved(base, w), *text = "";
    add_change(cli, list, w, moved);
    if (w->result == MOIRAI_ELIMIT)
        return; /* they have a line of their own */
    if (w->result) {
        cli_print(cli, "%-40.40s  %s\n", w->text, w->message);
        return;
    }
    double gain = base->makespan_ns > 0 ? 100 * (1 - (double)w->makespan_ns / (double)base->makespan_ns) : 0;
    char share[24];
    snprintf(share, sizeof share, "%+.1f %%", gain == 0 ? 0 : -gain);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], moved) && !(gain < 0.05 && !strcmp(moved, "plan"))) /* what rounds to nothing */
            text = words[i][1];
    cli_print(cli, "%-40.40s %14s%c%9s %14s  %s\n", w->text, cli_human_ns(w->makespan_ns).s, w->cut_short ? '*' : ' ',
              is_base ? "" : share, shows_bound(w) ? cli_human_ns(w->lower_bound_ns).s : "", text);
}

/* What was not searched, in one line, and what the marks mean. */
static void say_limits(cli_context *cli, const moirai_what_if *list, int32_t n)
{
    bool interrupted = moirai_interrupt_raised(cli_interrupt());
    int32_t untried = 0, cut = 0;
    for (int32_t i = 0; i < n; i++) {
        cut += list[i].cut_short;
        if (list[i].result != MOIRAI_ELIMIT)
            continue;
        if (!untried)
            cli_print(cli, "not tried (%s): ", interrupted ? "interrupted" : "give --what-if more time");
        cli_print(cli, "%s%s", untried++ ? ", " : "", list[i].text);
    }
    if (untried)
        cli_print(cli, "\n");
    if (cut)
        cli_print(cli, "* search cut short%s: with more time its plan may be better\n",
                  interrupted ? " by the interrupt" : "");
    if (interrupted)
        cli_say(cli, "interrupted: these are the what-ifs so far\n");
    yyjson_mut_obj_add_bool(cli->doc, cli->result, "interrupted", interrupted);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "what_ifs_not_tried", untried);
}

static void say_best(cli_context *cli, const moirai_what_if *list, int32_t n)
{
    const moirai_what_if *base = &list[0], *best = n > 1 ? &list[1] : NULL;
    bool all = true;
    for (int32_t i = 0; i < n; i++)
        all &= list[i].result != MOIRAI_ELIMIT && !list[i].cut_short;
    if (!best || best->makespan_ns < 0 || best->makespan_ns >= base->makespan_ns) {
        cli_print(cli, "\n%s\n", all ? "no single change helps" : "no change that was searched helps");
        return;
    }
    bool sure = !strcmp(moirai_what_if_moved(base, best), "bound");
    cli_print(cli, "\nwhat helps most%s is %s: %s instead of %s%s\n", all ? "" : " of what was found", best->text,
              cli_human_ns(best->makespan_ns).s, cli_human_ns(base->makespan_ns).s,
              sure ? ", which no plan reaches today" : "; whether today's cluster has a plan as good is not known");
}

static int what_if(cli_context *cli, const moirai_analysis *a)
{
    moirai_what_if_options o;
    moirai_what_if *list = NULL;
    moirai_cluster *cluster = NULL;
    const moirai_placer *placer;
    int32_t n = 0;
    moirai_what_if_options_init(&o);
    o.budget.time_limit_s = cli_real(cli, "what-if");
    o.budget.seed = (uint64_t)cli_count(cli, "seed");
    o.budget.effort = cli_real(cli, "effort");
    o.budget.threads = (int)cli_count(cli, "threads");
    o.most = (int32_t)cli_count(cli, "changes");
    o.budget.interrupt = cli_interrupt();
    int rc = cli_placer(&placer, cli);
    if (!rc && cli_has(cli, "cluster"))
        rc = cli_cluster(&cluster, cli);
    if (rc)
        return rc;
    o.placer = placer->name;
    o.cluster = cluster;
    cli_say(cli, "what if: placing again with one change at a time, in %g s (--what-if 0 leaves this out)\n",
            o.budget.time_limit_s);
    rc = moirai_what_if_run(&list, &n, a, &o);
    yyjson_mut_val *out = yyjson_mut_arr(cli->doc);
    if (!rc)
        cli_print(cli, "\n%-40s %14s %9s %14s\n", "what if", "makespan", "", "proven bound");
    for (int32_t i = 0; i < n && !rc; i++)
        show_change(cli, out, &list[0], &list[i]);
    if (!rc) {
        say_limits(cli, list, n);
        say_best(cli, list, n);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "what_if", out);
    free(list);
    moirai_cluster_free(cluster);
    return rc;
}

static int run(cli_context *cli)
{
    moirai_problem *p = NULL;
    cli_read read = {0};
    bool asks_op = cli_uses(cli, "op") > 0;
    const char *plan_path = cli_arg(cli, 0);
    int rc = cli_problem_of(&p, cli, plan_path);
    rc = rc ? rc : cli_read_plan(&read, p, plan_path, cli_text(cli, "timeline"));
    if (!rc) {
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "problem", p->name);
        yyjson_mut_obj_add_int(cli->doc, cli->result, "makespan_ns", read.plan->makespan_ns);
        cli_show_why(cli, read.analysis, 0, MOIRAI_VERDICT_LINES);
        yyjson_mut_obj_add_val(cli->doc, cli->result, "ops", yyjson_mut_arr(cli->doc));
    }
    for (int i = 0; i < cli_uses(cli, "op") && !rc; i++)
        rc = explain_ops(cli, read.analysis, cli_use(cli, "op", i));
    bool wanted = cli_has(cli, "what-if") || !asks_op;
    if (!rc && wanted && read.plan->rate)
        rc = cli_show_more(cli, p, read.plan);
    else if (!rc && wanted && cli_real(cli, "what-if") > 0 && !p->partial)
        rc = what_if(cli, read.analysis);
    cli_read_free(&read);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PLAN", .kind = CLI_VALUE_FILE, .help = "the plan file"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTION_PLAN_PROBLEM,
    {.name = "op",
     .argument = "NAME",
     .kind = CLI_VALUE_TEXT,
     .repeated = true,
     .help = "why this operator is where it is, and what it would cost elsewhere: a name or a pattern, as for --pin"},
    {.name = "timeline", .argument = "FILE", .kind = CLI_VALUE_FILE, .help = "what 'moirai run' measured"},
    {.name = "what-if",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .least = 0,
     .most = 1e9,
     .standard = "10",
     .help = "time for what-ifs: which one change of the cluster helps most (0: none; with --op only if given)"},
    {.name = "cluster",
     .letter = 'c',
     .argument = "NAME|FILE",
     .kind = CLI_VALUE_CLUSTER,
     .help =
         "the problem's cluster, so that what-ifs change its links; otherwise each pair of devices counts as a link"},
    {.name = "changes",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "0",
     .help = "try no more than this many changes, the most promising ones; 0 is all"},
    {.name = "placer",
     .letter = 'p',
     .argument = "P",
     .kind = CLI_VALUE_PLACER,
     .help = "method of the what-ifs (default moirai)"},
    CLI_OPTION_EFFORT("work to spend on each what-if"),
    CLI_OPTION_THREADS("what-ifs to run at once"),
    CLI_OPTION_SEED,
    {0},
};
static const cli_example examples[] = {
    {"moirai explain plan.json --problem problem.json",
     "What limits the plan, and which change of the cluster helps most"},
    {"moirai explain plan.json --problem problem.json --op L0/fc1", "Why is this operator there?"},
    {"moirai explain plan.json --problem problem.json --what-if 0 --json", "The verdict for a script, at once"},
    {0},
};
const cli_command cli_command_explain = {
    .name = "explain",
    .summary = "say what limits a plan and what would help",
    .text = "The verdict: what is proven, what the critical path is made of, which device or link limits the plan. "
            "Then what-ifs: the "
            "problem is placed again with each link or device twice as fast, with twice the memory, with one device "
            "less and one more of "
            "each kind. A search starts from the plan where the change leaves it possible. No plan is that fast today "
            "where that is proven; otherwise a longer search might find as good a plan without the change. Where the "
            "time is too short for a useful search of all changes, the most promising are searched and the others "
            "named; a row whose search was cut short says so. Ctrl-C ends the searches and shows what was found. Of a "
            "plan for many requests it says what limits the rate, and the what-ifs are the rates with one more device "
            "of each kind.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
