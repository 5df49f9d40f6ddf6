/* What ran an experiment: its times mean nothing without that. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
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
