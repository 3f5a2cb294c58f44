/* SPDX-License-Identifier: MIT */
/* fuzz_quant.c - any file quantized with any recipe: the output has the
 * planned size, opens, and has the chosen types
 *
 * Six bytes of options, then the file.
 */
#include "config.h"
#include "gguf/quant.h"
#include "gguf/split.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/projectors.h"
#include "tests/ignore_status.h"

#include <stdio.h>
#include <string.h>

enum {
    N_OPTIONS = 6,
    MAX_FILES = 20,
    /* bytes: room for a slice of decoded elements (quant/run/job_run.h), but
     * not for two, which measuring takes */
    LEAST_MEMORY = 96 << 10
};

static const char *const recipes[] = {
    "COPY",   "F16",    "BF16", "Q8_0",  "Q4_0",   "Q5_1",
    "Q4_K_M", "Q3_K_M", "Q2_K", "TQ2_0", "IQ4_XS", "F32",
};
enum { N_RECIPES = sizeof recipes / sizeof recipes[0] };
static const uint32_t repack_to[] = { 0, GGUF_REPACK_PLAIN,
                                      GGUF_REPACK_INTERLEAVED,
                                      GGUF_DTYPE_Q4_0 };

static void compare_plan(const struct gguf_quant *q)
{
    struct gguf_file *s;
    struct gguf_quant_totals totals = GGUF_QUANT_TOTALS_INIT;
    const char *path = scratch_path("out.gguf");
    char name[64] = "out.gguf";
    size_t n = gguf_quant_n_files(q);
    if (n > 1) {
        MUST(gguf_split_name_format(name, sizeof name, "out", 1, (unsigned)n,
                                    NULL) == GGUF_OK);
        path = scratch_path(name);
    }
    MUST(gguf_file_open(&s, path, NULL, NULL) == GGUF_OK);
    MUST(gguf_file_n_shards(s) == n);
    MUST(gguf_file_n_tensors(s) == gguf_quant_n_tensors(q));
    for (size_t i = 0; i < gguf_file_n_tensors(s); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(s, i);
        const struct gguf_quant_tensor *u = gguf_quant_tensor(q, i);
        MUST(t->dtype == u->to && t->size >= u->to_size);
        MUST(t->n_elements == u->n_elements);
    }
    ignore_status(gguf_quant_totals(q, &totals, NULL));
    MUST(gguf_file_size(s) == totals.file_size);
    gguf_file_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *r;
    struct gguf_quant *q;
    struct gguf_error err;
    struct bytes b = { data, size };
    uint32_t layer;
    if (size < N_OPTIONS)
        return 0;
    unsigned recipe = take(&b), how = take(&b);
    MUST(gguf_recipe_preset(&r, recipes[recipe % N_RECIPES], NULL, NULL) ==
         GGUF_OK);
    p.recipe = r;
    p.pure = how & 1;
    p.compat = (how & 2) != 0;
    p.allow_requantize = (how & 4) != 0;
    p.measure = (how & 8) != 0;
    p.keep_split = (how & 16) != 0;
    p.nonfinite = (enum gguf_nonfinite)((how >> 5) % 3);
    layer = take(&b);
    p.prune = &layer;
    p.n_prune = layer < 100;
    p.max_file_size = 64 * (uint64_t)take(&b);
    const unsigned memory = take(&b);
    p.max_memory = memory ? LEAST_MEMORY + 256 * (uint64_t)memory : 0;
    const unsigned last = take(&b);
    if (last & 1)
        p.embedding_type = gguf_dtype_find(GGUF_DTYPE_Q6_K);
    p.repack_to = repack_to[last >> 1 & 3];
    o.no_sync = 1;
    const char *path = scratch_path("in.gguf");
    scratch_write(path, b.p, b.n);
    if (gguf_quant_create(&q, path, &p, &err) == GGUF_OK) {
        if (gguf_quant_n_files(q) <= MAX_FILES) {
            if (gguf_quant_run(q, scratch_path("out.gguf"), &o, &err) ==
                GGUF_OK)
                compare_plan(q);
            else
                MUST(err.message[0]);
        }
        gguf_quant_destroy(q);
    } else {
        MUST(!q && err.message[0]);
    }
    gguf_recipe_destroy(r);
    scratch_clean();
    return 0;
}

