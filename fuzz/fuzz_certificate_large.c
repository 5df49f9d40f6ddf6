/* Any bytes as a certificate of a problem of 64 devices and times of 2^58 ns: no sum overflows (UBSan), and nothing above the optimum is
 * proven. Slow, since the problem is large: fuzz_certificate_loads has a small one. */
#include <moirai/prove.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Five operators of 2^58 ns on 64 devices, the last reads the others. */
static char *enormous(void)
{
    size_t size = 1 << 20, n = 0;
    char *text = malloc(size);
    if (!text)
        abort();
#define ADD(...) n += (size_t)snprintf(text + n, size - n, __VA_ARGS__)
    ADD("{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"join\",\"flow\":\"tensor\",\"congestion\":\"port\","
        "\"memory\":"
        "\"static\",\"devices\":[");
    for (int k = 0; k < 64; k++)
        ADD("%s{\"name\":\"d%d\",\"memory_bytes\":%lld}", k ? "," : "", k, 1ll << 62);
    ADD("],\"channels\":[");
    for (int k = 0; k < 64 * 64; k++)
        if (k / 64 != k % 64)
            ADD("%s{\"from\":\"d%d\",\"to\":\"d%d\",\"bytes_per_second\":1000000000,\"latency_ns\":1000000}",
                k > 1 ? "," : "", k / 64, k % 64);
    ADD("],\"ops\":[");
    for (int i = 0; i < 5; i++) {
        ADD("%s{\"name\":\"o%d\",\"type\":\"T\",\"memory_bytes\":%lld,\"time_ns\":[", i ? "," : "", i, 1ll << 58);
        for (int k = 0; k < 64; k++)
            ADD("%s%lld", k ? "," : "", 1ll << 58);
        ADD("],\"inputs\":[%s],\"outputs\":[{\"name\":\"t%d\",\"bytes\":1000}]}",
            i == 4 ? "\"t0\",\"t1\",\"t2\",\"t3\"" : "", i);
    }
    ADD("]}");
#undef ADD
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *large;
    moirai_proof proof;
    large = large ? large : enormous();
    moirai_prove_file problem = {large, strlen(large), "problem"}, file = {(const char *)data, size, "fuzz"};
    if (moirai_prove_text(&proof, &problem, &file, NULL) == MOIRAI_OK && proof.proven_ns > (1ll << 59) + 1001000)
        abort(); /* two operators one after the other, and a transfer */
    return 0;
}
