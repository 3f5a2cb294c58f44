/* SPDX-License-Identifier: MIT */
/* check-layered.c - batches computed layer by layer have the bits of batches
 * computed one by one
 *
 * Every architecture is tried. Each layer's weights are read for all batches
 * before the next layer begins.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/model.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include <stdbool.h>

enum { N_BATCHES = 3, N_TOK = SKELETON_TOKENS, UBATCH = 16 };

/* Three batches: one sequence, two side by side, and a short one with a single
 * output row. */
struct batches {
    gguf_token tok[N_BATCHES][N_TOK];
    int32_t seq[N_TOK];
    bool all[N_TOK];
    struct gguf_batch b[N_BATCHES];
    const struct gguf_batch *list[N_BATCHES];
};

static void make_batches(struct batches *w, const struct skeleton *m)
{
    memset(w->all, 1, sizeof w->all);
    for (size_t k = 0; k < N_BATCHES; k++) {
        skeleton_tokens_of(m, w->tok[k]);
        for (size_t i = 0; k && i < N_TOK / 2; i++) {
            const gguf_token t = w->tok[k][i];
            w->tok[k][i] = w->tok[k][N_TOK - 1 - i];
            w->tok[k][N_TOK - 1 - i] = t;
        }
        w->b[k] = (struct gguf_batch)GGUF_BATCH_INIT;
        w->b[k].token = w->tok[k] + k;
        w->b[k].n = k == 2 ? 9 : N_TOK - k;
        w->list[k] = &w->b[k];
    }
    for (size_t i = 0; i < N_TOK; i++)
        w->seq[i] = i >= N_TOK / 2;
    w->b[0].want = w->b[1].want = w->all;
    w->b[1].seq = w->seq;
    w->b[1].n = N_TOK;
    w->b[1].token = w->tok[1];
}

/* Outputs of all batches: states, then logits if the model has any. */
struct got {
    struct run *r;
    size_t width, n, next; /* floats of a row; floats in x; index of the next
                            * batch */
    float x[N_BATCHES * N_TOK * 2 * 512];
    enum gguf_status stop; /* status to return at the second batch; GGUF_OK: go
                            * on */
};

static enum gguf_status take_outputs(void *user, size_t i,
                                     struct gguf_error *err)
{
    struct got *g = user;
    struct gguf_session *s = g->r->session;
    const struct gguf_model_info *info = gguf_model_info(g->r->model);
    const size_t n = gguf_session_n_outputs(s);
    const float *x;
    if (i != g->next++)
        return GGUF_E_MISMATCH;
    if (i == 1 && g->stop)
        return gguf_error_set(err, g->stop, "that is enough");
    for (size_t k = 0; k < n; k++) {
        enum gguf_status st = gguf_session_states(s, k, 1, &x, err);
        if (st != GGUF_OK)
            return st;
        memcpy(g->x + g->n, x, info->n_embd * sizeof *x);
        g->n += info->n_embd;
    }
    const size_t most = gguf_session_max_logits(s);
    for (size_t k = 0; info->has_logits && k < n; k += most) {
        const size_t rows = GG_MIN(most, n - k);
        enum gguf_status st = gguf_session_logits(s, k, rows, &x, err);
        if (st != GGUF_OK)
            return st;
        memcpy(g->x + g->n, x, rows * info->n_vocab * sizeof *x);
        g->n += rows * info->n_vocab;
    }
    return GGUF_OK;
}

/* The order in which the layers' weights are read. */
struct order {
    int64_t last;
    unsigned n,
        back; /* n: nodes with weights. back: nodes of a layer before the last
               * one read. */
};

static bool note_node(void *user, const struct gguf_tensor *t)
{
    struct order *o = user;
    for (unsigned i = 0; i < GGUF_TENSOR_SRC && t->src[i]; i++) {
        const char *name = t->src[i]->name;
        if (t->src[i]->op != GGUF_OP_NONE)
            continue; /* activations have names like weights */
        const int64_t il = gguf_layer_from_name(
            (struct gguf_str){ name, strlen(name) }, NULL);
        if (il < 0)
            continue;
        o->n++;
        o->back += il < o->last;
        o->last = il;
    }
    return false;
}

static bool see_nothing(void *user, struct gguf_tensor *t)
{
    (void)user;
    (void)t;
    return false;
}

static bool on_graph(void *user, struct gguf_graph *graph,
                     struct gguf_sched *sched)
{
    (void)graph;
    const struct gguf_sched_eval eval = { note_node, see_nothing, user };
    return gguf_sched_set_eval(sched, eval, NULL) != GGUF_OK;
}

static bool one_by_one(struct got *g, const struct batches *w)
{
    struct gguf_error *err = &g->r->err;
    for (size_t i = 0; i < N_BATCHES; i++)
        if (gguf_session_clear(g->r->session, err) ||
            gguf_session_decode(g->r->session, w->list[i], err) ||
            take_outputs(g, i, err))
            return false;
    return true;
}

static const struct gguf_progress_callback no_progress = { NULL, NULL };

static struct gguf_session_outputs_callback to_outputs(struct got *g)
{
    return (struct gguf_session_outputs_callback){ take_outputs, g };
}

static bool decode_layered(struct got *g, const struct batches *w)
{
    return gguf_session_decode_layered(g->r->session, w->list, N_BATCHES,
                                       to_outputs(g), no_progress,
                                       &g->r->err) == GGUF_OK;
}

