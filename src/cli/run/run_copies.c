/* A plan file has its first copy as a plan has its operators, and every other one with operators and transfers of its own:
 * each of these becomes a plan file, which is split like any other. */
#include "cli/run/run_copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

#define MOST_PACE 1000000
#define MOST_SLOTS 1000000
#define WHOLE_PPM 1000000

/* ---- requests in flight ---- */

int cli_copies_share_out(int64_t *slots, int n, int64_t in_flight)
{
    int64_t planned = 0, given = 0, was[CLI_MOST_COPIES];
    for (int c = 0; c < n; c++)
        planned += was[c] = slots[c];
    if (planned == in_flight)
        return 0;
    if (in_flight < n)
        return moirai_error(MOIRAI_EUSAGE,
                            "the plan has %d copies, each of which needs a request: --in-flight %lld is too few", n,
                            (long long)in_flight);
    for (int c = 0; c < n; c++)
        given += slots[c] = 1;
    for (; given < in_flight; given++) { /* to who has the least of what the plan gave it */
        int least = 0;
        for (int c = 1; c < n; c++)
            if (slots[c] * was[least] < slots[least] * was[c])
                least = c;
        slots[least]++;
    }
    return 0;
}

static int share_out(cli_copies *c, int64_t in_flight)
{
    int64_t slots[CLI_MOST_COPIES];
    if (!c->copy[0].slots)
        return 0;
    for (int i = 0; i < c->n; i++)
        slots[i] = c->copy[i].slots;
    int rc = cli_copies_share_out(slots, c->n, in_flight);
    for (int i = 0; i < c->n && !rc; i++)
        c->copy[i].slots = slots[i];
    return rc;
}

/* ---- reading ---- */

static int read_copy(cli_copy *c, const char *label, yyjson_val *value, size_t index)
{
    util_json_at at = {label, "copy", NULL, index};
    double share = 0;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : util_json_real(&share, &at, value, "share", true);
    rc = rc ? rc : util_json_int64(&c->slots, &at, value, "slots", false, 1);
    if (!rc && !(share >= 0 && share <= 1))
        rc = util_json_fail(&at, "share is %g, expected 0 .. 1", share);
    if (!rc && c->slots > MOST_SLOTS)
        rc = util_json_fail(&at, "slots is %lld, expected at most %d", (long long)c->slots, MOST_SLOTS);
    if (!rc && index && !yyjson_obj_get(value, "ops"))
        rc = util_json_fail(&at, "has no times, so that it can't be run: make the plan again");
    c->share_ppm = rc ? 0 : (int64_t)(share * WHOLE_PPM + 0.5);
    return rc;
}

/* The plan's own file, but for operators, transfers and length, and for one request. */
static int write_plan(const cli_copy *c, yyjson_val *root, yyjson_val *copy)
{
    static const char *const taken[] = {"makespan_ns", "ops", "transfers"};
    static const char *const dropped[] = {"objective", "copies", "in_flight", "pace"};
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *out = yyjson_val_mut_copy(doc, root);
    yyjson_mut_doc_set_root(doc, out);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        yyjson_mut_obj_remove_key(out, dropped[i]);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        yyjson_mut_obj_remove_key(out, taken[i]);
        yyjson_mut_obj_add_val(doc, out, taken[i], yyjson_val_mut_copy(doc, yyjson_obj_get(copy, taken[i])));
    }
    int rc = util_json_save(doc, c->plan);
    yyjson_mut_doc_free(doc);
    return rc;
}

static void name_files(cli_copy *c, const char *folder, int number)
{
    snprintf(c->plan, sizeof c->plan, "%s/copy-%d.json", folder, number);
    snprintf(c->parts, sizeof c->parts, "%s/parts-%d", folder, number);
    snprintf(c->outputs, sizeof c->outputs, "%s/outputs-%d", folder, number);
    snprintf(c->job, sizeof c->job, "%s/job-%d.json", folder, number);
    snprintf(c->result, sizeof c->result, "%s/timeline-%d.json", folder, number);
    snprintf(c->verdict, sizeof c->verdict, "%s/verdict-%d.json", folder, number);
}

