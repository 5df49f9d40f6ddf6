/* What the page shows of a plan for many requests (rate.js). */
#include "report/report.h"

void report_put_rate(report_text *t, const moirai_rate *r)
{
    if (r)
        report_put(t, ",\n\"rate\":{\"in_flight\":%d,\"period\":%lld,\"bound\":%lld,\"latency\":%lld,\"copies\":%d}",
                   r->in_flight, (long long)r->period_ns, (long long)r->period_bound_ns, (long long)r->latency_ns,
                   r->n_copies);
}
