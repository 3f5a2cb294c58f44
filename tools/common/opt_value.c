/* SPDX-License-Identifier: MIT */
/* opt_value.c - storing the arguments of options */
#include "config.h"
#include "tools/common/opt_internal.h"
#include "tools/common/text.h"
#include "tools/common/nocase.h"

#include <gguf/split.h>
#include <gguf/text.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Report the argument of u, which is not one that the row allows. */
static _Noreturn void fail_value(const struct opt_use *u, const char *fmt, ...)
    MSG_PRINTF(2, 3);

static _Noreturn void fail_value(const struct opt_use *u, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    opt_usage("%.*s: %s", u->name.n, u->name.s, why);
}

/* ---- what kinds have in common ---- */

static void put_uint(const struct opt_use *u, void *member, uint64_t v)
{
    const uint8_t v8 = (uint8_t)v;
    const uint32_t v32 = (uint32_t)v;
    size_t size = u->row->size;
    assert(size <= 1 || size == sizeof v32 || size == sizeof v);
    if (size)
        memcpy(member,
               size == sizeof v     ? (const void *)&v
               : size == sizeof v32 ? (const void *)&v32
                                    : (const void *)&v8,
               size);
}

static const struct opt_word *find_word(const struct opt *o, const char *text)
{
    for (const struct opt_word *w = o->words; w && w->word; w++)
        if (nocase_equals(w->word, text))
            return w;
    return NULL;
}

/* Write a list such as "'a', 'b' or 'c'". */
static const char *list_words(const struct opt_word *w, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; w && w[i].word && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s'%s'",
                               !i              ? ""
                               : w[i + 1].word ? ", "
                                               : " or ",
                               w[i].word);
    return out;
}

bool opt_parse_u64(const char *text, uint64_t *v)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *v = strtoull(text, &end, 10);
    return !*end && !errno;
}

const char *opt_check_output(const char *path)
{
    if (path && !strcmp(path, "-"))
        opt_usage(
            "an output must be a file, not a pipe ('./-' is a file with the "
            "name '-')");
    return path;
}

/* ---- the kinds ---- */

static void store_flag(const struct opt_use *u, void *member)
{
    put_uint(u, member, u->row->value ? u->row->value : 1);
}

/* Read a number; "8k" is 8 times 1024, and "8M" 8 times 1048576, if the row
 * allows it. */
static bool parse_number(const struct opt *o, const char *text, uint64_t *v)
{
    char digits[24];
    const size_t n = strspn(text, "0123456789");
    const char unit = text[n];
    const uint64_t factor = unit == 'k' || unit == 'K'   ? 1024
                            : unit == 'm' || unit == 'M' ? 1048576
                                                         : 1;
    if (!o->kilo || factor == 1 || text[n + 1])
        return opt_parse_u64(text, v);
    if (!text_copy(digits, sizeof digits, text, n) ||
        !opt_parse_u64(digits, v) || *v > UINT64_MAX / factor)
        return false;
    *v *= factor;
    return true;
}

static void store_uint(const struct opt_use *u, void *member)
{
    const struct opt *o = u->row;
    const struct opt_word *w = u->arg ? find_word(o, u->arg) : NULL;
    char words[256];
    uint64_t v = w ? w->value : o->value;
    if (u->arg && !w &&
        (!parse_number(o, u->arg, &v) || v < o->min || v > o->max))
        fail_value(u,
                   "'%s' is not a whole number between %" PRIu64
                   " and %" PRIu64 "%s%s",
                   u->arg, o->min, o->max, o->words ? ", or " : "",
                   list_words(o->words, words, sizeof words));
    put_uint(u, member, v);
}

static void store_double(const struct opt_use *u, void *member)
{
    const struct opt *o = u->row;
    char *end;
    double v = strtod(u->arg, &end);
    assert(o->size == sizeof v);
    if (end == u->arg || *end || !(v >= o->low && v <= o->high))
        fail_value(u, "'%s' is not a number between %g and %g", u->arg, o->low,
                   o->high);
    memcpy(member, &v, sizeof v);
}

