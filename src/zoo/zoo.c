/* The register of networks. Adding one is one line here, and a family in a file of its own if it is new. */
#include <string.h>
#include <strings.h>

#include "util/util.h"
#include "zoo/zoo_net.h"
#include <moirai/zoo.h>

typedef enum family { GPT3, SWIN, ALPHAFOLD2, T5, INCEPTION, GOOGLENET, RESNET18 } family;

typedef struct network {
    moirai_zoo_entry entry;
    family family;
    int shape[4]; /* gpt3, t5: tokens; swin: depth of each stage; alphafold2: feed-forward width / hidden */
} network;

#define ZOO_MOST_BATCH 1024 /* bytes and arithmetic stay far below 2^63 */
#define OPS(layers, heads) ((layers) * (11 + 12 * (heads)))
#define PAPER(name, summary, layers, hidden, heads, parameters) \
    { \
        name, summary, OPS(layers, heads), layers, hidden, heads, parameters \
    }

static const network networks[] = {
    {PAPER("swin-1.8B", "Swin Transformer, 1100x1100 image", 32, 512, 16, "1.8B"), SWIN, {2, 2, 26, 2}},
    {PAPER("swin-6.6B", "Swin Transformer, 1100x1100 image", 48, 768, 24, "6.6B"), SWIN, {2, 2, 40, 4}},
    {PAPER("swin-13B", "Swin Transformer, 1100x1100 image", 56, 1024, 32, "13B"), SWIN, {2, 2, 48, 4}},
    {PAPER("gpt3-330M", "GPT-3, 2048 tokens", 24, 1024, 16, "330M"), GPT3, {2048}},
    {PAPER("gpt3-1.3B", "GPT-3, 2048 tokens", 24, 2048, 32, "1.3B"), GPT3, {2048}},
    {PAPER("gpt3-2.7B", "GPT-3, 2048 tokens", 32, 2560, 32, "2.7B"), GPT3, {2048}},
    {PAPER("gpt3-13B", "GPT-3, 2048 tokens", 40, 5120, 40, "13B"), GPT3, {2048}},
    {PAPER("alphafold2-87M", "AlphaFold2, 128 sequences of 256 residues", 48, 256, 8, "87M"), ALPHAFOLD2, {12}},
    {PAPER("alphafold2-930M", "AlphaFold2, 128 sequences of 256 residues", 64, 512, 16, "930M"), ALPHAFOLD2, {26}},
    {PAPER("alphafold2-2.4B", "AlphaFold2, 128 sequences of 256 residues", 96, 1024, 32, "2.4B"), ALPHAFOLD2, {10}},
    {PAPER("alphafold2-3.2B", "AlphaFold2, 128 sequences of 256 residues", 128, 1024, 32, "3.2B"), ALPHAFOLD2, {10}},
    {PAPER("gpt3-tiny", "for tests: GPT-3's layers on 32 tokens", 2, 64, 4, NULL), GPT3, {32}},
    {PAPER("gpt3-mini", "for tests: GPT-3's layers on 128 tokens", 4, 256, 8, NULL), GPT3, {128}},
    {{"t5-tiny", "for tests: encoder and decoder, no single-operator cuts", 228, 4, 64, 4, NULL}, T5, {32, 16}},
    {{"t5-small", "encoder and decoder, 512 tokens in, 128 out", 1236, 12, 512, 8, NULL}, T5, {512, 128}},
    {{"inception-tiny", "for tests: a small convolutional network with branches", 63, 2, 16, 4, NULL}, INCEPTION, {2}},
    {{"googlenet", "GoogLeNet, 224x224 image: nine modules of four branches", 196, 9, 64, 4, NULL}, GOOGLENET, {0}},
    {{"resnet18", "ResNet-18, 224x224 image", 69, 8, 64, 1, NULL}, RESNET18, {0}},
};

int moirai_zoo_count(void)
{
    return (int)(sizeof networks / sizeof *networks);
}

const moirai_zoo_entry *moirai_zoo_at(int index)
{
    return index >= 0 && index < moirai_zoo_count() ? &networks[index].entry : NULL;
}

static const network *find(const char *name)
{
    for (int i = 0; name && i < moirai_zoo_count(); i++)
        if (!strcasecmp(networks[i].entry.name, name))
            return &networks[i];
    return NULL;
}

const moirai_zoo_entry *moirai_zoo_find(const char *name)
{
    const network *n = find(name);

    return n ? &n->entry : NULL;
}

static int build(zoo_net *z, const network *n)
{
    const moirai_zoo_entry *e = &n->entry;

    switch (n->family) {
    case GPT3: return zoo_gpt3(z, e->layers, e->hidden, e->heads, n->shape[0]);
    case SWIN: return zoo_swin(z, n->shape, e->hidden, e->heads);
    case ALPHAFOLD2: return zoo_alphafold2(z, e->layers, e->hidden, e->heads, n->shape[0]);
    case T5: return zoo_t5(z, e->layers / 2, e->hidden, e->heads, n->shape);
    case INCEPTION: return zoo_inception(z, n->shape[0], e->hidden);
    case GOOGLENET: return zoo_googlenet(z);
    case RESNET18: return zoo_resnet18(z);
    }
    return moirai_error(MOIRAI_EFAIL, "zoo: network '%s' has no builder", e->name);
}

int zoo_walk(const char *name, zoo_sink *sink)
{
    const network *n = find(name);
    zoo_net z = {.sink = sink, .batch = 1};

    if (!n)
        return moirai_error(MOIRAI_EUSAGE, "zoo: no network '%s': `moirai zoo list` has the names", name ? name : "");
    if (n->family == SWIN)
        return moirai_error(MOIRAI_EUSAGE,
                            "zoo: '%s' can't be written as a model that runs: its padding and merging of patches "
                            "have no operators of their own",
                            n->entry.name);
    return build(&z, n);
}

int moirai_zoo_graph(moirai_graph **out, const char *name, int element_bytes)
{
    return moirai_zoo_graph_batch(out, name, element_bytes, 1);
}

int moirai_zoo_graph_batch(moirai_graph **out, const char *name, int element_bytes, int batch)
{
    const network *n = find(name);
    zoo_net z;
    int rc;

    *out = NULL;
    if (!n)
        return moirai_error(MOIRAI_EUSAGE, "zoo: no network '%s': `moirai zoo list` has the names", name ? name : "");
    if (element_bytes != 4 && element_bytes != 2)
        return moirai_error(MOIRAI_EUSAGE, "zoo: elements of %d bytes: 4 (fp32) or 2 (fp16)", element_bytes);
    if (batch < 1 || batch > ZOO_MOST_BATCH || (batch > 1 && n->family >= T5))
        return moirai_error(MOIRAI_EUSAGE, "zoo: '%s' in batches of %d: 1, or up to %d for the paper's families",
                            n->entry.name, batch, ZOO_MOST_BATCH);
    rc = zoo_net_begin(&z, n->entry.name, element_bytes);
    if (rc)
        return rc;
    z.batch = batch;
    build(&z, n);
    return zoo_net_finish(out, &z);
}
