/* SPDX-License-Identifier: MIT */
/* synth.h - models of a size with weights by chance, to be measured
 *
 * Llama's architecture, dense or of experts. A weight is a function of the
 * seed, its tensor and its place there, so that any rows can be computed by
 * themselves: jobs of quantization write such a model in any type, in bounded
 * memory. Weights are bell-shaped with a standard deviation of 1 / sqrt(inputs
 * of the row), so that activations and logits stay near 1 whatever the size,
 * and one column in 199 is eight times larger, as some are in trained models:
 * quantizers meet outliers.
 */
#ifndef TESTS_BENCH_SYNTH_H
#define TESTS_BENCH_SYNTH_H

#include "data/data.h"
#include "gguf/quant.h"

struct synth_size {
    const char *name;
    uint32_t n_vocab; /* tokens, where the vocabulary is made */
    uint32_t n_embd, n_ff, n_layer, n_head, n_head_kv, n_ctx;
    uint32_t n_expert, n_used; /* 0: dense */
};

/* The row of that name, NULL; the n-th, NULL after the last. */
const struct synth_size *synth_find(const char *name);
const struct synth_size *synth_at(size_t n);

struct synth;

/* Vocabulary: that of the file, or without one 259 tokens for bytes and, in
 * the manner of SentencePiece, combinations of letters. GGUF_E_NOTFOUND (the
 * file has none), GGUF_E_NOMEM. */
enum gguf_status synth_create(struct synth **out, const struct synth_size *s,
                              uint64_t seed, const struct gguf_file *vocab,
                              struct gguf_error *err);
void synth_destroy(struct synth *s); /* NULL is fine */

/* The tensors, F32. */
const struct gg_data *synth_data(const struct synth *s);

/* Write the model in the types of a recipe. Where these need importance data,
 * made ones are used. The statuses of gguf_quant_run. */
enum gguf_status synth_write(struct synth *s, const struct gguf_recipe *recipe,
                             struct gguf_pool *pool, const char *path,
                             struct gguf_error *err);

#endif
