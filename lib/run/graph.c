/* SPDX-License-Identifier: MIT */
/* graph.c - graphs of a session: built when the shape changes, else reused */
#include "config.h"
#include "run/session_int.h"

#include "base/error.h"
#include "sched/sched_int.h"

#include <string.h>

static bool same_shape(const struct gg_ubatch_shape *a,
                       const struct gg_ubatch_shape *b)
{
    return a->n_tok == b->n_tok && a->n_seq == b->n_seq &&
           a->n_real == b->n_real &&
           !memcmp(a->n_kv, b->n_kv, sizeof a->n_kv) && a->n_out == b->n_out &&
           a->n_mask == b->n_mask && a->first_stream == b->first_stream &&
           a->n_cross == b->n_cross && a->n_past == b->n_past &&
           a->encodes == b->encodes && a->shared == b->shared;
}

static enum gguf_status build_graph(struct gguf_session *s,
                                    const struct gg_ubatch_shape *h,
                                    struct gguf_error *err)
{
    struct gguf_ctx *c = s->ctx;
    gguf_ctx_reset(c);
    s->pass = (struct gg_model_pass){
        .model = s->model,
        .ctx = c,
        .graph = gguf_graph_create(
            c, gg_build_n_nodes(s->model) +
                   gg_model_n_adapter_nodes(s->model, &s->added)),
        .n_tok = h->n_tok,
        .n_seq = h->n_seq,
        .n_real = h->n_real,
        .n_out = h->n_out,
        .n_ctx = s->n_ctx,
        .first_stream = h->first_stream,
        .encodes = h->encodes,
        .added = &s->added,
    };
    gg_session_make_inputs(s, h->n_tok * h->n_seq, h->n_out);
    for (unsigned i = 0; i < GG_N_MEMORIES; i++)
        if (s->memory[i].kind)
            s->memory[i].kind->inputs(&s->memory[i], h, &s->pass);
    s->states = gg_build_pass(&s->pass);
    return gguf_graph_finish(c, s->pass.graph, s->states, err);
}

enum gguf_status gg_session_prepare_graph(struct gguf_session *s,
                                          const struct gg_ubatch_shape *shape,
                                          struct gguf_error *err)
{
    if (s->has_graph && same_shape(&s->shape, shape) &&
        !gg_sched_is_stale(s->sched))
        return GGUF_OK;
    const double begin = gg_session_clock();
    s->has_graph = false;
    GG_TRY(gg_session_wait(s, err));
    GG_TRY(build_graph(s, shape, err));
    GG_TRY(gguf_sched_alloc(s->sched, s->pass.graph, err));
    s->shape = *shape;
    s->has_graph = true;
    gg_session_count_stage(&s->timings.plan, 1, begin);
    return GGUF_OK;
}

void gg_session_forget_graphs(struct gguf_session *s)
{
    s->has_graph = false;
    s->head_n = 0;
}

/* The pass with the most tokens, spread over the fewest sequences that can
 * take them. */
static struct gg_ubatch_shape make_largest_pass(const struct gguf_session *s,
                                                bool encodes)
{
    struct gg_ubatch_shape h = { .encodes = encodes };
    for (unsigned b = 0; b < GG_N_ATTN_TYPES; b++)
        h.n_kv[b] = s->table[b] ? s->table[b]->n_cells : 0;
    h.shared = s->shared && !encodes;
    h.n_cross = encodes ? 0 : s->n_ctx;
    h.n_past = s->n_ctx;
    for (uint32_t n_seq = 1;
         n_seq <= (s->shares ? 1 : s->n_seq) && h.n_out < s->n_ubatch;
         n_seq++) {
        int64_t n_tok = GG_MIN(s->n_ubatch / n_seq, s->n_ctx);
        if (n_tok * n_seq <= h.n_out)
            continue;
        h.n_tok = h.n_real = n_tok;
        h.n_seq = h.n_mask = n_seq;
        h.n_out = n_tok * n_seq;
    }
    return h;
}

/* A pass of n_tok tokens for each of n_seq sequences, n_real of them not
 * repeated, with the cells of h. */
static struct gg_ubatch_shape make_pass_shape(struct gg_ubatch_shape h,
                                              int64_t n_tok, int64_t n_real,
                                              int64_t n_seq)
{
    h.n_tok = n_tok;
    h.n_real = n_real;
    h.n_seq = h.n_mask = n_seq;
    h.n_out = n_tok * n_seq;
    return h;
}

enum { N_RESERVED = 8 };

/* List passes such that every other pass is smaller than one of them or has
 * its structure: the largest, that of most sequences, that of one token, and
 * those with repetitions. */
static int list_reserved_passes(const struct gguf_session *s, bool encodes,
                                struct gg_ubatch_shape h[N_RESERVED])
{
    const int64_t most = s->shares ? 1 : GG_MIN(s->n_seq, s->n_ubatch);
    const int64_t each =
        GG_MIN((s->n_ubatch + most - 1) / most, (int64_t)s->n_ctx);
    int n = 0;
    h[n++] = make_largest_pass(s, encodes);
    if (most > 1) {
        h[n++] = make_pass_shape(h[0], each, each, most);
        h[n++] = make_pass_shape(h[0], 1, 1, most);
    }
    if (h[0].n_seq > 1)
        h[n++] = make_pass_shape(h[0], GG_MIN(s->n_ubatch, s->n_ctx),
                                 GG_MIN(s->n_ubatch, s->n_ctx), 1);
    /* with few tokens the real and the repeated ones have another size each
     * time */
    for (uint32_t real = 1; real < s->n_wide && n < N_RESERVED - 1; real++)
        h[n++] = make_pass_shape(h[0], s->n_wide, real, 1);
    h[n++] = make_pass_shape(h[0], 1, 1, 1);
    return n;
}

