/* SPDX-License-Identifier: MIT */
/* callbacks.h - callbacks of a scheduler, and receivers of its dumps */
#ifndef TESTS_SCHED_CALLBACKS_H
#define TESTS_SCHED_CALLBACKS_H

#include "gguf/sched.h"

#include <string.h>

static inline bool wants_product(void *user, const struct gguf_tensor *t)
{
    (void)user;
    return t->op == GGUF_OP_MATMUL;
}

static inline bool count_product(void *user, struct gguf_tensor *t)
{
    (void)t;
    ++*(int *)user;
    return false;
}

static inline bool wants_relu(void *user, const struct gguf_tensor *t)
{
    (void)user;
    return t->op == GGUF_OP_RELU;
}

static inline bool stop_always(void *user, struct gguf_tensor *t)
{
    (void)user;
    (void)t;
    return true;
}

static inline bool collect_text(void *user, const char *s, size_t n)
{
    strncat(user, s, n);
    return false;
}

static inline bool count_lines(void *user, const char *text, size_t n)
{
    *(size_t *)user += n > 0 && text[n - 1] == '\n';
    return false;
}

#endif
