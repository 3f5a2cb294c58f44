/* SPDX-License-Identifier: MIT */
/* check-tower-names.c - language models of classes with a projector
 *
 * A folder of each class with the names of published towers becomes a language
 * model without them, and the summary counts them. Names are those of the
 * models' definitions in transformers or their own repositories.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/folder_text.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char top[200];

/* Towers of DeepSeek-OCR and its kin. */
#define OCR_SAM                                                               \
    "model.sam_model.pos_embed model.sam_model.patch_embed.proj.weight "      \
    "model.sam_model.blocks.0.norm1.weight model.sam_model.neck.0.weight "    \
    "model.sam_model.net_2.weight model.sam_model.net_3.weight "
#define OCR_CLIP                                                              \
    "model.vision_model.embeddings.class_embedding "                          \
    "model.vision_model.pre_layrnorm.weight "                                 \
    "model.vision_model.transformer.layers.0.layer_norm1.weight "             \
    "model.projector.layers.weight model.image_newline model.view_seperator"

/* name: class. like: class whose folder has the language model; NULL: name.
 * inner: like is the class in text_config, and name has no row of its own.
 * towers: names of tensors, separated by blanks. */
struct model {
    const char *name, *like;
    bool inner;
    const char *towers;
};
static const struct model models[] = {
    { "CogVLMForCausalLM", NULL, false,
      "model.vision.boi model.vision.eoi "
      "model.vision.patch_embedding.cls_embedding "
      "model.vision.transformer.layers.0.input_layernorm.weight "
      "model.vision.linear_proj.linear_proj.weight" },
    { "DeepseekOCRForCausalLM", NULL, false, OCR_SAM OCR_CLIP },
    { "DeepseekOCR2ForCausalLM", "DeepseekOCRForCausalLM", false,
      OCR_SAM "model.qwen2_model.model.model.layers.0.input_layernorm.weight "
              "model.qwen2_model.model.model.norm.weight "
              "model.qwen2_model.query_768.weight "
              "model.qwen2_model.query_1024.weight "
              "model.projector.layers.weight model.view_seperator" },
    { "DotsOCRForCausalLM", "Qwen2ForCausalLM", false,
      "vision_tower.patch_embed.patchifier.proj.weight "
      "vision_tower.blocks.0.norm1.weight "
      "vision_tower.post_trunk_norm.weight "
      "vision_tower.merger.ln_q.weight" },
    { "Gemma3ForConditionalGeneration", "Gemma3ForCausalLM", false,
      "multi_modal_projector.mm_input_projection_weight "
      "multi_modal_projector.mm_soft_emb_norm.weight "
      "vision_tower.vision_model.embeddings.patch_embedding.weight" },
    { "Gemma3nForConditionalGeneration", "Gemma3nForCausalLM", false,
      "model.audio_tower.subsample_conv_projection.conv_0.conv.weight "
      "model.audio_tower.conformer.0.ffw_layer_start.pre_layer_norm.weight "
      "model.embed_audio.embedding.weight "
      "model.embed_audio.hard_embedding_norm.weight "
      "model.embed_audio.soft_embedding_norm.weight "
      "model.embed_audio.embedding_projection.weight "
      "model.embed_vision.embedding.weight "
      "model.embed_vision.hard_embedding_norm.weight "
      "model.embed_vision.soft_embedding_norm.weight "
      "model.embed_vision.embedding_projection.weight "
      "model.vision_tower.timm_model.conv_stem.conv.weight" },
    { "Gemma4UnifiedForConditionalGeneration", "Gemma4ForCausalLM", false,
      "model.vision_embedder.patch_ln1.weight "
      "model.vision_embedder.patch_dense.weight "
      "model.vision_embedder.patch_ln2.weight "
      "model.vision_embedder.pos_embedding "
      "model.vision_embedder.pos_norm.weight "
      "model.embed_vision.embedding_projection.weight "
      "model.embed_audio.embedding_projection.weight" },
    { "Gemma4ForConditionalGeneration", "Gemma4ForCausalLM", false,
      "model.vision_tower.patch_embedder.input_proj.weight "
      "model.vision_tower.encoder.layers.0.input_layernorm.weight "
      "model.embed_vision.embedding_projection.weight "
      "model.audio_tower.subsample_conv_projection.layer0.conv.weight "
      "model.audio_tower.layers.0.feed_forward1.pre_layer_norm.weight "
      "model.audio_tower.output_proj.weight "
      "model.embed_audio.embedding_projection.weight" },
    { "Glm4vForConditionalGeneration", NULL, false,
      "model.visual.patch_embed.proj.weight "
      "model.visual.post_conv_layernorm.weight "
      "model.visual.embeddings.position_embedding.weight "
      "model.visual.blocks.0.norm1.weight "
      "model.visual.post_layernorm.weight "
      "model.visual.downsample.weight "
      "model.visual.merger.proj.weight" },
    { "Glm4vMoeForConditionalGeneration", "Glm4MoeForCausalLM", false,
      "model.visual.patch_embed.proj.weight "
      "model.visual.post_conv_layernorm.weight "
      "model.visual.embeddings.position_embedding.weight "
      "model.visual.blocks.0.norm1.weight "
      "model.visual.post_layernorm.weight "
      "model.visual.downsample.weight "
      "model.visual.merger.proj.weight" },
    { "Glm5vForConditionalGeneration", "GlmMoeDsaForCausalLM", true,
      "vision_tower.patch_embed.proj.weight "
      "vision_tower.encoder.blocks.0.norm0.weight "
      "mm_projector.pre_norm.weight mm_projector.linear_1.weight "
      "mm_projector.linear_2.weight" },
    { "GlmasrModel", NULL, false,
      "audio_encoder.whisper.conv1.weight "
      "audio_encoder.layer_norm.weight "
      "audio_encoder.adapting.0.weight "
      "audio_encoder.audio_bos_eos_token.weight" },
    { "GraniteSpeechPlusForConditionalGeneration", NULL, false,
      "encoder.input_linear.weight "
      "encoder.layers.0.ff1.pre_norm.weight encoder.out.weight "
      "encoder.out_mid.weight projector.query "
      "projector.qformer.layernorm.weight projector.linear.weight" },
    { "GraniteSpeechForConditionalGeneration", NULL, false,
      "encoder.input_linear.weight "
      "encoder.layers.0.ff1.pre_norm.weight encoder.out.weight "
      "encoder.out_mid.weight projector.query "
      "projector.qformer.layernorm.weight projector.linear.weight" },
    { "Granite4VisionForConditionalGeneration", "GraniteForCausalLM", true,
      "model.vision_tower.vision_model.embeddings.patch_embedding.weight "
      "model.image_newline "
      "model.layerwise_projectors.0.image_positions "
      "model.layerwise_projectors.1.image_positions "
      "model.spatial_projectors.0.image_positions "
      "model.spatial_projectors.1.image_positions "
      "model.spatial_projectors.2.image_positions" },
    { "HunYuanVLForConditionalGeneration", NULL, false,
      "vit.embeddings.patch_embedding.weight "
      "vit.layers.0.input_layernorm.weight "
      "vit.perceive.proj.0.weight" },
    { "Idefics3ForConditionalGeneration", NULL, false,
      "model.vision_model.embeddings.patch_embedding.weight "
      "model.vision_model.encoder.layers.0.layer_norm1.weight "
      "model.vision_model.post_layernorm.weight "
      "model.connector.modality_projection.proj.weight" },
    { "InternVLChatModel", NULL, false,
      "model.vision_tower.embeddings.cls_token "
      "model.vision_tower.encoder.layer.0.attention.q_proj.weight "
      "model.multi_modal_projector.layer_norm.weight "
      "model.multi_modal_projector.linear_1.weight "
      "model.multi_modal_projector.linear_2.weight "
      "vision_model.embeddings.class_embedding "
      "vision_model.encoder.layers.0.attn.qkv.weight mlp1.0.weight "
      "mlp1.1.weight mlp1.3.weight" },
    { "JanusForConditionalGeneration", NULL, false,
      "model.vision_model.embeddings.patch_embedding.weight "
      "model.vision_model.encoder.layers.0.layer_norm1.weight "
      "model.vision_model.post_layernorm.weight "
      "model.aligner.fc1.weight "
      "model.aligner.hidden_layers.0.weight "
      "model.vqmodel.quantize.embedding.weight "
      "model.generation_embeddings.weight "
      "model.generation_aligner.fc1.weight "
      "model.generation_head.proj_out.weight" },
    { "KimiK25ForConditionalGeneration", "DeepseekV3ForCausalLM", false,
      "vision_tower.patch_embed.proj.weight "
      "vision_tower.encoder.blocks.0.norm0.weight "
      "mm_projector.pre_norm.weight mm_projector.proj.0.weight" },
    { "KimiVLForConditionalGeneration", "DeepseekV3ForCausalLM", false,
      "vision_tower.patch_embed.proj.weight "
      "vision_tower.encoder.blocks.0.norm0.weight "
      "multi_modal_projector.pre_norm.weight "
      "multi_modal_projector.linear_1.weight "
      "multi_modal_projector.linear_2.weight" },
    { "Lfm2AudioForConditionalGeneration", NULL, false,
      "conformer.pre_encode.conv.0.weight "
      "conformer.layers.0.norm_feed_forward1.weight "
      "audio_adapter.model.0.weight audio_adapter.model.1.weight "
      "audio_adapter.model.3.weight "
      "audio_embedding.embedding.weight "
      "audio_embedding.embedding_norm.weight "
      "audio_embedding.to_logits.weight audio_loss_weights "
      "codebook_offsets depth_linear.weight "
      "depthformer.layers.0.operator_norm.weight "
      "depth_embeddings.0.embedding.weight" },
    { "Lfm2VlForConditionalGeneration", "Lfm2ForCausalLM", true,
      "model.vision_tower.vision_model.embeddings.patch_embedding.weight "
      "model.multi_modal_projector.layer_norm.weight "
      "model.multi_modal_projector.linear_1.weight "
      "model.multi_modal_projector.linear_2.weight" },
    { "LightOnOCRForConditionalGeneration", "Qwen3ForCausalLM", true,
      "model.vision_encoder.patch_conv.weight "
      "model.vision_encoder.ln_pre.weight "
      "model.vision_encoder.transformer.layers.0.attention_norm.weight "
      "model.vision_projection.norm.weight "
      "model.vision_projection.patch_merger.merging_layer.weight "
      "model.vision_projection.linear_1.weight "
      "model.vision_projection.linear_2.weight" },
    { "Llama4ForConditionalGeneration", "Llama4ForCausalLM", false,
      "vision_model.class_embedding "
      "vision_model.positional_embedding_vlm "
      "vision_model.patch_embedding.linear.weight "
      "vision_model.layernorm_pre.weight "
      "vision_model.layernorm_post.weight "
      "vision_model.model.layers.0.input_layernorm.weight "
      "vision_model.vision_adapter.mlp.fc1.weight "
      "multi_modal_projector.linear_1.weight" },
    { "MERaLiON2ForConditionalGeneration", NULL, false,
      "speech_encoder.conv1.weight speech_encoder.conv2.weight "
      "speech_encoder.embed_positions.weight "
      "speech_encoder.layers.0.self_attn.q_proj.weight "
      "speech_encoder.layer_norm.weight ln_speech.weight "
      "speech_audio_adapter.mlp_adapter.0.weight "
      "speech_audio_adapter.gate_proj.weight "
      "speech_audio_adapter.pool_proj.weight "
      "speech_audio_adapter.out_proj.weight" },
    { "MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM", false,
      "visual.patch_embed.proj.weight visual.blocks.0.norm1.weight "
      "visual.merger.ln_q.weight speech_embeddings.0.weight "
      "speech_embeddings.1.weight speech_embeddings.2.weight "
      "audio_encoder.input_local_transformer.layers.0.input_layernorm.weight "
      "audio_encoder.projection.mlp.0.weight" },
    { "MiniCPMV4_6ForConditionalGeneration", NULL, false,
      "model.vision_tower.embeddings.patch_embedding.weight "
      "model.vision_tower.encoder.layers.0.layer_norm1.weight "
      "model.vision_tower.post_layernorm.weight "
      "model.vision_tower.vit_merger.layer_norm1.weight "
      "model.merger.mlp.0.pre_norm.weight" },
    { "MiniMaxM3SparseForConditionalGeneration", NULL, false,
      "vision_tower.vision_model.embeddings.patch_embedding.weight "
      "multi_modal_projector.linear_1.weight "
      "multi_modal_projector.linear_2.weight "
      "patch_merge_mlp.linear_1.weight "
      "patch_merge_mlp.linear_2.weight" },
    { "Mistral3ForConditionalGeneration", NULL, false,
      "vision_tower.patch_conv.weight vision_tower.ln_pre.weight "
      "vision_tower.transformer.layers.0.attention_norm.weight "
      "multi_modal_projector.norm.weight "
      "multi_modal_projector.patch_merger.merging_layer.weight "
      "multi_modal_projector.linear_1.weight "
      "multi_modal_projector.linear_2.weight" },
    { "NemotronH_Nano_VL_V2", "NemotronHForCausalLM", true,
      "vision_model.radio_model.input_conditioner.norm_mean "
      "mlp1.0.weight mlp1.1.weight mlp1.3.weight" },
    { "PaddleOCRVLForConditionalGeneration", NULL, false,
      "visual.vision_model.embeddings.patch_embedding.weight "
      "mlp_AR.pre_norm.weight mlp_AR.linear_1.weight "
      "mlp_AR.linear_2.weight" },
    { "Phi4ForCausalLMV", "Phi3ForCausalLM", false,
      "model.vision_tower.vision_tower.vision_model.embeddings.patch_embedding.weight "
      "model.mm_projector.0.weight model.mm_projector.2.weight" },
    { "LlavaForConditionalGeneration", NULL, false,
      "vision_tower.patch_conv.weight vision_tower.ln_pre.weight "
      "vision_tower.transformer.layers.0.attention_norm.weight "
      "multi_modal_projector.linear_1.weight "
      "multi_modal_projector.linear_2.weight" },
    { "Qwen2AudioForConditionalGeneration", NULL, false,
      "audio_tower.conv1.weight audio_tower.conv2.weight "
      "audio_tower.embed_positions.weight "
      "audio_tower.layers.0.self_attn.q_proj.weight "
      "audio_tower.layer_norm.weight "
      "multi_modal_projector.linear.weight" },
    { "Qwen2VLForConditionalGeneration", NULL, false,
      "visual.patch_embed.proj.weight visual.blocks.0.norm1.weight "
      "visual.merger.ln_q.weight" },
    { "Qwen2_5OmniModel", NULL, false,
      "thinker.audio_tower.conv1.weight "
      "thinker.audio_tower.conv2.weight "
      "thinker.audio_tower.layers.0.self_attn.q_proj.weight "
      "thinker.audio_tower.ln_post.weight "
      "thinker.audio_tower.proj.weight "
      "thinker.audio_tower.audio_bos_eos_token.weight "
      "thinker.visual.patch_embed.proj.weight "
      "thinker.visual.blocks.0.norm1.weight "
      "thinker.visual.merger.ln_q.weight "
      "token2wav.code2wav_dit_model.norm.weight" },
    { "Qwen2_5_VLForConditionalGeneration", NULL, false,
      "visual.patch_embed.proj.weight visual.blocks.0.norm1.weight "
      "visual.merger.ln_q.weight" },
    { "Qwen3OmniMoeForConditionalGeneration", NULL, false,
      "thinker.audio_tower.conv2d1.weight "
      "thinker.audio_tower.conv2d2.weight "
      "thinker.audio_tower.conv2d3.weight "
      "thinker.audio_tower.conv_out.weight "
      "thinker.audio_tower.layers.0.self_attn.q_proj.weight "
      "thinker.audio_tower.ln_post.weight "
      "thinker.audio_tower.proj1.weight "
      "thinker.audio_tower.proj2.weight "
      "thinker.visual.patch_embed.proj.weight "
      "thinker.visual.pos_embed.weight "
      "thinker.visual.blocks.0.norm1.weight "
      "thinker.visual.merger.ln_q.weight "
      "thinker.visual.merger_list.0.ln_q.weight "
      "code2wav.norm.weight" },
    { "Qwen3VLForConditionalGeneration", NULL, false,
      "model.visual.patch_embed.proj.weight "
      "model.visual.pos_embed.weight "
      "model.visual.blocks.0.norm1.weight "
      "model.visual.merger.norm.weight "
      "model.visual.deepstack_merger_list.0.norm.weight" },
    { "Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM", false,
      "model.visual.patch_embed.proj.weight "
      "model.visual.pos_embed.weight "
      "model.visual.blocks.0.norm1.weight "
      "model.visual.merger.norm.weight" },
    { "Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM", false,
      "model.visual.patch_embed.proj.weight "
      "model.visual.pos_embed.weight "
      "model.visual.blocks.0.norm1.weight "
      "model.visual.merger.norm.weight" },
    { "Sarashina2VisionForCausalLM", NULL, false,
      "visual.patch_embed.proj.weight visual.blocks.0.norm1.weight "
      "visual.merger.ln_q.weight" },
    { "SmolVLMForConditionalGeneration", "LlamaForCausalLM", true,
      "model.vision_model.embeddings.patch_embedding.weight "
      "model.vision_model.encoder.layers.0.layer_norm1.weight "
      "model.vision_model.post_layernorm.weight "
      "model.connector.modality_projection.proj.weight" },
    { "StepVLForConditionalGeneration", NULL, false,
      "vision_model.conv1.weight vision_model.ln_pre.weight "
      "vision_model.positional_embedding "
      "vision_model.transformer.resblocks.0.ln_1.weight "
      "vision_model.vit_downsampler1.weight "
      "vision_model.vit_downsampler2.weight "
      "vit_large_projector.weight" },
    { "UnlimitedOCRForCausalLM", "DeepseekOCRForCausalLM", false,
      OCR_SAM OCR_CLIP },
    { "VoxtralForConditionalGeneration", "LlamaForCausalLM", false,
      "audio_tower.conv1.weight audio_tower.conv2.weight "
      "audio_tower.embed_positions.weight "
      "audio_tower.layers.0.self_attn.q_proj.weight "
      "audio_tower.layer_norm.weight "
      "multi_modal_projector.linear_1.weight "
      "multi_modal_projector.linear_2.weight" },
    { "YoutuVLForConditionalGeneration", NULL, false,
      "siglip2.vision_model.embeddings.patch_embedding.weight "
      "merger.ln_q.weight merger.mlp.0.weight" },
};
enum { N_MODELS = sizeof models / sizeof *models };

