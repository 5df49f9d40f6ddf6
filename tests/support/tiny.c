#include "support/tiny.h"

#include <moirai/placer.h>

#include "support/check.h"
#include "util/json.h"

enum { MAX_WORDS = 64, MAX_DEVICES = 16 };

typedef struct tiny {
    util_writer w;
    char device[MAX_DEVICES][32];
    int n_devices;
    int64_t rate, latency_ns;
    char mode[3][16]; /* flow, congestion, memory */
} tiny;

static int split(char *line, const char *at, char **word)
{
    int n = 0;
    for (char *part = strtok(line, at); part && n < MAX_WORDS; part = strtok(NULL, at))
        word[n++] = part;
    return n;
}

static void write_times(util_writer *w, char *times)
{
    char *word[MAX_WORDS];
    util_writer_pair_open(w, "time_ns", '[');
    int n = split(times, ",", word);
    for (int i = 0; i < n; i++)
        if (strcmp(word[i], "-") == 0)
            util_writer_null(w);
        else
            util_writer_int(w, strtoll(word[i], NULL, 10));
    util_writer_close(w, ']');
}

static void write_output(util_writer *w, char *word)
{
    char *colon = strrchr(word, ':');
    assert_non_null(colon);
    *colon = '\0';
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", word);
    util_writer_pair_int(w, "bytes", strtoll(colon + 1, NULL, 10));
    util_writer_close(w, '}');
}

/* word: "op", name, times, then inputs, ">" and outputs, options anywhere. */
static void write_op(util_writer *w, char **word, int n)
{
    int arrow = n;
    int64_t bytes = 0;
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", word[1]);
    for (int i = 3; i < n; i++)
        if (strcmp(word[i], ">") == 0)
            arrow = i;
        else if (strncmp(word[i], "mem=", 4) == 0)
            bytes = strtoll(word[i] + 4, NULL, 10);
        else if (strncmp(word[i], "group=", 6) == 0)
            util_writer_pair_string(w, "group", word[i] + 6);
    util_writer_pair_int(w, "memory_bytes", bytes);
    util_writer_pair_open(w, "inputs", '[');
    for (int i = 3; i < arrow; i++)
        if (!strchr(word[i], '='))
            util_writer_string(w, word[i]);
    util_writer_close(w, ']');
    util_writer_pair_open(w, "outputs", '[');
    for (int i = arrow + 1; i < n; i++)
        if (!strchr(word[i], '='))
            write_output(w, word[i]);
    util_writer_close(w, ']');
    write_times(w, word[2]);
    util_writer_close(w, '}');
}

static void write_devices(tiny *x, const int64_t *bytes)
{
    util_writer *w = &x->w;
    util_writer_pair_open(w, "devices", '[');
    for (int i = 0; i < x->n_devices; i++) {
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", x->device[i]);
        util_writer_pair_int(w, "memory_bytes", bytes[i]);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_pair_open(w, "channels", '[');
    for (int i = 0; i < x->n_devices * x->n_devices; i++) {
        if (i / x->n_devices == i % x->n_devices)
            continue;
        util_writer_open(w, '{');
        util_writer_pair_string(w, "from", x->device[i / x->n_devices]);
        util_writer_pair_string(w, "to", x->device[i % x->n_devices]);
        util_writer_pair_int(w, "bytes_per_second", x->rate);
        util_writer_pair_int(w, "latency_ns", x->latency_ns);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

/* Everything but the operators, which come after all devices are known. */
static void write_head(tiny *x, char **line, int n_lines)
{
    int64_t bytes[MAX_DEVICES];
    for (int i = 0; i < n_lines; i++) {
        char copy[1024], *word[MAX_WORDS];
        snprintf(copy, sizeof copy, "%s", line[i]);
        int n = split(copy, " ", word);
        if (n == 3 && strcmp(word[0], "device") == 0) {
            assert_true(x->n_devices < MAX_DEVICES);
            bytes[x->n_devices] = strtoll(word[2], NULL, 10);
            snprintf(x->device[x->n_devices++], sizeof x->device[0], "%s", word[1]);
        } else if (n == 3 && strcmp(word[0], "link") == 0) {
            x->rate = strtoll(word[1], NULL, 10);
            x->latency_ns = strtoll(word[2], NULL, 10);
        } else if (n == 2) {
            int which = strcmp(word[0], "flow") == 0 ? 0 : strcmp(word[0], "congestion") == 0 ? 1 : 2;
            snprintf(x->mode[which], sizeof x->mode[which], "%s", word[1]);
        } else {
            assert_string_equal(n > 0 ? word[0] : "op", "op");
        }
    }
    util_writer_pair_string(&x->w, "flow", x->mode[0]);
    util_writer_pair_string(&x->w, "congestion", x->mode[1]);
    util_writer_pair_string(&x->w, "memory", x->mode[2]);
    write_devices(x, bytes);
}

char *tiny_json(const char *text)
{
    char *copy = strdup(text), *line[256], *word[MAX_WORDS];
    int n_lines = 0;
    tiny x = {.rate = 1000000000, .mode = {"tensor", "port", "static"}};
    assert_non_null(copy);
    for (char *part = strtok(copy, "\n"); part && n_lines < 256; part = strtok(NULL, "\n"))
        line[n_lines++] = part;
    util_writer_begin(&x.w, "moirai-problem");
    util_writer_pair_string(&x.w, "name", "tiny");
    write_head(&x, line, n_lines);
    util_writer_pair_open(&x.w, "ops", '[');
    for (int i = 0; i < n_lines; i++) {
        int n = split(line[i], " ", word);
        if (n >= 3 && strcmp(word[0], "op") == 0)
            write_op(&x.w, word, n);
    }
    util_writer_close(&x.w, ']');
    util_writer_close(&x.w, '}');
    free(copy);
    return util_writer_take(&x.w, NULL);
}

moirai_problem *tiny_problem(const char *text)
{
    moirai_problem *p = NULL;
    char *json = tiny_json(text);
    assert_non_null(json);
    assert_ok(moirai_problem_parse(&p, json, strlen(json), "tiny"));
    free(json);
    return p;
}

int32_t tiny_op(const moirai_problem *p, const char *name)
{
    int32_t op = moirai_problem_find_op(p, name);
    if (op < 0)
        fail_msg("no operator %s", name);
    return op;
}

int32_t tiny_tensor(const moirai_problem *p, const char *name)
{
    int32_t tensor = moirai_problem_find_tensor(p, name);
    if (tensor < 0)
        fail_msg("no tensor %s", name);
    return tensor;
}

const char *tiny_devices(const moirai_problem *p, const moirai_plan *plan)
{
    static char letters[256];
    assert_true(p->n_ops < (int32_t)sizeof letters);
    for (int32_t i = 0; i < p->n_ops; i++)
        letters[i] = (char)('A' + plan->op_device[i]);
    letters[p->n_ops] = '\0';
    return letters;
}

moirai_plan *tiny_place(const moirai_problem *p, const char *placer)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    moirai_place_options_init(&o);
    assert_ok(moirai_place(&plan, p, placer, &o));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    return plan;
}
