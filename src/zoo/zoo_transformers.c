/* GPT-3, Swin and AlphaFold2 of the paper's Table III, and an encoder-decoder network for hard tests.
 *
 * What the table leaves open, and how it is closed (docs/zoo.md gives the reasons and the figures):
 *  - GPT-3: 2,048 tokens, one sequence, a feed-forward width of 4 hidden; the input is the embedded tokens.
 *  - Swin: a 1100x1100 image in patches of 4: 275x275 tokens. Four stages of hidden, 2, 4, 8 hidden channels, every one
 *    with the table's number of heads; windows of 7x7, the map padded up to whole windows. Every second layer of a
 *    stage has shifted windows and adds their mask to the learnt position bias.
 *  - AlphaFold2: 128 sequences of 256 residues, attention along each sequence with a pair bias (the Evoformer's row
 *    attention); the feed-forward width makes up the table's parameters for the parts of an Evoformer block that a
 *    layer here does not have. */
#include "util/util.h"
#include "zoo/zoo_net.h"

enum { IMAGE = 1100, PATCH = 4, WINDOW = 7, SEQUENCES = 128, RESIDUES = 256 };

/* Attention, then feed-forward, both with residual adds: the layer of 11 + 12 * heads operators. */
static void layer_add(zoo_net *z, const zoo_layer *l, char *x)
{
    zoo_attention a = {.norm = "ln1", .residual = "res1"};
    char input[ZOO_NAME];

    zoo_name_format(input, sizeof input, "%s", x);
    zoo_name_format(a.block, sizeof a.block, "%s/", l->prefix);
    a.input = input;
    zoo_attention_add(z, l, &a, x);
    zoo_ffn_add(z, l, "ln2", "res2", x);
}

/* The tensors that the first layer reads: [windows x window x channels], and what is added to the scores. */
static void inputs_add(zoo_net *z, const zoo_layer *l, const char *x)
{
    zoo_net_input(z, x, 3, (const int64_t[3]){l->windows, l->window, l->channels});
    if (l->mask)
        zoo_net_input(z, l->mask, 2, (const int64_t[2]){l->window, l->key_window});
}

int zoo_gpt3(zoo_net *z, int layers, int hidden, int heads, int tokens)
{
    char x[ZOO_NAME] = "input";
    zoo_layer l = {.rows = z->batch * tokens,
                   .windows = z->batch,
                   .window = tokens,
                   .key_window = tokens,
                   .channels = hidden,
                   .heads = heads,
                   .head_width = hidden / heads,
                   .ffn = 4 * (int64_t)hidden,
                   .mask = "mask",
                   .mask_elements = (int64_t)tokens * tokens,
                   .activation = "Gelu",
                   .bias = true,
                   .scale = true};

    inputs_add(z, &l, x);
    for (int i = 0; i < layers; i++) {
        zoo_name_format(l.prefix, sizeof l.prefix, "L%d", i);
        layer_add(z, &l, x);
    }
    return z->result;
}

int zoo_alphafold2(zoo_net *z, int layers, int hidden, int heads, int ffn_factor)
{
    char x[ZOO_NAME] = "input";
    zoo_layer l = {.rows = z->batch * SEQUENCES * RESIDUES,
                   .windows = z->batch * SEQUENCES,
                   .window = RESIDUES,
                   .key_window = RESIDUES,
                   .channels = hidden,
                   .heads = heads,
                   .head_width = hidden / heads,
                   .ffn = (int64_t)ffn_factor * hidden,
                   .mask = "pair_bias",
                   .mask_elements = RESIDUES * RESIDUES,
                   .activation = "Relu",
                   .bias = true,
                   .scale = true};

    inputs_add(z, &l, x);
    for (int i = 0; i < layers; i++) {
        zoo_name_format(l.prefix, sizeof l.prefix, "L%d", i);
        layer_add(z, &l, x);
    }
    return z->result;
}

int zoo_swin(zoo_net *z, const int depth[4], int hidden, int heads)
{
    char x[ZOO_NAME] = "input", mask[ZOO_NAME];
    int64_t side = IMAGE / PATCH, window = WINDOW * WINDOW;
    zoo_layer l = {.window = window,
                   .key_window = window,
                   .channels = hidden,
                   .heads = heads,
                   .mask_weight = window * window,
                   .activation = "Gelu",
                   .bias = true,
                   .scale = true};

    for (int stage = 0, n = 0; stage < 4; stage++) {
        int64_t across = (side + WINDOW - 1) / WINDOW;

        l.rows = z->batch * side * side;
        l.windows = z->batch * across * across;
        l.head_width = l.channels / heads;
        l.ffn = 4 * l.channels;
        zoo_name_format(mask, sizeof mask, "shift_mask%d", stage);
        for (int i = 0; i < depth[stage]; i++, n++) {
            bool shifted = i % 2 == 1;

            zoo_name_format(l.prefix, sizeof l.prefix, "L%d", n);
            l.mask = shifted ? mask : NULL;
            l.mask_elements = shifted ? across * across * window * window : 0; /* one mask for the batch */
            layer_add(z, &l, x);
            l.merge_channels = 0;
        }
        l.merge_channels = l.channels;
        l.merge_rows = l.rows;
        l.channels *= 2;
        side = (side + 1) / 2; /* an odd side is padded by one row and column */
    }
    return z->result;
}

/* A decoder layer: attention to itself, attention to the encoder's output, feed-forward. */
static void decoder_layer_add(zoo_net *z, zoo_layer *l, const char *encoded, int64_t encoded_rows, char *x)
{
    zoo_attention a = {.norm = "ln1", .residual = "res1"};
    char input[ZOO_NAME];

    zoo_name_format(input, sizeof input, "%s", x);
    a.input = input;
    zoo_name_format(a.block, sizeof a.block, "%s/", l->prefix);
    l->mask = "decoder_mask";
    l->key_window = l->window;
    l->mask_elements = l->window * l->key_window;
    zoo_attention_add(z, l, &a, x);

    zoo_name_format(input, sizeof input, "%s", x);
    zoo_name_format(a.block, sizeof a.block, "%s/cross/", l->prefix);
    a.memory = encoded;
    a.norm = "ln2";
    a.residual = "res2";
    l->mask = NULL;
    l->mask_elements = 0;
    l->key_window = encoded_rows;
    zoo_attention_add(z, l, &a, x);
    zoo_ffn_add(z, l, "ln3", "res3", x);
}

int zoo_t5(zoo_net *z, int layers, int hidden, int heads, const int tokens[2])
{
    char encoded[ZOO_NAME] = "input", x[ZOO_NAME] = "decoder_input";
    zoo_layer l = {.rows = tokens[0],
                   .windows = 1,
                   .window = tokens[0],
                   .key_window = tokens[0],
                   .channels = hidden,
                   .heads = heads,
                   .head_width = hidden / heads,
                   .ffn = 4 * (int64_t)hidden,
                   .mask = "mask",
                   .mask_elements = (int64_t)tokens[0] * tokens[0],
                   .activation = "Relu"};

    inputs_add(z, &l, encoded);
    for (int i = 0; i < layers; i++) {
        zoo_name_format(l.prefix, sizeof l.prefix, "enc%d", i);
        layer_add(z, &l, encoded);
    }
    l.rows = l.window = l.key_window = tokens[1];
    l.mask = "decoder_mask";
    inputs_add(z, &l, x);
    for (int i = 0; i < layers; i++) {
        zoo_name_format(l.prefix, sizeof l.prefix, "dec%d", i);
        decoder_layer_add(z, &l, encoded, tokens[0], x);
    }
    return z->result;
}
