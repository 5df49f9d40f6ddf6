/* One piece of a network, ready to run. Inside `moirai-rank profile`. */
#ifndef MOIRAI_RANK_PROFILE_RANK_PROFILE_TRIAL_H
#define MOIRAI_RANK_PROFILE_RANK_PROFILE_TRIAL_H

#include "onnx/onnx_model.h"
#include "rank/ort_cuda.h"
#include "rank/profile/rank_profile.h"

enum { PROFILE_TYPES = 24 };

/* Made-up numbers for all pieces, by TensorProto type. */
typedef struct profile_weights {
    char *data[PROFILE_TYPES];
    size_t bytes[PROFILE_TYPES];
} profile_weights;

typedef struct profile_trial {
    const rank_ort *ort;
    profile_weights *weights; /* grows as pieces need it */
    Onnx__ModelProto *model;
    OrtSessionOptions *options;
    OrtSession *session;
    size_t n_in, n_out;
    const char **in_name, **out_name;
    OrtValue **in, **out;
    void **data; /* of the inputs */
    /* On a GPU: */
    rank_bound bound;
    void **memory; /* of the inputs, there */
    bool learned;  /* the outputs have their lasting places */
} profile_trial;

/* With `ort` and `weights` set. rank_profile_trial_free in any case. */
int rank_profile_trial_open(profile_trial *t, const uint8_t *piece, size_t length);
void rank_profile_trial_free(profile_trial *t);
/* One run, from its call to its end. */
int rank_profile_trial_run(profile_trial *t, int64_t *ns);

#endif
