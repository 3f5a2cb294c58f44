/* SPDX-License-Identifier: MIT */
/* rope.c - rotary embedding: number of rotated elements, and scaling
 *
 * "llama3" in rope_scaling defines a factor for each pair by its wavelength
 * (Llama 3.1; transformers, modeling_rope_utils.py): long waves are stretched,
 * short ones are not, those between in part. The factors become the tensor
 * rope_freqs.weight, which divides frequencies. The two lists of "longrope"
 * become rope_factors_long.weight and rope_factors_short.weight.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

/* Find a number about rotary scaling in one of its places. */
#define IN(NAME)                                                              \
    "rope_parameters.full_attention." NAME " rope_parameters." NAME           \
    " rope_scaling." NAME

static bool get_number(const struct gguf_convert *c, const char *names,
                       double *out)
{
    const json_t *v = gg_convert_get_config(c, names);
    return gg_json_num(json_is_array(v) ? json_array_get(v, 0) : v, out);
}

/* Number of rotated elements of a head; 0: unknown. */
static int64_t n_rotary(const struct gguf_convert *c)
{
    int64_t head = 0, width = 0, heads = 0;
    double part = 1;
    if (!gg_convert_get_count(c, "head_dim", &head)) {
        if (!gg_convert_get_count(c, "hidden_size n_embd", &width) ||
            !gg_convert_get_count(c, "num_attention_heads n_head", &heads))
            return 0;
        head = width / heads;
    }
    if (get_number(c,
                   "partial_rotary_factor rope_pct rotary_pct "
                   "rope_parameters.partial_rotary_factor",
                   &part) &&
        !(part > 0 && part <= 1))
        part = 1;
    return (int64_t)(part * (double)head);
}

/* Partial rotary factor of layers with full attention, if kinds of layers have
 * their own; 0: they have not. */
static double part_of_full(const struct gguf_convert *c)
{
    const json_t *parts = gg_convert_get_config(c, "partial_rotary_factors");
    const json_t *types = gg_convert_get_config(c, "layer_types");
    struct gguf_str type;
    double part;
    for (size_t i = 0; i < json_array_size(types); i++)
        if (gg_json_str(json_array_get(types, i), &type) &&
            gg_str_eqz(type, "full_attention") &&
            gg_json_num(json_array_get(parts, i), &part))
            return part;
    return 0;
}

static enum gguf_status add_llama3(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    double base = 10000, factor = 8, low = 1, high = 4, old = 8192;
    const int64_t all = n_rotary(c) / 2;
    const double part = part_of_full(c);
    const int64_t n =
        part > 0 && part <= 1 ? (int64_t)(part * (double)all) : all;
    double x[4096];
    (void)get_number(c, IN("rope_theta") " rope_theta", &base);
    (void)get_number(c, IN("factor"), &factor);
    (void)get_number(c, IN("low_freq_factor"), &low);
    (void)get_number(c, IN("high_freq_factor"), &high);
    (void)get_number(c, IN("original_max_position_embeddings"), &old);
    if (n < 1 || all > 4096 || !(low > 0) || !(high > low) || !(factor > 0))
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: rope_scaling of type llama3 has "
                            "impossible numbers");
    for (int64_t i = 0; i < n; i++) {
        const double wave =
            6.283185307179586 * pow(base, (double)i / (double)n);
        const double between = (old / wave - low) / (high - low);
        x[i] = wave < old / high  ? 1
               : wave > old / low ? factor
                                  : 1 / ((1 - between) / factor + between);
    }
    for (int64_t i = n; i < all; i++)
        x[i] = 1;
    return gg_convert_add_computed(c, "rope_freqs.weight", x, (size_t)all,
                                   err);
}

