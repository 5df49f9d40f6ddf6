/* What a benchmark used of the machine, and an end by processor time, which a busy machine does not change. */
#ifndef MOIRAI_BENCH_PROCESSOR_H
#define MOIRAI_BENCH_PROCESSOR_H

#include <moirai/moirai.h>

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

/* Of this process, all its threads. */
static inline double processor_s(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static inline double peak_mb(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_maxrss / 1024.0;
}

static moirai_interrupt enough;

static inline void had_enough(int signal_number)
{
    (void)signal_number;
    moirai_interrupt_raise(&enough);
}

/* `enough` is raised after that much processor time from now; 0: never. */
static inline void allow_processor_s(double seconds)
{
    struct sigaction act = {.sa_handler = had_enough, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_value.tv_sec = (time_t)seconds,
                              .it_value.tv_usec = (suseconds_t)(1e6 * (seconds - floor(seconds)))};
    enough = (moirai_interrupt){0};
    sigaction(SIGPROF, &act, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
}

#endif
