/* One palette for everything that is drawn: eight colours that stay apart for people with any colour vision (Okabe and
 * Ito, 2008), without black, in an order in which neighbours differ in brightness, too. */
#include "report/report.h"

const char *report_colour(int32_t device)
{
    static const char *const palette[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                          "#56b4e9", "#d55e00", "#b8a800", "#7a7a7a"};
    return palette[(size_t)device % (sizeof palette / sizeof *palette)];
}
