/* SPDX-License-Identifier: MIT */
/* check-embed-bad.c - requests for sequence embeddings that are refused */
#include "config.h"
#include "base/compiler.h"
#include "tests/run/embed.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;

static bool has_error(const struct run *r, enum gguf_status st,
                      const char *text)
{
    return r->err.status == st && strstr(r->err.message, text);
}

static bool stop_graph(void *user, struct gguf_graph *graph,
                       struct gguf_sched *sched)
{
    (void)graph;
    (void)sched;
    return (*(int *)user)-- <= 0;
}

static void check_refused(void)
{
    struct gguf_session_params p = init;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[20] = { 1, 2, 3 };
    const float *row;
    struct run r;
    size_t size, n;
    int passes = 1 << 30;
    void *file = embed_llama(&size);
    b.n = 3;
    b.token = tok;
    p.on_graph.fn = stop_graph;
    p.on_graph.user = &passes;
    p.n_ubatch = 4;
    p.n_seq = 2;
    bool good = run_open(&r, file, size, 1, &p) &&
                gguf_session_embedding(r.session, 0, &row, &n, &r.err) &&
                has_error(&r, GGUF_E_INVALID, "no tokens of sequence 0");
    ok(good && !row && !n, "before a batch: %s", r.err.message);
    good = !gguf_session_decode(r.session, &b, &r.err) &&
           !gguf_session_embedding(r.session, 0, &row, &n, &r.err);
    for (uint32_t q = 1; q < 3; q++)
        good = good &&
               gguf_session_embedding(r.session, q, &row, &n, &r.err) &&
               has_error(&r, GGUF_E_INVALID, "no tokens of sequence");
    ok(good, "of another sequence: %s", r.err.message);
    good = !gguf_session_clear(r.session, &r.err) &&
           gguf_session_embedding(r.session, 0, &row, &n, &r.err);
    ok(good, "after it is cleared: %s", r.err.message);
    passes = 3;
    b.n = 20;
    good = gguf_session_decode(r.session, &b, &r.err) == GGUF_E_CANCELLED &&
           gguf_session_embedding(r.session, 0, &row, &n, &r.err);
    ok(good, "after a batch that was stopped: %s", r.err.message);
    run_close(&r);
    p.on_graph.fn = NULL;
    p.pooling = GGUF_POOLING_NONE;
    good = run_open(&r, file, size, 1, &p) &&
           !gguf_session_decode(r.session, &b, &r.err) &&
           gguf_session_embedding(r.session, 0, &row, &n, &r.err) &&
           has_error(&r, GGUF_E_UNSUPPORTED, "pooling is NONE");
    ok(good, "no pooling: %s", r.err.message);
    run_close(&r);
    p.pooling = (enum gguf_pooling)6;
    good = !run_open(&r, file, size, 1, &p) &&
           has_error(&r, GGUF_E_INVALID, "pooling 6");
    ok(good, "no such pooling: %s", r.err.message);
    run_close(&r);
    free(file);
}

/* Classifiers with wrong shapes: ranking is refused, other pooling works. */
static void wide_out(struct gen *g, int e)
{
    gen_tensor(g, e, 7, "cls.weight");
    gen_tensor(g, e, 2, "cls.output.weight");
}
static void short_bias(struct gen *g, int e)
{
    gen_tensor(g, e, 3, "cls.output.weight");
    gen_tensor(g, 2, 0, "cls.output.bias");
}
static void few_labels(struct gen *g, int e)
{
    static const struct gguf_str name = { "one", 3 };
    gen_tensor(g, e, 2, "cls.output.weight");
    if (gguf_meta_set_str_array(g->meta, "bert.classifier.output_labels",
                                &name, 1, NULL) != GGUF_OK)
        abort();
}

static void check_misfits(void)
{
    static const struct {
        void (*add)(struct gen *g, int e);
        enum gguf_status st;
        const char *says;
    } misfits[] = {
        { wide_out, GGUF_E_TENSOR, "'cls.output.weight' takes" },
        { short_bias, GGUF_E_TENSOR, "'cls.output.bias' has 2 numbers" },
        { few_labels, GGUF_E_HPARAM, "output_labels has 1 names" },
    };
    for (size_t i = 0; i < GG_LEN(misfits); i++) {
        struct gguf_session_params p = init;
        struct skeleton s;
        struct run r;
        size_t size;
        if (!skeleton_open(&s, "bert"))
            abort();
        misfits[i].add(&s.g, (int)s.g.t[0].ne[0]);
        void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
        p.pooling = GGUF_POOLING_RANK;
        bool good = !run_open(&r, file, size, 1, &p) &&
                    has_error(&r, misfits[i].st, misfits[i].says);
        ok(good, "%s", r.err.message);
        run_close(&r);
        p.pooling = GGUF_POOLING_MEAN;
        good = run_open(&r, file, size, 1, &p);
        ok(good, "and the mean is not refused");
        run_close(&r);
        free(file);
        skeleton_close(&s);
    }
}

int main(void)
{
    check_refused();
    check_misfits();
    return done_testing();
}
