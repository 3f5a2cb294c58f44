/* SPDX-License-Identifier: MIT */
/* check-rope.c - rotary embedding */
#include "config.h"
#include "tests/cpu/ops.h"

/* The axis that rotates a pair, and the pair's exponent, as the authors of
 * each M-RoPE layout define them. */
static int axis_of(const struct gguf_rope *r, int64_t pair, int64_t *number)
{
    static int axis[2][512];
    int sum = 0, n = 0;
    *number = pair;
    for (int k = 0; k < 4; k++)
        sum += r->sections[k];
    if (r->kind == GGUF_ROPE_IMROPE) {
        /* t h w t h w ..., each axis as often as its section says */
        int64_t i = pair % sum;
        return i < 3 * r->sections[i % 3] ? (int)(i % 3) : 3;
    }
    for (int k = 0; k < 4 && sum; k++)
        for (int i = 0; i < r->sections[k]; i++, n++) {
            axis[0][n] = k;
            axis[1][n] = i;
        }
    if (!sum)
        return 0;
    if (r->kind == GGUF_ROPE_VISION)
        *number = axis[1][pair % sum];
    return axis[0][pair % sum];
}

static double f_rope(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    const tensor *x = t->src[0], *ff = t->src[2];
    struct gguf_rope r;
    memcpy(&r, t->op_params, sizeof r);
    *tol = 0;
    bool vision = r.kind == GGUF_ROPE_VISION;
    if (i0 >= (vision ? 2 : 1) * r.n_dims)
        return at(x, i0, i1, i2, i3);
    int half = vision ? r.n_dims : r.n_dims / 2;
    bool neox = r.kind != GGUF_ROPE_NORM;
    int64_t pair = neox ? i0 % half : i0 / 2, number;
    bool upper = neox ? i0 >= half : i0 & 1;
    int axis = axis_of(&r, pair, &number);
    double theta = at(t->src[1], axis * t->ne[2] + i2, 0, 0, 0) *
                   pow(r.freq_base, -2.0 * (double)number / r.n_dims);
    if (ff)
        theta /= at(ff, pair, 0, 0, 0);
    double g = 0, scale = r.attn_factor;
    if (r.ext_factor != 0) {
        const double pi = 3.14159265358979323846;
        double lo =
            floor(r.n_dims * log(r.n_ctx_orig / (r.beta_fast * 2 * pi)) /
                  (2 * log(r.freq_base)));
        double hi =
            ceil(r.n_dims * log(r.n_ctx_orig / (r.beta_slow * 2 * pi)) /
                 (2 * log(r.freq_base)));
        lo = fmax(lo, 0);
        hi = fmin(hi, r.n_dims - 1);
        double ramp = ((double)pair - lo) / fmax(0.001, hi - lo);
        g = r.ext_factor * (1 - fmax(0, fmin(1, ramp)));
        scale *= 1 + 0.1 * log(1 / (double)r.freq_scale);
    }
    double angle = theta * r.freq_scale * (1 - g) + theta * g;
    double a = at(x, neox ? pair : 2 * pair, i1, i2, i3);
    double b = at(x, neox ? pair + half : 2 * pair + 1, i1, i2, i3);
    *tol = 3 * ulp(t, scale * fmax(fabs(a), fabs(b)));
    return scale * (upper ? a * sin(angle) + b * cos(angle)
                          : a * cos(angle) - b * sin(angle));
}

static const struct {
    const char *name;
    enum gguf_rope_kind kind;
    int32_t n_dims[2]; /* rotated dimensions of heads of 64 elements */
    int32_t sections[4];
} kinds[] = {
    { "norm", GGUF_ROPE_NORM, { 64, 40 }, { 0 } },
    { "neox", GGUF_ROPE_NEOX, { 64, 40 }, { 0 } },
    { "mrope", GGUF_ROPE_MROPE, { 64, 40 }, { 8, 12, 12, 0 } },
    { "mrope of four", GGUF_ROPE_MROPE, { 64, 40 }, { 4, 5, 6, 3 } },
    { "imrope", GGUF_ROPE_IMROPE, { 64, 40 }, { 12, 10, 10, 0 } },
    { "imrope with rest", GGUF_ROPE_IMROPE, { 64, 40 }, { 5, 3, 2, 10 } },
    { "vision", GGUF_ROPE_VISION, { 32, 20 }, { 16, 16, 16, 16 } },
    { "vision of two", GGUF_ROPE_VISION, { 32, 20 }, { 10, 22, 0, 0 } },
};

