/* A problem on a changed cluster: one link or device faster, more memory, one device less or more.
 *
 * The operators and tensors are copied as they are (a problem without none of its operators); then every array over
 * devices is made anew through a map from new devices to old ones, which is the identity but for one device less or
 * more, and the problem is settled again as a reader would do it. */
#include "cluster/cluster_build.h"
#include "problem/problem_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct changer {
    const moirai_problem *p;
    const moirai_change *change;
    moirai_problem *q;
    int32_t K;                              /* new number of devices */
    int32_t old[MOIRAI_MAX_DEVICES];        /* new device -> old */
    int64_t *bytes_per_second, *latency_ns; /* of all channels, [from * K + to] */
    bool *faster;                           /* channels whose tables are halved, too */
} changer;

static int64_t half_up(int64_t x)
{
    return x / 2 + x % 2;
}

static int check_change(const moirai_problem *p, const moirai_change *change)
{
    int32_t K = p->n_devices;
    bool a_ok = change->kind == MOIRAI_CHANGE_NONE || (change->a >= 0 && change->a < K);
    bool b_ok = change->kind != MOIRAI_CHANGE_LINK || (change->b >= 0 && change->b < K && change->b != change->a);
    if (!a_ok || !b_ok || change->b >= K)
        return moirai_error(MOIRAI_EUSAGE, "a change of devices %d and %d: the problem has %d", change->a, change->b,
                            K);
    if (change->kind == MOIRAI_CHANGE_LESS && K == 1)
        return moirai_error(MOIRAI_EINFEASIBLE, "without device '%.200s' there is none", p->device_name[change->a]);
    if (change->kind == MOIRAI_CHANGE_MORE && K == MOIRAI_MAX_DEVICES)
        return moirai_error(MOIRAI_EINFEASIBLE, "more than %d devices", MOIRAI_MAX_DEVICES);
    return 0;
}

static void map_devices(changer *x)
{
    const moirai_change *change = x->change;
    x->K = 0;
    for (int32_t k = 0; k < x->p->n_devices; k++)
        if (change->kind != MOIRAI_CHANGE_LESS || k != change->a)
            x->old[x->K++] = k;
    if (change->kind == MOIRAI_CHANGE_MORE)
        x->old[x->K++] = change->a;
}

/* The channel of the old problem that the new channel (i, j) is like: between a device and its copy there was none. */
static int32_t old_channel(const changer *x, int32_t i, int32_t j)
{
    const moirai_problem *p = x->p;
    int32_t a = x->old[i], b = x->old[j], n = p->n_devices, best = MOIRAI_NONE;
    if (a != b)
        return a * n + b;
    if (x->change->b != MOIRAI_NONE && x->change->b != a)
        return i < j ? a * n + x->change->b : x->change->b * n + a;
    for (int32_t k = 0; k < n; k++)
        if (k != a && (best == MOIRAI_NONE || p->bytes_per_second[a * n + k] > p->bytes_per_second[best]))
            best = a * n + k;
    return best;
}

/* MOIRAI_NONE only where the only device gets a copy: then memory speed is as good a guess as any. */
static const int64_t lone_rate = 100000000000;

static void copy_channels(changer *x)
{
    for (int32_t i = 0; i < x->K; i++)
        for (int32_t j = 0; j < x->K; j++) {
            if (i == j)
                continue;
            int32_t c = old_channel(x, i, j);
            x->bytes_per_second[i * x->K + j] = c == MOIRAI_NONE ? lone_rate : x->p->bytes_per_second[c];
            x->latency_ns[i * x->K + j] = c == MOIRAI_NONE ? 0 : x->p->latency_ns[c];
        }
}

/* Of a channel's latency, what a segment of its receiver costs beside the message: no link changes it. */
static int64_t segment_ns(const moirai_problem *p, int32_t channel)
{
    return p->device_segment_ns[channel % p->n_devices];
}

