/* The user's wishes: pins and bans take devices away from operators, keep-together joins operators into groups. Groups
 * that share an operator become one: a union-find over operators, where existing groups are united first. */
#include "problem/problem_build.h"
#include "problem/device_set.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_name(moirai_wish_kind kind)
{
    return kind == MOIRAI_PIN ? "pin" : kind == MOIRAI_FORBID ? "forbid" : "together";
}

/* "A,C" -> set. */
static int parse_devices(device_set *set, const moirai_problem *p, const moirai_wish *wish)
{
    const char *at = wish->devices ? wish->devices : "";
    for (;;) {
        size_t length = strcspn(at, ",");
        int32_t found = MOIRAI_NONE;
        for (int32_t k = 0; k < p->n_devices; k++)
            if (strlen(p->device_name[k]) == length && !memcmp(p->device_name[k], at, length))
                found = k;
        if (found == MOIRAI_NONE)
            return moirai_error(MOIRAI_EINPUT, "%s '%.200s': no device '%.*s' in problem '%.200s'",
                                kind_name(wish->kind), wish->pattern, (int)UTIL_MIN(length, (size_t)200), at, p->name);
        device_set_add(set, found);
        if (!at[length])
            return 0;
        at += length + 1;
    }
}

/* Those of the set, or (a pin) all others. */
static void take_devices(moirai_problem *p, int32_t op, const device_set *set, bool others)
{
    for (int32_t k = 0; k < p->n_devices; k++)
        if (device_set_has(set, k) != others)
            p->op_time_ns[(size_t)op * (size_t)p->n_devices + (size_t)k] = MOIRAI_NEVER;
}

static int32_t find_root(int32_t *parent, int32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* The least operator is the root, so that results do not depend on the order of the wishes. */
static void unite(int32_t *parent, int32_t a, int32_t b)
{
    a = find_root(parent, a);
    b = find_root(parent, b);
    parent[UTIL_MAX(a, b)] = UTIL_MIN(a, b);
}

/* What each operator is called: by its own name, or by those of an operator of `g` and of what was fused into that. */
typedef struct called {
    const moirai_graph *g; /* NULL: by its own name alone */
    int32_t *owner;        /* operator of the problem -> operator of g */
} called;

static int find_owners(called *names, const moirai_problem *p, const moirai_graph *g)
{
    util_names *owner = util_names_new((size_t)g->n_ops);
    names->g = g;
    names->owner = util_alloc((size_t)p->n_ops, sizeof *names->owner);
    int rc = owner && names->owner ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < g->n_ops && !rc; i++) {
        rc = util_names_put(owner, g->op_name[i], i) < 0 ? MOIRAI_EFAIL : 0;
        for (int32_t e = g->op_member_off[i]; e < g->op_member_off[i + 1] && !rc; e++)
            rc = util_names_put(owner, g->op_member[e], i) < 0 ? MOIRAI_EFAIL : 0;
    }
    for (int32_t i = 0; i < p->n_ops && !rc; i++) {
        names->owner[i] = util_names_get(owner, p->op_name[i]);
        if (names->owner[i] < 0)
            rc = moirai_error(MOIRAI_EINPUT, "operator '%.200s' of problem '%.200s' is not in graph '%.200s'",
                              p->op_name[i], p->name, g->name);
    }
    util_names_free(owner);
    return rc;
}

static bool fits_name(const moirai_problem *p, const called *names, int32_t op, const char *pattern)
{
    const moirai_graph *g = names->g;
    if (!fnmatch(pattern, p->op_name[op], 0))
        return true;
    if (!g)
        return false;
    int32_t owner = names->owner[op];
    if (!fnmatch(pattern, g->op_name[owner], 0))
        return true;
    for (int32_t e = g->op_member_off[owner]; e < g->op_member_off[owner + 1]; e++)
        if (!fnmatch(pattern, g->op_member[e], 0))
            return true;
    return false;
}

/* `label` has the name that an operator gives to its group: that of the group it was in, or the pattern. */
static int apply_wish(moirai_problem *p, const called *names, const moirai_wish *wish, int32_t *parent,
                      const char **label)
{
    device_set set = {{0}};
    int32_t first = MOIRAI_NONE;
    int rc = wish->kind == MOIRAI_TOGETHER ? 0 : parse_devices(&set, p, wish);
    if (rc)
        return rc;
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (!fits_name(p, names, i, wish->pattern))
            continue;
        if (first == MOIRAI_NONE)
            first = i;
        if (wish->kind == MOIRAI_TOGETHER)
            unite(parent, first, i);
        else
            take_devices(p, i, &set, wish->kind == MOIRAI_PIN);
    }
    if (first == MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "%s '%.200s': no operator of problem '%.200s' has such a name",
                            kind_name(wish->kind), wish->pattern, p->name);
    if (wish->kind == MOIRAI_TOGETHER && !label[first] && !(label[first] = problem_keep(p, wish->pattern)))
        return MOIRAI_EFAIL;
    return 0;
}

