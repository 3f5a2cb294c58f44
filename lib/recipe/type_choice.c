/* SPDX-License-Identifier: MIT */
/* type_choice.c - choose the type of each tensor; type_choice.h has the
 * order */
#include "config.h"
#include "recipe/type_choice.h"
#include "recipe/image_class.h"
#include "recipe/image_kept.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/interleave.h"

#include <string.h>

enum how { IS, BEGINS, ENDS, HAS };

static bool name_matches(const char *name, enum how how, const char *part)
{
    size_t n = strlen(name), k = strlen(part);
    switch (how) {
    case IS: return !strcmp(name, part);
    case BEGINS: return !strncmp(name, part, k);
    case ENDS: return n >= k && !strcmp(name + n - k, part);
    default: return strstr(name, part) != NULL;
    }
}

/* Tensors that keep their type, as in llama-quantize: they are small,
 * sensitive, or read by code that needs this type. */
static const struct {
    enum how how;
    const char *part, *why;
} kept[] = {
    { HAS, "_norm.weight", "kept: norm" },
    { HAS, "ffn_gate_inp", "kept: expert router" },
    { HAS, "ffn_gate_tid2eid", "kept: expert router" },
    { HAS, "altup", "kept: small projection" },
    { HAS, "laurel", "kept: small projection" },
    { HAS, "per_layer_model_proj", "kept: small projection" },
    { IS, "position_embd.weight", "kept: position embedding" },
    { IS, "token_types.weight", "kept: token type embedding" },
    { HAS, "ssm_conv1d", "kept: convolution" },
    { HAS, "shortconv.conv", "kept: convolution" },
    { HAS, "indexer.k_proj", "kept: attention indexer" },
    { HAS, "indexer.q_proj", "kept: attention indexer" },
    { HAS, "time_mix_first.weight", "kept: time mix" },
    { HAS, "time_mix_w0.weight", "kept: time mix" },
    { HAS, "time_mix_w1.weight", "kept: time mix" },
    { HAS, "time_mix_w2.weight", "kept: time mix" },
    { HAS, "time_mix_v0.weight", "kept: time mix" },
    { HAS, "time_mix_v1.weight", "kept: time mix" },
    { HAS, "time_mix_v2.weight", "kept: time mix" },
    { HAS, "time_mix_a0.weight", "kept: time mix" },
    { HAS, "time_mix_a1.weight", "kept: time mix" },
    { HAS, "time_mix_a2.weight", "kept: time mix" },
    { HAS, "time_mix_g1.weight", "kept: time mix" },
    { HAS, "time_mix_g2.weight", "kept: time mix" },
    { HAS, "time_mix_decay_w1.weight", "kept: time mix" },
    { HAS, "time_mix_decay_w2.weight", "kept: time mix" },
    { HAS, "time_mix_lerp_fused.weight", "kept: time mix" },
    { HAS, "attn_rel_b.weight", "kept: relative position bias" },
    { HAS, ".position_embd", "kept: position embedding" },
    { HAS, "sam.pos_embd", "kept: position embedding" },
    { HAS, "sam.neck.", "kept: vision part" },
    { HAS, "sam.net_", "kept: vision part" },
    { HAS, ".rel_pos", "kept: position embedding" },
    { HAS, ".patch_embd", "kept: vision part" },
    { HAS, ".patch_merger", "kept: vision part" },
    { BEGINS, "a.rvq.codebook", "kept: codebook" },
    { BEGINS, "mm.a.code_embd", "kept: codebook" },
};

/* Tensors of projectors (architecture clip) that programs read as F32 only. */
static const struct {
    enum how how;
    const char *part, *why;
} kept_in_projectors[] = {
    { HAS, ".conv_dw.", "kept: convolution" },
    { HAS, ".dwconv.", "kept: convolution" },
    { BEGINS, "v.conv_stem.", "kept: convolution" },
    { HAS, ".pos_h.", "kept: position embedding" },
    { HAS, ".pos_w.", "kept: position embedding" },
};

/* Lookup tables beside the token embeddings. They may be most of a file
 * although a token reads only a few rows, and the error of a row is not
 * averaged in a sum. The names are those in files of llama.cpp, its forks and
 * their converters (August 2026). */
