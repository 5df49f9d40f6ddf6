/* The text of a cut: which strips, into what sizes.
 *
 *     layer0/mlp: 2:3:5; *attention: 2,4,6; head/linear: 4; layer7/mlp: whole
 *
 * Items are separated by ';' or new lines, '#' begins a comment. A pattern is a strip's name, with * and ? as in a shell.
 * Numbers with commas are units and must add up; with colons they are shares, rounded to tiles where units are many; a
 * single number is that many pieces of about the same size; "whole" takes a cut back. A word behind them says how partial
 * results of this strip are added up: chain, star or tree. The last item that matches counts. */
#include <fnmatch.h>

#include "shard/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_message.h"

#define MAX_PIECES 64
#define MOST_CHOSEN 8 /* pieces of a strip that are chosen, not given */
#define MAX_TEXT (1 << 20)

typedef struct sizes {
    int64_t number[MAX_PIECES];
    int n;
    char separator; /* ',' units, ':' shares, 0: one number, how many pieces */
    bool whole;
    int sum; /* or -1 */
} sizes;

static char *trim(char *text)
{
    while (*text == ' ' || *text == '\t' || *text == '\r')
        text++;
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]))
        text[--n] = 0;
    return text;
}

/* Takes "chain", "star" or "tree" off the end. */
static int take_sum(char *text)
{
    static const char *const word[] = {"chain", "star", "tree"}; /* as moirai_shard_sum has them */
    char *space = strrchr(text, ' ');
    for (int i = 0; space && i < 3; i++)
        if (!strcmp(space + 1, word[i])) {
            *space = 0;
            trim(text);
            return i;
        }
    return -1;
}

/* `strip` is what the sizes are of, for messages. */
static int read_sizes(sizes *out, const char *strip, char *text)
{
    *out = (sizes){.sum = take_sum(text)};
    if (!strcmp(text, "whole")) {
        out->whole = true;
        return 0;
    }
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        while (*at == ' ')
            at++;
        long long value = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;
        if (value < 1 || errno || value > (1ll << 40))
            return moirai_error(MOIRAI_EUSAGE, "cut \"%.80s: %.80s\": \"%.20s\" is not a size of at least 1", strip,
                                text, at);
        if (out->n == MAX_PIECES)
            return moirai_error(MOIRAI_EUSAGE, "cut \"%.80s: %.80s\": more than %d pieces", strip, text, MAX_PIECES);
        out->number[out->n++] = value;
        while (*end == ' ')
            end++;
        if (!*end)
            break;
        if ((*end != ',' && *end != ':') || (out->separator && *end != out->separator))
            return moirai_error(MOIRAI_EUSAGE,
                                "cut \"%.80s: %.80s\": '%.20s': sizes are 2,4,6 (units) or 2:3:5 (shares)", strip, text,
                                end);
        out->separator = *end;
        at = end;
    }
    return 0;
}

/* Small products waste a device: pieces are multiples of a tile where that leaves a choice. */
static int64_t tile_of(int64_t units, int pieces)
{
    int64_t tile = 64;
    while (tile > 1 && (units % tile || units / tile < 4 * (int64_t)pieces))
        tile /= 2;
    return tile;
}

int64_t shard_tile(int64_t units)
{
    return tile_of(units, MOST_CHOSEN);
}

/* Shares become whole tiles, at least one each: the largest remainders get what rounding leaves. */
static void round_shares(int64_t *size, const int64_t *share, int n, int64_t units, int64_t tile)
{
    int64_t tiles = units / tile, left = tiles;
    double total = 0, rest[MAX_PIECES];
    for (int i = 0; i < n; i++)
        total += (double)share[i];
    for (int i = 0; i < n; i++) {
        double exact = (double)share[i] / total * (double)tiles;
        size[i] = UTIL_MAX((int64_t)exact, 1);
        rest[i] = exact - (double)size[i];
        left -= size[i];
    }
    while (left != 0) {
        int best = -1, step = left > 0 ? 1 : -1;
        for (int i = 0; i < n; i++)
            if ((step > 0 || size[i] > 1) && (best < 0 || step * rest[i] > step * rest[best]))
                best = i;
        size[best] += step;
        rest[best] -= step;
        left -= step;
    }
    for (int i = 0; i < n; i++)
        size[i] *= tile;
}

static int settle(shard_cut *cut, const shard_strip *x, const sizes *z, onnx_arena *arena)
{
    int64_t asked = z->separator || z->n > 1 ? z->n : z->number[0], sum = 0, share[MAX_PIECES];
    if (asked > x->units)
        return moirai_error(MOIRAI_EUSAGE, "strip '%.200s': %lld pieces, it has %lld %s", x->name, (long long)asked,
                            (long long)x->units, x->unit);
    if (asked > MAX_PIECES)
        return moirai_error(MOIRAI_EUSAGE, "strip '%.200s': %lld pieces, %d at most", x->name, (long long)asked,
                            MAX_PIECES);
    int n = (int)asked;
    cut->n_pieces = n;
    cut->sum = z->sum;
    cut->size = onnx_take(arena, (size_t)n, sizeof *cut->size);
    cut->first = onnx_take(arena, (size_t)n, sizeof *cut->first);
    if (!cut->size || !cut->first)
        return MOIRAI_EFAIL;
    for (int i = 0; i < n; i++)
        share[i] = z->separator ? z->number[i] : 1;
    if (z->separator == ',')
        memcpy(cut->size, z->number, (size_t)n * sizeof *cut->size);
    else
        round_shares(cut->size, share, n, x->units, x->map ? 1 : tile_of(x->units, n)); /* a row is wide enough */
    for (int i = 0; i < n; i++) {
        cut->first[i] = sum;
        sum += cut->size[i];
    }
    if (sum != x->units)
        return moirai_error(MOIRAI_EUSAGE, "strip '%.200s': the sizes add up to %lld %s, it has %lld", x->name,
                            (long long)sum, x->unit, (long long)x->units);
    return 0;
}

