/* SPDX-License-Identifier: MIT */
/* hrm.c - classes of hierarchical reasoning models (HRM-Text)
 *
 * Names are those of published checkpoints, and those that transformers has in
 * memory (models/hrm_text). Keys are those that llama.cpp's converter writes
 * (conversion/hrm_text.py, September 2026).
 */
#include "config.h"
#include "convert/class_row.h"

/* Layers of a stack. transformers sets num_hidden_layers to the number of
 * computed layers once it has the other member. */
#define PER_STACK "num_layers_per_stack num_hidden_layers"

static double n_per_stack(const struct gg_hf_config *cfg)
{
    return num_of(cfg, PER_STACK);
}

static double n_computed(const struct gg_hf_config *cfg)
{
    return n_per_stack(cfg) * num_of(cfg, "H_cycles") *
           (num_of(cfg, "L_cycles") + 1);
}

static double scale_by_initializer(const struct gg_hf_config *cfg)
{
    return 1 / num_of(cfg, "initializer_range");
}

static double is_low(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_above(n_per_stack(cfg), (double)layer);
}

static void put_stacks(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_layers_per_stack",
                    num_of(&m->keys, "hrm.layers_per_stack"));
    gg_back_put_num(m, "num_hidden_layers", num_of(&m->keys, "block_count"));
}

/* First rows of keys and values in gqkv_proj, after those of gates and
 * queries. */
static double first_key_row(const struct gg_hf_config *cfg)
{
    return 2 * gg_convert_query_rows(cfg);
}

static double first_value_row(const struct gg_hf_config *cfg)
{
    return first_key_row(cfg) + gg_convert_key_rows(cfg);
}

static const struct gg_convert_size sizes[] = {
    { .name = "krow0", .of = first_key_row },
    { .name = "vrow0", .of = first_value_row },
    { .name = NULL }
};

/* Rows of both stacks. WHERE: layers of the file. */
#define S(MODULE, FROM, TO, HOW, WHERE)                                       \
    {                                                                         \
        .from = "model." MODULE ".layers.%." FROM, .to = B TO, HOW, WHERE     \
    }
#define AXES(TEXT)    .axes = TEXT
#define BY(TRANSFORM) .transform = &TRANSFORM
#define AS_IS         .axes = NULL
#define LOW           .only_if = is_low
#define HIGH          .first_layer = PER_STACK
#define STACK(MODULE, WHERE)                                                  \
    S(MODULE, "attn.gqkv_proj", "attn_gate", AXES("[qrows@0] x, * > x, *"),   \
      WHERE),                                                                 \
        S(MODULE, "attn.gqkv_proj", "attn_q",                                 \
          AXES("[qrows@qrows] x, * > x, *"), WHERE),                          \
        S(MODULE, "attn.gqkv_proj", "attn_k",                                 \
          AXES("[krows@krow0] x, * > x, *"), WHERE),                          \
        S(MODULE, "attn.gqkv_proj", "attn_v",                                 \
          AXES("[krows@vrow0] x, * > x, *"), WHERE),                          \
        S(MODULE, "attn.o_proj", "attn_output", AS_IS, WHERE),                \
        S(MODULE, "mlp.gate_up_proj", "ffn_gate", BY(HALF_1), WHERE),         \
        S(MODULE, "mlp.gate_up_proj", "ffn_up", BY(HALF_2), WHERE),           \
        S(MODULE, "mlp.down_proj", "ffn_down", AS_IS, WHERE),                 \
        S(MODULE, "self_attn.gate_proj", "attn_gate", AS_IS, WHERE),          \
        S(MODULE, "self_attn.q_proj", "attn_q", AS_IS, WHERE),                \
        S(MODULE, "self_attn.k_proj", "attn_k", AS_IS, WHERE),                \
        S(MODULE, "self_attn.v_proj", "attn_v", AS_IS, WHERE),                \
        S(MODULE, "self_attn.o_proj", "attn_output", AS_IS, WHERE),           \
        S(MODULE, "mlp.gate_proj", "ffn_gate", AS_IS, WHERE),                 \
        S(MODULE, "mlp.up_proj", "ffn_up", AS_IS, WHERE)

static const struct gg_convert_name stack_names[] = {
    N("model.z_L_init", "hrm.z_l_init"), STACK("L_module", LOW),
    STACK("H_module", HIGH), END_NAMES
};

const struct gg_convert_arch gg_convert_family_hrm[] = {
    { .classes = "HrmTextForCausalLM",
      .model_type = "hrm_text",
      .arch = "hrm_text",
      .back = put_stacks,
      .sizes = sizes,
      .names = OVER(stack_names),
      .keys = ROWS(OF("block_count", U32, n_computed, IN_BACK), ALL_ROT,
                   ELSE_OF("embedding_scale", F32, "embedding_scale",
                           scale_by_initializer),
                   OF("hrm.layers_per_stack", U32, n_per_stack, IN_BACK),
                   U32("hrm.h_cycles", "H_cycles"),
                   U32("hrm.l_cycles", "L_cycles"),
                   ELSE("hrm.prefix_lm", BOOL, "prefix_lm", 0)) },
    { .classes = NULL }
};