/* ---- folders ---- */

/* Classes with several kinds of towers have rows by the kind. */
#define PIXTRAL "\"vision_config\":{\"model_type\":\"pixtral\"}"
#define CLIP    "\"vision_config\":{\"model_type\":\"clip_vision_model\"}"

static const struct kind {
    const char *name, *members;
} kinds[] = {
    { "InternVLChatModel",
      "\"vision_config\":{\"architectures\":[\"InternVisionModel\"]}" },
    { "LlavaForConditionalGeneration", PIXTRAL },
    { "Mistral3ForConditionalGeneration", PIXTRAL },
    { "Qwen2VLForConditionalGeneration", "\"model_type\":\"qwen2_vl\"" },
    { "Qwen2_5_VLForConditionalGeneration", "\"model_type\":\"qwen2_5_vl\"" },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* Members of config.json that tell the kind of the class's towers. */
static const char *kind_of(const char *name)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return kinds[i].members;
    return "";
}

static void make_folder(struct folder *f, const struct model *m,
                        const char *members)
{
    static struct folder_text t;
    static char inner[5000];
    t = *folder_text_find(m->like ? m->like : m->name);
    snprintf(t.class_name, sizeof t.class_name, "%s", m->name);
    snprintf(inner, sizeof inner,
             "\"text_config\":{\"architectures\":[\"%s\"],%s}", m->like,
             t.config);
    if (m->inner)
        snprintf(t.config, sizeof t.config, "%.3999s", inner);
    if (*members)
        folder_text_set(&t, members);
    folder_text_make(&t, scratch_path(top, "hf"), false, f);
}

