/* SPDX-License-Identifier: MIT */
/* names.c - what a tensor is called in the language model that it is of
 *
 * Folders of models that see and hear have their parts under names of their
 * own; rows have what is left without these, and layers that draft after the
 * others.
 */
#include "config.h"
#include "convert/expr.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Where the language model of one that sees and hears begins. */
static const struct {
    const char *prefix, *instead; /* NULL: it is of another part */
} prefixes[] = {
    { "model.language_model.lm_head", "lm_head" },
    { "model.language_model.", "model." },
    { "language_model.", "" },
    { "model.text_model.", "model." },
    { "lfm.", "model." },
    { "llm.", "" },
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
    { "model.image_newline", NULL },
    { "model.view_seperator", NULL },
    { "model.vision_encoder.", NULL },
    { "model.vision_projection.", NULL },
    { "model.connector.", NULL },
    { "model.aligner.", NULL },
    { "model.generation_", NULL }, /* of pictures */
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

int64_t gg_convert_first_draft(const struct gguf_convert *c)
{
    const double main = gg_convert_eval(c, "num_hidden_layers", -1);
    return main >= 0 && main < 1e6 ? (int64_t)main : 0;
}

/* Leave out the first of a list's prefixes that the name has; has it one? */
static bool strip(const char *list, struct gguf_str *name)
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

/* Of a layer that drafts, what it would be called among the others: into buf,
 * and name is it. */
static void rename_draft(const struct gguf_convert *c, struct gguf_str *name,
                         char buf[512])
{
    struct gguf_str rest = *name;
    int64_t layer = -1;
    if (!c->arch->drafts || !gg_str_starts(rest, c->arch->drafts))
        return;
    rest.data += strlen(c->arch->drafts);
    rest.size -= strlen(c->arch->drafts);
    if (!gg_convert_fits("%", &rest, &layer, &layer))
        return;
    const int n = snprintf(buf, 512, "model.layers.%" PRId64 "%.*s",
                           gg_convert_first_draft(c) + layer,
                           (int)GG_MIN(rest.size, 1000), rest.data);
    if (n > 0 && n < 512)
        *name = gg_str_z(buf);
}

bool gg_convert_known_as(const struct gguf_convert *c, struct gguf_str name,
                         char out[512], bool *nothing)
{
    char of_draft[512];
    const char *before = "";
    *nothing = false;
    for (size_t k = 0; k < GG_LEN(prefixes); k++)
        if (gg_str_starts(name, prefixes[k].prefix)) {
            *nothing = !prefixes[k].instead;
            before = prefixes[k].instead ? prefixes[k].instead : "";
            name.data += strlen(prefixes[k].prefix);
            name.size -= strlen(prefixes[k].prefix);
            break;
        }
    if (*nothing || strip(c->arch->skip, &name)) {
        *nothing = true;
        return false;
    }
    (void)strip(c->arch->strip, &name);
    rename_draft(c, &name, of_draft);
    if (c->arch->before && !gg_str_starts(name, c->arch->before))
        before = c->arch->before;
    const int n = snprintf(out, 512, "%s%.*s", before,
                           (int)GG_MIN(name.size, 1000), name.data);
    return n >= 0 && n < 512;
}