/* A pattern for all means those that go together; one that ends in "rows" means rows, also the second of a name. */
static bool matches(const char *pattern, const shard_strip *x)
{
    size_t length = strlen(pattern), word = strlen("rows");
    char name[512];
    if (!x->map)
        return !x->alternative && !fnmatch(pattern, x->name, 0);
    if (length < word || strcmp(pattern + length - word, "rows") || !strpbrk(pattern, "*?["))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)UTIL_MIN(strcspn(x->name, "~"), sizeof name - 1), x->name);
    return !fnmatch(pattern, name, 0);
}

static int apply(const moirai_shards *s, char *item, sizes *of, onnx_arena *arena)
{
    char *colon = strchr(item, ':'), *pattern;
    sizes z;
    int n_matches = 0;
    if (!colon)
        return moirai_error(MOIRAI_EUSAGE, "cut \"%.80s\": a strip, a colon and sizes are needed: 'layer0/mlp: 2:3:5'",
                            item);
    *colon = 0;
    pattern = trim(item);
    int rc = read_sizes(&z, pattern, trim(colon + 1));
    for (size_t i = 0; i < s->n_strips && !rc; i++) {
        if (strcmp(pattern, s->strip[i].name) && !matches(pattern, &s->strip[i]))
            continue;
        of[i] = z;
        n_matches++;
        shard_cut try = {0};
        rc = z.whole ? 0 : settle(&try, &s->strip[i], &z, arena);
    }
    if (!rc && !n_matches)
        rc = moirai_error(MOIRAI_EUSAGE, "cut \"%.80s\": no strip of that name: --list shows those that there are",
                          pattern);
    return rc;
}

static int read_items(const moirai_shards *s, char *text, sizes *of, onnx_arena *arena)
{
    int rc = 0, n = 0;
    for (char *item = text; item && !rc;) {
        char *end = item + strcspn(item, ";\n#"), *next = *end ? end + 1 : NULL;
        if (*end == '#') {
            next = strchr(end, '\n');
            next = next ? next + 1 : NULL;
        }
        *end = 0;
        item = trim(item);
        n += *item != 0;
        rc = *item ? apply(s, item, of, arena) : 0;
        item = next;
    }
    return rc ? rc : n ? 0 : moirai_error(MOIRAI_EUSAGE, "the cut is empty");
}

/* Two strips that share an operator can't both be cut. */
static int claim(shard_cuts *c, const moirai_shards *s, int32_t number)
{
    const shard_strip *x = &s->strip[c->cut[number].strip];
    for (int32_t i = 0; i < x->n_members; i++) {
        int32_t node = x->member[i].node;
        if (s->net->im.root->node[node].folded)
            continue;
        if (c->of_node[node])
            return moirai_error(MOIRAI_EUSAGE, "strips '%.200s' and '%.200s' share operator '%.200s': cut one of them",
                                s->strip[c->cut[c->of_node[node] - 1].strip].name, x->name,
                                s->op_name[node] ? s->op_name[node] : "");
        c->of_node[node] = number + 1;
    }
    return 0;
}

int shard_cuts_read(shard_cuts *out, const moirai_shards *s, const char *text, onnx_arena *arena)
{
    *out = (shard_cuts){0};
    if (strlen(text) > MAX_TEXT)
        return moirai_error(MOIRAI_EUSAGE, "the cut is longer than %d characters", MAX_TEXT);
    char *copy = onnx_text(arena, "%s", text);
    sizes *of = onnx_take(arena, s->n_strips, sizeof *of);
    out->cut = onnx_take(arena, s->n_strips, sizeof *out->cut);
    out->of_node = onnx_take(arena, (size_t)s->n_nodes, sizeof *out->of_node);
    if (!copy || !of || !out->cut || !out->of_node)
        return MOIRAI_EFAIL;
    int rc = read_items(s, copy, of, arena);
    for (size_t i = 0; i < s->n_strips && !rc; i++) {
        if (!of[i].n)
            continue;
        out->cut[out->n].strip = (int32_t)i;
        rc = settle(&out->cut[out->n], &s->strip[i], &of[i], arena);
        if (rc || out->cut[out->n].n_pieces < 2)
            continue;
        rc = s->strip[i].map ? shard_rows_take(s, &s->strip[i], &out->cut[out->n], arena) : 0;
        rc = rc ? rc : claim(out, s, out->n++);
    }
    return rc;
}
