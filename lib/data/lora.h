/* SPDX-License-Identifier: MIT */
/* lora.h - the low-rank pairs of an adapter's file
 *
 * An adapter changes a weight W of a model by a product of two thin matrices
 * (Hu et al., LoRA, arXiv 2106.09685): what is computed with is
 *
 *     W + scale * alpha / rank * B A
 *
 * Its file has general.type "adapter", adapter.type "lora", the architecture of
 * its model, adapter.lora.alpha, and two tensors for each weight NAME that it
 * changes: NAME.lora_a [columns, rank], NAME.lora_b [rank, rows], with as many
 * matrices (experts) as the weight has. Without alpha, or with 0, the factor is
 * scale alone. Of token_embd.weight, which is looked up, A and B are in another
 * order: lora_a is B [rank, rows], and lora_b is A turned, [rank, columns], as
 * convert_lora_to_gguf.py of llama.cpp writes and its src/llama-adapter.cpp
 * reads (August 2026).
 */
#ifndef GG_DATA_LORA_H
#define GG_DATA_LORA_H

#include "base/error.h"
#include "gguf/file.h"

#include <stdbool.h>

struct gg_lora_pair {
    struct gguf_str weight;               /* its name, of the file */
    const struct gguf_tensor_info *a, *b; /* as the file names them */
    bool looked_up; /* in the form of token_embd.weight */
    int64_t rank;
};

struct gg_lora {
    const struct gguf_allocator *allocator;
    const struct gguf_file *file; /* kept */
    struct gguf_str arch;
    double alpha;              /* 0: none */
    struct gg_lora_pair *pair; /* by the names of the weights */
    size_t n_pairs;
    size_t n_norms; /* bare vectors NAME_norm.weight, which are left out */
};

/* The pairs of a file, which is kept; all that can be said without the model is
 * checked. A tensor that is no half of a pair is refused: it would be left out
 * silently. But norms that were trained whole lie beside pairs, as vectors
 * NAME_norm.weight of their own (convert_lora_to_gguf.py writes them):
 * llama.cpp leaves these out, and so the numbers are its own if they are
 * counted, said, and left out. After a failure there is nothing to free.
 *
 * GGUF_E_NOTFOUND     a key that is missing
 * GGUF_E_TYPE         a key of the wrong type
 * GGUF_E_MISMATCH     it is no adapter of this kind
 * GGUF_E_HPARAM       alpha is not a finite number
 * GGUF_E_UNSUPPORTED  an adapter that begins to count at a sequence of tokens
 *                     (adapter.alora.invocation_tokens)
 * GGUF_E_TENSOR       a half without the other, two of different ranks, a
 *                     tensor that is not a half: its name, shapes
 * GGUF_E_NOMEM */
enum gguf_status gg_lora_init(struct gg_lora *l, const struct gguf_file *file,
                              const struct gguf_allocator *allocator,
                              struct gguf_error *err);
void gg_lora_fini(struct gg_lora *l);

/* Is it of a model of this architecture? GGUF_E_MISMATCH. */
enum gguf_status gg_lora_check_arch(const struct gg_lora *l,
                                    struct gguf_str arch,
                                    struct gguf_error *err);

/* The pair of a weight, or NULL. */
const struct gg_lora_pair *gg_lora_find(const struct gg_lora *l,
                                        struct gguf_str weight);

/* Does it go with a weight of this shape? GGUF_E_TENSOR: the half that does
 * not, its shape and the weight's. */
enum gguf_status gg_lora_check_shape(const struct gg_lora_pair *p,
                                     const int64_t ne[GGUF_MAX_DIMS],
                                     struct gguf_error *err);

/* There is no weight for it: GGUF_E_TENSOR. */
enum gguf_status gg_lora_fail_missing_weight(const struct gg_lora_pair *p,
                                             struct gguf_error *err);

/* What B A is multiplied by. */
float gg_lora_factor(const struct gg_lora *l, const struct gg_lora_pair *p,
                     float scale);

#endif