static void store_size(const struct opt_use *u, void *member)
{
    struct gguf_error err;
    uint64_t v = u->row->value;
    if (u->arg && gguf_size_parse(u->arg, &v, &err) != GGUF_OK)
        fail_value(u, "%s", err.message);
    if (!v)
        fail_value(u, "0 bytes are too few");
    put_uint(u, member, v);
}

static void store_str(const struct opt_use *u, void *member)
{
    assert(u->row->size == sizeof u->arg);
    if (u->arg)
        memcpy(member, &u->arg, sizeof u->arg);
}

static void store_out(const struct opt_use *u, void *member)
{
    (void)opt_check_output(u->arg);
    store_str(u, member);
}

static void store_word(const struct opt_use *u, void *member)
{
    const struct opt_word *w = u->arg ? find_word(u->row, u->arg) : NULL;
    char words[256], hint[GGUF_SUGGESTION_SIZE];
    struct gguf_suggestion near;
    if (u->arg && !w) {
        gguf_suggestion_init(&near,
                             (struct gguf_str){ u->arg, strlen(u->arg) });
        for (w = u->row->words; w->word; w++)
            gguf_suggestion_try(&near,
                                (struct gguf_str){ w->word, strlen(w->word) });
        fail_value(u, "'%s' is not %s%s", u->arg,
                   list_words(u->row->words, words, sizeof words),
                   gguf_suggestion_text(&near, hint));
    }
    put_uint(u, member, w ? w->value : u->row->value);
}

static void store_list(const struct opt_use *u, void *member)
{
    struct opt_list *l = member;
    assert(u->row->size == sizeof *l);
    size_t room = l->room;
    l->arg = msg_grow(l->arg, &room, l->n + 1, sizeof *l->arg);
    l->value = msg_grow(l->value, &l->room, l->n + 1, sizeof *l->value);
    l->arg[l->n] = u->arg;
    l->value[l->n++] = u->row->value;
}

void opt_list_fini(struct opt_list *l)
{
    free(l->arg);
    free(l->value);
    *l = (struct opt_list){ NULL, NULL, 0, 0 };
}

static void store_limit(const struct opt_use *u, void *member)
{
    char name[64];
    const char *eq = strchr(u->arg, '=');
    uint64_t n;
    struct gguf_error err;
    assert(u->row->size == sizeof(struct gguf_limits));
    if (!eq || !text_copy(name, sizeof name, u->arg, (size_t)(eq - u->arg)) ||
        !opt_parse_u64(eq + 1, &n))
        fail_value(u, "'%s' is not NAME=N", u->arg);
    if (gguf_limits_set(member, name, n, &err) != GGUF_OK)
        fail_value(u, "%s", err.message);
}

typedef void store_fn(const struct opt_use *u, void *member);

static store_fn *const stores[] = {
    [OPT_FLAG] = store_flag,     [OPT_UINT] = store_uint,
    [OPT_DOUBLE] = store_double, [OPT_SIZE] = store_size,
    [OPT_STR] = store_str,       [OPT_OUT] = store_out,
    [OPT_WORD] = store_word,     [OPT_LIST] = store_list,
    [OPT_LIMIT] = store_limit,
};

void opt_store(const struct opt_use *u, void *options)
{
    const struct opt *o = u->row;
    stores[o->kind](u, (char *)options + o->at);
    if (o->bits) {
        char *at = (char *)options + o->bits_at;
        unsigned bits;
        memcpy(&bits, at, sizeof bits);
        bits |= o->bits;
        memcpy(at, &bits, sizeof bits);
    }
}

bool opt_accepts_arg(const struct opt *o, const char *text)
{
    bool number =
        o->kind == OPT_UINT || o->kind == OPT_DOUBLE || o->kind == OPT_SIZE;
    if (number && ((*text >= '0' && *text <= '9') || *text == '.'))
        return true;
    return o->words ? find_word(o, text) != NULL : !number;
}
