/* Lines of JSON objects: the journal (journal.c) and what was measured (measured.c). */
#include "study/lines.h"

#include <stdio.h>
#include <string.h>
#include <yyjson.h>

int study_read_text(char *out, size_t size, const util_json_at *at, yyjson_val *object, const char *key)
{
    const char *text = "";
    int rc = util_json_string(&text, NULL, at, object, key, false);
    snprintf(out, size, "%s", rc ? "" : text);
    return rc;
}

static int take_line(const char *line, size_t length, const char *label, study_line_taker take, void *to)
{
    yyjson_doc *doc;
    util_json_at at = {.label = label};
    int rc = util_json_parse(&doc, line, length, label);
    if (rc)
        return rc;
    yyjson_val *object = yyjson_doc_get_root(doc);
    rc = util_json_object(&at, object);
    rc = rc ? rc : take(to, &at, object);
    yyjson_doc_free(doc);
    return rc;
}

int study_each_line(const char *data, size_t length, const char *label, study_line_taker take, void *to)
{
    size_t number = 0;
    int rc = 0;
    for (const char *at = data, *end; !rc && (end = memchr(at, '\n', (size_t)(data + length - at))); at = end + 1) {
        char line[512];
        snprintf(line, sizeof line, "%s: line %zu", label, ++number);
        if (end != at && end[-1] == '}')
            rc = take_line(at, (size_t)(end - at), line, take, to);
    }
    return rc;
}
