/* bisect.h - weights of a model and a base */
#ifndef GG_EVAL_BISECT_H
#define GG_EVAL_BISECT_H

#include "gguf/bisect.h"
#include "gguf/imatrix.h"
#include "model/swap.h"

struct gg_bisect_weight {
    struct gguf_bisect_entry entry;
    size_t i, k; /* numbers in model and base */
    char name[GGUF_TENSOR_NAME];
};

struct gguf_bisect {
    const struct gguf_allocator *allocator;
    struct gg_bisect_weight *list;
    size_t n, n_measured, n_left_out;
    struct gguf_figure kld;
};

/* bisect_weigh.c: find the weights that differ, with their suspicion; im: what
 * the base's inputs are. GGUF_E_NOMEM. */
enum gguf_status
gg_bisect_find(struct gguf_bisect *b, const struct gguf_model *model,
               const struct gguf_model *base, const struct gguf_imatrix *im,
               struct gguf_pool *pool, struct gguf_error *err);

#endif