static const char *const gathered[] = {
    "per_layer_token_embd", /* gemma3n, gemma4, qwen4exp */
    "ngram_embd",           /* engram_embd, ple_ngram_embd, ngram_embd.0 */
    "nextn.embed_tokens", "_compressor_ape", /* deepseek4 */
};

static const struct {
    enum how how;
    const char *part;
    enum gg_recipe_class cls;
} classes[] = {
    { IS, "output.weight", GG_CLASS_OUTPUT },
    { IS, "token_embd.weight", GG_CLASS_TOKEN_EMBD },
    { IS, "per_layer_token_embd.weight", GG_CLASS_TOKEN_EMBD },
    { HAS, "attn_v.weight", GG_CLASS_ATTN_V },
    { HAS, "attn_qkv.weight", GG_CLASS_ATTN_V },
    { HAS, "attn_kv_b.weight", GG_CLASS_ATTN_V },
    { HAS, "attn_k.weight", GG_CLASS_ATTN_K },
    { HAS, "attn_q.weight", GG_CLASS_ATTN_Q },
    { HAS, "attn_output.weight", GG_CLASS_ATTN_OUTPUT },
    { HAS, "ffn_down", GG_CLASS_FFN_DOWN },
    { HAS, "ffn_gate", GG_CLASS_FFN_GATE },
    { HAS, "ffn_up", GG_CLASS_FFN_UP },
};

/* Ids of ik_llama.cpp's types. */
enum {
    Q6_0 = 133,
    IQ2_K = 137,
    IQ3_K = 138,
    IQ4_K = 139,
    IQ5_K = 140,
    IQ6_K = 141,
    IQ4_KS = 144,
    IQ2_KS = 145,
    IQ4_KSS = 146,
    IQ5_KS = 152,
    IQ2_KT = 153,
    IQ3_KT = 154,
    IQ4_KT = 155,
    IQ3_KS = 156,
    IQ2_KL = 157,
    IQ1_KT = 158,
    IQ1_S_R4 = 219,
    IQ1_M_R4 = 229
};

/* Next type to try where the blocks of a type do not fit the rows, from 256 to
 * 32 elements. Types that are not listed become F16. */
static const struct {
    uint32_t from, to;
} shorter[] = {
    { GGUF_DTYPE_IQ1_S, GGUF_DTYPE_IQ4_NL },
    { GGUF_DTYPE_IQ1_M, GGUF_DTYPE_IQ4_NL },
    { GGUF_DTYPE_IQ2_XXS, GGUF_DTYPE_IQ4_NL },
    { GGUF_DTYPE_IQ2_XS, GGUF_DTYPE_IQ4_NL },
    { GGUF_DTYPE_IQ2_S, GGUF_DTYPE_IQ4_NL },
    { GGUF_DTYPE_IQ3_XXS, GGUF_DTYPE_IQ4_NL },
    { GGUF_DTYPE_IQ3_S, GGUF_DTYPE_IQ4_NL },
    { GGUF_DTYPE_IQ4_XS, GGUF_DTYPE_IQ4_NL },
    { GGUF_DTYPE_Q2_K, GGUF_DTYPE_Q4_0 },
    { GGUF_DTYPE_Q3_K, GGUF_DTYPE_Q4_0 },
    { GGUF_DTYPE_TQ1_0, GGUF_DTYPE_Q4_0 },
    { GGUF_DTYPE_TQ2_0, GGUF_DTYPE_Q4_0 },
    { GGUF_DTYPE_Q2_0, GGUF_DTYPE_Q4_0 },
    { GGUF_DTYPE_Q4_K, GGUF_DTYPE_Q5_0 },
    { GGUF_DTYPE_Q5_K, GGUF_DTYPE_Q5_1 },
    { GGUF_DTYPE_Q6_K, GGUF_DTYPE_Q8_0 },
    { IQ1_KT, GGUF_DTYPE_IQ4_NL },
    { IQ2_K, GGUF_DTYPE_IQ4_NL },
    { IQ2_KS, GGUF_DTYPE_IQ4_NL },
    { IQ2_KL, GGUF_DTYPE_IQ4_NL },
    { IQ2_KT, GGUF_DTYPE_IQ4_NL },
    { IQ3_K, GGUF_DTYPE_IQ4_NL },
    { IQ3_KS, GGUF_DTYPE_IQ4_NL },
    { IQ3_KT, GGUF_DTYPE_IQ4_NL },
    { IQ4_KS, GGUF_DTYPE_IQ4_NL },
    { IQ4_KSS, GGUF_DTYPE_IQ4_NL },
    { IQ4_KT, GGUF_DTYPE_IQ4_NL },
    { IQ4_K, GGUF_DTYPE_Q5_0 },
    { IQ5_KS, GGUF_DTYPE_Q5_0 },
    { IQ5_K, Q6_0 },
    { IQ6_K, GGUF_DTYPE_Q8_0 },
};