static enum gguf_status add_list(struct gguf_convert *c, const char *names,
                                 const char *tensor, struct gguf_error *err)
{
    const json_t *v = gg_convert_get_config(c, names);
    const size_t n = json_array_size(v);
    double x[4096];
    if (!n || n > 4096)
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: no list for %s", tensor);
    for (size_t i = 0; i < n; i++)
        if (!gg_json_num(json_array_get(v, i), &x[i]))
            return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                                "config.json: the list for %s is not of "
                                "numbers",
                                tensor);
    return gg_convert_add_computed(c, tensor, x, n, err);
}

/* A number that config.json has, under a key. */
static enum gguf_status copy_f32(struct gguf_convert *c, const char *names,
                                 const char *key, struct gguf_error *err)
{
    char buf[128];
    double x;
    if (!get_number(c, names, &x))
        return GGUF_OK;
    return gguf_meta_set_f32(c->out.meta, gg_convert_key_name(c, key, buf),
                             (float)x, err);
}

static enum gguf_status add_longrope(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    char buf[128];
    int64_t old = 0, now = 0;
    GG_TRY(add_list(c, IN("long_factor"), "rope_factors_long.weight", err));
    GG_TRY(add_list(c, IN("short_factor"), "rope_factors_short.weight", err));
    if (!gg_convert_get_count(c,
                              "original_max_position_embeddings " IN(
                                  "original_max_position_embeddings"),
                              &old) ||
        !gg_convert_get_count(c, "max_position_embeddings", &now))
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: longrope without "
                            "original_max_position_embeddings");
    if (!c->arch->only_keys) {
        GG_TRY(gguf_meta_set_strz(
            c->out.meta, gg_convert_key_name(c, "rope.scaling.type", buf),
            "longrope", err));
        GG_TRY(gguf_meta_set_u32(
            c->out.meta,
            gg_convert_key_name(c, "rope.scaling.original_context_length",
                                buf),
            (uint32_t)old, err));
    }
    const double scale = (double)now / (double)old;
    const double magnitude =
        scale <= 1 ? 1 : sqrt(1 + log(scale) / log((double)old));
    return gguf_meta_set_f32(
        c->out.meta, gg_convert_key_name(c, "rope.scaling.attn_factor", buf),
        (float)magnitude, err);
}

static enum gguf_status add_scaling(struct gguf_convert *c, const char *type,
                                    struct gguf_error *err)
{
    char buf[128];
    int64_t old;
    double factor = NAN;
    (void)get_number(c, IN("factor"), &factor);
    if (!(factor > 0) || !isfinite((float)factor))
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: rope_scaling of type %s has no "
                            "factor above 0",
                            type);
    GG_TRY(gguf_meta_set_strz(c->out.meta,
                              gg_convert_key_name(c, "rope.scaling.type", buf),
                              type, err));
    GG_TRY(copy_f32(c, IN("factor"), "rope.scaling.factor", err));
    if (gg_convert_get_count(c, IN("original_max_position_embeddings"), &old))
        GG_TRY(gguf_meta_set_u32(
            c->out.meta,
            gg_convert_key_name(c, "rope.scaling.original_context_length",
                                buf),
            (uint32_t)old, err));
    if (strcmp(type, "yarn") != 0)
        return GGUF_OK;
    GG_TRY(copy_f32(c, IN("extrapolation_factor"),
                    "rope.scaling.yarn_ext_factor", err));
    GG_TRY(copy_f32(c, IN("attention_factor") " " IN("attn_factor"),
                    "rope.scaling.yarn_attn_factor", err));
    GG_TRY(copy_f32(c, IN("beta_fast"), "rope.scaling.yarn_beta_fast", err));
    return copy_f32(c, IN("beta_slow"), "rope.scaling.yarn_beta_slow", err);
}

