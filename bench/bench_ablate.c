/* What each step of a placer is worth: rows with everything, and with each step switched off.
 *
 * usage: bench_ablate --ablate STEP,STEP,... [--rows zoo,onnx,shapes,generator] [--csv FILE] [options of bench_wide]
 *
 * STEPs are what the placer's parameter `off` takes, and `all` is all of them; STEP+STEP switches both off at once; an
 * --off that is given as well is off in every run. `noise` is everything once more from another seed: what differs by no
 * more than that says nothing. A row runs with everything, then without each step; rows of all groups take turns, so that
 * a run that --until or Ctrl-C ends has whole rows of all groups. With --csv the next one goes on.
 *
 * Loss: gap without the step less gap with everything, in points of a per cent; positive is what the step is worth. The
 * same for the plan (how much longer it gets, in per cent) and the bound (how much lower). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/methods.h"
#include "util/util.h"
#include "wide/wide.h"

enum { MOST_STEPS = 64 };

typedef struct ablation {
    wide_options o;
    wide_rows rows;
    char step[MOST_STEPS + 1][256], off[MOST_STEPS + 1][384]; /* 0: everything */
    wide_setup setup[MOST_STEPS + 1];
    size_t n_setups;
    wide_job *job; /* of row i: n_setups of them, from n_setups * i on */
} ablation;

/* ---- setups ---- */

/* Where the setting `off` is, or is to be. */
static int off_of(const wide_setup *s)
{
    int i = 0;
    while (i < s->n_settings && strcmp(s->setting[i].name, "off") != 0)
        i++;
    return i;
}

static int add_step(ablation *a, const char *step)
{
    size_t n = a->n_setups;
    wide_setup s = a->o.setup;
    int at = off_of(&s);
    if (n > MOST_STEPS || at == WIDE_SETTINGS || !*step || strlen(step) >= sizeof a->step[n])
        return moirai_error(MOIRAI_EUSAGE, "--ablate: at most %d steps, none of them empty or long", MOST_STEPS);
    snprintf(a->step[n], sizeof a->step[n], "%s", step);
    if (!strcmp(step, "noise")) {
        s.seed = UTIL_MAX(1, s.seed) + 1;
    } else {
        bool more = at < s.n_settings;
        snprintf(a->off[n], sizeof a->off[n], "%s%s%s", more ? s.setting[at].value : "", more ? "," : "", step);
        for (char *c = a->off[n]; *c; c++)
            *c = *c == '+' ? ',' : *c;
        s.setting[at] = (moirai_setting){"off", a->off[n]};
        s.n_settings += !more;
    }
    a->setup[a->n_setups++] = s;
    return 0;
}

static int add_steps(ablation *a)
{
    char *text = util_strdup(a->o.steps), *rest = text, *step;
    int rc = text ? 0 : MOIRAI_EFAIL;
    a->setup[0] = a->o.setup;
    snprintf(a->step[0], sizeof a->step[0], "everything");
    a->n_setups = 1;
    while (!rc && (step = strsep(&rest, ","))) {
        bool all = !strcmp(step, "all");
        for (int m = 0; all && m < UTIL_N_METHODS && !rc; m++)
            rc = add_step(a, util_method_name((util_method)m));
        rc = rc || all ? rc : add_step(a, step);
    }
    free(text);
    return rc;
}

static int run(ablation *a, wide_done_fn *done)
{
    size_t n = a->n_setups * a->rows.n;
    a->job = util_alloc(n, sizeof *a->job);
    if (!a->job)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < n; i++)
        a->job[i] = (wide_job){.row = a->rows.row[i / a->n_setups].name, .setup = &a->setup[i % a->n_setups]};
    wide_run r = {.job = a->job,
                  .n_jobs = n,
                  .side_by_side = a->o.side_by_side,
                  .until_s = a->o.until_s,
                  .csv_path = a->o.csv_path,
                  .done = done,
                  .data = a};
    return wide_run_all(&r);
}

/* ---- what is said ---- */

static const wide_outcome *outcome(const ablation *a, size_t row, size_t setup)
{
    return &a->job[a->n_setups * row + setup].outcome;
}

static void tell(void *data, size_t job)
{
    const ablation *a = data;
    const wide_job *j = &a->job[job];
    const char *step = a->step[job % a->n_setups];
    if (j->outcome.message[0])
        fprintf(stderr, "%s, %s: %s\n", j->row, step, j->outcome.message);
    else
        fprintf(stderr, "%s, %s: %.2f %%, %.1f s\n", j->row, step, wide_gap(&j->outcome), j->outcome.cpu_s);
}

