/* SPDX-License-Identifier: MIT */
/* task.h - multiple-choice tasks: HellaSwag, WinoGrande, MMLU and others
 *
 * A task has two answers or more, at least one of them right. An answer is a
 * text; some of its tokens are scored. With t(i) the scored tokens:
 *
 *     sum   = sum over i of ln p(t(i) | all tokens before)
 *     score = sum / number of scored tokens
 *
 * The model chooses the answer with the highest score, the first of equals. The
 * task is solved if that answer is right.
 *
 *     gguf_tasks_parse(&tasks, GGUF_TASK_CHOICE, data, size, NULL, &err);
 *     ... a session with gguf_tasks_max_answers() sequences of at least
 *         gguf_tasks_max_tokens() tokens ...
 *     struct gguf_task_result r = GGUF_TASK_RESULT_INIT;
 *     gguf_tasks_run(session, tasks, NULL, &r, &err);
 *     printf("%g %%\n", 100.0 * r.n_right / r.n);
 *     gguf_tasks_destroy(tasks);
 *
 * HELLASWAG (Zellers et al., arXiv 1905.07830): the text is the context, a
 * space and an ending. CHOICE (TruthfulQA, ARC, MMLU and others): the text is
 * the question, a space and an answer. In both the tokens are scored after
 * those that the texts of all answers have in common at their beginning.
 *
 * WINOGRANDE (Sakaguchi et al., arXiv 1907.10641): the text is a sentence with
 * a blank for one of two names. The tokens after the blank are scored, which
 * are the same for both names (partial evaluation: Trinh and Le, arXiv
 * 1806.02847, section 3): those from the first token on in which the text up to
 * the blank, tokenized alone, differs.
 *
 * The option compat gives llama.cpp's scores of WINOGRANDE (commit d32676d).
 * The last token is then left out if two or more are scored. If one of the
 * answers has at most three tokens after the common beginning, all of these are
 * scored, including the name, and the first of them in the second answer gets
 * the prediction after the end of the first answer.
 *
 * Each task is computed by itself; tokens that answers have in common are
 * computed once. Scores do not depend on the number of threads or on other
 * tasks.
 *
 * Threads: one thread at a time for each session; any thread may read tasks.
 */
#ifndef GGUF_TASK_H
#define GGUF_TASK_H

#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kind of a set of tasks. */
enum gguf_task_kind {
    GGUF_TASK_HELLASWAG,  /* a context and four endings */
    GGUF_TASK_WINOGRANDE, /* a sentence with a blank and two names */
    GGUF_TASK_CHOICE      /* a question and its answers */
};

struct gguf_tasks;

/* Read a set of tasks from the bytes of a file.
 *
 * out         Receives the tasks. NULL after a failure.
 * kind        Kind of the tasks.
 * data        Bytes of the file. They may be freed afterwards.
 * size        Number of bytes.
 * allocator   Must outlive the tasks. NULL: malloc.
 *
 * Destroy *out with gguf_tasks_destroy(). The bytes have one of two forms;
 * lines may end in CR LF, and the last line may lack its end.
 *
 * llama.cpp's form. HELLASWAG: six lines for each task: the context, the number
 * of the right ending from 0, four endings. WINOGRANDE: lines of CSV: a number,
 * the sentence with one '_', two names, the number of the right one from 1.
 * CHOICE: little-endian u32 n, and n u32 offsets of tasks in the file. A task
 * is a text (u32 size and bytes) and two lists of answers (u32 n, n texts, n
 * i32: 1 right, 0 wrong); the first list counts.
 *
 * JSON lines: one object in each line; keys without a meaning here are ignored,
 * and numbers may be strings. HELLASWAG: "ctx", "endings" and "label".
 * WINOGRANDE: "sentence", "option1", "option2" and "answer" (1 or 2). CHOICE:
 * "question", "choices", and either "label", the number of the right answer
 * from 0, or "labels", 1 or 0 for each answer.
 *
 * GGUF_E_FORMAT      The bytes are malformed. The message has the line or the
 *                    task; err->offset is the byte.
 * GGUF_E_TRUNCATED   The bytes end inside of a task. The message has the task;
 *                    err->offset is the byte.
 * GGUF_E_NOTFOUND    The file has no task.
 * GGUF_E_LIMIT       A task has more than 1000 answers.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Any thread. Since: 0.1 */