/* ---- seeds ---- */

static void put_model(struct fix *f, const void *options)
{
    struct fix m;
    fix_init(&m);
    fix_head(&m, 3, 4, 5);
    fix_kv_str(&m, "general.architecture", "llama");
    fix_kv_u32(&m, "llama.block_count", 2);
    fix_kv_u32(&m, "llama.attention.head_count", 4);
    fix_array(&m, "llama.feed_forward_length", GGUF_VAL_U32, 2);
    fix_u32(&m, 32);
    fix_u32(&m, 32);
    fix_kv_u32(&m, "general.file_type", 0);
    fix_info(&m, "token_embd.weight", FIX_NE(256, 2), GGUF_DTYPE_F16, 0);
    fix_info(&m, "blk.0.attn_v.weight", FIX_NE(32, 2), GGUF_DTYPE_F32, 1024);
    fix_info(&m, "blk.1.ffn_down.weight", FIX_NE(32, 2), GGUF_DTYPE_Q8_0,
             1280);
    fix_info(&m, "blk.1.attn_norm.weight", FIX_NE(4), GGUF_DTYPE_F32, 1376);
    fix_pad(&m, 32);
    for (int i = 0; i < 512; i++)
        fix_u16(&m, 0x3800u + (unsigned)i); /* 0.5 and larger */
    for (int i = 0; i < 64; i++)
        fix_f32(&m, (float)(i - 20) / 8);
    fix_fill(&m, 0x21, 68);
    fix_pad(&m, 32);
    for (int i = 0; i < 4; i++)
        fix_f32(&m, 1);
    fix_pad(&m, 32);
    fix_bytes(f, options, N_OPTIONS);
    fix_bytes(f, m.data, m.size);
    fix_fini(&m);
}

/* An image model with a tensor whose slowest dimensions were joined. */
static void put_image(struct fix *f)
{
    fix_bytes(f, "\3\4d\0\1\0", N_OPTIONS);
    struct fix m;
    fix_init(&m);
    fix_head(&m, 3, 2, 2);
    fix_kv_str(&m, "general.architecture", "wan");
    fix_array(&m, "comfy.gguf.orig_shape.patch_embedding.weight", GGUF_VAL_I32,
              5);
    for (int i = 0; i < 5; i++)
        fix_u32(&m, 2);
    fix_info(&m, "patch_embedding.weight", FIX_NE(2, 2, 2, 4), 0, 0);
    fix_info(&m, "blocks.0.ffn.0.weight", FIX_NE(32, 2), GGUF_DTYPE_BF16, 128);
    fix_pad(&m, 32);
    fix_fill(&m, 0x3c, 256);
    fix_bytes(f, m.data, m.size);
    fix_fini(&m);
}

void fuzz_make_seeds(void)
{
    for (uint8_t i = 0; i < N_RECIPES; i++) {
        const uint8_t plain[N_OPTIONS] = { i, 4, 100, 0, 1, 0 };
        const uint8_t odd[N_OPTIONS] = { i,     (uint8_t)(0x2f + 16 * i),
                                         i & 3, (uint8_t)(8 + i),
                                         i,     1 };
        put_model(new_seed(), plain);
        put_model(new_seed(), odd);
    }
    for (uint8_t i = 0; i < 3; i++) /* out of groups, decoded, into groups */
        for (int type = 0;; type++) {
            const uint8_t options[N_OPTIONS] = {
                i == 1 ? 3 : 0, 4, 100, 0, 1, (uint8_t)(i == 1 ? 0 : i ? 4 : 2)
            };
            struct fix *f = new_seed();
            fix_bytes(f, options, N_OPTIONS);
            if (i < 2 ? !put_groups(f, type) : !put_rows(f, type))
                break;
        }
    for (size_t i = 0;; i++) {
        const uint8_t options[N_OPTIONS] = {
            (uint8_t)(3 + i % 4), 4, 100, 0, 1, 0
        };
        struct fix *f = new_seed();
        fix_bytes(f, options, N_OPTIONS);
        if (!put_projector(f, i))
            break;
    }
    put_image(new_seed());
    seed_files("\3\4d\0\1\0", N_OPTIONS, "", 0);
}
