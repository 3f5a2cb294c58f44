/* SPDX-License-Identifier: MIT */
/* expr.c - small expressions on config.json */
#include "config.h"
#include "convert/expr.h"

#include "base/compiler.h"
#include "base/str.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of one letter. */
static const struct {
    const char *name, *text;
} sizes[] = {
    { "h", "num_attention_heads|n_head|n_heads" },
    { "k", "num_key_value_heads|n_kv_heads|num_attention_heads|n_head|"
           "n_heads" },
    { "g", "num_attention_heads//num_key_value_heads|1" },
    { "e", "num_local_experts|num_experts|n_routed_experts" },
};

struct reader {
    const struct gguf_convert *c;
    const char *p, *end;
    int64_t layer;
};

static double choose(struct reader *r);

static char peek(struct reader *r)
{
    while (r->p < r->end && *r->p == ' ')
        r->p++;
    return r->p < r->end ? *r->p : 0;
}

static bool take(struct reader *r, char ch)
{
    if (peek(r) != ch)
        return false;
    r->p++;
    return true;
}

static bool is_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '.';
}

/* A word, which ends where no letter of a name is. ".i." is the element of the
 * layer. */
static void read_word(struct reader *r, char out[96])
{
    size_t n = 0;
    while (r->p < r->end && is_name(*r->p) && n + 24 < 96) {
        if (r->end - r->p > 2 && !memcmp(r->p, ".i.", 3)) {
            n += (size_t)snprintf(out + n, 96 - n, ".%" PRId64,
                                  r->layer < 0 ? 0 : r->layer);
            r->p += 2;
        } else {
            out[n++] = *r->p++;
        }
    }
    out[n] = 0;
}

/* The element of a list that is the layer's. */
static const json_t *of_layer(const struct reader *r, const json_t *v)
{
    return json_is_array(v)
               ? json_array_get(v, r->layer < 0 ? 0 : (size_t)r->layer)
               : v;
}

static double same_text(struct reader *r, const json_t *v)
{
    char word[96];
    struct gguf_str s;
    read_word(r, word);
    if (!v)
        return NAN;
    return gg_json_str(of_layer(r, v), &s) && gg_str_eqz(s, word);
}

static double same_letter(struct reader *r, const json_t *v)
{
    const char letter = r->p < r->end ? *r->p++ : 0;
    struct gguf_str s;
    if (!gg_json_str(v, &s) || !s.size)
        return NAN;
    return s.data[(size_t)(r->layer < 0 ? 0 : r->layer) % s.size] == letter;
}

static double number_of(const struct reader *r, const json_t *v)
{
    double x;
    v = of_layer(r, v);
    if (json_is_boolean(v))
        return json_is_true(v);
    return gg_json_num(v, &x) ? x : NAN;
}

/* ---- functions: their arguments, in parentheses ---- */

static double argument(struct reader *r, char before)
{
    const bool is = take(r, before);
    assert(is);
    (void)is;
    return choose(r);
}

static void close(struct reader *r)
{
    const bool is = take(r, ')');
    assert(is);
    (void)is;
}

static double run_sqrt(struct reader *r)
{
    const double x = argument(r, '(');
    close(r);
    return sqrt(x);
}

static double run_pow(struct reader *r)
{
    const double x = argument(r, '('), y = argument(r, ',');
    close(r);
    return pow(x, y);
}

static double run_max(struct reader *r)
{
    const double x = argument(r, '('), y = argument(r, ',');
    close(r);
    return x > y ? x : y;
}

/* Is it true in all layers? */
static double run_all(struct reader *r)
{
    const double n = gg_convert_eval(r->c, "num_hidden_layers", -1);
    const int64_t layer = r->layer;
    const char *begin = r->p;
    double all = NAN;
    r->layer = 0;
    do {
        r->p = begin;
        const double x = argument(r, '(');
        close(r);
        all = isnan(x) ? x : isnan(all) ? x != 0 : all * (x != 0);
    } while (!isnan(all) && (double)++r->layer < n &&
             r->layer < GG_CONVERT_MOST_LAYERS);
    r->layer = layer;
    return all;
}

/* The first layer in which it is true. */
static double run_first(struct reader *r)
{
    const double n = gg_convert_eval(r->c, "num_hidden_layers", -1);
    const int64_t layer = r->layer;
    const char *begin = r->p;
    double x;
    r->layer = 0;
    do {
        r->p = begin;
        x = argument(r, '(');
        close(r);
    } while (x == 0 && (double)++r->layer < n &&
             r->layer < GG_CONVERT_MOST_LAYERS);
    const double found = (double)r->layer;
    r->layer = layer;
    return isnan(x) || isnan(n) ? NAN : found;
}

/* Has a list the number of the layer? The first layer's may be said. */
static double run_has(struct reader *r)
{
    char word[96];
    int64_t x;
    bool found = false;
    r->p++;
    read_word(r, word);
    const double first = take(r, ',') ? choose(r) : 0;
    close(r);
    const json_t *list = gg_convert_get(r->c, word);
    if (json_array_size(list) > GG_CONVERT_MOST_LAYERS)
        return NAN;
    for (size_t i = 0; i < json_array_size(list); i++)
        found = found || (gg_json_int(json_array_get(list, i), &x) &&
                          (double)x == (double)r->layer + first);
    return json_is_array(list) ? found : NAN;
}

/* How many has a list? */
static double run_len(struct reader *r)
{
    char word[96];
    r->p++;
    read_word(r, word);
    close(r);
    return (double)json_array_size(gg_convert_get(r->c, word));
}

