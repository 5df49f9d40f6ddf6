/* Names of methods. */
#include "util/methods.h"

#include <stdio.h>
#include <string.h>

#include "util/util.h"

_Static_assert(UTIL_N_METHODS <= 64, "a set of methods is one word");

static const struct {
    const char *name, *what;
} methods[] = {
#define UTIL_METHOD_ROW(id, name, what) {name, what},
    UTIL_METHODS(UTIL_METHOD_ROW)
#undef UTIL_METHOD_ROW
};

const char *util_method_name(util_method m)
{
    return methods[m].name;
}

const char *util_method_what(util_method m)
{
    return methods[m].what;
}

static int unknown(const char *name, size_t length)
{
    char all[1024];
    size_t used = 0;
    for (int i = 0; i < UTIL_N_METHODS && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", methods[i].name);
    return moirai_error(MOIRAI_EUSAGE, "off: '%.*s' is no method; there are %s", (int)UTIL_MIN(length, (size_t)64),
                        name, all);
}

int util_methods_parse(util_method_set *out, const char *names)
{
    *out = 0;
    while (names && *names) {
        size_t length = strcspn(names, ",");
        int i = 0;
        while (i < UTIL_N_METHODS && (strlen(methods[i].name) != length || strncmp(methods[i].name, names, length)))
            i++;
        if (i == UTIL_N_METHODS)
            return unknown(names, length);
        *out |= UINT64_C(1) << i;
        names += length + (names[length] == ',');
    }
    return 0;
}
