/* SPDX-License-Identifier: MIT */
/* check-control.c - control vectors: directions added after layers agree with
 * a calculation in double precision, and malformed ones are refused */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/lora.h"
#include "tests/model/ref.h"
#include "tests/tap.h"

#include <math.h>

enum { N = LORA_TOKENS, EMBD = 32, LAYERS = 3, V = 96, ALL = N * V };

static struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = V, .ffn_bias = 1 };
static gguf_token tokens[N];
static struct gen model, control;
static float direction[LAYERS][EMBD];
static struct run r;

static const struct gguf_session_params *small_session(void)
{
    static struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = 64;
    return &p;
}

/* Make directions for layers 1 and 2. */
static void make_control(void)
{
    gen_init(&control, 3);
    if (gguf_meta_set_strz(control.meta, "general.architecture",
                           "controlvector", NULL) ||
        gguf_meta_set_strz(control.meta, "controlvector.model_hint", "llama",
                           NULL) ||
        gguf_meta_set_i32(control.meta, "controlvector.layer_count", 2, NULL))
        abort();
    for (int il = 1; il < LAYERS; il++) {
        gen_tensor(&control, EMBD, 0, "direction.%d", il);
        for (int i = 0; i < EMBD; i++)
            direction[il][i] = (float)sin(il * 10 + i);
        control.t[control.n - 1].values = direction[il];
    }
}

static enum gguf_status open_control(struct lora_opened *o,
                                     const struct gguf_adapter_params *p)
{
    size_t size;
    void *data = gen_file(&control, GGUF_DTYPE_F32, &size);
    *o = (struct lora_opened){ .data = data };
    enum gguf_status st =
        gguf_file_open_memory(&o->file, data, size, NULL, &r.err);
    return st ? st
              : gguf_adapter_create(&o->adapter, r.model, o->file, p, &r.err);
}

/* In double precision: a direction after a layer equals a change of the bias
 * of the layer's last matrix. */
static void reference_logits(const double *scale, double *out)
{
    static float bias[LAYERS][EMBD];
    for (int il = 0; il < LAYERS; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_down.bias", il);
        for (size_t i = 0; i < model.n; i++) {
            struct gen_tensor *t = &model.t[i];
            if (strcmp(t->name, name))
                continue;
            t->values = NULL;
            gen_weights(bias[il], &model, t);
            for (int k = 0; k < EMBD; k++)
                bias[il][k] = (float)((double)bias[il][k] +
                                      scale[il] * (double)direction[il][k]);
            t->values = bias[il];
        }
    }
    ref_logits(&model, &spec, tokens, N, out);
}

static double distance_of(const float *x, const double *y)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < ALL; i++) {
        d += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        s += y[i] * y[i];
    }
    return d / s;
}

static void check_sums(void)
{
    static float plain[ALL], out[ALL];
    static double ref[ALL];
    struct lora_opened o[2];
    struct gguf_adapter_params p = GGUF_ADAPTER_PARAMS_INIT;
    bool good = lora_outputs(&r, tokens, plain) && !open_control(&o[0], &p);
    p.first_layer = p.last_layer = 2;
    good = good && !open_control(&o[1], &p);
    ok(good && gguf_adapter_info(o[0].adapter)->n_directions == 2 &&
           gguf_adapter_info(o[1].adapter)->n_directions == 1,
       "two control vectors, one of layer 2 alone %s",
       good ? "" : r.err.message);
    static const float scales[][2] = {
        { 1, 0 }, { -0.5f, 0 }, { 0, 2 }, { 0.25f, -1 }
    };
    for (size_t i = 0; good && i < GG_LEN(scales); i++) {
        const struct gguf_adapter_use use[] = {
            { o[0].adapter, scales[i][0] }, { o[1].adapter, scales[i][1] }
        };
        const double by[LAYERS] = { 0, (double)scales[i][0],
                                    (double)(scales[i][0] + scales[i][1]) };
        good = !gguf_session_set_adapters(r.session, use, 2, &r.err) &&
               lora_outputs(&r, tokens, out);
        reference_logits(by, ref);
        ok(good && distance_of(out, ref) < 1e-10 &&
               run_nmse(out, plain, ALL) > 1e-4,
           "scales %g and %g: %.2g from doubles %s", (double)scales[i][0],
           (double)scales[i][1], distance_of(out, ref),
           good ? "" : r.err.message);
    }
    const struct gguf_adapter_use none = { o[0].adapter, 0 };
    good = good && !gguf_session_set_adapters(r.session, &none, 1, &r.err) &&
           lora_outputs(&r, tokens, out);
    ok(good && !memcmp(out, plain, sizeof out), "scale 0: the same bits");
    good = !gguf_session_set_adapters(r.session, NULL, 0, &r.err);
    lora_close(&o[0]);
    lora_close(&o[1]);
}

