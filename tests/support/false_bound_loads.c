#include "support/false_bound_loads.h"

#include <moirai/moirai.h>

#include <stdlib.h>

#include "rate/least/least.h"
#include "relax/relax.h"
#include "support/false_bound_parts.h"
#include "support/proving.h"
#include "util/util.h"

#define ATTACKS 12
#define MOST_PLANS 1000 /* of a brute force over pairs of them */
#define MOST_RESOURCES 64

/* ---- the least period ---- */

typedef struct plans {
    int32_t n, R;
    int64_t (*load)[MOST_RESOURCES];
    uint64_t *held; /* bit operator * K + device */
} plans;

static void add_transfers(int64_t *load, const moirai_problem *p, const uint8_t *device)
{
    int32_t K = p->n_devices;
    for (int32_t t = 0; t < p->n_tensors && p->congestion != MOIRAI_CONGESTION_NONE; t++) {
        uint64_t sent = 0;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t k = device[p->tensor_producer[t]], l = device[p->edge_reader[e]];
            int64_t ns = moirai_transfer_ns(p, t, k, l);
            if (k == l || (p->flow == MOIRAI_FLOW_TENSOR && sent >> l & 1))
                continue;
            sent |= UINT64_C(1) << l;
            bool held = p->congestion == MOIRAI_CONGESTION_DEVICE, port = p->congestion == MOIRAI_CONGESTION_PORT;
            load[held ? k : port ? K + k : K + k * K + l] += ns;
            if (held || port)
                load[held ? l : 2 * K + l] += ns;
        }
    }
}

static bool fits(const moirai_problem *p, uint64_t held)
{
    int32_t K = p->n_devices;
    int64_t bytes[8] = {0};
    bool can = true;
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 0; k < K; k++)
            bytes[k] += held >> (i * K + k) & 1 ? p->op_memory_bytes[i] : 0;
    for (int32_t k = 0; k < K; k++)
        can &= bytes[k] <= p->device_memory_bytes[k];
    return can;
}

/* All assignments that fit. */
static void list_plans(plans *x, const moirai_problem *p, int64_t all)
{
    int32_t K = p->n_devices;
    for (int64_t which = 0; which < all; which++) {
        uint8_t device[16];
        int64_t rest = which, *load = x->load[x->n];
        uint64_t held = 0;
        bool can = true;
        for (int32_t i = 0; i < p->n_ops; i++, rest /= K) {
            device[i] = (uint8_t)(rest % K);
            can &= p->op_devices[i] >> device[i] & 1;
            held |= UINT64_C(1) << (i * K + device[i]);
        }
        if (!can || !fits(p, held))
            continue;
        for (int32_t r = 0; r < x->R; r++)
            load[r] = 0;
        for (int32_t i = 0; i < p->n_ops; i++)
            load[device[i]] += moirai_op_ns(p, i, device[i]);
        add_transfers(load, p, device);
        x->held[x->n++] = held;
    }
}

/* The largest load of a quarters of one plan and 4 - a of the other, in quarters of a nanosecond. */
static int64_t largest(const plans *x, int32_t i, int32_t j, int32_t a)
{
    int64_t most = 0;
    for (int32_t r = 0; r < x->R; r++)
        most = UTIL_MAX(most, a * x->load[i][r] + (4 - a) * x->load[j][r]);
    return most;
}

/* Of one plan or two by quarters, rounded down; -1: too many of them. No period of such a mixture is below. */
static int64_t least_period(const moirai_problem *p)
{
    int64_t all = 1, best = INT64_MAX;
    plans x = {.R = p->n_devices + UTIL_MAX(2 * p->n_devices, p->n_devices * p->n_devices)};
    for (int32_t i = 0; i < p->n_ops && all <= MOST_PLANS; i++)
        all *= p->n_devices;
    if (all > MOST_PLANS || p->n_ops * p->n_devices > 64 || p->n_devices > 6)
        return -1;
    x.load = calloc((size_t)all, sizeof *x.load);
    x.held = calloc((size_t)all, sizeof *x.held);
    if (x.load && x.held)
        list_plans(&x, p, all);
    for (int32_t i = 0; i < x.n; i++)
        for (int32_t j = 0; j <= i; j++)
            for (int32_t a = 1; a < 4 && (i == j || fits(p, x.held[i] | x.held[j])); a++)
                best = UTIL_MIN(best, largest(&x, i, j, a));
    free(x.load);
    free(x.held);
    return best / 4;
}

