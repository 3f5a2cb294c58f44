/* SPDX-License-Identifier: MIT */
/* back_members.c - members of config.json, of numbers that keys say */
#include "config.h"
#include "convert/back_maker.h"

#include "base/compiler.h"

#include <math.h>
#include <string.h>

json_t *gg_back_number(double x)
{
    if (x == floor(x) && fabs(x) < 1e15)
        return json_integer((json_int_t)x);
    return fabs((double)(float)x - x) <= 1e-15 * fabs(x)
               ? gg_back_real((float)x)
               : json_real(x);
}

void gg_back_put_num(struct gg_back_maker *m, const char *name, double x)
{
    if (!isnan(x))
        gg_back_put(m->root, name, gg_back_number(x));
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

void gg_back_drop(struct gg_back_maker *m, const char *name)
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
        json_array_append_new(list,
                              words ? word_json(words, x) : gg_back_number(x));
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

/* ---- rows of a tensor ---- */

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
