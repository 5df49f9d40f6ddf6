/* Rule files, and the trie that they become.
 *
 *     # a comment
 *     conv bn relu|clip
 *     matmul bias? gelu
 *
 * One rule per line: types separated by spaces, `|` between alternatives, `?` after an item that may be missing.
 * All that a line stands for is put into one trie, item by item: `frontier` holds the nodes that some
 * choice of the items so far leads to; an item adds the children of each by each alternative, and keeps the node
 * itself if the item is optional. No list of spelt-out rules is ever made, and a line that would unfold beyond
 * COARSEN_RULES_MOST_NODES is refused. Where two lines spell the same list, the first one owns it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "coarsen/rules.h"

typedef struct parser {
    moirai_rules *r;
    const char *label;
    int line, rule;
    int32_t walk; /* stamps the nodes of the frontier under construction */
    int32_t *frontier, *next;
    size_t n_frontier, n_next, frontier_capacity, next_capacity;
} parser;

static size_t slot_of(const moirai_rules *r, int32_t node, int32_t symbol)
{
    uint64_t h = ((uint64_t)(uint32_t)node << 32 | (uint32_t)symbol) * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(h >> 32) & (r->n_slots - 1);

    while (r->slot[i].child && (r->slot[i].node != node || r->slot[i].symbol != symbol))
        i = (i + 1) & (r->n_slots - 1);
    return i;
}

int32_t coarsen_rules_step(const moirai_rules *r, int32_t node, int32_t symbol)
{
    int32_t child = symbol == MOIRAI_NONE ? 0 : r->slot[slot_of(r, node, symbol)].child;

    return child ? child : MOIRAI_NONE;
}

static int slots_double(moirai_rules *r)
{
    coarsen_rule_edge *old = r->slot;
    size_t n_old = r->n_slots;
    coarsen_rule_edge *slot = util_alloc(2 * n_old, sizeof *slot);

    if (!slot)
        return MOIRAI_EFAIL;
    r->slot = slot;
    r->n_slots = 2 * n_old;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].child)
            slot[slot_of(r, old[i].node, old[i].symbol)] = old[i];
    free(old);
    return 0;
}

static int32_t node_add(moirai_rules *r, int32_t depth)
{
    if (util_grow(&r->node, &r->nodes_capacity, (size_t)r->n_nodes + 1, sizeof *r->node))
        return MOIRAI_EFAIL;
    r->node[r->n_nodes] = (coarsen_rule_node){.rule = MOIRAI_NONE, .depth = depth};
    return r->n_nodes++;
}

/* The child of `node` by `symbol`, made if it is not there; negative on failure. */
static int32_t child_add(parser *p, int32_t node, int32_t symbol)
{
    moirai_rules *r = p->r;
    int32_t child = coarsen_rules_step(r, node, symbol);

    if (child != MOIRAI_NONE)
        return child;
    if (r->n_nodes >= COARSEN_RULES_MOST_NODES)
        return moirai_error(MOIRAI_EINPUT, "%s:%d: the rules unfold to more than %d lists of types", p->label, p->line,
                            COARSEN_RULES_MOST_NODES);
    if (2 * ((size_t)r->n_edges + 1) > r->n_slots && slots_double(r))
        return MOIRAI_EFAIL;
    child = node_add(r, r->node[node].depth + 1);
    if (child < 0)
        return child;
    r->slot[slot_of(r, node, symbol)] = (coarsen_rule_edge){node, symbol, child};
    r->n_edges++;
    return child;
}

static int reach(parser *p, int32_t node)
{
    if (p->r->node[node].stamp == p->walk)
        return 0;
    if (util_grow(&p->next, &p->next_capacity, p->n_next + 1, sizeof *p->next))
        return MOIRAI_EFAIL;
    p->r->node[node].stamp = p->walk;
    p->next[p->n_next++] = node;
    return 0;
}