/* ---- certificates ---- */

/* Accepted for what the relaxation says, or more by the verifier's own longest paths; its enemies prove nothing false. */
static bool certify(const relax_certificate *from, int64_t optimum, uint64_t seed, false_bound_loads_counts *counts,
                    char *why)
{
    size_t length;
    char *text = relax_certificate_text(from, &length);
    moirai_proof proof;
    bool good = text != NULL || false_bound_fail(why, "loads: out of memory");
    if (good && proving_text(&proof, from->p, text, length, "loads"))
        good = false_bound_fail(why, "loads: not accepted: %s", moirai_error_message());
    if (good && (proof.proven_ns < from->proven_ns || proof.proven_ns > optimum))
        good = false_bound_fail(why, "loads: %lld proven of %lld, optimum %lld", (long long)proof.proven_ns,
                                (long long)from->proven_ns, (long long)optimum);
    good = good && attack_certificate(from->p, text, length, from->rate ? "loads" : "classes", optimum, seed, ATTACKS,
                                      &counts->attacks, NULL, why);
    counts->certificates++;
    free(text);
    return good;
}

static bool check_rate(const moirai_problem *p, relax_task job, uint64_t seed, false_bound_loads_counts *counts,
                       char *why)
{
    relax_answer answer;
    int64_t least = least_period(p);
    if (least < 0 || p->n_weights > 0)
        return true;
    bool good = !rate_least_relax(&answer, p, &job) || false_bound_fail(why, "rate: %s", moirai_error_message());
    relax_certificate from = {.p = p, .rate = &answer.proof, .proven_ns = answer.proof.proven_ns};
    good = good && certify(&from, least, seed, counts, why);
    counts->rates++;
    relax_answer_clear(&answer);
    return good;
}

/* With loads within shifts, which prove no less than without transfers. */
static bool check_shifts(const moirai_problem *p, relax_task job, int64_t optimum, uint64_t seed,
                         false_bound_loads_counts *counts, char *why)
{
    relax_answer answer;
    bool good = !relax_solve_shifts(&answer, p, &job) || false_bound_fail(why, "shifts: %s", moirai_error_message());
    relax_certificate from = {.p = p, .whole = &answer.proof, .proven_ns = answer.lower_ns};
    good = good && certify(&from, optimum, seed, counts, why);
    counts->shifts += answer.proof.n_leaves > 0 && answer.proof.leaf->rows.n_shifts > 0;
    counts->paths += answer.proof.n_leaves > 0 && answer.proof.leaf->rows.n_paths > 0;
    relax_answer_clear(&answer);
    return good;
}

bool false_bound_loads(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_loads_counts *counts,
                       char *why)
{
    relax_answer answer, row;
    relax_task job = {
        .goal_ns = INT64_MAX / 4, .cases = 1 + (int32_t)(seed % 30), .rounds = 20, .threads = 1, .row = true};
    bool good = !relax_solve(&answer, p, &job) || false_bound_fail(why, "loads: %s", moirai_error_message());
    if (good && answer.lower_ns != answer.proof.proven_ns)
        good = false_bound_fail(why, "loads: a case is below its parent: %lld of %lld",
                                (long long)answer.proof.proven_ns, (long long)answer.lower_ns);
    relax_certificate from = {.p = p, .whole = &answer.proof, .proven_ns = answer.lower_ns};
    good = good && certify(&from, optimum, seed, counts, why);
    counts->raised += answer.lower_ns > UTIL_MAX(moirai_bound_load(p), moirai_bound_critical_path(p));
    job.ends = seed / 2 % 2;
    int rc = relax_solve_chain(&row, p, &job);
    if (rc && rc != MOIRAI_ELIMIT)
        good = false_bound_fail(why, "loads: %s", moirai_error_message());
    from = (relax_certificate){.p = p, .row = &row.row, .proven_ns = row.lower_ns};
    good = good && (rc || certify(&from, optimum, seed, counts, why));
    counts->rows += row.row.n_pairs > 0;
    relax_answer_clear(&row);
    relax_answer_clear(&answer);
    return good && check_shifts(p, job, optimum, seed, counts, why) && check_rate(p, job, seed, counts, why);
}
