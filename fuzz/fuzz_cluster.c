/* Any bytes as a moirai-cluster file or, where they don't begin with a brace, as a one-line description and as
 * quantities with units. */
#include <moirai/cluster.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_text(const uint8_t *data, size_t size)
{
    char *text = calloc(size + 1, 1);
    moirai_cluster *c;
    int64_t value;
    if (!text)
        return;
    memcpy(text, data, size);
    if (moirai_cluster_synthetic(&c, text) == MOIRAI_OK) {
        moirai_cluster_write(c, "/dev/null");
        moirai_cluster_free(c);
    }
    moirai_parse_bytes(&value, text);
    moirai_parse_rate(&value, text);
    moirai_parse_duration(&value, text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    moirai_cluster *c;
    if (size > 0 && data[0] != '{') {
        fuzz_text(data, size);
    } else if (moirai_cluster_parse(&c, (const char *)data, size, "fuzz") == MOIRAI_OK) {
        moirai_cluster_write(c, "/dev/null");
        moirai_cluster_free(c);
    }
    return 0;
}
