/* The command line of bench_wide and bench_ablate. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"
#include "wide/wide.h"

typedef struct option {
    const char *name;
    enum { TEXT, REAL, WHOLE, OFF, SET } kind;
    size_t offset;
} option;

#define AT(field) offsetof(wide_options, field)
static const option options[] = {
    {"--rows", TEXT, AT(sets)},
    {"--half", TEXT, AT(half)},
    {"--only", TEXT, AT(only)},
    {"--csv", TEXT, AT(csv_path)},
    {"--ablate", TEXT, AT(steps)},
    {"--placer", TEXT, AT(setup.placer)},
    {"--limit", REAL, AT(setup.limit_s)},
    {"--cpu", REAL, AT(setup.cpu_s)},
    {"--effort", REAL, AT(setup.effort)},
    {"--gap", REAL, AT(setup.gap)},
    {"--until", REAL, AT(until_s)},
    {"--annealer", REAL, AT(annealer_s)},
    {"--threads", WHOLE, AT(setup.threads)},
    {"--seed", WHOLE, AT(setup.seed)},
    {"--jobs", WHOLE, AT(side_by_side)},
    {"--per-group", WHOLE, AT(per_group)},
    {"--off", OFF, 0},
    {"--set", SET, 0},
};

/* NAME=VALUE, in place; `off` is the name where none is given. */
static int add_setting(wide_setup *s, const char *name, char *text)
{
    char *value = name ? text : strchr(text, '=');
    if (!value || s->n_settings == WIDE_SETTINGS)
        return moirai_error(MOIRAI_EUSAGE, "--set %.60s: NAME=VALUE, at most %d times", text, WIDE_SETTINGS);
    if (!name)
        *value++ = '\0';
    s->setting[s->n_settings++] = (moirai_setting){name ? name : text, value};
    return 0;
}

static int take(wide_options *o, const option *x, char *text)
{
    char *field = (char *)o + x->offset, *end = NULL;
    if (x->kind == OFF || x->kind == SET)
        return add_setting(&o->setup, x->kind == OFF ? "off" : NULL, text);
    if (x->kind == TEXT) {
        memcpy(field, &text, sizeof text);
        return 0;
    }
    double value = strtod(text, &end);
    int whole = (int)value;
    if (end == text || *end || !(value >= 0 && value <= 1e9))
        return moirai_error(MOIRAI_EUSAGE, "%s %.60s: not a number from 0 on", x->name, text);
    if (x->kind == REAL)
        memcpy(field, &value, sizeof value);
    else
        memcpy(field, &whole, sizeof whole);
    return 0;
}

int wide_options_parse(wide_options *out, int argc, char **argv)
{
    const int n = (int)(sizeof options / sizeof *options);
    *out = (wide_options){.setup = {.placer = "moirai", .limit_s = 30, .effort = 1, .gap = 0.01, .threads = 2},
                          .sets = "generator",
                          .half = "tune",
                          .side_by_side = 1};
    for (int i = 1; i < argc; i += 2) {
        int x = 0;
        while (x < n && strcmp(argv[i], options[x].name) != 0)
            x++;
        if (x == n)
            return moirai_error(MOIRAI_EUSAGE, "unknown option '%.60s'", argv[i]);
        if (i + 1 == argc)
            return moirai_error(MOIRAI_EUSAGE, "%s: its value is missing", argv[i]);
        int rc = take(out, &options[x], argv[i + 1]);
        if (rc)
            return rc;
    }
    return 0;
}
