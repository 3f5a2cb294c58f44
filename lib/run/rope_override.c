/* SPDX-License-Identifier: MIT */
/* rope_override.c - RoPE and window settings of a session that differ from its
 * file
 *
 * The parameters become key-value pairs, which replace those of the file in a
 * variant of the model. */
#include "config.h"
#include "run/session_int.h"

#include "base/compiler.h"
#include "model/weight/needs.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Parameters that are numbers: floats or integers. */
static const struct {
    const char *name;
    enum gg_model_hparam id;
    bool is_float;
    bool yarn; /* used by YaRN alone */
    size_t off;
} numbers[] = {
#define P(NAME, FIELD, FLOAT, YARN)                                           \
    {                                                                         \
#NAME, GG_HP_##FIELD, FLOAT, YARN,                                    \
            offsetof(struct gguf_session_params, NAME)                        \
    }
    P(rope_freq_base, rope_base, true, false),
    P(rope_factor, rope_factor, true, false),
    P(yarn_orig_ctx, n_ctx_orig, false, false),
    P(yarn_ext_factor, yarn_ext, true, true),
    P(yarn_attn_factor, yarn_attn, true, true),
    P(yarn_beta_fast, yarn_fast, true, true),
    P(yarn_beta_slow, yarn_slow, true, true),
    P(n_window, n_window, false, false),
#undef P
};

static const char *const scalings[] = {
    [GGUF_ROPE_SCALING_NONE] = "none",
    [GGUF_ROPE_SCALING_LINEAR] = "linear",
    [GGUF_ROPE_SCALING_YARN] = "yarn",
    [GGUF_ROPE_SCALING_LONGROPE] = "longrope",
};

static float float_of(const struct gguf_session_params *p, size_t i)
{
    float v;
    memcpy(&v, (const char *)p + numbers[i].off, sizeof v);
    return v;
}

static uint32_t uint_of(const struct gguf_session_params *p, size_t i)
{
    uint32_t v;
    memcpy(&v, (const char *)p + numbers[i].off, sizeof v);
    return v;
}

static bool is_given(const struct gguf_session_params *p, size_t i)
{
    if (numbers[i].id == GG_HP_yarn_ext)
        return p->yarn_ext == GGUF_YARN_EXT_FACTOR;
    if (numbers[i].id == GG_HP_n_window)
        return p->window != GGUF_SLIDING_WINDOW_MODEL;
    /* NaN counts as given, and is refused by the range of its key */
    return numbers[i].is_float ? !(float_of(p, i) == 0) : uint_of(p, i) != 0;
}

static void key_of(char key[128], const struct gguf_model *m,
                   enum gg_model_hparam id)
{
    gg_model_key(m, gguf_hparam_at((size_t)id - 1)->key, key, 128);
}

/* ---- settings that a model can use ---- */

static enum gguf_status refuse_model(const struct gguf_model *m,
                                     const char *name, const char *why,
                                     struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "%s: models of architecture '%s' %s", name,
                        m->arch->name, why);
}

static enum gguf_status check_override(const struct gguf_model *m,
                                       const struct gguf_session_params *p,
                                       size_t i, struct gguf_error *err)
{
    struct gg_needs needs;
    if (!is_given(p, i))
        return GGUF_OK;
    gg_needs_fill_keys(m->arch, &needs);
    if (numbers[i].id == GG_HP_n_window)
        return needs.key[GG_HP_n_window]
                   ? GGUF_OK
                   : refuse_model(m, numbers[i].name, "have no windows", err);
    if (m->arch->rope == GG_ROPE_NONE || m->arch->fix_rope)
        return refuse_model(m, numbers[i].name,
                            "have no use for such a number", err);
    return GGUF_OK;
}

/* A setting that has no effect is refused. */
static enum gguf_status check_yarn(const struct gguf_model *m,
                                   const struct gguf_session_params *p,
                                   struct gguf_error *err)
{
    const bool yarn =
        m->hp.has[GG_HP_rope_scaling] && m->hp.rope_scaling.size == 4 &&
        !memcmp(m->hp.rope_scaling.data, scalings[GGUF_ROPE_SCALING_YARN], 4);
    for (size_t i = 0; i < GG_LEN(numbers); i++)
        if (numbers[i].yarn && is_given(p, i) && !yarn)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "%s has an effect with the scaling yarn only",
                                numbers[i].name);
    return GGUF_OK;
}

/* ---- pairs ---- */

static enum gguf_status put_number(struct gguf_meta *meta,
                                   const struct gguf_model *m,
                                   const struct gguf_session_params *p,
                                   size_t i, struct gguf_error *err)
{
    char key[128];
    key_of(key, m, numbers[i].id);
    if (numbers[i].is_float) {
        return gguf_meta_set_f32(meta, key, float_of(p, i), err);
    }
    const bool none = numbers[i].id == GG_HP_n_window &&
                      p->window == GGUF_SLIDING_WINDOW_NONE;
    return gguf_meta_set_u32(meta, key, none ? 0 : uint_of(p, i), err);
}

static enum gguf_status put_all(struct gguf_meta *meta,
                                const struct gguf_model *m,
                                const struct gguf_session_params *p,
                                struct gguf_error *err)
{
    char key[128];
    for (size_t i = 0; i < GG_LEN(numbers); i++) {
        GG_TRY(check_override(m, p, i, err));
        if (is_given(p, i))
            GG_TRY(put_number(meta, m, p, i, err));
    }
    if (!p->rope_scaling)
        return GGUF_OK;
    if (m->arch->rope == GG_ROPE_NONE || m->arch->fix_rope)
        return refuse_model(m, "rope_scaling", "scale no positions", err);
    key_of(key, m, GG_HP_rope_scaling);
    return gguf_meta_set_strz(meta, key, scalings[p->rope_scaling], err);
}

enum gguf_status gg_session_override_rope(struct gguf_session *s,
                                          const struct gguf_session_params *p,
                                          struct gguf_error *err)
{
    if ((unsigned)p->rope_scaling > GGUF_ROPE_SCALING_LONGROPE)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "rope_scaling %d, must be 0 to %d",
                            (int)p->rope_scaling,
                            (int)GGUF_ROPE_SCALING_LONGROPE);
    if ((unsigned)p->yarn_ext > GGUF_YARN_EXT_FACTOR)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "yarn_ext %d, must be 0 to %d", (int)p->yarn_ext,
                            (int)GGUF_YARN_EXT_FACTOR);
    if ((unsigned)p->window > GGUF_SLIDING_WINDOW_TOKENS)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "window %d, must be 0 to %d", (int)p->window,
                            (int)GGUF_SLIDING_WINDOW_TOKENS);
    if (p->window == GGUF_SLIDING_WINDOW_TOKENS && !p->n_window)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "n_window 0, must be 1 or more; "
                            "use GGUF_SLIDING_WINDOW_NONE for none");
    bool any = p->rope_scaling != GGUF_ROPE_SCALING_MODEL;
    for (size_t i = 0; i < GG_LEN(numbers); i++)
        any = any || is_given(p, i);
    if (!any)
        return GGUF_OK;
    GG_TRY(gguf_meta_create(&s->pairs, s->allocator, err));
    GG_TRY(put_all(s->pairs, s->given, p, err));
    GG_TRY(
        gg_model_variant(&s->variant, s->given, s->pairs, s->allocator, err));
    s->model = s->variant;
    return check_yarn(s->variant, p, err);
}
