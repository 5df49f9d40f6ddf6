/* Pieces of operators that were cut before planning (docs/shard.md).
 *
 * A piece is known by its name, "layer0/q (2 of 3, 5 of 12 heads)": names are all that problems, plans and files keep of
 * an operator. */
#include "report/report.h"

#include <stdio.h>
#include <string.h>

/* The name of an operator, or of the first that was fused into it, that is one of a piece. */
static bool parse(report_piece *out, const char *name)
{
    for (const char *at = strstr(name, " ("); at; at = strstr(at + 1, " (")) {
        long long size, units;
        char unit[24];
        if (sscanf(at, " (%d of %d, %lld of %lld %23[a-z ])", &out->number, &out->n, &size, &units, unit) != 5)
            continue;
        out->base = name;
        out->base_length = (size_t)(at - name);
        out->size = size;
        out->units = units;
        snprintf(out->unit, sizeof out->unit, "%s", unit);
        return out->number >= 1 && out->n >= 2 && out->number <= out->n;
    }
    return false;
}

bool report_piece_of(report_piece *out, const moirai_problem *p, int32_t op)
{
    if (parse(out, p->op_name[op]))
        return true;
    for (int32_t e = p->op_member_off[op]; e < p->op_member_off[op + 1]; e++)
        if (parse(out, p->op_member[e]))
            return true;
    return false;
}

bool report_same_operator(const report_piece *a, const report_piece *b)
{
    return a->n == b->n && a->base_length == b->base_length && !memcmp(a->base, b->base, a->base_length);
}
