/* A device is slow when it takes longer for its part of a request than expected, beside the others: a machine that is slow
 * as a whole needs no other plan. What is expected is the plan's time for each device, times what the device took of it when
 * the server began, or takes since, if that is clearly less: predictions by cost models are off by a factor, and that is no
 * change. Where --network gives measured times, the plan's are taken as they are, by the middle one of all devices.
 *
 * Hysteresis: a device must be --slow times as slow for --slow-for seconds on end before anything happens, and be within a
 * quarter of that again for as long before the plan itself comes back. Around a slow device a plan is made of the problem
 * with its times, and no others, longer by what was measured; it may use the device less, or not at all. Whether a device
 * without work is fast again can't be seen: then the plan itself is tried again after a pause, which doubles. */
#include "cli/serve/serve_slow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "cli/commands/commands.h"
#include "util/json.h"
#include "util/util.h"

enum { ENOUGH = 64, MOST_WORDS = 256 }; /* requests before anything is believed */
enum { IDLE, MAKING, READY, FAILED };
#define LOOK_S 0.2
#define PAUSE_TIMES 3 /* --slow-for */
#define PAUSE_MOST_S 600.0

void serve_slow_open(serve_slow *w, const cli_context *cli, const serve_group *first, bool for_rate)
{
    *w = (serve_slow){.cli = cli,
                      .first = first,
                      .for_rate = for_rate,
                      .limit = cli_real(cli, "slow"),
                      .for_s = cli_real(cli, "slow-for"),
                      .pause_s = fmax(1, PAUSE_TIMES * cli_real(cli, "slow-for"))};
    w->group[0].listens = w->group[1].listens = -1;
    for (int i = 0; i < SERVE_SLOW_MOST; i++)
        w->factor[i] = w->wanted[i] = 1;
}

bool serve_slow_has(const serve_slow *w, const serve_group *g)
{
    return g == &w->group[0] || g == &w->group[1];
}

void serve_slow_say(const serve_slow *w, char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    for (int i = 0; i < w->first->run.n_ranks && i < SERVE_SLOW_MOST && used < size; i++)
        if (w->factor[i] > 1)
            used += (size_t)snprintf(out + used, size - used, "%sdevice '%.60s' at %.2f of its speed", used ? ", " : "",
                                     w->first->run.name[i], 1 / w->factor[i]);
}

void serve_slow_taken(serve_slow *w, const serve_group *g)
{
    w->since_s = 0;
    for (int i = 0; i < SERVE_SLOW_MOST; i++) {
        w->factor[i] = serve_slow_has(w, g) ? w->wanted[i] : 1;
        w->fast_s[i] = 0;
    }
    w->retry_s = util_seconds() + w->pause_s;
}

/* ---- what is expected ---- */

static void add_planned(int64_t *planned_ns, const cli_run *run, yyjson_doc *manifest)
{
    yyjson_val *d, *s;
    size_t i, n, k, m;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(manifest), "devices"), i, n, d) {
        const char *name = yyjson_get_str(yyjson_obj_get(d, "name"));
        for (int r = 0; name && r < run->n_ranks; r++) {
            if (strcmp(run->name[r], name))
                continue;
            yyjson_arr_foreach(yyjson_obj_get(d, "segments"), k, m, s) {
                planned_ns[r] += yyjson_get_sint(yyjson_obj_get(s, "work_ns"));
            }
        }
    }
}

int serve_slow_expect(const serve_group *g)
{
    const cli_run *run = &g->run;
    int n = run->copies ? run->copies->n : 1;
    int64_t *planned_ns = util_alloc((size_t)n * (size_t)run->n_ranks, sizeof *planned_ns);
    if (!planned_ns)
        return MOIRAI_EFAIL;
    for (int c = 0; c < n; c++)
        add_planned(planned_ns + c * run->n_ranks, run, c ? run->copies->copy[c].manifest : run->manifest);
    int rc = serve_link_expect(g->link, planned_ns, n);
    free(planned_ns);
    return rc;
}

/* ---- another plan ---- */

static int call(const serve_slow *w, const cli_command *command, const char *const *word, size_t n_words, bool network)
{
    static const char *const options[] = {"rules", "dim", "shape"};
    static const char *const typed[] = {"--rules", "--dim", "--shape"};
    const char *all[MOST_WORDS];
    int n = 0;
    for (size_t i = 0; i < n_words; i++)
        all[n++] = word[i];
    for (size_t k = 0; network && k < sizeof options / sizeof *options; k++)
        for (int i = 0; i < cli_uses(w->cli, options[k]) && n + 2 < MOST_WORDS; i++) {
            all[n++] = typed[k];
            all[n++] = cli_use(w->cli, options[k], i);
        }
    cli_context sub = {0};
    int rc = cli_parse(&sub, command, n, (char **)all);
    sub.json = sub.quiet = true;
    rc = rc ? rc : command->run(&sub);
    cli_free(&sub);
    return rc;
}

