/* check-rope.c - rotary embedding */
#include "config.h"
#include "tests/cpu/ops.h"

static double f_rope(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    const tensor *x = t->src[0], *ff = t->src[2];
    struct gguf_rope r;
    memcpy(&r, t->op_params, sizeof r);
    *tol = 0;
    if (i0 >= r.n_dims)
        return at(x, i0, i1, i2, i3);
    int half = r.n_dims / 2;
    bool neox = r.kind == GGUF_ROPE_NEOX;
    int64_t pair = neox ? i0 % half : i0 / 2;
    bool upper = neox ? i0 >= half : i0 & 1;
    double theta = at(t->src[1], i2, 0, 0, 0) *
                   pow(r.freq_base, -2.0 * (double)pair / r.n_dims);
    if (ff)
        theta /= at(ff, pair, 0, 0, 0);
    double g = 0, scale = r.attn_factor;
    if (r.ext_factor != 0) {
        const double pi = 3.14159265358979323846;
        double lo = floor(r.n_dims * log(r.n_ctx_orig /
                                         (r.beta_fast * 2 * pi)) /
                          (2 * log(r.freq_base)));
        double hi = ceil(r.n_dims *
                         log(r.n_ctx_orig / (r.beta_slow * 2 * pi)) /
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

static void check_rope(void)
{
    for (int k = 0; k < 64; k++) {
        struct gguf_rope r = GGUF_ROPE_INIT;
        int l = k % N_LAYOUTS;
        r.kind = k & 16 ? GGUF_ROPE_NEOX : GGUF_ROPE_NORM;
        r.n_dims = k & 8 ? 40 : 64;
        if (k & 32) {
            r.ext_factor = 1;
            r.freq_scale = 0.25f;
            r.n_ctx_orig = 4096;
        }
        ctx_t *c = new_ctx();
        tensor *x = source(c, float_types[k % 3], (enum layout)l, 64, 5, 7, 2);
        tensor *pos = gguf_tensor_1d(c, GGUF_DTYPE_I32, 7);
        for (int i = 0; i < 7; i++)
            ((int32_t *)pos->data)[i] = i * i * i * 800;
        tensor *ff = NULL;
        if (k & 4) {
            ff = gguf_tensor_1d(c, GGUF_DTYPE_F32, 32);
            for (int i = 0; i < 32; i++)
                ((float *)ff->data)[i] = 1 + (float)rnd_below(8);
        }
        run_case(c, gguf_op_rope(c, x, pos, ff, &r), f_rope,
                 "rope %s %s, %d dims,%s%s %s", r.kind ? "neox" : "norm",
                 layout_names[l], r.n_dims, ff ? " factors," : "",
                 k & 32 ? " yarn," : "", type_name(x));
        gguf_ctx_destroy(c);
    }
}

int main(void)
{
    ops_begin();
    check_rope();
    ops_end();
    return done_testing();
}
