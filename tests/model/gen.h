/* SPDX-License-Identifier: MIT */
/* gen.h - model files for tests, built in memory
 *
 * A model is a description: metadata, and names and shapes of tensors. The
 * weights come from a fixed generator, a function of the tensor's name and a
 * seed, so that any program can build the same file.
 */
#ifndef TESTS_MODEL_GEN_H
#define TESTS_MODEL_GEN_H

#include "gguf/gguf.h"

enum { GEN_MAX_TENSORS = 1024, GEN_MAX_GAINS = 4 };

struct gen_tensor {
    char name[64];
    unsigned n_dims;
    int64_t ne[4];
    const float *values; /* NULL: from its name */
    const int32_t *ints; /* or these, of type I32 */
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
    size_t own; /* of a tensor so many weights are its own, the others repeat
                 * these: that takes less time; 0: all */
};

/* Empty; aborts the test when memory runs out. */
void gen_init(struct gen *g, uint64_t seed);
void gen_fini(struct gen *g);
/* ne1 0: one dimension. */
void gen_tensor(struct gen *g, int64_t ne0, int64_t ne1, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Take away the tensor of that name, which g must have. */
void gen_drop(struct gen *g, const char *name);

/* Weights whose name matches an extended regular expression are such a factor
 * larger, where their kind has one; the last that matches counts. 0: no
 * room. */
int gen_gain(struct gen *g, const char *pattern, double factor);

/* The weights of a tensor of g: their kind is chosen by the name. */
void gen_weights(float *out, const struct gen *g, const struct gen_tensor *t);

/* The file: malloc'ed bytes. Weights of two dimensions are stored as dtype
 * (F32 or F16), all others as F32. */
void *gen_file(const struct gen *g, uint32_t dtype, size_t *size);

/* The same; NULL if no such file can be written. */
void *gen_file_if(const struct gen *g, uint32_t dtype, size_t *size);

/* The same in F32 with zeros for weights. */
void *gen_empty_file(const struct gen *g, size_t *size);

/* A llama-like model. */
struct gen_spec {
    const char *arch;
    uint32_t n_vocab, n_ctx, n_embd, n_layer, n_ff, n_head, n_head_kv;
    uint32_t head_dim; /* 0: n_embd / n_head, and no key */
    uint32_t n_rot;    /* 0: no key */
    float eps, freq_base;
    const char *scaling; /* rope.scaling.type, or NULL */
    float factor;
    uint32_t n_ctx_orig;
    int qkv_bias, qk_norm, out_bias, ffn_bias, tied, rope_freqs;
    const uint32_t *head_kv_layer, *ff_layer; /* per layer, or NULL */
};
/* Small specs that lack the vocabulary: of N layers, 32 or 64 wide. */
#define GEN_LAYERS(N)                                                         \
    .arch = "llama", .n_ctx = 64, .n_embd = 32, .n_layer = (N), .n_ff = 64,   \
    .n_head = 4, .n_head_kv = 2, .eps = 1e-5f, .freq_base = 10000
#define GEN_WIDE(N)                                                           \
    .arch = "llama", .n_ctx = 64, .n_embd = 64, .n_layer = (N), .n_ff = 96,   \
    .n_head = 4, .n_head_kv = 2, .eps = 1e-5f, .freq_base = 10000
#define GEN_ONE_LAYER GEN_LAYERS(1)
void gen_model(struct gen *g, const struct gen_spec *spec);
/* Its file, likewise. */
void *gen_model_file(const struct gen_spec *spec, uint64_t seed,
                     uint32_t dtype, size_t *size);

#endif