/* Add the tensors of the towers that the folder lacks. Returns their number. */
static size_t add_towers(struct folder *f, const char *towers)
{
    char line[200];
    size_t n = 0;
    for (const char *p = towers; *p; p += *p == ' ') {
        const size_t k = strcspn(p, " ");
        snprintf(line, sizeof line, "%.*s", (int)k, p);
        if (!folder_find(f, line)) {
            snprintf(line, sizeof line, "%.*s 8\n", (int)k, p);
            folder_tensors(f, line, 1, 1);
        }
        n++;
        p += k;
    }
    return n;
}

/* Did the conversion leave the tensor out? */
static bool is_omitted(const struct gguf_convert *c, const char *name)
{
    for (size_t i = 0; i < gguf_convert_n_omitted(c); i++)
        if (!strcmp(gguf_convert_omitted(c, i), name))
            return true;
    return false;
}

/* ---- tests ---- */

/* Are all towers left out, and at least one of them for the projector? */
static bool is_split(const struct gguf_convert *c, const char *towers)
{
    char name[200];
    bool good = gguf_convert_summary(c)->n_projector > 0;
    for (const char *p = towers; *p; p += *p == ' ') {
        const size_t k = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)k, p);
        good = is_omitted(c, name) && good;
        p += k;
    }
    return good;
}

