/* Trained policies as files: format moirai-policy, version 1 (docs/formats.md). Private. */
#ifndef MOIRAI_PLACE_LEARN_POLICY_FILE_H
#define MOIRAI_PLACE_LEARN_POLICY_FILE_H

#include "place/learn/params.h"

typedef struct learn_policy_head {
    const char *placer;     /* whose policy it is */
    int32_t n_devices;      /* that it chooses from */
    const char *trained_on; /* name of the last problem, may be NULL */
    int64_t episodes;       /* in all */
} learn_policy_head;

int learn_policy_write(const learn_params *q, const learn_policy_head *head, const char *path);
/* Values into `q`, whose tensors are declared: a file of another placer, number of devices, set or shape of tensors is
 * MOIRAI_EINPUT, and `q` is as before. *episodes gets what the file says. */
int learn_policy_read(learn_params *q, const learn_policy_head *expected, int64_t *episodes, const char *path);
int learn_policy_parse(learn_params *q, const learn_policy_head *expected, int64_t *episodes, const char *json,
                       size_t length, const char *label);
/* Fails early where `path` could not be written in the end. */
int learn_policy_writable(const char *path);

#endif
