/* SPDX-License-Identifier: MIT */
/* imatrix_sensitivity.c - sensitivities of weight tensors
 *
 * In a file they are four arrays of one length, in keys that other programs
 * ignore. Arrays that do not fit together are ignored, too: importance data do
 * not need them. */
#include "config.h"
#include "base/compiler.h"
#include "base/params.h"
#include "base/str.h"
#include "imatrix/imatrix_int.h"
#include "imatrix/imatrix_names.h"

#include <math.h>
#include <string.h>

static bool is_less(const char *a, struct gguf_str b)
{
    const size_t n = strlen(a);
    const int c = memcmp(a, b.data, GG_MIN(n, b.size));
    return c ? c < 0 : n < b.size;
}

/* Place of a name in the sorted list, whether it exists or not. */
static size_t place_of(const struct gguf_imatrix *im, struct gguf_str name,
                       bool *found)
{
    size_t low = 0, high = im->n_sens;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (is_less(im->sens[mid].name, name))
            low = mid + 1;
        else
            high = mid;
    }
    *found = low < im->n_sens && gg_str_eqz(name, im->sens[low].name);
    return low;
}

size_t gguf_imatrix_n_sensitivities(const struct gguf_imatrix *im)
{
    return im->n_sens;
}

enum gguf_status gguf_imatrix_sensitivity(const struct gguf_imatrix *im,
                                          size_t i,
                                          struct gguf_imatrix_sensitivity *out,
                                          struct gguf_error *err)
{
    if (i >= im->n_sens)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "importance data: sensitivity %zu is out of "
                            "range, there are %zu",
                            i, im->n_sens);
    const struct gg_imatrix_sens *s = &im->sens[i];
    const struct gguf_imatrix_sensitivity own = { sizeof own, s->name,
                                                  s->value, s->input,
                                                  s->n_tokens };
    return gg_params_give(out, &own, sizeof own, "gguf_imatrix_sensitivity",
                          err);
}

bool gguf_imatrix_find_sensitivity(const struct gguf_imatrix *im,
                                   struct gguf_str name, size_t *i)
{
    bool found;
    *i = place_of(im, name, &found);
    return found;
}

static enum gguf_status insert_at(struct gguf_imatrix *im, size_t i,
                                  const struct gg_imatrix_sens *s,
                                  struct gguf_error *err)
{
    if (im->n_sens == im->cap_sens) {
        void *grown = gg_mem_grow(im->allocator, im->sens, &im->cap_sens,
                                  sizeof *im->sens, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        im->sens = grown;
    }
    const size_t size = strlen(s->name);
    const char *name = gg_mem_arena_strndup(&im->arena, s->name, size);
    if (!name)
        return gg_error_set_nomem(err, size + 1);
    memmove(im->sens + i + 1, im->sens + i,
            (im->n_sens++ - i) * sizeof *im->sens);
    im->sens[i] = *s;
    im->sens[i].name = name;
    return GGUF_OK;
}

enum gguf_status gg_imatrix_add_sensitivity(struct gguf_imatrix *im,
                                            const struct gg_imatrix_sens *s,
                                            struct gguf_error *err)
{
    bool found;
    const size_t i = place_of(im, gg_str_z(s->name), &found);
    if (!found)
        return insert_at(im, i, s, err);
    struct gg_imatrix_sens *to = &im->sens[i];
    const double n = to->n_tokens + s->n_tokens, share = s->n_tokens / n;
    to->value += (s->value - to->value) * share;
    to->input += (s->input - to->input) * share;
    to->n_tokens = n;
    return GGUF_OK;
}

static bool is_number(double v)
{
    return v >= 0 && isfinite(v);
}

static bool is_valid(const struct gg_imatrix_sens *s)
{
    return *s->name && is_number(s->value) && is_number(s->input) &&
           is_number(s->n_tokens) && s->n_tokens > 0;
}

enum gguf_status gguf_imatrix_add_sensitivity(struct gguf_imatrix *im,
                                              const char *name, double value,
                                              double input, double n_tokens,
                                              struct gguf_error *err)
{
    const struct gg_imatrix_sens s = { name, value, input, n_tokens };
    struct gg_str_esc esc;
    if (is_valid(&s))
        return gg_imatrix_add_sensitivity(im, &s, err);
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "sensitivity of '%s': %g, inputs of %g, %g tokens; "
                        "must be numbers from 0 up, and tokens above 0",
                        gg_str_esc(&esc, gg_str_z(name)), value, input,
                        n_tokens);
}

enum gguf_status gg_imatrix_merge_sensitivities(struct gguf_imatrix *im,
                                                const struct gguf_imatrix *b,
                                                struct gguf_error *err)
{
    for (size_t i = 0; i < b->n_sens; i++)
        GG_TRY(gg_imatrix_add_sensitivity(im, &b->sens[i], err));
    return GGUF_OK;
}

