/* Any bytes as a certificate with a part about bytes, of a small problem in which memory binds: whatever is accepted
 * proves no more than the optimum. */
#include <moirai/placer.h>
#include <moirai/prove.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OP(n, in) \
    "{\"name\":\"o" n "\",\"type\":\"T\",\"memory_bytes\":10,\"time_ns\":[100,230],\"inputs\":[" in \
    "],\"outputs\":[{\"name\":\"t" n "\",\"bytes\":7}]}"

static const char problem_json[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"full\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\","
    "\"devices\":[{\"name\":\"A\",\"memory_bytes\":35},{\"name\":\"B\",\"memory_bytes\":40}],\"channels\":["
    "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":"
    "1000000000}],"
    "\"ops\":[" OP("0", "") "," OP("1", "\"t0\"") "," OP("2", "\"t0\"") "," OP("3", "\"t0\"") "," OP(
        "4", "\"t1\",\"t2\",\"t3\"") "," OP("5", "\"t4\"") "]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static moirai_problem *p;
    static int64_t optimum;
    moirai_proof proof;
    if (!p) {
        moirai_plan *plan;
        if (moirai_problem_parse(&p, problem_json, strlen(problem_json), "problem") ||
            moirai_place(&plan, p, "exact", NULL) || !moirai_plan_is_optimal(plan))
            abort(); /* the target itself is broken */
        optimum = plan->makespan_ns;
        moirai_plan_free(plan);
    }
    moirai_prove_file problem = {problem_json, strlen(problem_json), "problem"},
                      file = {(const char *)data, size, "fuzz"};
    if (moirai_prove_text(&proof, &problem, &file, NULL) == MOIRAI_OK && proof.proven_ns > optimum)
        abort(); /* a false bound */
    return 0;
}
