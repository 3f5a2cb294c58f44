/* SPDX-License-Identifier: MIT */
/* check-stages.c - batches computed stage by stage have the bits of batches
 * computed one by one
 *
 * Every architecture is tried. The weights of a stage are changed after all
 * batches have reached it: the outputs must be those of a model that had the
 * changed weights from the start.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/model.h"
#include "run/stages.h"
#include "tests/failalloc.h"
#include "tests/family/skeleton.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <stdbool.h>

enum { N_BATCHES = 3, N_TOK = SKELETON_TOKENS };

struct batches {
    gguf_token tok[N_BATCHES][N_TOK];
    bool all[N_TOK];
    struct gguf_batch b[N_BATCHES];
};

/* The tokens of a skeleton, and two rotations of them. */
static void make_batches(struct batches *w, const struct skeleton *m)
{
    memset(w->all, 1, sizeof w->all);
    for (size_t k = 0; k < N_BATCHES; k++) {
        skeleton_tokens_of(m, w->tok[k]);
        for (size_t i = 0; i < N_TOK; i++)
            w->tok[k][i] = w->tok[0][(i + 17 * k) % N_TOK];
        w->b[k] = (struct gguf_batch)GGUF_BATCH_INIT;
        w->b[k].token = w->tok[k];
        w->b[k].n = N_TOK;
        w->b[k].want = w->all;
    }
}

/* Outputs of all batches: states, then logits if the model has any. */
struct got {
    struct run *r;
    size_t n;
    float x[N_BATCHES * N_TOK * 2 * 512];
};

static bool take_outputs(struct got *g)
{
    struct gguf_session *s = g->r->session;
    const struct gguf_model_info *info = gguf_model_info(g->r->model);
    const size_t n = gguf_session_n_outputs(s);
    const size_t most = gguf_session_max_logits(s);
    const float *x;
    if (gguf_session_states(s, 0, n, &x, &g->r->err))
        return false;
    memcpy(g->x + g->n, x, n * info->n_embd * sizeof *x);
    g->n += n * info->n_embd;
    for (size_t k = 0; info->has_logits && k < n; k += most) {
        const size_t rows = GG_MIN(most, n - k);
        if (gguf_session_logits(s, k, rows, &x, &g->r->err))
            return false;
        memcpy(g->x + g->n, x, rows * info->n_vocab * sizeof *x);
        g->n += rows * info->n_vocab;
    }
    return true;
}

static bool one_by_one(struct got *g, const struct batches *w)
{
    for (size_t i = 0; i < N_BATCHES; i++)
        if (gguf_session_clear(g->r->session, &g->r->err) ||
            gguf_session_decode(g->r->session, &w->b[i], &g->r->err) ||
            !take_outputs(g))
            return false;
    return true;
}

/* Is the weight a part of another stage? */
static bool is_shared(const struct gg_stages *r, size_t stage,
                      const struct gguf_tensor *weight)
{
    for (size_t i = 0; i < gg_stages_count(r); i++)
        for (size_t k = 0; i != stage && k < gg_stages_at(r, i)->n_products;
             k++)
            if (gg_stages_at(r, i)->product[k].weight == weight)
                return true;
    return false;
}

/* Change the weights of a stage that lie in the file. Returns their number. */
static unsigned change_weights(const struct gg_stages *r, size_t i, char *file,
                               size_t size)
{
    const struct gg_stages_stage *s = gg_stages_at(r, i);
    unsigned n = 0;
    for (size_t k = 0; k < s->n_products; k++) {
        const struct gguf_tensor *t = s->product[k].weight;
        char *at = t->data;
        if (at < file || at >= file + size || t->dtype != GGUF_DTYPE_F32 ||
            is_shared(r, i, t) || (k && t == s->product[k - 1].weight))
            continue;
        float *x = (float *)(void *)at;
        for (int64_t j = 0; j < gguf_tensor_n_elements(t); j++)
            x[j] = x[j] * 0.875f + 0.001f * (float)(j % 3);
        n++;
    }
    return n;
}

/* Bytes of a contiguous input, added up. */
static uint64_t hash_input(const struct gguf_tensor *t)
{
    const uint8_t *x = t->data;
    uint64_t h = 1;
    for (uint64_t i = 0; i < (uint64_t)(t->nb[1] * t->ne[1]); i++)
        h = h * 0x100000001b3u + x[i];
    return h;
}

/* Run all stages, each twice, and change their weights. */
static bool run_stages(struct got *g, const struct gg_stages_params *p,
                       char *file, size_t size, unsigned *changed)
{
    struct gg_stages *r;
    struct gguf_error *err = &g->r->err;
    bool good = gg_stages_create(&r, p, err) == GGUF_OK;
    for (size_t i = 0; good && i < gg_stages_count(r); i++) {
        for (size_t b = 0; good && b < N_BATCHES; b++) {
            good = gg_stages_run(r, i, b, err) == GGUF_OK;
            const uint64_t h = good ? hash_input(gg_stages_input(r, i)) : 0;
            good = good && gg_stages_run(r, i, b, err) == GGUF_OK &&
                   h == hash_input(gg_stages_input(r, i));
        }
        *changed += file ? change_weights(r, i, file, size) : 0;
    }
    for (size_t b = 0; good && b < N_BATCHES; b++)
        good = gg_stages_finish(r, b, err) == GGUF_OK && take_outputs(g);
    gg_stages_destroy(r);
    return good;
}