void gg_imatrix_filter_sensitivities(struct gguf_imatrix *im,
                                     const char *const *texts, size_t n,
                                     bool keep)
{
    size_t n_left = 0;
    for (size_t i = 0; i < im->n_sens; i++) {
        bool found = false;
        for (size_t k = 0; k < n && !found; k++)
            found = strstr(im->sens[i].name, texts[k]) != NULL;
        if (found == keep)
            im->sens[n_left++] = im->sens[i];
    }
    im->n_sens = n_left;
}

/* ---- files ---- */

/* Begin to read an array of n elements; false: it is missing or different. */
static bool begin_array(const struct gguf_file *f, const char *key,
                        uint32_t type, uint64_t n, struct gguf_kv_iter *it)
{
    const struct gguf_kv *kv = gguf_file_kv_find(f, key);
    gguf_kv_iter_init(it, kv);
    return gguf_kv_check_array(kv, type, NULL) == GGUF_OK && kv->n == n;
}

static bool next_number(struct gguf_kv_iter *it, double *v)
{
    struct gguf_kv elem;
    return gguf_kv_iter_next(it, &elem) &&
           gguf_kv_get_float(&elem, v, NULL) == GGUF_OK;
}

/* The arrays of numbers of a file. */
static const struct {
    const char *key;
    size_t member; /* offset in struct gg_imatrix_sens */
} numbers[] = {
    { GG_IMATRIX_SENS_VALUES, offsetof(struct gg_imatrix_sens, value) },
    { GG_IMATRIX_SENS_INPUTS, offsetof(struct gg_imatrix_sens, input) },
    { GG_IMATRIX_SENS_TOKENS, offsetof(struct gg_imatrix_sens, n_tokens) },
};

static double *number_of(struct gg_imatrix_sens *s, size_t k)
{
    return (double *)(void *)((char *)s + numbers[k].member);
}

/* Add the next sensitivity of a file, unless it is not valid or there is one of
 * that name. */
static enum gguf_status read_next(struct gguf_imatrix *im,
                                  struct gguf_str name,
                                  struct gguf_kv_iter it[],
                                  struct gguf_error *err)
{
    char text[GG_IMATRIX_NAME];
    struct gg_imatrix_sens s = { .name = text };
    bool good = gg_str_join(text, sizeof text, name, ""), found;
    for (size_t k = 0; k < GG_LEN(numbers); k++)
        good = next_number(&it[k], number_of(&s, k)) && good;
    (void)place_of(im, name, &found);
    return good && !found && is_valid(&s)
               ? gg_imatrix_add_sensitivity(im, &s, err)
               : GGUF_OK;
}

enum gguf_status gg_imatrix_read_sensitivities(struct gguf_imatrix *im,
                                               const struct gguf_file *f,
                                               struct gguf_error *err)
{
    const struct gguf_kv *kv = gguf_file_kv_find(f, GG_IMATRIX_SENS_NAMES);
    const uint64_t n = kv ? kv->n : 0;
    struct gguf_kv_iter names, it[GG_LEN(numbers)];
    struct gguf_str name;
    if (!begin_array(f, GG_IMATRIX_SENS_NAMES, GGUF_VAL_STR, n, &names))
        return GGUF_OK;
    for (size_t k = 0; k < GG_LEN(numbers); k++)
        if (!begin_array(f, numbers[k].key, GGUF_VAL_F64, n, &it[k]))
            return GGUF_OK;
    while (gguf_kv_iter_next_str(&names, &name))
        GG_TRY(read_next(im, name, it, err));
    return GGUF_OK;
}

static enum gguf_status set_arrays(const struct gguf_imatrix *im,
                                   struct gguf_meta *m, struct gguf_str *names,
                                   double *v, struct gguf_error *err)
{
    for (size_t i = 0; i < im->n_sens; i++)
        names[i] = gg_str_z(im->sens[i].name);
    GG_TRY(gguf_meta_set_str_array(m, GG_IMATRIX_SENS_NAMES, names, im->n_sens,
                                   err));
    for (size_t k = 0; k < GG_LEN(numbers); k++) {
        for (size_t i = 0; i < im->n_sens; i++)
            v[i] = *number_of(&im->sens[i], k);
        GG_TRY(gguf_meta_set_array(m, numbers[k].key, GGUF_VAL_F64, v,
                                   im->n_sens, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_imatrix_set_sensitivities(const struct gguf_imatrix *im,
                                              struct gguf_meta *m,
                                              struct gguf_error *err)
{
    if (!im->n_sens)
        return GGUF_OK;
    struct gguf_str *names =
        gg_mem_alloc_zero(im->allocator, im->n_sens, sizeof *names);
    double *v = gg_mem_alloc_zero(im->allocator, im->n_sens, sizeof *v);
    const enum gguf_status st =
        names && v ? set_arrays(im, m, names, v, err)
                   : gg_error_set_nomem(err, im->n_sens * sizeof *names);
    gg_mem_free(im->allocator, names);
    gg_mem_free(im->allocator, v);
    return st;
}
