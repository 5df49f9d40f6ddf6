/* The journal: what a result hangs on, in one column, and the result. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/util.h"
#include "wide/wide.h"

void wide_setup_key(char out[WIDE_KEY], const wide_setup *s)
{
    int n = snprintf(out, WIDE_KEY, "%s limit=%g cpu=%g effort=%g gap=%g threads=%d", s->placer, s->limit_s, s->cpu_s,
                     s->effort, s->gap, s->threads);
    if (s->seed && n < WIDE_KEY)
        n += snprintf(out + n, (size_t)(WIDE_KEY - n), " seed=%d", s->seed);
    for (int i = 0; i < s->n_settings && n < WIDE_KEY; i++)
        n += snprintf(out + n, (size_t)(WIDE_KEY - n), " %s=%s", s->setting[i].name, s->setting[i].value);
    for (char *c = out; *c; c++)
        if (*c == ',' || *c == '\n' || *c == '\r')
            *c = '+';
}

double wide_gap(const wide_outcome *o)
{
    if (!o->done || o->message[0] || o->bound_ns < 0)
        return -1;
    return o->plan_ns > 0 ? 100.0 * (double)(o->plan_ns - o->bound_ns) / (double)o->plan_ns : 0;
}

static const char head[] = "row,setup,operators,devices,plan_ns,bound_ns,gap,seconds,cpu_s,peak_mb,message\n";

void wide_csv_row(FILE *out, const wide_job *job)
{
    const wide_outcome *o = &job->outcome;
    char key[WIDE_KEY], message[WIDE_MESSAGE];
    wide_setup_key(key, job->setup);
    snprintf(message, sizeof message, "%s", o->message);
    for (char *c = message; *c; c++)
        if (*c == ',' || *c == '\n' || *c == '\r')
            *c = ';';
    fprintf(out, "%s,%s,%d,%d,%" PRId64 ",%" PRId64 ",%.4f,%.2f,%.2f,%.0f,%s\n", job->row, key, o->n_ops, o->n_devices,
            o->plan_ns, o->bound_ns, wide_gap(o), o->seconds, o->cpu_s, o->peak_mb, message);
    fflush(out);
}

/* A line into the jobs that it is about; false where it is none. */
static bool take_line(char *line, wide_job *job, size_t n_jobs)
{
    char *rest = line, *row = strsep(&rest, ","), *setup = strsep(&rest, ","), key[WIDE_KEY];
    wide_outcome o = {.done = true};
    int used = 0;
    if (!rest ||
        sscanf(rest, "%d,%d,%" SCNd64 ",%" SCNd64 ",%*f,%lf,%lf,%lf,%n", &o.n_ops, &o.n_devices, &o.plan_ns,
               &o.bound_ns, &o.seconds, &o.cpu_s, &o.peak_mb, &used) < 7 ||
        !used)
        return false;
    snprintf(o.message, sizeof o.message, "%s", rest + used);
    /* What failed is run again, as its cause may be gone; what took far too long is not. */
    if (o.message[0] && strncmp(o.message, "killed", 6) != 0 && strncmp(o.message, "given up", 8) != 0)
        return true;
    for (size_t i = 0; i < n_jobs; i++) {
        if (strcmp(job[i].row, row) != 0)
            continue;
        wide_setup_key(key, job[i].setup);
        if (!strcmp(key, setup))
            job[i].outcome = o;
    }
    return true;
}

int wide_csv_read(const char *path, wide_job *job, size_t n_jobs)
{
    FILE *in = fopen(path, "r");
    char line[1024], *end;
    int rc = 0;
    if (!in)
        return 0;
    /* A last line without its end was cut off while it was written: that job runs again. */
    for (int number = 1; !rc && fgets(line, sizeof line, in) && (end = strchr(line, '\n')); number++) {
        bool good = number == 1 && !strcmp(line, head);
        *end = '\0';
        if (!good && (number == 1 || !take_line(line, job, n_jobs)))
            rc = moirai_error(MOIRAI_EINPUT, "%s:%d: not a line of a journal", path, number);
    }
    fclose(in);
    return rc;
}

FILE *wide_csv_open(const char *path)
{
    FILE *csv = fopen(path, "r+");
    long whole = 0;
    if (!csv)
        csv = fopen(path, "w");
    for (int c; csv && (c = getc(csv)) != EOF;)
        if (c == '\n')
            whole = ftell(csv);
    if (!csv || fseek(csv, whole, SEEK_SET) || ftruncate(fileno(csv), whole)) {
        moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno));
        if (csv)
            fclose(csv);
        return NULL;
    }
    if (whole == 0)
        fputs(head, csv);
    fflush(csv);
    return csv;
}
