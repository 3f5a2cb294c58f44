/* SPDX-License-Identifier: MIT */
/* check-adapter-bad.c - malformed adapters are refused with the tensor or the
 * key */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/lora.h"
#include "tests/tap.h"

#include <math.h>

static struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = 96 };

static const struct gguf_session_params *small_session(void)
{
    static struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = 64;
    return &p;
}

static const struct gen_tensor *find_tensor(const struct gen *g,
                                            const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->t[i].name, name))
            return &g->t[i];
    abort();
}

/* ---- refused adapters ---- */

static struct gen bad_model;
static struct lora bad;

static struct gen_tensor *find_half(const char *name)
{
    return (struct gen_tensor *)(uintptr_t)find_tensor(&bad.g, name);
}
static void drop_half(const char *name)
{
    struct gen_tensor *t = find_half(name);
    free((void *)(uintptr_t)t->values);
    bad.g.n--;
    memmove(t, t + 1, (size_t)(bad.g.t + bad.g.n - t) * sizeof *t);
}
static void resize_half(const char *name, int64_t ne0, int64_t ne1)
{
    struct gen_tensor *t = find_half(name);
    free((void *)(uintptr_t)t->values);
    t->values = NULL;
    t->ne[0] = ne0;
    t->ne[1] = ne1;
}
static void set_str(const char *key, const char *s)
{
    if (gguf_meta_set_strz(bad.g.meta, key, s, NULL))
        abort();
}
static void set_alpha(float v)
{
    if (gguf_meta_set_f32(bad.g.meta, "adapter.lora.alpha", v, NULL))
        abort();
}

#define Q "blk.0.attn_q.weight"
static void no_b(void)
{
    drop_half(Q ".lora_b");
}
static void no_a(void)
{
    drop_half(Q ".lora_a");
}
static void other_rank(void)
{
    resize_half(Q ".lora_b", 3, 32);
}
static void turn_half(void)
{
    resize_half(Q ".lora_a", 2, 32);
}
static void both_turned(void)
{
    resize_half("blk.0.ffn_up.weight.lora_a", 2, 32);
    resize_half("blk.0.ffn_up.weight.lora_b", 64, 2);
}
static void short_columns(void)
{
    resize_half(Q ".lora_a", 16, 2);
}
static void long_rows(void)
{
    resize_half(Q ".lora_b", 2, 33);
}
static void three_dims(void)
{
    const char *const names[] = { Q ".lora_a", Q ".lora_b" };
    for (int i = 0; i < 2; i++) {
        struct gen_tensor *t = find_half(names[i]);
        resize_half(names[i], t->ne[0], t->ne[1]);
        t->n_dims = 3;
        t->ne[2] = 2;
    }
}
static void embd_as_matrix(void)
{
    resize_half("token_embd.weight.lora_a", 32, 2);
    resize_half("token_embd.weight.lora_b", 2, 96);
}
static void nan_alpha(void)
{
    set_alpha(NAN);
}
static void inf_alpha(void)
{
    set_alpha(INFINITY);
}
static void huge_alpha(void)
{
    set_alpha(1e30f);
}
static void text_alpha(void)
{
    gguf_meta_remove(bad.g.meta, "adapter.lora.alpha");
    set_str("adapter.lora.alpha", "2");
}
static void other_arch(void)
{
    set_str("general.architecture", "qwen2");
}
static void no_arch(void)
{
    gguf_meta_remove(bad.g.meta, "general.architecture");
}
static void other_type(void)
{
    set_str("general.type", "model");
}
static void other_adapter(void)
{
    set_str("adapter.type", "ia3");
}
static void begins_later(void)
{
    if (gguf_meta_set_array(bad.g.meta, "adapter.alora.invocation_tokens",
                            GGUF_VAL_U32, (const uint32_t[]){ 1 }, 1, NULL))
        abort();
}
static void set_unknown(void)
{
    gen_tensor(&bad.g, 32, 2, "blk.0.attn_x.weight.lora_a");
    gen_tensor(&bad.g, 2, 32, "blk.0.attn_x.weight.lora_b");
}
static void later_layer(void)
{
    gen_tensor(&bad.g, 32, 2, "blk.1.attn_q.weight.lora_a");
    gen_tensor(&bad.g, 2, 32, "blk.1.attn_q.weight.lora_b");
}
static void of_vector(void)
{
    gen_tensor(&bad.g, 32, 2, "output_norm.weight.lora_a");
    gen_tensor(&bad.g, 2, 1, "output_norm.weight.lora_b");
}
static void no_half(void)
{
    gen_tensor(&bad.g, 32, 0, "blk.0.attn_q.bias");
}
static void wide_norm(void)
{
    gen_tensor(&bad.g, 32, 2, "blk.0.attn_norm.weight");
}
static void norms_only(void)
{
    while (bad.g.n)
        drop_half(bad.g.t[0].name);
    gen_tensor(&bad.g, 32, 0, "blk.0.attn_norm.weight");
}
static void bare_end(void)
{
    gen_tensor(&bad.g, 32, 2, ".lora_a");
}
static void change_nothing(void)
{
    while (bad.g.n)
        drop_half(bad.g.t[0].name);
}
static void not_finite(void)
{
    float *v = (float *)(uintptr_t)find_half(Q ".lora_b")->values;
    v[5] = NAN;
}

