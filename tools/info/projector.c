/* SPDX-License-Identifier: MIT */
/* projector.c - the towers of a projector file ("clip", "mmproj") */
#include "config.h"
#include "tools/info/info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A number of a tower, its key, and how it is said; "%" is the number. */
struct number {
    const char *key, *said;
};

struct tower {
    const char *label;  /* its row of the table */
    const char *name;   /* its member in JSON */
    const char *flag;   /* key that is true with the tower */
    const char *prefix; /* first part of its keys */
};

static const struct tower towers[] = {
    { "sees", "vision", "clip.has_vision_encoder", "clip.vision" },
    { "hears", "audio", "clip.has_audio_encoder", "clip.audio" },
    { "speaks", "speech", "clip.has_gen_audio_encoder", "clip.gen.audio" },
};

static const struct number numbers[] = {
    { "image_size", "images of % px" }, { "patch_size", "patches of % px" },
    { "num_mel_bins", "% mel bands" },  { "block_count", "% layers" },
    { "embedding_length", "width %" },  { "projection_dim", NULL },
};

static const struct gguf_kv *find_key(const struct gguf_file *f,
                                      const char *prefix, const char *key)
{
    char name[80];
    snprintf(name, sizeof name, "%s.%s", prefix, key);
    return gguf_file_kv_find(f, name);
}

static bool has_flag(const struct gguf_file *f, const char *key)
{
    bool is = false;
    return gguf_kv_get_bool(gguf_file_kv_find(f, key), &is, NULL) == GGUF_OK &&
           is;
}

static bool is_projector(const struct gguf_file *f)
{
    struct gguf_str arch;
    return gguf_kv_get_str(gguf_file_kv_find(f, "general.architecture"), &arch,
                           NULL) == GGUF_OK &&
           arch.size == 4 && !memcmp(arch.data, "clip", 4);
}

/* Type of the projector: of the tower, of the file, or of the first files,
 * which did not say. */
static struct gguf_str type_of(const struct gguf_file *f,
                               const struct tower *w)
{
    struct gguf_str type;
    if (gguf_kv_get_str(find_key(f, w->prefix, "projector_type"), &type,
                        NULL) != GGUF_OK &&
        gguf_kv_get_str(gguf_file_kv_find(f, "clip.projector_type"), &type,
                        NULL) != GGUF_OK)
        type = (struct gguf_str){ "mlp", 3 };
    return type;
}

/* The number of the row, or 0 if the file does not say. */
static uint64_t number_of(const struct gguf_file *f, const struct tower *w,
                          const struct number *row)
{
    uint64_t n = 0;
    (void)(gguf_kv_get_uint(find_key(f, w->prefix, row->key), &n, NULL) ==
           GGUF_OK);
    return n;
}

static void add_row(struct table *t, const struct gguf_file *f,
                    const struct tower *w)
{
    struct text s = { NULL, 0, 0 };
    const char *comma = ": ";
    text_add_esc(&s, type_of(f, w), 40);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t n = number_of(f, w, &numbers[i]);
        const char *said = numbers[i].said;
        if (!n || !said)
            continue;
        const size_t before = strcspn(said, "%");
        text_addf(&s, "%s%.*s%" PRIu64 "%s", comma, (int)before, said, n,
                  said + before + 1);
        comma = ", ";
    }
    table_add(t, w->label);
    table_add(t, s.s);
    text_fini(&s);
}

/* Embedding length of the language model: rows of the last matrix of a
 * perceptron, whose files may have another number of CLIP's as projection_dim,
 * else projection_dim. 0: the file does not say. */
static uint64_t width_for(const struct gguf_file *f, const struct tower *w)
{
    static const char *const last[] = { "mm.4.weight", "mm.2.weight",
                                        "mm.0.weight" };
    const struct gguf_str type = type_of(f, w);
    uint64_t n = 0;
    if (type.size == 3 && !memcmp(type.data, "mlp", 3))
        for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
            const struct gguf_tensor_info *t =
                gguf_file_tensor_find(f, last[i]);
            if (t && t->n_dims == 2)
                return (uint64_t)t->ne[1];
        }
    (void)(gguf_kv_get_uint(find_key(f, w->prefix, "projection_dim"), &n,
                            NULL) == GGUF_OK);
    return n;
}

void info_projector_rows(struct table *t, const struct info *info)
{
    const struct gguf_file *f = info->load->file;
    uint64_t width = 0;
    if (!is_projector(f))
        return;
    for (size_t i = 0; i < sizeof towers / sizeof *towers; i++) {
        if (!has_flag(f, towers[i].flag))
            continue;
        add_row(t, f, &towers[i]);
        if (!width)
            width = width_for(f, &towers[i]);
    }
    if (width) {
        table_add(t, "for models of");
        table_addf(t, "embedding length %" PRIu64, width);
    }
}

void info_projector_json(struct json *j, const struct info *info)
{
    const struct gguf_file *f = info->load->file;
    if (!is_projector(f))
        return;
    json_open(j, "projector", '{');
    for (size_t i = 0; i < sizeof towers / sizeof *towers; i++) {
        if (!has_flag(f, towers[i].flag))
            continue;
        json_open(j, towers[i].name, '{');
        json_str(j, "type", type_of(f, &towers[i]));
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            uint64_t n = number_of(f, &towers[i], &numbers[k]);
            if (n)
                json_u64(j, numbers[k].key, n);
        }
        json_close(j);
    }
    json_close(j);
}