static struct gguf_session_params make_params(struct order *o)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = N_TOK;
    p.n_seq = 2;
    p.n_ubatch = UBATCH;
    p.on_graph.fn = o ? on_graph : NULL;
    p.on_graph.user = o;
    return p;
}

/* Does the model share keys, values or weights between layers? Such layers are
 * computed together. */
static bool shares_layers(const struct skeleton *m)
{
    return !strcmp(m->name, "gemma3n") || !strcmp(m->name, "nanbeige") ||
           !strcmp(m->name, "hrm_text");
}

static void check_model(const struct skeleton *m)
{
    static struct got want, got;
    struct order one = { 0 }, all = { 0 };
    const struct gguf_session_params p = make_params(&one),
                                     q = make_params(&all);
    struct batches w;
    struct run a, b;
    size_t size;
    make_batches(&w, m);
    void *file = gen_file(&m->g, GGUF_DTYPE_F32, &size);
    want = (struct got){ .r = &a };
    got = (struct got){ .r = &b };
    const bool good = run_open(&a, file, size, 1, &p) && one_by_one(&want, &w);
    const bool too =
        run_open(&b, file, size, 2, &q) && decode_layered(&got, &w);
    const struct gguf_error *err = good ? &b.err : &a.err;
    if (!too && b.err.status == GGUF_E_UNSUPPORTED)
        ok(gguf_model_info(b.model)->is_whole ||
               gguf_model_info(b.model)->encodes_first,
           "%s: %s", m->name, b.err.message);
    else
        ok(good && too && want.n && want.n == got.n &&
               !memcmp(want.x, got.x, want.n * sizeof *want.x) &&
               one.n == all.n && one.back && (!all.back || shares_layers(m)),
           "%s: the same %zu floats, %u weights read, %u times back%s%s",
           m->name, got.n, all.n, all.back, good && too ? "" : ": ",
           good && too ? "" : err->message);
    run_close(&a);
    run_close(&b);
    free(file);
}

/* ---- memory, and ends ---- */

static bool stop_at(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    return done * 2 > total;
}

/* A plain model stores only each token's residual stream between layers. */
static void check_size(struct run *r, const struct batches *w)
{
    uint64_t size;
    const uint64_t row = gguf_model_info(r->model)->n_embd * 4;
    const enum gguf_status st =
        gguf_session_layered_size(r->session, w->list[0], &size, &r->err);
    ok(st == GGUF_OK && size == N_TOK * row,
       "a token takes %u bytes, its stream %u", (unsigned)(size / N_TOK),
       (unsigned)row);
}

static void check_ends(struct run *r, const struct batches *w)
{
    static struct got g;
    struct gguf_batch bad = w->b[0];
    const struct gguf_batch *list[] = { &w->b[0], &bad };
    g = (struct got){ .r = r, .stop = GGUF_E_FORMAT };
    ok(!decode_layered(&g, w) && r->err.status == GGUF_E_FORMAT &&
           !strcmp(r->err.message, "that is enough"),
       "the caller ends it: %s", r->err.message);
    g = (struct got){ .r = r };
    const struct gguf_progress_callback stop = { stop_at, &g };
    ok(gguf_session_decode_layered(r->session, w->list, N_BATCHES,
                                   to_outputs(&g), stop,
                                   &r->err) == GGUF_E_CANCELLED &&
           !g.next && !gguf_session_n_tokens(r->session, 0),
       "and progress: %s", r->err.message);
    ok(gguf_session_decode_layered(r->session, w->list, 0, to_outputs(&g),
                                   no_progress, &r->err) == GGUF_E_INVALID,
       "%s", r->err.message);
    bad.n = N_TOK + 1;
    ok(gguf_session_decode_layered(r->session, list, 2, to_outputs(&g),
                                   no_progress, &r->err) == GGUF_E_FULL &&
           !g.next,
       "before anything is computed: %s", r->err.message);
    g = (struct got){ .r = r };
    ok(decode_layered(&g, w) && g.n, "after all that it goes on");
}

static void check_memory(const void *file, size_t size,
                         const struct batches *w)
{
    static struct got g;
    struct failalloc fa;
    struct gguf_session_params p = make_params(NULL);
    struct run r;
    unsigned n_failed = 0, bad = 0;
    p.allocator = failalloc_init(&fa, UINT_MAX);
    if (!run_open(&r, file, size, 1, &p))
        abort();
    for (unsigned i = 0;; i++) {
        g = (struct got){ .r = &r };
        fa.calls = 0;
        fa.fail_at = fa.last = i;
        const bool good = decode_layered(&g, w);
        bad += good ? 0 : r.err.status != GGUF_E_NOMEM;
        if (fa.calls <= i)
            break;
        n_failed++;
    }
    ok(n_failed > 2 && !bad, "%u allocations fail, each time by name",
       n_failed);
    run_close(&r);
    ok(!fa.live, "and nothing at the end");
}

static void check_ways(void)
{
    static struct skeleton m;
    const struct gguf_session_params p = make_params(NULL);
    struct batches w;
    struct run r;
    size_t size;
    if (!skeleton_open(&m, "llama"))
        abort();
    make_batches(&w, &m);
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    if (!run_open(&r, file, size, 1, &p))
        abort();
    check_size(&r, &w);
    check_ends(&r, &w);
    run_close(&r);
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
    return done_testing();
}
