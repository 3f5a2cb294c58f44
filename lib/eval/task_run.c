/* SPDX-License-Identifier: MIT */
/* task_run.c - compute tasks
 *
 * The beginning that all answers of a task have in common is computed once and
 * copied to their sequences; then the rest of all answers is computed in one
 * batch. */
#include "config.h"
#include "eval/nll.h"
#include "eval/task_int.h"

#include "base/compiler.h"
#include "base/params.h"
#include "run/session_int.h"

#include <math.h>
#include <string.h>

/* Tokens of an answer; first to end - 1 are scored. */
struct answer {
    size_t at; /* index of its first token in tok */
    size_t n, first, end;
    size_t row; /* index of its first output in the second batch */
};

struct job {
    const struct gguf_tasks *t;
    const struct gguf_task_params *p;
    struct gguf_session *s;
    const struct gguf_vocab *vocab;
    struct gguf_tokens tok; /* tokens of all answers, one after another */
    struct gguf_tokens base;
    struct answer *answer; /* [most answers], as are the next four */
    double *sum, *score;
    uint32_t *n_scored;
    bool *right;
    /* the second batch: the rest of all answers */
    gguf_token *token;
    int32_t *seq;
    bool *want;
    size_t room; /* tokens that these arrays have room for */
    double *nll; /* [n_ctx] */
    size_t common;
    size_t end; /* first task that is not computed */
    bool names; /* compat: names are scored, too */
};

static const gguf_token *tokens_of(const struct job *j, size_t a)
{
    return j->tok.id + j->answer[a].at;
}

/* ---- tokens ---- */

/* Number of tokens that a and b have in common at their beginning. */
static size_t common_prefix(const gguf_token *a, size_t n_a,
                            const gguf_token *b, size_t n_b)
{
    size_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n])
        n++;
    return n;
}

static enum gguf_status tokenize_task(struct job *j,
                                      const struct gg_eval_task *task,
                                      struct gguf_error *err)
{
    j->tok.n = 0;
    for (uint32_t a = 0; a < task->n_answers; a++) {
        const struct gguf_str text = task->answer[a].text;
        j->answer[a] = (struct answer){ .at = j->tok.n };
        GG_TRY(gguf_vocab_tokenize(j->vocab, text.data, text.size,
                                   GGUF_TOKENIZE_ADD_SPECIAL, &j->tok, err));
        j->answer[a].n = j->answer[a].end = j->tok.n - j->answer[a].at;
        if (j->answer[a].n > gguf_session_n_ctx(j->s))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "task %zu: %zu tokens, the session has room "
                                "for %" PRIu32,
                                task->no + 1, j->answer[a].n,
                                gguf_session_n_ctx(j->s));
    }
    j->common = j->answer[0].n;
    for (uint32_t a = 1; a < task->n_answers; a++)
        j->common =
            GG_MIN(j->common, common_prefix(tokens_of(j, 0), j->answer[0].n,
                                            tokens_of(j, a), j->answer[a].n));
    return GGUF_OK;
}

/* Count the tokens of the text before the scored part: alone, and in common
 * with the whole text. */
static enum gguf_status count_context_tokens(struct job *j,
                                             const struct gg_eval_task *task,
                                             uint32_t a, size_t *alone,
                                             size_t *both,
                                             struct gguf_error *err)
{
    const struct gg_eval_task_answer *of = &task->answer[a];
    j->base.n = 0;
    GG_TRY(gguf_vocab_tokenize(j->vocab, of->text.data, of->base,
                               GGUF_TOKENIZE_ADD_SPECIAL, &j->base, err));
    *alone = j->base.n;
    *both =
        common_prefix(j->base.id, j->base.n, tokens_of(j, a), j->answer[a].n);
    return GGUF_OK;
}

/* Choose the scored tokens as llama.cpp does. */
static enum gguf_status choose_compat(struct job *j,
                                      const struct gg_eval_task *task,
                                      struct gguf_error *err)
{
    enum { TRAILING = 3 };
    j->names = false;
    for (uint32_t a = 0; a < task->n_answers; a++) {
        struct answer *of = &j->answer[a];
        size_t both;
        GG_TRY(count_context_tokens(j, task, a, &of->first, &both, err));
        j->names |= of->n <= j->common + TRAILING;
    }
    for (uint32_t a = 0; a < task->n_answers; a++) {
        struct answer *of = &j->answer[a];
        of->first = j->names ? j->common : of->first;
        of->end = of->n - (of->n > of->first + 1);
    }
    return GGUF_OK;
}

