/* Any bytes as a moirai-plan file of a small problem; what reads must survive the checker and the writer. */
#include <moirai/plan.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char problem_json[] =
    "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"p\", \"flow\": \"edge\", \"congestion\": \"port\","
    " \"memory\": \"peak\", \"devices\": [{\"name\": \"A\", \"memory_bytes\": 9}, {\"name\": \"B\", \"memory_bytes\": "
    "9}],"
    " \"channels\": [{\"from\": \"A\", \"to\": \"B\", \"bytes_per_second\": 1000000000, \"latency_ns\": 1},"
    " {\"from\": \"B\", \"to\": \"A\", \"bytes_per_second\": 1000000000, \"latency_ns\": 1}],"
    " \"ops\": [{\"name\": \"a\", \"memory_bytes\": 1, \"time_ns\": [2, 3], \"inputs\": [],"
    " \"outputs\": [{\"name\": \"t\", \"bytes\": 4}]},"
    " {\"name\": \"b\", \"memory_bytes\": 1, \"time_ns\": [2, 3], \"inputs\": [\"t\"], \"outputs\": []}]}";

static void ignore(void *context, const char *line)
{
    (void)context;
    (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static moirai_problem *p;
    moirai_plan *plan;
    if (!p && moirai_problem_parse(&p, problem_json, strlen(problem_json), "problem"))
        abort(); /* the target itself is broken */
    if (moirai_plan_parse(&plan, p, (const char *)data, size, "fuzz") == MOIRAI_OK) {
        moirai_plan_check(p, plan, ignore, NULL);
        moirai_plan_write(plan, p, "/dev/null");
        moirai_plan_free(plan);
    }
    return 0;
}
