/* SPDX-License-Identifier: MIT */
/* sensitivity.c - measure the effect of errors of each weight on predictions
 *
 * The weights that a layer uses first are measured one by one. Each trial
 * computes the rest of the model. Then all chunks move on by one layer. */
#include "config.h"
#include "eval/sensitivity_int.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"
#include "gguf/op.h"
#include "model/weight/weight_swap.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_TOKENS = 2048, TRIES = 12 };
#define AIM       2e-3 /* divergence that the noise should cause */
#define FIRST     0.1  /* relative error with which the search begins */
#define LARGEST   8.0  /* largest relative error */
#define TOLERANCE 4.0  /* factor by which the divergence may differ */

static enum gguf_status report_progress(struct gg_sensitivity_run *r,
                                        uint64_t n, struct gguf_error *err)
{
    const struct gguf_progress_callback *p = &r->p->progress;
    r->done = GG_MIN(r->done + n, r->total);
    if (p->fn && p->fn(p->user, r->done, r->total))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

/* ---- a weight ---- */

/* Find the size of the noise that gives the wanted divergence. *kld receives
 * that of the first chunk; NaN: none was finite. */
static enum gguf_status find_sigma(struct gg_sensitivity_run *r,
                                   struct gg_sensitivity_trial *t, double *kld,
                                   struct gguf_error *err)
{
    t->noise.sigma = FIRST;
    for (int i = 0; i < TRIES; i++) {
        GG_TRY(gg_sensitivity_try_chunk(r, t, 0, kld, err));
        const double ratio = *kld / AIM;
        if (ratio <= TOLERANCE && ratio >= 1 / TOLERANCE)
            break;
        if (ratio < 1 / TOLERANCE && t->noise.sigma >= LARGEST)
            break;
        double factor = 1.0 / 16;
        if (isfinite(ratio))
            factor = ratio > 1e-6 ? sqrt(1 / ratio) : 1e3;
        factor = GG_MAX(factor, 1.0 / 64);
        t->noise.sigma = GG_MIN(t->noise.sigma * factor, LARGEST);
    }
    return GGUF_OK;
}

/* Add the sensitivity of a weight, if it is a number. */
static enum gguf_status add_result(struct gg_sensitivity_run *r,
                                   const struct gg_sensitivity_trial *t,
                                   double kld, double power, double input,
                                   struct gguf_error *err)
{
    const double sigma = t->noise.sigma;
    const double c = 2 * GG_MAX(kld, 0.0) / (sigma * sigma * power);
    if (!isfinite(kld) || !isfinite(c) || !isfinite(input))
        return GGUF_OK;
    r->n_measured++;
    return gguf_imatrix_add_sensitivity(
        r->im, t->name, c, input, (double)r->n_chunks * (double)r->p->n_ctx,
        err);
}

static enum gguf_status measure_weight(struct gg_sensitivity_run *r,
                                       struct gg_sensitivity_trial *t,
                                       struct gguf_error *err)
{
    double table = 0, kld, sum = 0;
    struct gg_weight_noise_sums all = { 0 };
    if (t->table)
        GG_TRY(gg_weight_noise_table_power(&t->noise, &table, err));
    GG_TRY(find_sigma(r, t, &kld, err));
    const double sigma = t->noise.sigma;
    for (size_t c = 0; c < r->n_chunks; c++) {
        /* errors of both signs: terms of third order cancel */
        t->noise.sigma = c % 2 ? -sigma : sigma;
        if (c && isfinite(kld))
            GG_TRY(gg_sensitivity_try_chunk(r, t, c, &kld, err));
        sum += kld;
        all.power += t->sums.power;
        all.squares += t->sums.squares;
        all.n += t->sums.n;
        const uint64_t layers =
            t->head ? 1 : r->cuts.n_layers - (uint64_t)r->layer;
        GG_TRY(report_progress(r, r->p->n_ctx * layers, err));
    }
    sum /= (double)r->n_chunks;
    if (t->table)
        return add_result(r, t, sum, table, 0, err);
    return add_result(r, t, sum, all.power / all.n,
                      all.squares / (all.n * (double)t->noise.n_cols), err);
}

/* Prepare the trial of a weight. false: it cannot be measured. */
static bool make_trial(const struct gg_sensitivity_run *r,
                       struct gg_sensitivity_trial *t,
                       const struct gguf_tensor *weight, bool table, bool head)
{
    const struct gguf_model *m = r->s->model;
    size_t i;
    *t = (struct gg_sensitivity_trial){ .weight = weight,
                                        .head = head,
                                        .table = table };
    (void)gg_str_join(t->name, sizeof t->name, gg_str_z(weight->name), "");
    if (!gg_model_find_weight(m, gg_str_z(weight->name), &i) ||
        gg_data_rows(&r->list.list, i, &t->noise.rows, NULL) != GGUF_OK)
        return false;
    const struct gg_file_shard_tensor in = gg_source_tensor(&m->src, i);
    if (in.info->ne[0] != weight->ne[0] ||
        in.info->n_elements != (uint64_t)gguf_tensor_n_elements(weight))
        return false;
    t->noise.allocator = r->a;
    t->noise.pool = r->p->pool;
    t->noise.dot = r->kern.vec.dot;
    t->noise.n_cols = (uint64_t)weight->ne[0];
    t->noise.n_rows_mat = (uint64_t)weight->ne[1];
    t->noise.n_rows = in.info->n_elements / t->noise.n_cols;
    t->noise.seed = gg_weight_noise_seed(t->name, table);
    if (head && !strcmp(t->name, "token_embd.weight"))
        (void)gg_str_join(t->name, sizeof t->name, GG_STR("output.weight"),
                          "");
    return true;
}

static bool is_included(const struct gg_sensitivity_run *r, const char *name)
{
    for (size_t i = 0; i < r->p->n_include; i++)
        if (strstr(name, r->p->include[i]))
            return true;
    return !r->p->n_include;
}

/* Note a use of a weight. *is_new receives false if it was noted before. */
static enum gguf_status note_use(struct gg_sensitivity_run *r,
                                 struct gg_sensitivity_use use, bool *is_new,
                                 struct gguf_error *err)
{
    *is_new = false;
    for (size_t i = 0; i < r->n_seen; i++)
        if (r->seen[i].weight == use.weight && r->seen[i].table == use.table)
            return GGUF_OK;
    if (r->n_seen == r->cap_seen) {
        void *grown =
            gg_mem_grow(r->a, r->seen, &r->cap_seen, sizeof *r->seen, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        r->seen = grown;
    }
    r->seen[r->n_seen++] = use;
    *is_new = true;
    return GGUF_OK;
}

/* Measure a use of a weight, unless it was measured before. */
static enum gguf_status measure_use(struct gg_sensitivity_run *r,
                                    struct gg_sensitivity_use use, bool head,
                                    struct gguf_error *err)
{
    struct gg_sensitivity_trial t;
    bool is_new = true;
    if (!head)
        GG_TRY(note_use(r, use, &is_new, err));
    return is_new && is_included(r, use.weight->name) &&
                   make_trial(r, &t, use.weight, use.table, head)
               ? measure_weight(r, &t, err)
               : GGUF_OK;
}

/* Measure the weights of nodes begin to end - 1 of the graph of the pass, or of
 * that of logits. A measurement may build the graph anew. */
static enum gguf_status measure_nodes(struct gg_sensitivity_run *r,
                                      size_t begin, size_t end, bool head,
                                      struct gguf_error *err)
{
    for (size_t i = begin; i < end; i++) {
        const struct gguf_graph *g =
            head ? r->s->head_graph : r->s->pass.graph;
        const struct gguf_tensor *node = g->nodes[i];
        const struct gg_sensitivity_use use = { gg_weight_noise_find(node),
                                                node->op == GGUF_OP_GET_ROWS };
        if (use.weight)
            GG_TRY(measure_use(r, use, head, err));
    }
    return GGUF_OK;
}

/* ---- the run ---- */

static enum gguf_status check_session(const struct gg_sensitivity_run *r,
                                      struct gguf_error *err)
{
    const struct gguf_session *s = r->s;
    const uint32_t n = r->p->n_ctx;
    if (gg_model_needs_whole_sequence(s->model) ||
        gg_model_encodes_first(s->model) || !gg_model_has_logits(s->model))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "sensitivities of architecture '%s' cannot be "
                            "measured: it predicts no next token",
                            s->model->arch->name);
    if (gguf_sched_n_backends(s->sched) > 1)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "sensitivities: the session has several backends, expected one");
    if (n < GG_WINDOW_LEAST || n > s->n_ctx || n > s->n_ubatch)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunks of %" PRIu32
                            " tokens: must be %d to %" PRIu32
                            ", which the session computes together",
                            n, GG_WINDOW_LEAST, GG_MIN(s->n_ctx, s->n_ubatch));
    return GGUF_OK;
}

