/* Any bytes as a moirai-policy file of a small policy; what reads must have finite values and be written again. */
#include "place/learn/policy_file.h"

#include <math.h>
#include <stdlib.h>

#include <moirai/error.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static learn_params q;
    static const learn_policy_head head = {.placer = "placeto", .n_devices = 2};
    int64_t episodes;
    if (q.n == 0) {
        learn_params_add(&q, "w", 2, 2);
        learn_params_add(&q, "b", 1, 2);
        if (learn_params_make(&q))
            abort(); /* the target itself is broken */
    }
    if (learn_policy_parse(&q, &head, &episodes, (const char *)data, size, "fuzz") == MOIRAI_OK) {
        for (size_t i = 0; i < q.n; i++)
            if (!isfinite((double)q.value[i]))
                abort();
        if (episodes < 0)
            abort();
        learn_policy_write(&q, &head, "/dev/null");
    }
    return 0;
}