static void check_refused(void)
{
    static const struct {
        void (*change)(void);
        enum gguf_status status;
        const char *says;
    } rows[] = {
        { no_b, GGUF_E_TENSOR, "'" Q ".lora_a' has no other half" },
        { no_a, GGUF_E_TENSOR, "'" Q ".lora_b' has no other half" },
        { other_rank, GGUF_E_TENSOR,
          "'" Q ".lora_a' has shape [32, 2], and '" Q ".lora_b' [3, 32]" },
        { turn_half, GGUF_E_TENSOR, "'" Q ".lora_a' has shape [2, 32]" },
        { both_turned, GGUF_E_TENSOR,
          "'blk.0.ffn_up.weight.lora_a' has shape [2, 32]" },
        { short_columns, GGUF_E_TENSOR,
          "'" Q ".lora_a' has shape [16, 2], must be [32, 2]: '" Q
          "' has [32, 32]" },
        { long_rows, GGUF_E_TENSOR,
          "'" Q ".lora_b' has shape [2, 33], must be [2, 32]" },
        { three_dims, GGUF_E_TENSOR,
          "'" Q ".lora_a' has shape [32, 2, 2], must be [32, 2]" },
        { embd_as_matrix, GGUF_E_TENSOR,
          "'token_embd.weight.lora_a' has shape [32, 2]" },
        { nan_alpha, GGUF_E_HPARAM, "adapter.lora.alpha is nan" },
        { inf_alpha, GGUF_E_HPARAM, "adapter.lora.alpha is inf" },
        { huge_alpha, GGUF_E_HPARAM, "adapter.lora.alpha is 1e+30" },
        { text_alpha, GGUF_E_TYPE, "adapter.lora.alpha" },
        { other_arch, GGUF_E_MISMATCH,
          "architecture 'qwen2', the model has 'llama'" },
        { no_arch, GGUF_E_NOTFOUND, "general.architecture" },
        { other_type, GGUF_E_MISMATCH, "general.type is 'model'" },
        { other_adapter, GGUF_E_MISMATCH, "adapter.type is 'ia3'" },
        { begins_later, GGUF_E_UNSUPPORTED, "invocation_tokens" },
        { set_unknown, GGUF_E_TENSOR,
          "does not compute with a matrix 'blk.0.attn_x.weight'" },
        { later_layer, GGUF_E_TENSOR,
          "does not compute with a matrix 'blk.1.attn_q.weight'" },
        { of_vector, GGUF_E_TENSOR,
          "does not compute with a matrix 'output_norm.weight'" },
        { no_half, GGUF_E_TENSOR,
          "'blk.0.attn_q.bias' is not half of a low-rank pair" },
        { wide_norm, GGUF_E_TENSOR,
          "'blk.0.attn_norm.weight' is not half of a low-rank pair" },
        { norms_only, GGUF_E_TENSOR, "has 1 norm and no low-rank pairs" },
        { bare_end, GGUF_E_TENSOR, "'.lora_a' is not half" },
        { change_nothing, GGUF_E_TENSOR, "no tensors" },
        { not_finite, GGUF_E_NONFINITE,
          "'" Q ".lora_b': element 5 is not finite" },
    };
    struct lora_opened o;
    struct run r;
    size_t size;
    gen_init(&bad_model, 9);
    gen_model(&bad_model, &spec);
    void *data = gen_file(&bad_model, GGUF_DTYPE_F32, &size);
    if (!run_open(&r, data, size, 1, small_session()))
        abort();
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        lora_of_llama(&bad, &bad_model, 2, 2);
        rows[i].change();
        gguf_error_clear(&r.err);
        const enum gguf_status st = lora_open(&o, r.model, &bad, &r.err);
        ok(st == rows[i].status && !o.adapter &&
               strstr(r.err.message, rows[i].says),
           "refused: %s", r.err.message);
        lora_close(&o);
        lora_fini(&bad);
    }
    run_close(&r);
    free(data);
    gen_fini(&bad_model);
}

/* An adapter of another model is refused, and a scale that is not finite. */
static void check_uses(void)
{
    struct gen g;
    struct lora l;
    struct lora_opened o;
    struct run r, other;
    struct gguf_adapter_use use = { NULL, 1 };
    size_t size;
    gen_init(&g, 10);
    gen_model(&g, &spec);
    lora_of_llama(&l, &g, 2, 2);
    void *data = gen_file(&g, GGUF_DTYPE_F32, &size);
    if (!run_open(&r, data, size, 1, small_session()) ||
        !run_open(&other, data, size, 1, small_session()) ||
        lora_open(&o, r.model, &l, &r.err))
        abort();
    use.adapter = o.adapter;
    ok(gguf_session_set_adapters(other.session, &use, 1, &r.err) ==
               GGUF_E_INVALID &&
           strstr(r.err.message, "adapter 0: created for another model"),
       "%s", r.err.message);
    static const float scales[] = { NAN, INFINITY, 1e10f };
    for (size_t i = 0; i < GG_LEN(scales); i++) {
        use.scale = scales[i];
        ok(gguf_session_set_adapters(r.session, &use, 1, &r.err) ==
                   GGUF_E_INVALID &&
               strstr(r.err.message, "adapter 0 has scale"),
           "%s", r.err.message);
    }
    use.adapter = NULL;
    ok(gguf_session_set_adapters(r.session, &use, 1, &r.err) ==
               GGUF_E_INVALID &&
           gguf_session_set_adapters(r.session, NULL, 1, &r.err) ==
               GGUF_E_INVALID &&
           !gguf_session_n_adapters(r.session),
       "%s", r.err.message);
    run_close(&r);
    run_close(&other);
    lora_close(&o);
    lora_fini(&l);
    gen_fini(&g);
    free(data);
}

int main(void)
{
    check_refused();
    check_uses();
    return done_testing();
}
