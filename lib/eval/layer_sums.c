/* SPDX-License-Identifier: MIT */
/* layer_sums.c - sums of activations: of each token, then over tokens in order
 */
#include "config.h"
#include "eval/layer_sums.h"

#include "base/error.h"
#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct gg_layer_sums_rows *rows;
    struct gg_layer_sums_vec *token;
};

static void add_token(struct gg_layer_sums_vec *s, const float *q,
                      const float *b, size_t n)
{
    double qb2 = 0, q2 = 0, b2 = 0, qb = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)q[i], y = (double)b[i], d = x - y;
        if (q[i] == -FLT_MAX && b[i] == -FLT_MAX)
            /* both logits are minus infinity: a token that cannot come */
            continue;
        qb2 += d * d;
        q2 += x * x;
        b2 += y * y;
        qb += x * y;
    }
    *s = (struct gg_layer_sums_vec){ qb2, q2, b2, qb };
}

static void sum_rows(void *user, unsigned ith, unsigned nth)
{
    const struct job *j = user;
    const struct gg_layer_sums_rows *r = j->rows;
    const size_t end = r->n * (ith + 1) / nth;
    for (size_t i = r->n * ith / nth; i < end; i++)
        add_token(&j->token[i], r->q + i * r->size, r->b + i * r->size,
                  r->size);
}

static enum gguf_status reserve_layers(struct gguf_layers *l, size_t n,
                                       struct gguf_error *err)
{
    l->token = gg_mem_renew(l->allocator, l->token, &l->n_token,
                            sizeof *l->token, n, err);
    return l->token ? GGUF_OK : GGUF_E_NOMEM;
}

/* Find layer and name inside of it in "blk.3.attn_q" or "enc.blk.3.attn_q". */
static void read_name(struct gguf_layers_entry *e)
{
    const char *p = strstr(e->name, "blk.");
    char *end;
    e->layer = -1;
    e->what = e->name;
    if (!p || p[4] < '0' || p[4] > '9')
        return;
    e->layer = (int32_t)strtol(p + 4, &end, 10);
    e->what = *end == '.' ? end + 1 : end;
}

static enum gguf_status append_layer(struct gguf_layers *l, const char *name,
                                     struct gg_layer_sums **out,
                                     struct gguf_error *err)
{
    if (l->n == l->cap) {
        struct gg_layer_sums **list =
            gg_mem_grow(l->allocator, (void *)l->list, &l->cap, sizeof(void *),
                        l->n + 1, err);
        if (!list)
            return GGUF_E_NOMEM;
        l->list = list;
    }
    struct gg_layer_sums *s = gg_mem_alloc_zero(l->allocator, 1, sizeof *s);
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    strncpy(s->name, name, sizeof s->name - 1);
    s->entry.name = s->name;
    s->entry.worst = -1;
    read_name(&s->entry);
    for (size_t i = 0; i < l->n; i++)
        s->entry.use += !strcmp(l->list[i]->name, name);
    *out = l->list[l->n++] = s;
    return GGUF_OK;
}

void gg_layer_sums_begin(struct gguf_layers *l)
{
    l->next = 0;
}

/* Find the next activation of a name that the pass has not had. */
static enum gguf_status find_layer(struct gguf_layers *l, const char *name,
                                   struct gg_layer_sums **out,
                                   struct gguf_error *err)
{
    size_t i = l->next;
    while (i < l->n && strcmp(l->list[i]->name, name) != 0)
        i++;
    if (i == l->n)
        GG_TRY(append_layer(l, name, out, err));
    *out = l->list[i];
    l->next = i + 1;
    return GGUF_OK;
}

static double divide_or_zero(double a, double b)
{
    return a == 0 ? 0 : sqrt(a / b);
}

static void add_rows(struct gg_layer_sums *s,
                     const struct gg_layer_sums_rows *r,
                     const struct gg_layer_sums_vec *token)
{
    struct gg_layer_sums_vec *all = &s->all;
    for (size_t i = 0; i < r->n; i++) {
        const struct gg_layer_sums_vec *t = &token[i];
        const double error = t->b2 > 0 ? sqrt(t->qb2 / t->b2) : 0;
        all->qb2 += t->qb2;
        all->q2 += t->q2;
        all->b2 += t->b2;
        all->qb += t->qb;
        if (!(error > s->entry.worst))
            continue;
        s->entry.worst = error;
        s->entry.worst_chunk = r->chunk;
        s->entry.worst_pos =
            r->pos ? (uint32_t)r->pos[i] : r->first + (uint32_t)i;
    }
    s->entry.n_tokens += r->n;
    s->n_el += (uint64_t)r->n * r->size;
}

enum gguf_status gg_layer_sums_add(struct gguf_layers *l,
                                   struct gguf_pool *pool,
                                   const struct gg_layer_sums_rows *r,
                                   size_t *bad, bool *bad_q,
                                   struct gguf_error *err)
{
    struct gg_layer_sums *s;
    GG_TRY(reserve_layers(l, r->n, err));
    struct job j = { r, l->token };
    gguf_pool_run(pool, (struct gguf_pool_callback){ sum_rows, &j });
    for (*bad = 0; *bad < r->n; ++*bad) {
        const struct gg_layer_sums_vec *t = &l->token[*bad];
        *bad_q = !isfinite(t->q2);
        if (*bad_q || !isfinite(t->b2))
            return GGUF_OK;
    }
    GG_TRY(find_layer(l, r->name, &s, err));
    add_rows(s, r, l->token);
    return GGUF_OK;
}

void gg_layer_sums_finish(struct gguf_layers *l)
{
    for (size_t i = 0; i < l->n; i++) {
        struct gguf_layers_entry *e = &l->list[i]->entry;
        const struct gg_layer_sums_vec *s = &l->list[i]->all;
        const bool none = s->q2 == 0 && s->b2 == 0;
        e->error = divide_or_zero(s->qb2, s->b2);
        e->cosine = none ? 1 : s->qb / (sqrt(s->q2) * sqrt(s->b2));
        e->rms = sqrt(s->b2 / (double)l->list[i]->n_el);
        if (e->worst < 0)
            e->worst = 0;
    }
}
