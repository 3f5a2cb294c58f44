/* SPDX-License-Identifier: MIT */
/* stage_list.h - the stages of a graph */
#ifndef GG_RUN_STAGE_LIST_H
#define GG_RUN_STAGE_LIST_H

#include "run/graph_cuts.h"
#include "run/stages.h"

/* Stages in the order of their first product. The products of a stage are
 * neighbours in product. */
struct gg_stage_list {
    const struct gguf_allocator *allocator;
    struct gg_stages_stage *stage;
    struct gg_stages_product *product;
    size_t n_stages, n_products;
};

/* Find the stages of a graph whose tensors have memory, with the residuals of
 * their products, but not their cuts. GGUF_E_NOMEM. gg_stage_list_fini() may
 * follow a failure. */
enum gguf_status gg_stage_list_init(struct gg_stage_list *l,
                                    const struct gguf_graph *g,
                                    const struct gguf_allocator *a,
                                    struct gguf_error *err);
void gg_stage_list_fini(struct gg_stage_list *l);

/* Find the cut of each stage. c: measured for the graph
 * (gg_graph_cuts_measure()). */
void gg_stage_list_find_cuts(struct gg_stage_list *l,
                             const struct gg_graph_cuts *c,
                             const struct gguf_graph *g);

#endif
