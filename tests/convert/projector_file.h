/* SPDX-License-Identifier: MIT */
/* projector_file.h - converts the projector of a made folder */
#ifndef TESTS_CONVERT_PROJECTOR_FILE_H
#define TESTS_CONVERT_PROJECTOR_FILE_H

#include "gguf/convert.h"
#include "gguf/file.h"
#include "gguf/quant.h"
#include "gguf/recipe.h"

/* Write the projector of the folder dir to the file out, encoded by the preset
 * type. */
static inline enum gguf_status projector_write(const char *dir,
                                               const char *out,
                                               const char *type,
                                               struct gguf_error *e)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_quant_params q = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_convert *c = NULL;
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *job = NULL;
    p.projector = true;
    o.force = o.no_sync = 1;
    gguf_error_clear(e);
    enum gguf_status st = gguf_convert_open(&c, dir, &p, e);
    if (st == GGUF_OK)
        st = gguf_recipe_preset(&recipe, type, NULL, e);
    q.recipe = recipe;
    if (st == GGUF_OK)
        st = gguf_convert_create_job(&job, c, &q, e);
    if (st == GGUF_OK)
        st = gguf_quant_run(job, out, &o, e);
    gguf_quant_destroy(job);
    gguf_recipe_destroy(recipe);
    gguf_convert_close(c);
    return st;
}

/* As projector_write(), then opens the file out. NULL: *e says why it is
 * refused. */
static inline struct gguf_file *projector_open(const char *dir,
                                               const char *out,
                                               const char *type,
                                               struct gguf_error *e)
{
    struct gguf_file *f = NULL;
    return projector_write(dir, out, type, e) == GGUF_OK &&
                   gguf_file_open(&f, out, NULL, e) == GGUF_OK
               ? f
               : NULL;
}

#endif
