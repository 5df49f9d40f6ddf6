#include "support/small_problem.h"

#include "support/check.h"

typedef struct text {
    char s[16384];
    size_t n;
} text;

static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    t->n += (size_t)vsnprintf(t->s + t->n, sizeof t->s - t->n, format, args);
    va_end(args);
    assert_true(t->n < sizeof t->s);
}

static void put_inputs(text *t, const char *names)
{
    for (int n = 0; *names; n++) {
        int length = (int)strcspn(names, ",");
        put(t, "%s\"%.*s\"", n ? "," : "", length, names);
        names += length + (names[length] == ',');
    }
}

/* "x:8,y:0[[0,5],[7,0]]" */
static void put_outputs(text *t, const char *at)
{
    for (int n = 0; *at; n++) {
        int length = (int)strcspn(at, ":");
        put(t, "%s{\"name\":\"%.*s\",", n ? "," : "", length, at);
        at += length + 1;
        length = (int)strcspn(at, ",[");
        put(t, "\"bytes\":%.*s", length, at);
        at += length;
        if (*at == '[') {
            const char *end = strstr(at, "]]");
            put(t, ",\"transfer_ns\":%.*s", (int)(end + 2 - at), at);
            at = end + 2;
        }
        put(t, "}");
        at += *at == ',';
    }
}

moirai_problem *small_problem(const small_spec *spec)
{
    static text t;
    moirai_problem *p;
    t.n = 0;
    put(&t,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"small\",\"flow\":\"%s\",\"congestion\":\"%s\","
        "\"memory\":\"%s\",\"devices\":[",
        spec->flow ? spec->flow : "tensor", spec->congestion ? spec->congestion : "none",
        spec->mode ? spec->mode : "static");
    for (int k = 0; k < spec->n_devices; k++)
        put(&t, "%s{\"name\":\"%c\",\"memory_bytes\":%d}", k ? "," : "", 'A' + k,
            spec->memory ? spec->memory : 1000000);
    put(&t, "],\"channels\":[");
    for (int a = 0, n = 0; a < spec->n_devices; a++)
        for (int b = 0; b < spec->n_devices; b++)
            if (a != b)
                put(&t, "%s{\"from\":\"%c\",\"to\":\"%c\",\"bytes_per_second\":1000000000,\"latency_ns\":0}",
                    n++ ? "," : "", 'A' + a, 'A' + b);
    put(&t, "],\"ops\":[");
    for (const small_op *op = spec->op; op->name; op++) {
        put(&t, "%s{\"name\":\"%s\",\"type\":\"T\",\"memory_bytes\":%d,\"time_ns\":[%s],\"inputs\":[",
            op == spec->op ? "" : ",", op->name, op->memory, op->times);
        put_inputs(&t, op->inputs);
        put(&t, "],\"outputs\":[");
        put_outputs(&t, op->outputs);
        put(&t, "]");
        if (op->group)
            put(&t, ",\"group\":\"%s\"", op->group);
        put(&t, "}");
    }
    put(&t, "]}");
    assert_ok(moirai_problem_parse(&p, t.s, t.n, "small"));
    return p;
}