static enum gguf_status choose_tokens(struct job *j,
                                      const struct gg_eval_task *task,
                                      struct gguf_error *err)
{
    const bool gap = j->t->kind == GGUF_TASK_WINOGRANDE;
    if (gap && j->p->compat)
        GG_TRY(choose_compat(j, task, err));
    for (uint32_t a = 0; a < task->n_answers; a++) {
        struct answer *of = &j->answer[a];
        size_t alone;
        if (!gap)
            of->first = j->common;
        else if (!j->p->compat)
            GG_TRY(count_context_tokens(j, task, a, &alone, &of->first, err));
        /* at least one token must be scored, and one must predict it */
        of->first = GG_MIN(of->first, of->n - GG_MIN(of->n, 1));
        if (of->first < 1 || of->first >= of->end)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "task %zu: no token of answer %" PRIu32
                                " can be scored",
                                task->no + 1, a);
        j->common = GG_MIN(j->common, of->first);
    }
    return GGUF_OK;
}

/* ---- decoding ---- */

static enum gguf_status decode_task(struct job *j,
                                    const struct gg_eval_task *task,
                                    const float **logits,
                                    struct gguf_error *err)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = j->common;
    b.token = tokens_of(j, 0);
    GG_TRY(gguf_session_clear(j->s, err));
    GG_TRY(gguf_session_decode(j->s, &b, err));
    for (uint32_t a = 1; a < task->n_answers; a++)
        GG_TRY(gguf_session_copy_tokens(j->s, 0, a, 0, -1, err));
    return gguf_session_logits(j->s, 0, 1, logits, err);
}

static enum gguf_status make_room(struct job *j, size_t n,
                                  struct gguf_error *err)
{
    const struct gguf_allocator *a = j->s->allocator;
    if (n <= j->room)
        return GGUF_OK;
    gg_mem_free(a, j->token);
    gg_mem_free(a, j->seq);
    gg_mem_free(a, j->want);
    j->room = 0;
    j->token = gg_mem_alloc_zero(a, n, sizeof *j->token);
    j->seq = gg_mem_alloc_zero(a, n, sizeof *j->seq);
    j->want = gg_mem_alloc_zero(a, n, 1);
    if (!j->token || !j->seq || !j->want)
        return gg_error_set_nomem(err, n * sizeof *j->token);
    j->room = n;
    return GGUF_OK;
}

/* Decode the rest of all answers. The last token's prediction is not wanted,
 * except that of a first answer which predicts the second one (compat). */
static enum gguf_status decode_rest(struct job *j,
                                    const struct gg_eval_task *task,
                                    struct gguf_error *err)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    size_t n = 0, n_rows = 0;
    GG_TRY(make_room(j, j->tok.n + 1, err));
    for (uint32_t a = 0; a < task->n_answers; a++) {
        struct answer *of = &j->answer[a];
        const bool whole = j->names && !a;
        of->row = n_rows;
        for (size_t i = j->common; i + 1 < of->end || (whole && i < of->n);
             i++, n++) {
            j->token[n] = tokens_of(j, a)[i];
            j->seq[n] = (int32_t)a;
            j->want[n] = i + 1 >= of->first;
            n_rows += j->want[n];
        }
    }
    b.n = n;
    b.token = j->token;
    b.seq = j->seq;
    b.want = j->want;
    return n ? gguf_session_decode(j->s, &b, err) : GGUF_OK;
}

/* Add ln p of the tokens that n outputs of the second batch predict, from row
 * on. */
static enum gguf_status add_rows(struct job *j, uint32_t a, size_t row,
                                 size_t n, const gguf_token *token,
                                 struct gguf_error *err)
{
    const size_t most = gguf_session_max_logits(j->s);
    const size_t n_vocab = j->s->model->hp.n_vocab;
    for (size_t i = 0, k; i < n; i += k) {
        const float *logits;
        k = GG_MIN(GG_MIN(most, n - i), gguf_session_n_ctx(j->s));
        GG_TRY(gguf_session_logits(j->s, row + i, k, &logits, err));
        gg_nll_rows(j->p->pool, logits, n_vocab, k, token + i, j->nll);
        for (size_t q = 0; q < k; q++)
            j->sum[a] -= j->nll[q];
    }
    return GGUF_OK;
}

