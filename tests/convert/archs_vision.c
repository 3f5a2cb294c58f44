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
/* And before. */
#define LM          "language_model.model."
#define LM_HEAD     "language_model.lm_head.weight 260 32\n"
#define IN          "layers.%."
#define PART_TOP(P) PART_TOP_OF(P, "input_layernorm")
#define PART_TOP_OF(P, NORM)                                                  \
    P "embed_tokens.weight 260 32\n" P                                        \
      "norm.weight 32\n" PART_LAYER(P IN, NORM)
#define PART_LAYER(P, NORM)                                                   \
    P NORM                                                                    \
        ".weight 32\n" P "post_attention_layernorm.weight 32\n" P             \
        "mlp.gate_proj.weight 48 32\n" P "mlp.up_proj.weight 48 32\n" P       \
        "mlp.down_proj.weight 32 48\n" P "self_attn.q_proj.weight 32 32\n" P  \
        "self_attn.k_proj.weight 16 32\n" P                                   \
        "self_attn.v_proj.weight 16 32\n" P "self_attn.o_proj.weight 32 32\n"
#define PART_NORM(P)                                                          \
    P IN "self_attn.q_norm.weight 8\n" P IN "self_attn.k_norm.weight 8\n"
#define PART_B(P)                                                             \
    P IN "self_attn.q_proj.bias 32\n" P IN "self_attn.k_proj.bias 16\n" P IN  \
         "self_attn.v_proj.bias 16\n"

/* The first 4 of 8 rows of a head, from pairs to halves: 0 2 1 3. */
static float half_paired(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t cols = t->n_dims > 1 ? t->shape[1] : 1;
    const uint64_t row = i / cols, in = row % 8;
    const uint64_t from = in == 1 ? 2 : in == 2 ? 1 : in;
    return folder_value(t->name, (row - in + from) * cols + i % cols);
}

/* All 8 rows of a head: 0 2 4 6 1 3 5 7. */
static float unpaired(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t cols = t->shape[1], row = i / cols, in = row % 8;
    const uint64_t from = in % 4 * 2 + in / 4;
    return folder_value(t->name, (row - in + from) * cols + i % cols);
}

#define GLM_NORMS(P)                                                          \
    P "post_self_attn_layernorm.weight 32\n" P "post_mlp_layernorm.weight 32\n"
