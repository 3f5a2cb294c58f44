/* SPDX-License-Identifier: MIT */
/* lora.c - LoRA adapters for tests */
#include "config.h"
#include "tests/model/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must_succeed(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

void lora_init(struct lora *l, const char *arch, double alpha)
{
    gen_init(&l->g, 1);
    l->alpha = alpha;
    struct gguf_meta *m = l->g.meta;
    must_succeed(gguf_meta_set_strz(m, "general.architecture", arch, NULL));
    must_succeed(gguf_meta_set_strz(m, "general.type", "adapter", NULL));
    must_succeed(gguf_meta_set_strz(m, "adapter.type", "lora", NULL));
    if (alpha != 0)
        must_succeed(
            gguf_meta_set_f32(m, "adapter.lora.alpha", (float)alpha, NULL));
}

void lora_fini(struct lora *l)
{
    for (size_t i = 0; i < l->g.n; i++)
        free((void *)(uintptr_t)l->g.t[i].values);
    gen_fini(&l->g);
}

size_t lora_n(const struct gen_tensor *t)
{
    size_t n = 1;
    for (unsigned d = 0; d < t->n_dims; d++)
        n *= (size_t)t->ne[d];
    return n;
}

/* Random multiple of 2^-9 in [-1, 1], exact in F16. */
static double draw_number(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)((*state >> 33) % 1025) - 512) / 512;
}

static void add_half(struct lora *l, const char *weight, const char *end,
                     int64_t ne0, int64_t ne1, int64_t ne2, double size)
{
    gen_tensor(&l->g, ne0, ne1, "%s%s", weight, end);
    struct gen_tensor *t = &l->g.t[l->g.n - 1];
    uint64_t state = 77 + l->g.n + strlen(weight);
    const double unit = exp2(round(log2(size)));
    if (ne2 > 1) {
        t->n_dims = 3;
        t->ne[2] = ne2;
    }
    float *v = malloc(lora_n(t) * sizeof *v);
    if (!v)
        abort();
    for (size_t i = 0; i < lora_n(t); i++)
        v[i] = (float)(unit * draw_number(&state));
    t->values = v;
}

static bool looked_up(const struct gen_tensor *w)
{
    static const char end[] = "token_embd.weight";
    const size_t n = strlen(w->name);
    return n >= sizeof end - 1 && !strcmp(w->name + n - sizeof end + 1, end);
}

void lora_pair(struct lora *l, const struct gen_tensor *w, int64_t rank,
               double size)
{
    const double each = sqrt(3 * size / sqrt((double)rank));
    const int64_t *ne = w->ne;
    if (looked_up(w)) {
        add_half(l, w->name, ".lora_a", rank, ne[1], 1, each);
        add_half(l, w->name, ".lora_b", rank, ne[0], 1, each);
    } else {
        add_half(l, w->name, ".lora_a", ne[0], rank, ne[2], each);
        add_half(l, w->name, ".lora_b", rank, ne[1], ne[2], each);
    }
}

static const struct gen_tensor *find_half(const struct lora *l,
                                          const char *weight, const char *end)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", weight, end);
    for (size_t i = 0; i < l->g.n; i++)
        if (!strcmp(l->g.t[i].name, name))
            return &l->g.t[i];
    return NULL;
}

void lora_add(const struct lora *l, const struct gen_tensor *w, double scale,
              double *sum)
{
    const struct gen_tensor *a = find_half(l, w->name, ".lora_a");
    const struct gen_tensor *b = find_half(l, w->name, ".lora_b");
    if (!a || !b)
        return;
    const bool up = looked_up(w);
    const int64_t rank = b->ne[0], ne0 = w->ne[0], ne1 = w->ne[1];
    const double by = l->alpha != 0 ? scale * l->alpha / (double)rank : scale;
    for (int64_t m = 0; m < w->ne[2]; m++)
        for (int64_t j = 0; j < ne1; j++)
            for (int64_t i = 0; i < ne0; i++) {
                const float *pa = a->values + m * a->ne[0] * a->ne[1];
                const float *pb = b->values + m * b->ne[0] * b->ne[1];
                double s = 0;
                for (int64_t r = 0; r < rank; r++)
                    s += up ? (double)pa[j * rank + r] *
                                  (double)pb[i * rank + r]
                            : (double)pa[r * ne0 + i] *
                                  (double)pb[j * rank + r];
                sum[(m * ne1 + j) * ne0 + i] += by * s;
            }
}

void *lora_file(const struct lora *l, uint32_t dtype, size_t *size)
{
    return gen_file(&l->g, dtype, size);
}

/* ---- models with products added in ---- */

enum gguf_status lora_open_data(struct lora_opened *o,
                                const struct gguf_model *model, void *data,
                                size_t size, struct gguf_error *err)
{
    *o = (struct lora_opened){ .data = data };
    enum gguf_status st =
        gguf_file_open_memory(&o->file, data, size, NULL, err);
    if (st == GGUF_OK)
        st = gguf_adapter_create(&o->adapter, model, o->file, NULL, err);
    return st;
}

enum gguf_status lora_open(struct lora_opened *o,
                           const struct gguf_model *model,
                           const struct lora *l, struct gguf_error *err)
{
    size_t size;
    void *data = lora_file(l, GGUF_DTYPE_F32, &size);
    return lora_open_data(o, model, data, size, err);
}

void lora_close(struct lora_opened *o)
{
    gguf_adapter_destroy(o->adapter);
    gguf_file_close(o->file);
    free(o->data);
}

/* Values of a tensor of g plus the adapters' products, rounded once. */
static float *sum_of(const struct gen *g, const struct gen_tensor *t,
                     const struct lora *const *l, const double *scale,
                     size_t n_loras)
{
    const size_t n = lora_n(t);
    float *v = malloc(n * sizeof *v);
    double *sum = malloc(n * sizeof *sum);
    if (!v || !sum)
        abort();
    gen_weights(v, g, t);
    for (size_t i = 0; i < n; i++)
        sum[i] = (double)v[i];
    for (size_t k = 0; k < n_loras; k++)
        lora_add(l[k], t, scale[k], sum);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)sum[i];
    free(sum);
    return v;
}

void lora_add_in(struct gen *g, const struct lora *const *l,
                 const double *scale, size_t n_loras)
{
    for (size_t i = 0; i < g->n; i++) {
        const float *own = g->t[i].values;
        g->t[i].values = sum_of(g, &g->t[i], l, scale, n_loras);
        free((void *)(uintptr_t)own);
    }
}

void lora_drop_values(struct gen *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free((void *)(uintptr_t)g->t[i].values);
        g->t[i].values = NULL;
    }
}

void lora_of_llama(struct lora *l, const struct gen *g, int64_t rank,
                   double alpha)
{
    lora_init(l, "llama", alpha);
    for (size_t i = 0; i < g->n; i++)
        if (g->t[i].n_dims > 1)
            lora_pair(l, &g->t[i], rank, 0.3 / sqrt((double)g->t[i].ne[0]));
}

/* Clear the session, and compute rows of logits or states. */
bool lora_outputs(struct run *r, const gguf_token *tok, float *out)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = LORA_TOKENS;
    b.token = tok;
    return gguf_session_clear(r->session, &r->err) == GGUF_OK &&
           run_encode(r, tok, LORA_TOKENS) && run_outputs(r, &b, out);
}