/* Score the first tokens of answers that differ right after the common
 * beginning. */
static void score_first(struct job *j, const struct gg_eval_task *task,
                        const float *logits)
{
    for (uint32_t a = 0; a < task->n_answers; a++) {
        const struct answer *of = &j->answer[a];
        j->sum[a] = 0;
        j->n_scored[a] = (uint32_t)(of->end - of->first);
        if (of->first != j->common || (j->names && a))
            continue;
        gg_nll_rows(NULL, logits, j->s->model->hp.n_vocab, 1,
                    tokens_of(j, a) + of->first, j->nll);
        j->sum[a] = -j->nll[0];
    }
}

static enum gguf_status score_rest(struct job *j,
                                   const struct gg_eval_task *task,
                                   struct gguf_error *err)
{
    for (uint32_t a = 0; a < task->n_answers; a++) {
        const struct answer *of = &j->answer[a];
        const size_t first = GG_MAX(of->first, j->common + 1);
        const struct answer *other = &j->answer[0];
        if (j->names && a) /* predicted after the end of the first answer */
            GG_TRY(add_rows(j, a, other->row + other->n - 1 - j->common, 1,
                            tokens_of(j, a) + of->first, err));
        if (first < of->end)
            GG_TRY(add_rows(j, a, of->row, of->end - first,
                            tokens_of(j, a) + first, err));
        j->score[a] = j->sum[a] / j->n_scored[a];
        if (!isfinite(j->sum[a]))
            return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                "task %zu: logits of answer %" PRIu32
                                " are not finite",
                                task->no + 1, a);
    }
    return GGUF_OK;
}

/* ---- results ---- */

static uint32_t find_highest(const double *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t a = 1; a < n; a++)
        best = x[a] > x[best] ? a : best;
    return best;
}

uint32_t gguf_task_choose_answer(enum gguf_task_kind kind, bool compat,
                                 const double *score, uint32_t n)
{
    /* llama.cpp chooses the second of two equal names */
    if (compat && kind == GGUF_TASK_WINOGRANDE && n == 2)
        return !(score[0] > score[1]);
    return find_highest(score, n);
}

static enum gguf_status count_task(struct job *j, size_t i,
                                   struct gguf_task_result *out,
                                   struct gguf_error *err)
{
    const struct gg_eval_task *task = &j->t->task[i];
    struct gguf_task_scores s = { .task = i,
                                  .no = task->no,
                                  .n_answers = task->n_answers,
                                  .sum = j->sum,
                                  .n_tokens = j->n_scored,
                                  .score = j->score,
                                  .right = j->right };
    for (uint32_t a = 0; a < task->n_answers; a++)
        j->right[a] = task->answer[a].right;
    s.chosen = gguf_task_choose_answer(j->t->kind, j->p->compat, j->score,
                                       task->n_answers);
    out->n++;
    out->n_right += j->right[s.chosen];
    out->n_right_sum += j->right[find_highest(j->sum, task->n_answers)];
    if (j->p->on_task.fn && j->p->on_task.fn(j->p->on_task.user, &s))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

/* Compute the chance level of the tasks that are computed. */
static void compute_chance(const struct job *j, struct gguf_task_result *out)
{
    double n_answers = 0, sum = 0;
    for (size_t i = j->p->first_task; i < j->end; i++) {
        const struct gg_eval_task *task = &j->t->task[i];
        double n_right = 0;
        for (uint32_t a = 0; a < task->n_answers; a++)
            n_right += task->answer[a].right;
        sum += n_right / task->n_answers;
        n_answers += task->n_answers;
    }
    const double n = (double)(j->end - j->p->first_task);
    out->chance = j->p->compat ? n / n_answers : sum / n;
}

static enum gguf_status run_task(struct job *j, size_t i,
                                 struct gguf_task_result *out,
                                 struct gguf_error *err)
{
    const struct gg_eval_task *task = &j->t->task[i];
    const float *logits;
    GG_TRY(tokenize_task(j, task, err));
    GG_TRY(choose_tokens(j, task, err));
    GG_TRY(decode_task(j, task, &logits, err));
    score_first(j, task, logits);
    GG_TRY(decode_rest(j, task, err));
    GG_TRY(score_rest(j, task, err));
    return count_task(j, i, out, err);
}

/* ---- the run ---- */

static enum gguf_status check_model(const struct gguf_session *s,
                                    const struct gguf_tasks *t,
                                    struct gguf_error *err)
{
    const uint32_t most = gguf_tasks_max_answers(t);
    if (!s || most > gguf_session_n_seq(s))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%" PRIu32 " answers: the session has %" PRIu32
                            " sequences",
                            most, s ? gguf_session_n_seq(s) : 0);
    if (!gg_model_has_logits(s->model) ||
        gg_model_needs_whole_sequence(s->model) ||
        gg_model_encodes_first(s->model))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "architecture '%s' does not continue a text",
                            s->model->arch->name);
    return GGUF_OK;
}