static void check_rope(void)
{
    for (int v = 0; v < 32 * (int)(sizeof kinds / sizeof *kinds); v++) {
        struct gguf_rope r = GGUF_ROPE_INIT;
        const int k = v % 32, l = k % N_LAYOUTS;
        r.kind = kinds[v / 32].kind;
        r.n_dims = kinds[v / 32].n_dims[k >> 3 & 1];
        memcpy(r.sections, kinds[v / 32].sections, sizeof r.sections);
        if (k & 16) {
            r.ext_factor = 1;
            r.freq_scale = 0.25f;
            r.n_ctx_orig = 4096;
        }
        ctx_t *c = new_ctx();
        int axes = r.kind < GGUF_ROPE_MROPE ? 1 : 4;
        tensor *x = source(c, float_types[k % 3], (enum layout)l, 64, 5, 7, 2);
        tensor *pos = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 7 * axes);
        for (int i = 0; i < 7 * axes; i++)
            ((int32_t *)pos->data)[i] = i % 7 * i * i * 800;
        tensor *ff = NULL;
        if (k & 4) {
            ff = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 32);
            for (int i = 0; i < 32; i++)
                ((float *)ff->data)[i] = 1 + (float)rnd_below(8);
        }
        run_case(c, gguf_op_rope(c, x, pos, ff, &r), f_rope,
                 "rope %s %s, %d dims,%s%s %s", kinds[v / 32].name,
                 layout_names[l], r.n_dims, ff ? " factors," : "",
                 k & 16 ? " yarn," : "", type_name(x));
        gguf_ctx_destroy(c);
    }
    ctx_t *c = new_ctx();
    struct gguf_rope r = GGUF_ROPE_INIT;
    r.n_dims = 64;
    run_case(c,
             gguf_op_rope(c, source(c, GGUF_DTYPE_F32, PLAIN, 64, 5, 0, 2),
                          gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 0), NULL,
                          &r),
             f_rope, "rope of nothing");
    gguf_ctx_destroy(c);
}

/* Qwen2-VL (arXiv 2409.12191; the example is in ggml's header): sections 4, 2,
 * 2 give t t t t y y x x. An image encoder has y y x x, with exponents from 0
 * on each axis. */
static void check_sections(void)
{
    static const struct {
        struct gguf_rope r;
        int64_t d;
        int axis[8];
        int number[8];
    } known[] = {
        { { sizeof(struct gguf_rope),
            16,
            GGUF_ROPE_MROPE,
            0,
            10,
            1,
            0,
            1,
            0,
            0,
            { 4, 2, 2, 0 },
            0 },
          16,
          { 0, 0, 0, 0, 1, 1, 2, 2 },
          { 0, 1, 2, 3, 4, 5, 6, 7 } },
        { { sizeof(struct gguf_rope),
            16,
            GGUF_ROPE_IMROPE,
            0,
            10,
            1,
            0,
            1,
            0,
            0,
            { 3, 3, 2, 0 },
            0 },
          16,
          { 0, 1, 2, 0, 1, 2, 0, 1 },
          { 0, 1, 2, 3, 4, 5, 6, 7 } },
        { { sizeof(struct gguf_rope),
            4,
            GGUF_ROPE_VISION,
            0,
            10,
            1,
            0,
            1,
            0,
            0,
            { 2, 2, 0, 0 },
            0 },
          8,
          { 0, 0, 1, 1 },
          { 0, 1, 0, 1 } },
    };
    static const int32_t position[4] = { 1, 2, 3, 5 };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        struct gguf_error err;
        ctx_t *c = new_ctx();
        const int64_t d = known[k].d;
        tensor *x = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, d);
        tensor *pos = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 4);
        memcpy(pos->data, position, sizeof position);
        for (int64_t i = 0; i < d; i++)
            ((float *)x->data)[i] = i < d / 2; /* rotates to (cosine, sine) */
        tensor *t = gguf_op_rope(c, x, pos, NULL, &known[k].r);
        struct gguf_graph *g = gguf_graph_create(c, 4);
        bool good = gguf_graph_finish(c, g, t, &err) == GGUF_OK &&
                    gguf_backend_compute(ops_backends[0], g, &err) == GGUF_OK;
        for (int64_t i = 0; i < d / 2 && good; i++) {
            double angle =
                position[known[k].axis[i]] *
                pow(10, -2.0 * known[k].number[i] / known[k].r.n_dims);
            good = fabs(at(t, i, 0, 0, 0) - cos(angle)) < 1e-6 &&
                   fabs(at(t, i + d / 2, 0, 0, 0) - sin(angle)) < 1e-6;
        }
        ok(good, "axes of pairing %d are those of its authors",
           known[k].r.kind);
        gguf_ctx_destroy(c);
    }
}

static void check_refused(void)
{
    ctx_t *c = new_ctx();
    struct gguf_rope r = GGUF_ROPE_INIT;
#define ROPE(d, n_pos)                                                        \
    gguf_op_rope(c, gguf_tensor_create_3d(c, GGUF_DTYPE_F32, d, 2, 3),        \
                 gguf_tensor_create_1d(c, GGUF_DTYPE_I32, n_pos), NULL, &r)
    r.n_dims = 8;
    r.kind = GGUF_ROPE_MROPE;
    refused(c, ROPE(8, 12), GGUF_E_SHAPE, "sections of 0, 0, 0, 0");
    r.sections[0] = 4;
    refused(c, ROPE(8, 3), GGUF_E_SHAPE, "3 positions for 3 tokens");
    r.sections[1] = -1;
    refused(c, ROPE(8, 12), GGUF_E_SHAPE, "sections of 4, -1, 0, 0");
    r.kind = GGUF_ROPE_VISION;
    refused(c, ROPE(8, 12), GGUF_E_SHAPE, "cannot rotate 8", "[8, 2, 3]");
    r.kind = 9;
    refused(c, ROPE(8, 12), GGUF_E_INVALID, "pairing 9");
    r.kind = GGUF_ROPE_NEOX;
    refused(c, ROPE(4, 3), GGUF_E_SHAPE, "cannot rotate 8");
    r.freq_base = -1;
    refused(c, ROPE(8, 3), GGUF_E_INVALID, "frequency base -1");
#undef ROPE
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_rope();
    check_sections();
    check_refused();
    ops_end();
    return done_testing();
}
