/* SPDX-License-Identifier: MIT */
/* check-lies.c - numbers that no model can have, or that differ from what its
 * tensors say: refused with the key, or the tensor, named */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, REAL, TEXT, GONE, SHORT, LONG, REALS, TEXTS };

static const struct lie {
    const char *model, *key; /* after the architecture's name */
    enum kind kind;
    uint32_t v; /* a number, or each of an array */
    const char *says;
} lies[] = {
#define KEY(MODEL, KEY, KIND, V)                                              \
    {                                                                         \
        MODEL, KEY, KIND, V, "." KEY                                          \
    }
    KEY("llama", "block_count", NUMBER, 0),
    KEY("llama", "block_count", NUMBER, 1u << 31),
    KEY("llama", "block_count", NUMBER, UINT32_MAX),
    KEY("llama", "block_count", GONE, 0),
    KEY("llama", "block_count", REAL, 2),
    KEY("llama", "block_count", TEXT, 0),
    KEY("llama", "context_length", NUMBER, 0),
    KEY("llama", "embedding_length", NUMBER, 0),
    KEY("llama", "embedding_length", NUMBER, UINT32_MAX),
    KEY("llama", "feed_forward_length", NUMBER, 0),
    KEY("llama", "feed_forward_length", SHORT, 192),
    KEY("llama", "feed_forward_length", TEXTS, 0),
    KEY("llama", "vocab_size", NUMBER, 0),
    KEY("llama", "vocab_size", NUMBER, 1u << 31),
    KEY("llama", "attention.head_count", NUMBER, 0),
    KEY("llama", "attention.head_count", NUMBER, 3),
    KEY("llama", "attention.head_count", NUMBER, 1u << 31),
    KEY("llama", "attention.head_count", GONE, 0),
    KEY("llama", "attention.head_count", SHORT, 4),
    KEY("llama", "attention.head_count_kv", NUMBER, 0),
    { "llama", "attention.head_count_kv", NUMBER, 3,
      "llama.attention.head_count is 4, no multiple of head_count_kv 3" },
    KEY("llama", "attention.head_count_kv", SHORT, 2),
    KEY("llama", "attention.head_count_kv", LONG, 2),
    KEY("llama", "attention.head_count_kv", REALS, 2),
    KEY("llama", "attention.head_count_kv", TEXTS, 2),
    KEY("llama", "attention.key_length", NUMBER, 0),
    KEY("llama", "attention.key_length", NUMBER, UINT32_MAX),
    { "llama", "attention.key_length", NUMBER, 64,
      "tensor 'blk.0.attn_q.weight' has shape" },
    KEY("llama", "attention.layer_norm_rms_epsilon", GONE, 0),
    KEY("llama", "attention.layer_norm_rms_epsilon", REAL, 7),
    KEY("llama", "rope.dimension_count", NUMBER, 0),
    KEY("llama", "rope.dimension_count", NUMBER, 3),
    KEY("llama", "rope.dimension_count", NUMBER, 34),
    KEY("llama", "rope.freq_base", REAL, 0),
    KEY("llama", "rope.scaling.type", TEXT, 0),
    KEY("llama", "rope.scaling.factor", REAL, 0),
    /* experts */
    KEY("llama", "expert_used_count", NUMBER, 2),
    { "llama-moe", "expert_count", NUMBER, 8,
      "tensor 'blk.0.ffn_gate_inp.weight' has shape" },
    KEY("llama-moe", "expert_count", NUMBER, UINT32_MAX),
    KEY("llama-moe", "expert_used_count", NUMBER, 0),
    KEY("llama-moe", "expert_used_count", NUMBER, 5),
    KEY("llama-moe", "expert_used_count", GONE, 0),
    { "llama-moe", "expert_count", NUMBER, 1,
      "llama.expert_used_count is 2, must be 1 to 1" },
    { "llama-moe", "expert_count", NUMBER, 0,
      "llama.expert_used_count is 2, must be 0 to 0" },
    KEY("qwen2moe", "expert_used_count", NUMBER, 99),
    KEY("deepseek", "leading_dense_block_count", NUMBER, UINT32_MAX),
    /* states */
    KEY("mamba", "ssm.inner_size", NUMBER, 0),
    KEY("mamba", "ssm.state_size", NUMBER, 0),
    KEY("mamba", "ssm.conv_kernel", NUMBER, 0),
    KEY("mamba", "ssm.conv_kernel", GONE, 0),
    KEY("mamba", "ssm.time_step_rank", NUMBER, UINT32_MAX),
    KEY("mamba2", "ssm.group_count", NUMBER, 0),
    { "mamba2", "ssm.group_count", NUMBER, 3,
      "ssm.time_step_rank is 8, must divide inner_size 256 and be a multiple "
      "of group_count 3" },
    KEY("mamba2", "ssm.time_step_rank", NUMBER, 7),
    KEY("rwkv7", "wkv.head_size", NUMBER, 0),
    KEY("rwkv6", "wkv.head_size", NUMBER, 0),
    KEY("rwkv6", "token_shift_count", NUMBER, 9),
    KEY("lfm2", "shortconv.l_cache", NUMBER, 0),
    KEY("lfm2", "attention.head_count_kv", SHORT, 2),
    KEY("kimi-linear", "kda.head_dim", NUMBER, 0),
    /* latent attention, windows, drafts */
    KEY("deepseek2", "attention.kv_lora_rank", NUMBER, 0),
    KEY("deepseek2", "attention.kv_lora_rank", GONE, 0),
    KEY("gemma2", "attention.sliding_window", NUMBER, UINT32_MAX),
    KEY("glm4", "nextn_predict_layers", NUMBER, 7),
    KEY("minicpm3", "attention.q_lora_rank", TEXT, 0),
    /* blocks and streams, ids */
    KEY("deepseek4-moe", "attention.compress_ratios", NUMBER, 4),
    KEY("deepseek4-moe", "attention.compress_ratios", SHORT, 4),
    KEY("deepseek4-moe", "attention.compress_ratios", LONG, UINT32_MAX),
    KEY("deepseek4-moe", "attention.compress_ratios", TEXTS, 0),
    KEY("deepseek4-moe", "attention.output_group_count", NUMBER, 0),
    KEY("deepseek4-moe", "attention.output_group_count", NUMBER, 3),
    KEY("deepseek4-moe", "attention.indexer.top_k", NUMBER, 0),
    KEY("deepseek4-moe", "attention.indexer.key_length", NUMBER, 16),
    KEY("deepseek4-moe", "hyper_connection.count", NUMBER, 0),
    KEY("deepseek4-moe", "hyper_connection.count", NUMBER, UINT32_MAX),
    KEY("deepseek4-moe", "hyper_connection.epsilon", REAL, 2),
    KEY("deepseek4-moe", "hyper_connection.sinkhorn_iterations", NUMBER,
        1u << 31),
    KEY("deepseek4-moe", "hash_layer_count", NUMBER, UINT32_MAX),
    { "deepseek4-moe", "hash_layer_count", NUMBER, 1,
      "tensor 'blk.0.ffn_gate_tid2eid.weight' is missing" },
    KEY("t5", "decoder_start_token_id", NUMBER, 128),
    KEY("t5", "decoder_start_token_id", NUMBER, UINT32_MAX),
#undef KEY
};

