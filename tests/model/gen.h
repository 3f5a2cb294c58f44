/* SPDX-License-Identifier: MIT */
/* gen.h - model files for tests, built in memory
 *
 * A model is described by metadata and by names and shapes of tensors. Each
 * weight is a function of a seed, the tensor's name and its index, so that
 * another program can build the same file.
 */
#ifndef TESTS_MODEL_GEN_H
#define TESTS_MODEL_GEN_H

#include "gguf/model.h"

enum { GEN_MAX_TENSORS = 1024, GEN_MAX_GAINS = 4 };

struct gen_tensor {
    char name[64];
    unsigned n_dims;
    int64_t ne[4];
    const float *values; /* NULL: generated from the name */
    const int32_t *ints; /* elements of an I32 tensor; NULL: see values */
};

struct gen {
    uint64_t seed;
    struct gguf_meta *meta;
    struct gen_tensor t[GEN_MAX_TENSORS];
    size_t n;
    struct {
        char pattern[48];
        double factor;
    } gain[GEN_MAX_GAINS];
    size_t n_gain;
    size_t own; /* number of generated weights of a tensor; the rest repeats
                 * them, which is faster. 0: all are generated */
};

/* Begin an empty model. Every function here aborts the test if memory runs
 * out. */
void gen_init(struct gen *g, uint64_t seed);
void gen_fini(struct gen *g);
/* Add a tensor; ne1 0: of one dimension. */
void gen_tensor(struct gen *g, int64_t ne0, int64_t ne1, const char *fmt, ...)
    GGUF_PRINTF(4, 5);

/* Remove the tensor of this name, which must exist. */
void gen_drop(struct gen *g, const char *name);

/* Multiply the mean and deviation of tensors whose names match an extended
 * regular expression, if their kind has a gain. The last matching call counts.
 * Returns 0 if the table is full. */
int gen_gain(struct gen *g, const char *pattern, double factor);

/* Generate the weights of a tensor. Their distribution depends on its name. */
void gen_weights(float *out, const struct gen *g, const struct gen_tensor *t);

/* Make the file. Tensors of two dimensions are stored as dtype (F32 or F16),
 * all others as F32. Free it with free(). */
void *gen_file(const struct gen *g, uint32_t dtype, size_t *size);

/* Make the file; NULL if it cannot be written. */
void *gen_file_if(const struct gen *g, uint32_t dtype, size_t *size);

/* Make the file in F32 with zeros for weights. */
void *gen_empty_file(const struct gen *g, size_t *size);

/* A model like llama. */
struct gen_spec {
    const char *arch;
    uint32_t n_vocab, n_ctx, n_embd, n_layer, n_ff, n_head, n_head_kv;
    uint32_t head_dim; /* 0: n_embd / n_head, and the file has no key */
    uint32_t n_rot;    /* 0: the file has no key */
    float eps, freq_base;
    const char *scaling; /* rope.scaling.type; NULL: none */
    float factor;
    uint32_t n_ctx_orig;
    int qkv_bias, qk_norm, out_bias, ffn_bias, tied, rope_freqs;
    /* a number for each layer; NULL: equal */
    const uint32_t *head_kv_layer, *ff_layer;
};
/* Small specs without a vocabulary: N layers, 32 or 64 wide. */
#define GEN_LAYERS(N)                                                         \
    .arch = "llama", .n_ctx = 64, .n_embd = 32, .n_layer = (N), .n_ff = 64,   \
    .n_head = 4, .n_head_kv = 2, .eps = 1e-5f, .freq_base = 10000
#define GEN_WIDE(N)                                                           \
    .arch = "llama", .n_ctx = 64, .n_embd = 64, .n_layer = (N), .n_ff = 96,   \
    .n_head = 4, .n_head_kv = 2, .eps = 1e-5f, .freq_base = 10000
#define GEN_ONE_LAYER GEN_LAYERS(1)
void gen_model(struct gen *g, const struct gen_spec *spec);
/* Make the file of spec. Free it with free(). */
void *gen_model_file(const struct gen_spec *spec, uint64_t seed,
                     uint32_t dtype, size_t *size);

#endif
