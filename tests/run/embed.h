/* SPDX-License-Identifier: MIT */
/* embed.h - models and batches for tests of sequence embeddings */
#ifndef TESTS_RUN_EMBED_H
#define TESTS_RUN_EMBED_H

#include "tests/model/gen.h"

#include <stdbool.h>

enum { EMBED_VOCAB = 96 };

/* Set the architecture's key ARCH.KEY. */
void embed_u32(struct gen *g, const char *arch, const char *key, int v);

/* Add a classifier with n_cls (at most 3) labelled outputs for states of e
 * numbers. dense: with a dense layer before it. */
void embed_classifier(struct gen *g, const char *arch, int e, int n_cls,
                      bool dense);

/* Interleave two texts of n and m tokens as sequences 0 and 1. tok and seq
 * have room for n + m tokens; b points to them. */
void embed_mix(struct gguf_batch *b, gguf_token *tok, int32_t *seq, size_t n,
               size_t m);

/* Copy the tokens of sequence q to out. Returns their number. */
size_t embed_text(const struct gguf_batch *b, int q, gguf_token *out);

/* The file of a llama whose vectors are the 32 numbers of the last token's
 * state. Free it with free(). */
void *embed_llama(size_t *size);

#endif