static const struct lie *lie;

static void put(void)
{
    static const char *const text = "odd";
    struct gguf_meta *meta = vary_model.g.meta;
    const struct gguf_kv *kv = gguf_meta_find(meta, "general.architecture");
    struct gguf_str arch;
    char key[128];
    uint32_t v[3];
    float f[3];
    struct gguf_str s[3];
    vary_must(gguf_kv_get_str(kv, &arch, NULL));
    snprintf(key, sizeof key, "%.*s.%s", (int)arch.size, arch.data, lie->key);
    for (int i = 0; i < 3; i++) {
        v[i] = lie->v;
        f[i] = (float)lie->v;
        s[i] = (struct gguf_str){ text, strlen(text) };
    }
    switch (lie->kind) {
    case NUMBER: vary_u32(key, lie->v); break;
    case REAL: vary_f32(key, (float)lie->v); break;
    case TEXT: vary_str(key, text); break;
    case GONE: vary_drop(key); break;
    case SHORT: /* of two layers */
        vary_must(gguf_meta_set_array(meta, key, GGUF_VAL_U32, v, 1, NULL));
        break;
    case LONG:
        vary_must(gguf_meta_set_array(meta, key, GGUF_VAL_U32, v, 3, NULL));
        break;
    case REALS:
        vary_must(gguf_meta_set_array(meta, key, GGUF_VAL_F32, f, 2, NULL));
        break;
    case TEXTS: vary_must(gguf_meta_set_str_array(meta, key, s, 2, NULL));
    }
}

int main(void)
{
    static float out[VARY_N * VARY_V];
    for (size_t i = 0; i < GG_LEN(lies); i++) {
        struct gguf_error err;
        lie = &lies[i];
        const bool opens =
            vary_outputs(lie->model, put, VARY_N, VARY_N, out, &err);
        ok(!opens && strstr(err.message, lie->says) != NULL, "%s, %s: %s",
           lie->model, lie->key, opens ? "is evaluated" : err.message);
    }
    return done_testing();
}
