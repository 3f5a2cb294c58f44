/* SPDX-License-Identifier: MIT */
/* tiled.c - weights whose scales lie in tiles, as ComfyUI writes them */
#include "config.h"
#include "data/tiled.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/compiler.h"
#include "base/str.h"
#include "gguf/dtype.h"

#include <math.h>
#include <string.h>

enum { TILE_ROWS = 128, TILE_GROUPS = 4, TILE = TILE_ROWS * TILE_GROUPS };

struct gg_tiled {
    const uint8_t *code, *scale;
    float number[256];      /* value of a byte; nvfp4: of its low half */
    float factor[256];      /* value of a scale */
    float times;            /* scale of all weights */
    uint64_t cols, n_tiles; /* columns; tiles side by side */
    unsigned group;         /* weights that share a scale */
    unsigned per_byte;      /* weights in a byte */
    /* Places of the parts in their files. */
    uint64_t code_off, scale_off, scale_size;
    uint32_t code_file, scale_file;
};

static const struct gg_safetensors_type types[] = {
    [GG_TILED_NVFP4] = { "nvfp4", 4, GG_SAFETENSORS_NO_DTYPE, NULL,
                         GGUF_DTYPE_BF16 },
    [GG_TILED_MXFP8] = { "mxfp8", 8, GG_SAFETENSORS_NO_DTYPE, NULL,
                         GGUF_DTYPE_BF16 },
};

/* Number of units that n takes. */
static uint64_t count_units(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit;
}

/* ---- reading ---- */

static float get_scale(const struct gg_tiled *x, uint64_t row, uint64_t group)
{
    const uint64_t tile = row / TILE_ROWS * x->n_tiles + group / TILE_GROUPS;
    const uint64_t at = row % 32 * 16 + row % TILE_ROWS / 32 * 4 + group % 4;
    return x->factor[x->scale[tile * TILE + at]];
}

static void read_tiled(const struct gg_data_rows *rows, uint64_t first,
                       uint64_t n, float *dst)
{
    const struct gg_tiled *x = rows->source;
    for (uint64_t end = first + n, run; first < end; first += run) {
        const uint64_t col = first % x->cols;
        const float scale = get_scale(x, first / x->cols, col / x->group);
        run = GG_MIN(end - first, x->group - col % x->group);
        for (uint64_t i = first; i < first + run; i++) {
            const uint8_t byte = x->code[i / x->per_byte];
            const unsigned code =
                x->per_byte == 1 ? byte : (i % 2 ? byte & 15u : byte >> 4);
            *dst++ = x->number[code] * scale * x->times;
        }
    }
}

void gg_tiled_rows(const struct gg_safetensors *s, size_t i,
                   struct gg_data_rows *out)
{
    *out = (struct gg_data_rows){ .read = read_tiled,
                                  .source = s->tensor[i].tiled };
}

void gg_tiled_advise(const struct gg_safetensors *s, size_t i, uint64_t first,
                     uint64_t n, enum gg_mapfile_advice how)
{
    const struct gg_tiled *x = s->tensor[i].tiled;
    const uint64_t row = first / x->cols / TILE_ROWS;
    const uint64_t end =
        count_units(count_units(first + n, x->cols), TILE_ROWS);
    gg_safetensors_advise(s, x->code_file, x->code_off + first / x->per_byte,
                          n / x->per_byte, how);
    gg_safetensors_advise(s, x->scale_file,
                          x->scale_off + row * x->n_tiles * TILE,
                          (end - row) * x->n_tiles * TILE, how);
}

enum gguf_status gg_tiled_hold(const struct gg_safetensors *s, size_t i,
                               uint64_t first, uint64_t n, bool begin,
                               struct gguf_error *err)
{
    const struct gg_tiled *x = s->tensor[i].tiled;
    const uint64_t from = first / x->per_byte;
    const uint64_t end = (first + n + x->per_byte - 1) / x->per_byte;
    GG_TRY(gg_safetensors_hold(s, x->scale_file, x->scale_off, x->scale_size,
                               begin, err));
    return gg_safetensors_hold(s, x->code_file, x->code_off + from, end - from,
                               begin, err);
}

/* ---- putting together ---- */

struct join {
    struct gg_safetensors *s;
    uint32_t codes;
    struct gguf_str base; /* name of the weight without ".weight" */
    struct gg_str_esc said;
    struct gg_tiled *x;
    uint64_t rows;
};

static enum gguf_status refuse_weight(const struct join *j, const char *what,
                                      struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_TENSOR, j->s->tensor[j->codes].off,
                        "tensor '%s': %s", j->said.s, what);
}

static struct gg_safetensors_tensor *find_part(const struct join *j,
                                               const char *end)
{
    char text[512];
    uint32_t i = GG_INDEX_NONE;
    if (gg_str_join(text, sizeof text, j->base, end))
        i = gg_safetensors_find(j->s, gg_str_z(text));
    return i == GG_INDEX_NONE ? NULL : &j->s->tensor[i];
}

