/* Names of machines go to mpiexec and from there to ssh, where one that begins with '-' would be an option, and a comma
 * or a space would make two of one. */
#include "util/util.h"

#include <ctype.h>
#include <string.h>

bool util_is_host(const char *text)
{
    if (!*text || *text == '-' || strlen(text) > 255)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("._-:@[]%", *text))
            return false;
    return true;
}
