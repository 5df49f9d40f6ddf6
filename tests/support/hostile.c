#include "support/hostile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/onnx_maker.h"
#include "support/tensor_places.h"

static const char *in_folder;
static int n_made;

static void put(const char *name, const void *data, size_t length)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", in_folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, length, f) != length || fclose(f))
        abort();
}

static void put_next(const char *kind, const char *suffix, const void *data, size_t length)
{
    char name[200];
    snprintf(name, sizeof name, "%s-%d.%s", kind, n_made++, suffix);
    put(name, data, length);
}

static void link_to(const char *target, const char *name)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", in_folder, name);
    if (symlink(target, path))
        abort();
}

/* What locations lead to. */
static void make_surroundings(void)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/../outside", in_folder);
    if (mkdir(path, 0700))
        abort();
    put("../outside/secret", "SECRETSECRETSECR", 16);
    put("w.bin", "0123456789abcdef", 16);
    link_to("../outside/secret", "link");
    link_to("/etc/hostname", "far");
    link_to("..", "up");
    link_to("/dev/zero", "device");
    link_to("loop", "loop");
    snprintf(path, sizeof path, "%s/pipe", in_folder);
    if (mkfifo(path, 0600))
        abort();
}

/* ---- files that tensors name ---- */

static void make_external_models(void)
{
    static const struct {
        const char *location, *offset, *length;
    } list[] = {
        {"/etc/hostname", "0", "16"},
        {"/dev/zero", "0", "16"},
        {"//etc/hostname", NULL, NULL},
        {"../outside/secret", "0", "16"},
        {"x/../../outside/secret", "0", "16"},
        {"./../outside/secret", NULL, NULL},
        {"link", "0", "16"},
        {"far", NULL, NULL},
        {"up/outside/secret", "0", "16"},
        {"device", "0", "16"},
        {"pipe", "0", "16"},
        {"loop", "0", "16"},
        {".", "0", "16"},
        {"", "0", "16"},
        {"w.bin", "8", "16"},
        {"w.bin", "9223372036854775800", "16"},
        {"w.bin", "-16", "16"},
        {"w.bin", "0", "1099511627776"},
        {"file:///etc/hostname", "0", "16"}, /* not there: a graph can be made of it, parts can't */
    };
    for (int place = 0; place < tensor_place_count(); place++)
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
            wire tensor = {0}, model = {0};
            make_external_tensor(&tensor, "wanted", MAKE_FLOAT, "2x2", list[i].location, list[i].offset,
                                 list[i].length);
            make_model_with(&model, &tensor, place);
            put_next(tensor_place_name(place), "onnx", model.data, model.length);
            wire_free(&model);
        }
}

/* ---- names ---- */

static const char *const names[] = {
    "../outside/evil",
    "/tmp/moirai-evil",
    "$(touch ../outside/started)",
    "`touch ../outside/started`",
    "; touch ../outside/started #",
    "| touch ../outside/started",
    "-o",
    "--force",
    "\x1b]0;title\x07\x1b[2J",
    "\302\2332J\302\2350;title\302\234",
    "\xe2\x80\xaetxt.exe\xe2\x81\xa6",
    "a\nmoirai: all is well\r",
    "=cmd|' /C calc'!A0",
    "%s%n%s%n",
    "caf\xe9",
    "\xff\xfe",
    "<script>alert(1)</script>",
    "\"}, {\"name\": \"b\"",
};
enum { N_NAMES = sizeof names / sizeof *names };

static void make_named_models(void)
{
    for (int i = 0; i < N_NAMES; i++) {
        wire graph = {0}, model = {0}, node = {0}, attrs = {0};
        make_input(&graph, "x", MAKE_FLOAT, "2x2");
        wire_text(&node, 1, "x");
        wire_text(&node, 2, names[i]);
        wire_text(&node, 3, names[i]);
        wire_text(&node, 4, i % 2 ? names[i] : "Relu");
        wire_message(&graph, 1, &node);
        make_attr_text(&attrs, "ep_cache_context", "/etc/passwd");
        make_attr_int(&attrs, "embed_mode", 0);
        make_node_in(&graph, "com.microsoft", "EPContext", names[i], "y", &attrs);
        make_output(&graph, "y", MAKE_FLOAT, "2x2");
        wire_text(&graph, 2, names[i]);
        make_model(&model, &graph);
        put_next("name", "onnx", model.data, model.length);
        wire_free(&model);
    }
}

/* ---- lies ---- */