/* Set the scales: a matrix of bytes of the type, or U8. */
static enum gguf_status use_scales(struct join *j, const char *type,
                                   struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = find_part(j, ".weight_scale");
    struct gg_tiled *x = j->x;
    const uint64_t groups = count_units(x->cols, x->group);
    x->n_tiles = count_units(groups, TILE_GROUPS);
    if (!t)
        return refuse_weight(j, "its weight_scale is missing", err);
    if ((strcmp(t->type->name, type) != 0 &&
         strcmp(t->type->name, "U8") != 0) ||
        t->n_elements % TILE ||
        t->n_elements / TILE != count_units(j->rows, TILE_ROWS) * x->n_tiles)
        return refuse_weight(j, "its scales do not fit its groups", err);
    float (*f8)(uint8_t) = gg_safetensors_type(gg_str_z(type))->f8;
    for (unsigned b = 0; b < 256; b++)
        x->factor[b] = f8((uint8_t)b);
    x->scale = t->data;
    x->scale_off = t->off;
    x->scale_size = t->size;
    x->scale_file = t->file_no;
    t->is_part = true;
    return GGUF_OK;
}

static enum gguf_status use_scale_of_all(struct join *j,
                                         struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = find_part(j, ".weight_scale_2");
    if (!t || strcmp(t->type->name, "F32") != 0 || t->n_elements != 1)
        return refuse_weight(j, "its weight_scale_2 is missing or not one F32",
                             err);
    GG_TRY(gg_safetensors_hold(j->s, t->file_no, t->off, t->size, true, err));
    j->x->times = gg_bytes_f32_from_bits(gg_bytes_load32le(t->data));
    (void)gg_safetensors_hold(j->s, t->file_no, t->off, t->size, false, NULL);
    t->is_part = true;
    return isfinite(j->x->times)
               ? GGUF_OK
               : refuse_weight(j, "its weight_scale_2 is not finite", err);
}

/* The rows of a padded weight: those of its bias. */
static uint64_t count_rows(const struct join *j, uint64_t stored)
{
    const struct gg_safetensors_tensor *t = find_part(j, ".bias");
    return t && t->n_dims == 1 && t->n_elements &&
                   count_units(t->n_elements, 16) * 16 == stored
               ? t->n_elements
               : stored;
}

static enum gguf_status use_nvfp4(struct join *j, struct gguf_error *err)
{
    static const float levels[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    const struct gg_safetensors_tensor *q = &j->s->tensor[j->codes];
    struct gg_tiled *x = j->x;
    if (strcmp(q->type->name, "U8") != 0 || q->n_dims != 2 || !q->n_elements ||
        q->ne[0] % 8)
        return refuse_weight(
            j, "not a matrix of bytes in groups of 16 weights", err);
    if (find_part(j, ".pre_quant_scale"))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, q->off,
                            "tensor '%s': pre_quant_scale is not supported",
                            j->said.s);
    x->group = 16;
    x->per_byte = 2;
    if (gg_ckd_mul(&x->cols, (uint64_t)q->ne[0], 2))
        return refuse_weight(j, "element count overflows", err);
    for (unsigned c = 0; c < 16; c++)
        x->number[c] = c & 8 ? -levels[c & 7] : levels[c & 7];
    j->rows = (uint64_t)q->ne[1];
    GG_TRY(use_scales(j, "F8_E4M3", err));
    j->rows = count_rows(j, j->rows);
    return use_scale_of_all(j, err);
}

static enum gguf_status use_mxfp8(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *q = &j->s->tensor[j->codes];
    struct gg_tiled *x = j->x;
    if (strcmp(q->type->name, "F8_E4M3") != 0 || q->n_dims != 2 ||
        !q->n_elements || q->ne[0] % 32)
        return refuse_weight(
            j, "not a matrix of F8_E4M3 in groups of 32 weights", err);
    x->group = 32;
    x->per_byte = 1;
    x->cols = (uint64_t)q->ne[0];
    for (unsigned b = 0; b < 256; b++)
        x->number[b] = q->type->f8((uint8_t)b);
    j->rows = (uint64_t)q->ne[1];
    return use_scales(j, "F8_E8M0", err);
}

enum gguf_status gg_tiled_join(struct gg_safetensors *s, uint32_t i,
                               enum gg_tiled_form form, struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = &s->tensor[i];
    struct join j = { .s = s, .codes = i, .base = t->name };
    uint64_t n;
    gg_str_esc(&j.said, t->name);
    if (!gg_str_ends(t->name, ".weight"))
        return refuse_weight(&j, "the name does not end in .weight", err);
    j.base.size -= strlen(".weight");
    j.x = gg_mem_arena_alloc(&s->arena, sizeof *j.x);
    if (!j.x)
        return gg_error_set_nomem(err, sizeof *j.x);
    *j.x = (struct gg_tiled){ .code = t->data,
                              .times = 1,
                              .code_off = t->off,
                              .code_file = t->file_no };
    GG_TRY(form == GG_TILED_NVFP4 ? use_nvfp4(&j, err) : use_mxfp8(&j, err));
    if (gg_ckd_mul(&n, j.rows, j.x->cols) || gg_ckd_exceeds_cap(n))
        return refuse_weight(&j, "element count overflows", err);
    t->type = &types[form];
    t->ne[0] = (int64_t)j.x->cols;
    t->ne[1] = (int64_t)j.rows;
    t->n_elements = n;
    t->tiled = j.x;
    return GGUF_OK;
}
