/* Running a placer: settings in, a checked plan out. Nothing leaves here that moirai_plan_check has not seen. */
#include "place/placers.h"
#include "util/util.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void moirai_place_options_init(moirai_place_options *o)
{
    *o = (moirai_place_options){.gap = 0.01};
    moirai_budget_init(&o->budget);
}

/* ---- settings ---- */

static const moirai_param *find_param(const moirai_placer *placer, const char *name)
{
    for (int i = 0; i < placer->n_params; i++)
        if (!strcmp(placer->params[i].name, name))
            return &placer->params[i];
    return NULL;
}

/* The choice among "a|b|c" that equals `text`, or NULL; *length gets its length. */
static const char *find_choice(const char *choices, const char *text, size_t *length)
{
    while (*choices != '\0') {
        *length = strcspn(choices, "|");
        if (strlen(text) == *length && !strncmp(choices, text, *length))
            return choices;
        choices += *length + (choices[*length] == '|');
    }
    return NULL;
}

static bool parse_real(double *out, const char *text)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0' && isfinite(*out);
}

static bool parse_bool(double *out, const char *text)
{
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no", "off"};
    for (int i = 0; i < 4; i++) {
        if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
            *out = !strcmp(text, yes[i]);
            return true;
        }
    }
    return false;
}

static int check_setting(const moirai_placer *placer, const moirai_setting *setting)
{
    const moirai_param *param = find_param(placer, setting->name);
    double value = 0;
    size_t length;
    if (!param)
        return moirai_error(MOIRAI_EUSAGE, "placer '%s' has no setting '%s'", placer->name, setting->name);
    if (param->kind == MOIRAI_PARAM_CHOICE) {
        if (!find_choice(param->choices, setting->value, &length))
            return moirai_error(MOIRAI_EUSAGE, "setting '%s': \"%s\" is none of %s", param->name, setting->value,
                                param->choices);
        return 0;
    }
    if (param->kind == MOIRAI_PARAM_TEXT) {
        if (setting->value[0] == '\0')
            return moirai_error(MOIRAI_EUSAGE, "setting '%s': must not be empty", param->name);
        return 0;
    }
    if (param->kind == MOIRAI_PARAM_BOOL) {
        if (!parse_bool(&value, setting->value))
            return moirai_error(MOIRAI_EUSAGE, "setting '%s': \"%s\" is neither true nor false", param->name,
                                setting->value);
        return 0;
    }
    if (!parse_real(&value, setting->value) || (param->kind == MOIRAI_PARAM_INT && value != floor(value)))
        return moirai_error(MOIRAI_EUSAGE, "setting '%s': \"%s\" is not a %snumber", param->name, setting->value,
                            param->kind == MOIRAI_PARAM_INT ? "whole " : "");
    if (value < param->least || value > param->most)
        return moirai_error(MOIRAI_EUSAGE, "setting '%s': %s is outside %g .. %g", param->name, setting->value,
                            param->least, param->most);
    return 0;
}

static const char *given(const moirai_place_options *o, const char *name)
{
    const char *value = NULL;
    for (int i = 0; i < o->n_settings; i++) /* the last one wins */
        if (!strcmp(o->setting[i].name, name))
            value = o->setting[i].value;
    return value;
}

double moirai_setting_real(const moirai_place_options *o, const moirai_placer *placer, const char *name)
{
    const moirai_param *param = find_param(placer, name);
    const char *text = given(o, name);
    double value = param ? param->value : 0;
    if (text && param && param->kind == MOIRAI_PARAM_BOOL)
        parse_bool(&value, text);
    else if (text)
        parse_real(&value, text);
    return value;
}

/* A default is the first of "a|b|c" and has no string of its own; a few of them are kept per thread, more than any
 * placer declares, so that a placer can hold all its choices at once. */
const char *moirai_setting_choice(const moirai_place_options *o, const moirai_placer *placer, const char *name)
{
    static _Thread_local char kept[16][32];
    const char *text = given(o, name);
    if (text)
        return text;
    const moirai_param *param = find_param(placer, name);
    if (!param || !param->choices)
        return "";
    char *first = kept[(param - placer->params) % 16];
    snprintf(first, sizeof kept[0], "%.*s", (int)strcspn(param->choices, "|"), param->choices);
    return first;
}

const char *moirai_setting_text(const moirai_place_options *o, const moirai_placer *placer, const char *name)
{
    const moirai_param *param = find_param(placer, name);
    return param && param->kind == MOIRAI_PARAM_TEXT ? given(o, name) : NULL;
}

/* ---- running ---- */

static int unknown_placer(const char *name)
{
    char known[256] = "";
    size_t length = 0;
    for (int i = 0; i < moirai_placer_count() && length < sizeof known; i++)
        length +=
            (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "", moirai_placer_at(i)->name);
    return moirai_error(MOIRAI_EUSAGE, "no placer '%s'; there are %s", name, known);
}

static int check_options(const moirai_placer *placer, const moirai_place_options *o)
{
    const char *why = "";
    if (placer->available && !placer->available(&why))
        return moirai_error(MOIRAI_EFAIL, "placer '%s' is not available: %s", placer->name, why);
    if (!(o->gap >= 0))
        return moirai_error(MOIRAI_EUSAGE, "gap %g: may not be negative", o->gap);
    int rc = moirai_budget_check(&o->budget);
    if (o->certificate_path && !placer->certifies)
        return moirai_error(MOIRAI_EUSAGE, "placer '%s' writes no certificate; placer 'moirai' does", placer->name);
    for (int i = 0; i < o->n_settings && !rc; i++)
        rc = check_setting(placer, &o->setting[i]);
    return rc;
}

static int sign(moirai_plan *plan, const moirai_problem *p, const moirai_placer *placer, const moirai_place_options *o)
{
    char *problem = util_strdup(p->name), *name = util_strdup(placer->name);
    if (!problem || !name) {
        free(problem);
        free(name);
        return MOIRAI_EFAIL;
    }
    free(plan->problem);
    free(plan->placer);
    plan->problem = problem;
    plan->placer = name;
    plan->seed = o->budget.seed;
    if (placer->bounds)
        return 0;
    int64_t path = moirai_bound_critical_path(p), load = moirai_bound_load(p);
    plan->lower_bound_ns = UTIL_MAX(plan->lower_bound_ns, UTIL_MAX(path, load));
    return 0;
}

int moirai_place(moirai_plan **out, const moirai_problem *p, const char *name, const moirai_place_options *options)
{
    *out = NULL;
    moirai_place_options defaults;
    moirai_place_options_init(&defaults);
    const moirai_place_options *o = options ? options : &defaults;
    const moirai_placer *placer = moirai_placer_find(name);
    if (!placer)
        return unknown_placer(name);
    int rc = check_options(placer, o);
    if (rc)
        return rc;
    moirai_plan *plan = NULL;
    double begun = util_seconds();
    rc = placer->place(&plan, p, o);
    double seconds = util_seconds() - begun;
    if (rc) {
        moirai_plan_free(plan);
        return moirai_error_prefix(rc, "%s", placer->name);
    }
    plan->generation_ns = (int64_t)(seconds * 1e9);
    rc = sign(plan, p, placer, o);
    if (!rc && moirai_plan_check(p, plan, NULL, NULL))
        rc = moirai_error_prefix(MOIRAI_EFAIL, "placer '%s' made a wrong plan of '%s'", placer->name, p->name);
    if (rc) {
        moirai_plan_free(plan);
        return rc;
    }
    *out = plan;
    return 0;
}
