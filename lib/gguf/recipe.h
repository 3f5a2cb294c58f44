/* SPDX-License-Identifier: MIT */
/* recipe.h - rules that give each tensor its type
 *
 * A recipe is a short text: a base type and rules. A rule is "selector = type",
 * with or without "if condition". A selector is the name of a class of tensors
 * ("output", "ffn_down"), or a pattern that is compared with tensor names. Each
 * tensor gets the type of the first rule whose selector matches it and whose
 * condition, if it has one, is true. A tensor without such a rule gets the base
 * type.
 * Quantization jobs (quant.h) apply a recipe to weight matrices; vectors, norms
 * and the like keep their types. gguf-quantize(1), "RECIPES", describes the
 * language.
 *
 * The presets that people know by name (Q4_K_M, IQ3_XS ...) are recipes too.
 * Their texts are compiled into the library, from share/recipes of its sources.
 *
 *     name  Q4_K_M
 *     ftype 15
 *     base  Q4_K
 *     let more = i < n/8 or i >= 7*n/8 or (i - n/8) % 3 == 2
 *     output   = Q6_K
 *     attn_v   = Q6_K if more
 *     ffn_down = Q6_K if more
 *
 * In this example n is the number of layers, and i counts the earlier tensors
 * in the output that have the same class as this one. For a feed-forward tensor
 * of a model with experts, i is instead the number of the tensor's layer, from
 * 0. The operator / is integer division.
 *
 * Life cycle: make a recipe with gguf_recipe_preset(), gguf_recipe_load() or
 * gguf_recipe_parse(), and give it to a job as gguf_quant_params.recipe
 * (quant.h). The job does not copy it: free it with gguf_recipe_destroy() after
 * the job is destroyed.
 *
 * Threads: a recipe does not change after it was made; any number of threads
 * may use it. No thread may use it once it is destroyed.
 */
#ifndef GGUF_RECIPE_H
#define GGUF_RECIPE_H

#include <gguf/dtype.h>
#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_recipe;

#define GGUF_RECIPE_MAX_SIZE  65536 /* bytes of a recipe's text */
#define GGUF_RECIPE_MAX_RULES 4096  /* rules of a recipe */

/* Make a recipe from a text.
 *
 * out        Receives the recipe. NULL after a failure.
 * text       The text; copied.
 * allocator  Allocator of the recipe. It must outlive the recipe. NULL: malloc.
 *
 * Free *out with gguf_recipe_destroy().
 *
 * GGUF_E_FORMAT  The text has an error. The message has the number of the line,
 *                from 1, and err->offset is the place of the error in text, in
 *                bytes from 0. If the text has a NUL byte, the message says so
 *                without a line, and err->offset is GGUF_NO_OFFSET.
 * GGUF_E_LIMIT   The text has more than GGUF_RECIPE_MAX_SIZE bytes or
 *                GGUF_RECIPE_MAX_RULES rules.
 * GGUF_E_NOMEM   Memory for the recipe cannot be allocated.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_recipe_parse(struct gguf_recipe **out, struct gguf_str text,
                  const struct gguf_allocator *allocator,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Make a recipe from a text file.
 *
 * out        Receives the recipe. NULL after a failure.
 * path       Path of the file.
 * allocator  Allocator of the recipe. It must outlive the recipe. NULL: malloc.
 *
 * Free *out with gguf_recipe_destroy().
 *
 * GGUF_E_IO      The file cannot be read.
 * GGUF_E_FORMAT  The text has an error, as for gguf_recipe_parse(). err->offset
 *                is the place in the file.
 * GGUF_E_LIMIT   The file is too large, or has too many rules.
 * GGUF_E_NOMEM   Memory for the recipe cannot be allocated.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_recipe_load(struct gguf_recipe **out, const char *path,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Make a recipe from a built-in preset.
 *
 * out        Receives the recipe. NULL after a failure.
 * name       Name ("Q4_K_M"), alias ("Q4_K", which means Q4_K_M) or ftype
 *            number ("15") of a preset. Letter case is ignored.
 * allocator  Allocator of the recipe. It must outlive the recipe. NULL: malloc.
 *
 * Free *out with gguf_recipe_destroy().
 *
 * GGUF_E_NOTFOUND  No preset has this name, alias or number.
 * GGUF_E_NOMEM     Memory for the recipe cannot be allocated.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_recipe_preset(struct gguf_recipe **out, const char *name,
                   const struct gguf_allocator *allocator,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a recipe. NULL is ignored. No other thread may be using the recipe
 * during this call. Since: 0.1 */
GGUF_API void gguf_recipe_destroy(struct gguf_recipe *recipe);

/* Name of preset n, from 0; NULL after the last. Static storage. Any thread.
 * Since: 0.1 */
GGUF_API const char *gguf_recipe_preset_name(size_t n);

/* Description of preset n in one line; NULL after the last. Static storage.
 * Any thread. Since: 0.1 */
GGUF_API const char *gguf_recipe_preset_about(size_t n);

/* Text from which the recipe was made; for a preset, the text of the preset. It
 * does not end with a NUL. Owned by the recipe; valid until the recipe is
 * destroyed. The recipe must not be NULL. Any thread. Since: 0.1 */
GGUF_API struct gguf_str gguf_recipe_text(const struct gguf_recipe *recipe);

/* Name of the recipe, from the line "name" of its text; "" without that line.
 * Owned by the recipe; valid until it is destroyed. The recipe must not be
 * NULL. Any thread. Since: 0.1 */
GGUF_API const char *gguf_recipe_name(const struct gguf_recipe *recipe);

/* Description of the recipe, from the line "about" of its text; "" without that
 * line. For a recipe from a user's file it is what gguf_recipe_preset_about()
 * is for a preset, so that a program can list both alike. Owned by the recipe;
 * valid until the recipe is destroyed. The recipe must not be NULL. Any thread.
 * Since: 0.1 */
GGUF_API const char *gguf_recipe_about(const struct gguf_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
