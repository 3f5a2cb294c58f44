/* SPDX-License-Identifier: MIT */
/* check-indexer.c - attention to keys that an indexer chooses, one by one or in
 * blocks: what is chosen, which layers share it, and what is kept for it */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary_tap.h"
#include "tests/tap.h"

#include <inttypes.h>

enum { N = VARY_N, LAYERS = 2 };

/* Of the samples with latent attention: a key's turned part, rank. */
enum { ROT = 16, C = 64 };

/* ---- more layers ---- */

static const char *const idx_weights[] = { "blk.1.indexer.k_norm.weight",
                                           "blk.1.indexer.proj.weight",
                                           "blk.1.indexer.attn_k.weight",
                                           "blk.1.indexer.attn_q_b.weight" };

/* Layers like the second, up to n. */
static void more_layers(uint32_t n)
{
    struct gen *g = &vary_model.g;
    const size_t had = g->n;
    vary_u32(".block_count", n);
    for (size_t i = 0; i < had; i++)
        for (uint32_t il = LAYERS; il < n; il++)
            if (!strncmp(g->t[i].name, "blk.1.", 6)) {
                g->t[g->n] = g->t[i];
                snprintf(g->t[g->n].name, sizeof g->t[g->n].name,
                         "blk.%" PRIu32 ".%s", il, g->t[i].name + 6);
                g->n++;
            }
}

/* ---- an indexer ---- */

static void top(uint32_t n)
{
    vary_u32(".attention.indexer.top_k", n);
}
static void top_64(void)
{
    top(64);
}
static void top_200(void)
{
    top(200);
}
static void top_1(void)
{
    top(1);
}
static void no_indexer(void)
{
    top(64);
    vary_gain("indexer.proj", 0);
}
static void types(int32_t a, int32_t b)
{
    const uint8_t v[] = { (uint8_t)a, (uint8_t)b };
    vary_must(gguf_meta_set_array(vary_model.g.meta,
                                  "glm-dsa.attention.indexer.types",
                                  GGUF_VAL_BOOL, v, 2, NULL));
}
static void all_index(void)
{
    types(1, 1);
}
static void second_shares(void)
{
    types(1, 0);
    for (size_t i = 0; i < GG_LEN(idx_weights); i++)
        vary_drop_tensor(idx_weights[i]);
}
static void none_indexes(void)
{
    types(0, 1);
}
static void second_lacks(void)
{
    vary_drop_tensor("blk.1.indexer.proj.weight");
}
static void narrow_index(void)
{
    vary_u32("deepseek32.attention.indexer.key_length", 16);
}
/* Four layers, of which the last shares with the third. */
static void by_context(void)
{
    vary_u32("glm-dsa.context_length", 1 << 20);
    more_layers(4);
}
static void by_key(void)
{
    static const uint8_t v[] = { 1, 1, 1, 0 };
    more_layers(4);
    vary_must(gguf_meta_set_array(vary_model.g.meta,
                                  "glm-dsa.attention.indexer.types",
                                  GGUF_VAL_BOOL, v, 4, NULL));
}
static void four_index(void)
{
    more_layers(4);
}

/* All that a layer can have, many times. */
static void many_layers(void)
{
    more_layers(12);
    vary_u32(".leading_dense_block_count", 1);
    vary_u32(".expert_group_count", 2);
    vary_u32(".expert_group_used_count", 1);
    vary_str(".rope.scaling.type", "yarn");
    vary_f32(".rope.scaling.factor", 4);
    vary_u32(".rope.scaling.original_context_length", 16);
    vary_f32(".rope.scaling.yarn_log_multiplier", 0.0707f);
}
static void many_layers_of_one_group(void)
{
    many_layers();
    vary_u32(".expert_group_used_count", 2);
}

static void check_indexer(void)
{
    vary_counts("deepseek32", NULL, top_64, "what is chosen counts");
    vary_same("deepseek32", top_64, top_200, 1e-30, "all keys, and more");
    vary_same("deepseek32", top_64, no_indexer, 1e-30,
              "which needs no scores");
    vary_counts("deepseek32", NULL, top_1, "one key alone");
    vary_counts("deepseek32", many_layers, many_layers_of_one_group,
                "groups, 12 layers");
    vary_same("glm-dsa", NULL, all_index, 1e-30, "without types all have one");
    vary_counts("glm-dsa", NULL, second_shares, "layers share");
    vary_same("glm-dsa", by_context, by_key, 1e-30, "or by the context");
    vary_counts("glm-dsa", by_context, four_index, "which counts");
}

static void check_indexer_kept(void)
{
    enum { IDX = 64, WIDE = 32 };
    const uint64_t n = (uint64_t)N * sizeof(float);
    uint64_t k = vary_kept("glm-dsa", NULL);
    ok(k == n * LAYERS * (C + WIDE + IDX), "a key more is kept: %" PRIu64, k);
    k = vary_kept("glm-dsa", second_shares);
    ok(k == n * (LAYERS * (C + WIDE) + IDX),
       "but of layers that share: %" PRIu64, k);
    k = vary_kept("minimax-m3", NULL);
    ok(k == n * (LAYERS * 2 * 2 * 32 + IDX),
       "and of those that choose blocks: %" PRIu64, k);
}

/* ---- blocks ---- */

static void blocks(uint32_t n, uint32_t size, uint32_t local)
{
    vary_u32("minimax-m3.attention.indexer.top_k", n);
    vary_u32("minimax-m3.attention.indexer.block_size", size);
    vary_u32("minimax-m3.attention.indexer.local_blocks", local);
}
static void all_blocks(void)
{
    blocks(64, 1, 0);
}
static void half_blocks(void)
{
    blocks(8, 4, 1);
}
static void one_block(void)
{
    blocks(1, 64, 0);
}
/* Of three blocks of 8 the last two are local: a window that begins at a
 * multiple of 8, 8 to 15 back. */
static void local_blocks(void)
{
    blocks(2, 8, 2);
}
static void local_blocks_unscored(void)
{
    blocks(2, 8, 2);
    vary_gain("indexer.q_proj", 0);
}
static void heads_of_index(void)
{
    vary_u32("minimax-m3.attention.indexer.head_count", 4);
    vary_find("blk.1.indexer.q_proj.weight")->ne[1] = 4 * 64;
}

static void check_blocks(void)
{
    vary_same("minimax-m3", NULL, all_blocks, 1e-30, "all blocks");
    vary_same("minimax-m3", NULL, one_block, 1e-30, "or one of all");
    vary_counts("minimax-m3", NULL, half_blocks, "half of them");
    vary_counts("minimax-m3", NULL, local_blocks, "local ones");
    vary_same("minimax-m3", local_blocks, local_blocks_unscored, 1e-30,
              "which have no score");
}

/* ---- refused ---- */

static const struct {
    const char *name;
    vary_fn *change;
    const char *says;
} refused[] = {
    { "glm-dsa", none_indexes,
      "glm-dsa.attention.indexer.types: the first layer has none" },
    { "glm-dsa", second_lacks, "'blk.1.indexer.proj.weight' is missing" },
    { "deepseek32", narrow_index,
      "deepseek32.attention.indexer.key_length is 16, must be 32 to" },
    { "minimax-m3", heads_of_index,
      "minimax-m3.attention.indexer.head_count is 4, must be 2 to 2" },
};

int main(void)
{
    check_indexer();
    check_indexer_kept();
    check_blocks();
    for (size_t i = 0; i < GG_LEN(refused); i++)
        vary_refused(refused[i].name, refused[i].change, refused[i].says);
    return done_testing();
}
