/* Why a scanner of our own stands before protobuf-c.
 *
 * protobuf-c copies every bytes field and every packed array into memory of its own, so a 1 GB model would be read
 * and stored a second time. The scanner walks the file once with protobuf-c's own descriptors, so it knows whatever
 * onnx.proto the build found, and writes a slim copy of the message in which the payloads of tensors longer than
 * CUT_BYTES are replaced by a number; offset and length of each payload are kept in a table. Only the headers of
 * a mapped file are touched. Lengths of enclosing messages change and are not known before their end, so each is
 * written as a varint padded to five bytes, which protobuf allows. The way back (expand) needs the lengths first:
 * a sizing pass stores them in the order in which messages begin, a writing pass consumes them in the same order. */
#include "onnx/onnx_wire.h"

#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "util/text.h"
#include "util/util.h"

#define CUT_BYTES 1024
#define MAX_DEPTH 96          /* nested messages; an If inside an If takes three */
#define MAX_MESSAGES 20000000 /* a two-byte message becomes a hundred bytes in memory */
#define MAX_SLIM (512u << 20) /* names, attributes, shapes: three orders above real models */
#define PADDED_LENGTH 5

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef struct cursor {
    const uint8_t *base;
    size_t at, end;
} cursor;

typedef struct field {
    uint32_t number, wire;
    size_t begin;           /* of the tag */
    size_t payload, length; /* of a WIRE_BYTES value */
} field;

static int truncated(const cursor *c)
{
    return moirai_error(MOIRAI_EINPUT, "not a valid ONNX file: cut off or malformed at byte %zu", c->at);
}

static int read_varint(cursor *c, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (c->at >= c->end)
            return truncated(c);
        uint8_t byte = c->base[c->at++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return 0;
        }
    }
    return truncated(c);
}

static int skip(cursor *c, size_t n)
{
    if (n > c->end - c->at)
        return truncated(c);
    c->at += n;
    return 0;
}

static int read_field(cursor *c, field *f)
{
    uint64_t tag = 0, value = 0;
    f->begin = c->at;
    f->payload = f->length = 0;
    int rc = read_varint(c, &tag);
    if (rc)
        return rc;
    f->wire = tag & 7;
    if (tag >> 3 == 0 || tag >> 3 > ONNX_CUT_FIELD)
        return truncated(c);
    f->number = (uint32_t)(tag >> 3);
    switch (f->wire) {
    case WIRE_VARINT: return read_varint(c, &value);
    case WIRE_64: return skip(c, 8);
    case WIRE_32: return skip(c, 4);
    case WIRE_BYTES:
        if ((rc = read_varint(c, &value)))
            return rc;
        f->payload = c->at;
        if (value > c->end - c->at)
            return moirai_error(MOIRAI_EINPUT, "not a valid ONNX file: byte %zu announces %llu bytes, %zu are left",
                                f->begin, (unsigned long long)value, c->end - c->at);
        f->length = value;
        return skip(c, value);
    default: return truncated(c);
    }
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *m, uint32_t number)
{
    return protobuf_c_message_descriptor_get_field(m, number);
}

static bool is_message(const ProtobufCFieldDescriptor *d, const field *f)
{
    return d && d->type == PROTOBUF_C_TYPE_MESSAGE && f->wire == WIRE_BYTES;
}

/* Arrays and bytes of a tensor. Strings and names stay: nobody has long ones. */
static bool is_payload(const ProtobufCMessageDescriptor *m, const ProtobufCFieldDescriptor *d, const field *f)
{
    if (m != &onnx__tensor_proto__descriptor || !d || f->wire != WIRE_BYTES || f->length <= CUT_BYTES)
        return false;
    return f->number == 4 || f->number == 5 || f->number == 7 || f->number == 9 || f->number == 10 || f->number == 11;
}

/* ---- cutting ---- */

static int append(onnx_slim *s, const void *bytes, size_t n)
{
    if (n > MAX_SLIM - s->length)
        return moirai_error(MOIRAI_EINPUT, "more than %u MiB besides the weights", MAX_SLIM >> 20);
    int rc = util_grow(&s->data, &s->capacity, s->length + n, 1);
    if (rc)
        return rc;
    memcpy(s->data + s->length, bytes, n);
    s->length += n;
    return 0;
}

