/* SPDX-License-Identifier: MIT */
/* type_choice.h - the type of each tensor: options, recipe, shape, in that
 * order
 *
 * The order of decisions is llama-quantize's (llama.cpp d32676d), so that the
 * presets give the types that people know:
 *
 *  1. what is never quantized keeps its type (one dimension, norms, routers,
 *     position embeddings ...), as does everything under "base keep";
 *  2. a type asked for the token embedding, then one for the output matrix;
 *  3. the first pattern that matches the name;
 *  4. the base type: with "pure", and for recipes whose base is a float type;
 *  5. the recipe's first rule that holds, else its base type;
 *  6. without compat, tables that rows are only looked up in get no less than
 *     Q8_0, where 5 decides, unless by a pattern: llama-quantize lets them fall
 *     to what it takes for matrices;
 *  7. a type whose blocks do not fit the rows is replaced by one of shorter
 *     blocks, in the end by F16 (where llama-quantize gives up).
 */
#ifndef GG_RECIPE_TYPE_CHOICE_H
#define GG_RECIPE_TYPE_CHOICE_H

#include "gguf/quant.h"
#include "recipe/recipe_int.h"

struct gg_recipe_chooser {
    const struct gguf_recipe *recipe;
    struct gg_recipe_facts
        facts; /* the model's part: LAYERS ... IMATRIX, arch */
    bool tied; /* the model has no output.weight */
    bool pure, leave_output;
    bool compat; /* as llama-quantize: no patterns under a float target, no
                  * type of its own for tables that are only looked up */
    const struct gguf_dtype_info *output_type; /* NULL: the recipe decides */
    const struct gguf_dtype_info
        *embedding_type; /* NULL: the recipe decides */
    const struct gguf_quant_override *overrides;
    struct gg_pattern *const *patterns; /* of the overrides */
    size_t n_overrides;
    int64_t seq[GG_N_CLASSES]; /* zero in the beginning */
};

struct gg_recipe_choice {
    uint32_t type;   /* id to write */
    uint32_t wanted; /* id before the shape was looked at */
    enum gguf_quant_reason reason;
    const struct gg_recipe_rule *rule; /* for GGUF_REASON_RULE */
    const char *text;                  /* what decided, printable; borrowed */
    enum gg_recipe_class cls;
};

/* Choose for the next tensor; they must come in the order of writing, because
 * rules count. ne[GGUF_MAX_DIMS]; type is the one it has. The statuses of
 * gg_pattern_match. */
enum gguf_status gg_recipe_choose_type(struct gg_recipe_chooser *c,
                                       const char *name, const int64_t *ne,
                                       uint32_t type,
                                       struct gg_recipe_choice *out,
                                       struct gguf_error *err);

/* type, or its replacement if its blocks do not fit rows of cols elements. */
uint32_t gg_recipe_choose_fitting_type(uint32_t type, int64_t cols);

/* Why a tensor of ne[GGUF_MAX_DIMS] elements is never quantized, or NULL if it
 * may be. */
const char *gg_recipe_choose_keep_reason(const char *name, const int64_t *ne);

enum gg_recipe_class gg_recipe_choose_class(const char *name);

/* Must there be importance data for a tensor of this class and type? */
bool gg_recipe_choose_needs_imatrix(const struct gguf_recipe *r,
                                    enum gg_recipe_class cls, uint32_t type);

#endif