static int same_cluster(const moirai_problem *p, const moirai_cluster *c)
{
    if (c->n_devices != p->n_devices)
        return moirai_error(MOIRAI_EINPUT, "cluster '%.200s' has %d devices, problem '%.200s' has %d", c->name,
                            c->n_devices, p->name, p->n_devices);
    for (int32_t k = 0; k < p->n_devices; k++)
        if (strcmp(c->device[k].name, p->device_name[k]))
            return moirai_error(MOIRAI_EINPUT, "cluster '%.200s': device '%.100s' is '%.100s' in problem '%.200s'",
                                c->name, c->device[k].name, p->device_name[k], p->name);
    for (int32_t i = 0; i < p->n_devices * p->n_devices; i++)
        if (i / p->n_devices != i % p->n_devices &&
            (problem_moving_rate(c->bytes_per_second[i], p->move_ns_per_mb) != p->bytes_per_second[i] ||
             c->latency_ns[i] + segment_ns(p, i) != p->latency_ns[i]))
            return moirai_error(
                MOIRAI_EINPUT,
                "cluster '%.200s': the channel from '%.100s' to '%.100s' differs from that of problem '%.200s'",
                c->name, p->device_name[i / p->n_devices], p->device_name[i % p->n_devices], p->name);
    return 0;
}

static int faster_rate(int64_t *rate)
{
    return util_mul64(rate, *rate, 2) ? 0 : moirai_error(MOIRAI_EINPUT, "a channel's bandwidth is too large to double");
}

/* The cluster's mesh with the link doubled: other pairs may now go over it. */
static int close_again(changer *x, const moirai_cluster *c)
{
    moirai_cluster *n = NULL;
    const moirai_change *change = x->change;
    int rc = cluster_new(&n, c->name);
    for (int32_t k = 0; !rc && k < c->n_devices; k++)
        rc = cluster_add_device(n, c->device[k].name, c->device[k].type) ? 0 : MOIRAI_EFAIL;
    bool any = false;
    for (int32_t l = 0; !rc && l < c->n_links; l++) {
        moirai_link link = c->link[l];
        if ((link.from == change->a && link.to == change->b) || (link.from == change->b && link.to == change->a)) {
            any = true;
            link.latency_ns = half_up(link.latency_ns);
            rc = faster_rate(&link.bytes_per_second);
        }
        rc = rc ? rc : cluster_add_link(n, link.from, link.to, link.bytes_per_second, link.latency_ns);
    }
    if (!rc && !any)
        rc = moirai_error(MOIRAI_EINPUT, "cluster '%.200s' has no link between '%.100s' and '%.100s'", c->name,
                          c->device[change->a].name, c->device[change->b].name);
    rc = rc ? rc : cluster_close(n);
    for (int32_t i = 0; !rc && i < x->K * x->K; i++) {
        bool apart = i / x->K != i % x->K;
        int64_t latency_ns = n->latency_ns[i] + (apart ? segment_ns(x->p, i) : 0);
        int64_t rate = problem_moving_rate(n->bytes_per_second[i], apart ? x->p->move_ns_per_mb : 0);
        x->faster[i] = rate != x->bytes_per_second[i] || latency_ns != x->latency_ns[i];
        x->bytes_per_second[i] = rate;
        x->latency_ns[i] = latency_ns;
    }
    moirai_cluster_free(n);
    return rc;
}

/* The bandwidth of the link alone, without what moving costs beside it. */
static int64_t link_rate(const moirai_problem *p, int64_t rate)
{
    double ns_per_byte = 1e9 / (double)rate - (double)p->move_ns_per_mb / 1e6;
    bool known = p->move_ns_per_mb > 0 && ns_per_byte > 0 && 1e9 / ns_per_byte < 1e18;
    return known ? (int64_t)(1e9 / ns_per_byte + 0.5) : rate;
}