static size_t put_varint(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

static int append_cut(onnx_slim *s, const field *f)
{
    int rc = util_grow(&s->cut, &s->cut_capacity, s->n_cuts + 1, sizeof *s->cut);
    if (rc)
        return rc;
    uint8_t token[16];
    size_t n = put_varint(token, (uint64_t)ONNX_CUT_FIELD << 3 | WIRE_64);
    for (int i = 0; i < 8; i++)
        token[n++] = (uint8_t)((uint64_t)s->n_cuts >> (8 * i));
    s->cut[s->n_cuts++] = (onnx_cut){f->payload, f->length, f->number};
    return append(s, token, n);
}

/* Singular messages may come once, of a oneof's one in all: see onnx_wire_scan. */
static int check_once(const ProtobufCMessageDescriptor *m, const ProtobufCFieldDescriptor *d, uint64_t *seen)
{
    if (d->label == PROTOBUF_C_LABEL_REPEATED)
        return 0;
    ptrdiff_t index = d - m->fields;
    uint64_t bit = (d->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || index > 62 ? 1ull << 63 : 1ull << index;
    if (*seen & bit)
        return moirai_error(MOIRAI_EINPUT, "not a valid ONNX file: %s.%s is given twice", m->short_name, d->name);
    *seen |= bit;
    return 0;
}

/* Names go into plans and come back from there: JSON holds UTF-8 and nothing else, C strings end at a NUL. Comments may
 * be what they like. */
static int check_text(const ProtobufCMessageDescriptor *m, const ProtobufCFieldDescriptor *d, const field *f,
                      const uint8_t *text)
{
    if (!strcmp(d->name, "doc_string"))
        return 0;
    for (size_t at = 0, n; at < f->length; at += n) {
        unsigned char last[4] = {0}; /* never past the end of the file */
        memcpy(last, text + at, UTIL_MIN(sizeof last, f->length - at));
        n = last[0] ? util_utf8_length(last) : 0;
        if (!n)
            return moirai_error(MOIRAI_EINPUT, "not a valid ONNX file: %s.%s '%.*s' (byte %zu) is not UTF-8",
                                m->short_name, d->name, (int)UTIL_MIN(f->length, (size_t)80), text, f->begin);
    }
    return 0;
}

static int cut_message(onnx_slim *s, const ProtobufCMessageDescriptor *m, cursor c, int depth);

static int cut_child(onnx_slim *s, const ProtobufCMessageDescriptor *m, const field *f, const uint8_t *base, int depth)
{
    uint8_t tag[10];
    int rc = append(s, tag, put_varint(tag, (uint64_t)f->number << 3 | WIRE_BYTES));
    size_t at = s->length;
    rc = rc ? rc : append(s, "\0\0\0\0\0", PADDED_LENGTH);
    rc = rc ? rc : cut_message(s, m, (cursor){base, f->payload, f->payload + f->length}, depth + 1);
    if (rc)
        return rc;
    size_t length = s->length - at - PADDED_LENGTH;
    for (int i = 0; i < PADDED_LENGTH; i++)
        s->data[at + i] = (uint8_t)((length >> (7 * i) & 0x7f) | (i + 1 < PADDED_LENGTH ? 0x80 : 0));
    return 0;
}

static int cut_message(onnx_slim *s, const ProtobufCMessageDescriptor *m, cursor c, int depth)
{
    if (depth > MAX_DEPTH)
        return moirai_error(MOIRAI_EINPUT, "messages are nested more than %d deep", MAX_DEPTH);
    if (++s->n_messages > MAX_MESSAGES)
        return moirai_error(MOIRAI_EINPUT, "more than %d nodes, attributes and other messages", MAX_MESSAGES);
    uint64_t seen = 0;
    bool has_cut = false;
    while (c.at < c.end) {
        field f;
        int rc = read_field(&c, &f);
        if (rc)
            return rc;
        const ProtobufCFieldDescriptor *d = find_field(m, f.number);
        if (!d) /* a field that we do not know may name a file that ONNX Runtime would open: it goes no further */
            continue;
        if (d->type == PROTOBUF_C_TYPE_STRING && f.wire == WIRE_BYTES &&
            (rc = check_text(m, d, &f, c.base + f.payload)))
            return rc;
        if (is_message(d, &f)) {
            if (!(rc = check_once(m, d, &seen)))
                rc = cut_child(s, d->descriptor, &f, c.base, depth);
        } else if (is_payload(m, d, &f)) {
            if (has_cut)
                return moirai_error(MOIRAI_EINPUT, "the data of a tensor come in several pieces (byte %zu)", f.begin);
            has_cut = true;
            rc = append_cut(s, &f);
        } else {
            rc = append(s, c.base + f.begin, c.at - f.begin);
        }
        if (rc)
            return rc;
    }
    return 0;
}

int onnx_wire_scan(onnx_slim *out, const ProtobufCMessageDescriptor *root, const uint8_t *file, size_t length)
{
    *out = (onnx_slim){0};
    int rc = cut_message(out, root, (cursor){file, 0, length}, 0);
    if (rc)
        onnx_slim_free(out);
    return rc;
}

void onnx_slim_free(onnx_slim *slim)
{
    free(slim->data);
    free(slim->cut);
    *slim = (onnx_slim){0};
}

/* ---- putting back ---- */

typedef struct expander {
    const onnx_cut *cut;
    size_t n_cuts;
    const uint8_t *file;
    uint64_t *size; /* of each message, in the order in which they begin */
    size_t n_sizes, capacity, next;
    onnx_sink sink;
    void *sink_data;
} expander;

static int find_cut(const expander *e, const cursor *c, const onnx_cut **out)
{
    uint64_t index = 0;
    for (int i = 0; i < 8; i++)
        index |= (uint64_t)c->base[c->at - 8 + i] << (8 * i);
    if (index >= e->n_cuts)
        return moirai_error(MOIRAI_EFAIL, "tensor data %llu do not exist", (unsigned long long)index);
    *out = &e->cut[index];
    return 0;
}

static size_t header(uint8_t out[20], uint32_t number, uint64_t length)
{
    size_t n = put_varint(out, (uint64_t)number << 3 | WIRE_BYTES);
    return n + put_varint(out + n, length);
}

static int size_message(expander *e, const ProtobufCMessageDescriptor *m, cursor c, uint64_t *out)
{
    int rc = util_grow(&e->size, &e->capacity, e->n_sizes + 1, sizeof *e->size);
    if (rc)
        return rc;
    size_t mine = e->n_sizes++;
    uint64_t total = 0;
    uint8_t scratch[20];
    while (c.at < c.end) {
        field f;
        if ((rc = read_field(&c, &f)))
            return rc;
        const ProtobufCFieldDescriptor *d = find_field(m, f.number);
        if (f.number == ONNX_CUT_FIELD && f.wire == WIRE_64) {
            const onnx_cut *cut = NULL;
            if ((rc = find_cut(e, &c, &cut)))
                return rc;
            total += header(scratch, cut->field, cut->length) + cut->length;
        } else if (is_message(d, &f)) {
            uint64_t length;
            if ((rc = size_message(e, d->descriptor, (cursor){c.base, f.payload, f.payload + f.length}, &length)))
                return rc;
            total += header(scratch, f.number, length) + length;
        } else {
            total += c.at - f.begin;
        }
    }
    *out = e->size[mine] = total;
    return 0;
}

static int emit_message(expander *e, const ProtobufCMessageDescriptor *m, cursor c)
{
    e->next++;
    uint8_t scratch[20];
    while (c.at < c.end) {
        field f;
        int rc = read_field(&c, &f);
        if (rc)
            return rc;
        const ProtobufCFieldDescriptor *d = find_field(m, f.number);
        if (f.number == ONNX_CUT_FIELD && f.wire == WIRE_64) {
            const onnx_cut *cut = NULL;
            if (!(rc = find_cut(e, &c, &cut)))
                rc = e->sink(e->sink_data, scratch, header(scratch, cut->field, cut->length));
            rc = rc ? rc : e->sink(e->sink_data, e->file + cut->offset, cut->length);
        } else if (is_message(d, &f)) {
            rc = e->sink(e->sink_data, scratch, header(scratch, f.number, e->size[e->next]));
            rc = rc ? rc : emit_message(e, d->descriptor, (cursor){c.base, f.payload, f.payload + f.length});
        } else {
            rc = e->sink(e->sink_data, c.base + f.begin, c.at - f.begin);
        }
        if (rc)
            return rc;
    }
    return 0;
}

int onnx_wire_expand(const ProtobufCMessageDescriptor *root, const uint8_t *slim, size_t length, const onnx_cut *cut,
                     size_t n_cuts, const uint8_t *file, onnx_sink sink, void *sink_data)
{
    expander e = {.cut = cut, .n_cuts = n_cuts, .file = file, .sink = sink, .sink_data = sink_data};
    uint64_t total;
    cursor all = {slim, 0, length};
    int rc = size_message(&e, root, all, &total);
    rc = rc ? rc : emit_message(&e, root, all);
    free(e.size);
    return rc;
}