/* Choose chunks that are evenly spaced in the text. */
static enum gguf_status choose_chunks(struct gg_sensitivity_run *r, size_t n,
                                      struct gguf_error *err)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    const uint64_t tokens = r->p->n_tokens, n_ctx = r->p->n_ctx;
    p.n_ctx = r->p->n_ctx;
    GG_TRY(gg_window_init(&r->windows, &p, n, gguf_model_vocab(r->s->model),
                          r->a, err));
    const size_t all = gg_window_count(&r->windows);
    r->n_chunks = (size_t)GG_MIN((tokens - 1) / n_ctx + 1, (uint64_t)all);
    r->chunk = gg_mem_alloc_zero(r->a, r->n_chunks, sizeof *r->chunk);
    if (!r->chunk)
        return gg_error_set_nomem(err, r->n_chunks * sizeof *r->chunk);
    for (size_t i = 0; i < r->n_chunks; i++)
        r->chunk[i] = (2 * i + 1) * all / (2 * r->n_chunks);
    return GGUF_OK;
}

static enum gguf_status allocate_buffers(struct gg_sensitivity_run *r,
                                         struct gguf_error *err)
{
    const uint64_t n_ctx = r->p->n_ctx;
    const uint64_t n_vocab = r->s->model->hp.n_vocab;
    const uint64_t most = gguf_session_max_logits(r->s);
    r->token = gg_mem_alloc_zero(r->a, n_ctx, sizeof *r->token);
    r->want = gg_mem_alloc_zero(r->a, n_ctx, sizeof *r->want);
    r->states = gg_mem_alloc_zero(
        r->a, n_ctx * r->n_chunks * r->s->model->hp.n_embd, sizeof *r->states);
    r->logits = gg_mem_alloc_zero(r->a, most * n_vocab, sizeof *r->logits);
    r->kld = gg_mem_alloc_zero(r->a, most, sizeof *r->kld);
    if (!r->token || !r->want || !r->states || !r->logits || !r->kld)
        return gg_error_set_nomem(
            err, (size_t)(n_ctx * r->n_chunks * r->s->model->hp.n_embd *
                          sizeof *r->states));
    memset(r->want, 1, (size_t)n_ctx);
    return GGUF_OK;
}

