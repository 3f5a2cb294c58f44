/* SPDX-License-Identifier: MIT */
/* type_choice.h - choose the type of each tensor by options, recipe and shape
 *
 * The order of decisions is llama-quantize's (llama.cpp d32676d), so that the
 * presets give the types that people know. The first of steps 1 to 5 that
 * applies decides:
 *
 *  1. Tensors that are never quantized (one-dimensional tensors, norms,
 *     routers, position embeddings, integers and others) keep their type. So
 *     does the output matrix if leave_output is set. Filters of projectors
 *     (architecture clip) become F32 or F16 if that is the base type. Of image
 *     and video models, only matrices that image_kept.h does not name are
 *     quantized.
 *  2. The token embedding gets embedding_type, and the output matrix gets
 *     output_type, if the caller requests these. If the model has no output
 *     matrix, the token embedding takes its place: it gets output_type, unless
 *     embedding_type is requested.
 *  3. The first of the caller's patterns that matches the name gives the type.
 *     With compat, this step is left out if the base type is a float type or
 *     "keep".
 *  4. With pure, the tensor gets the base type, unless that is "keep".
 *  5. The recipe's first rule that holds gives the type. If no rule holds, it
 *     is the base type; for "keep", the present type of the tensor.
 *
 * Two steps may then change the type:
 *
 *  6. If step 5 chose a smaller type than Q8_0 for a lookup table, the table
 *     gets Q8_0, or its present type if that is smaller than Q8_0. With compat
 *     or pure, or if a rule with a name pattern decided, this step is left out.
 *     llama-quantize gives lookup tables the types of matrices.
 *  7. If the blocks of the type do not fit the rows, a type with shorter blocks
 *     replaces it. If the blocks of that type do not fit either, F16 replaces
 *     it; llama-quantize gives up there. A tensor that keeps its type is left
 *     as it is.
 */
#ifndef GG_RECIPE_TYPE_CHOICE_H
#define GG_RECIPE_TYPE_CHOICE_H

#include "gguf/quant.h"
#include "recipe/recipe_int.h"

/* Options, recipe and state for choosing the types of one model. The caller
 * sets all members. The objects of all pointers must outlive the struct. */
struct gg_recipe_chooser {
    const struct gguf_recipe *recipe;
    /* Facts about the model. The caller sets LAYERS to IMATRIX, and arch; facts
     * about a tensor are set for each choice. */
    struct gg_recipe_facts facts;
    bool tied; /* the model has no output.weight */
    /* pure: give the base type, as in step 4. leave_output: keep the type of
     * output.weight. */
    bool pure, leave_output;
    /* Choose like llama-quantize: ignore the patterns if the base type is a
     * float type or "keep" (step 3), and leave out step 6. */
    bool compat;
    /* Type of the output matrix. NULL: steps 3 to 5 decide. */
    const struct gguf_dtype_info *output_type;
    /* Type of the token embedding. NULL: output_type decides for a tied
     * model, otherwise steps 3 to 5. */
    const struct gguf_dtype_info *embedding_type;
    const struct gguf_quant_override *overrides;
    /* Compiled patterns: patterns[i] is the pattern of overrides[i]. */
    struct gg_pattern *const *patterns;
    size_t n_overrides;
    /* Number of tensors of each class that reached step 5 so far. The caller
     * sets all to 0 at first. */
    int64_t seq[GG_N_CLASSES];
};

struct gg_recipe_choice {
    uint32_t type;   /* type id to write */
    uint32_t wanted; /* type id before step 7 */
    enum gguf_quant_reason reason;
    /* Rule that decided. NULL: the reason is not GGUF_REASON_RULE. */
    const struct gg_recipe_rule *rule;
    /* Reason as printable text. It is static or belongs to the recipe or the
     * overrides. */
    const char *text;
    enum gg_recipe_class cls;
};

/* Choose the type of the next tensor. Tensors must come in the order of
 * writing, because rules count them.
 *
 * ne     GGUF_MAX_DIMS dimensions of the tensor.
 * type   Present type of the tensor.
 *
 * Statuses: those of gg_pattern_match(). */
enum gguf_status gg_recipe_choose_type(struct gg_recipe_chooser *c,
                                       const char *name, const int64_t *ne,
                                       uint32_t type,
                                       struct gg_recipe_choice *out,
                                       struct gguf_error *err);

/* Type to use for rows of cols elements: type itself if its blocks fit,
 * otherwise its replacement (step 7). */
uint32_t gg_recipe_choose_fitting_type(uint32_t type, int64_t cols);

/* Reason, as static text, for never quantizing a tensor with this name and the
 * GGUF_MAX_DIMS dimensions ne. NULL: the tensor may be quantized. */
const char *gg_recipe_choose_keep_reason(const char *name, const int64_t *ne);

/* Class of a tensor by its name. GG_CLASS_OTHER: the name is in no class. */
enum gg_recipe_class gg_recipe_choose_class(const char *name);

/* Does a tensor of this class and type require importance data? It does if the
 * recipe says so for the type, or if llama-quantize requires them. */
bool gg_recipe_choose_needs_imatrix(const struct gguf_recipe *r,
                                    enum gg_recipe_class cls, uint32_t type);

#endif
