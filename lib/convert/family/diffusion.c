/* SPDX-License-Identifier: MIT */
/* diffusion.c - classes of models of diffusion over texts */
#include "config.h"
#include "convert/class_row.h"

/* Diffusion models: bidirectional, with a mask token. */
#define DIFFUSION                                                             \
    ALWAYS("attention.causal", BOOL, 0),                                      \
        ALWAYS("/diffusion.shift_logits", BOOL, 0)

#define T  "model.transformer."
#define TB T "blocks.%."

static const struct gg_convert_name llada_names[] = {
    N(T "wte", "token_embd"),
    N(T "ln_f", "output_norm"),
    N(T "ff_out", "output"),
    N(TB "attn_norm", B "attn_norm"),
    N_AXES(TB "q_proj", B "attn_q", "h 2 d, * > h d 2, *"),
    N_AXES(TB "k_proj", B "attn_k", "k 2 d, * > k d 2, *"),
    N(TB "v_proj", B "attn_v"),
    N(TB "attn_out", B "attn_output"),
    N(TB "ff_norm", B "ffn_norm"),
    N(TB "ff_proj", B "ffn_gate"),
    N(TB "up_proj", B "ffn_up"),
    N(TB "ff_out", B "ffn_down"),
    END_NAMES
};

static double head_dim(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "head_dim",
                  floor(num_of(cfg, "d_model hidden_size") /
                        num_of(cfg, "num_attention_heads n_head n_heads")));
}

const struct gg_convert_arch gg_convert_family_diffusion[] = {
    /* attention is bidirectional */
    { .classes = "DreamModel",
      .arch = "dream",
      .names = LLAMA,
      .keys = ROWS(ALWAYS("attention.causal", BOOL, 0),
                   U32("/tokenizer.ggml.mask_token_id", "mask_token_id")) },
    { .classes = "RND1",
      .arch = "rnd1",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF, ALWAYS("attention.causal", BOOL, 0),
                   U32("/tokenizer.ggml.mask_token_id", "mask_token_id")) },
    { .classes = "LLaDAModelLM",
      .model_type = "llada",
      .instead = { { "num_hidden_layers", "n_layers" },
                   { "num_attention_heads", "n_heads" },
                   { "num_key_value_heads", "n_kv_heads" },
                   { "hidden_size", "d_model" },
                   { "intermediate_size", "mlp_hidden_size" } },
      .arch = "llada",
      .names = { llada_names },
      .keys =
          ROWS(VOCAB_SIZE, OF("rope.dimension_count", U32, head_dim, NO_BACK),
               ELSE("context_length", U32, "max_sequence_length", 4096),
               U32("embedding_length", "d_model hidden_size"),
               U32("feed_forward_length", "mlp_hidden_size intermediate_size"),
               DIFFUSION),
      .last = BEGINS },
    { .classes = "LLaDAMoEModelLM LLaDAMoEModel",
      .model_type = "llada",
      .arch = "llada-moe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(
          U32("expert_feed_forward_length", "expert_intermediate_size"),
          ALWAYS("/tokenizer.ggml.mask_token_id", U32, 156895), DIFFUSION) },
    { .classes = NULL }
};
