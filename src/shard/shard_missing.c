/* What the library says where it was built without protobuf-c or onnx.proto. */
#include <moirai/shard.h>

#include <string.h>

int moirai_shards_open(moirai_shards **out, const char *path, const moirai_onnx_options *options)
{
    (void)options;
    *out = NULL;
    return moirai_error(MOIRAI_EFAIL,
                        "%s: this build cuts no ONNX: it was made without protobuf-c or onnx.proto "
                        "(libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)",
                        path);
}

void moirai_shards_free(moirai_shards *s)
{
    (void)s;
}

int32_t moirai_shards_count(const moirai_shards *s)
{
    (void)s;
    return 0;
}

moirai_shard_strip moirai_shards_strip(const moirai_shards *s, int32_t index)
{
    (void)s;
    (void)index;
    return (moirai_shard_strip){0};
}

int32_t moirai_shards_refusal_count(const moirai_shards *s)
{
    (void)s;
    return 0;
}

moirai_shard_refusal moirai_shards_refusal(const moirai_shards *s, int32_t index)
{
    (void)s;
    (void)index;
    return (moirai_shard_refusal){0};
}

int moirai_shards_write(const moirai_shards *s, const char *cut, moirai_shard_sum sum, const char *path,
                        moirai_shard_report *report)
{
    (void)s;
    (void)cut;
    (void)sum;
    if (report)
        memset(report, 0, sizeof *report);
    return moirai_error(MOIRAI_EFAIL, "%s: this build cuts no ONNX", path);
}

int moirai_shards_graph(moirai_graph **out, const moirai_shards *s, const char *cut, moirai_shard_sum sum,
                        moirai_shard_report *report)
{
    (void)s;
    (void)cut;
    (void)sum;
    if (report)
        memset(report, 0, sizeof *report);
    *out = NULL;
    return moirai_error(MOIRAI_EFAIL, "this build cuts no ONNX");
}

int moirai_shards_choose(moirai_shard_choice *out, const moirai_shards *s, const moirai_shard_choose_options *options)
{
    (void)s;
    (void)options;
    *out = (moirai_shard_choice){0};
    return moirai_error(MOIRAI_EFAIL, "this build cuts no ONNX");
}

void moirai_shard_choice_free(moirai_shard_choice *choice)
{
    (void)choice;
}
