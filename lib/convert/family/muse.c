/* SPDX-License-Identifier: MIT */
/* muse.c - classes of Muse Glimmer
 *
 * Queries and keys have norms without weights, and queries are multiplied by a
 * constant then. Files hold both as weights of norms, which no folder has. Keys
 * are those that llama.cpp's converter writes (conversion/muse_glimmer.py,
 * September 2026).
 */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

#define POST_EPS 1e-8

/* Is the rotary embedding of the layers the one that files describe: in all
 * layers with windows and in no others? */
static bool turns_in_windows(const struct gg_hf_config *cfg)
{
    const double n =
        fmin(num_of(cfg, "num_hidden_layers"), GG_HF_CONFIG_LAYERS);
    for (int64_t i = 0; (double)i < n; i++) {
        const double base = num_at(cfg, "layer_rope_theta", i);
        const double sliding = gg_convert_is_sliding(cfg, i);
        if (!isnan(base) && !isnan(sliding) && (base != 0) != (sliding != 0))
            return false;
    }
    return true;
}

static bool is_muse(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "post_norm_eps", POST_EPS) == POST_EPS &&
           turns_in_windows(cfg);
}

/* ---- weights of the norms of queries and keys ---- */

enum { MOST = 4096 }; /* elements of a head */

static enum gguf_status add_constant(struct gguf_convert *c, int64_t layer,
                                     const char *what, double value, size_t n,
                                     struct gguf_error *err)
{
    double x[MOST];
    char name[64];
    snprintf(name, sizeof name, "blk.%" PRId64 ".%s.weight", layer, what);
    for (size_t i = 0; i < n; i++)
        x[i] = value;
    return gg_convert_add_computed(c, name, x, n, err);
}

static enum gguf_status add_head_norms(struct gguf_convert *c,
                                       struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double scale = num_of(&cfg, "qk_scale_factor");
    const double n = gg_convert_head_dim(&cfg);
    const double layers = num_of(&cfg, "num_hidden_layers");
    if (isnan(scale))
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json has no qk_scale_factor, which is the "
                            "constant in attn_q_norm of all layers");
    if (!(n >= 1) || n > MOST)
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: head_dim is %g, must be 1 to %d", n,
                            (int)MOST);
    if (!(layers <= GG_HF_CONFIG_LAYERS))
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: num_hidden_layers is %g, limit is "
                            "%d",
                            layers, (int)GG_HF_CONFIG_LAYERS);
    for (int64_t i = 0; (double)i < layers; i++) {
        GG_TRY(add_constant(c, i, "attn_q_norm", scale, (size_t)n, err));
        GG_TRY(add_constant(c, i, "attn_k_norm", 1, (size_t)n, err));
    }
    return GGUF_OK;
}

/* ---- way back ---- */

/* The constant that a norm of the layers has as its weights; NAN: weights
 * differ. */
static double find_constant(const struct gg_back_maker *m, const char *what)
{
    double found = NAN;
    for (int64_t il = 0; il < gg_back_n_layers(m); il++) {
        float x[MOST];
        size_t n = 0;
        char name[64];
        snprintf(name, sizeof name, "blk.%" PRId64 ".%s.weight", il, what);
        if (!gg_back_read_tensor(m, name, x, &n))
            return NAN;
        for (size_t i = 0; i < n; i++) {
            found = il || i ? found : (double)x[0];
            if ((double)x[i] != found)
                return NAN;
        }
    }
    return found;
}

static double rope_theta_of(const struct gg_hf_config *keys, int64_t layer)
{
    const double sliding =
        num_at(keys, "attention.sliding_window_pattern", layer);
    return sliding == 0 ? 0 : num_or(keys, "rope.freq_base", 10000);
}

/* If weights differ, qk_scale_factor stays missing, so that add_head_norms()
 * refuses the folder. */
static void put_muse(struct gg_back_maker *m)
{
    if (find_constant(m, "attn_k_norm") == 1)
        gg_back_put_num(m, "qk_scale_factor", find_constant(m, "attn_q_norm"));
    gg_back_put_word(m, "hidden_activation", "silu");
    gg_back_put(m->root, "post_norm_eps", json_real(POST_EPS));
    gg_back_put_layers(m, "layer_rope_theta", rope_theta_of);
}

static const struct gg_convert_name muse_names[] = {
    N_COMPUTED("blk.%.attn_q_norm", B "attn_q_norm"),
    N_COMPUTED("blk.%.attn_k_norm", B "attn_k_norm"),
    N(L "self_attn.gate_proj", B "attn_gate"),
    N_HOW(L "input_layernorm", B "attn_norm", PLUS_1),
    N_HOW(L "post_attention_layernorm", B "post_attention_norm", PLUS_1),
    N_HOW(L "pre_feedforward_layernorm", B "ffn_norm", PLUS_1),
    N_HOW(L "post_feedforward_layernorm", B "post_ffw_norm", PLUS_1),
    END_NAMES
};

const struct gg_convert_arch gg_convert_family_muse[] = {
    { .classes = "MuseGlimmerForConditionalGeneration",
      .model_type = "muse_glimmer",
      .arch = "muse-glimmer",
      .when = is_muse,
      .add_tensors = add_head_norms,
      .back = put_muse,
      .skip = "model.vision_ vision_adapter. vision_projection.",
      .names = OVER(muse_names),
      .keys = ROWS(F32("final_logit_softcapping", "final_logit_softcapping"),
                   F32("logit_scale", "output_multiplier"), WINDOW, PATTERN),
      .roles = "eot=<|eot|>",
      .permuted = true },
    { .classes = NULL }
};
