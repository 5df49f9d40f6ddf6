/* The paper's eleven networks, and small ones for tests, as graphs. */
#ifndef MOIRAI_ZOO_H
#define MOIRAI_ZOO_H

#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_zoo_entry {
    const char *name;    /* "gpt3-330M" */
    const char *summary; /* one line */
    int32_t n_ops;
    int layers, hidden, heads;
    const char *paper_parameters; /* as the paper's table has it, NULL for our own */
} moirai_zoo_entry;

/* How many networks the zoo has. */
MOIRAI_API int moirai_zoo_count(void);
/* The network of that number, 0 to moirai_zoo_count() - 1. Static. */
MOIRAI_API const moirai_zoo_entry *moirai_zoo_at(int index);
/* The network of that name, or NULL. */
MOIRAI_API const moirai_zoo_entry *moirai_zoo_find(const char *name);
/* element_bytes: 4 (fp32) or 2 (fp16). */
MOIRAI_API int moirai_zoo_graph(moirai_graph **out, const char *name, int element_bytes);
/* The same for `batch` samples at once (1 to 1,024): tensors and arithmetic grow, weights and masks do not.
 * MOIRAI_EUSAGE for networks that are not of the paper's families. */
MOIRAI_API int moirai_zoo_graph_batch(moirai_graph **out, const char *name, int element_bytes, int batch);

#ifdef __cplusplus
}
#endif
#endif
