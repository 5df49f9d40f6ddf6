/* Settings: --set name=value against the parameters that a placer declares. */
#include "place/placers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const moirai_param *find_param(const moirai_placer *placer, const char *name)
{
    for (int i = 0; i < placer->n_params; i++)
        if (!strcmp(placer->params[i].name, name))
            return &placer->params[i];
    return NULL;
}

/* Whether `text` is one of the choices of "a|b|c". */
static bool is_choice(const char *choices, const char *text)
{
    while (*choices != '\0') {
        size_t length = strcspn(choices, "|");
        if (strlen(text) == length && !strncmp(choices, text, length))
            return true;
        choices += length + (choices[length] == '|');
    }
    return false;
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

/* Names those that there are: a slip of the pen should not need the manual. */
static int no_setting(const moirai_placer *placer, const char *name)
{
    char list[700] = "";
    size_t used = 0;
    for (int i = 0; i < placer->n_params && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", placer->params[i].name);
    return moirai_error(MOIRAI_EUSAGE, "placer '%s' has no setting '%s': %s%s", placer->name, name,
                        placer->n_params ? "it has " : "it has none", list);
}

int place_check_setting(const moirai_placer *placer, const moirai_setting *setting)
{
    const moirai_param *param = find_param(placer, setting->name);
    double value = 0;
    if (!param)
        return no_setting(placer, setting->name);
    if (param->kind == MOIRAI_PARAM_CHOICE)
        return is_choice(param->choices, setting->value)
                   ? 0
                   : moirai_error(MOIRAI_EUSAGE, "setting '%s': \"%s\" is none of %s", param->name, setting->value,
                                  param->choices);
    if (param->kind == MOIRAI_PARAM_TEXT)
        return *setting->value ? 0 : moirai_error(MOIRAI_EUSAGE, "setting '%s': must not be empty", param->name);
    if (param->kind == MOIRAI_PARAM_BOOL)
        return parse_bool(&value, setting->value)
                   ? 0
                   : moirai_error(MOIRAI_EUSAGE, "setting '%s': \"%s\" is neither true nor false", param->name,
                                  setting->value);
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
