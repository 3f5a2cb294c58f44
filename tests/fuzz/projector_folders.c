/* SPDX-License-Identifier: MIT */
/* projector_folders.c - folders with projectors, and image models, as seeds */
#include "config.h"
#include "tests/fuzz/projectors.h"
#include "base/compiler.h"
#include "base/str.h"
#include "convert/image/image.h"
#include "convert/projector/projector.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#define SETTINGS                                                              \
    "\"hidden_size\":8,\"num_hidden_layers\":2,\"num_attention_heads\":2,"    \
    "\"image_size\":8,\"patch_size\":4,\"intermediate_size\":8,"              \
    "\"hidden_act\":\"gelu\",\"d_model\":8,\"encoder_layers\":2,"             \
    "\"encoder_attention_heads\":2,\"encoder_ffn_dim\":8,"                    \
    "\"num_mel_bins\":8,\"depth\":2,\"embed_dim\":8,\"num_heads\":2,"         \
    "\"spatial_merge_size\":2,\"hidden_dim\":8,\"input_dim\":8,"              \
    "\"fullatt_block_indexes\":[0],\"deepstack_visual_indexes\":[1],"         \
    "\"downsample_ratio\":0.5,\"feedforward_mult\":2"
#define PART(NAME) ",\"" NAME "\":{" SETTINGS "}"
static const char parts[] = "," SETTINGS PART("text_config")
    PART("vision_config") PART("audio_config") PART("encoder_config")
        PART("encoder") PART("vision_encoder") PART("speaker_encoder_config")
            PART("projector_config") ",\"thinker_config\":{\"x\":0" PART(
                "vision_config") PART("audio_config") "}}";
static const char image[] =
    "\x1epreprocessor_config.json\n{\"image_mean\":[0,0,0],\"image_std\":"
    "[1,1,1],\"min_pixels\":4,\"max_pixels\":64,\"patch_size\":4}";

static void put_text(struct fix *f, const char *s)
{
    fix_bytes(f, s, strlen(s));
}

/* Does the name begin with a word of the list? */
static bool has_prefix(const char *list, const char *name)
{
    for (const char *p = list; p && *p;) {
        const size_t n = strcspn(p, " ");
        if (!strncmp(p, name, n))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

/* Append a line for a name of a row: a prefix that the row strips if the name
 * is not one of the projector's without it; layer 0. */
static void put_name(struct fix *f, const struct gg_convert_arch *a,
                     const char *from)
{
    char line[300];
    const char *prefix = has_prefix(a->parts, from) ? "" : a->strip;
    const bool whole = gg_str_ends(gg_str_z(from), ".weight") ||
                       gg_str_ends(gg_str_z(from), ".bias");
    const bool vector = strstr(from, "norm") || strstr(from, ".bias");
    prefix = prefix ? prefix : "";
    snprintf(line, sizeof line, "%.*s%s%s F32 8%s\n",
             (int)strcspn(prefix, " "), prefix, from, whole ? "" : ".weight",
             vector ? "" : " 8");
    for (char *p = line; *p; p++)
        *p = *p == '%' || *p == '@' ? '0' : *p;
    put_text(f, line);
}

bool put_projector_folder(struct fix *f, size_t no)
{
    const struct gg_projector *row = gg_projector_row(no);
    if (!row)
        return false;
    const char *name = row->arch.classes;
    put_text(f, strcmp(name, GG_PROJECTOR_PARAMS)
                    ? "config.json\n{\"architectures\":[\""
                    : GG_PROJECTOR_PARAMS "\n{\"x\":[\"");
    fix_bytes(f, name, strcspn(name, " "));
    put_text(f, "\"]");
    put_text(f, parts);
    put_text(f, image);
    put_text(f, "\x1emodel.tensors\n");
    for (size_t i = 0; i < GG_LEN(row->arch.names) && row->arch.names[i]; i++)
        for (const struct gg_convert_name *n = row->arch.names[i]; n->from;
             n++)
            if (n == row->arch.names[i] || strcmp(n->from, n[-1].from))
                put_name(f, &row->arch, n->from);
    return true;
}

/* Append a line unless it is there already, from byte begin on. */
static void put_new_line(struct fix *f, size_t begin, const char *line)
{
    const size_t n = strlen(line);
    for (size_t i = begin; i + n <= f->size; i++)
        if (!memcmp(f->data + i, line, n) && f->data[i - 1] == '\n')
            return;
    put_text(f, line);
}

/* Append lines for the names of a list that ends at '|' or 0: layer 0. */
static void put_layout_names(struct fix *f, size_t begin, const char *list)
{
    char line[300];
    for (const char *p = list; *p && *p != '|'; p += *p == ' ') {
        const size_t n = strcspn(p, " |");
        const bool open = n && p[n - 1] == '*';
        snprintf(line, sizeof line, "%.*s%s BF16 8 8\n", (int)(n - open), p,
                 open ? "weight" : "");
        for (char *c = line; *c; c++)
            *c = *c == '%' ? '0' : *c;
        put_new_line(f, begin, line);
        p += n;
    }
}

bool put_diffusers_folder(struct fix *f, size_t no)
{
    const struct gg_image_layout *l = gg_image_layout_row(no);
    if (!l)
        return false;
    put_text(f, "config.json\n{\"_class_name\":\"X\"}\x1e"
                "diffusion_pytorch_model.tensors\n");
    const size_t begin = f->size;
    put_layout_names(f, begin, l->sets);
    for (const struct gg_image_rename *r = l->rename; r->from; r++)
        put_layout_names(f, begin, r->from);
    return true;
}

bool put_image_tensors(struct fix *f, size_t no)
{
    const struct gg_image_arch *row = gg_image_row(no);
    if (!row)
        return false;
    put_text(f, "model.tensors\n");
    for (const char *p = row->sets; *p && *p != '|';) {
        const size_t n = strcspn(p, " |");
        fix_bytes(f, p, n);
        put_text(f, no % 2 ? " BF16 8 256\n" : " F8_E4M3 2 2 2 2 256\n");
        p += n + (p[n] == ' ');
    }
    put_text(f, "scale.weight F8_E4M3 8 8\nscale.scale_weight F32\n"
                "ids I64 3\nmask BOOL 8\n__metadata__ config x");
    return true;
}
