/* SPDX-License-Identifier: MIT */
/* task_int.h - tasks as they lie in memory */
#ifndef GG_EVAL_TASK_INT_H
#define GG_EVAL_TASK_INT_H

#include "base/error.h"
#include "base/mem.h"
#include "gguf/task.h"

#include <stdbool.h>

enum { GG_EVAL_MOST_ANSWERS = 1000 };

/* Of an answer the whole text, and how much of it comes before what is scored
 * (0: what all answers have in common). */
struct gg_eval_task_answer {
    struct gguf_str text;
    size_t base;
    bool right;
};

struct gg_eval_task {
    size_t no; /* in the file */
    uint32_t n_answers;
    struct gg_eval_task_answer *answer;
};

struct gguf_tasks {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena; /* texts and answers */
    enum gguf_task_kind kind;
    struct gg_eval_task *task;
    size_t n, cap;
};

/* A task as it is read: a text with a gap, or at the end of which the answers
 * come. */
struct gg_eval_task_raw {
    struct gguf_str before, after; /* of an answer; borrowed */
    struct gguf_str answer[GG_EVAL_MOST_ANSWERS];
    uint8_t right[GG_EVAL_MOST_ANSWERS];
    size_t n;
};

/* One more task of what was read; all is copied. line, off: where it is.
 * GGUF_E_FORMAT (fewer than two answers, an empty one, none right),
 * GGUF_E_NOMEM. */
enum gguf_status gg_eval_task_add(struct gguf_tasks *t,
                                  const struct gg_eval_task_raw *raw,
                                  size_t line, uint64_t off,
                                  struct gguf_error *err);

/* The sentence before and after its blank. False: there is not one. */
bool gg_eval_task_split_blank(struct gguf_str sentence,
                              struct gg_eval_task_raw *raw);

/* Do lines hold objects? And read them. */
bool gg_eval_task_is_json(const char *data, size_t size);
enum gguf_status gg_eval_task_read_json(struct gguf_tasks *t, const char *data,
                                        size_t size,
                                        struct gg_eval_task_raw *raw,
                                        struct gguf_error *err);

/* The next line without its end; false: there is none. *data and *size
 * become what comes after it. */
bool gg_eval_task_next_line(const char **data, size_t *size,
                            struct gguf_str *line);

#endif