GGUF_API enum gguf_status
gguf_tasks_parse(struct gguf_tasks **out, enum gguf_task_kind kind,
                 const void *data, size_t size,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Free tasks. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_tasks_destroy(struct gguf_tasks *t);

/* Number of tasks. Since: 0.1 */
GGUF_API size_t gguf_tasks_n_tasks(const struct gguf_tasks *t);

/* Largest number of answers of a task: a session needs that number of
 * sequences. Since: 0.1 */
GGUF_API uint32_t gguf_tasks_max_answers(const struct gguf_tasks *t);

/* Count the tokens of the longest text: a session needs sequences of that
 * length.
 *
 * vocab    Vocabulary of the model.
 * out      Receives the number.
 *
 * Fails as gguf_vocab_tokenize() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_tasks_max_tokens(const struct gguf_tasks *t,
                      const struct gguf_vocab *vocab, uint32_t *out,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Keep n tasks that are drawn at random, and remove the others. The same set
 * always gives the same tasks, in the order of the file. Nothing happens if
 * there are at most n. Since: 0.1 */
GGUF_API void gguf_tasks_sample(struct gguf_tasks *t, size_t n);

/* ---- computing ---- */

/* Scores of a task. Only the library makes it; later versions may add members
 * at its end. */
struct gguf_task_scores {
    size_t task;              /* number among the tasks, from 0 */
    size_t no;                /* number in the file, from 0 */
    uint32_t n_answers;       /* number of answers */
    const double *sum;        /* sum of each answer */
    const uint32_t *n_tokens; /* scored tokens of each answer */
    const double *score;      /* score of each answer */
    const bool *right;        /* true for each right answer */
    uint32_t chosen;          /* answer that the model chooses, from 0 */
};

/* Called after each task. Returns true to stop: the run then fails with
 * GGUF_E_CANCELLED. */
typedef bool gguf_task_fn(void *user, const struct gguf_task_scores *scores);

/* Function that sees each task. Later versions add no members to this struct.
 */
struct gguf_task_callback {
    gguf_task_fn *fn; /* NULL: none */
    void *user;       /* first argument of fn */
};

/* Options of gguf_tasks_run(). */
struct gguf_task_params {
    size_t struct_size;
    bool compat; /* scores of llama.cpp */

    /* Threads for log-probabilities. NULL: the calling thread. */
    struct gguf_pool *pool;
    struct gguf_task_callback on_task;      /* sees each task, in order */
    struct gguf_progress_callback progress; /* unit: tasks */
    size_t first_task; /* number of the first task that is computed */
    size_t max_tasks;  /* most tasks that are computed; 0: no limit */
};
#define GGUF_TASK_PARAMS_INIT GGUF_INIT(struct gguf_task_params)

/* Result of a run. */
struct gguf_task_result {
    size_t struct_size;
    uint64_t n;           /* tasks that were computed */
    uint64_t n_right;     /* tasks whose highest score is a right answer's */
    uint64_t n_right_sum; /* tasks whose highest sum is a right answer's */

    /* Expected share of solved tasks if answers are drawn at random: the mean
     * over tasks of right answers / answers. With compat: tasks / answers of
     * all tasks. */
    double chance;
};
#define GGUF_TASK_RESULT_INIT GGUF_INIT(struct gguf_task_result)

/* Number of the answer that a model chooses by its scores.
 *
 * kind     Kind of the task.
 * compat   As in struct gguf_task_params.
 * score    Scores of the answers.
 * n        Number of answers, 1 or more.
 *
 * It is the answer with the highest score, the first of equals. With compat it
 * is the second of two equal ones of WINOGRANDE. Any thread. Since: 0.1 */
GGUF_API uint32_t gguf_task_choose_answer(enum gguf_task_kind kind,
                                          bool compat, const double *score,
                                          uint32_t n);

/* Compute tasks.
 *
 * session   Session of the model. It is cleared.
 * tasks     The tasks.
 * params    Options. NULL: the defaults.
 * out       Receives the result; begin with GGUF_TASK_RESULT_INIT. After a
 *           failure it has the tasks that were computed.
 *
 * GGUF_E_INVALID       The session has too few sequences or too little context
 *                      for a task (the message has the task), or first_task is
 *                      out of range.
 * GGUF_E_UNSUPPORTED   The model has no logits, or an encoder and a decoder.
 * GGUF_E_NONFINITE     A logit is NaN or infinite. The message has the task.
 * GGUF_E_CANCELLED     A callback returned true.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Fails otherwise as gguf_session_decode() and gguf_vocab_tokenize() do.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_tasks_run(struct gguf_session *session, const struct gguf_tasks *tasks,
               const struct gguf_task_params *params,
               struct gguf_task_result *out,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- proportions ---- */

/* Standard error of a proportion p = k / n: sqrt(p (1 - p) / (n - 1)). NaN for
 * n < 2. Any thread. Since: 0.1 */
GGUF_API double gguf_proportion_error(uint64_t k, uint64_t n);

/* 95% confidence interval of a proportion p = k / n, after Wilson (J. Am. Stat.
 * Assoc. 22, 1927), with z = 1.95996:
 *
 *     (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)
 *
 * low, high   Receive the ends; 0 and 1 for n = 0.
 *
 * Any thread. Since: 0.1 */
GGUF_API void gguf_proportion_interval(uint64_t k, uint64_t n, double *low,
                                       double *high);

#ifdef __cplusplus
}
#endif
#endif