/* Count tokens times layers of all measurements. */
static uint64_t count_work(const struct gg_sensitivity_run *r)
{
    const struct gguf_graph *g = r->s->pass.graph;
    const uint64_t tokens = (uint64_t)r->n_chunks * r->p->n_ctx;
    uint64_t sum = 0;
    for (uint32_t il = 0; il < r->cuts.n_layers; il++)
        for (size_t i = gg_sensitivity_begin_of_layer(r, il);
             i < gg_sensitivity_end_of_layer(r, il); i++) {
            const struct gguf_tensor *w = gg_weight_noise_find(g->nodes[i]);
            if (w && is_included(r, w->name))
                sum += tokens * (r->cuts.n_layers - il);
        }
    return sum + tokens;
}

static enum gguf_status check_finite(const float *x, uint64_t n, size_t chunk,
                                     struct gguf_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                "sensitivities: results of chunk %zu are NaN "
                                "or infinite",
                                chunk + 1);
    return GGUF_OK;
}

/* Compute all chunks undisturbed, and keep their final states. */
static enum gguf_status compute_undisturbed(struct gg_sensitivity_run *r,
                                            struct gguf_error *err)
{
    const uint64_t size = (uint64_t)r->p->n_ctx * r->s->model->hp.n_embd;
    for (size_t c = 0; c < r->n_chunks; c++) {
        GG_TRY(gg_sensitivity_begin_chunk(r, c, err));
        GG_TRY(
            gg_session_compute_nodes(r->s, 0, r->s->pass.graph->n_nodes, err));
        GG_TRY(gg_sensitivity_finish_chunk(r, err));
        memcpy(r->states + c * size, r->s->out, (size_t)size * sizeof(float));
        GG_TRY(check_finite(r->states + c * size, size, r->chunk[c], err));
    }
    r->total = count_work(r);
    r->stored = r->cuts.most;
    r->store = gg_mem_alloc_zero(r->a, r->n_chunks, (size_t)r->stored);
    return r->store ? GGUF_OK
                    : gg_error_set_nomem(err, r->n_chunks * (size_t)r->stored);
}

