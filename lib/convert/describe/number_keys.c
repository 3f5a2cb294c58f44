/* SPDX-License-Identifier: MIT */
/* number_keys.c - tensors of numbers that become keys
 *
 * A row of names whose "to" is "=KEY" describes a tensor of one number: for
 * each layer in a list, or without layers one number. "==KEY" describes a
 * tensor of whole numbers, which become a list of 64-bit numbers.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/bytes.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool gg_convert_is_number(const struct gg_convert_name *row)
{
    return row->to && *row->to == '=';
}

enum gguf_status gg_convert_note_number(struct gguf_convert *c,
                                        const struct gg_convert_name *row,
                                        uint32_t from, int64_t layer,
                                        struct gguf_error *err)
{
    if (c->parts.n_numbers == c->parts.room_numbers) {
        void *grown = gg_mem_grow(c->p.allocator, c->parts.number,
                                  &c->parts.room_numbers,
                                  sizeof *c->parts.number, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        c->parts.number = grown;
    }
    c->parts.number[c->parts.n_numbers++] =
        (struct gg_convert_number){ row->to + 1, layer, from };
    return GGUF_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const struct gg_convert_number *x = a, *y = b;
    const int k = strcmp(x->key, y->key);
    return k ? k : (x->layer > y->layer) - (x->layer < y->layer);
}

static enum gguf_status read_number(const struct gguf_convert *c,
                                    const struct gg_convert_number *n,
                                    float *out, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t =
        &c->folder.weights->tensor[n->from];
    struct gg_data_rows rows;
    struct gg_str_esc e;
    if (t->n_elements != 1)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s' of the folder: %" PRIu64
                            " numbers, expected one",
                            gg_str_esc(&e, t->name), t->n_elements);
    GG_TRY(gg_data_rows(&c->folder.weights->list, n->from, &rows, err));
    GG_TRY(gg_data_hold(&c->folder.weights->list, n->from, 0, 1, err));
    gg_data_read(&rows, 0, 1, out);
    gg_data_release(&c->folder.weights->list, n->from, 0, 1);
    return isfinite(*out)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                              "tensor '%s' of the folder is %g",
                              gg_str_esc(&e, t->name), (double)*out);
}

/* Most elements of a list. */
enum { MOST_IN_LIST = 1 << 16 };

/* Write the whole numbers of a tensor as a list. number->key begins with '='.
 */
static enum gguf_status set_list(struct gguf_convert *c,
                                 const struct gg_convert_number *number,
                                 size_t n, struct gguf_error *err)
{
    struct gg_safetensors *s = c->folder.weights;
    const struct gg_safetensors_tensor *t = &s->tensor[number->from];
    struct gg_str_esc e;
    char buf[128];
    const char *key = gg_convert_key_name(c, number->key + 1, buf);
    if (n > 1 || t->type->dtype != GGUF_DTYPE_I64 ||
        t->n_elements > MOST_IN_LIST)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s' of the folder: %s of %" PRIu64
                            " elements, expected at most %d of I64, once",
                            gg_str_esc(&e, t->name), t->type->name,
                            t->n_elements, MOST_IN_LIST);
    uint64_t *x =
        gg_mem_alloc_zero(c->p.allocator, (size_t)t->n_elements, sizeof *x);
    if (!x)
        return gg_error_set_nomem(err, (size_t)t->n_elements * sizeof *x);
    enum gguf_status st = gg_safetensors_hold_all(s, number->from, true, err);
    for (uint64_t i = 0; t->data && st == GGUF_OK && i < t->n_elements; i++)
        x[i] = gg_bytes_load64le(t->data + 8 * i);
    if (st == GGUF_OK) {
        (void)gg_safetensors_hold_all(s, number->from, false, NULL);
        st = gguf_meta_set_array(c->out.meta, key, GGUF_VAL_U64, x,
                                 (size_t)t->n_elements, err);
    }
    gg_mem_free(c->p.allocator, x);
    return st;
}

/* Write the numbers of one key: of layers 0 to n - 1, or one number for the
 * model. */
static enum gguf_status set_numbers(struct gguf_convert *c,
                                    const struct gg_convert_number *number,
                                    size_t n, float *x, struct gguf_error *err)
{
    char buf[128];
    const char *key = gg_convert_key_name(c, number->key, buf);
    struct gg_str_esc e;
    for (size_t i = 0; i < n; i++) {
        if (number[i].layer != (number->layer < 0 ? -1 : (int64_t)i) ||
            (i && number->layer < 0))
            return gg_error_set(
                err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                "tensor '%s' of the folder is there twice, or after a layer "
                "without one",
                gg_str_esc(&e,
                           c->folder.weights->tensor[number[i].from].name));
        GG_TRY(read_number(c, &number[i], &x[i], err));
    }
    return number->layer < 0 ? gguf_meta_set_f32(c->out.meta, key, *x, err)
                             : gguf_meta_set_array(c->out.meta, key,
                                                   GGUF_VAL_F32, x, n, err);
}

enum gguf_status gg_convert_set_number_keys(struct gguf_convert *c,
                                            struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    if (!c->parts.n_numbers)
        return GGUF_OK;
    float *x =
        gg_mem_alloc_zero(c->p.allocator, c->parts.n_numbers, sizeof *x);
    if (!x)
        return gg_error_set_nomem(err, c->parts.n_numbers * sizeof *x);
    qsort(c->parts.number, c->parts.n_numbers, sizeof *c->parts.number,
          compare_keys);
    for (size_t i = 0, n; i < c->parts.n_numbers && st == GGUF_OK; i += n) {
        for (n = 1;
             i + n < c->parts.n_numbers &&
             !strcmp(c->parts.number[i].key, c->parts.number[i + n].key);)
            n++;
        st = *c->parts.number[i].key == '='
                 ? set_list(c, &c->parts.number[i], n, err)
                 : set_numbers(c, &c->parts.number[i], n, x, err);
    }
    gg_mem_free(c->p.allocator, x);
    return st;
}