static void check_model(const struct model *m, const char *members)
{
    static struct folder f;
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    gguf_error_clear(&e);
    make_folder(&f, m, members);
    const size_t before = f.n_tensors;
    const size_t n = add_towers(&f, m->towers);
    folder_weights(&f, "F32", 1);
    const bool opens =
        gguf_convert_open(&c, scratch_path(top, "hf"), NULL, &e) == GGUF_OK;
    ok(opens && is_split(c, m->towers),
       "%s without its towers: %zu tensors, %zu new %s", m->name, n,
       f.n_tensors - before, e.message);
    gguf_convert_close(c);
}

/* Names that neither the language model nor the projector has are still
 * refused. */
static void check_unknown(void)
{
    static const struct model m = { "Gemma4UnifiedForConditionalGeneration",
                                    "Gemma4ForCausalLM", false,
                                    "model.vision_embeder.pos_norm.weight" };
    static struct folder f;
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    gguf_error_clear(&e);
    make_folder(&f, &m, "");
    add_towers(&f, m.towers);
    folder_weights(&f, "F32", 1);
    ok(gguf_convert_open(&c, scratch_path(top, "hf"), NULL, &e) ==
               GGUF_E_TENSOR &&
           strstr(e.message, "'model.vision_embeder.pos_norm.weight'"),
       "a name beside those of towers has no place");
    gguf_convert_close(c);
}