static int change_channels(changer *x, const moirai_cluster *c)
{
    copy_channels(x);
    if (x->change->kind != MOIRAI_CHANGE_LINK)
        return 0;
    if (c)
        return close_again(x, c);
    int32_t pair[2] = {x->change->a * x->K + x->change->b, x->change->b * x->K + x->change->a};
    for (int i = 0; i < 2; i++) {
        x->faster[pair[i]] = true;
        int64_t fixed_ns = UTIL_MIN(segment_ns(x->p, pair[i]), x->latency_ns[pair[i]]);
        x->latency_ns[pair[i]] = fixed_ns + half_up(x->latency_ns[pair[i]] - fixed_ns);
        x->bytes_per_second[pair[i]] = link_rate(x->p, x->bytes_per_second[pair[i]]);
        if (faster_rate(&x->bytes_per_second[pair[i]]))
            return MOIRAI_EINPUT;
        x->bytes_per_second[pair[i]] = problem_moving_rate(x->bytes_per_second[pair[i]], x->p->move_ns_per_mb);
    }
    return 0;
}

/* A name for the copy of a device: "A'", "A''", ... */
static const char *copy_name(changer *x, const char *name)
{
    char text[600 + MOIRAI_MAX_DEVICES];
    int n = snprintf(text, sizeof text - MOIRAI_MAX_DEVICES - 1, "%.500s", name);
    do {
        text[n++] = '\'';
        text[n] = '\0';
    } while (moirai_problem_find_device(x->p, text) != MOIRAI_NONE);
    return problem_keep(x->q, text);
}

static int change_devices(changer *x)
{
    moirai_problem *q = x->q;
    size_t K = (size_t)x->K;
    free(q->device_name);
    free(q->device_memory_bytes);
    free(q->device_launch_ns);
    free(q->device_segment_ns);
    free(q->device_whole_ns);
    free(q->device_type);
    q->device_name = util_alloc(K, sizeof *q->device_name);
    q->device_memory_bytes = util_alloc(K, sizeof *q->device_memory_bytes);
    q->device_launch_ns = util_alloc(K, sizeof *q->device_launch_ns);
    q->device_segment_ns = util_alloc(K, sizeof *q->device_segment_ns);
    q->device_whole_ns = util_alloc(K, sizeof *q->device_whole_ns);
    q->device_type = util_alloc(K, sizeof *q->device_type);
    if (!q->device_name || !q->device_memory_bytes || !q->device_launch_ns || !q->device_segment_ns ||
        !q->device_whole_ns || !q->device_type)
        return MOIRAI_EFAIL;
    q->n_devices = x->K;
    for (int32_t k = 0; k < x->K; k++) {
        const char *name = x->p->device_name[x->old[k]];
        bool copy = x->change->kind == MOIRAI_CHANGE_MORE && k == x->K - 1;
        bool doubled = x->change->kind == MOIRAI_CHANGE_MEMORY && x->old[k] == x->change->a;
        q->device_name[k] = copy ? copy_name(x, name) : problem_keep(q, name);
        q->device_memory_bytes[k] = x->p->device_memory_bytes[x->old[k]];
        q->device_launch_ns[k] = x->p->device_launch_ns[x->old[k]];
        q->device_segment_ns[k] = x->p->device_segment_ns[x->old[k]];
        bool faster = x->change->kind == MOIRAI_CHANGE_SPEED && x->old[k] == x->change->a;
        int64_t whole_ns = x->p->device_whole_ns[x->old[k]];
        q->device_whole_ns[k] = faster ? half_up(whole_ns) : whole_ns;
        q->device_type[k] = problem_keep(q, x->p->device_type[x->old[k]]);
        if (!q->device_name[k] || !q->device_type[k])
            return MOIRAI_EFAIL;
        if (doubled && !util_mul64(&q->device_memory_bytes[k], q->device_memory_bytes[k], 2))
            return moirai_error(MOIRAI_EINPUT, "device '%.200s': its memory is too large to double", name);
    }
    return 0;
}

