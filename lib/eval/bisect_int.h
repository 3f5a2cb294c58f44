/* SPDX-License-Identifier: MIT */
/* bisect_int.h - weights that differ between a model and a base, in groups */
#ifndef GG_EVAL_BISECT_INT_H
#define GG_EVAL_BISECT_INT_H

#include "gguf/bisect.h"
#include "gguf/imatrix.h"
#include "model/weight/weight_swap.h"

struct gg_bisect_weight {
    struct gguf_bisect_weight w;
    size_t i, k; /* index of the weight in model and base */
    char name[GGUF_TENSOR_NAME];
    char group[GGUF_TENSOR_NAME]; /* name of its group */
};

/* Weights first to first + entry.n_weights - 1 of the list. */
struct gg_bisect_group {
    struct gguf_bisect_entry entry;
    size_t first;
    char name[GGUF_TENSOR_NAME];
};

struct gguf_bisect {
    const struct gguf_allocator *allocator;
    struct gg_bisect_weight *list; /* the weights, sorted by group */
    size_t n;
    struct gg_bisect_group *group; /* room for 2 n */
    size_t n_groups, n_measured, n_left_out;
    struct gguf_figure kld;
};

/* bisect_suspicion.c: list the weights that differ, with their suspicions. im:
 * importance data of the base's inputs; NULL: none. GGUF_E_NOMEM. */
enum gguf_status gg_bisect_find_weights(struct gguf_bisect *b,
                                        const struct gguf_model *model,
                                        const struct gguf_model *base,
                                        const struct gguf_imatrix *im,
                                        struct gguf_pool *pool,
                                        struct gguf_error *err);

/* bisect_group.c: put the weights into groups, sorted by suspicion.
 * GGUF_E_NOMEM. */
enum gguf_status gg_bisect_make_groups(struct gguf_bisect *b,
                                       enum gguf_bisect_grouping by,
                                       struct gguf_error *err);
/* Largest number of groups that will be measured. */
size_t gg_bisect_max_measurements(const struct gguf_bisect *b,
                                  enum gguf_bisect_grouping by);
/* Next group to measure, which may be a half that the call makes; NULL: none.
 */
struct gg_bisect_group *gg_bisect_next_group(struct gguf_bisect *b,
                                             enum gguf_bisect_grouping by);
/* Sort groups into the order of gguf_bisect_entry(). */
void gg_bisect_sort(struct gguf_bisect *b);

#endif
