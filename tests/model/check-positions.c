/* SPDX-License-Identifier: MIT */
/* check-positions.c - what rows of architectures say of positions beyond their
 * samples: sections of axes, a base that grows, temperatures */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary_tap.h"
#include "tests/tap.h"

#include <math.h>

enum { N = VARY_N, V = VARY_V };

static void sections(int32_t a, int32_t b, int32_t c, int32_t d)
{
    const int32_t v[] = { a, b, c, d };
    vary_i32s(".rope.dimension_sections", v, 4);
}

/* ---- axes ---- */

static void one_axis(void)
{
    sections(16, 0, 0, 0);
}
static void last_axis(void)
{
    sections(12, 0, 0, 4);
}
static void two_axes(void)
{
    sections(4, 4, 0, 0);
}
static void two_others(void)
{
    sections(2, 3, 3, 0);
}
static void wide_axes(void)
{
    sections(16, 16, 16, 16);
}
static void no_axes(void)
{
    sections(0, 0, 0, 0);
}
static void second_only(void)
{
    sections(0, 4, 4, 4);
}
static void three(void)
{
    const int32_t v[] = { 6, 5, 5 };
    vary_i32s(".rope.dimension_sections", v, 3);
}
static void negative(void)
{
    sections(6, -5, 5, 0);
}
static void none(void)
{
    vary_drop(".rope.dimension_sections");
}

static void check_axes(void)
{
    static const char *const texts[] = { "qwen2vl", "paddleocr",
                                         "hunyuan_vl" };
    for (size_t i = 0; i < GG_LEN(texts); i++)
        vary_same(texts[i], NULL, one_axis, 0,
                  "a text does not tell three axes from one");
    vary_by("qwen2vl", NULL, last_axis, 5e-5, "the last one's pairs rest");
    vary_counts("qwen3vl", NULL, one_axis,
                "interleaved, two thirds of one axis's pairs are others'");
    vary_counts("glm4", NULL, two_axes, "with axes, halves are pairs");
    vary_same("glm4", two_axes, two_others, 0, "whichever");
    vary_same("glm4", NULL, second_only, 0, "one axis is none");
    vary_same("glm4", NULL, no_axes, 0, "nor are none");
    vary_same("glm4moe", NULL, two_axes, 0, "halves were pairs before");
    vary_same("hunyuan_vl", NULL, none, 0, "sections need not be there");
    vary_refused("qwen2vl", none,
                 "'qwen2vl.rope.dimension_sections' is missing");
    vary_refused("qwen2vl", no_axes,
                 "qwen2vl.rope.dimension_sections has sections of 0, 0");
    vary_refused("qwen3vl", wide_axes, "must be 1 to 32 together");
    vary_refused("paddleocr", three,
                 "paddleocr.rope.dimension_sections must be four numbers");
    vary_refused("qwen3vlmoe", negative, "must be four numbers");
}

/* ---- a base that grows ---- */

static void alpha(void)
{
    vary_f32(".rope.scaling.alpha", 50);
}
static void grown(void)
{
    vary_f32(".rope.freq_base", (float)(10000 * pow(50, 32.0 / (32 - 2))));
}
static void alpha_0(void)
{
    vary_f32(".rope.scaling.alpha", 0);
}

static void check_alpha(void)
{
    vary_counts("hunyuan-dense", NULL, alpha, "alpha counts");
    vary_same("hunyuan-dense", alpha, grown, 1e-12,
              "the base times alpha^(d / (d - 2))");
    vary_same("hunyuan_vl", alpha, grown, 1e-12, "also with axes");
    vary_same("hunyuan-dense", NULL, alpha_0, 0, "0 is none");
}

/* ---- temperatures, and YaRN's magnitude ---- */

static void no_temper(void)
{
    vary_drop(".attention.temperature_scale");
}
static void temper_0(void)
{
    vary_f32(".attention.temperature_scale", 0);
}
static void cool(void) /* no position reaches the context */
{
    vary_str(".rope.scaling.type", "linear");
    vary_u32(".rope.scaling.original_context_length", N);
}
static void cool_none(void)
{
    cool();
    no_temper();
}
static void no_context(void) /* 128 */
{
    vary_str(".rope.scaling.type", "linear");
    vary_drop(".rope.scaling.original_context_length");
}
static void half_log(void)
{
    vary_f32(".rope.scaling.yarn_log_multiplier", 0.5f);
}
static void no_log(void)
{
    vary_drop(".rope.scaling.yarn_log_multiplier");
}
static void attn_factor(void)
{
    no_log();
    vary_f32(".rope.scaling.attn_factor", (float)(1 / (1 + 0.05 * log(16))));
}
static void yarn_factor(void)
{
    no_log();
    vary_f32(".rope.scaling.yarn_attn_factor", 1.25f);
}
static void no_extrapolation(void)
{
    no_log();
    vary_f32(".rope.scaling.yarn_ext_factor", 0);
}
static void one_factor(void)
{
    no_extrapolation();
    vary_f32(".rope.scaling.attn_factor", 1.25f);
}
static void two_factors(void)
{
    no_extrapolation();
    vary_f32(".rope.scaling.attn_factor", 0.5f);
    vary_f32(".rope.scaling.yarn_attn_factor", 2.5f);
}

static void by_one_key(void)
{
    vary_f32(".attention.temperature_scale", 0.5f);
    vary_drop(".attention.temperature_length");
}
static void by_two_keys(void)
{
    by_one_key();
    vary_u32(".attention.temperature_length", 16);
}
static void by_long_key(void)
{
    by_one_key();
    vary_u32(".attention.temperature_length", N);
}

static void check_temper(void)
{
    vary_counts("mistral3", NULL, no_temper, "the temperature counts");
    vary_same("mistral3", temper_0, no_temper, 0, "0 is none");
    vary_same("mistral3", cool, cool_none, 0,
              "it grows from the context before scaling on");
    vary_same("mistral3", no_context, cool_none, 0,
              "which is all of it without the key");
    vary_same("mistral3", half_log, attn_factor, 1e-12,
              "the log multiplier divides the magnitude");
    vary_same("mistral3", yarn_factor, no_log, 0,
              "YaRN's own magnitude stands in the place of its key");
    vary_counts("mistral3", one_factor, no_extrapolation,
                "without extrapolation there is none but those of keys");
    vary_same("mistral3", one_factor, two_factors, 0,
              "which multiply each other");
    vary_counts("mistral3", NULL, half_log, "the log multiplier counts");
    vary_counts("mistral4", NULL, by_two_keys, "a temperature of two keys");
    vary_same("mistral4", NULL, by_long_key, 0, "none before its length");
    vary_refused("mistral4", by_one_key,
                 "'mistral4.attention.temperature_length' is missing");
}

/* ---- qwen2vl's epsilon ---- */

static void no_epsilon(void)
{
    vary_f32(".attention.layer_norm_rms_epsilon", 0);
}

/* The other program reads no epsilon here and has 0; with 0 the answers are
 * its, to rounding. */
static void check_epsilon(void)
{
    static float x[N * V];
    static struct skeleton m;
    struct gguf_error err;
    const bool good = vary_outputs("qwen2vl", no_epsilon, N, N, x, &err);
    double d = 9;
    if (good && skeleton_open(&m, "qwen2vl"))
        d = skeleton_nmse(&m, x);
    skeleton_close(&m);
    ok(d < 1e-10, "qwen2vl: but for the epsilon as in the sample: %.2g", d);
}

int main(void)
{
    check_axes();
    check_alpha();
    check_temper();
    check_epsilon();
    return done_testing();
}
