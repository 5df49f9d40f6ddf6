/* Any bytes as a request to a served model: the first two say how long its JSON is (65535: all of it). What is accepted has
 * all inputs and can be answered. */
#include "serve/serve_request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static serve_model *model(void)
{
    static const struct {
        const char *name;
        int64_t type, rank, dim[2];
    } tensor[] = {{"x", 1, 1, {4, 0}}, {"i", 7, 2, {1, 2}},  {"b", 9, 0, {0, 0}}, {"h", 10, 1, {2, 0}},
                  {"u", 2, 1, {3, 0}}, {"d", 11, 1, {1, 0}}, {"n", 5, 1, {0, 0}}, {"w", 13, 1, {1, 0}}};
    enum { N = sizeof tensor / sizeof *tensor };
    serve_model *m;
    if (serve_model_new(&m, "m", N, N))
        abort();
    for (int i = 0; i < N; i++)
        if (serve_tensor_set(&m->input[i], tensor[i].name, serve_type_of_onnx(tensor[i].type), tensor[i].rank,
                             tensor[i].dim) ||
            serve_tensor_set(&m->output[i], tensor[i].name, serve_type_of_onnx(tensor[i].type), tensor[i].rank,
                             tensor[i].dim))
            abort();
    serve_model_sum(m);
    return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static serve_model *m;
    serve_request r;
    m = m ? m : model();
    if (size < 2)
        return 0;
    int64_t json_bytes = data[0] | data[1] << 8;
    size_t length = size - 2;
    char *body = malloc(length ? length : 1); /* to the byte, so that one beyond it is seen */
    if (!body)
        return 0;
    memcpy(body, data + 2, length);
    if (!serve_request_read(&r, m, body, length, json_bytes == 65535 ? -1 : json_bytes)) {
        char *answer;
        size_t n, head;
        if (serve_answer_write(&answer, &n, &head, m, &r, r.input) || head > n) /* inputs and outputs have one shape */
            abort();
        free(answer);
    }
    serve_request_free(&r);
    free(body);
    return 0;
}
