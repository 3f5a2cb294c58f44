/* SPDX-License-Identifier: MIT */
/* embed.h - models and batches for tests of vectors of sequences
 */
#ifndef TESTS_RUN_EMBED_H
#define TESTS_RUN_EMBED_H

#include "tests/model/gen.h"

#include <stdbool.h>

enum { EMBED_VOCAB = 96 };

/* Set the architecture's key ARCH.KEY. */
void embed_u32(struct gen *g, const char *arch, const char *key, int v);

/* A classifier of n_cls (at most 3) outputs with names, for states of e
 * numbers; with a dense layer before it, or without. */
void embed_classifier(struct gen *g, const char *arch, int e, int n_cls,
                      bool dense);

/* Two texts, of n and m tokens, that alternate as long as there are some of
 * both. tok and seq have room for all, and b points to them. */
void embed_mix(struct gguf_batch *b, gguf_token *tok, int32_t *seq, size_t n,
               size_t m);

/* The tokens of one of them, sequence q, and how many these are. */
size_t embed_text(const struct gguf_batch *b, int q, gguf_token *out);

/* The file of a llama whose vectors, of 32 numbers, are states of the last
 * token. malloc'ed. */
void *embed_llama(size_t *size);

#endif
