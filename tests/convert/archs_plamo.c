/* SPDX-License-Identifier: MIT */
/* archs_plamo.c - the PLaMo models */
#include "config.h"
#include "tests/convert/archs.h"

#include <math.h>

#define P  "model.layers.layers.%."
#define P0 "model.layers.layers.0."
#define P1 "model.layers.layers.1."

/* Four heads of 8 for two of keys, which take turns: 0, 2, 1, 3. */
static uint64_t turn(uint64_t head)
{
    return head == 1 || head == 2 ? 3 - head : head;
}

static float shared_rows(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / 32, col = i % 32;
    return folder_value(t->name, (turn(row / 8) * 8 + row % 8) * 32 + col);
}

static float shared_cols(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / 32, col = i % 32;
    return folder_value(t->name, row * 32 + turn(col / 8) * 8 + col % 8);
}

static float plus_5th(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i) + 0.2f;
}

static float plus_11th(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i) + (float)(1 / pow(5, 1.5));
}

/* The norms and the matrices besides attention of both. */
#define PLAMO2                                                                \
    "model.embed_tokens.weight 260 32\nmodel.norm.weight 32\n" P              \
    "pre_mixer_norm.weight 32\n" P "post_mixer_norm.weight 32\n" P            \
    "pre_mlp_norm.weight 32\n" P "post_mlp_norm.weight 32\n" P                \
    "mlp.gate_up_proj.weight 96 32\n" P "mlp.down_proj.weight 32 48\n"

const struct arch archs_plamo[] = {
    { .class_name = "PlamoForCausalLM",
      "plamo",
      SIZES_KV("1") ",\"n_shared_head\":2",
      "model.embed_tokens.weight 260 32\nmodel.norm.weight 32\n" HEAD P
      "norm.weight 32\n" P "self_attn.q_proj.weight 32 32\n" P
      "self_attn.k_proj.weight 16 32\n" P "self_attn.v_proj.weight 16 32\n" P
      "self_attn.o_proj.weight 32 32\n" P "self_attn.rotary_emb.inv_freq 4\n" P
      "mlp.gate_proj.weight 48 32\n" P "mlp.up_proj.weight 48 32\n" P
      "mlp.down_proj.weight 32 48\n",
      { { B "attn_q.weight", P "self_attn.q_proj.weight", shared_rows },
        { B "attn_output.weight", P "self_attn.o_proj.weight", shared_cols },
        { B "attn_k.weight", P "self_attn.k_proj.weight", same } },
      { { "attention.head_count_kv", "2" }, { "context_length", "4096" } } },
    /* of two layers the second has attention: four heads of 8, two of keys; the
     * first two heads of 8 numbers with a state of 4 each */
    { .class_name = "Plamo2ForCausalLM",
      "plamo2",
      SIZES ",\"mamba_step\":2,\"mamba_d_state\":4,\"mamba_d_conv\":4,"
            "\"mamba_num_heads\":2,\"hidden_size_per_head\":8",
      PLAMO2 P0
      "mixer.in_proj.weight 32 32\n" P0 "mixer.conv1d.weight 16 1 4\n" P0
      "mixer.bcdt_proj.weight 72 16\n" P0 "mixer.dt_proj.weight 2 64\n" P0
      "mixer.dt_bias 2\n" P0 "mixer.A_log 2\n" P0 "mixer.D 2\n" P0
      "mixer.dt_norm_weight 64\n" P0 "mixer.B_norm_weight 4\n" P0
      "mixer.C_norm_weight 4\n" P0 "mixer.out_proj.weight 32 16\n" P1
      "mixer.qkv_proj.weight 64 32\n" P1 "mixer.q_weight 4 8\n" P1
      "mixer.k_weight 2 8\n" P1 "mixer.o_proj.weight 32 32\n",
      { { B "attn_norm.weight", P "pre_mixer_norm.weight", plus_1 },
        { B "post_attention_norm", P "post_mixer_norm.weight", plus_5th },
        { B "post_ffw_norm", P "post_mlp_norm.weight", plus_11th },
        { "output_norm.weight", "model.norm.weight", plus_1 },
        { "blk.0.ssm_a", P0 "mixer.A_log", neg_exp },
        { "blk.0.ssm_b_norm", P0 "mixer.B_norm_weight", same },
        { "blk.0.ssm_dt.bias", P0 "mixer.dt_bias", same },
        { "blk.1.attn_q_norm.weight", P1 "mixer.q_weight", same } },
      { { "attention.head_count", "0,4" },
        { "attention.head_count_kv", "0,2" },
        { "ssm.inner_size", "16" },
        { "ssm.group_count", "0" },
        { "ssm.time_step_rank", "2" } },
      .vocab = archs_plamo2 },
    { .class_name = "Plamo3ForCausalLM",
      "plamo3",
      SIZES ",\"head_dim\":8,\"window_size\":16,\"sliding_window_pattern\":2,"
            "\"rope_local_theta\":5000",
      PLAMO2 P "mixer.qkv_proj.weight 64 32\n" P "mixer.q_norm.weight 8\n" P
               "mixer.k_norm.weight 8\n" P "mixer.o_proj.weight 32 32\n",
      { { B "attn_q_norm.weight", P "mixer.q_norm.weight", plus_1 },
        { B "ffn_up.weight", P "mlp.gate_up_proj.weight", same } },
      { { "attention.sliding_window", "16" },
        { "attention.sliding_window_pattern", "2" },
        { "rope.freq_base_swa", "5000" } },
      .vocab = archs_plamo2 },
    { .class_name = NULL },
};