static double factor_of(const serve_slow *w, const char *device)
{
    for (int i = 0; device && i < w->first->run.n_ranks && i < SERVE_SLOW_MOST; i++)
        if (!strcmp(w->first->run.name[i], device))
            return w->wanted[i];
    return 1;
}

/* The problem's times of slow devices, longer. */
static int lengthen(const serve_slow *w, const char *path)
{
    size_t i, n, k, m;
    yyjson_doc *doc;
    int rc = util_json_read(&doc, path, "moirai-problem");
    if (rc)
        return rc;
    yyjson_mut_doc *out = yyjson_doc_mut_copy(doc, NULL);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(out), *op, *time;
    yyjson_mut_val *devices = yyjson_mut_obj_get(root, "devices");
    yyjson_mut_arr_foreach(yyjson_mut_obj_get(root, "ops"), i, n, op) {
        yyjson_mut_arr_foreach(yyjson_mut_obj_get(op, "time_ns"), k, m, time) {
            double factor =
                factor_of(w, yyjson_mut_get_str(yyjson_mut_obj_get(yyjson_mut_arr_get(devices, k), "name")));
            if (yyjson_mut_is_int(time))
                yyjson_mut_set_sint(time, (int64_t)ceil(factor * (double)yyjson_mut_get_sint(time)));
        }
    }
    rc = util_json_save(out, path);
    yyjson_mut_doc_free(out);
    yyjson_doc_free(doc);
    return rc;
}

static int make(serve_slow *w)
{
    char problem[4200], plan[4200], name[64];
    const char *network = cli_text(w->cli, "network");
    serve_group *g = &w->group[w->n_made % 2];
    snprintf(problem, sizeof problem, "%s/slow-%d.problem.json", w->first->run.folder, w->n_made);
    snprintf(plan, sizeof plan, "%s/slow-%d.json", w->first->run.folder, w->n_made);
    snprintf(name, sizeof name, "slow-%d", w->n_made % 2);
    const char *const first[] = {network ? network : cli_arg(w->cli, 1), /* any plan: the problem is what is wanted */
                                 "--cluster",
                                 cli_text(w->cli, "cluster"),
                                 "--placer",
                                 "m-topo",
                                 "--problem-out",
                                 problem,
                                 "--force"};
    const char *const second[] = {problem,        "-o",
                                  plan,           "--force",
                                  "--threads",    "1",
                                  "--time-limit", cli_text(w->cli, "plan-limit"),
                                  "--objective",  w->for_rate ? "rate" : "latency",
                                  "--in-flight",  w->first->in_flight};
    int rc = call(w, &cli_command_plan, first, sizeof first / sizeof *first, true);
    rc = rc ? rc : lengthen(w, problem);
    rc = rc ? rc : call(w, &cli_command_place, second, sizeof second / sizeof *second - (w->for_rate ? 0 : 2), false);
    serve_group_free(g);
    return rc ? rc : serve_group_prepare(g, w->cli, plan, name, w->first->run.in_flight);
}

static void *make_in_thread(void *data)
{
    serve_slow *w = data;
    int rc = make(w);
    snprintf(w->message, sizeof w->message, "%s", rc ? moirai_error_message() : "");
    atomic_store(&w->state, rc ? FAILED : READY);
    return NULL;
}

/* Within a quarter of what counts as slow. */
static double usual_most(const serve_slow *w)
{
    return 1 + (w->limit - 1) / 4;
}

static void begin(serve_slow *w, const double *slowness)
{
    for (int i = 0; i < w->first->run.n_ranks; i++)
        w->wanted[i] = slowness[i] > usual_most(w) ? slowness[i] : 1;
    atomic_store(&w->state, MAKING);
    w->has_thread = !pthread_create(&w->thread, NULL, make_in_thread, w);
    if (!w->has_thread)
        atomic_store(&w->state, IDLE);
}

/* ---- looking ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The middle one of those that are known, the lower of two. */
static double middle(const double *x, int n)
{
    double known[SERVE_SLOW_MOST];
    size_t m = 0;
    for (int i = 0; i < n; i++)
        if (x[i] > 0)
            known[m++] = x[i];
    qsort(known, m, sizeof *known, by_size);
    return m ? known[(m - 1) / 2] : 0;
}

/* A device that is faster than expected for --slow-for seconds on end, by itself and beside the others, was held up when the
 * server began: what it takes now is what is expected from now on. */
static void expect_less(serve_slow *w, const double *own, double common, double now_s)
{
    for (int i = 0; i < w->first->run.n_ranks && common > 0; i++) {
        bool fast = own[i] > 0 && fmax(own[i], own[i] / common) * usual_most(w) < 1;
        w->fast_s[i] = !fast ? 0 : w->fast_s[i] > 0 ? w->fast_s[i] : now_s;
        if (fast && now_s - w->fast_s[i] >= w->for_s) {
            w->base[i] *= own[i];
            w->fast_s[i] = 0;
        }
    }
}