static enum gguf_status setup_job(struct job *j, struct gguf_error *err)
{
    const struct gguf_allocator *a = j->s->allocator;
    const uint64_t n = gguf_tasks_max_answers(j->t);
    j->tok.allocator = j->base.allocator = a;
    j->answer = gg_mem_alloc_zero(a, n, sizeof *j->answer);
    j->sum = gg_mem_alloc_zero(a, 2 * n, sizeof *j->sum);
    j->n_scored = gg_mem_alloc_zero(a, n, sizeof *j->n_scored);
    j->right = gg_mem_alloc_zero(a, n, 1);
    j->nll = gg_mem_alloc_zero(a, gguf_session_n_ctx(j->s), sizeof *j->nll);
    if (!j->answer || !j->sum || !j->n_scored || !j->right || !j->nll)
        return gg_error_set_nomem(err, (size_t)n * sizeof *j->answer);
    j->score = j->sum + n;
    return GGUF_OK;
}

static enum gguf_status report_task(const struct job *j, size_t i,
                                    struct gguf_error *err)
{
    const size_t first = j->p->first_task;
    if (j->p->progress.fn &&
        j->p->progress.fn(j->p->progress.user, i - first, j->end - first))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

static void finish_job(struct job *j)
{
    const struct gguf_allocator *a = j->s->allocator;
    gguf_tokens_fini(&j->tok);
    gguf_tokens_fini(&j->base);
    gg_mem_free(a, j->answer);
    gg_mem_free(a, j->sum);
    gg_mem_free(a, j->n_scored);
    gg_mem_free(a, j->right);
    gg_mem_free(a, j->token);
    gg_mem_free(a, j->seq);
    gg_mem_free(a, j->want);
    gg_mem_free(a, j->nll);
}

enum gguf_status gguf_tasks_run(struct gguf_session *session,
                                const struct gguf_tasks *tasks,
                                const struct gguf_task_params *params,
                                struct gguf_task_result *out,
                                struct gguf_error *err)
{
    struct gguf_task_params p = GGUF_TASK_PARAMS_INIT;
    struct gguf_task_result r = GGUF_TASK_RESULT_INIT;
    GG_TRY(gg_params_give(out, &r, sizeof r, "gguf_task_result", err));
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_task_params", err));
    GG_TRY(check_model(session, tasks, err));
    if (p.first_task >= tasks->n)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "there are %zu tasks: none from %zu on, counted "
                            "from 0",
                            tasks->n, p.first_task);
    const size_t left = tasks->n - p.first_task;
    struct job j = { .t = tasks,
                     .p = &p,
                     .s = session,
                     .vocab = gguf_model_vocab(session->model),
                     .tok = GGUF_TOKENS_INIT,
                     .base = GGUF_TOKENS_INIT };
    j.end = p.first_task +
            (p.max_tasks && p.max_tasks < left ? p.max_tasks : left);
    enum gguf_status st = setup_job(&j, err);
    compute_chance(&j, &r);
    for (size_t i = p.first_task; i < j.end && st == GGUF_OK; i++) {
        st = report_task(&j, i, err);
        if (st == GGUF_OK)
            st = run_task(&j, i, &r, err);
    }
    if (st == GGUF_OK)
        st = report_task(&j, j.end, err);
    const enum gguf_status cleared =
        gguf_session_clear(session, st == GGUF_OK ? err : NULL);
    st = st == GGUF_OK ? cleared : st;
    finish_job(&j);
    (void)gg_params_give(out, &r, sizeof r, "gguf_task_result", NULL);
    return st;
}
