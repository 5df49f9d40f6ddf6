/* A request of the Open Inference Protocol, version 2, with its extension for binary tensors: read and checked, and its
 * answer written. */
#ifndef MOIRAI_SERVE_SERVE_REQUEST_H
#define MOIRAI_SERVE_SERVE_REQUEST_H

#include <stdbool.h>

#include "serve/serve_model.h"

enum { SERVE_MOST_ID = 256 };

typedef struct serve_request {
    char id[SERVE_MOST_ID]; /* "": none was given */
    char *input; /* all inputs, one after the other, serve_model.in_bytes long; freed by serve_request_free */
    int n_outputs;
    int *output;      /* which outputs are wanted, in this order */
    bool *binary;     /* of each: as bytes behind the JSON */
    double timeout_s; /* asked for in "parameters"; 0: not */
} serve_request;

/* A body; `json_bytes` of it are JSON and the rest tensors (-1: all is JSON). MOIRAI_EINPUT with one line that says what is
 * wrong. Free with serve_request_free, also after a failure. */
int serve_request_read(serve_request *r, const serve_model *m, const char *body, size_t length, int64_t json_bytes);
/* The same where there are plans for n shapes of a model: *which is the one whose shapes the request has. */
int serve_request_read_any(serve_request *r, int *which, const serve_model *const *models, int n, const char *body,
                           size_t length, int64_t json_bytes);
void serve_request_free(serve_request *r);

/* The answer: `*json_bytes` of the body are JSON; all of it where no output is binary. The caller frees *body. */
int serve_answer_write(char **body, size_t *length, size_t *json_bytes, const serve_model *m, const serve_request *r,
                       const char *output);
/* {"error": "..."} */
int serve_error_write(char **body, size_t *length, const char *text);
/* What /v2 and /v2/models/NAME say. */
int serve_about_server(char **body, size_t *length);
/* Of several shapes: what they have in common, -1 where they differ, and "buckets", each for itself. */
int serve_about_model(char **body, size_t *length, const serve_model *const *models, int n);

#endif
