/* SPDX-License-Identifier: MIT */
/* check-adapter-archs.c - adapters of every architecture that can be evaluated
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/lora.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>

enum { N = LORA_TOKENS };

static const struct gguf_session_params *small_session(void)
{
    static struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = 64;
    return &p;
}

/* ---- every architecture ---- */

/* Is this a tensor that adapters cannot change, although it has the shape of a
 * matrix? */
static bool is_other(const char *name)
{
    static const char *const ends[] = { "_norm.weight", "ssm_a",   "ssm_d",
                                        ".bias",        ".lora_a", ".lora_b" };
    const size_t n = strlen(name);
    for (size_t i = 0; i < GG_LEN(ends); i++)
        if (n > strlen(ends[i]) &&
            !strcmp(name + n - strlen(ends[i]), ends[i]))
            return true;
    return strstr(name, ".vis_") != NULL;
}

/* Is an adapter for this matrix refused? Its elements are used outside of
 * products and token look-ups. */
static bool is_refused(const char *name)
{
    static const char *const parts[] = {
        "altup_proj.", "altup_unembd_proj.", "conv1d", ".conv.", "attn_rel_b.",
        "_lerp_",      "time_mix_first",
    };
    for (size_t i = 0; i < GG_LEN(parts); i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

/* Does a session take an adapter with a pair for this weight alone? */
static bool takes_adapter(struct run *r, const char *arch,
                          const struct gen_tensor *t)
{
    struct lora l;
    struct lora_opened o;
    struct gguf_adapter_use use = { NULL, 1 };
    lora_init(&l, arch, 2);
    lora_pair(&l, t, 2, 0.1);
    enum gguf_status st = lora_open(&o, r->model, &l, &r->err);
    use.adapter = o.adapter;
    if (st == GGUF_OK)
        st = gguf_session_set_adapters(r->session, &use, 1, &r->err);
    if (st == GGUF_OK)
        st = gguf_session_set_adapters(r->session, NULL, 0, &r->err);
    lora_close(&o);
    lora_fini(&l);
    return st == GGUF_OK;
}

/* Add pairs for all weights that take one. Returns their number. */
static size_t fill_adapter(struct lora *l, struct run *r, const char *arch,
                           const struct gen *g, bool *good)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct gen_tensor *t = &g->t[i];
        if (t->n_dims < 2 || is_other(t->name))
            continue;
        const bool can = takes_adapter(r, arch, t);
        if (can && !is_refused(t->name))
            lora_pair(l, t, 1 + (int64_t)(i % 3),
                      0.3 / sqrt((double)t->ne[0]));
        if (can == is_refused(t->name)) {
            printf("# %s: '%s' takes %s: %s\n", arch, t->name,
                   can ? "one" : "none", r->err.message);
            *good = false;
        }
        n += can;
    }
    return n;
}

/* Measure how far rounding may move the outputs of s with the adapters'
 * products added in: each weight moves by four units of single precision, up
 * and down in turn, as a sum of some hundred terms in another order would.
 * Returns the NMSE; below 0: evaluation failed. */
static double measure_rounding(struct skeleton *s, const gguf_token *tok,
                               const float *added, size_t n_out)
{
    static float moved[N * 1024];
    size_t size;
    struct run r;
    for (size_t i = 0; i < s->g.n; i++) {
        float *v = (float *)(uintptr_t)s->g.t[i].values;
        for (size_t k = 0; k < lora_n(&s->g.t[i]); k++)
            v[k] *= 1 + (k % 2 ? 4 : -4) * FLT_EPSILON / 2;
    }
    void *data = gen_file(&s->g, GGUF_DTYPE_F32, &size);
    const bool good = run_open(&r, data, size, 1, small_session()) &&
                      lora_outputs(&r, tok, moved);
    const double d = good ? run_nmse(moved, added, n_out) : -1;
    run_close(&r);
    free(data);
    return d;
}