/* ---- refused vectors ---- */

static void rename_to(const char *name)
{
    snprintf(control.t[0].name, sizeof control.t[0].name, "%s", name);
}
static void layer_0(void)
{
    rename_to("direction.0");
}
static void layer_3(void)
{
    rename_to("direction.3");
}
static void no_number(void)
{
    rename_to("direction.x");
}
static void set_huge(void)
{
    rename_to("direction.99999999999999999999");
}
static void other_tensor(void)
{
    rename_to("token_embd.weight");
}
static void set_narrow(void)
{
    control.t[0].ne[0] = EMBD / 2;
}
static void two_dims(void)
{
    control.t[0].n_dims = 2;
    control.t[0].ne[0] = EMBD / 2;
    control.t[0].ne[1] = 2;
}
static void other_arch(void)
{
    if (gguf_meta_set_strz(control.meta, "controlvector.model_hint", "qwen2",
                           NULL))
        abort();
}
static void not_finite(void)
{
    direction[1][4] = NAN;
}
static void change_nothing(void)
{
    control.n = 0;
}

static void check_refused(void)
{
    static const struct {
        void (*change)(void);
        enum gguf_status status;
        const char *says;
    } rows[] = {
        { layer_0, GGUF_E_TENSOR, "'direction.0', expected direction.N" },
        { layer_3, GGUF_E_TENSOR,
          "'direction.3' belongs to a layer that the model lacks: it has 3" },
        { no_number, GGUF_E_TENSOR, "'direction.x', expected direction.N" },
        { set_huge, GGUF_E_TENSOR,
          "'direction.99999999999999999999', expected" },
        { other_tensor, GGUF_E_TENSOR,
          "'token_embd.weight', expected direction" },
        { set_narrow, GGUF_E_TENSOR,
          "'direction.1' has 16 elements, must have shape [32]" },
        { two_dims, GGUF_E_TENSOR, "'direction.1' has 32 elements, must" },
        { other_arch, GGUF_E_MISMATCH,
          "architecture 'qwen2', the model has 'llama'" },
        { not_finite, GGUF_E_NONFINITE,
          "'direction.1': element 4 is not finite" },
        { change_nothing, GGUF_E_TENSOR, "no direction for these layers" },
    };
    struct lora_opened o;
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        gen_fini(&control);
        make_control();
        rows[i].change();
        gguf_error_clear(&r.err);
        ok(open_control(&o, NULL) == rows[i].status && !o.adapter &&
               strstr(r.err.message, rows[i].says),
           "refused: %s", r.err.message);
        lora_close(&o);
    }
}

int main(void)
{
    size_t size;
    for (int i = 0; i < N; i++)
        tokens[i] = (gguf_token)((37 * i + 11) % V);
    spec.n_layer = LAYERS;
    gen_init(&model, 5);
    gen_model(&model, &spec);
    make_control();
    void *data = gen_file(&model, GGUF_DTYPE_F32, &size);
    if (!run_open(&r, data, size, 1, small_session()))
        abort();
    check_sums();
    check_refused();
    run_close(&r);
    gen_fini(&control);
    gen_fini(&model);
    free(data);
    return done_testing();
}
