/* The log of a search, one JSON object a line, as --log-json writes it. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

static int read_event(moirai_search_event *e, const char *line, size_t length, const char *path, size_t number)
{
    yyjson_doc *doc;
    util_json_at at = {.label = path, .kind = "line", .index = number};
    int rc = util_json_parse(&doc, line, length, path);
    if (rc)
        return moirai_error(MOIRAI_EINPUT, "%s: line %zu is no event of a search", path, number);
    yyjson_val *root = yyjson_doc_get_root(doc);
    *e = (moirai_search_event){(double)number - 1, MOIRAI_UNKNOWN, MOIRAI_UNKNOWN};
    rc = util_json_object(&at, root);
    rc = rc ? rc : util_json_real(&e->seconds, &at, root, "seconds", false);
    rc = rc ? rc : util_json_int64(&e->makespan_ns, &at, root, "makespan_ns", false, 0);
    rc = rc ? rc : util_json_int64(&e->lower_bound_ns, &at, root, "lower_bound_ns", false, 0);
    yyjson_doc_free(doc);
    return rc;
}

int moirai_search_log_read(moirai_search_event **out, int32_t *n, const char *path)
{
    char *text;
    size_t length, capacity = 0, number = 0;
    *out = NULL;
    *n = 0;
    int rc = util_file_read(&text, &length, path);
    if (rc)
        return rc;
    for (char *line = text, *end; !rc && line < text + length; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + length - line));
        end = end ? end : text + length;
        number++;
        if (line + strspn(line, " \t\r") >= end)
            continue;
        rc = util_grow(out, &capacity, (size_t)*n + 1, sizeof **out);
        rc = rc ? rc : read_event(&(*out)[*n], line, (size_t)(end - line), path, number);
        ++*n;
    }
    free(text);
    if (rc) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return rc;
}