/* Types that llama-quantize refuses for a layer's matrix without importance
 * data, because the result would be useless. This is a rule about models,
 * wider than the limits of encoders (GG_CODEC_NEEDS_WEIGHT): those of IQ1_M,
 * IQ2_S and IQ3_XXS work without weights. */
static const uint32_t weighted[] = {
    GGUF_DTYPE_IQ1_S,  GGUF_DTYPE_IQ1_M, GGUF_DTYPE_IQ2_XXS,
    GGUF_DTYPE_IQ2_XS, GGUF_DTYPE_IQ2_S, GGUF_DTYPE_IQ3_XXS,
    IQ1_S_R4,          IQ1_M_R4,
};

const char *gg_recipe_choose_keep_reason(const char *name, const int64_t *ne)
{
    size_t d = 1;
    while (d < GGUF_MAX_DIMS && ne[d] == 1)
        d++;
    if (d == GGUF_MAX_DIMS)
        return "kept: one dimension";
    if (!name_matches(name, ENDS, "weight"))
        return "kept: no weight";
    for (size_t i = 0; i < GG_LEN(kept); i++)
        if (name_matches(name, kept[i].how, kept[i].part))
            return kept[i].why;
    return NULL;
}

enum gg_recipe_class gg_recipe_choose_class(const char *name)
{
    for (size_t i = 0; i < GG_LEN(classes); i++)
        if (name_matches(name, classes[i].how, classes[i].part))
            return classes[i].cls;
    return GG_CLASS_OTHER;
}

/* Type of the rows apart. */
static uint32_t plain_type(uint32_t type)
{
    const int index = gg_dtype_index(type);
    return index < 0 ? type
                     : gg_dtype_by_index(gg_interleave_plain(index))->id;
}

bool gg_recipe_choose_needs_imatrix(const struct gguf_recipe *r,
                                    enum gg_recipe_class cls, uint32_t type)
{
    if (cls == GG_CLASS_OUTPUT || cls == GG_CLASS_TOKEN_EMBD)
        return false;
    type = plain_type(type);
    for (size_t i = 0; i < GG_LEN(weighted); i++)
        if (weighted[i] == type)
            return true;
    for (uint32_t i = 0; i < r->n_needs; i++)
        if (r->needs[i] == type)
            return true;
    return false;
}

uint32_t gg_recipe_choose_fitting_type(uint32_t type, int64_t cols)
{
    const struct gguf_dtype_info *t = gguf_dtype_find(type);
    if (cols % t->block_len == 0)
        return type;
    type = plain_type(type);
    for (size_t i = 0; i < GG_LEN(shorter); i++)
        if (shorter[i].from == type) {
            t = gguf_dtype_find(shorter[i].to);
            return cols % t->block_len == 0 ? t->id : GGUF_DTYPE_F16;
        }
    return GGUF_DTYPE_F16;
}

/* Is the tensor a filter of a convolution of a projector? Programs read filters
 * as F32 or F16. */
static bool is_filter(const struct gg_recipe_chooser *c, const char *name,
                      const int64_t *ne, const char *why)
{
    size_t d = 2;
    if (c->compat || !gg_str_eqz(c->facts.arch, "clip"))
        return false;
    while (d < GGUF_MAX_DIMS && ne[d] == 1)
        d++;
    return name_matches(name, HAS, ".patch_embd.weight") ||
           name_matches(name, HAS, ".patch_merger.weight") ||
           (!why && d < GGUF_MAX_DIMS);
}

/* Filters get the base type if that is F32 or F16, otherwise they keep theirs
 * or become F32. */
static uint32_t choose_filter_type(const struct gg_recipe_chooser *c,
                                   uint32_t type)
{
    if (c->recipe->base == GGUF_DTYPE_F32 || c->recipe->base == GGUF_DTYPE_F16)
        return (uint32_t)c->recipe->base;
    return type == GGUF_DTYPE_F16 ? type : GGUF_DTYPE_F32;
}

