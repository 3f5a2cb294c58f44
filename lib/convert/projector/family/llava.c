/* SPDX-License-Identifier: MIT */
/* llava.c - projectors of LLaVA 1.5 and 1.6: CLIP's or SigLIP's tower and two
 * matrices (Liu et al., arXiv:2310.03744)
 *
 * llama.cpp's converter takes only those with Pixtral's tower; for the others
 * it had a script of 2023, tools/mtmd/legacy-models, which wants the tower of
 * another folder and a file of PyTorch. Names and keys are that script's, but
 * for "v.image_newline", which readers of 2026 look for, and for ffn_up and
 * ffn_down, which it has the wrong way round.
 */
#include "config.h"
#include "convert/projector/projector_row.h"

#include <string.h>

static const struct gg_convert_name names[] = {
    N("multi_modal_projector.linear_1", "mm.0"),
    N("multi_modal_projector.linear_2", "mm.2"),
    N("image_newline", "v.image_newline"),
    END_NAMES,
};

static bool is_clip(const struct gg_hf_config *cfg)
{
    const char *name = "vision_config.model_type";
    return gg_hf_config_is_word(cfg, name, -1, "clip_vision_model") == 1 ||
           gg_hf_config_is_word(cfg, name, -1, "siglip_vision_model") == 1;
}

/* Is the setting the word, or absent? */
static bool is_word(const struct gg_hf_config *cfg, const char *name,
                    const char *word)
{
    return !gg_hf_config_get(cfg, name) ||
           gg_hf_config_is_word(cfg, name, -1, word) == 1;
}

static bool is_siglip(const struct gg_hf_config *cfg)
{
    return gg_hf_config_is_word(cfg, "vision.model_type", -1,
                                "siglip_vision_model") == 1;
}

/* GELU by tanh is what readers compute for either name. Without this key they
 * compute CLIP's quick_gelu. */
static double has_gelu(const struct gg_hf_config *cfg)
{
    const char *name = "vision.hidden_act";
    if (!gg_hf_config_get(cfg, name))
        return is_siglip(cfg) ? 1 : NAN;
    return gg_hf_config_is_word(cfg, name, -1, "gelu_pytorch_tanh") == 1
               ? 1
               : gg_projector_has_gelu(cfg);
}

static enum gguf_status check_config(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    GG_TRY(gg_projector_default_clip_image(c, err));
    if (isnan(has_gelu(&cfg)) &&
        !is_word(&cfg, "vision.hidden_act", "quick_gelu"))
        return gg_projector_refuse(
            "vision_config.hidden_act: expected quick_gelu or gelu", err);
    if (!is_word(&cfg, "projector_hidden_act", "gelu"))
        return gg_projector_refuse("projector_hidden_act: expected gelu", err);
    /* readers leave the vector of the class out if the tower has one */
    return is_siglip(&cfg) ||
                   is_word(&cfg, "vision_feature_select_strategy", "default")
               ? GGUF_OK
               : gg_projector_refuse(
                     "vision_feature_select_strategy: expected default", err);
}

/* List layers whose vectors are used, counted from 1; 0: none, or
 * malformed. */
static size_t list_layers(const struct gg_hf_config *cfg, double layers,
                          int32_t out[GG_HF_CONFIG_LAYERS])
{
    const char *name = "vision_feature_layer";
    const size_t n = gg_hf_config_list_len(cfg, name);
    if (n > GG_HF_CONFIG_LAYERS)
        return 0;
    for (size_t i = 0; i < (n ? n : 1); i++) {
        double x = n ? num_at(cfg, name, (int64_t)i) : num_or(cfg, name, -2);
        x += x < 0 ? layers + 1 : 0;
        if (!(x >= 1) || x > layers)
            return 0;
        out[i] = (int32_t)x;
    }
    return n ? n : 1;
}

/* Layers after the last that is used are left out. The width of the language
 * model, if config.json does not say it, is that of the second matrix. */
