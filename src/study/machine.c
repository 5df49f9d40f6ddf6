/* What ran an experiment: its times mean nothing without that. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "util/util.h"

void study_machine(char *text, size_t size)
{
    struct utsname name;
    char cpu[64];
    if (!util_cpuinfo(cpu, sizeof cpu, "model name"))
        snprintf(cpu, sizeof cpu, "%s", uname(&name) ? "unknown processor" : name.machine);
    snprintf(text, size, "%s, %d cores", cpu, util_cores());
}

void study_date(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(text, size, "%Y-%m-%d %H:%M", &utc))
        snprintf(text, size, "unknown");
}

double study_load(void)
{
    double one;
    return getloadavg(&one, 1) == 1 ? one : 0;
}

/* "AMD EPYC 7B13, 2 cores": journals may come from other machines. */
static int cores_of(const char *machine)
{
    const char *comma = strrchr(machine, ',');
    int n = comma ? atoi(comma + 1) : 0;
    return n > 0 ? n : 1;
}

double moirai_study_load(const moirai_study *s)
{
    double sum = 0;
    int32_t done = 0;
    for (int32_t i = 0; i < s->n; i++) {
        sum += s->row[i].done ? s->row[i].load / cores_of(s->row[i].machine) : 0;
        done += s->row[i].done;
    }
    return done ? sum / done : 0;
}
