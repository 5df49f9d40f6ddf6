#include "support/folder.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

char folder[64];

int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/moirai-test-XXXXXX");
    return mkdtemp(folder) == NULL;
}

int remove_folder(void **state)
{
    char line[128];
    (void)state;
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    return system(line);
}

const char *in_folder(const char *name)
{
    static char path[4][200];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof *path, "%s/%s", folder, name);
    return path[next];
}

void put_file(const char *path, const void *data, size_t length)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}
