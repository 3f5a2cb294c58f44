/* SPDX-License-Identifier: MIT */
/* quantize_through.h - quantize an open file through an improve callback */
#ifndef TESTS_CALIBRATE_QUANTIZE_THROUGH_H
#define TESTS_CALIBRATE_QUANTIZE_THROUGH_H

#include <gguf/gguf.h>
#include <gguf/improve.h>

/* Write the file in as out, which is replaced, with the recipe type.
 * params.recipe is set here. improve.fn NULL: the plain output. */
static inline enum gguf_status
quantize_through(const struct gguf_file *in, const char *type, const char *out,
                 struct gguf_quant_params params, bool resume,
                 struct gguf_quant_improve_callback improve,
                 struct gguf_error *err)
{
    struct gguf_quant_output w = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *q = NULL;
    gguf_error_clear(err);
    enum gguf_status st = gguf_recipe_preset(&recipe, type, NULL, err);
    params.recipe = recipe;
    w.force = w.no_sync = true;
    w.resume = resume;
    w.improve = improve;
    if (st == GGUF_OK)
        st = gguf_quant_create_file(&q, in, &params, err);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, out, &w, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(recipe);
    return st;
}

#endif
