/* SPDX-License-Identifier: MIT */
/* lora.h - LoRA adapters for tests: files of random pairs, and models with
 * their products added in */
#ifndef TESTS_MODEL_LORA_H
#define TESTS_MODEL_LORA_H

#include "tests/model/run.h"
#include "tests/model/gen.h"

#include <stdbool.h>

struct lora {
    struct gen g; /* the file: metadata, and two tensors for each pair */
    double alpha; /* 0: the key is missing */
};

/* Begin an adapter without pairs for models of an architecture. */
void lora_init(struct lora *l, const char *arch, double alpha);
void lora_fini(struct lora *l);

/* Add a random pair for a weight. size: magnitude of the product's elements,
 * times alpha / rank. */
void lora_pair(struct lora *l, const struct gen_tensor *weight, int64_t rank,
               double size);

/* If the adapter has a pair for the weight: sum[] += scale * alpha / rank * B
 * A. */
void lora_add(const struct lora *l, const struct gen_tensor *weight,
              double scale, double *sum);

/* Number of elements of a tensor. */
size_t lora_n(const struct gen_tensor *t);

/* Add the products of n adapters to the values of every tensor of g, rounded
 * once; or give the tensors their own values again. The added values are
 * freed. */
void lora_add_in(struct gen *g, const struct lora *const *l,
                 const double *scale, size_t n);
void lora_drop_values(struct gen *g);

/* Add a pair for each matrix of a llama. */
void lora_of_llama(struct lora *l, const struct gen *g, int64_t rank,
                   double alpha);

/* An adapter opened for a model: from l with pairs of F32, or from a file in
 * memory, which is taken over. Call lora_close() in any case. */
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

/* Clear the session and compute outputs of LORA_TOKENS tokens: rows of logits,
 * or of an encoder's states. false: r->err says why. */
enum { LORA_TOKENS = 16 };
bool lora_outputs(struct run *r, const gguf_token *tok, float *out);

/* The adapter's file with pairs of dtype (F32 or F16). Free it with free(). */
void *lora_file(const struct lora *l, uint32_t dtype, size_t *size);

#endif
