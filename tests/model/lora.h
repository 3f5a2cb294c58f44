/* SPDX-License-Identifier: MIT */
/* lora.h - adapters for tests: files of random pairs, and what they add up to
 */
#ifndef TESTS_MODEL_LORA_H
#define TESTS_MODEL_LORA_H

#include "tests/model/run.h"
#include "tests/model/gen.h"

#include <stdbool.h>

struct lora {
    struct gen g; /* the file: metadata, and two tensors for each pair */
    double alpha; /* 0: it has none */
};

/* Without pairs, for models of that architecture. */
void lora_init(struct lora *l, const char *arch, double alpha);
void lora_fini(struct lora *l);

/* A random pair for a weight, whose products' elements are about size by
 * rank / alpha. */
void lora_pair(struct lora *l, const struct gen_tensor *weight, int64_t rank,
               double size);

/* sum[] of the weight's elements += scale * alpha / rank * B A, if it has a
 * pair. */
void lora_add(const struct lora *l, const struct gen_tensor *weight,
              double scale, double *sum);

/* The elements of a tensor. */
size_t lora_n(const struct gen_tensor *t);

/* Give every tensor of g its values with the products of n adapters, rounded
 * once; and its own again. Values that it was given are freed. */
void lora_add_in(struct gen *g, const struct lora *const *l,
                 const double *scale, size_t n);
void lora_drop_values(struct gen *g);

/* A pair for each matrix of a llama. */
void lora_of_llama(struct lora *l, const struct gen *g, int64_t rank,
                   double alpha);

/* An adapter opened for a model: of l with halves of F32, or of a file in
 * memory, which is taken. Close it in any case. */
struct lora_opened {
    struct gguf_file *file;
    struct gguf_adapter *adapter;
    void *data;
};
enum gguf_status lora_open(struct lora_opened *o,
                           const struct gguf_model *model,
                           const struct lora *l, struct gguf_error *err);
enum gguf_status lora_open_data(struct lora_opened *o,
                                const struct gguf_model *model, void *data,
                                size_t size, struct gguf_error *err);
void lora_close(struct lora_opened *o);

/* What a session gives for LORA_TOKENS tokens, of which it forgets all after
 * that: rows of logits, or of an encoder's states. false: r->err says why. */
enum { LORA_TOKENS = 16 };
bool lora_outputs(struct run *r, const gguf_token *tok, float *out);

/* The file in memory, malloc'ed, with halves of dtype (F32 or F16). */
void *lora_file(const struct lora *l, uint32_t dtype, size_t *size);

#endif
