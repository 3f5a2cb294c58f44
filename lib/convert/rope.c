/* rope.c - positions: how many elements turn, and how far
 *
 * "llama3" in rope_scaling are factors for each pair, by the lengths of their
 * waves (Llama 3.1; transformers, modeling_rope_utils.py): long ones are
 * stretched, short ones are not, those between by degrees. They become the
 * tensor rope_freqs.weight, by which frequencies are divided; so do the two
 * lists of "longrope", rope_factors_long.weight and rope_factors_short.weight.
 */
#include "config.h"
#include "convert/convert.h"

#include "base/bytes.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static bool number(const struct gguf_convert *c, const char *names,
                   double *out)
{
    return gg_json_num(gg_convert_get(c, names), out);
}

/* Elements of a head that turn; 0: not known. */
static int64_t n_rotary(const struct gguf_convert *c)
{
    int64_t head = 0, width = 0, heads = 0;
    double part = 1;
    if (!gg_convert_count(c, "head_dim", &head)) {
        if (!gg_convert_count(c, "hidden_size n_embd", &width) ||
            !gg_convert_count(c, "num_attention_heads n_head", &heads))
            return 0;
        head = width / heads;
    }
    if (number(c,
               "partial_rotary_factor rope_pct rotary_pct "
               "rope_parameters.partial_rotary_factor",
               &part) &&
        !(part > 0 && part <= 1))
        part = 1;
    return (int64_t)(part * (double)head);
}

/* A tensor of floats that no file has. */
static enum gguf_status add_tensor(struct gguf_convert *c, const char *name,
                                   const double *x, size_t n,
                                   struct gguf_error *err)
{
    uint8_t *bytes = gg_mem_arena_alloc(&c->arena, 4 * n);
    if (!bytes)
        return gg_error_set_nomem(err, 4 * n);
    for (size_t i = 0; i < n; i++)
        gg_bytes_store32le(bytes + 4 * i, gg_bytes_f32_bits((float)x[i]));
    return gg_safetensors_add(c->from, gg_str_z(name), bytes, n, err);
}

static enum gguf_status add_llama3(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    double base = 10000, factor = 8, low = 1, high = 4, old = 8192;
    const int64_t n = n_rotary(c) / 2;
    double x[4096];
    (void)number(c, "rope_theta rope_parameters.rope_theta", &base);
    (void)number(c, "rope_scaling.factor rope_parameters.factor", &factor);
    (void)number(c,
                 "rope_scaling.low_freq_factor "
                 "rope_parameters.low_freq_factor",
                 &low);
    (void)number(c,
                 "rope_scaling.high_freq_factor "
                 "rope_parameters.high_freq_factor",
                 &high);
    (void)number(c,
                 "rope_scaling.original_max_position_embeddings "
                 "rope_parameters.original_max_position_embeddings",
                 &old);
    if (n < 1 || n > 4096 || !(low > 0) || !(high > low) || !(factor > 0))
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
    return add_tensor(c, "rope_freqs.weight", x, (size_t)n, err);
}

static enum gguf_status add_list(struct gguf_convert *c, const char *names,
                                 const char *tensor, struct gguf_error *err)
{
    const json_t *v = gg_convert_get(c, names);
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
    return add_tensor(c, tensor, x, n, err);
}

/* A number that config.json has, under a key. */
static enum gguf_status copy_f32(struct gguf_convert *c, const char *names,
                                 const char *key, struct gguf_error *err)
{
    char buf[128];
    double x;
    if (!number(c, names, &x))
        return GGUF_OK;
    return gguf_meta_set_f32(c->meta, gg_convert_key(c, key, buf), (float)x,
                             err);
}

static enum gguf_status add_longrope(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    char buf[128];
    int64_t old = 0, now = 0;
    GG_TRY(add_list(c, "rope_scaling.long_factor rope_parameters.long_factor",
                    "rope_factors_long.weight", err));
    GG_TRY(add_list(c,
                    "rope_scaling.short_factor rope_parameters.short_factor",
                    "rope_factors_short.weight", err));
    if (!gg_convert_count(c,
                          "original_max_position_embeddings "
                          "rope_scaling.original_max_position_embeddings "
                          "rope_parameters.original_max_position_embeddings",
                          &old) ||
        !gg_convert_count(c, "max_position_embeddings", &now))
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: longrope without "
                            "original_max_position_embeddings");
    const double scale = (double)now / (double)old;
    const double magnitude =
        scale <= 1 ? 1 : sqrt(1 + log(scale) / log((double)old));
    GG_TRY(gguf_meta_set_u32(
        c->meta,
        gg_convert_key(c, "rope.scaling.original_context_length", buf),
        (uint32_t)old, err));
    return gguf_meta_set_f32(
        c->meta, gg_convert_key(c, "rope.scaling.attn_factor", buf),
        (float)magnitude, err);
}

static enum gguf_status add_scaling(struct gguf_convert *c, const char *type,
                                    struct gguf_error *err)
{
    char buf[128];
    int64_t old;
    GG_TRY(gguf_meta_set_strz(
        c->meta, gg_convert_key(c, "rope.scaling.type", buf), type, err));
    GG_TRY(copy_f32(c, "rope_scaling.factor rope_parameters.factor",
                    "rope.scaling.factor", err));
    if (gg_convert_count(c,
                         "rope_scaling.original_max_position_embeddings "
                         "rope_parameters.original_max_position_embeddings",
                         &old))
        GG_TRY(gguf_meta_set_u32(
            c->meta,
            gg_convert_key(c, "rope.scaling.original_context_length", buf),
            (uint32_t)old, err));
    return GGUF_OK;
}

enum gguf_status gg_convert_rope(struct gguf_convert *c,
                                 struct gguf_error *err)
{
    char buf[128];
    struct gguf_str type;
    struct gg_str_esc e;
    const json_t *v = gg_convert_get(
        c,
        "rope_scaling.rope_type rope_scaling.type rope_parameters.rope_type");
    const int64_t n = n_rotary(c);
    if (c->arch->rope_count && n > 0)
        GG_TRY(gguf_meta_set_u32(
            c->meta, gg_convert_key(c, "rope.dimension_count", buf),
            (uint32_t)n, err));
    if (!gg_json_str(v, &type) || gg_str_eqz(type, "default"))
        return GGUF_OK;
    if (gg_str_eqz(type, "llama3"))
        return add_llama3(c, err);
    if (gg_str_eqz(type, "longrope") || gg_str_eqz(type, "su"))
        return add_longrope(c, err);
    if (gg_str_eqz(type, "linear"))
        return add_scaling(c, "linear", err);
    if (gg_str_eqz(type, "yarn"))
        return add_scaling(c, "yarn", err);
    return gg_error_set(err, GGUF_E_UNSUPPORTED,
                        gg_json_place(&c->text[GG_CONVERT_CONFIG].json, v),
                        "config.json: rope_scaling of type '%s' is not known",
                        gg_str_esc(&e, type));
}