/* Reason for never quantizing a tensor of this model. NULL: none. */
static const char *find_keep_reason(const struct gg_recipe_chooser *c,
                                    const char *name, const int64_t *ne)
{
    const char *why = gg_recipe_choose_keep_reason(name, ne);
    if (!why)
        why = gg_image_kept_reason(c->facts.arch, gg_str_z(name), ne);
    if (why || c->compat || !gg_str_eqz(c->facts.arch, "clip"))
        return why;
    for (size_t i = 0; i < GG_LEN(kept_in_projectors); i++)
        if (name_matches(name, kept_in_projectors[i].how,
                         kept_in_projectors[i].part))
            return kept_in_projectors[i].why;
    return NULL;
}

static bool is_float(int64_t type)
{
    return type >= 0 &&
           gguf_dtype_find((uint32_t)type)->family == GGUF_FAMILY_FLOAT;
}

/* Find the first pattern that matches; *i is n_overrides if no pattern does. */
static enum gguf_status find_override(const struct gg_recipe_chooser *c,
                                      const char *name, size_t *i,
                                      struct gguf_error *err)
{
    for (*i = 0; *i < c->n_overrides; ++*i) {
        bool found;
        GG_TRY(gg_pattern_match(c->patterns[*i], name, &found, err));
        if (found)
            break;
    }
    return GGUF_OK;
}

static enum gguf_status apply_recipe(struct gg_recipe_chooser *c,
                                     const char *name, const int64_t *ne,
                                     uint32_t type,
                                     struct gg_recipe_choice *out,
                                     struct gguf_error *err)
{
    const struct gguf_recipe *r = c->recipe;
    int64_t chosen = r->base;
    int64_t seq = c->seq[out->cls]++;
    int64_t layer = gguf_layer_from_name(gg_str_z(name), NULL);
    bool ffn = out->cls == GG_CLASS_FFN_DOWN ||
               out->cls == GG_CLASS_FFN_GATE || out->cls == GG_CLASS_FFN_UP;

    layer = layer < 0 ? seq : layer;
    const int64_t block = gg_image_class_block(c->facts.arch, name);
    c->facts.var[GG_VAR_EDGE] =
        !block || (block > 0 && block == c->facts.var[GG_VAR_LAYERS] - 1);
    c->facts.var[GG_VAR_SEQ] = seq;
    c->facts.var[GG_VAR_LAYER] = layer;
    c->facts.var[GG_VAR_I] =
        ffn && c->facts.var[GG_VAR_EXPERTS] > 1 ? layer : seq;
    c->facts.var[GG_VAR_COLS] = ne[0];
    c->facts.var[GG_VAR_ROWS] = ne[1];
    uint64_t mats = 1; /* cannot overflow: the tensor has more elements */
    for (size_t d = 2; d < GGUF_MAX_DIMS; d++)
        mats *= (uint64_t)ne[d];
    c->facts.var[GG_VAR_MATS] = (int64_t)mats;
    GG_TRY(gg_recipe_find_rule(r, out->cls, name, &c->facts, &out->rule, err));
    out->reason = out->rule ? GGUF_REASON_RULE : GGUF_REASON_BASE;
    out->text = out->rule ? out->rule->text : "base";
    if (out->rule && out->rule->type != GG_RECIPE_BASE)
        chosen = out->rule->type;
    out->wanted = chosen == GG_RECIPE_KEEP ? type : (uint32_t)chosen;
    return GGUF_OK;
}

/* Choose the wanted type, without regard to the shape. */
static enum gguf_status choose_wanted(struct gg_recipe_chooser *c,
                                      const char *name, const int64_t *ne,
                                      uint32_t type,
                                      struct gg_recipe_choice *out,
                                      struct gguf_error *err)
{
    const struct gguf_dtype_info *from = gguf_dtype_find(type);
    const char *why = find_keep_reason(c, name, ne);
    int64_t base = c->recipe->base;
    enum gg_recipe_class cls = gg_image_kept_is_arch(c->facts.arch)
                                   ? gg_image_class_find(c->facts.arch, name)
                                   : gg_recipe_choose_class(name);
    bool embedding = cls == GG_CLASS_TOKEN_EMBD;
    bool output = cls == GG_CLASS_OUTPUT || (embedding && c->tied);