static struct gguf_session_params make_params(void)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = p.n_ubatch = N_TOK;
    return p;
}

static struct gg_stages_params stages_of(const struct run *r,
                                         const struct batches *w)
{
    return (struct gg_stages_params){ .session = r->session,
                                      .batches = w->b,
                                      .n_batches = N_BATCHES };
}

/* Are all weights used in several layers? */
static bool shares_weights(const struct skeleton *m)
{
    return !strcmp(m->name, "nanbeige") || !strcmp(m->name, "hrm_text");
}

static void check_model(const struct skeleton *m)
{
    static struct got want, got;
    const struct gguf_session_params p = make_params();
    struct batches w;
    struct run a, b;
    size_t size;
    unsigned changed = 0;
    make_batches(&w, m);
    char *file = gen_file(&m->g, GGUF_DTYPE_F32, &size);
    got = (struct got){ .r = &a };
    want = (struct got){ .r = &b };
    bool good = run_open(&a, file, size, 2, &p);
    const struct gg_stages_params sp = stages_of(&a, &w);
    good = good && run_stages(&got, &sp, file, size, &changed);
    const bool encodes = gguf_model_info(a.model)->encodes_first;
    if (!good && a.err.status == GGUF_E_UNSUPPORTED && encodes) {
        ok(1, "%s: %s", m->name, a.err.message);
    } else {
        const bool too =
            run_open(&b, file, size, 1, &p) && one_by_one(&want, &w);
        ok(good && too && want.n && want.n == got.n &&
               !changed == shares_weights(m) &&
               !memcmp(want.x, got.x, want.n * sizeof *want.x),
           "%s: the same %zu floats, %u weights changed%s%s", m->name, got.n,
           changed, good && too ? "" : ": ",
           good && too ? ""
           : good      ? b.err.message
                       : a.err.message);
        run_close(&b);
    }
    run_close(&a);
    free(file);
}

/* ---- the stages of a plain model ---- */

static const char *const plain[] = {
    "blk.0.attn_q.weight",      "blk.0.attn_k.weight",   "blk.0.attn_v.weight",
    "blk.0.attn_output.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
    "blk.0.ffn_down.weight",
};
static const unsigned plain_sizes[] = { 3, 1, 2, 1 };

/* Are the first stages those of a layer, in any order within a stage? */
static bool has_plain_stages(const struct gg_stages *r)
{
    for (size_t i = 0, at = 0; i < GG_LEN(plain_sizes);
         at += plain_sizes[i], i++) {
        const struct gg_stages_stage *s = gg_stages_at(r, i);
        unsigned found = 0;
        for (size_t k = 0; k < s->n_products; k++)
            for (unsigned j = 0; j < plain_sizes[i]; j++)
                found += !strcmp(s->product[k].weight->name, plain[at + j]);
        if (s->n_products != plain_sizes[i] || found != plain_sizes[i])
            return false;
    }
    return true;
}

static void check_plain(struct run *r, const struct batches *w)
{
    const struct gg_stages_params p = stages_of(r, w);
    const uint32_t n_layer = gguf_model_info(r->model)->n_layer;
    const int64_t n_embd = gguf_model_info(r->model)->n_embd;
    struct gg_stages *st;
    unsigned sums = 0, cuts = 0;
    if (gg_stages_create(&st, &p, &r->err))
        abort();
    ok(gg_stages_count(st) == 4 * n_layer && has_plain_stages(st),
       "%zu stages: q, k, v; o; gate, up; down", gg_stages_count(st));
    for (size_t i = 0; i < gg_stages_count(st); i++) {
        const struct gg_stages_stage *s = gg_stages_at(st, i);
        const struct gguf_tensor *x = s->product[0].residual;
        sums += i % 2 ? x && x->ne[0] == n_embd && x->ne[1] == N_TOK &&
                            s->product[0].factor == 1
                      : !x;
        cuts += i == 0 || s->cut > gg_stages_at(st, i - 1)->node;
        ok(gg_stages_input(st, i)->ne[0] == s->product[0].weight->ne[0] &&
               !gg_stages_ids(st, i),
           "stage %zu reads rows of %d", i, (int)s->product[0].weight->ne[0]);
    }
    ok(sums == gg_stages_count(st), "o and down are added to the stream");
    ok(cuts == gg_stages_count(st), "no product is computed twice");
    ok(gg_stages_run(st, 3, 0, &r->err) == GGUF_OK &&
           gg_stages_run(st, 1, 0, &r->err) == GGUF_E_INVALID,
       "not backwards: %s", r->err.message);
    gg_stages_destroy(st);
}

