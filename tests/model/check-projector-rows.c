/* SPDX-License-Identifier: MIT */
/* check-projector-rows.c - findings about the tensors of a projector
 *
 * The file sees as Janus does and hears as Qwen2-Audio does: widths 8 and 6,
 * language model of width 12, two layers each. Names and shapes are those of
 * the definitions of these models and of llama.cpp's files.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/file.h"
#include "model/weight/projector_rows.h"
#include "tests/fix.h"
#include "tests/model/findings.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>

struct tensor {
    const char *name;
    uint64_t ne[5];
};

/* A layer of a tower of width E, with feed-forward parts of width F. */
#define NORM(NAME, E)                                                         \
    { NAME ".weight", { E } },                                                \
    {                                                                         \
        NAME ".bias",                                                         \
        {                                                                     \
            E                                                                 \
        }                                                                     \
    }
#define FULL(NAME, I, O)                                                      \
    { NAME ".weight", { I, O } },                                             \
    {                                                                         \
        NAME ".bias",                                                         \
        {                                                                     \
            O                                                                 \
        }                                                                     \
    }
#define LAYER(P, E, F)                                                        \
    NORM(P "ln1", E), NORM(P "ln2", E), FULL(P "attn_q", E, E),               \
        FULL(P "attn_k", E, E), FULL(P "attn_v", E, E),                       \
        FULL(P "attn_out", E, E), FULL(P "ffn_up", E, F),                     \
        FULL(P "ffn_down", F, E)

static const struct tensor tensors[] = {
    LAYER("v.blk.0.", 8, 16),
    LAYER("v.blk.1.", 8, 16),
    FULL("mm.0", 8, 24),
    FULL("mm.1", 24, 12),
    LAYER("a.blk.0.", 6, 10),
    LAYER("a.blk.1.", 6, 10),
    { "a.conv1d.1.weight", { 3, 5, 6 } },
    { "a.conv1d.1.bias", { 1, 6 } },
    { "a.conv1d.2.weight", { 3, 6, 6 } },
    { "a.conv1d.2.bias", { 1, 6 } },
    FULL("mm.a.fc", 6, 12),
    /* not needed */
    { "v.patch_embd.weight", { 4, 4, 3, 8 } },
    NORM("v.post_ln", 8),
    { "a.position_embd.weight", { 6, 9 } },
};

enum { N = GG_LEN(tensors), N_NEEDED = N - 4 };

/* A change of the file: tensor i is left out, renamed, or gets other
 * dimensions. i is N for no change. */
struct change {
    size_t i;
    const char *name;   /* NULL: leave it out */
    const uint64_t *ne; /* NULL: unchanged */
    const char *type;   /* type of the tower that sees; NULL: Janus's */
};

static uint64_t size_of(const uint64_t *ne)
{
    uint64_t n = 4;
    while (*ne)
        n *= *ne++;
    return n;
}

static void put_tower(struct fix *f, const char *t, uint32_t width,
                      uint32_t ff, const char *type)
{
    char key[80];
#define KEY(SUFFIX) (snprintf(key, sizeof key, "clip.%s." SUFFIX, t), key)
    fix_kv_u32(f, KEY("embedding_length"), width);
    fix_kv_u32(f, KEY("feed_forward_length"), ff);
    fix_kv_u32(f, KEY("projection_dim"), 12);
    fix_kv_u32(f, KEY("block_count"), 2);
    fix_kv_u32(f, KEY("attention.head_count"), 2);
    fix_key(f, KEY("attention.layer_norm_epsilon"), GGUF_VAL_F32);
    fix_f32(f, 1e-5F);
    fix_kv_str(f, KEY("projector_type"), type);
#undef KEY
}

static void put_keys(struct fix *f, const char *type)
{
    static const char *const flags[] = { "clip.has_vision_encoder",
                                         "clip.has_audio_encoder" };
    static const char *const colours[] = { "clip.vision.image_mean",
                                           "clip.vision.image_std" };
    fix_kv_str(f, "general.architecture", "clip");
    fix_kv_str(f, "general.type", "mmproj");
    for (int i = 0; i < 2; i++) {
        fix_key(f, flags[i], GGUF_VAL_BOOL);
        fix_u8(f, 1);
        fix_array(f, colours[i], GGUF_VAL_F32, 3);
        for (int k = 0; k < 3; k++)
            fix_f32(f, 0.5F);
    }
    fix_kv_u32(f, "clip.vision.image_size", 8);
    fix_kv_u32(f, "clip.vision.patch_size", 4);
    fix_kv_u32(f, "clip.audio.num_mel_bins", 5);
    put_tower(f, "vision", 8, 16, type ? type : "janus_pro");
    put_tower(f, "audio", 6, 10, "qwen2a");
}

