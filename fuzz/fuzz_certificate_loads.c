/* Any bytes as a certificate of a join in which loads and ports decide, of one request or of the time between many: whatever is accepted proves no
 * more than the optimum, 31 ns (two branches sent from the other device one after the other), or than the period of the best mixture of plans,
 * 20.5 ns. */
#include <moirai/prove.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BRANCH(n) \
    "{\"name\":\"b" n \
    "\",\"type\":\"T\",\"memory_bytes\":1,\"time_ns\":[10,10],\"inputs\":[],\"outputs\":[{\"name\":\"t" n \
    "\",\"bytes\":10}]},"

static const char join_json[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"join\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":9},{\"name\":\"B\",\"memory_bytes\":9}],"
    "\"channels\":["
    "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":"
    "1000000000}],\"ops\":[" BRANCH("0") BRANCH("1") BRANCH("2") BRANCH(
        "3") "{\"name\":\"sum\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[1,1],\"inputs\":[\"t0\",\"t1\",\"t2\","
             "\"t3\"],\"outputs\":[]}]}";

#define OPTIMUM 31
#define PERIOD 20 /* 41 ns of work on two devices, sharing the sum by turns */

static int64_t most_of(const moirai_proof *proof)
{
    return !proof->of_rate                                           ? OPTIMUM
           : proof->in_flight && OPTIMUM / proof->in_flight > PERIOD ? OPTIMUM / proof->in_flight
                                                                     : PERIOD;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    moirai_proof proof;
    moirai_prove_file join = {join_json, strlen(join_json), "problem"}, file = {(const char *)data, size, "fuzz"};
    if (moirai_prove_text(&proof, &join, &file, NULL) == MOIRAI_OK && proof.proven_ns > most_of(&proof))
        abort(); /* a false bound */
    return 0;
}