/* Two groups may want one name (a pattern used twice, or a pattern that is a group's name): the later gets a number. */
static const char *free_name(moirai_problem *p, util_names *taken, const char *wanted, int32_t group)
{
    const char *name = wanted;
    char text[256];
    for (int n = 2; util_names_get(taken, name) >= 0; n++) {
        snprintf(text, sizeof text, "%.200s #%d", wanted, n);
        if (!(name = problem_keep(p, text)))
            return NULL;
    }
    return util_names_put(taken, name, group) < 0 ? NULL : name;
}

/* Groups are the sets of the union-find that somebody named. A name that was there before wins over a pattern, then
 * that of the least operator. */
static int rebuild_groups(moirai_problem *p, int32_t *parent, const char **label)
{
    util_names *taken = util_names_new((size_t)p->n_groups);
    int32_t *group_of_root = util_alloc((size_t)p->n_ops, sizeof *group_of_root);
    int rc = taken && group_of_root ? 0 : MOIRAI_EFAIL;
    p->n_groups = 0;
    for (int32_t j = 0; !rc && j < 2 * p->n_ops; j++) {
        int32_t i = j % p->n_ops, root = find_root(parent, i);
        bool skip = j < p->n_ops ? p->op_group[i] == MOIRAI_NONE : !label[i];
        if (skip || group_of_root[root])
            continue;
        const char *name = free_name(p, taken, label[i], p->n_groups);
        if (!name)
            rc = MOIRAI_EFAIL;
        p->group_name[p->n_groups++] = name;
        group_of_root[root] = p->n_groups;
    }
    for (int32_t i = 0; !rc && i < p->n_ops; i++)
        p->op_group[i] = group_of_root[find_root(parent, i)] - 1;
    util_names_free(taken);
    free(group_of_root);
    return rc ? rc : problem_number_groups(p);
}

static int apply_all(moirai_problem *p, const called *names, const moirai_wish *wishes, int n_wishes)
{
    int32_t *parent = util_alloc((size_t)p->n_ops, sizeof *parent);
    int32_t *first = util_alloc((size_t)p->n_groups, sizeof *first);
    const char **label = util_alloc((size_t)p->n_ops, sizeof *label);
    int rc = parent && first && label ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; !rc && i < p->n_ops; i++)
        parent[i] = i;
    for (int32_t i = p->n_ops - 1; !rc && i >= 0; i--)
        if (p->op_group[i] != MOIRAI_NONE)
            first[p->op_group[i]] = i;
    for (int32_t i = 0; !rc && i < p->n_ops; i++) {
        if (p->op_group[i] == MOIRAI_NONE)
            continue;
        unite(parent, first[p->op_group[i]], i);
        label[i] = p->group_name[p->op_group[i]];
    }
    for (int w = 0; !rc && w < n_wishes; w++)
        rc = apply_wish(p, names, &wishes[w], parent, label);
    rc = rc ? rc : rebuild_groups(p, parent, label);
    free(parent);
    free(first);
    free(label);
    return rc ? rc : problem_mask_devices(p);
}

static void *copy_array(const void *from, size_t n, size_t size)
{
    void *to = util_alloc(n, size);
    if (to)
        memcpy(to, from, n * size);
    return to;
}

static int wish_by(moirai_problem *p, const called *names, const moirai_wish *wishes, int n_wishes)
{
    /* All that wishes touch is changed in a copy, so that a failure leaves the problem as it was. */
    moirai_problem trial = *p;
    size_t n = (size_t)p->n_ops;
    trial.op_time_ns = copy_array(p->op_time_ns, n * (size_t)p->n_devices, sizeof *p->op_time_ns);
    trial.op_group = copy_array(p->op_group, n, sizeof *p->op_group);
    trial.op_devices = copy_array(p->op_devices, n * (size_t)moirai_device_words(p), sizeof *p->op_devices);
    trial.group_name = copy_array(p->group_name, n, sizeof *p->group_name);
    int rc = trial.op_time_ns && trial.op_group && trial.op_devices && trial.group_name ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : apply_all(&trial, names, wishes, n_wishes);
    moirai_problem old = *p;
    if (!rc)
        *p = trial;
    const moirai_problem *unused = rc ? &trial : &old;
    free(unused->op_time_ns);
    free(unused->op_group);
    free(unused->op_devices);
    free(unused->group_name);
    if (!rc)
        problem_own_weights(p); /* groups may have made some of them private */
    return rc;
}

int moirai_problem_wish(moirai_problem *p, const moirai_wish *wishes, int n_wishes)
{
    called names = {0};
    return n_wishes > 0 ? wish_by(p, &names, wishes, n_wishes) : 0;
}

int moirai_problem_wish_fused(moirai_problem *p, const moirai_graph *g, const moirai_wish *wishes, int n_wishes)
{
    called names = {0};
    if (n_wishes <= 0)
        return 0;
    int rc = find_owners(&names, p, g);
    rc = rc ? rc : wish_by(p, &names, wishes, n_wishes);
    free(names.owner);
    return rc;
}
