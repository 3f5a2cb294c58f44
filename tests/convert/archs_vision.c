/* SPDX-License-Identifier: MIT */
/* archs_vision.c - what models that see have of language */
#include "config.h"
#include "tests/convert/archs.h"

/* Each of 4 or 2 rows of 8: in pairs. */
static float paired_8(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t in = i % 8;
    return folder_value(t->name, i / 8 * 8 + in % 2 * 4 + in / 2);
}

#define SEEN "visual.blocks.0.attn.qkv.weight 12 4\n"
/* As transformers has them since 4.52. */
#define ML "model.language_model."
#define IN "layers.%."
#define PART_TOP(P)                                                           \
    P "embed_tokens.weight 260 32\n" P "norm.weight 32\n" P IN                \
      "input_layernorm.weight 32\n" P IN                                      \
      "post_attention_layernorm.weight 32\n" P IN                             \
      "mlp.gate_proj.weight 48 32\n" P IN "mlp.up_proj.weight 48 32\n" P IN   \
      "mlp.down_proj.weight 32 48\n" P IN                                     \
      "self_attn.q_proj.weight 32 32\n" P IN                                  \
      "self_attn.k_proj.weight 16 32\n" P IN                                  \
      "self_attn.v_proj.weight 16 32\n" P IN                                  \
      "self_attn.o_proj.weight 32 32\n"
#define PART_B(P)                                                             \
    P IN "self_attn.q_proj.bias 32\n" P IN "self_attn.k_proj.bias 16\n" P IN  \
         "self_attn.v_proj.bias 16\n"

