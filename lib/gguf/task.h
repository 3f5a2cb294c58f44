/* SPDX-License-Identifier: MIT */
/* task.h - choices: which of several answers a model holds most likely
 *
 * A task has two answers or more, one or more of them right. An answer is a
 * text of which a part is scored: with t(i) its tokens from first to last,
 *
 *     sum   = sum over i of ln p(t(i) | all tokens before)
 *     score = sum / number of them
 *
 * and the model chooses the answer with the highest score, the first of equal
 * ones. It is right if that answer is.
 *
 * HELLASWAG (Zellers et al., arXiv 1905.07830): the text is the context, a
 * space and an ending. CHOICE (TruthfulQA, ARC, MMLU and others): the question,
 * a space and an answer. Scored are the tokens after those that the texts of
 * all answers begin with.
 *
 * WINOGRANDE (Sakaguchi et al., arXiv 1907.10641): a sentence with a blank for
 * one of two names. Scored is what comes after the blank, the same for both
 * (partial evaluation: Trinh and Le, arXiv 1806.02847, section 3): tokens from
 * the first one on that the text up to there, tokenized alone, does not have.
 *
 * With compat, scores of WINOGRANDE are those of llama.cpp (commit d32676d):
 * the last token is left out where there are two or more; if one of the answers
 * has three tokens or fewer that the other does not begin with, all of these
 * are scored, names too, and the first one of the second answer gets what the
 * model predicts after the end of the first answer.
 *
 * Each task is computed by itself, what answers have in common once. Scores do
 * not depend on threads or on other tasks.
 */
#ifndef GGUF_TASK_H
#define GGUF_TASK_H

#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gguf_task_kind {
    GGUF_TASK_HELLASWAG,
    GGUF_TASK_WINOGRANDE,
    GGUF_TASK_CHOICE
};

struct gguf_tasks;

/* From the bytes of a file, in one of these forms; one final newline is
 * optional, and lines may end in CR LF.
 *
 * llama.cpp's. HELLASWAG: six lines for each task: the context, the number of
 * the right ending from 0, four endings. WINOGRANDE: lines of CSV: a number,
 * the sentence with one '_', two names, the number of the right one from 1.
 * CHOICE: little-endian u32 n and n u32 offsets of tasks in the file, each a
 * text (u32 size and bytes) and twice a list of answers (u32 n, n texts, n i32:
 * 1 right, 0 wrong), of which the first counts.
 *
 * JSON lines, an object in each, as such sets are published; keys that are not
 * named here are passed over. HELLASWAG: "ctx", "endings" and "label".
 * WINOGRANDE: "sentence", "option1", "option2" and "answer" (1 or 2). CHOICE:
 * "question", "choices" and either "label", the right one from 0, or "labels",
 * 1 or 0 for each. Numbers may be strings.
 *
 * allocator: NULL is malloc; kept. data is not needed afterwards. GGUF_E_FORMAT
 * and GGUF_E_TRUNCATED say at which line (or in which task), and the byte;
 * GGUF_E_NOTFOUND: there is no task; GGUF_E_LIMIT: more than 1000 answers;
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_tasks_parse(struct gguf_tasks **out, enum gguf_task_kind kind,
                 const void *data, size_t size,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_tasks_destroy(struct gguf_tasks *t);

/* How many there are, and the most answers that one has: as many sequences must
 * a session have. Since: 0.1 */
GGUF_API size_t gguf_tasks_n_tasks(const struct gguf_tasks *t);
GGUF_API uint32_t gguf_tasks_max_answers(const struct gguf_tasks *t);

/* Tokens of the longest text, with a vocabulary: a session needs as many.
 * The statuses of gguf_vocab_tokenize. Since: 0.1 */
GGUF_API enum gguf_status
gguf_tasks_max_tokens(const struct gguf_tasks *t,
                      const struct gguf_vocab *vocab, uint32_t *out,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Keep n by chance, if there are more, in the order of the file: always the
 * same of one set. Since: 0.1 */
GGUF_API void gguf_tasks_sample(struct gguf_tasks *t, size_t n);

/* A task that was computed. Made by the library: it may grow at its end. */
struct gguf_task_scores {
    size_t task; /* from 0, of those that there are */
    size_t no;   /* from 0, of the file */
    uint32_t n_answers;
    const double *sum;        /* [n_answers] */
    const uint32_t *n_tokens; /* [n_answers]: scored */
    const double *score;      /* [n_answers] */
    const uint8_t *right;     /* [n_answers]: 1 or 0 */
    uint32_t chosen;          /* from 0 */
};
/* A result other than 0 stops with GGUF_E_CANCELLED. */
typedef int gguf_task_fn(void *user, const struct gguf_task_scores *scores);

struct gguf_task_params {
    size_t struct_size;
    bool compat;                /* scores of llama.cpp */
    struct gguf_pool *pool;     /* for log-probabilities; NULL: this thread */
    gguf_task_fn *on_task;      /* in order; or NULL */
    gguf_progress_fn *progress; /* in tasks; or NULL */
    void *user;                 /* of both */
    size_t first_task;          /* tasks before it are not computed */
    size_t max_tasks;           /* 0: all */
};
#define GGUF_TASK_PARAMS_INIT GGUF_INIT(struct gguf_task_params)

/* What came of them. */
struct gguf_task_result {
    size_t struct_size;
    uint64_t n;           /* tasks */
    uint64_t n_right;     /* the answer with the highest score was right */
    uint64_t n_right_sum; /* the one with the highest sum was */
    double chance;        /* share of right ones of answers that are taken by
                           * chance: mean over tasks of right answers / answers;
                           * compat: tasks / answers of all together */
};
#define GGUF_TASK_RESULT_INIT GGUF_INIT(struct gguf_task_result)

/* Which answer a model chooses by n scores: the one with the highest, the first
 * of equal ones; with compat, of two of WINOGRANDE that are equal the second.
 * n from 1. Since: 0.1 */
GGUF_API uint32_t gguf_task_choose_answer(enum gguf_task_kind kind,
                                          bool compat, const double *score,
                                          uint32_t n);

/* Compute all tasks, or some. The session is cleared. GGUF_E_INVALID (too few
 * sequences or too little context: names the task; no task from first_task
 * on), GGUF_E_UNSUPPORTED (a model without logits, or of an encoder and a
 * decoder), GGUF_E_NONFINITE (a logit; names the task), GGUF_E_CANCELLED,
 * GGUF_E_NOMEM, and the statuses of the session and of gguf_vocab_tokenize.
 * *out has what was computed until then. Since: 0.1 */
GGUF_API enum gguf_status
gguf_tasks_run(struct gguf_session *session, const struct gguf_tasks *tasks,
               const struct gguf_task_params *params,
               struct gguf_task_result *out,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* Of a share p = k / n: one standard error, sqrt(p (1 - p) / (n - 1)), NaN for
 * n < 2. Since: 0.1 */
GGUF_API double gguf_proportion_error(uint64_t k, uint64_t n);
/* The 95% interval after Wilson (J. Am. Stat. Assoc. 22, 1927), z = 1.95996:
 *
 *     (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)
 *
 * 0 and 1 for n = 0. Since: 0.1 */
GGUF_API void gguf_proportion_interval(uint64_t k, uint64_t n, double *low,
                                       double *high);

#ifdef __cplusplus
}
#endif
#endif
