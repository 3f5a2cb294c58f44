/* SPDX-License-Identifier: MIT */
/* tensor_names.c - name of a tensor in the language model alone
 *
 * In folders of multimodal models each part has its own prefix. Rows of names
 * have the names without prefixes, and nextn layers numbered after the others.
 */
#include "config.h"
#include "convert/convert_int.h"
#include "convert/projectors.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Prefixes of the language model in multimodal models. */
static const struct {
    /* NULL: tensors with this prefix belong to another part */
    const char *prefix, *instead;
} prefixes[] = {
    { "model.language_model.lm_head", "lm_head" },
    { "model.language_model.", "model." },
    { "language_model.", "" },
    { "model.text_model.", "model." },
    { "lfm.", "model." },
    { "llm.", "" },
    { "text_decoder.", "" },
    { "speech_encoder.", NULL },
    { "speech_audio_adapter.", NULL },
    { "ln_speech.", NULL },
    { "vision_tower.", NULL },
    { "vision_model.", NULL },
    { "model.vision_tower.", NULL },
    { "model.visual.", NULL },
    { "visual.", NULL },
    { "multi_modal_projector.", NULL },
    { "model.multi_modal_projector.", NULL },
    { "model.audio_tower.", NULL },
    { "audio_tower.", NULL },
    { "model.embed_vision.", NULL },
    { "model.embed_audio.", NULL },
    { "mlp_AR.", NULL },
    { "model.projector.", NULL },
    { "vit.", NULL },
    { "model.vision.", NULL },
    { "model.vqmodel.", NULL },
    { "thinker.model.", "model." },
    { "thinker.lm_head", "lm_head" },
    { "thinker.visual.", NULL },
    { "thinker.audio_tower.", NULL },
    { "talker.", NULL },
    { "token2wav.", NULL },
    { "mm_projector.", NULL },
    { "model.mm_projector.", NULL },
    { "patch_merge_mlp.", NULL },
    { "model.sam_model.", NULL },
    { "model.vision_model.", NULL },
    { "model.qwen2_model.", NULL },
    { "image_newline", NULL },
    { "model.image_newline", NULL },
    { "model.view_seperator", NULL },
    { "model.vision_encoder.", NULL },
    { "model.vision_projection.", NULL },
    { "model.connector.", NULL },
    { "model.aligner.", NULL },
    { "model.generation_", NULL }, /* image generation */
    { "model.merger.", NULL },
    { "merger.", NULL },
    { "siglip2.", NULL },
    { "mlp1.", NULL },
    { "sound_encoder.", NULL },
    { "sound_projection.", NULL },
    { "code2wav.", NULL },
    { "conformer.", NULL },
    { "audio_", NULL },
    { "codebook_offsets", NULL },
    { "depth_", NULL },
    { "depthformer.", NULL },
    { "vit_large_projector", NULL },
};

int64_t gg_convert_first_nextn_layer(const struct gguf_convert *c)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double main = gg_hf_config_num(&cfg, "num_hidden_layers", -1);
    return main >= 0 && main < 1e6 ? (int64_t)main : 0;
}

bool gg_convert_strip_prefix(const char *list, struct gguf_str *name)
{
    for (const char *p = list; p && *p;) {
        const size_t n = strcspn(p, " ");
        if (name->size > n && !memcmp(name->data, p, n)) {
            name->data += n;
            name->size -= n;
            return true;
        }
        p += n + (p[n] == ' ');
    }
    return false;
}

/* Name of a tensor of a nextn layer as if the layer were numbered after the
 * others. Writes it to buf and sets name to it. */
static void rename_draft(const struct gguf_convert *c, struct gguf_str *name,
                         char buf[GG_CONVERT_NAME])
{
    struct gguf_str rest = *name;
    int64_t layer = -1;
    if (!c->arch->drafts || !gg_str_starts(rest, c->arch->drafts))
        return;
    rest.data += strlen(c->arch->drafts);
    rest.size -= strlen(c->arch->drafts);
    if (!gg_convert_match_pattern("%", &rest, &layer, &layer))
        return;
    const int n =
        snprintf(buf, GG_CONVERT_NAME, "model.layers.%" PRId64 "%.*s",
                 gg_convert_first_nextn_layer(c) + layer,
                 (int)GG_MIN(rest.size, 1000), rest.data);
    if (n > 0 && n < GG_CONVERT_NAME)
        *name = gg_str_z(buf);
}

/* Remove the prefix of a part from a name, which may lack the prefix that all
 * names of the folder lack (gg_folder.added). *before: the language model's own
 * prefix. *nothing: the tensor belongs to another part. */
static void strip_part(const struct gguf_convert *c, struct gguf_str *name,
                       const char **before, bool *nothing)
{
    for (size_t k = 0; k < GG_LEN(prefixes); k++) {
        const char *prefix = prefixes[k].prefix;
        const size_t n = strlen(c->folder.added);
        if (c->arch->strip && !strcmp(c->arch->strip, prefix))
            continue; /* the part is the language model of the class */
        if (!gg_str_starts(*name, prefix) &&
            !(n && !strncmp(prefix, c->folder.added, n) &&
              gg_str_starts(*name, prefix += n)))
            continue;
        *nothing = !prefixes[k].instead;
        *before = prefixes[k].instead ? prefixes[k].instead : "";
        name->data += strlen(prefix);
        name->size -= strlen(prefix);
        return;
    }
}