static int change_times(changer *x)
{
    moirai_problem *q = x->q;
    const moirai_problem *p = x->p;
    free(q->op_time_ns);
    q->op_time_ns = util_alloc((size_t)q->n_ops * (size_t)x->K, sizeof *q->op_time_ns);
    if (!q->op_time_ns)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < q->n_ops; i++)
        for (int32_t k = 0; k < x->K; k++) {
            int64_t time = moirai_op_ns(p, i, x->old[k]);
            bool halved = x->change->kind == MOIRAI_CHANGE_SPEED && x->old[k] == x->change->a && time != MOIRAI_NEVER;
            q->op_time_ns[(int64_t)i * x->K + k] = halved ? half_up(time) : time;
        }
    return 0;
}

/* The table of a tensor that has its own. */
static void fill_table(const changer *x, int64_t *table, int32_t t)
{
    const moirai_problem *p = x->p;
    const int64_t *old = p->class_transfer_ns + (int64_t)p->tensor_class[t] * p->n_devices * p->n_devices;
    for (int32_t i = 0; i < x->K; i++)
        for (int32_t j = 0; j < x->K; j++) {
            int32_t c = i == j ? MOIRAI_NONE : old_channel(x, i, j);
            int64_t ns = c == MOIRAI_NONE ? 0 : old[c];
            table[i * x->K + j] = x->faster[i * x->K + j] ? half_up(ns) : ns;
        }
}

static int settle(changer *x)
{
    moirai_problem *q = x->q;
    const moirai_problem *p = x->p;
    size_t cells = (size_t)x->K * (size_t)x->K;
    int64_t *cell = util_alloc((size_t)p->n_classes * cells, sizeof *cell);
    const int64_t **table = util_alloc((size_t)p->n_tensors, sizeof *table);
    int rc = cell && table ? 0 : MOIRAI_EFAIL;
    for (int32_t t = 0; !rc && t < p->n_tensors; t++)
        if (p->tensor_has_table[t]) {
            int64_t *mine = cell + (size_t)p->tensor_class[t] * cells;
            fill_table(x, mine, t);
            table[t] = mine;
        }
    free(q->class_transfer_ns);
    q->class_transfer_ns = NULL;
    rc = rc ? rc : problem_settle(q, table);
    free(table);
    free(cell);
    return rc;
}

static int apply(changer *x, const moirai_cluster *c)
{
    size_t cells = (size_t)x->K * (size_t)x->K;
    free(x->q->bytes_per_second);
    free(x->q->latency_ns);
    x->q->bytes_per_second = x->bytes_per_second = util_alloc(cells, sizeof(int64_t));
    x->q->latency_ns = x->latency_ns = util_alloc(cells, sizeof(int64_t));
    x->faster = util_alloc(cells, sizeof *x->faster);
    int rc = x->bytes_per_second && x->latency_ns && x->faster ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : change_channels(x, c);
    rc = rc ? rc : change_devices(x);
    rc = rc ? rc : change_times(x);
    rc = rc ? rc : settle(x);
    free(x->faster);
    return rc;
}

int moirai_problem_change(moirai_problem **out, const moirai_problem *p, const moirai_cluster *c,
                          const moirai_change *change)
{
    changer x = {.p = p, .change = change};
    bool *gone = NULL;
    *out = NULL;
    int rc = check_change(p, change);
    rc = rc ? rc : c ? same_cluster(p, c) : 0;
    if (!rc && !(gone = util_alloc((size_t)p->n_ops, sizeof *gone)))
        rc = MOIRAI_EFAIL;
    rc = rc ? rc : moirai_problem_without(&x.q, p, gone);
    free(gone);
    if (rc)
        return rc;
    map_devices(&x);
    rc = apply(&x, c);
    if (rc)
        moirai_problem_free(x.q);
    else
        *out = x.q;
    return rc;
}
