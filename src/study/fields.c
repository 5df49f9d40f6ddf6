/* A row as JSON and as a line of CSV, both from one table of its fields. */
#include "study/fields.h"

#include <stdio.h>

static const char *part_word(int value)
{
    return moirai_study_part_name((moirai_study_part)value);
}

static const char *without_word(int value)
{
    return study_without_name[value];
}

static const char *flow_word(int value)
{
    return moirai_flow_name((moirai_flow)value);
}

static const char *runtime_word(int value)
{
    return moirai_runtime_name((moirai_runtime)value);
}

#define FIELD(label, type, member) \
    { \
        .name = label, .kind = type, .offset = offsetof(moirai_study_row, member), \
        .size = sizeof((moirai_study_row *)NULL)->member \
    }
#define WORD(label, member, n, words) \
    { \
        .name = label, .kind = STUDY_FIELD_WORD, .offset = offsetof(moirai_study_row, member), .n_words = n, \
        .word = words \
    }

const study_field study_field_at[STUDY_FIELDS] = {
    WORD("part", of.part, MOIRAI_STUDY_PARTS, part_word),
    FIELD("network", STUDY_FIELD_TEXT, of.network),
    FIELD("cluster", STUDY_FIELD_TEXT, of.cluster),
    FIELD("coarsened", STUDY_FIELD_BOOL, of.coarsened),
    FIELD("placer", STUDY_FIELD_TEXT, of.placer),
    WORD("without", of.without, MOIRAI_STUDY_WITHOUTS, without_word),
    WORD("flow", of.flow, 2, flow_word),
    WORD("runtime", of.runtime, MOIRAI_RUNTIMES, runtime_word),
    FIELD("devices", STUDY_FIELD_INT32, of.devices),
    FIELD("gbps", STUDY_FIELD_INT32, of.gbps),
    FIELD("batch", STUDY_FIELD_INT32, of.batch),
    FIELD("time_limit_s", STUDY_FIELD_REAL, of.time_limit_s),
    FIELD("gap_goal", STUDY_FIELD_REAL, of.gap),
    FIELD("result", STUDY_FIELD_INT32, result),
    FIELD("message", STUDY_FIELD_TEXT, message),
    FIELD("ops", STUDY_FIELD_INT32, n_ops),
    FIELD("ops_original", STUDY_FIELD_INT32, n_ops_original),
    FIELD("element_bytes", STUDY_FIELD_INT32, element_bytes),
    FIELD("makespan_ns", STUDY_FIELD_INT64, makespan_ns),
    FIELD("planned_ns", STUDY_FIELD_INT64, planned_ns),
    FIELD("lower_bound_ns", STUDY_FIELD_INT64, lower_bound_ns),
    FIELD("generation_ns", STUDY_FIELD_INT64, generation_ns),
    FIELD("single_ns", STUDY_FIELD_INT64, single_ns),
    FIELD("unfused_ns", STUDY_FIELD_INT64, unfused_ns),
    FIELD("excess_bytes", STUDY_FIELD_INT64, excess_bytes),
    FIELD("launch_ns", STUDY_FIELD_INT64, launch_ns),
    FIELD("transfers", STUDY_FIELD_INT64, transfers),
    FIELD("transfer_bytes", STUDY_FIELD_INT64, transfer_bytes),
    FIELD("process_bytes", STUDY_FIELD_INT64, process_bytes),
    FIELD("load", STUDY_FIELD_REAL, load),
    FIELD("threads", STUDY_FIELD_INT32, threads),
    FIELD("seed", STUDY_FIELD_UINT64, seed),
    FIELD("costs", STUDY_FIELD_UINT64, costs),
    FIELD("machine", STUDY_FIELD_TEXT, machine),
    FIELD("date", STUDY_FIELD_TEXT, date),
};

static const void *place(const study_field *f, const moirai_study_row *row)
{
    return (const char *)row + f->offset;
}

void study_put_row(util_writer *w, const moirai_study_row *row)
{
    util_writer_open(w, '{');
    for (const study_field *f = study_field_at; f < study_field_at + STUDY_FIELDS; f++) {
        const void *at = place(f, row);
        util_writer_key(w, f->name);
        switch (f->kind) {
        case STUDY_FIELD_TEXT: util_writer_string(w, at); break;
        case STUDY_FIELD_WORD: util_writer_string(w, f->word(*(const int *)at)); break;
        case STUDY_FIELD_BOOL: util_writer_bool(w, *(const bool *)at); break;
        case STUDY_FIELD_INT32: util_writer_int(w, *(const int32_t *)at); break;
        case STUDY_FIELD_INT64: util_writer_int(w, *(const int64_t *)at); break;
        case STUDY_FIELD_UINT64: util_writer_uint(w, *(const uint64_t *)at); break;
        case STUDY_FIELD_REAL: util_writer_real(w, *(const double *)at); break;
        }
    }
    util_writer_pair_string(w, "version", row->version);
    util_writer_close(w, '}');
}

void study_put_field_csv(report_text *t, const study_field *f, const moirai_study_row *row)
{
    const void *at = place(f, row);
    switch (f->kind) {
    case STUDY_FIELD_TEXT: report_put_csv(t, at); break;
    case STUDY_FIELD_WORD: report_put_csv(t, f->word(*(const int *)at)); break;
    case STUDY_FIELD_BOOL: report_put(t, "%s", *(const bool *)at ? "true" : "false"); break;
    case STUDY_FIELD_INT32: report_put(t, "%d", *(const int32_t *)at); break;
    case STUDY_FIELD_INT64: report_put(t, "%lld", (long long)*(const int64_t *)at); break;
    case STUDY_FIELD_UINT64: report_put(t, "%llu", (unsigned long long)*(const uint64_t *)at); break;
    case STUDY_FIELD_REAL: report_put(t, "%.10g", *(const double *)at); break;
    }
}
