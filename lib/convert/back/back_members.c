/* SPDX-License-Identifier: MIT */
/* back_members.c - set members of config.json to numbers of keys */
#include "config.h"
#include "convert/back/back_maker.h"

#include "base/compiler.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *gg_back_number_to_json(double x)
{
    if (x == floor(x) && fabs(x) < 1e15)
        return json_integer((json_int_t)x);
    return fabs((double)(float)x - x) <= 1e-15 * fabs(x)
               ? gg_back_shortest_real((float)x)
               : json_real(x);
}

void gg_back_put_num(struct gg_back_maker *m, const char *name, double x)
{
    if (!isnan(x))
        gg_back_put(m->root, name, gg_back_number_to_json(x));
}

void gg_back_put_flag(struct gg_back_maker *m, const char *name, double x)
{
    if (!isnan(x))
        gg_back_put(m->root, name, json_boolean(x != 0));
}

void gg_back_put_word(struct gg_back_maker *m, const char *name,
                      const char *word)
{
    gg_back_put(m->root, name, json_string(word));
}

void gg_back_remove_member(struct gg_back_maker *m, const char *name)
{
    json_object_del(m->root, name);
}

/* ---- for each layer ---- */

int64_t gg_back_n_layers(const struct gg_back_maker *m)
{
    const double n = gg_hf_config_num(&m->keys, "num_hidden_layers", -1);
    return n > 0 && n <= 100000 ? (int64_t)n : 0;
}

/* Word no of words with blanks between; empty, if there are fewer. */
static json_t *word_json(const char *words, double no)
{
    for (; no > 0 && *words; no--) {
        words += strcspn(words, " ");
        words += *words == ' ';
    }
    return json_stringn(words, strcspn(words, " "));
}

static void put_list(struct gg_back_maker *m, const char *name,
                     gg_hf_config_layer_fn *fn, const char *words)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < gg_back_n_layers(m); i++) {
        const double x = fn(&m->keys, i);
        if (isnan(x)) {
            json_decref(list);
            return;
        }
        json_array_append_new(list, words ? word_json(words, x)
                                          : gg_back_number_to_json(x));
    }
    gg_back_put(m->root, name, list);
}

void gg_back_put_layers(struct gg_back_maker *m, const char *name,
                        gg_hf_config_layer_fn *fn)
{
    put_list(m, name, fn, NULL);
}

void gg_back_put_layer_words(struct gg_back_maker *m, const char *name,
                             gg_hf_config_layer_fn *fn, const char *words)
{
    put_list(m, name, fn, words);
}

double gg_back_first_layer(const struct gg_back_maker *m,
                           gg_hf_config_layer_fn *fn)
{
    double x = NAN;
    for (int64_t i = 0; i < gg_back_n_layers(m) && isnan(x); i++)
        x = fn(&m->keys, i);
    return x;
}

/* ---- numbers of a tensor ---- */

bool gg_back_read_tensor(const struct gg_back_maker *m, const char *name,
                         float x[4096], size_t *n)
{
    struct gg_data_rows rows;
    struct gg_data_info info;
    size_t i;
    if (!gg_source_find(&m->b->source, name, &i))
        return false;
    gg_data_info(&m->b->numbers.list, i, &info);
    if (info.n_elements > 4096 ||
        gg_data_rows(&m->b->numbers.list, i, &rows, NULL) ||
        gg_data_hold(&m->b->numbers.list, i, 0, info.n_elements, NULL))
        return false;
    gg_data_read(&rows, 0, info.n_elements, x);
    gg_data_release(&m->b->numbers.list, i, 0, info.n_elements);
    *n = (size_t)info.n_elements;
    return true;
}

/* Are n numbers of a tensor, from element first on, all 0? */
static bool is_zero(const struct gg_data_rows *from, uint64_t first,
                    uint64_t n)
{
    float x[1024];
    for (uint64_t at = 0, k; at < n; at += k) {
        k = GG_MIN(n - at, GG_LEN(x));
        gg_data_read(from, first + at, k, x);
        for (uint64_t i = 0; i < k; i++)
            if (x[i] != 0)
                return false;
    }
    return true;
}

double gg_back_count_rows(const struct gg_back_maker *m, const char *tensor)
{
    const struct gg_back *b = m->b;
    struct gg_data_rows from;
    size_t at;
    if (!gg_source_find(&b->source, tensor, &at) ||
        gg_data_rows(&b->numbers.list, at, &from, NULL) != GGUF_OK)
        return NAN;
    const struct gguf_tensor_info *t = gg_source_tensor(&b->source, at).info;
    const uint64_t row = (uint64_t)t->ne[0];
    int64_t n = t->ne[1];
    bool zero = true;
    while (zero && n > 1) {
        const uint64_t first = (uint64_t)(n - 1) * row;
        if (gg_data_hold(&b->numbers.list, at, first, row, NULL) != GGUF_OK)
            return NAN;
        zero = is_zero(&from, first, row);
        gg_data_release(&b->numbers.list, at, first, row);
        n -= zero;
    }
    return (double)n;
}

/* Members of members by points. */
void gg_back_put(json_t *o, const char *name, json_t *v)
{
    char part[64];
    const char *dot;
    for (; (dot = strchr(name, '.')); name = dot + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - name), name);
        json_t *in = json_object_get(o, part);
        if (!json_is_object(in)) {
            in = json_object();
            json_object_set_new(o, part, in);
        }
        o = in;
    }
    json_object_set_new(o, name, v);
}

/* The shortest number that is x in single precision. */
json_t *gg_back_shortest_real(float x)
{
    const int error = errno; /* gg_json_make_failed */
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            break;
    }
    const double value = strtod(text, NULL);
    errno = error; /* not ERANGE */
    return json_real(value);
}

json_t *gg_back_kv_to_json(const struct gguf_kv *kv)
{
    struct gguf_str s;
    bool yes;
    int64_t i;
    double x;
    switch (kv->type) {
    case GGUF_VAL_STR:
        return gguf_kv_get_str(kv, &s, NULL) ? NULL
                                             : json_stringn(s.data, s.size);
    case GGUF_VAL_BOOL:
        return gguf_kv_get_bool(kv, &yes, NULL) ? NULL : json_boolean(yes);
    case GGUF_VAL_F32:
    case GGUF_VAL_F64:
        return gguf_kv_get_float(kv, &x, NULL) || !isfinite(x)
                   ? NULL
                   : gg_back_shortest_real((float)x);
    case GGUF_VAL_ARR: {
        struct gguf_kv_iter it;
        struct gguf_kv e;
        json_t *list = json_array();
        gguf_kv_iter_init(&it, kv);
        while (gguf_kv_iter_next(&it, &e)) {
            json_t *v = e.type == GGUF_VAL_ARR ? NULL : gg_back_kv_to_json(&e);
            json_array_append_new(list, v ? v : json_null());
        }
        return list;
    }
    default: return gguf_kv_get_int(kv, &i, NULL) ? NULL : json_integer(i);
    }
}

const struct gguf_kv *gg_back_find_key(const struct gg_back_maker *m,
                                       const char *key)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", m->arch->arch, key);
    return gguf_file_kv_find(m->b->meta, *key == '/' ? key + 1 : name);
}
