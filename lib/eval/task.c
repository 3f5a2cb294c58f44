/* SPDX-License-Identifier: MIT */
/* task.c - make tasks, draw some, proportions */
#include "config.h"
#include "eval/task_int.h"

#include "base/compiler.h"
#include "base/params.h"

#include <math.h>
#include <string.h>

void gguf_tasks_destroy(struct gguf_tasks *t)
{
    if (!t)
        return;
    gg_mem_arena_fini(&t->arena);
    gg_mem_free(t->allocator, t->task);
    gg_mem_free(t->allocator, t);
}

size_t gguf_tasks_n_tasks(const struct gguf_tasks *t)
{
    return t->n;
}

uint32_t gguf_tasks_max_answers(const struct gguf_tasks *t)
{
    uint32_t most = 0;
    for (size_t i = 0; i < t->n; i++)
        most = GG_MAX(most, t->task[i].n_answers);
    return most;
}

enum gguf_status gguf_tasks_max_tokens(const struct gguf_tasks *t,
                                       const struct gguf_vocab *vocab,
                                       uint32_t *out, struct gguf_error *err)
{
    struct gguf_tokens tok = GGUF_TOKENS_INIT;
    enum gguf_status st = GGUF_OK;
    tok.allocator = t->allocator;
    *out = 0;
    for (size_t i = 0; i < t->n && st == GGUF_OK; i++)
        for (uint32_t a = 0; a < t->task[i].n_answers && st == GGUF_OK; a++) {
            const struct gguf_str text = t->task[i].answer[a].text;
            tok.n = 0;
            st = gguf_vocab_tokenize(vocab, text.data, text.size,
                                     GGUF_TOKENIZE_ADD_SPECIAL, &tok, err);
            *out = GG_MAX(*out, (uint32_t)GG_MIN(tok.n, UINT32_MAX));
        }
    gguf_tokens_fini(&tok);
    return st;
}

/* ---- making ---- */

/* Join the text before, a space if the kind has one, the answer, and the text
 * after. */
static bool join_answer(struct gguf_tasks *t,
                        const struct gg_eval_task_raw *raw, size_t i,
                        struct gg_eval_task_answer *a)
{
    const bool blank = t->kind != GGUF_TASK_WINOGRANDE;
    const struct gguf_str s = raw->answer[i];
    const size_t base = raw->before.size + blank + s.size;
    char *p = gg_mem_arena_alloc(&t->arena, base + raw->after.size + 1);
    if (!p)
        return false;
    *a = (struct gg_eval_task_answer){ .text = { p, base + raw->after.size },
                                       .base = blank ? 0 : base,
                                       .right = raw->right[i] };
    memcpy(p, raw->before.data, raw->before.size);
    if (blank)
        p[raw->before.size] = ' ';
    memcpy(p + raw->before.size + blank, s.data, s.size);
    if (raw->after.size)
        memcpy(p + base, raw->after.data, raw->after.size);
    return true;
}

static enum gguf_status check_task(const struct gguf_tasks *t,
                                   const struct gg_eval_task_raw *raw,
                                   size_t line, uint64_t off,
                                   struct gguf_error *err)
{
    size_t n_right = 0;
    if (raw->n < 2)
        return gg_error_set(err, GGUF_E_FORMAT, off,
                            "line %zu: %zu answers, must be 2 or more", line,
                            raw->n);
    for (size_t i = 0; i < raw->n; i++) {
        n_right += raw->right[i];
        if (!raw->answer[i].size)
            return gg_error_set(err, GGUF_E_FORMAT, off,
                                "line %zu: answer %zu is empty", line, i);
    }
    if (!n_right)
        return gg_error_set(err, GGUF_E_FORMAT, off,
                            "line %zu: no answer is right", line);
    if (!raw->before.size && t->kind != GGUF_TASK_WINOGRANDE)
        return gg_error_set(err, GGUF_E_FORMAT, off,
                            "line %zu: the text before the answers is empty",
                            line);
    return GGUF_OK;
}

enum gguf_status gg_eval_task_add(struct gguf_tasks *t,
                                  const struct gg_eval_task_raw *raw,
                                  size_t line, uint64_t off,
                                  struct gguf_error *err)
{
    GG_TRY(check_task(t, raw, line, off, err));
    if (t->n == t->cap) {
        void *grown = gg_mem_grow(t->allocator, t->task, &t->cap,
                                  sizeof *t->task, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        t->task = grown;
    }
    struct gg_eval_task_answer *a =
        gg_mem_arena_alloc(&t->arena, raw->n * sizeof *a);
    for (size_t i = 0; a && i < raw->n; i++)
        if (!join_answer(t, raw, i, &a[i]))
            a = NULL;
    if (!a)
        return gg_error_set_nomem(err, raw->n * sizeof *a);
    t->task[t->n] = (struct gg_eval_task){ t->n, (uint32_t)raw->n, a };
    t->n++;
    return GGUF_OK;
}

bool gg_eval_task_split_blank(struct gguf_str sentence,
                              struct gg_eval_task_raw *raw)
{
    const char *gap = memchr(sentence.data, '_', sentence.size);
    if (!gap)
        return false;
    const size_t n = (size_t)(gap - sentence.data);
    raw->before = (struct gguf_str){ sentence.data, n };
    raw->after = (struct gguf_str){ gap + 1, sentence.size - n - 1 };
    return raw->after.size && !memchr(gap + 1, '_', raw->after.size);
}

/* ---- sampling ---- */

/* xorshift64* (Vigna, arXiv 1402.6246). */
static uint64_t next_random(uint64_t *x)
{
    *x ^= *x >> 12;
    *x ^= *x << 25;
    *x ^= *x >> 27;
    return *x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Keep each task with the probability that is left for it (Knuth, The Art of
 * Computer Programming 2, 3.4.2, algorithm S). */
void gguf_tasks_sample(struct gguf_tasks *t, size_t n)
{
    uint64_t x = UINT64_C(0x9e3779b97f4a7c15);
    size_t kept = 0;
    if (n >= t->n)
        return;
    for (size_t i = 0; kept < n; i++)
        if ((next_random(&x) >> 11) % (t->n - i) < n - kept)
            t->task[kept++] = t->task[i];
    t->n = n;
}

/* ---- proportions ---- */

double gguf_proportion_error(uint64_t k, uint64_t n)
{
    if (n < 2)
        return (double)NAN;
    const double p = (double)k / (double)n;
    return sqrt(p * (1 - p) / ((double)n - 1));
}

void gguf_proportion_interval(uint64_t k, uint64_t n, double *low,
                              double *high)
{
    const double z = 1.959963984540054, m = (double)n;
    *low = 0;
    *high = 1;
    if (!n)
        return;
    const double p = (double)k / m;
    const double middle = p + z * z / (2 * m), all = 1 + z * z / m;
    const double half = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m));
    *low = fmax(0, (middle - half) / all);
    *high = fmin(1, (middle + half) / all);
}