/* The number with which a text or a list begins. */
static double run_number(struct reader *r)
{
    char word[96], digits[16];
    struct gguf_str s;
    size_t n = 0;
    r->p++;
    read_word(r, word);
    close(r);
    const json_t *v = gg_convert_get(r->c, word);
    if (!gg_json_str(v, &s))
        return number_of(&(struct reader){ .layer = -1 }, v);
    while (n < s.size && n + 1 < sizeof digits &&
           isdigit((unsigned char)s.data[n])) {
        digits[n] = s.data[n];
        n++;
    }
    digits[n] = 0;
    return n ? atof(digits) : NAN;
}

/* The deviations of a normal distribution below which a part p of it lies: by
 * Newton's steps. */
static double run_quantile(struct reader *r)
{
    const double p = (float)argument(r, '('); /* as those who compute it */
    double x = 0;
    close(r);
    if (!(p > 0 && p < 1))
        return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    for (int k = 0; k < 100; k++) {
        const double below = 0.5 * erfc(-x / sqrt(2));
        const double density = exp(-x * x / 2) / sqrt(6.283185307179586);
        const double step = (below - p) / density;
        x -= step > 1 ? 1 : step < -1 ? -1 : step;
    }
    return x;
}

/* The part that lies below x, as quantile() takes it. */
static double run_part(struct reader *r)
{
    const double x = argument(r, '(');
    close(r);
    return (double)(float)(0.5 * erfc(-x / sqrt(2)));
}

static const struct {
    const char *name;
    double (*run)(struct reader *r);
} functions[] = {
    { "sqrt", run_sqrt },         { "pow", run_pow },
    { "max", run_max },           { "all", run_all },
    { "has", run_has },           { "len", run_len },
    { "first", run_first },       { "number", run_number },
    { "quantile", run_quantile }, { "part", run_part },
};

static double name(struct reader *r)
{
    char word[96];
    read_word(r, word);
    assert(*word);
    if (!strcmp(word, "i"))
        return r->layer < 0 ? NAN : (double)r->layer;
    for (size_t i = 0; i < GG_LEN(functions); i++)
        if (peek(r) == '(' && !strcmp(word, functions[i].name))
            return functions[i].run(r);
    for (size_t i = 0; i < GG_LEN(sizes); i++)
        if (!strcmp(word, sizes[i].name))
            return gg_convert_eval(r->c, sizes[i].text, r->layer);
    const json_t *v = gg_convert_get(r->c, word);
    if (r->p < r->end && *r->p == ':') {
        r->p++;
        return same_text(r, v);
    }
    if (r->p < r->end && *r->p == '#') {
        r->p++;
        return same_letter(r, v);
    }
    if (r->p < r->end && *r->p == '!') {
        r->p++;
        return v != NULL;
    }
    return number_of(r, v);
}

static double atom(struct reader *r)
{
    if (take(r, '(')) {
        const double x = choose(r);
        const bool closed = take(r, ')');
        assert(closed);
        (void)closed;
        return x;
    }
    if (isdigit((unsigned char)peek(r))) {
        char *after;
        char digits[32];
        size_t n = 0;
        while (r->p + n < r->end && n + 1 < sizeof digits &&
               (isdigit((unsigned char)r->p[n]) || r->p[n] == '.' ||
                r->p[n] == 'e' ||
                (r->p[n] == '-' && n && r->p[n - 1] == 'e'))) {
            digits[n] = r->p[n];
            n++;
        }
        digits[n] = 0;
        const double x = strtod(digits, &after);
        r->p += after - digits;
        return x;
    }
    return name(r);
}

static double either(struct reader *r)
{
    double x = atom(r);
    while (take(r, '|')) {
        const double y = atom(r);
        x = isnan(x) ? y : x;
    }
    return x;
}

static double product(struct reader *r)
{
    double x = either(r);
    for (;;)
        if (take(r, '*')) {
            x *= either(r);
        } else if (take(r, '%')) {
            x = fmod(x, either(r));
        } else if (take(r, '/')) {
            const bool whole = take(r, '/');
            x /= either(r);
            x = whole ? floor(x) : x;
        } else {
            return x;
        }
}

static double sum(struct reader *r)
{
    double x = take(r, '-') ? -product(r) : product(r);
    for (;;)
        if (take(r, '+'))
            x += product(r);
        else if (take(r, '-'))
            x -= product(r);
        else
            return x;
}

static double compare(struct reader *r)
{
    const double x = sum(r);
    const char how = peek(r);
    if (how != '=' && how != '<' && how != '>')
        return x;
    r->p++;
    const double y = sum(r);
    if (isnan(x) || isnan(y))
        return NAN;
    return how == '=' ? x == y : how == '<' ? x < y : x > y;
}

static double choose(struct reader *r)
{
    const double x = compare(r);
    if (!take(r, '?'))
        return x;
    const double yes = choose(r);
    const double no = take(r, ':') ? choose(r) : NAN;
    return !isnan(x) && x != 0 ? yes : no;
}

double gg_convert_eval_n(const struct gguf_convert *c, const char *text,
                         size_t n, int64_t layer)
{
    struct reader r = { c, text, text + n, layer };
    const double x = choose(&r);
    assert(!peek(&r));
    return x;
}

double gg_convert_eval(const struct gguf_convert *c, const char *text,
                       int64_t layer)
{
    return gg_convert_eval_n(c, text, strlen(text), layer);
}
