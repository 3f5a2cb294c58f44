/* SPDX-License-Identifier: MIT */
/* image_file.h - a .safetensors file of a test, and the file that it becomes */
#ifndef TESTS_CONVERT_IMAGE_FILE_H
#define TESTS_CONVERT_IMAGE_FILE_H

#include "gguf/convert.h"
#include "gguf/dtype.h"
#include "gguf/file.h"
#include "gguf/recipe.h"
#include "gguf/stats.h"
#include "tests/scratch.h"
#define STFILE_MOST (1 << 20)
#include "tests/stfile.h"
#include "tests/tap.h"

#include <unistd.h>

static char top[200];
static struct stfile st, ended;
static struct gguf_file *made;
static struct gguf_error err;

static bool write_file(const char *path, const void *data, size_t size)
{
    FILE *o = fopen(path, "wb");
    return o && fwrite(data, 1, size, o) == size && fclose(o) == 0;
}

/* Write the tensors as a file. */
static bool write_weights(const char *path)
{
    ended = st;
    const size_t size = stfile_end(&ended);
    return write_file(path, ended.bytes, size);
}

/* Convert a file or folder to recipe's types. */
static enum gguf_status convert_path(const char *in, const char *recipe)
{
    struct gguf_convert *c = NULL;
    struct gguf_quant *job = NULL;
    struct gguf_recipe *r = NULL;
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    char out[300];
    snprintf(out, sizeof out, "%s", scratch_path(top, "out.gguf"));
    unlink(out);
    gguf_file_close(made);
    made = NULL;
    gguf_error_clear(&err);
    enum gguf_status s = gguf_convert_open(&c, in, NULL, &err);
    if (s == GGUF_OK)
        s = gguf_recipe_preset(&r, recipe, NULL, &err);
    p.recipe = r;
    if (s == GGUF_OK)
        s = gguf_convert_create_job(&job, c, &p, &err);
    if (s == GGUF_OK)
        s = gguf_quant_run(job, out, NULL, &err);
    if (s == GGUF_OK)
        s = gguf_file_open(&made, out, NULL, &err);
    gguf_quant_destroy(job);
    gguf_convert_close(c);
    gguf_recipe_destroy(r);
    return s;
}

/* Write the tensors as a file, and convert it. */
static enum gguf_status convert_file(const char *recipe)
{
    char in[300];
    snprintf(in, sizeof in, "%s", scratch_path(top, "in.safetensors"));
    return write_weights(in) ? convert_path(in, recipe) : GGUF_E_IO;
}

/* Is the tensor in the file, with this type and these dimensions? */
static bool has_tensor(const char *name, uint32_t dtype, unsigned n_dims,
                       int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3)
{
    const struct gguf_tensor_info *t =
        made ? gguf_file_tensor_find(made, name) : NULL;
    return t && t->dtype == dtype && t->n_dims == n_dims && t->ne[0] == ne0 &&
           t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == ne3;
}

static inline float read_number(const char *name, uint64_t i)
{
    struct gguf_rows *rows = NULL;
    float x = -1;
    const struct gguf_tensor_info *t =
        made ? gguf_file_tensor_find(made, name) : NULL;
    if (!t || gguf_rows_create(&rows, NULL, NULL) != GGUF_OK ||
        gguf_rows_decode(rows, made, t->index, i, 1, &x, NULL) != GGUF_OK)
        x = -1;
    gguf_rows_destroy(rows);
    return x;
}

static inline void put_float(uint8_t *p, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    gg_bytes_store32le(p, bits);
}

#endif