/* Verify a file with a change. */
static struct findings verify_change(struct change c)
{
    struct findings s = { .n = 0 };
    struct fix f;
    uint64_t off = 0;
    const bool less = c.i < N && !c.name;
    fix_init(&f);
    fix_head(&f, 3, N - less, 23);
    put_keys(&f, c.type);
    for (size_t i = 0; i < N; i++) {
        const uint64_t *ne = i == c.i && c.ne ? c.ne : tensors[i].ne;
        if (i == c.i && less)
            continue;
        fix_info(&f, i == c.i ? c.name : tensors[i].name, ne, 0, off);
        off += (size_of(ne) + 31) / 32 * 32;
    }
    fix_pad(&f, 32);
    fix_fill(&f, 0, off);
    if (findings_in(f.data, f.size, NULL, &s) != GGUF_OK)
        snprintf(s.codes, sizeof s.codes, "failed");
    fix_fini(&f);
    return s;
}

static size_t find_tensor(const char *name)
{
    size_t i = 0;
    while (i < N && strcmp(tensors[i].name, name) != 0)
        i++;
    return i;
}

static void check_each(void)
{
    size_t n_kept = 0, n_renamed = 0, n_wide = 0;
    for (size_t i = 0; i < N; i++) {
        char name[80];
        uint64_t ne[5];
        snprintf(name, sizeof name, "%sx", tensors[i].name);
        memcpy(ne, tensors[i].ne, sizeof ne);
        struct findings s = verify_change((struct change){ .i = i });
        n_kept += i < N_NEEDED && !strstr(s.codes, "missing-tensor");
        s = verify_change((struct change){ .i = i, .name = name });
        n_renamed += !strstr(s.codes, "extra-tensor");
        ne[strcmp(tensors[i].name, "v.patch_embd.weight") ? 0 : 3]++;
        s = verify_change((struct change){ i, tensors[i].name, ne, NULL });
        if (!strncmp(tensors[i].name, "a.conv1d", 8) ||
            !strncmp(tensors[i].name, "a.pos", 5))
            continue; /* the length of a filter is free */
        /* key-value: a key has another width than the tensor */
        const bool is_found =
            strstr(s.codes, "tensor-shape") || strstr(s.codes, "key-value");
        if (!is_found)
            printf("# %s: %s\n", tensors[i].name, s.codes);
        n_wide += !is_found;
    }
    ok(!n_kept, "a tensor that is left out is missing");
    ok(!n_renamed, "a tensor of another name is not used");
    ok(!n_wide, "a tensor of another shape does not fit");
}

static void check_some(void)
{
    struct findings s = verify_change((struct change){ .i = N });
    ok(!s.n, "a whole file: %s: %s", s.codes, s.last);
    s = verify_change((struct change){ .i = find_tensor("v.blk.1.ln2.bias") });
    ok(s.n == 1 && !strcmp(s.name, "v.blk.1.ln2.bias") &&
           strstr(s.last, "layer 0 has it"),
       "a layer that lacks what its neighbour has: %s", s.last);
    s = verify_change(
        (struct change){ .i = find_tensor("a.blk.0.attn_out.bias"),
                         .name = "a.blk.0.attn_out.bias",
                         .ne = FIX_NE(7) });
    ok(s.n == 1 && strstr(s.last, "7 elements, its weight has 6 rows"),
       "a bias of another length: %s", s.last);
    s = verify_change((struct change){ .i = find_tensor("mm.1.weight"),
                                       .name = "mm.1.weight",
                                       .ne = FIX_NE(24, 13) });
    ok(strstr(s.codes, "tensor-shape") != NULL,
       "a projector for models of another width");
    s = verify_change((struct change){ .i = N, .type = "mystery" });
    ok(s.n == 1 && !strcmp(s.codes, "unknown-architecture") &&
           strstr(s.last, "mystery"),
       "a type that is not known: %s", s.last);
    s = verify_change((struct change){ .i = N, .type = "phi4" });
    ok(strstr(s.codes, "missing-key") && strstr(s.codes, "missing-tensor") &&
           strstr(s.codes, "extra-tensor"),
       "a file of another type: %s", s.codes);
}

/* The keys of Step3-VL are constants of converters: layers are compared with
 * each other. */
static void check_constants(void)
{
    struct findings s =
        verify_change((struct change){ .i = N, .type = "step3vl" });
    ok(!strstr(s.codes, "tensor-shape"), "layers of one width: %s", s.last);
    const size_t i = find_tensor("v.blk.1.attn_q.weight");
    s = verify_change(
        (struct change){ i, tensors[i].name, FIX_NE(9, 8), "step3vl" });
    ok(strstr(s.codes, "tensor-shape") != NULL,
       "a matrix for layers of another width: %s", s.codes);
    s = verify_change((struct change){ .i = N, .type = "gemma3nv" });
    ok(strstr(s.codes, "extra-tensor") != NULL,
       "a layer that MobileNet does not have: %s", s.codes);
}

/* Dimensions in the lists are known letters. */
static void check_lists(void)
{
    const struct gg_model_projector *row;
    size_t n = 0, bad = 0;
    for (; (row = gg_model_projector_at(n)) != NULL; n++)
        for (const char *p = row->tensors; (p = strchr(p, ':')) != NULL;) {
            do {
                p++;
                bad += !*p || (!strchr("*EOM", *p) && (*p < 'a' || *p > 'z'));
                p++;
            } while (*p == ',');
            bad += *p && *p != ' ';
        }
    ok(n > 50 && !bad, "dimensions of %zu rows", n);
}

int main(void)
{
    check_some();
    check_each();
    check_constants();
    check_lists();
    return done_testing();
}