static enum gguf_status measure_all(struct gg_sensitivity_run *r,
                                    struct gguf_error *err)
{
    GG_TRY(compute_undisturbed(r, err));
    while (r->layer < r->cuts.n_layers) {
        GG_TRY(measure_nodes(r, gg_sensitivity_begin_of_layer(r, r->layer),
                             gg_sensitivity_end_of_layer(r, r->layer), false,
                             err));
        GG_TRY(gg_sensitivity_advance_layer(r, err));
    }
    GG_TRY(
        gg_session_prepare_logits(r->s, gguf_session_max_logits(r->s), err));
    GG_TRY(measure_nodes(r, 0, r->s->head_graph->n_nodes, true, err));
    GG_TRY(report_progress(r, r->total, err));
    return r->n_measured ? GGUF_OK
                         : gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                                        "no sensitivity could be measured");
}

static void fini_run(struct gg_sensitivity_run *r)
{
    gg_window_fini(&r->windows);
    gg_graph_cuts_fini(&r->cuts);
    gg_mem_free(r->a, r->chunk);
    gg_mem_free(r->a, r->token);
    gg_mem_free(r->a, r->want);
    gg_mem_free(r->a, r->store);
    gg_mem_free(r->a, r->states);
    gg_mem_free(r->a, r->logits);
    gg_mem_free(r->a, r->kld);
    gg_mem_free(r->a, r->seen);
}

static enum gguf_status prepare_run(struct gg_sensitivity_run *r, size_t n,
                                    struct gguf_error *err)
{
    GG_TRY(check_session(r, err));
    GG_TRY(choose_chunks(r, n, err));
    GG_TRY(gg_graph_cuts_init(
        &r->cuts, gg_model_n_unrolled_layers(r->s->model), r->a, err));
    gg_kern_init(&r->kern, gg_kern_cpu_detect());
    gg_data_gguf_init(&r->list, &r->s->model->src, r->kern.codec, true);
    return allocate_buffers(r, err);
}

enum gguf_status
gguf_sensitivity_run(struct gguf_imatrix *im, struct gguf_session *session,
                     const gguf_token *token, size_t n,
                     const struct gguf_sensitivity_params *params,
                     struct gguf_error *err)
{
    struct gguf_sensitivity_params p = GGUF_SENSITIVITY_PARAMS_INIT;
    struct gg_sensitivity_run r = {
        .im = im, .s = session, .p = &p, .a = session->allocator, .text = token
    };
    GG_TRY(
        gg_params_take(&p, sizeof p, params, "gguf_sensitivity_params", err));
    p.n_ctx = p.n_ctx ? p.n_ctx : 512;
    p.n_tokens = p.n_tokens ? p.n_tokens : DEFAULT_TOKENS;
    enum gguf_status st = prepare_run(&r, n, err);
    if (st == GGUF_OK)
        st = measure_all(&r, err);
    const enum gguf_status cleared =
        gguf_session_clear(session, st == GGUF_OK ? err : NULL);
    fini_run(&r);
    return st == GGUF_OK ? cleared : st;
}