const struct arch archs_vision[] = {
    { .class_name = "Qwen2VLForConditionalGeneration",
      "qwen2vl",
      SIZES ",\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[2,1,1]}",
      TOP HEAD QKV QKV_B NORMS MLP SEEN,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { B "attn_k.bias", L "self_attn.k_proj.bias", same } },
      { { "rope.dimension_sections", "2,1,1,0" },
        { "rope.scaling.type", "" } } },
    { .class_name = "Qwen2_5_VLForConditionalGeneration",
      "qwen2vl",
      SIZES ",\"rope_scaling\":{\"rope_type\":\"default\",\"mrope_section\":"
            "[2,1,1]}",
      PART_TOP(ML) PART_B(ML) HEAD "model." SEEN,
      { { B "attn_v.weight", ML IN "self_attn.v_proj.weight", same },
        { "output.weight", "lm_head.weight", same } },
      { { "rope.dimension_sections", "2,1,1,0" } } },
    { .class_name = "Qwen2_5OmniModel",
      "qwen2vl",
      "\"thinker_config\":{\"text_config\":{" SIZES
      ",\"rope_scaling\":{\"type\":\"default\",\"mrope_section\":[2,1,1]}}}",
      PART_TOP("thinker.model.") PART_B(
          "thinker.model.") "thinker.lm_head.weight 260 32\nthinker." SEEN
                            "thinker.audio_tower.conv1.weight 4 4 3\ntalker.codec_head.weight 8 8\n"
                            "token2wav.code2wav_dit_model.proj.weight 8 8\n",
      { { B "attn_q.weight", "thinker.model.layers.%.self_attn.q_proj.weight",
          same },
        { "output.weight", "thinker.lm_head.weight", same } },
      { { "rope.dimension_sections", "2,1,1,0" },
        { "embedding_length", "32" } } },
    { .class_name = "Qwen3VLForConditionalGeneration",
      "qwen3vl",
      "\"text_config\":{" SIZES
      ",\"head_dim\":8,\"rope_scaling\":{\"rope_type\":\"default\","
      "\"mrope_interleaved\":true,\"mrope_section\":[2,1,1]}},"
      "\"vision_config\":{\"deepstack_visual_indexes\":[1]}",
      PART_TOP(ML) ML IN "self_attn.q_norm.weight 8\n" ML IN
                         "self_attn.k_norm.weight 8\n"
                         "model." SEEN,
      { { B "attn_q_norm.weight", ML IN "self_attn.q_norm.weight", same } },
      { { "rope.dimension_sections", "2,1,1,0" },
        { "n_deepstack_layers", "1" } } },
    { .class_name = "PaddleOCRVLForConditionalGeneration",
      "paddleocr",
      SIZES ",\"head_dim\":8,\"rope_scaling\":{\"rope_type\":\"default\","
            "\"type\":\"default\",\"mrope_section\":[2,1,1]}",
      TOP HEAD QKV NORMS MLP SEEN "mlp_AR.linear_1.weight 8 8\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same } },
      { { "rope.dimension_sections", "2,1,1,0" } } },
    { .class_name = "HunYuanVLForConditionalGeneration",
      "hunyuan_vl",
      SIZES ",\"head_dim\":8,\"tie_word_embeddings\":true,\"num_experts\":1,"
            "\"rope_scaling\":{\"type\":\"xdrope\",\"alpha\":1000.0,"
            "\"factor\":1.0,\"xdrope_section\":[1,1,1,1]}",
      TOP HEAD QKV NORMS MLP "vit.layers.0.self_attn.q_proj.weight 8 8\n" L
                             "self_attn.query_layernorm.weight 8\n" L
                             "self_attn.key_layernorm.weight 8\n",
      { { B "attn_q_norm.weight", L "self_attn.query_layernorm.weight", same },
        { B "attn_k_norm.weight", L "self_attn.key_layernorm.weight", same } },
      { { "rope.dimension_sections", "1,1,1,1" },
        { "rope.scaling.alpha", "1000" },
        { "rope.scaling.type", "none" },
        { "rope.scaling.original_context_length", "64" },
        { "rope.freq_base", "10000" },
        { "expert_count", "" } } },
    { .class_name = "HunYuanVLForConditionalGeneration",
      "hunyuan_vl",
      SIZES ",\"head_dim\":8,\"rope_parameters\":{\"rope_type\":\"dynamic\","
            "\"alpha\":500.0,\"mrope_section\":[1,1,1,1]}",
      TOP HEAD QKV NORMS MLP L "self_attn.query_layernorm.weight 8\n" L
                               "self_attn.key_layernorm.weight 8\n",
      { { "output.weight", "lm_head.weight", same } },
      { { "rope.dimension_sections", "1,1,1,1" },
        { "rope.scaling.alpha", "500" },
        { "rope.scaling.factor", "1" } } },
    { .class_name = "CogVLMForCausalLM",
      "cogvlm",
      SIZES_KV("4"),
      TOP HEAD NORMS L
      "self_attn.language_expert_query_key_value.weight 96 32\n" L
      "self_attn.language_expert_dense.weight 32 32\n" L
      "self_attn.vision_expert_query_key_value.weight 96 32\n" L
      "self_attn.vision_expert_dense.weight 32 32\n" L
      "mlp.language_mlp.gate_proj.weight 48 32\n" L
      "mlp.language_mlp.up_proj.weight 48 32\n" L
      "mlp.language_mlp.down_proj.weight 32 48\n" L
      "mlp.vision_mlp.gate_proj.weight 48 32\n" L
      "mlp.vision_mlp.up_proj.weight 48 32\n" L
      "mlp.vision_mlp.down_proj.weight 32 48\n"
      "model.vision.boi 1 1 32\n",
      { { B "attn_qkv.weight",
          L "self_attn.language_expert_query_key_value.weight", same },
        { B "vis_attn_qkv.weight",
          L "self_attn.vision_expert_query_key_value.weight", same },
        { B "vis_up.weight", L "mlp.vision_mlp.up_proj.weight", same },
        { B "ffn_up.weight", L "mlp.language_mlp.up_proj.weight", same } },
      { { "rope.dimension_count", "8" } } },
    { .class_name = "ChameleonForConditionalGeneration",
      "chameleon",
      SIZES ",\"swin_norm\":true",
      TOP HEAD QKV NORMS MLP
      "model.vqmodel.quantize.embedding.weight 8 8\n" L
      "self_attn.q_norm.weight 4 8\n" L "self_attn.q_norm.bias 4 8\n" L
      "self_attn.k_norm.weight 2 8\n" L "self_attn.k_norm.bias 2 8\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired },
        { B "attn_q_norm.weight", L "self_attn.q_norm.weight", paired_8 },
        { B "attn_k_norm.weight", L "self_attn.k_norm.weight", paired_8 },
        { B "attn_k_norm.bias", L "self_attn.k_norm.bias", paired_8 } },
      { { "swin_norm", "true" } } },
    { .class_name = NULL },
};