/* Every node of the frontier, one step by `type`. */
static int step_type(parser *p, const char *type, size_t length)
{
    moirai_rules *r = p->r;
    const char *name = util_strings_add(r->strings, type, length);
    int32_t symbol = name ? util_names_put(r->symbols, name, r->n_symbols) : MOIRAI_EFAIL;

    if (symbol < 0)
        return MOIRAI_EFAIL;
    if (symbol == r->n_symbols)
        r->n_symbols++;
    for (size_t i = 0; i < p->n_frontier; i++) {
        int32_t child = child_add(p, p->frontier[i], symbol);

        if (child < 0)
            return child;
        if (reach(p, child))
            return MOIRAI_EFAIL;
    }
    return 0;
}

/* One alternative: a type or the name of a group of types. */
static int step_word(parser *p, const char *word, size_t length)
{
    char canonical[COARSEN_TYPE_LENGTH];
    const char *list;

    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)word[i]) && !strchr("_-.", word[i]))
            return moirai_error(MOIRAI_EINPUT, "%s:%d: '%.*s': a type has letters, digits, '_', '-' and '.' only",
                                p->label, p->line, (int)UTIL_MIN(length, 64), word);
    if (length == 0 || length >= COARSEN_TYPE_LENGTH - 2)
        return moirai_error(MOIRAI_EINPUT, "%s:%d: '%.*s': a type has 1 to %d letters", p->label, p->line,
                            (int)UTIL_MIN(length, 64), word, COARSEN_TYPE_LENGTH - 3);
    coarsen_type_canonical(canonical, word, length, false);
    if (!*canonical)
        return moirai_error(MOIRAI_EINPUT, "%s:%d: '%.*s': a type needs a letter or digit", p->label, p->line,
                            (int)length, word);
    for (list = coarsen_type_alternatives(canonical); *list;) {
        size_t n = strcspn(list, " ");
        int rc = step_type(p, list, n);

        if (rc)
            return rc;
        list += n + (list[n] == ' ');
    }
    return 0;
}

/* `relu|clip?`: advance the frontier over one item. */
static int item(parser *p, const char *text, size_t length)
{
    bool optional = length && text[length - 1] == '?';
    size_t end = optional ? length - 1 : length;
    int32_t *swap;
    size_t capacity;

    p->walk++;
    p->n_next = 0;
    for (size_t i = 0; i <= end;) {
        const char *bar = memchr(text + i, '|', end - i);
        size_t n = bar ? (size_t)(bar - text) - i : end - i;
        int rc = step_word(p, text + i, n);

        if (rc)
            return rc;
        i += n + 1;
    }
    for (size_t i = 0; optional && i < p->n_frontier; i++)
        if (reach(p, p->frontier[i]))
            return MOIRAI_EFAIL;
    swap = p->frontier, capacity = p->frontier_capacity;
    p->frontier = p->next, p->frontier_capacity = p->next_capacity, p->n_frontier = p->n_next;
    p->next = swap, p->next_capacity = capacity;
    return 0;
}

static int rule_close(parser *p, const char *text, size_t length)
{
    moirai_rules *r = p->r;
    bool useful = false;

    for (size_t i = 0; i < p->n_frontier; i++) {
        coarsen_rule_node *node = &r->node[p->frontier[i]];

        if (node->depth < 2)
            continue;
        useful = true;
        r->longest = UTIL_MAX(r->longest, node->depth);
        if (node->rule == MOIRAI_NONE)
            node->rule = p->rule;
    }
    if (!useful)
        return moirai_error(MOIRAI_EINPUT, "%s:%d: '%.*s': a rule fuses two operators or more", p->label, p->line,
                            (int)UTIL_MIN(length, 200), text);
    if (util_grow(&r->text, &r->rules_capacity, (size_t)r->n_rules + 1, sizeof *r->text))
        return MOIRAI_EFAIL;
    r->text[r->n_rules] = util_strings_add(r->strings, text, length);
    return r->text[r->n_rules++] ? 0 : MOIRAI_EFAIL;
}