typedef struct loss {
    size_t rows, failed;
    double gap, plan, bound, cpu_s, worst; /* sums, but for the worst */
    const char *worst_row;
} loss;

/* Of the rows of a group (NULL: all) that have both outcomes. */
static loss loss_of(const ablation *a, size_t setup, const char *group)
{
    loss l = {.worst = -1e9, .worst_row = "-"};
    for (size_t i = 0; i < a->rows.n; i++) {
        const wide_outcome *all = outcome(a, i, 0), *less = outcome(a, i, setup);
        if ((group && strcmp(group, a->rows.row[i].group) != 0) || !all->done || !less->done || wide_gap(all) < 0)
            continue;
        if (wide_gap(less) < 0) {
            l.failed++;
            continue;
        }
        double gap = wide_gap(less) - wide_gap(all);
        l.rows++;
        l.gap += gap;
        l.plan += 100.0 * (double)(less->plan_ns - all->plan_ns) / (double)UTIL_MAX(1, all->plan_ns);
        l.bound += 100.0 * (double)(all->bound_ns - less->bound_ns) / (double)UTIL_MAX(1, all->bound_ns);
        l.cpu_s += less->cpu_s - all->cpu_s;
        if (gap > l.worst) {
            l.worst = gap;
            l.worst_row = a->rows.row[i].name;
        }
    }
    return l;
}

static void print_loss(const char *step, const char *group, const loss *l)
{
    double n = (double)UTIL_MAX(1, l->rows);
    if (l->rows + l->failed == 0)
        return;
    printf("| %s | %s | %zu |", step, group, l->rows);
    if (l->rows)
        printf(" %+.3f | %+.2f | %s | %+.3f | %+.3f | %+.1f |", l->gap / n, l->worst, l->worst_row, l->plan / n,
               l->bound / n, l->cpu_s / n);
    if (l->failed)
        printf(" %zu without a plan |", l->failed);
    printf("\n");
}

static void print_head(const char *what)
{
    printf("\n| off | %s | rows | mean loss in gap, points | worst | row | plan longer %% | bound lower %% | CPU s "
           "more |\n"
           "|---|---|---:|---:|---:|---|---:|---:|---:|\n",
           what);
}

typedef struct worth {
    double mean;
    size_t setup;
} worth;

static int more_first(const void *x, const void *y)
{
    const worth *a = x, *b = y;
    return a->mean != b->mean ? (a->mean < b->mean) - (a->mean > b->mean)
                              : (a->setup > b->setup) - (a->setup < b->setup);
}

/* Of all rows, what is worth most first; then by group. */
static void print_losses(const ablation *a)
{
    worth list[MOST_STEPS + 1];
    size_t n = 0;
    for (size_t s = 1; s < a->n_setups; s++) {
        loss l = loss_of(a, s, NULL);
        list[n++] = (worth){l.rows ? l.gap / (double)l.rows : -1e9, s};
    }
    qsort(list, n, sizeof *list, more_first);
    print_head("all rows");
    for (size_t i = 0; i < n; i++) {
        loss l = loss_of(a, list[i].setup, NULL);
        print_loss(a->step[list[i].setup], "all", &l);
    }
    print_head("rows of");
    for (size_t i = 0; i < n; i++)
        for (size_t g = 0; g < WIDE_GROUPS; g++) {
            loss l = loss_of(a, list[i].setup, wide_groups[g]);
            print_loss(a->step[list[i].setup], wide_groups[g], &l);
        }
}

int main(int argc, char **argv)
{
    static ablation a; /* large */
    int rc = wide_options_parse(&a.o, argc, argv);
    if (!rc && (!a.o.steps || a.o.annealer_s > 0))
        rc = moirai_error(MOIRAI_EUSAGE,
                          "usage: bench_ablate --ablate STEP,STEP [options of bench_wide, --annealer aside]");
    rc = rc ? rc : add_steps(&a);
    rc = rc ? rc : wide_rows_list(&a.rows, a.o.sets, a.o.half, a.o.only, a.o.per_group);
    rc = rc ? rc : run(&a, tell);
    if (rc)
        fprintf(stderr, "bench_ablate: %s\n", moirai_error_message());
    else
        print_losses(&a);
    free(a.job);
    wide_rows_free(&a.rows);
    return -rc;
}
