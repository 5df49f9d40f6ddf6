/* Any bytes as a certificate of a small problem: whatever is accepted proves no more than the optimum, 220 ns. */
#include <moirai/prove.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD(n) \
    "{\"name\":\"h" n \
    "\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{\"name\":\"u" n \
    "\",\"bytes\":5}]},"

static const char problem_json[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"pair\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\","
    "\"devices\":[{\"name\":\"A\",\"memory_bytes\":100},{\"name\":\"B\",\"memory_bytes\":100}],\"channels\":["
    "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":"
    "1000000000}],"
    "\"ops\":[{\"name\":\"in\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,null],\"inputs\":[],"
    "\"outputs\":[{\"name\":\"t\",\"bytes\":20}]}," HEAD("0") HEAD("1")
        HEAD("2") "{\"name\":\"out\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,null],\"inputs\":[\"u0\",\"u1\","
                  "\"u2\"],\"outputs\":[]}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    moirai_prove_file problem = {problem_json, strlen(problem_json), "problem"},
                      file = {(const char *)data, size, "fuzz"};
    moirai_proof proof;
    if (moirai_prove_text(&proof, &problem, &file, NULL) == MOIRAI_OK && proof.proven_ns > 220)
        abort(); /* a false bound */
    return 0;
}