/* ---- classes that are not converted ---- */

static const struct refusal {
    const char *name, *members, *reason;
} refusals[] = {
    { "Phi4MMForCausalLM", "\"img_processor\":null",
      "no program has a projector type for its towers (embed_tokens_extend)" },
    { "Phi4MultimodalForCausalLM", CLIP,
      "no program has a projector type for its towers (embed_tokens_extend)" },
    { "MiniCPMV4_7ForConditionalGeneration", CLIP,
      "no program has a projector type for it" },
    { "MiniMaxM3VLForConditionalGeneration", CLIP,
      "whose class is MiniMaxM3SparseForConditionalGeneration" },
};
enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

/* Neither the language model nor the projector is converted, for the same
 * reason; --as still names a class. */
static void check_refused(const struct refusal *r)
{
    static struct folder f;
    const struct model m = { r->name, "LlamaForCausalLM", false, "" };
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    make_folder(&f, &m, r->members);
    folder_weights(&f, "F32", 1);
    for (int projector = 0; projector < 2; projector++) {
        gguf_error_clear(&e);
        p.projector = projector;
        ok(gguf_convert_open(&c, scratch_path(top, "hf"), &p, &e) ==
                   GGUF_E_ARCH &&
               strstr(e.message, r->name) && strstr(e.message, r->reason),
           "%s, %s: %s", r->name, projector ? "projector" : "language model",
           e.message);
    }
    gguf_error_clear(&e);
    p.projector = false;
    p.as = "LlamaForCausalLM";
    ok(gguf_convert_open(&c, scratch_path(top, "hf"), &p, &e) == GGUF_OK,
       "%s as another class %s", r->name, e.message);
    gguf_convert_close(c);
}

int main(void)
{
    static struct folder f;
    snprintf(top, sizeof top, "check-tower-names.%d", (int)getpid());
    folder_begin(&f, top);
    for (size_t i = 0; i < N_MODELS; i++)
        check_model(&models[i], kind_of(models[i].name));
    static const char clip[] =
        "vision_tower.vision_model.embeddings.class_embedding "
        "vision_tower.vision_model.encoder.layers.0.layer_norm1.weight "
        "vision_tower.vision_model.post_layernorm.weight "
        "multi_modal_projector.linear_1.weight image_newline";
    const struct model llava[] = {
        { "LlavaForConditionalGeneration", NULL, false, clip },
        { "LlavaNextForConditionalGeneration", "LlavaForConditionalGeneration",
          false, clip },
        { "LlavaNextForConditionalGeneration", "Qwen2ForCausalLM", true,
          clip },
    };
    for (size_t i = 0; i < sizeof llava / sizeof *llava; i++)
        check_model(&llava[i], CLIP);
    check_unknown();
    for (size_t i = 0; i < N_REFUSALS; i++)
        check_refused(&refusals[i]);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
