/* SPDX-License-Identifier: MIT */
/* lora.h - low-rank pairs in the file of an adapter
 *
 * An adapter changes a weight W of a model by the product of two thin matrices
 * (Hu et al., LoRA, arXiv 2106.09685):
 *
 *     W + scale * alpha / rank * B A
 *
 * Its file has general.type "adapter", adapter.type "lora", the architecture of
 * its model, adapter.lora.alpha, and two tensors for each weight NAME that it
 * changes: NAME.lora_a [columns, rank] and NAME.lora_b [rank, rows], with the
 * number of matrices (experts) of the weight. Without alpha, or with 0, the
 * factor is scale alone. For token_embd.weight, a lookup table, lora_a is B
 * [rank, rows], and lora_b is A transposed, [rank, columns]:
 * convert_lora_to_gguf.py of llama.cpp writes this form, and its
 * src/llama-adapter.cpp reads it (August 2026).
 */
#ifndef GG_DATA_LORA_H
#define GG_DATA_LORA_H

#include "base/error.h"
#include "gguf/file.h"

#include <stdbool.h>

struct gg_lora_pair {
    struct gguf_str weight;               /* name of the weight; belongs to the
                                           * file */
    const struct gguf_tensor_info *a, *b; /* halves as the file names them */
    bool looked_up;                       /* a pair of token_embd.weight */
    int64_t rank;
};

struct gg_lora {
    const struct gguf_allocator *allocator;
    const struct gguf_file *file; /* kept */
    struct gguf_str arch;
    double alpha;              /* 0: absent */
    struct gg_lora_pair *pair; /* sorted by the names of the weights */
    size_t n_pairs;
    size_t n_norms; /* vectors NAME_norm.weight, which are ignored */
};

/* Find the pairs of a file, which is kept, and check everything that does not
 * need the model. A tensor that is not half of a pair is refused, since it
 * would be lost silently. Norms that were trained fully are an exception:
 * convert_lora_to_gguf.py writes them as vectors NAME_norm.weight, and
 * llama.cpp ignores them. They are counted and ignored here too. After a
 * failure nothing must be freed.
 *
 * GGUF_E_NOTFOUND     A key is missing.
 * GGUF_E_TYPE         A key has the wrong type.
 * GGUF_E_MISMATCH     The file is not a LoRA adapter.
 * GGUF_E_HPARAM       alpha is not finite.
 * GGUF_E_UNSUPPORTED  The adapter starts at a sequence of tokens
 *                     (adapter.alora.invocation_tokens).
 * GGUF_E_TENSOR       A half is missing, the ranks differ, or a tensor is not a
 *                     half; the message has its name and shapes.
 * GGUF_E_NOMEM */
enum gguf_status gg_lora_init(struct gg_lora *l, const struct gguf_file *file,
                              const struct gguf_allocator *allocator,
                              struct gguf_error *err);
void gg_lora_fini(struct gg_lora *l);

/* Check that the adapter belongs to a model of this architecture.
 * GGUF_E_MISMATCH. */
enum gguf_status gg_lora_check_arch(const struct gg_lora *l,
                                    struct gguf_str arch,
                                    struct gguf_error *err);

/* Find the pair of a weight; NULL if it does not exist. */
const struct gg_lora_pair *gg_lora_find(const struct gg_lora *l,
                                        struct gguf_str weight);

/* Check that a pair fits a weight of this shape. GGUF_E_TENSOR: a half does
 * not; the message has its shape and the weight's. */
enum gguf_status gg_lora_check_shape(const struct gg_lora_pair *p,
                                     const int64_t ne[GGUF_MAX_DIMS],
                                     struct gguf_error *err);

/* Fail with GGUF_E_TENSOR because the model lacks the weight of a pair. */
enum gguf_status gg_lora_fail_missing_weight(const struct gg_lora_pair *p,
                                             struct gguf_error *err);

/* Factor of B A. */
float gg_lora_factor(const struct gg_lora *l, const struct gg_lora_pair *p,
                     float scale);

#endif
