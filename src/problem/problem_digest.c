/* A problem's content as one number. A plan carries it, so that a bound proven of one problem is never shown for
 * another that happens to have the same name. Not meant against forgers: a plan's file is believed no more than its
 * words. */
#include "problem/problem_build.h"

#include <string.h>

static void mix(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    *digest ^= *digest >> 29;
}

static void mix_text(uint64_t *digest, const char *text)
{
    for (; *text; text++)
        mix(digest, (unsigned char)*text);
    mix(digest, 256);
}

static void mix_op(uint64_t *digest, const moirai_problem *p, int32_t i)
{
    mix_text(digest, p->op_name[i]);
    mix(digest, (uint64_t)p->op_memory_bytes[i]);
    mix(digest, (uint64_t)p->op_group[i]);
    for (int32_t k = 0; k < p->n_devices; k++)
        mix(digest, (uint64_t)moirai_op_ns(p, i, k));
    for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++)
        mix(digest, (uint64_t)p->op_in[j]);
    mix(digest, UINT64_MAX);
    for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++) {
        int32_t t = p->op_out[j];
        mix_text(digest, p->tensor_name[t]);
        mix(digest, (uint64_t)p->tensor_bytes[t]);
        mix(digest, (uint64_t)p->tensor_class[t]);
    }
}

uint64_t moirai_problem_digest(const moirai_problem *p)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    mix(&digest, (uint64_t)p->flow);
    mix(&digest, (uint64_t)p->congestion);
    mix(&digest, (uint64_t)p->memory);
    mix(&digest, (uint64_t)p->n_ops);
    for (int32_t k = 0; k < p->n_devices; k++) {
        mix_text(&digest, p->device_name[k]);
        mix(&digest, (uint64_t)p->device_memory_bytes[k]);
    }
    size_t cells = (size_t)p->n_classes * (size_t)p->n_devices * (size_t)p->n_devices;
    for (size_t i = 0; i < cells; i++)
        mix(&digest, (uint64_t)p->class_transfer_ns[i]);
    for (int32_t i = 0; i < p->n_ops; i++)
        mix_op(&digest, p, i);
    for (int32_t w = 0; w < p->n_weights; w++) {
        mix(&digest, (uint64_t)p->weight_bytes[w]);
        for (int32_t e = p->weight_reader_off[w]; e < p->weight_reader_off[w + 1]; e++)
            mix(&digest, (uint64_t)p->weight_reader[e]);
    }
    return digest ? digest : 1; /* 0 says: not known */
}
