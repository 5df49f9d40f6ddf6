/* Budgets, interrupts and deadlines. */
#include "util/stop.h"

#include <math.h>

#define A_MOMENT_S 1e-3

void moirai_interrupt_raise(moirai_interrupt *interrupt)
{
    __atomic_store_n(&interrupt->raised, 1, __ATOMIC_RELAXED);
}

bool moirai_interrupt_raised(const moirai_interrupt *interrupt)
{
    return interrupt && __atomic_load_n(&interrupt->raised, __ATOMIC_RELAXED);
}

void moirai_budget_init(moirai_budget *budget)
{
    *budget = (moirai_budget){.effort = 1, .seed = 1};
}

int moirai_budget_check(const moirai_budget *budget)
{
    if (!(budget->time_limit_s >= 0) || !(budget->effort >= 0) || budget->threads < 0)
        return moirai_error(MOIRAI_EUSAGE, "time limit %g, effort %g, threads %d: none may be negative",
                            budget->time_limit_s, budget->effort, budget->threads);
    if (budget->effort > 1e6)
        return moirai_error(MOIRAI_EUSAGE, "effort %g: at most 1e6", budget->effort);
    return 0;
}

util_stop util_stop_of(const moirai_budget *budget)
{
    util_stop stop = {.interrupt = budget->interrupt};
    if (budget->time_limit_s > 0)
        stop.deadline = util_seconds() + budget->time_limit_s;
    return stop;
}

double util_stop_left_s(const util_stop *stop)
{
    return stop->deadline > 0 ? fmax(stop->deadline - util_seconds(), 0) : HUGE_VAL;
}

util_stop util_stop_within(const util_stop *stop, double seconds)
{
    util_stop sooner = *stop;
    double deadline = util_seconds() + seconds;
    if (sooner.deadline == 0 || deadline < sooner.deadline)
        sooner.deadline = deadline;
    return sooner;
}

util_stop util_stop_part(const util_stop *stop, double part)
{
    double left = util_stop_left_s(stop);
    return left < HUGE_VAL ? util_stop_within(stop, part * left) : *stop;
}

util_stop util_stop_at_least(const util_stop *stop, double seconds)
{
    util_stop later = *stop;
    double deadline = util_seconds() + seconds;
    if (moirai_interrupt_raised(stop->interrupt)) {
        later.interrupt = NULL;
        later.deadline = deadline;
    } else if (later.deadline > 0 && later.deadline < deadline) {
        later.deadline = deadline;
    }
    return later;
}

moirai_budget util_stop_rest(const util_stop *stop, const moirai_budget *budget)
{
    moirai_budget rest = *budget;
    rest.interrupt = stop->interrupt;
    rest.time_limit_s = stop->deadline > 0 ? fmax(util_stop_left_s(stop), A_MOMENT_S) : 0;
    rest.progress = NULL;
    rest.progress_data = NULL;
    return rest;
}
