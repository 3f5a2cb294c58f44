/* SPDX-License-Identifier: MIT */
/* token_array.c - arrays of one number for each token
 *
 * llama.cpp writes scores as f32 and token types as i32. Other types of 32 or
 * 64 bits are read where every value fits. Narrower ones are refused: programs
 * that cast the array would read past its end (llama.cpp's pull request 26690).
 */
#include "config.h"
#include "vocab/vocab_int.h"

#include "file/value.h"

#include <math.h>

/* May elements of type stand in an array of wanted? */
static bool is_read_as(uint32_t type, uint32_t wanted)
{
    const bool integer = gg_value_kind(type) == GG_KIND_UINT ||
                         gg_value_kind(type) == GG_KIND_INT;
    const bool number = integer || gg_value_kind(type) == GG_KIND_FLOAT;
    if (gguf_val_type_size(type) < gguf_val_type_size(wanted))
        return false;
    return type == wanted || (wanted == GGUF_VAL_I32 && integer) ||
           (wanted == GGUF_VAL_F32 && number);
}

enum gg_vocab_array gg_vocab_array_find(const struct gguf_file *file,
                                        const char *key, uint32_t elem_type,
                                        uint64_t n, const struct gguf_kv **kv)
{
    *kv = gguf_file_kv_find(file, key);
    if (!*kv)
        return GG_VOCAB_ARRAY_MISSING;
    if ((*kv)->type != GGUF_VAL_ARR ||
        !is_read_as((*kv)->elem_type, elem_type))
        return GG_VOCAB_ARRAY_TYPE;
    if (n ? (*kv)->n != n : !(*kv)->n || (*kv)->n > INT32_MAX)
        return GG_VOCAB_ARRAY_LENGTH;
    return GG_VOCAB_ARRAY_GOOD;
}

/* f32 holds an integer whose binary digits, without zeros at the end, are at
 * most 24, and any other number, rounded, that is not above its largest. */
static bool fits_f32(const struct gguf_kv *e, double x)
{
    int64_t i;
    uint64_t u;
    if (gg_value_kind(e->type) == GG_KIND_FLOAT)
        return !isfinite(x) || isfinite((float)x);
    if (gguf_kv_get_int(e, &i, NULL) == GGUF_OK)
        u = i < 0 ? -(uint64_t)i : (uint64_t)i;
    else if (gguf_kv_get_uint(e, &u, NULL) != GGUF_OK)
        return false;
    while (u && !(u & 1))
        u >>= 1;
    return u < UINT64_C(1) << 24;
}

enum gguf_status gg_vocab_array_scores(const struct gguf_kv *kv,
                                       uint64_t first, size_t n, float *out,
                                       struct gguf_error *err)
{
    struct gg_kv_label l;
    struct gguf_kv e;
    double x;
    if (kv->elem_type == GGUF_VAL_F32)
        return gguf_kv_get_elems_f32(kv, first, n, out, err);
    for (size_t i = 0; i < n; i++) {
        GG_TRY(gguf_kv_get_elem(kv, first + i, &e, err));
        GG_TRY(gguf_kv_get_float(&e, &x, err));
        if (!fits_f32(&e, x))
            return gg_error_set(err, GGUF_E_OVERFLOW, e.off,
                                "%s is %.17g, which f32 cannot hold",
                                gg_kv_label(&l, &e), x);
        out[i] = (float)x;
    }
    return GGUF_OK;
}

uint64_t gg_vocab_text_off(const struct gg_vocab_check_context *s,
                           struct gguf_str t)
{
    const uint8_t *base = gguf_file_bytes(s->c->file);
    return (uint64_t)((const uint8_t *)t.data - base) - 8; /* its length */
}