static void nest(wire *graph, int depth)
{
    wire inner = {0}, other = {0}, attrs = {0};
    if (depth) {
        nest(&inner, depth - 1);
    } else {
        make_node(&inner, "Abs", "x", "y", NULL);
        make_output(&inner, "y", MAKE_FLOAT, "2x2");
    }
    make_node(&other, "Neg", "x", "z", NULL);
    make_output(&other, "z", MAKE_FLOAT, "2x2");
    make_attr_graph(&attrs, "then_branch", &inner);
    make_attr_graph(&attrs, "else_branch", &other);
    make_node(graph, "If", "c", "y", &attrs);
    make_output(graph, "y", MAKE_FLOAT, "2x2");
}

static void make_lying_models(void)
{
    static const char *const shapes[] = {"9223372036854775807x2", "1073741824x1073741824", "-1x2", "0x2"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        wire graph = {0}, model = {0}, t = {0};
        make_input(&graph, "x", MAKE_FLOAT, shapes[i]);
        make_tensor(&t, "w", MAKE_FLOAT, shapes[i]);
        wire_bytes(&t, 9, "0123", 4);
        wire_message(&graph, 5, &t);
        make_node(&graph, "Add", "x,w", "y", NULL);
        make_output(&graph, "y", MAKE_FLOAT, NULL);
        make_model(&model, &graph);
        put_next("size", "onnx", model.data, model.length);
        wire_free(&model);
    }
    for (int depth = 4; depth <= 64; depth *= 4) {
        wire graph = {0}, model = {0};
        make_input(&graph, "x", MAKE_FLOAT, "2x2");
        make_input(&graph, "c", 9, "");
        nest(&graph, depth);
        make_model(&model, &graph);
        put_next("deep", "onnx", model.data, model.length);
        if (depth == 4)
            for (int cut = 1; cut < 12; cut++)
                put_next("cut", "onnx", model.data, model.length * (size_t)cut / 12);
        wire_free(&model);
    }
    put_next("empty", "onnx", "", 0);
    put_next("noise", "onnx", "\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
    put_next("noise", "onnx", "GIF89a\x00\x01", 8);
}

int make_hostile_models(const char *folder)
{
    in_folder = folder;
    n_made = 0;
    make_surroundings();
    make_external_models();
    make_named_models();
    make_lying_models();
    return n_made;
}

/* ---- JSON ---- */

/* The name, as a string of JSON; bytes that are no UTF-8 stay as they are. */
static void quote(char *out, const char *text)
{
    *out++ = '"';
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            out += sprintf(out, "\\u%04x", (unsigned char)*text);
        else
            out += sprintf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    strcpy(out, "\"");
}

static void put_json(const char *kind, const char *format, const char *a, const char *b)
{
    char text[4096];
    int n = snprintf(text, sizeof text, format, a, b);
    put_next(kind, "json", text, (size_t)n);
}

static void make_named_texts(void)
{
    for (int i = 0; i < N_NAMES; i++) {
        char name[400];
        quote(name, names[i]);
        put_json("cluster",
                 "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": %s, \"devices\": [{\"name\": %s, "
                 "\"type\": \"v100\", \"memory\": \"8GB\"}], \"links\": []}",
                 name, name);
        put_json("cluster",
                 "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": [{\"name\": \"A\", "
                 "\"type\": \"v100\", \"memory\": \"8GB\", \"host\": %s, \"cores\": %s}], \"links\": []}",
                 name, name);
        put_json("graph",
                 "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": %s, \"ops\": [{\"name\": %s, \"type\": "
                 "\"Relu\", \"outputs\": [{\"name\": \"t\", \"bytes\": 4}]}]}",
                 name, name);
    }
}

int make_hostile_texts(const char *folder)
{
    enum { DEEP = 100000 };
    static char deep[2 * DEEP + 1];
    in_folder = folder;
    n_made = 0;
    make_named_texts();
    memset(deep, '[', DEEP);
    memset(deep + DEEP, ']', DEEP);
    put_next("graph", "json", deep, 2 * DEEP);
    put_next("graph", "json", deep, DEEP);
    put_json("graph", "{\"format\": \"moirai-graph\", \"version\": 1, \"ops\": [], \"ops\": [{%s}]}%s", "", "");
    put_json("graph",
             "{\"format\": \"moirai-graph\", \"version\": 1, \"ops\": [{\"name\": \"a\", \"type\": \"t\", \"flops\": "
             "1e999, \"weight_bytes\": -1%s}]}%s",
             "", "");
    put_json("graph", "{\"format\": \"moirai-graph\", \"version\": 1%s, \"ops\": [{\"name\": \"a\\u0000b\"}]}%s", "",
             "");
    put_json(
        "cluster",
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": [{\"name\": \"A\", \"name\": "
        "\"B\", \"type\": \"v100\"%s}]}%s",
        "", "");
    return n_made;
}