    *out = (struct gg_recipe_choice){ .wanted = type,
                                      .reason = GGUF_REASON_NEVER_QUANTIZED,
                                      .text = why,
                                      .cls = output ? GG_CLASS_OUTPUT : cls };
    if (!why && from && from->family == GGUF_FAMILY_INT)
        out->text = why = "kept: integers";
    if (is_filter(c, name, ne, why)) {
        out->text = "filter of a projector: F32 or F16";
        out->wanted = choose_filter_type(c, type);
        return GGUF_OK;
    }
    if (why)
        return GGUF_OK;
    if (c->leave_output && cls == GG_CLASS_OUTPUT) {
        out->reason = GGUF_REASON_LEAVE_OUTPUT;
        out->text = "left: output";
        return GGUF_OK;
    }
    if (embedding && c->embedding_type) {
        out->reason = GGUF_REASON_EMBEDDING_TYPE;
        out->text = "token embedding type";
        out->wanted = c->embedding_type->id;
        return GGUF_OK;
    }
    if (output && c->output_type) {
        out->reason = GGUF_REASON_OUTPUT_TYPE;
        out->text = "output tensor type";
        out->wanted = c->output_type->id;
        return GGUF_OK;
    }
    if (!(c->compat && (is_float(base) || base == GG_RECIPE_KEEP))) {
        size_t i;
        GG_TRY(find_override(c, name, &i, err));
        if (i < c->n_overrides) {
            out->reason = GGUF_REASON_OVERRIDE;
            out->text = c->overrides[i].pattern;
            out->wanted = c->overrides[i].dtype;
            return GGUF_OK;
        }
    }
    if (c->pure && base != GG_RECIPE_KEEP) {
        out->reason = GGUF_REASON_BASE;
        out->text = "pure";
        out->wanted = (uint32_t)base;
        return GGUF_OK;
    }
    return apply_recipe(c, name, ne, type, out, err);
}

/* Does a take fewer bits per element than b? */
static bool is_smaller(const struct gguf_dtype_info *a,
                       const struct gguf_dtype_info *b)
{
    return (uint64_t)a->block_size * b->block_len <
           (uint64_t)b->block_size * a->block_len;
}

/* Raise lookup tables to Q8_0, or to their present type if that is smaller,
 * unless a pattern or an option decided. */
static void lift_table(const struct gg_recipe_chooser *c, const char *name,
                       uint32_t type, struct gg_recipe_choice *out)
{
    const struct gguf_dtype_info *q8 = gguf_dtype_find(GGUF_DTYPE_Q8_0);
    const struct gguf_dtype_info *from = gguf_dtype_find(type);
    const bool asked =
        c->compat || c->pure || (out->rule && out->rule->pattern);
    if (asked ||
        (out->reason != GGUF_REASON_BASE && out->reason != GGUF_REASON_RULE) ||
        out->wanted == type || !is_smaller(gguf_dtype_find(out->wanted), q8))
        return;
    for (size_t i = 0; i < GG_LEN(gathered); i++)
        if (name_matches(name, HAS, gathered[i])) {
            out->reason = GGUF_REASON_LOOKUP_TABLE;
            out->rule = NULL;
            out->text = "only looked up: Q8_0 or better";
            out->wanted = from && is_smaller(from, q8) ? type : q8->id;
            return;
        }
}

enum gguf_status gg_recipe_choose_type(struct gg_recipe_chooser *c,
                                       const char *name, const int64_t *ne,
                                       uint32_t type,
                                       struct gg_recipe_choice *out,
                                       struct gguf_error *err)
{
    GG_TRY(choose_wanted(c, name, ne, type, out, err));
    lift_table(c, name, type, out);
    /* single rows of embeddings are read */
    if (out->wanted != type &&
        gg_recipe_choose_class(name) == GG_CLASS_TOKEN_EMBD)
        out->wanted = plain_type(out->wanted);
    out->type = out->wanted;
    if (out->wanted == type)
        return GGUF_OK;
    out->type = gg_image_kept_is_arch(c->facts.arch)
                    ? gg_image_class_fitting_type(out->wanted, ne[0])
                    : gg_recipe_choose_fitting_type(out->wanted, ne[0]);
    if (ne[1] % gg_interleave_rows(gg_dtype_index(out->type)))
        out->type = plain_type(out->type);
    return GGUF_OK;
}
