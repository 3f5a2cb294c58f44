/* SPDX-License-Identifier: MIT */
/* synth.h - models of a given size with random weights, for measurements
 *
 * The architecture is llama, dense or with experts. A weight is a function of
 * the seed, its tensor and its index, so that any row can be computed alone:
 * quantization jobs write such a model in any type with bounded memory.
 * Weights have a bell-shaped distribution with a standard deviation of 1 /
 * sqrt(inputs of the row), so that activations and logits stay near 1 for any
 * size. One column in 199 is eight times larger, as in some trained models:
 * quantizers meet outliers.
 */
#ifndef TESTS_BENCH_SYNTH_H
#define TESTS_BENCH_SYNTH_H

#include "data/data.h"
#include "gguf/quant.h"

struct synth_size {
    const char *name;
    uint32_t n_vocab; /* tokens of the generated vocabulary */
    uint32_t n_embd, n_ff, n_layer, n_head, n_head_kv, n_ctx;
    uint32_t n_expert, n_used; /* n_expert 0: dense */
};

/* Find a size by its name; NULL: unknown. The n-th size; NULL after the last.
 */
const struct synth_size *synth_find(const char *name);
const struct synth_size *synth_at(size_t n);

struct synth;

/* Create a model. vocab: a file whose vocabulary is used; NULL: 259 tokens for
 * bytes and, as SentencePiece has them, combinations of letters.
 *
 *   GGUF_E_NOTFOUND  vocab has no vocabulary.
 *   GGUF_E_NOMEM
 */
enum gguf_status synth_create(struct synth **out, const struct synth_size *s,
                              uint64_t seed, const struct gguf_file *vocab,
                              struct gguf_error *err);
void synth_destroy(struct synth *s); /* NULL is fine */

/* The model's tensors in F32. */
const struct gg_data *synth_data(const struct synth *s);

/* Write the model in the types of a recipe. Types that need importance data
 * get generated ones. Returns the statuses of gguf_quant_run(). */
enum gguf_status synth_write(struct synth *s, const struct gguf_recipe *recipe,
                             struct gguf_pool *pool, const char *path,
                             struct gguf_error *err);

#endif
