/* The journal: one JSON object per row that is done, a line each, in the order in which they ended.
 *
 * Written by appending, with one write per line, so that an interruption loses at most the row at work, and journals of
 * several runs can be joined with cat. A crash may leave a last line without its end: it is passed over, and the next
 * line begins a line of its own. Rows of other cases, limits, seeds, costs or versions of the library stay in the file
 * and are not taken. */
#include "study/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/lines.h"
#include "util/util.h"

static int read_word(int *out, const util_json_at *at, yyjson_val *object, const study_field *f)
{
    const char *text;
    int rc = util_json_string(&text, NULL, at, object, f->name, true);
    for (int i = 0; !rc && i < f->n_words; i++)
        if (!strcmp(f->word(i), text)) {
            *out = i;
            return 0;
        }
    return rc ? rc : util_json_fail(at, "%s \"%s\": not known", f->name, text);
}

static int read_int32(int32_t *out, const util_json_at *at, yyjson_val *object, const char *key)
{
    int64_t x;
    int rc = util_json_int64(&x, at, object, key, true, INT32_MIN);
    if (!rc && x > INT32_MAX)
        return util_json_fail(at, "%s %lld: too large", key, (long long)x);
    *out = rc ? 0 : (int32_t)x;
    return rc;
}

static int read_field(moirai_study_row *row, const util_json_at *at, yyjson_val *object, const study_field *f)
{
    void *to = (char *)row + f->offset;
    int64_t x = 0;
    int rc;
    switch (f->kind) {
    case STUDY_FIELD_TEXT: return study_read_text(to, f->size, at, object, f->name);
    case STUDY_FIELD_WORD: return read_word(to, at, object, f);
    case STUDY_FIELD_BOOL: return util_json_bool(to, at, object, f->name, true);
    case STUDY_FIELD_INT32: return read_int32(to, at, object, f->name);
    case STUDY_FIELD_INT64: return util_json_int64(to, at, object, f->name, true, -1);
    case STUDY_FIELD_REAL: return util_json_real(to, at, object, f->name, true);
    case STUDY_FIELD_UINT64:
        rc = util_json_int64(&x, at, object, f->name, true, 0);
        *(uint64_t *)to = (uint64_t)x;
        return rc;
    }
    return 0;
}

static void take(moirai_study *s, const moirai_study_row *row)
{
    if (row->seed != s->seed || row->costs != s->costs || strcmp(row->version, MOIRAI_VERSION))
        return;
    for (int32_t i = 0; i < s->n; i++)
        if (study_same_case(&s->row[i].of, &row->of))
            s->row[i] = *row;
}

static int take_row(void *to, const util_json_at *at, yyjson_val *object)
{
    moirai_study_row row = {.done = true};
    int rc = 0;
    for (int i = 0; i < STUDY_FIELDS && !rc; i++)
        rc = read_field(&row, at, object, &study_field_at[i]);
    rc = rc ? rc : study_read_text(row.version, sizeof row.version, at, object, "version");
    if (!rc)
        take(to, &row);
    return rc;
}

int moirai_study_journal_parse(moirai_study *s, const char *data, size_t length, const char *label, int32_t *taken)
{
    int rc = study_each_line(data, length, label, take_row, s);
    *taken = 0;
    for (int32_t i = 0; i < s->n; i++)
        *taken += s->row[i].done;
    return rc;
}

int moirai_study_journal_read(moirai_study *s, const char *path, int32_t *taken)
{
    char *data;
    size_t length;
    *taken = 0;
    if (access(path, F_OK))
        return 0;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    rc = moirai_study_journal_parse(s, data, length, path, taken);
    free(data);
    return rc;
}

/* Does the file end in the middle of a line? */
static bool torn(int fd)
{
    char last;
    off_t size = lseek(fd, 0, SEEK_END);
    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

int moirai_study_journal_add(const moirai_study_row *row, const char *path)
{
    util_writer w;
    size_t length;
    util_writer_init(&w);
    study_put_row(&w, row);
    char *line = util_writer_take(&w, &length);
    if (!line)
        return MOIRAI_EFAIL;
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int rc = fd < 0 ? moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno)) : 0;
    if (!rc && torn(fd) && write(fd, "\n", 1) != 1)
        rc = moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno));
    while (length > 0 && line[length - 1] == '\n')
        length--;
    line[length] = '\n'; /* the writer's text ends with a NUL: there is room */
    if (!rc && write(fd, line, length + 1) != (ssize_t)(length + 1))
        rc = moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno));
    if (fd >= 0 && close(fd) && !rc)
        rc = moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno));
    free(line);
    return rc;
}