/* Of the devices of the plan itself: how many times as long as planned each takes; 0: it has no work. False: not known yet. */
static bool ratios(const serve_slow *w, const serve_group *now, double *of)
{
    double ratio[SERVE_SLOW_MOST] = {0};
    if (serve_link_ratio(now->link, ratio) < ENOUGH)
        return false;
    for (int r = 0; r < now->run.n_ranks; r++)
        for (int i = 0; i < w->first->run.n_ranks; i++)
            if (!strcmp(now->run.name[r], w->first->run.name[i]))
                of[i] = ratio[r];
    return true;
}

/* How slow each device of the plan itself is, by what is expected; 0: it has no work. False: not known yet. */
static bool measure(serve_slow *w, const serve_group *now, double now_s, double *slowness)
{
    int n = w->first->run.n_ranks;
    bool known = true, measured = cli_has(w->cli, "network");
    if (!ratios(w, now, slowness))
        return false;
    double usual = middle(slowness, n), own[SERVE_SLOW_MOST] = {0};
    for (int i = 0; i < n && now == w->first; i++) {
        known &= w->base[i] > 0 || slowness[i] <= 0;
        if (w->base[i] <= 0)
            w->base[i] = measured ? usual : slowness[i];
    }
    for (int i = 0; i < n; i++)
        own[i] = w->base[i] > 0 ? slowness[i] / w->base[i] : 0;
    double common = middle(own, n);
    if (now == w->first && !measured)
        expect_less(w, own, common, now_s);
    for (int i = 0; i < n; i++)
        slowness[i] = common > 0 ? own[i] * w->factor[i] / common : own[i] * w->factor[i];
    return known;
}

/* For --slow-for seconds on end? */
static bool lasts(serve_slow *w, bool seen, double now_s)
{
    if (!seen) {
        w->since_s = 0;
        return false;
    }
    w->since_s = w->since_s > 0 ? w->since_s : now_s;
    return now_s - w->since_s >= w->for_s;
}

static serve_slow_word end_of_making(serve_slow *w, serve_group **next)
{
    int state = atomic_load(&w->state);
    if (state < READY)
        return SERVE_SLOW_STAY;
    pthread_join(w->thread, NULL);
    w->has_thread = false;
    atomic_store(&w->state, IDLE);
    w->since_s = 0;
    if (state == FAILED) {
        cli_say(w->cli, "no plan around it: %s\n", w->message);
        w->asked_s = util_seconds() + w->pause_s; /* not again and again */
        return SERVE_SLOW_STAY;
    }
    *next = &w->group[w->n_made++ % 2];
    return SERVE_SLOW_TAKE;
}

serve_slow_word serve_slow_look(serve_slow *w, serve *server, const serve_group *now, serve_group **next)
{
    double slowness[SERVE_SLOW_MOST] = {0}, now_s = util_seconds(), worst = 0, most = 0;
    int who = -1, n = w->first->run.n_ranks;
    bool around = serve_slow_has(w, now), idle = false;
    if (w->limit <= 0 || !cli_has(w->cli, "cluster") || now_s < w->asked_s + LOOK_S || n > SERVE_SLOW_MOST)
        return SERVE_SLOW_STAY;
    w->asked_s = now_s;
    if (w->has_thread)
        return end_of_making(w, next);
    if ((now != w->first && !around) || !measure(w, now, now_s, slowness))
        return SERVE_SLOW_STAY;
    for (int i = 0; i < n; i++) {
        serve_tell_slowness(server, w->first->run.name[i], slowness[i]);
        if (slowness[i] / w->factor[i] > worst) {
            worst = slowness[i] / w->factor[i];
            who = i;
        }
        if (w->factor[i] > 1)
            most = fmax(most, slowness[i]);
        idle |= w->factor[i] > 1 && slowness[i] <= 0;
    }
    if (around && idle && now_s >= w->retry_s) {
        w->pause_s = fmin(2 * w->pause_s, PAUSE_MOST_S);
        return SERVE_SLOW_BACK;
    }
    bool better = around && !idle && most < usual_most(w);
    if (!lasts(w, better || worst > w->limit, now_s))
        return SERVE_SLOW_STAY;
    if (better)
        return SERVE_SLOW_BACK;
    cli_say(w->cli, "slow: device '%s' takes %.2f times as long as expected, for %.0f s: a plan around it is made\n",
            w->first->run.name[who], slowness[who], w->for_s);
    begin(w, slowness);
    return SERVE_SLOW_STAY;
}

void serve_slow_close(serve_slow *w)
{
    if (!w->cli) /* never opened */
        return;
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    for (int i = 0; i < 2; i++)
        serve_group_free(&w->group[i]);
}