/* The words of a line with single spaces between them, without comment; the number of words. */
static int line_tidy(char *line)
{
    char *out = line;
    int words = 0;

    line[strcspn(line, "#")] = 0;
    for (const char *in = line; *in;) {
        size_t n = strcspn(in, " \t\r");

        if (n) {
            if (words++)
                *out++ = ' ';
            memmove(out, in, n);
            out += n;
        }
        in += n + (in[n] != 0);
    }
    *out = 0;
    return words;
}

static int line_parse(parser *p, char *line)
{
    int words = line_tidy(line);
    int rc = 0;

    if (!words)
        return 0;
    if (words > COARSEN_RULE_MOST_ITEMS)
        return moirai_error(MOIRAI_EINPUT, "%s:%d: %d types in one rule, at most %d", p->label, p->line, words,
                            COARSEN_RULE_MOST_ITEMS);
    p->rule = p->r->n_rules;
    if (util_grow(&p->frontier, &p->frontier_capacity, 1, sizeof *p->frontier))
        return MOIRAI_EFAIL;
    p->frontier[0] = 0;
    p->n_frontier = 1;
    for (const char *word = line; !rc && *word;) {
        size_t n = strcspn(word, " ");

        rc = item(p, word, n);
        word += n + (word[n] == ' ');
    }
    return rc ? rc : rule_close(p, line, strlen(line));
}

static int text_parse(parser *p, char *text)
{
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        int rc;

        if (end)
            *end = 0;
        p->line++;
        rc = line_parse(p, line);
        if (rc)
            return rc;
        line = end ? end + 1 : NULL;
    }
    return 0;
}

static moirai_rules *rules_new(void)
{
    moirai_rules *r = util_alloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->strings = util_strings_new();
    r->symbols = util_names_new(64);
    r->n_slots = 256;
    r->slot = util_alloc(r->n_slots, sizeof *r->slot);
    if (!r->strings || !r->symbols || !r->slot || node_add(r, 0) < 0) {
        moirai_rules_free(r);
        return NULL;
    }
    return r;
}

int moirai_rules_parse(moirai_rules **out, const char *text, const char *label)
{
    parser p = {.r = rules_new(), .label = label};
    char *copy = util_strdup(text);
    int rc = p.r && copy ? text_parse(&p, copy) : MOIRAI_EFAIL;

    free(copy);
    free(p.frontier);
    free(p.next);
    if (rc) {
        moirai_rules_free(p.r);
        p.r = NULL;
    }
    *out = p.r;
    return rc;
}

int moirai_rules_open(moirai_rules **out, const char *name_or_path)
{
    const char *shipped = coarsen_rules_shipped(name_or_path);
    char *text;
    size_t length;
    int rc;

    *out = NULL;
    if (shipped)
        return moirai_rules_parse(out, shipped, name_or_path);
    rc = util_file_read(&text, &length, name_or_path);
    if (rc)
        return moirai_error_prefix(rc, "rules (eigen, onnxruntime, none or a file)");
    if (memchr(text, 0, length))
        rc = moirai_error(MOIRAI_EINPUT, "%s: not a text file: it has a zero byte", name_or_path);
    else
        rc = moirai_rules_parse(out, text, name_or_path);
    free(text);
    return rc;
}

void moirai_rules_free(moirai_rules *rules)
{
    if (!rules)
        return;
    util_strings_free(rules->strings);
    util_names_free(rules->symbols);
    free(rules->text);
    free(rules->node);
    free(rules->slot);
    free(rules);
}

int moirai_rules_count(const moirai_rules *rules)
{
    return rules->n_rules;
}

const char *moirai_rules_text(const moirai_rules *rules, int rule)
{
    return rule >= 0 && rule < rules->n_rules ? rules->text[rule] : NULL;
}
