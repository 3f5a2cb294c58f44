/* SPDX-License-Identifier: MIT */
/* recipe.h - rules that give each tensor its type
 *
 * A recipe is a short text: a base type and rules. For each tensor, the first
 * rule whose selector and condition hold decides; if no rule holds, the base
 * type does. The presets that people know by name (Q4_K_M, IQ3_XS ...) are
 * recipes too, built in from share/recipes. gguf-quantize(1), "RECIPES",
 * describes the language.
 *
 *     name  Q4_K_M
 *     ftype 15
 *     base  Q4_K
 *     let more = i < n/8 or i >= 7*n/8 or (i - n/8) % 3 == 2
 *     output   = Q6_K
 *     attn_v   = Q6_K if more
 *     ffn_down = Q6_K if more
 *
 * Life cycle: make a recipe with gguf_recipe_preset(), gguf_recipe_load() or
 * gguf_recipe_parse(), give it to a job as gguf_quant_params.recipe (quant.h),
 * and free it with gguf_recipe_destroy() after the job.
 *
 * Threads: a recipe never changes; any number of threads may use it.
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
 * allocator  Memory for the recipe; kept. NULL: malloc.
 *
 * Free *out with gguf_recipe_destroy().
 *
 * GGUF_E_FORMAT  The text has an error: the message has the line, err->offset
 *                is the byte in text.
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
 * allocator  Memory for the recipe; kept. NULL: malloc.
 *
 * Free *out with gguf_recipe_destroy().
 *
 * GGUF_E_IO  The file cannot be read.
 * Other      The statuses of gguf_recipe_parse().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_recipe_load(struct gguf_recipe **out, const char *path,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Make a recipe from a built-in preset.
 *
 * out        Receives the recipe. NULL after a failure.
 * name       Name ("Q4_K_M"; letter case is ignored), alias ("Q4_K") or ftype
 *            number ("15") of a preset.
 * allocator  Memory for the recipe; kept. NULL: malloc.
 *
 * Free *out with gguf_recipe_destroy().
 *
 * GGUF_E_NOTFOUND  No preset has this name.
 * GGUF_E_NOMEM     Memory for the recipe cannot be allocated.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_recipe_preset(struct gguf_recipe **out, const char *name,
                   const struct gguf_allocator *allocator,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a recipe. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_recipe_destroy(struct gguf_recipe *recipe);

/* Name of preset n, from 0; NULL after the last. Static storage. Since: 0.1 */
GGUF_API const char *gguf_recipe_preset_name(size_t n);

/* Description of preset n in one line; NULL after the last. Static storage.
 * Since: 0.1 */
GGUF_API const char *gguf_recipe_preset_about(size_t n);

/* Text of the recipe; valid until it is destroyed. Since: 0.1 */
GGUF_API struct gguf_str gguf_recipe_text(const struct gguf_recipe *recipe);

/* Name of the recipe; "" if its text gives none. Valid until it is destroyed.
 * Since: 0.1 */
GGUF_API const char *gguf_recipe_name(const struct gguf_recipe *recipe);

/* Description of the recipe in one line, for programs that list recipe files
 * beside the presets; "" if its text gives none. Valid until it is destroyed.
 * Since: 0.1 */
GGUF_API const char *gguf_recipe_about(const struct gguf_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