static void check_arch(const char *name)
{
    static float plain[N * 1024], with[N * 1024], none[N * 1024],
        added[N * 1024];
    struct skeleton s;
    struct lora l;
    struct lora_opened o = { 0 };
    struct run r, sum;
    size_t size, sum_size;
    gguf_token tok[SKELETON_TOKENS];
    struct gguf_str arch;
    char arch_z[64];
    if (!skeleton_open(&s, name) || !s.n_rows) {
        skeleton_close(&s);
        return;
    }
    skeleton_tokens_of(&s, tok);
    if (gguf_kv_get_str(gguf_meta_find(s.g.meta, "general.architecture"),
                        &arch, NULL))
        abort();
    snprintf(arch_z, sizeof arch_z, "%.*s", (int)arch.size, arch.data);
    void *data = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    bool good = run_open(&r, data, size, 1, small_session()) &&
                lora_outputs(&r, tok, plain);
    lora_init(&l, arch_z, 3);
    const size_t n = good ? fill_adapter(&l, &r, arch_z, &s.g, &good) : 0;
    struct gguf_adapter_use use = { NULL, 0.75f };
    good = good && lora_open(&o, r.model, &l, &r.err) == GGUF_OK;
    use.adapter = good ? o.adapter : NULL;
    good = good && !gguf_session_set_adapters(r.session, &use, 1, &r.err) &&
           lora_outputs(&r, tok, with);
    use.scale = 0;
    good = good && !gguf_session_set_adapters(r.session, &use, 1, &r.err) &&
           lora_outputs(&r, tok, none);
    const struct lora *ls[] = { &l };
    lora_add_in(&s.g, ls, (const double[]){ 0.75 }, 1);
    void *both = gen_file(&s.g, GGUF_DTYPE_F32, &sum_size);
    const bool opened = run_open(&sum, both, sum_size, 1, small_session()) &&
                        lora_outputs(&sum, tok, added);
    const struct gguf_model_info *info =
        good ? gguf_model_info(r.model) : NULL;
    const size_t n_out =
        good ? N * (info->has_logits ? info->n_vocab : info->n_embd) : 0;
    const double d = n_out ? run_nmse(with, added, n_out) : 9;
    const double far = n_out ? run_nmse(with, plain, n_out) : 0;
    const double most =
        d < 1e-9 || !opened ? 1e-9 : measure_rounding(&s, tok, added, n_out);
    ok(good && opened && d < most && far > 1e-4 &&
           !memcmp(plain, none, n_out * sizeof *plain),
       "%s: %zu pairs: %.2g from the sum (%.2g may be), %.2g from the model "
       "%s%s",
       name, n, d, most, far, good ? "" : r.err.message,
       opened ? "" : sum.err.message);
    lora_drop_values(&s.g);
    run_close(&sum);
    run_close(&r);
    if (o.data)
        lora_close(&o);
    lora_fini(&l);
    free(both);
    free(data);
    skeleton_close(&s);
}

/* ---- what becomes of pooled vectors ---- */

enum { VECTOR = 256 };

/* Models with two matrices after pooling. rows 0: square. */
static const struct heads {
    const char *model;
    enum gguf_pooling pooling;
    const char *name[2];
    int64_t rows[2];
} heads[] = {
    { "bert",
      GGUF_POOLING_RANK,
      { "cls.weight", "cls.output.weight" },
      { 0, 16 } },
    { "gemma-embedding",
      GGUF_POOLING_MEAN,
      { "dense_2.weight", "dense_3.weight" },
      { 96, 0 } },
};

static void add_heads(struct gen *g, const struct heads *h)
{
    static const char *const keys[] = { "gemma-embedding.dense_2_feat_out",
                                        "gemma-embedding.dense_3_feat_in" };
    const int64_t n = g->t[0].ne[0];
    int64_t columns = n;
    for (int i = 0; i < 2; i++) {
        const int64_t rows = h->rows[i] ? h->rows[i] : n;
        gen_tensor(g, columns, rows, "%s", h->name[i]);
        columns = rows;
        if (h->pooling == GGUF_POOLING_MEAN &&
            gguf_meta_set_u32(g->meta, keys[i], 96, NULL))
            abort();
    }
}

/* Vector of the whole text. Returns its number of elements; 0: failed. */
static size_t get_vector(struct run *r, const gguf_token *tok,
                         float out[VECTOR])
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    const float *row;
    size_t n;
    b.n = N;
    b.token = tok;
    if (gguf_session_decode(r->session, &b, &r->err) != GGUF_OK ||
        gguf_session_embedding(r->session, 0, &row, &n, &r->err) != GGUF_OK ||
        n > VECTOR)
        return 0;
    memcpy(out, row, n * sizeof *out);
    return n;
}

static size_t vector_with(struct run *r, const struct lora_opened *o,
                          float scale, const gguf_token *tok,
                          float out[VECTOR])
{
    const struct gguf_adapter_use use = { o->adapter, scale };
    return gguf_session_set_adapters(r->session, &use, 1, &r->err) == GGUF_OK
               ? get_vector(r, tok, out)
               : 0;
}

/* Vector of the whole text from a session created with the adapter. */
static size_t vector_from(struct run *r, const struct lora_opened *o,
                          float scale, struct gguf_session_params p,
                          const gguf_token *tok, float out[VECTOR])
{
    const struct gguf_adapter_use use = { o->adapter, scale };
    p.backend = r->backend;
    p.adapters = &use;
    p.n_adapters = 1;
    gguf_session_destroy(r->session);
    r->session = NULL;
    return gguf_session_create(&r->session, r->model, &p, &r->err) == GGUF_OK
               ? get_vector(r, tok, out)
               : 0;
}