/* Endings that names of tensors have, and those that they become. */
static const char *const ends[][2] = { { "", "" },
                                       { ".weight", ".weight" },
                                       { ".bias", ".bias" },
                                       { ".gamma", ".weight" },
                                       { ".beta", ".bias" } };

bool gg_convert_row_matches(const struct gg_convert_name *row,
                            const char *name, int64_t *layer, int64_t *expert,
                            const char **end)
{
    const size_t n = strlen(name);
    for (size_t k = 0; k < GG_LEN(ends); k++) {
        const size_t n_end = strlen(ends[k][0]);
        *layer = *expert = -1;
        if (n < n_end || strcmp(name + n - n_end, ends[k][0]) != 0)
            continue;
        struct gguf_str rest = { name, n - n_end };
        if (!gg_convert_match_pattern(row->from, &rest, layer, expert) ||
            rest.size)
            continue;
        *end = ends[k][1];
        return true;
    }
    return false;
}

bool gg_convert_has_factor(const struct gg_convert_name *row)
{
    const struct gg_convert_name *next = row + 1;
    return row->to && next->to && next->transform &&
           next->transform->is_factor && !strcmp(row->to, next->to);
}

bool gg_convert_has_name(const struct gguf_convert *c, const char *name)
{
    int64_t layer, expert;
    const char *end;
    for (size_t i = 0; i < GG_LEN(c->arch->names) && c->arch->names[i]; i++)
        for (const struct gg_convert_name *row = c->arch->names[i]; row->from;
             row++)
            if (gg_convert_row_matches(row, name, &layer, &expert, &end))
                return true;
    return false;
}

/* Names of one module in a class of transformers and in published checkpoints
 * (src/transformers/conversion_mapping.py, version 5.3). Adapters follow the
 * class; folders follow either. */
static const struct {
    const char *of_class, *of_checkpoint;
} spellings[] = {
    { ".mlp.router.", ".block_sparse_moe.gate." }, /* PhiMoE */
    { ".mlp.", ".block_sparse_moe." },             /* Mixtral, MiniMax */
    { ".mlp.gate.moe_statics.", ".mlp.moe_statics." },
    { ".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias" },
    { ".attention_layer_norm.", ".input_layernorm." }, /* OLMo hybrid */
    { ".feedforward_layer_norm.", ".post_attention_layernorm." },
};

/* Exchange a part of a name for another: to out. */
static bool exchange_part(const char *name, const char *part, const char *with,
                          char out[GG_CONVERT_NAME])
{
    const char *at = strstr(name, part);
    const int n =
        at ? snprintf(out, GG_CONVERT_NAME, "%.*s%s%s", (int)(at - name), name,
                      with, at + strlen(part))
           : -1;
    return n >= 0 && n < GG_CONVERT_NAME;
}

bool gg_convert_respell(const struct gguf_convert *c,
                        char name[GG_CONVERT_NAME])
{
    char other[GG_CONVERT_NAME];
    for (size_t i = 0; i < 2 * GG_LEN(spellings); i++) {
        const char *a = spellings[i / 2].of_class;
        const char *b = spellings[i / 2].of_checkpoint;
        if (exchange_part(name, i % 2 ? b : a, i % 2 ? a : b, other) &&
            gg_convert_has_name(c, other)) {
            memcpy(name, other, strlen(other) + 1);
            return true;
        }
    }
    return false;
}

/* Does a tensor, plain without wrappers, name as in rows, belong to the
 * projector of the class? The lists of a projector's parts may contain tensors
 * of the language model, which have rows. */
static bool is_left_to_tower(const struct gguf_convert *c, const char *plain,
                             const char *name)
{
    char other[GG_CONVERT_NAME];
    if (!c->tower ||
        !gg_convert_is_of_tower(&c->tower->arch, gg_str_z(plain)) ||
        gg_convert_has_name(c, name))
        return false;
    memcpy(other, name, strlen(name) + 1);
    return !gg_convert_respell(c, other);
}

bool gg_convert_normalize_name(const struct gguf_convert *c,
                               struct gguf_str name, char out[GG_CONVERT_NAME],
                               bool *nothing)
{
    char of_draft[GG_CONVERT_NAME], plain[GG_CONVERT_NAME];
    const char *before = "";
    *nothing = false;
    if (c->arch->parts)
        return gg_convert_normalize_part(c, name, out, nothing);
    if (!gg_convert_unwrap(c, name, plain))
        return false;
    name = gg_str_z(plain);
    strip_part(c, &name, &before, nothing);
    if (*nothing || gg_convert_strip_prefix(c->arch->skip, &name)) {
        *nothing = true;
        return false;
    }
    (void)gg_convert_strip_prefix(c->arch->strip, &name);
    rename_draft(c, &name, of_draft);
    if (c->arch->before && !gg_str_starts(name, c->arch->before))
        before = c->arch->before;
    const int n = snprintf(out, GG_CONVERT_NAME, "%s%.*s", before,
                           (int)GG_MIN(name.size, 1000), name.data);
    if (n < 0 || n >= GG_CONVERT_NAME)
        return false;
    *nothing = is_left_to_tower(c, plain, out);
    return !*nothing;
}