/* x is multiplied by a constant before it is added. */
static void check_factor(void)
{
    static struct skeleton m;
    const struct gguf_session_params p = make_params();
    struct batches w;
    struct run r;
    struct gg_stages *st;
    size_t size;
    unsigned n = 0;
    if (!skeleton_open(&m, "minicpm"))
        abort();
    make_batches(&w, &m);
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    if (!run_open(&r, file, size, 1, &p))
        abort();
    const struct gg_stages_params sp = stages_of(&r, &w);
    if (gg_stages_create(&st, &sp, &r.err))
        abort();
    for (size_t i = 0; i < gg_stages_count(st); i++) {
        const struct gg_stages_product *q = gg_stages_at(st, i)->product;
        n += q->residual && q->factor > 0 && q->factor != 1;
    }
    ok(n == 2 * gguf_model_info(r.model)->n_layer,
       "%u products are scaled before they are added", n);
    gg_stages_destroy(st);
    run_close(&r);
    free(file);
    skeleton_close(&m);
}

/* ---- files, and ends ---- */

static void check_spill(struct run *r, const struct batches *w)
{
    static struct got one, two;
    struct gg_stages_params p = stages_of(r, w);
    unsigned n = 0;
    one.r = two.r = r;
    p.spill_path = "check-stages-no-folder/x";
    p.max_memory = UINT64_MAX;
    const bool memory = run_stages(&one, &p, NULL, 0, &n);
    p.max_memory = 0;
    ok(memory && !run_stages(&two, &p, NULL, 0, &n) &&
           r->err.status == GGUF_E_IO,
       "a file is made: %s", r->err.message);
    p.spill_path = "check-stages.tmp";
    two.n = 0;
    ok(run_stages(&two, &p, NULL, 0, &n) && one.n && one.n == two.n &&
           !memcmp(one.x, two.x, one.n * sizeof *one.x),
       "batches in a file: the same floats");
    FILE *left = fopen(p.spill_path, "rb");
    ok(!left, "and it has no name");
    if (left)
        fclose(left);
}

static void check_bad(struct run *r, struct batches *w)
{
    struct gg_stages_params p = stages_of(r, w);
    struct gg_stages *st;
    w->b[1].n--;
    ok(gg_stages_create(&st, &p, &r->err) == GGUF_E_INVALID && !st, "%s",
       r->err.message);
    w->b[1].n++;
    p.n_batches = 0;
    ok(gg_stages_create(&st, &p, &r->err) == GGUF_E_INVALID && !st, "%s",
       r->err.message);
}

static void check_narrow(const void *file, size_t size,
                         const struct batches *w)
{
    struct gguf_session_params p = make_params();
    struct gg_stages *st;
    struct run r;
    p.n_ubatch = N_TOK / 2;
    if (!run_open(&r, file, size, 1, &p))
        abort();
    const struct gg_stages_params sp = stages_of(&r, w);
    ok(gg_stages_create(&st, &sp, &r.err) == GGUF_E_UNSUPPORTED && !st, "%s",
       r.err.message);
    run_close(&r);
}

static void check_memory(const void *file, size_t size,
                         const struct batches *w)
{
    static struct got g;
    struct failalloc fa;
    struct gguf_session_params p = make_params();
    struct run r;
    unsigned n_failed = 0, bad = 0, n = 0;
    p.allocator = failalloc_init(&fa, UINT_MAX);
    if (!run_open(&r, file, size, 1, &p))
        abort();
    struct gg_stages_params sp = stages_of(&r, w);
    sp.spill_path = "check-stages.tmp";
    for (unsigned i = 0;; i++) {
        g = (struct got){ .r = &r };
        fa.calls = 0;
        fa.fail_at = fa.last = i;
        const bool good = run_stages(&g, &sp, NULL, 0, &n);
        bad += good ? 0 : r.err.status != GGUF_E_NOMEM;
        if (fa.calls <= i)
            break;
        n_failed++;
    }
    ok(n_failed > 4 && !bad, "%u allocations fail, each time by name",
       n_failed);
    run_close(&r);
    ok(!fa.live, "and nothing is left");
}

static void check_ways(void)
{
    static struct skeleton m;
    const struct gguf_session_params p = make_params();
    struct batches w;
    struct run r;
    size_t size;
    if (!skeleton_open(&m, "llama"))
        abort();
    make_batches(&w, &m);
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    if (!run_open(&r, file, size, 1, &p))
        abort();
    check_plain(&r, &w);
    check_spill(&r, &w);
    check_bad(&r, &w);
    run_close(&r);
    check_narrow(file, size, &w);
    check_memory(file, size, &w);
    free(file);
    skeleton_close(&m);
}

int main(void)
{
    static char names[512][64];
    static struct skeleton m;
    const size_t n = skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < n; i++) {
        if (skeleton_open(&m, names[i]) && m.n_rows)
            check_model(&m);
        skeleton_close(&m);
    }
    check_ways();
    check_factor();
    return done_testing();
}
