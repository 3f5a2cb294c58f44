/* SPDX-License-Identifier: MIT */
/* nibbles.c - weights stored as 4-bit indexes of a table */
#include "config.h"
#include "data/nibbles.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/str.h"
#include "gguf/dtype.h"

#include <math.h>
#include <string.h>

enum { NVFP4_BLOCK = 16 };

/* Tensors with scales, which are held together with the codes. */
enum { SCALE, MAP, MORE, N_PARTS };
struct place {
    uint64_t off, size;
    uint32_t file_no;
};

struct gg_nibbles {
    float table[16];
    const uint8_t *data, *scale;
    unsigned shift;         /* shift of the first index in a byte */
    uint64_t per_scale;     /* weights that share a scale */
    float (*f8)(uint8_t x); /* decodes 8-bit scales; NULL: they are floats or
                             * indexes */
    float times, over;      /* factor and divisor of all scales */
    const uint8_t *map, *more; /* tables of scales that are indexes */
    uint64_t per_more;
    float plus;
    uint64_t off, size; /* place of the codes in their file */
    uint32_t file_no;
    struct place part[N_PARTS]; /* size 0: not present */
};

static const struct gg_safetensors_type types[] = {
    { "4 bits", 4, GG_SAFETENSORS_NO_DTYPE, NULL, GGUF_DTYPE_BF16 },
    { "4 bits", 4, GG_SAFETENSORS_NO_DTYPE, NULL, GGUF_DTYPE_F16 },
};

/* ---- reading ---- */

static float load_float(const uint8_t *p, uint64_t i)
{
    const uint32_t bits = gg_bytes_load32le(p + 4 * i);
    return gg_bytes_f32_from_bits(bits);
}

static float scale_of(const struct gg_nibbles *x, uint64_t i)
{
    if (x->map) {
        const float y = load_float(x->map, x->scale[i]);
        return y * load_float(x->more, i / x->per_more) + x->plus;
    }
    const float y = x->f8 ? x->f8(x->scale[i]) : load_float(x->scale, i);
    return y * x->times / x->over;
}

static void read_nibbles(const struct gg_data_rows *rows, uint64_t first,
                         uint64_t n, float *dst)
{
    const struct gg_nibbles *x = rows->source;
    for (uint64_t end = first + n, run; first < end; first += run) {
        const float scale = scale_of(x, first / x->per_scale);
        run = GG_MIN(end - first, x->per_scale - first % x->per_scale);
        for (uint64_t i = first; i < first + run; i++) {
            const unsigned at = (x->shift ^ (i % 2 ? 4u : 0u));
            *dst++ = x->table[x->data[i / 2] >> at & 15] * scale;
        }
    }
}

void gg_nibbles_rows(const struct gg_safetensors *s, size_t i,
                     struct gg_data_rows *out)
{
    *out = (struct gg_data_rows){ .read = read_nibbles,
                                  .source = s->tensor[i].nibbles };
}

void gg_nibbles_advise(const struct gg_safetensors *s, size_t i,
                       uint64_t first, uint64_t n, enum gg_mapfile_advice how)
{
    const struct gg_nibbles *x = s->tensor[i].nibbles;
    gg_safetensors_advise(s, x->file_no, x->off + first / 2,
                          GG_MIN(n / 2, x->size), how);
}

enum gguf_status gg_nibbles_hold(const struct gg_safetensors *s, size_t i,
                                 uint64_t first, uint64_t n, bool begin,
                                 struct gguf_error *err)
{
    const struct gg_nibbles *x = s->tensor[i].nibbles;
    const uint64_t from = first / 2, end = (first + n) / 2 + (first + n) % 2;
    for (size_t k = 0; k < N_PARTS; k++)
        GG_TRY(gg_safetensors_hold(s, x->part[k].file_no, x->part[k].off,
                                   x->part[k].size, begin, err));
    return gg_safetensors_hold(s, x->file_no, x->off + from, end - from, begin,
                               err);
}

/* ---- putting together ---- */

struct join {
    struct gg_safetensors *s;
    struct gguf_str name; /* name of the weight, without the suffix of the
                           * codes */
    uint32_t codes;
    struct gg_str_esc said; /* escaped name for messages */
    struct gg_nibbles *x;
    uint64_t rows, cols;
};

static enum gguf_status refuse_weight(const struct join *j, const char *what,
                                      struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_TENSOR, j->s->tensor[j->codes].off,
                        "tensor '%s': %s", j->said.s, what);
}

/* Find the tensor NAME with a suffix; NULL if it does not exist. */
static struct gg_safetensors_tensor *find_part(const struct join *j,
                                               const char *end)
{
    char text[512];
    uint32_t i = GG_INDEX_NONE;
    if (gg_str_join(text, sizeof text, j->name, end))
        i = gg_safetensors_find(j->s, gg_str_z(text));
    return i == GG_INDEX_NONE ? NULL : &j->s->tensor[i];
}

