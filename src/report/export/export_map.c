/* Where each module's weights are, as what Hugging Face calls a device_map: {"model.layers.0": "A", ...}.
 *
 * What counts are operators that hold bytes; where none does, all operators. The module of a weight comes from the
 * weight's own name, "model.layers.0.fc1.weight", where the file has such names; otherwise from the operator's, by the
 * habit of exporters: "/model/layers.0/fc1/MatMul" is in the module model.layers.0.fc1, and a last part that is no
 * operator type belongs to the name. A key stands for all below it, so the map has the shortest prefixes under which
 * everything is on one device: names are sorted, and a range of equal prefixes is either of one device or divided by
 * the next part. A module, the smallest thing that such a map can name, with weights on two devices is an error;
 * --depth makes larger things stay together. O(W log W) for W weights. */
#include "report/report.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

typedef struct weight {
    const char *module; /* parts joined by '.' */
    const char *name;   /* the weight's own, or the operator's */
    int32_t device;
} weight;

typedef struct map {
    const moirai_analysis *a;
    const moirai_export_options *o;
    util_strings *strings;
    weight *list;
    size_t n, capacity;
    util_writer w;
} map;

static int add(map *m, const char *module, size_t length, const char *name, int32_t op)
{
    if (util_grow(&m->list, &m->capacity, m->n + 1, sizeof *m->list))
        return MOIRAI_EFAIL;
    const char *kept = util_strings_add(m->strings, module, length);
    if (!kept)
        return MOIRAI_EFAIL;
    m->list[m->n++] = (weight){kept, name, m->a->plan->op_device[op]};
    return 0;
}

/* Is `part` a type out of "MatMul+Add", perhaps with a number: "Add_1"? */
static bool is_type(const char *part, const char *types)
{
    while (*types) {
        size_t n = strcspn(types, "+");
        const char *rest = part + n;
        if (n && !strncmp(part, types, n)) {
            if (*rest == '_' && rest[1])
                rest += 1 + strspn(rest + 1, "0123456789");
            if (!*rest)
                return true;
        }
        types += n + (types[n] == '+');
    }
    return false;
}

static int add_by_op(map *m, int32_t op)
{
    const moirai_problem *p = m->a->problem;
    const char *name = p->op_name[op] + strspn(p->op_name[op], "/");
    char *module = util_strdup(*name ? name : p->op_name[op]);
    if (!module)
        return MOIRAI_EFAIL;
    char *slash = strrchr(module, '/');
    if (slash && slash != module && is_type(slash + 1, p->op_type[op]))
        *slash = '\0';
    for (char *c = module; *c; c++)
        *c = *c == '/' ? '.' : *c;
    int rc = add(m, module, strlen(module), p->op_name[op], op);
    free(module);
    return rc;
}

/* By the names of its weights where they have parts, else by its own. */
static int add_op(map *m, int32_t op)
{
    const moirai_problem *p = m->a->problem;
    bool any = false;
    int rc = 0;
    for (int32_t j = p->op_extern_off[op]; j < p->op_extern_off[op + 1] && !rc; j++) {
        const char *dot = strrchr(p->op_extern[j], '.');
        if (!dot || dot == p->op_extern[j] || !dot[1])
            continue;
        any = true;
        rc = add(m, p->op_extern[j], (size_t)(dot - p->op_extern[j]), p->op_extern[j], op);
    }
    return rc || any ? rc : add_by_op(m, op);
}

static int compare(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    const char *s = x->module, *t = y->module;
    while (*s && *s == *t)
        s++, t++;
    if (*s != *t) { /* parts compare as parts: "a.b" comes before "a-b" */
        if (!*s || !*t)
            return *s ? 1 : -1;
        if (*s == '.' || *t == '.')
            return *s == '.' ? -1 : 1;
        return (unsigned char)*s < (unsigned char)*t ? -1 : 1;
    }
    return x->device != y->device ? (x->device < y->device ? -1 : 1) : strcmp(x->name, y->name);
}

/* Length of the first `parts` parts. */
static size_t prefix_of(const char *module, int parts)
{
    size_t n = 0;
    for (; parts > 0; parts--) {
        n += strcspn(module + n, ".");
        if (parts > 1 && module[n])
            n++;
    }
    return n;
}

static int split_error(const map *m, size_t first, size_t last, size_t length)
{
    const weight *a = &m->list[first], *b = a;
    for (size_t i = first; i < last; i++)
        if (m->list[i].device != a->device)
            b = &m->list[i];
    return moirai_error(MOIRAI_EINPUT,
                        "module '%.*s' is split over devices: '%.150s' is on '%.60s', '%.150s' on '%.60s'; place with "
                        "--together to keep its operators on one",
                        (int)UTIL_MIN(length, 150), a->module, a->name, m->a->problem->device_name[a->device], b->name,
                        m->a->problem->device_name[b->device]);
}

static void put(map *m, const char *module, size_t length, int32_t device)
{
    char *key = strndup(module, length);
    if (!key) {
        m->w.failed = true;
        return;
    }
    util_writer_break(&m->w);
    util_writer_pair_string(&m->w, key, m->a->problem->device_name[device]);
    free(key);
}

/* list[first, last) share their first `parts` parts. */
static int divide(map *m, size_t first, size_t last, int parts)
{
    const char *module = m->list[first].module;
    size_t length = prefix_of(module, parts);
    bool one = true;
    for (size_t i = first; i < last; i++)
        one &= m->list[i].device == m->list[first].device;
    if (one) {
        put(m, module, length, m->list[first].device);
        return 0;
    }
    /* A module that ends here can't be divided; nor may one of --depth parts. */
    if ((parts && !module[length]) || (m->o->depth && parts >= m->o->depth))
        return split_error(m, first, last, length);
    for (size_t i = first, j; i < last; i = j) {
        size_t n = prefix_of(m->list[i].module, parts + 1);
        for (j = i + 1; j < last; j++)
            if (prefix_of(m->list[j].module, parts + 1) != n || strncmp(m->list[j].module, m->list[i].module, n))
                break;
        int rc = divide(m, i, j, parts + 1);
        if (rc)
            return rc;
    }
    return 0;
}

static int collect(map *m)
{
    const moirai_problem *p = m->a->problem;
    int rc = 0;
    bool any = false;
    for (int32_t i = 0; i < p->n_ops; i++)
        any |= p->op_memory_bytes[i] > 0;
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        if (!any || p->op_memory_bytes[i] > 0)
            rc = add_op(m, i);
    if (!rc && m->n)
        qsort(m->list, m->n, sizeof *m->list, compare);
    return rc;
}

static int write_map(char **out, size_t *length, const moirai_analysis *a, const moirai_export_options *o)
{
    map m = {.a = a, .o = o, .strings = util_strings_new()};
    int rc = m.strings ? collect(&m) : MOIRAI_EFAIL;
    util_writer_init(&m.w);
    util_writer_open(&m.w, '{');
    if (!rc && m.n)
        rc = divide(&m, 0, m.n, 0);
    util_writer_break(&m.w);
    util_writer_close(&m.w, '}');
    if (!rc && !(*out = util_writer_take(&m.w, length)))
        rc = MOIRAI_EFAIL;
    util_writer_free(&m.w);
    free(m.list);
    util_strings_free(m.strings);
    return rc;
}

const moirai_exporter report_export_device_map = {
    .name = "device-map",
    .summary = "modules to devices, as Hugging Face's device_map",
    .write = write_map,
};
