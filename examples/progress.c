/* Watches a search and stops it when it is good enough for us: a progress callback and an interrupt.
 *
 * usage: progress PROBLEM [GAP]      stops at a proven gap of at most GAP (default 0.1) */
#include <moirai/moirai.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct watch {
    moirai_interrupt interrupt;
    double enough;
    int events;
} watch;

/* Called from the search's threads, one at a time. */
static void on_news(void *data, const moirai_progress *news)
{
    watch *w = data;
    w->events++;
    if (news->makespan_ns <= 0 || news->lower_bound_ns < 0)
        return;
    double gap = 1 - (double)news->lower_bound_ns / (double)news->makespan_ns;
    printf("%c plan %.3f ms, bound %.3f ms, gap %.1f %%\n", news->letter, 1e-6 * (double)news->makespan_ns,
           1e-6 * (double)news->lower_bound_ns, 100 * gap);
    if (gap <= w->enough)
        moirai_interrupt_raise(&w->interrupt);
}

int main(int argc, char **argv)
{
    moirai_problem *problem = NULL;
    moirai_plan *plan = NULL;
    moirai_place_options options;
    watch w = {.enough = argc > 2 ? atof(argv[2]) : 0.1};
    int result = argc > 1 ? moirai_problem_read(&problem, argv[1]) : moirai_error(MOIRAI_EUSAGE, "PROBLEM is missing");
    moirai_place_options_init(&options);
    options.gap = 0;
    options.budget.time_limit_s = 10;
    options.budget.interrupt = &w.interrupt;
    options.budget.progress = on_news;
    options.budget.progress_data = &w;
    if (!result)
        result = moirai_place(&plan, problem, "moirai", &options);
    if (!result)
        printf("%d events; ended with %.3f ms\n", w.events, 1e-6 * (double)plan->makespan_ns);
    else
        fprintf(stderr, "progress: %s\n", moirai_error_message());
    moirai_plan_free(plan);
    moirai_problem_free(problem);
    return -result;
}