static bool has_type(const struct gg_safetensors_tensor *t, const char *type,
                     uint64_t n)
{
    return t && !strcmp(t->type->name, type) && t->n_elements == n;
}

static enum gguf_status hold_part(const struct join *j,
                                  const struct gg_safetensors_tensor *t,
                                  bool begin, struct gguf_error *err)
{
    return gg_safetensors_hold(j->s, t->file_no, t->off, t->size, begin, err);
}

/* Mark t as a part of the weight, and return its numbers. */
static const uint8_t *take_part(struct join *j, int k,
                                struct gg_safetensors_tensor *t)
{
    t->is_part = true;
    j->x->part[k] = (struct place){ t->off, t->size, t->file_no };
    return t->data;
}

/* Set the factor or divisor of NVFP4's scales. */
static enum gguf_status use_all(struct join *j, const char *end, float *out,
                                struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = find_part(j, end);
    if (!has_type(t, "F32", 1))
        return refuse_weight(j, "its F32 scale for all weights is missing",
                             err);
    t->is_part = true;
    GG_TRY(hold_part(j, t, true, err));
    *out = load_float(t->data, 0);
    (void)hold_part(j, t, false, NULL);
    return isfinite(*out) && *out != 0
               ? GGUF_OK
               : refuse_weight(j, "its scale for all is 0 or not finite", err);
}

static enum gguf_status use_nvfp4(struct join *j, bool pack,
                                  struct gguf_error *err)
{
    static const float levels[16] = {
        0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6
    };
    const struct gg_safetensors_tensor *q = &j->s->tensor[j->codes];
    struct gg_safetensors_tensor *t = find_part(j, ".weight_scale");
    struct gg_nibbles *x = j->x;
    if (strcmp(q->type->name, "U8") != 0 || q->n_dims != 2 ||
        q->ne[0] % (NVFP4_BLOCK / 2))
        return refuse_weight(
            j, "not a matrix of bytes in blocks of 16 weights", err);
    j->rows = (uint64_t)q->ne[1];
    j->cols = 2 * (uint64_t)q->ne[0];
    if (!has_type(t, "F8_E4M3", j->rows * (j->cols / NVFP4_BLOCK)) ||
        t->n_dims != 2 || t->ne[1] != q->ne[1])
        return refuse_weight(j, "its scales do not fit its blocks", err);
    memcpy(x->table, levels, sizeof levels);
    x->scale = take_part(j, SCALE, t);
    x->f8 = t->type->f8;
    x->per_scale = NVFP4_BLOCK;
    return pack ? use_all(j, ".weight_global_scale", &x->over, err)
                : use_all(j, ".weight_scale_2", &x->times, err);
}

/* Apply the text with the state of bitsandbytes. */
static enum gguf_status use_state(struct join *j, const json_t *root,
                                  bool *half, struct gguf_error *err)
{
    const json_t *shape = json_object_get(root, "shape");
    int64_t rows, cols, per, per_more = 0;
    double plus = 0;
    struct gguf_str dtype = GG_STR("");
    if (!gg_json_int(json_array_get(shape, 0), &rows) || rows < 1 ||
        !gg_json_int(json_array_get(shape, 1), &cols) || cols < 1 ||
        !gg_json_int(json_object_get(root, "blocksize"), &per) || per < 1 ||
        json_array_size(shape) != 2)
        return refuse_weight(j, "its quant_state lacks shape or blocksize",
                             err);
    (void)gg_json_int(json_object_get(root, "nested_blocksize"), &per_more);
    (void)gg_json_num(json_object_get(root, "nested_offset"), &plus);
    (void)gg_json_str(json_object_get(root, "dtype"), &dtype);
    *half = gg_str_eqz(dtype, "float16");
    j->rows = (uint64_t)rows;
    j->cols = (uint64_t)cols;
    j->x->per_scale = (uint64_t)per;
    j->x->per_more = per_more > 0 ? (uint64_t)per_more : 0;
    j->x->plus = (float)plus;
    return GGUF_OK;
}

/* Set the scales, and check that they are n. */
static enum gguf_status use_absmax(struct join *j, uint64_t n,
                                   struct gguf_error *err)
{
    struct gg_safetensors_tensor *scale = find_part(j, ".weight.absmax"),
                                 *map =
                                     find_part(j, ".weight.nested_quant_map"),
                                 *more = find_part(j, ".weight.nested_absmax");
    struct gg_nibbles *x = j->x;
    if (has_type(scale, "U8", n) && has_type(map, "F32", 256) && x->per_more &&
        has_type(more, "F32", (n + x->per_more - 1) / x->per_more)) {
        x->map = take_part(j, MAP, map);
        x->more = take_part(j, MORE, more);
    } else if (!has_type(scale, "F32", n)) {
        return refuse_weight(j, "its scales do not fit its blocks", err);
    }
    x->scale = take_part(j, SCALE, scale);
    return GGUF_OK;
}