/* Test an adapter with a pair for matrix 0, 1 or both (which 0, 1, 2) against
 * the model with the products added in. */
static void check_heads(const struct heads *h, int which)
{
    static struct skeleton s;
    struct lora l;
    const struct lora *const one = &l;
    const double scale = 0.5;
    struct lora_opened o = { 0 };
    struct run r = { 0 }, sum = { 0 };
    struct gguf_session_params p = *small_session();
    gguf_token tok[SKELETON_TOKENS];
    float v[6][VECTOR];
    size_t size, sum_size, n = 0;
    if (!skeleton_open(&s, h->model))
        abort();
    add_heads(&s.g, h);
    lora_init(&l, h->model, 1);
    for (size_t i = 0; i < 2; i++)
        if (which == (int)i || which == 2)
            lora_pair(&l, &s.g.t[s.g.n - 2 + i], 2, 0.1);
    skeleton_tokens_of(&s, tok);
    void *data = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    lora_add_in(&s.g, &one, &scale, 1);
    void *added = gen_file(&s.g, GGUF_DTYPE_F32, &sum_size);
    lora_drop_values(&s.g);
    p.pooling = h->pooling;
    const bool good = run_open(&sum, added, sum_size, 1, &p) &&
                      run_open(&r, data, size, 1, &p) &&
                      !lora_open(&o, r.model, &l, &r.err) &&
                      (n = get_vector(&sum, tok, v[0])) &&
                      get_vector(&r, tok, v[1]) == n &&
                      vector_with(&r, &o, 0.5f, tok, v[2]) == n &&
                      vector_with(&r, &o, -1, tok, v[3]) == n &&
                      vector_with(&r, &o, 0, tok, v[4]) == n &&
                      vector_from(&r, &o, 0.5f, p, tok, v[5]) == n;
    const double d = good ? run_nmse(v[2], v[0], n) : 9;
    const double far = good ? run_nmse(v[2], v[1], n) : 0;
    ok(good && d < 1e-9 && far > 1e-5 && run_nmse(v[3], v[2], n) > 1e-5 &&
           !memcmp(v[4], v[1], n * sizeof(float)) &&
           !memcmp(v[5], v[2], n * sizeof(float)),
       "%s, %s: %.2g from the sum, %.2g from the model %s%s", h->model,
       which < 2 ? h->name[which] : "both", d, far, good ? "" : r.err.message,
       good ? "" : sum.err.message);
    run_close(&sum);
    run_close(&r);
    lora_close(&o);
    lora_fini(&l);
    free(added);
    free(data);
    skeleton_close(&s);
}

/* Add a direction after layer 1. It must change a model with one stream. It is
 * refused for an encoder-decoder and for a model with several streams. */
static void check_direction(const char *name, bool counts)
{
    struct skeleton s;
    struct gen g;
    struct lora_opened o = { 0 };
    struct run r;
    size_t size, g_size;
    if (!skeleton_open(&s, name))
        abort();
    const int64_t n = s.g.t[0].ne[0];
    float *v = calloc((size_t)n, sizeof *v);
    gen_init(&g, 1);
    if (!v || gguf_meta_set_strz(g.meta, "general.architecture",
                                 "controlvector", NULL))
        abort();
    gen_tensor(&g, n, 0, "direction.1");
    g.t[0].values = v;
    void *data = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    void *control = gen_file(&g, GGUF_DTYPE_F32, &g_size);
    bool good = run_open(&r, data, size, 1, small_session()) &&
                !lora_open_data(&o, r.model, control, g_size, &r.err);
    const struct gguf_adapter_use use = { o.adapter, 1 };
    gguf_error_clear(&r.err);
    const enum gguf_status st =
        good ? gguf_session_set_adapters(r.session, &use, 1, &r.err)
             : GGUF_E_INVALID;
    ok(counts ? st == GGUF_OK
              : st == GGUF_E_UNSUPPORTED && strstr(r.err.message, "layer 1"),
       "%s: a direction %s%s", name,
       counts ? "counts" : "is refused: ", r.err.message);
    run_close(&r);
    lora_close(&o);
    gen_fini(&g);
    free(v);
    free(data);
    skeleton_close(&s);
}

int main(void)
{
    static char names[256][64];
    const size_t n = skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < n; i++)
        check_arch(names[i]);
    for (size_t i = 0; i < GG_LEN(heads); i++)
        for (int which = 0; which <= 2; which++)
            check_heads(&heads[i], which);
    check_direction("qwen3moe", true);
    check_direction("rwkv7", true);
    check_direction("bert", true);
    check_direction("t5", false);
    check_direction("gemma3n", false);
    return done_testing();
}
