/* SPDX-License-Identifier: MIT */
/* recipe.h - which tensor becomes which type, as data
 *
 * A recipe is a short text: a base type and rules. The presets that people
 * know by name (Q4_K_M, IQ3_XS ...) are recipes too, found in share/recipes
 * and built into the library; to write a recipe, copy one of them and change
 * it. gguf-quantize(1), "RECIPES", describes the language.
 *
 *     name  Q4_K_M
 *     ftype 15
 *     base  Q4_K
 *     let more = i < n/8 or i >= 7*n/8 or (i - n/8) % 3 == 2
 *     output   = Q6_K
 *     attn_v   = Q6_K if more
 *     ffn_down = Q6_K if more
 *
 * For each tensor the first rule whose selector and condition hold decides; if
 * no rule holds, the base type does.
 */
#ifndef GGUF_RECIPE_H
#define GGUF_RECIPE_H

#include <gguf/dtype.h>
#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Read-only once made: any thread. */
struct gguf_recipe;

/* Limits of a recipe's text. */
#define GGUF_RECIPE_MAX_SIZE  65536 /* bytes */
#define GGUF_RECIPE_MAX_RULES 4096

/* From text, which is copied. allocator: NULL is malloc; kept. GGUF_E_FORMAT
 * (the message names the line, the offset is the byte in text), GGUF_E_LIMIT,
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_recipe_parse(struct gguf_recipe **out, struct gguf_str text,
                  const struct gguf_allocator *allocator,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* From a file. The same, and GGUF_E_IO. Since: 0.1 */
GGUF_API enum gguf_status
gguf_recipe_load(struct gguf_recipe **out, const char *path,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* A preset by its name, letter case ignored, another name for it ("Q4_K"), or
 * its ftype number ("15"). GGUF_E_NOTFOUND, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_recipe_preset(struct gguf_recipe **out, const char *name,
                   const struct gguf_allocator *allocator,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_recipe_destroy(struct gguf_recipe *recipe);

/* The n-th preset's name, and a line about it; NULL after the last. Static
 * storage. Since: 0.1 */
GGUF_API const char *gguf_recipe_preset_name(size_t n);
GGUF_API const char *gguf_recipe_preset_about(size_t n);

/* Its parts; borrowed from recipe. name and about may be "".
 * Since: 0.1 */
GGUF_API struct gguf_str gguf_recipe_text(const struct gguf_recipe *recipe);
GGUF_API const char *gguf_recipe_name(const struct gguf_recipe *recipe);
GGUF_API const char *gguf_recipe_about(const struct gguf_recipe *recipe);

/* The number for general.file_type, or -1 if the recipe gives none, like COPY.
 * Since: 0.1 */
GGUF_API int gguf_recipe_ftype(const struct gguf_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