static enum gguf_status count_layers(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double layers = num_of(&cfg, LAYERS("vision"));
    const struct gg_safetensors_tensor *t;
    int32_t list[GG_HF_CONFIG_LAYERS], most = 0;
    const size_t n = list_layers(&cfg, layers, list);
    for (size_t i = 0; i < n; i++)
        most = list[i] > most ? list[i] : most;
    if (!n)
        return gg_projector_refuse(
            "vision_feature_layer is not a layer of the tower", err);
    if (!gg_projector_find_tensor(c, "multi_modal_projector.linear_2.weight",
                                  &t) ||
        t->n_dims != 2)
        return gg_projector_refuse("the folder lacks the projector's second "
                                   "matrix",
                                   err);
    c->n_layers = most;
    GG_TRY(gg_projector_set(c, "vision.n_layers", most, err));
    return gg_projector_set(c, "text.hidden_size", (double)t->ne[1], err);
}

static enum gguf_status add_keys(struct gguf_convert *c,
                                 struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    int32_t list[GG_HF_CONFIG_LAYERS];
    double layers = num_of(&cfg, "vision.num_hidden_layers");
    if (isnan(layers))
        layers = num_of(&cfg, LAYERS("vision"));
    const size_t n = list_layers(&cfg, layers, list);
    GG_TRY(gg_projector_put_ints(c, "vision.feature_layer", list, n, err));
    return gg_projector_put_pinpoints(c, err);
}

/* The layers that are used, counted from 1, as in the file. The tower ends
 * after the last of them. */
static void put_llava_members(struct gg_back_maker *m)
{
    const char *name = "vision.feature_layer";
    const size_t n = gg_hf_config_list_len(&m->keys, name);
    json_t *list = json_array();
    const bool clip = !isnan(gg_projector_count_tensor(m, "v.class_embd", 0));
    for (size_t i = 0; i < n && i < GG_HF_CONFIG_LAYERS; i++)
        json_array_append_new(
            list, gg_back_number_to_json(num_at(&m->keys, name, (int64_t)i)));
    if (n == 1) {
        gg_back_put(m->root, "vision_feature_layer",
                    json_incref(json_array_get(list, 0)));
        json_decref(list);
    } else {
        gg_back_put(m->root, "vision_feature_layer", list);
    }
    gg_back_put_word(m, "vision.model_type",
                     clip ? "clip_vision_model" : "siglip_vision_model");
    if (is_true(num_of(&m->keys, "use_gelu")))
        gg_back_put_word(m, "vision.hidden_act",
                         clip ? "gelu" : "gelu_pytorch_tanh");
    else
        gg_back_put_word(m, "vision.hidden_act", "quick_gelu");
    gg_back_put_word(m, "vision_feature_select_strategy",
                     clip ? "default" : "full");
    gg_projector_put_pinpoints_back(m);
}

/* Members of both rows. */
#define LLAVA                                                                 \
    .when = is_clip, .names = { names, gg_projector_names_clip },             \
    CLIP("vision_tower. multi_modal_projector. image_newline",                \
         "vision_tower.vision_model. vision_tower."),                         \
    .unused = "*position_ids vision_tower.vision_model.head. "                \
              "vision_tower.vision_model.post_layernorm "                     \
              "vision_tower.post_layernorm"
#define KEYS                                                                  \
    VISION, TYPE("mlp"), EPS("vision.layer_norm_eps", 1e-5),                  \
        OF("use_gelu", BOOL, has_gelu, IN_BACK)

const struct gg_projector gg_projector_family_llava[] = {
    { .arch = { .classes = "LlavaForConditionalGeneration",
                LLAVA,
                .before = "vision_tower.vision_model.",
                .back = put_llava_members,
                .keys = ROWS(KEYS) },
      .vision = "vision_config",
      .text = TEXT_CONFIG,
      .check = check_config,
      .add_tensors = count_layers,
      .add_keys = add_keys },
    { .arch = { .classes = "LlavaNextForConditionalGeneration",
                LLAVA,
                .before = "vision_tower.vision_model.",
                .back = put_llava_members,
                .keys = ROWS(KEYS, WORD("vision.mm_patch_merge_type",
                                        "spatial_unpad")) },
      .vision = "vision_config",
      .text = TEXT_CONFIG,
      .check = check_config,
      .add_tensors = count_layers,
      .add_keys = add_keys },
    { .arch = { .classes = NULL } },
};