/* Axes of positions (time, height, width), always four. */
static enum gguf_status add_sections(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    char buf[128];
    const json_t *v = gg_convert_get_config(
        c, IN("mrope_section") " " IN("xdrope_section") " mrope_section");
    int32_t list[4] = { 0 };
    int64_t x;
    for (size_t i = 0; i < 4 && i < json_array_size(v); i++)
        if (gg_json_int(json_array_get(v, i), &x) && x >= 0 && x < 1 << 16)
            list[i] = (int32_t)x;
    return json_is_array(v)
               ? gguf_meta_set_array(
                     c->out.meta,
                     gg_convert_key_name(c, "rope.dimension_sections", buf),
                     GGUF_VAL_I32, list, 4, err)
               : GGUF_OK;
}

/* Partial rotary embedding with the frequencies of a whole head: the other
 * elements have no frequency (_compute_proportional_rope_parameters). */
static enum gguf_status add_proportional(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    double part = 1, factor = 1, x[4096];
    int64_t head = 0, width = 0, heads = 0;
    (void)get_number(c, IN("partial_rotary_factor"), &part);
    (void)get_number(c, IN("factor"), &factor);
    if (!gg_convert_get_count(c, "global_head_dim head_dim", &head) &&
        gg_convert_get_count(c, "hidden_size n_embd", &width) &&
        gg_convert_get_count(c, "num_attention_heads n_head", &heads))
        head = width / heads;
    if (head < 2 || head / 2 > 4096 || !(part > 0 && part <= 1) ||
        !(factor > 0) || !isfinite((float)factor))
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: rope_parameters of type "
                            "proportional have impossible numbers");
    if (part == 1 && factor != 1) /* more readers know linear scaling */
        return add_scaling(c, "linear", err);
    const size_t n = (size_t)head / 2;
    for (size_t i = 0; i < n; i++)
        x[i] = (double)i < floor((double)head * part / 2) ? factor : 1e30;
    return gg_convert_add_computed(c, "rope_freqs.weight", x, n, err);
}

enum gguf_status gg_convert_add_rope_count(struct gguf_convert *c,
                                           struct gguf_error *err)
{
    char buf[128];
    const int64_t n = n_rotary(c);
    for (const struct gg_convert_key *o = c->arch->keys; o && o->key; o++)
        if (!strcmp(o->key, "rope.dimension_count"))
            return GGUF_OK;
    return c->arch->rope_count && n > 0
               ? gguf_meta_set_u32(
                     c->out.meta,
                     gg_convert_key_name(c, "rope.dimension_count", buf),
                     (uint32_t)n, err)
               : GGUF_OK;
}

enum gguf_status gg_convert_add_rope(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    struct gguf_str type;
    struct gg_str_esc e;
    const json_t *v = gg_convert_get_config(c, IN("rope_type") " " IN("type"));
    GG_TRY(add_sections(c, err));
    if (!gg_json_str(v, &type) || gg_str_eqz(type, "default"))
        return GGUF_OK;
    if (gg_str_eqz(type, "proportional"))
        return add_proportional(c, err);
    if (gg_str_eqz(type, "dynamic")) { /* rows compute an alpha */
        if (!gg_convert_get_config(c, IN("alpha")))
            gg_folder_warn(&c->folder,
                           "config.json: rope_scaling of type dynamic "
                           "scales positions beyond the context length "
                           "only, which GGUF cannot express: ignored");
        return GGUF_OK;
    }
    if (gg_str_eqz(type, "mrope") || gg_str_eqz(type, "xdrope"))
        return GGUF_OK;
    if (gg_str_eqz(type, "llama3"))
        return add_llama3(c, err);
    if (gg_str_eqz(type, "longrope") || gg_str_eqz(type, "su"))
        return add_longrope(c, err);
    if (gg_str_eqz(type, "linear"))
        return add_scaling(c, "linear", err);
    if (gg_str_eqz(type, "yarn"))
        return add_scaling(c, "yarn", err);
    return gg_error_set(
        err, GGUF_E_UNSUPPORTED,
        gg_json_offset_of(&c->folder.text[GG_CONVERT_CONFIG].json, v),
        "config.json: rope_scaling of type '%s' is not "
        "supported",
        gg_str_esc(&e, type));
}