/* Plan each pass with and without outputs: the two graphs have different
 * structures. */
static enum gguf_status reserve_memory(struct gguf_session *s, bool encodes,
                                       struct gguf_error *err)
{
    const int first = gg_model_needs_whole_sequence(s->model) ? 1 : 0;
    struct gg_ubatch_shape h[N_RESERVED];
    const int n = list_reserved_passes(s, encodes, h);
    for (int i = 0; i < 2 * n; i++) {
        const bool with_out = i & 1;
        if (i % 2 < first)
            continue;
        h[i / 2].n_out = with_out ? h[i / 2].n_tok * h[i / 2].n_seq : 0;
        GG_TRY(build_graph(s, &h[i / 2], err));
        gg_model_note_adapters(&s->added, s->pass.graph);
        GG_TRY(gguf_sched_alloc(s->sched, s->pass.graph, err));
        GG_TRY(gg_sched_prepare(s->sched, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_session_reserve(struct gguf_session *s,
                                    struct gguf_error *err)
{
    /* most outputs of a batch */
    const size_t n_all = (size_t)s->n_ctx * s->n_seq;
    GG_TRY(gg_session_place_memory(s, err));
    if (gg_model_encodes_first(s->model))
        GG_TRY(reserve_memory(s, true, err));
    GG_TRY(reserve_memory(s, false, err));
    if (!gg_model_has_logits(s->model))
        return GGUF_OK;
    GG_TRY(gg_session_prepare_logits(s, GG_MIN(s->max_logits, n_all), err));
    gg_model_note_adapters(&s->added, s->head_graph);
    return gg_sched_prepare(s->head_sched, err);
}

/* Describe the passes for which memory is reserved. */
enum gguf_status gg_session_visit_passes(struct gguf_session *s,
                                         gg_session_visit_graph_fn *see,
                                         void *user, struct gguf_error *err)
{
    const int first = gg_model_encodes_first(s->model) ? 0 : 1;
    struct gg_ubatch_shape h[N_RESERVED];
    s->has_graph = false;
    for (int decodes = first; decodes < 2; decodes++)
        for (int i = 0, n = list_reserved_passes(s, !decodes, h); i < n; i++) {
            GG_TRY(build_graph(s, &h[i], err));
            see(user, s->pass.graph);
        }
    return GGUF_OK;
}

/* Describe the graphs of the most rows of logits and of one. */
enum gguf_status gg_session_visit_graphs(struct gguf_session *s,
                                         gg_session_visit_graph_fn *see,
                                         void *user, struct gguf_error *err)
{
    GG_TRY(gg_session_visit_passes(s, see, user, err));
    if (!gg_model_has_logits(s->model))
        return GGUF_OK;
    for (int narrow = 0; narrow < 2; narrow++) {
        GG_TRY(gg_session_prepare_logits(s, narrow ? 1 : s->max_logits, err));
        see(user, s->head_graph);
    }
    return GGUF_OK;
}

static enum gguf_status show_graph(struct gguf_session *s,
                                   struct gguf_sched *sched,
                                   struct gguf_graph *graph,
                                   struct gguf_error *err)
{
    if (s->on_graph.fn && s->on_graph.fn(s->on_graph.user, graph, sched))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled by on_graph");
    return GGUF_OK;
}

/* Work on a graph: nodes begin to end - 1, or all of it. */
struct part {
    struct gguf_sched *sched;
    struct gguf_graph *graph;
    size_t begin, end;
    bool all;
    bool starts; /* all of it is started, without waiting */
};

static enum gguf_status compute_graph(struct gguf_session *s, void *user,
                                      struct gguf_error *err)
{
    const struct part *p = user;
    (void)s;
    if (p->starts)
        return gguf_sched_compute_async(p->sched, p->graph, err);
    return p->all ? gguf_sched_compute(p->sched, p->graph, err)
                  : gg_sched_compute_nodes(p->sched, p->graph, p->begin,
                                           p->end, err);
}

static enum gguf_status show_and_compute(struct gguf_session *s,
                                         struct part *p,
                                         struct gguf_error *err)
{
    GG_TRY(show_graph(s, p->sched, p->graph, err));
    return s->finite_check.on ? gg_finite_check_compute(s, p->sched, p->graph,
                                                        compute_graph, p, err)
                              : compute_graph(s, p, err);
}

enum gguf_status gg_session_wait(struct gguf_session *s,
                                 struct gguf_error *err)
{
    if (!s->in_flight)
        return GGUF_OK;
    s->in_flight = false;
    return gguf_sched_sync(s->sched, err);
}

enum gguf_status gg_session_compute(struct gguf_session *s,
                                    struct gguf_sched *sched,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    struct part all = { .sched = sched, .graph = graph, .all = true };
    return show_and_compute(s, &all, err);
}

enum gguf_status gg_session_start_pass(struct gguf_session *s,
                                       struct gguf_error *err)
{
    struct part all = {
        .sched = s->sched, .graph = s->pass.graph, .all = true, .starts = true
    };
    return show_and_compute(s, &all, err);
}

enum gguf_status gg_session_compute_nodes(struct gguf_session *s, size_t begin,
                                          size_t end, struct gguf_error *err)
{
    struct part some = {
        .sched = s->sched, .graph = s->pass.graph, .begin = begin, .end = end
    };
    return show_and_compute(s, &some, err);
}
