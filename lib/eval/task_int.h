/* SPDX-License-Identifier: MIT */
/* task_int.h - tasks in memory */
#ifndef GG_EVAL_TASK_INT_H
#define GG_EVAL_TASK_INT_H

#include "base/error.h"
#include "base/mem.h"
#include "gguf/task.h"

#include <stdbool.h>

enum { GG_EVAL_MOST_ANSWERS = 1000 };

/* An answer: its whole text, and the bytes before the part that is scored.
 * base 0: that part begins where the answers of the task differ. */
struct gg_eval_task_answer {
    struct gguf_str text;
    size_t base;
    bool right;
};

struct gg_eval_task {
    size_t no; /* number in the file */
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

/* A task as it is read: a text before the answers, and for a sentence with a
 * blank the text after it. */
struct gg_eval_task_raw {
    struct gguf_str before, after; /* text around an answer; borrowed */
    struct gguf_str answer[GG_EVAL_MOST_ANSWERS];
    uint8_t right[GG_EVAL_MOST_ANSWERS];
    size_t n;
};

/* Add a task; everything is copied. line, off: its place, for messages.
 * GGUF_E_FORMAT: fewer than two answers, an empty one, or no right one.
 * GGUF_E_NOMEM. */
enum gguf_status gg_eval_task_add(struct gguf_tasks *t,
                                  const struct gg_eval_task_raw *raw,
                                  size_t line, uint64_t off,
                                  struct gguf_error *err);

/* Split a sentence at its blank. Returns false unless it has exactly one. */
bool gg_eval_task_split_blank(struct gguf_str sentence,
                              struct gg_eval_task_raw *raw);

/* Are the lines JSON objects? Then: read tasks from them. */
bool gg_eval_task_is_json(const char *data, size_t size);
enum gguf_status gg_eval_task_read_json(struct gguf_tasks *t, const char *data,
                                        size_t size,
                                        struct gg_eval_task_raw *raw,
                                        struct gguf_error *err);

/* Take the next line, without its end. *data and *size become the rest.
 * Returns false after the last line. */
bool gg_eval_task_next_line(const char **data, size_t *size,
                            struct gguf_str *line);

#endif
