/* SPDX-License-Identifier: MIT */
/* type_choice.h - choose the type of each tensor by options, recipe and shape
 *
 * The order of decisions is llama-quantize's (llama.cpp d32676d), so that the
 * presets give the types that people know:
 *
 *  1. Tensors that are never quantized keep their type (one dimension, norms,
 *     routers, position embeddings ...), as does everything under "base keep".
 *  2. The type requested for the token embedding, then that for the output
 *     matrix.
 *  3. The first pattern that matches the name.
 *  4. The base type, with "pure" and for recipes with a float base type.
 *  5. The recipe's first rule that holds, else its base type.
 *  6. Without compat, lookup tables get Q8_0 or better if 5 decided without a
 *     pattern. llama-quantize gives them the types of matrices.
 *  7. A type whose blocks do not fit the rows is replaced by one with shorter
 *     blocks, in the end by F16 (where llama-quantize gives up).
 */
#ifndef GG_RECIPE_TYPE_CHOICE_H
#define GG_RECIPE_TYPE_CHOICE_H

#include "gguf/quant.h"
#include "recipe/recipe_int.h"

struct gg_recipe_chooser {
    const struct gguf_recipe *recipe;
    struct gg_recipe_facts
        facts; /* facts about the model: LAYERS ... IMATRIX, arch */
    bool tied; /* the model has no output.weight */
    bool pure, leave_output;
    /* Choose like llama-quantize: no patterns under a float base type, no
     * special type for lookup tables. */
    bool compat;
    const struct gguf_dtype_info *output_type; /* NULL: the recipe decides */
    const struct gguf_dtype_info
        *embedding_type; /* NULL: the recipe decides */
    const struct gguf_quant_override *overrides;
    struct gg_pattern *const
        *patterns; /* compiled patterns of the overrides */
    size_t n_overrides;
    int64_t seq[GG_N_CLASSES]; /* tensors of each class so far; starts at
                                * zero */
};

struct gg_recipe_choice {
    uint32_t type;   /* type id to write */
    uint32_t wanted; /* type id before the shape is checked */
    enum gguf_quant_reason reason;
    const struct gg_recipe_rule *rule; /* the rule, for GGUF_REASON_RULE */
    const char *text;                  /* reason as printable text; borrowed */
    enum gg_recipe_class cls;
};

/* Choose the type of the next tensor. Tensors must come in the order of
 * writing, because rules count them. ne[GGUF_MAX_DIMS]; type is its present
 * type. Statuses: those of gg_pattern_match. */
enum gguf_status gg_recipe_choose_type(struct gg_recipe_chooser *c,
                                       const char *name, const int64_t *ne,
                                       uint32_t type,
                                       struct gg_recipe_choice *out,
                                       struct gguf_error *err);

/* type, or its replacement if its blocks do not fit rows of cols elements. */
uint32_t gg_recipe_choose_fitting_type(uint32_t type, int64_t cols);

/* Reason for never quantizing a tensor of ne[GGUF_MAX_DIMS] elements; NULL if
 * it may be quantized. */
const char *gg_recipe_choose_keep_reason(const char *name, const int64_t *ne);

enum gg_recipe_class gg_recipe_choose_class(const char *name);

/* Does a tensor of this class and type require importance data? */
bool gg_recipe_choose_needs_imatrix(const struct gguf_recipe *r,
                                    enum gg_recipe_class cls, uint32_t type);

#endif