static enum gguf_status use_bnb(struct join *j, bool *half,
                                struct gguf_error *err)
{
    static const char *const states[] = {
        ".weight.quant_state.bitsandbytes__nf4",
        ".weight.quant_state.bitsandbytes__fp4"
    };
    const struct gg_safetensors_tensor *q = &j->s->tensor[j->codes];
    struct gg_safetensors_tensor *state = find_part(j, states[0]),
                                 *map = find_part(j, ".weight.quant_map");
    struct gg_json json;
    uint64_t n, n_scales;
    if (!state)
        state = find_part(j, states[1]);
    if (!state || !has_type(state, "U8", state->n_elements) ||
        !has_type(map, "F32", 16))
        return refuse_weight(j, "its quant_state or quant_map is missing",
                             err);
    GG_TRY(hold_part(j, state, true, err));
    enum gguf_status st =
        gg_json_read(&json, (const char *)state->data,
                     (size_t)state->n_elements, state->off, 0, err);
    (void)hold_part(j, state, false, NULL);
    GG_TRY(st);
    st = use_state(j, json.root, half, err);
    gg_json_fini(&json);
    GG_TRY(st);
    if (gg_ckd_mul(&n, j->rows, j->cols) || !has_type(q, "U8", n / 2 + n % 2))
        return refuse_weight(j, "its bytes do not fit its shape", err);
    n_scales = n / j->x->per_scale + (n % j->x->per_scale != 0);
    GG_TRY(hold_part(j, map, true, err));
    for (size_t i = 0; i < 16; i++)
        j->x->table[i] = load_float(map->data, i);
    (void)hold_part(j, map, false, NULL);
    j->x->shift = 4;
    state->is_part = map->is_part = true;
    return use_absmax(j, n_scales, err);
}

/* Is the folder's tensor the codes of this form? Weights that are not quantized
 * have the same suffix, but no scales. */
static bool is_codes(struct join *j, uint32_t i, enum gg_nibbles_form form)
{
    static const struct {
        const char *codes, *scale;
    } ends[] = {
        [GG_NIBBLES_NVFP4] = { ".weight", ".weight_scale" },
        [GG_NIBBLES_NVFP4_PACK] = { ".weight_packed", ".weight_scale" },
        [GG_NIBBLES_BNB] = { ".weight", ".weight.absmax" },
    };
    const struct gg_safetensors_tensor *t = &j->s->tensor[i];
    if (!gg_str_ends(t->name, ends[form].codes) ||
        strcmp(t->type->name, "U8") != 0)
        return false;
    j->codes = i;
    j->name = (struct gguf_str){ t->name.data,
                                 t->name.size - strlen(ends[form].codes) };
    gg_str_esc(&j->said, t->name);
    return find_part(j, ends[form].scale) != NULL;
}

static enum gguf_status enter_weight(struct join *j, bool new, bool half,
                                     struct gguf_error *err)
{
    struct gg_safetensors *s = j->s;
    char text[512];
    uint32_t to = j->codes;
    uint64_t n;
    const struct gg_safetensors_tensor *q = &s->tensor[to];
    if (gg_ckd_mul(&n, j->rows, j->cols) || gg_ckd_exceeds_cap(n))
        return refuse_weight(j, "element count overflows", err);
    j->x->data = q->data;
    j->x->off = q->off;
    j->x->size = q->size;
    j->x->file_no = q->file_no;
    if (new) {
        if (!gg_str_join(text, sizeof text, j->name, ".weight"))
            return refuse_weight(j, "the name is too long", err);
        s->tensor[to].is_part = true;
        to = (uint32_t)s->n_tensors;
        GG_TRY(gg_safetensors_add(s, gg_str_z(text), NULL, 1, err));
    }
    struct gg_safetensors_tensor *t = &s->tensor[to];
    t->type = &types[half];
    t->n_dims = 2;
    t->ne[0] = (int64_t)j->cols;
    t->ne[1] = (int64_t)j->rows;
    t->n_elements = n;
    t->size = j->x->size;
    t->nibbles = j->x;
    return GGUF_OK;
}

enum gguf_status gg_nibbles_join(struct gg_safetensors *s,
                                 enum gg_nibbles_form form,
                                 struct gguf_error *err)
{
    const size_t n = s->n_tensors;
    for (uint32_t i = 0; i < n; i++) {
        struct join j = { .s = s };
        bool half = false;
        if (!is_codes(&j, i, form))
            continue;
        j.x = gg_mem_arena_alloc(&s->arena, sizeof *j.x);
        if (!j.x)
            return gg_error_set_nomem(err, sizeof *j.x);
        *j.x = (struct gg_nibbles){ .times = 1, .over = 1 };
        GG_TRY(form == GG_NIBBLES_BNB
                   ? use_bnb(&j, &half, err)
                   : use_nvfp4(&j, form == GG_NIBBLES_NVFP4_PACK, err));
        GG_TRY(enter_weight(&j, form == GG_NIBBLES_NVFP4_PACK, half, err));
    }
    return GGUF_OK;
}