/* What all of them must say together. */
static int check_copies(const cli_copies *c, const char *label)
{
    int64_t sum = 0;
    bool mixed = false;
    for (int i = 0; i < c->n; i++) {
        mixed |= !c->copy[i].slots != !c->copy[0].slots;
        sum += c->copy[i].share_ppm;
    }
    if (mixed)
        return moirai_error(MOIRAI_EINPUT, "%s: some copies have slots, and some have not", label);
    if (llabs(sum - WHOLE_PPM) > c->n)
        return moirai_error(MOIRAI_EINPUT, "%s: shares of copies sum to %.6f, not to 1", label,
                            (double)sum / WHOLE_PPM);
    return 0;
}

static int read_copies(cli_copies *c, yyjson_val *root, const char *label, const char *folder)
{
    yyjson_val *value;
    size_t i, n;
    int rc = 0;
    yyjson_arr_foreach(yyjson_obj_get(root, "copies"), i, n, value) {
        rc = rc ? rc : read_copy(&c->copy[i], label, value, i);
        if (rc || !i)
            continue;
        name_files(&c->copy[i], folder, (int)i);
        rc = write_plan(&c->copy[i], root, value);
        rc = rc ? rc : util_folder_make(c->copy[i].outputs);
    }
    return rc ? rc : check_copies(c, label);
}

static int open_copies(cli_copies **out, yyjson_val *root, const char *label, const char *folder, int64_t in_flight)
{
    yyjson_val *list = NULL;
    util_json_at at = {.label = label};
    int rc = util_json_array(&list, &at, root, "copies", false);
    size_t n = list && !rc ? yyjson_arr_size(list) : 1;
    if (rc || n == 1)
        return rc;
    if (!n || n > CLI_MOST_COPIES)
        return moirai_error(MOIRAI_EINPUT, "%s: %zu copies, at most %d can be run", label, n, CLI_MOST_COPIES);
    cli_copies *c = *out = util_alloc(1, sizeof *c);
    if (!c || !(c->copy = util_alloc(n, sizeof *c->copy)))
        return MOIRAI_EFAIL;
    c->n = (int)n;
    rc = read_copies(c, root, label, folder);
    return rc ? rc : share_out(c, in_flight);
}

/* The plan's, in proportion where there are more or fewer requests than it was made for. */
static int read_pace(int64_t *pace, yyjson_val *root, const char *label, int64_t in_flight)
{
    util_json_at at = {.label = label};
    int64_t planned = in_flight, own = 0;
    int rc = util_json_int64(&planned, &at, root, "in_flight", false, 1);
    rc = rc ? rc : util_json_int64(&own, &at, root, "pace", false, 0);
    if (!rc && own > MOST_PACE)
        rc = util_json_fail(&at, "pace is %lld, expected at most %d", (long long)own, MOST_PACE);
    *pace = rc ? 0 : own * in_flight / planned;
    return rc;
}

int cli_copies_open(cli_copies **out, int64_t *pace, const char *plan, const char *folder, int64_t in_flight)
{
    yyjson_doc *doc;
    *out = NULL;
    *pace = 0;
    if (in_flight < 2 || !strcmp(plan, "-"))
        return 0;
    int rc = util_json_read(&doc, plan, "moirai-plan");
    if (rc)
        return rc;
    rc = open_copies(out, yyjson_doc_get_root(doc), plan, folder, in_flight);
    rc = rc ? rc : read_pace(pace, yyjson_doc_get_root(doc), plan, in_flight);
    yyjson_doc_free(doc);
    return rc;
}

void cli_copies_free(cli_copies *c)
{
    if (!c)
        return;
    for (int i = 0; c->copy && i < c->n; i++)
        yyjson_doc_free(c->copy[i].manifest);
    free(c->copy);
    free(c);
}

bool cli_copies_use(const cli_copies *c, const char *device)
{
    for (int i = 1; c && i < c->n; i++) {
        yyjson_val *d, *all = yyjson_obj_get(yyjson_doc_get_root(c->copy[i].manifest), "devices");
        size_t at, n;
        yyjson_arr_foreach(all, at, n, d) {
            const char *name = yyjson_get_str(yyjson_obj_get(d, "name"));
            if (name && !strcmp(name, device) && yyjson_arr_size(yyjson_obj_get(d, "segments")))
                return true;
        }
    }
    return false;
}