#define GLM_LAYER(P)                                                          \
    P "input_layernorm.weight 32\n" P                                         \
      "post_attention_layernorm.weight 32\n" P                                \
      "mlp.gate_up_proj.weight 96 32\n" P "mlp.down_proj.weight 32 48\n" P    \
      "self_attn.q_proj.weight 32 32\n" P "self_attn.k_proj.weight 16 32\n" P \
      "self_attn.v_proj.weight 16 32\n" P                                     \
      "self_attn.o_proj.weight 32 32\n" GLM_NORMS(P)

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
    /* of classes that are not known, but their language model's is */
    { .class_name = "Idefics3ForConditionalGeneration",
      "llama",
      "\"text_config\":{\"architectures\":[\"LlamaForCausalLM\"]," SIZES
      "},\"vision_config\":{\"hidden_size\":8}",
      PART_TOP("model.text_model.") HEAD
      "model.vision_model.embeddings.position_embedding.weight 4 8\n"
      "model.connector.modality_projection.proj.weight 32 8\n",
      { { B "attn_k.weight", "model.text_model." IN "self_attn.k_proj.weight",
          paired } },
      { { "embedding_length", "32" } } },
    { .class_name = "InternVLChatModel",
      "qwen2",
      "\"llm_config\":{\"architectures\":[\"Qwen2ForCausalLM\"]," SIZES "}",
      PART_TOP(LM) PART_B(LM) LM_HEAD "mlp1.1.weight 32 8\n"
                                      "vision_model.encoder.layers.0.ls1 8\n",
      { { "output.weight", "language_model.lm_head.weight", same } },
      { { "embedding_length", "32" } } },
    { .class_name = "LlavaForConditionalGeneration",
      "qwen2",
      "\"text_config\":{\"architectures\":[\"Qwen2ForCausalLM\"]," SIZES "}",
      PART_TOP(LM) PART_B(LM) LM_HEAD
      "multi_modal_projector.linear_1.weight 32 8\n",
      { { B "attn_q.weight", LM IN "self_attn.q_proj.weight", same } },
      { { "embedding_length", "32" } } },
    { .class_name = "LlavaForConditionalGeneration",
      "llama",
      "\"text_config\":{\"model_type\":\"mistral\"," SIZES "}",
      PART_TOP(LM) LM_HEAD "vision_tower.patch_conv.weight 8 3 2 2\n",
      { { B "attn_q.weight", LM IN "self_attn.q_proj.weight", paired } },
      { { "rope.dimension_count", "8" } } },
    { .class_name = "JanusForConditionalGeneration",
      "llama",
      "\"text_config\":{\"model_type\":\"llama\"," SIZES "}",
      PART_TOP(ML) HEAD "model.aligner.fc1.weight 32 8\n"
                        "model.generation_aligner.fc1.weight 32 8\n"
                        "model.generation_embeddings.weight 8 8\n"
                        "model.generation_head.proj_out.weight 32 32\n"
                        "model.vision_model.post_layernorm.weight 8\n"
                        "model.vqmodel.quantize.embedding.weight 8 8\n",
      { { B "attn_q.weight", ML IN "self_attn.q_proj.weight", paired } },
      { { "rope.dimension_count", "8" } } },
    { .class_name = "Sarashina2VisionForCausalLM",
      "llama",
      "\"text_config\":{\"architectures\":[\"LlamaForCausalLM\"]," SIZES "}",
      PART_TOP("llm.model.") "llm.lm_head.weight 260 32\nnorm.weight 8\n" SEEN,
      { { B "attn_q.weight", "llm.model." IN "self_attn.q_proj.weight",
          paired },
        { "output_norm.weight", "llm.model.norm.weight", same } },
      { { "rope.dimension_count", "8" } } },
    { .class_name = "StepVLForConditionalGeneration",
      "qwen3",
      "\"text_config\":{\"architectures\":[\"Qwen3ForCausalLM\"]," SIZES
      ",\"head_dim\":8}",
      TOP HEAD QKV QK_NORM NORMS MLP
      "vision_model.conv1.weight 8 3 2 2\nvit_large_projector.weight 32 8\n",
      { { B "attn_q_norm.weight", L "self_attn.q_norm.weight", same } },
      { { "attention.key_length", "8" } } },
    { .class_name = "LlavaStableLMEpochForCausalLM",
      "stablelm",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"num_key_value_heads\":2,"
      "\"vocab_size\":260,\"max_position_embeddings\":64,\"rope_pct\":0.5,"
      "\"norm_eps\":1e-5,\"rope_theta\":10000.0",
      TOP HEAD QKV NORMS MLP
      "model.norm.bias 32\n" L "input_layernorm.bias 32\n" L
      "post_attention_layernorm.bias 32\nmodel.mm_projector.0.weight 32 8\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same } },
      { { "rope.dimension_count", "4" },
        { "attention.layer_norm_epsilon", "1e-05" } } },
    { .class_name = "YoutuVLForConditionalGeneration",
      "deepseek2",
      SIZES_HEADS(
          "\"intermediate_size\":48,\"num_hidden_layers\":2,"
          "\"num_key_value_heads\":4,") ",\"q_lora_rank\":16,"
                                        "\"kv_lora_rank\":16,\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":4,"
                                        "\"v_head_dim\":8",
      TOP HEAD NORMS MLP L
      "self_attn.q_a_proj.weight 16 32\n" L
      "self_attn.q_a_layernorm.weight 16\n" L
      "self_attn.q_b_proj.weight 48 16\n" L
      "self_attn.kv_a_proj_with_mqa.weight 20 32\n" L
      "self_attn.kv_a_layernorm.weight 16\n" L
      "self_attn.kv_b_proj.weight 64 16\n" L "self_attn.o_proj.weight 32 32\n"
      "siglip2.vision_model.post_layernorm.weight 8\nmerger.ln_q.weight 8\n",
      { { B "attn_q_a.weight", L "self_attn.q_a_proj.weight", same } },
      { { "leading_dense_block_count", "2" },
        { "attention.key_length", "20" },
        { "expert_shared_count", "0" } } },
    { .class_name = "Exaone4_5_ForConditionalGeneration",
      "exaone4",
      "\"text_config\":{\"model_type\":\"exaone4_5_text\"," SIZES
      ",\"num_nextn_predict_layers\":1,\"sliding_window\":16,"
      "\"layer_types\":[\"sliding_attention\",\"full_attention\"]}",
      PART_TOP_OF(ML, "post_feedforward_layernorm") PART_NORM(ML) HEAD
      "model." SEEN "mtp.fc.weight 32 64\nmtp.norm.weight 32\n"
      "mtp.pre_fc_norm_embedding.weight 32\n"
      "mtp.pre_fc_norm_hidden.weight 32\n" PART_LAYER(
          "mtp.layers.0.",
          "post_feedforward_layernorm") "mtp.layers.0.self_attn.q_norm.weight 8\n"
                                        "mtp.layers.0.self_attn.k_norm.weight 8\n",
      { { B "post_ffw_norm.weight", ML IN "post_feedforward_layernorm.weight",
          same },
        { "blk.2.nextn.eh_proj.weight", "mtp.fc.weight", same },
        { "blk.2.attn_q.weight", "mtp.layers.0.self_attn.q_proj.weight",
          same },
        { "blk.2.nextn.shared_head_norm.weight", "mtp.norm.weight", same } },
      { { "block_count", "3" },
        { "nextn_predict_layers", "1" },
        { "attention.sliding_window_pattern", "true,false" } } },
    { .class_name = "Glm4vForConditionalGeneration",
      "glm4",
      "\"text_config\":{\"model_type\":\"glm4v_text\"," SIZES
      ",\"attention_bias\":true,\"partial_rotary_factor\":0.5,"
      "\"rope_scaling\":{\"type\":\"default\",\"mrope_section\":[1,1,0]}}",
      ML "embed_tokens.weight 260 32\n" ML "norm.weight 32\n" HEAD GLM_LAYER(
          ML IN) PART_B(ML) "model.visual.blocks.0.norm1.weight 8\n",
      { { B "attn_q.weight", ML IN "self_attn.q_proj.weight", half_paired },
        { B "attn_k.weight", ML IN "self_attn.k_proj.weight", half_paired },
        { B "attn_q.bias", ML IN "self_attn.q_proj.bias", half_paired },
        { B "attn_v.weight", ML IN "self_attn.v_proj.weight", same } },
      { { "rope.dimension_sections", "1,1,0,0" },
        { "rope.dimension_count", "4" } } },
    { .class_name = "GlmOcrForConditionalGeneration",
      "glm4",
      "\"text_config\":{\"model_type\":\"glm_ocr_text\"," SIZES
      ",\"head_dim\":8,\"num_nextn_predict_layers\":1,\"rope_parameters\":{"
      "\"rope_type\":\"default\",\"mrope_section\":[2,1,1],"
      "\"partial_rotary_factor\":1.0,\"rope_theta\":10000}}",
      ML "embed_tokens.weight 260 32\n" ML
         "norm.weight 32\n" HEAD GLM_LAYER(ML IN) GLM_LAYER(ML "layers.2.") ML
      "layers.2.eh_proj.weight 32 64\n" ML "layers.2.enorm.weight 32\n" ML
      "layers.2.hnorm.weight 32\n" ML
      "layers.2.embed_tokens.weight 260 32\n" ML
      "layers.2.shared_head.head.weight 260 32\n" ML
      "layers.2.shared_head.norm.weight 32\n"
      "model.visual.merger.proj.weight 8 8\n",
      { { B "attn_k.weight", ML IN "self_attn.k_proj.weight", unpaired },
        { "blk.2.attn_q.weight", ML "layers.2.self_attn.q_proj.weight",
          unpaired },
        { "blk.2.nextn.eh_proj.weight", ML "layers.2.eh_proj.weight", same } },
      { { "rope.dimension_sections", "2,1,1,0" },
        { "block_count", "3" },
        { "nextn_predict_layers", "1" },
        { "rope.dimension_count", "8" } } },
    { .class_name = "Qwen3ASRForConditionalGeneration",
      "qwen3vl",
      "\"thinker_config\":{\"text_config\":{" SIZES
      ",\"head_dim\":8,\"rope_scaling\":{\"rope_type\":\"default\","
      "\"interleaved\":true,\"mrope_section\":[2,1,1]}}}",
      PART_TOP("thinker.model.") PART_NORM(
          "thinker.model.") "thinker.lm_head.weight 260 32\n"
                            "thinker.audio_tower.conv2d1.weight 4 1 3 3\n",
      { { B "attn_q_norm.weight",
          "thinker.model." IN "self_attn.q_norm.weight", same } },
      { { "n_deepstack_layers", "0" },
        { "rope.dimension_sections", "2,1,1,0" },
        { "/tokenizer.ggml.bos_token_id", "" },
        { "/tokenizer.chat_template",
          "{% for message in messages %}{{'<|im_start|>' + message['role'] + "
          "'\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if "
          "add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif "
          "%}" } } },
    { .class_name = NULL },
};
