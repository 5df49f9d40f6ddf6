/* Every export: one file each, its line in report.h and one here. */
#include "report/report.h"

#include <string.h>

static const moirai_exporter *const exporters[] = {
    &report_export_trace, &report_export_dot, &report_export_svg, &report_export_csv, &report_export_device_map,
};

int moirai_exporter_count(void)
{
    return (int)(sizeof exporters / sizeof *exporters);
}

const moirai_exporter *moirai_exporter_at(int index)
{
    return exporters[index];
}

const moirai_exporter *moirai_exporter_find(const char *name)
{
    for (int i = 0; i < moirai_exporter_count(); i++)
        if (!strcmp(exporters[i]->name, name))
            return exporters[i];
    return NULL;
}

int moirai_export(char **out, size_t *length, const moirai_analysis *a, const char *format,
                  const moirai_export_options *o)
{
    static const moirai_export_options standard = {0};
    const moirai_exporter *e = moirai_exporter_find(format);
    *out = NULL;
    if (!e)
        return moirai_error(MOIRAI_EUSAGE, "no export format '%.60s'", format);
    return e->write(out, length, a, o ? o : &standard);
}
