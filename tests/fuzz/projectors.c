/* SPDX-License-Identifier: MIT */
/* projectors.c - projector files as seeds */
#include "config.h"
#include "tests/fuzz/projectors.h"
#include "base/compiler.h"
#include "model/weight/projector_rows.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

enum { SIZE = 4, MOST_TENSORS = 256, TENSOR = 96 };

struct list {
    char name[MOST_TENSORS][TENSOR];
    unsigned n_dims[MOST_TENSORS];
    size_t n;
};

static void add_tensor(struct list *l, const char *prefix, const char *name,
                       size_t n, const char *end, unsigned n_dims)
{
    char *to = l->name[l->n];
    MUST(l->n < MOST_TENSORS);
    snprintf(to, TENSOR, "%s%.*s%s", prefix, (int)n, name, end);
    for (char *p = to; *p; p++)
        *p = *p == '%' ? '0' : *p == '+' ? 'x' : *p;
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->name[i], to))
            return;
    l->n_dims[l->n++] = n_dims;
}

/* Add the tensors of a list, optional ones too. */
static void add_words(struct list *l, const char *prefix, const char *words)
{
    for (const char *p = words; p && *p;) {
        const size_t n = strcspn(p, " ");
        const bool optional = *p == '?';
        const char *name = p + optional;
        const size_t k = GG_MIN(strcspn(name, ": "), n - optional);
        const bool pair = k > 2 && !memcmp(name + k - 2, ".*", 2);
        unsigned n_dims = 1;
        for (size_t i = k; i + optional < n; i++)
            n_dims += name[i] == ',';
        if (pair) {
            add_tensor(l, prefix, name, k - 2, ".weight", n_dims);
            add_tensor(l, prefix, name, k - 2, ".bias", 1);
        } else if (k) {
            add_tensor(l, prefix, name, k, "", n_dims);
        }
        p += n;
        p += strspn(p, " ");
    }
}

static const struct {
    const char *flag, *keys, *prefix;
} towers[GG_N_TOWERS] = {
    { "clip.has_vision_encoder", "clip.vision.", "v.blk.0." },
    { "clip.has_audio_encoder", "clip.audio.", "a.blk.0." },
    { "clip.has_gen_audio_encoder", "clip.gen.audio.", "a.gen.blk.0." },
};

static const char *const sizes[] = {
    "embedding_length",     "projection_dim", "feed_forward_length",
    "attention.head_count", "image_size",     "patch_size",
    "num_mel_bins",
};

static uint64_t put_keys(struct fix *f, const struct gg_model_projector *row)
{
    const char *keys = towers[row->tower].keys;
    char key[96];
    uint64_t n = 0;
    fix_kv_str(f, "general.architecture", "clip");
    fix_key(f, towers[row->tower].flag, GGUF_VAL_BOOL);
    fix_u8(f, 1);
    fix_kv_str(f, "clip.projector_type", row->type);
    n += 3;
    for (size_t i = 0; i < GG_LEN(sizes); i++, n++) {
        snprintf(key, sizeof key, "%s%s", keys, sizes[i]);
        fix_kv_u32(f, key, SIZE);
    }
    snprintf(key, sizeof key, "%sblock_count", keys);
    fix_kv_u32(f, key, row->layers);
    snprintf(key, sizeof key, "%sattention.layer_norm_epsilon", keys);
    fix_key(f, key, GGUF_VAL_F32);
    fix_f32(f, 1e-5f);
    n += 2;
    for (int i = 0; i < 2; i++, n++) {
        snprintf(key, sizeof key, "%simage_%s", keys, i ? "std" : "mean");
        fix_array(f, key, GGUF_VAL_F32, 3);
        fix_fill(f, 0, 12);
    }
    for (const char *p = row->keys; p && *p; n++) {
        const size_t k = strcspn(p, " ");
        snprintf(key, sizeof key, "clip.%.*s", (int)k, p);
        fix_kv_u32(f, key, SIZE);
        p += k + (p[k] == ' ');
    }
    return n;
}

bool put_projector(struct fix *f, size_t no)
{
    static struct list l;
    const struct gg_model_projector *row = gg_model_projector_at(no);
    struct fix keys;
    uint64_t off = 0;
    if (!row)
        return false;
    l.n = 0;
    add_words(&l, "", row->tensors);
    if (row->layers)
        add_words(&l, towers[row->tower].prefix,
                  gg_model_tower_layer_tensors[row->tower]);
    fix_init(&keys);
    fix_head(f, 3, l.n, put_keys(&keys, row));
    fix_bytes(f, keys.data, keys.size);
    fix_fini(&keys);
    for (size_t i = 0; i < l.n; i++) {
        uint64_t ne[5] = { 0 }, size = 4;
        for (unsigned d = 0; d < l.n_dims[i] && d < 4; d++) {
            ne[d] = SIZE;
            size *= SIZE;
        }
        fix_info(f, l.name[i], ne, 0, off);
        off += (size + 31) / 32 * 32;
    }
    fix_pad(f, 32);
    fix_fill(f, 0, (size_t)off);
    return true;
}
