/* SPDX-License-Identifier: MIT */
/* part_check.c - checks of the settings, notes and numbers of a part
 *
 * A part is untrusted input. Each note and setting that is read has a kind and
 * a range here, and so has each number of a chunk; code that uses them does not
 * check again.
 */
#include "config.h"
#include "tools/ppl/part.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <gguf/dtype.h>
#include <gguf/text.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    NUMBER,  /* decimal number up to .most; "" is 0 */
    SECONDS, /* a time in seconds; "" is 0 */
    DTYPE,   /* number of a tensor type; "" is 0 */
    DIGEST,  /* NAME:HEX; "" or "-": no digest */
    MEMBERS  /* members of a JSON object, as text */
};

struct row {
    const char *name;
    enum kind kind;
    uint64_t most;
};

/* Notes that are used. Those of texts, files and names may be any text. */
static const struct row notes[] = {
    { "seconds", SECONDS, 0 },          { "scored", NUMBER, UINT32_MAX },
    { "skipped", NUMBER, INT64_MAX },   { "tasks", NUMBER, INT64_MAX },
    { "text.size", NUMBER, INT64_MAX }, { "cache_k", DTYPE, UINT32_MAX },
    { "cache_v", DTYPE, UINT32_MAX },   { "text.digest", DIGEST, 0 },
    { "text.json", MEMBERS, 0 },        { "settings.json", MEMBERS, 0 },
};
static const struct row of_model[] = {
    { "size", NUMBER, INT64_MAX },
    { "params", NUMBER, INT64_MAX },
    { "digest", DIGEST, 0 },
    { "json", MEMBERS, 0 },
};
static const struct row settings[] = {
    { "ctx_size", NUMBER, INT32_MAX },
    { "stride", NUMBER, INT32_MAX },
    { "hf", NUMBER, 1 },
    { "compat", NUMBER, 1 },
};

enum { MEMBERS_DEPTH = 16 }; /* nested objects and lists in a note */

bool ppl_parse_number(const char **p, uint64_t most, uint64_t *out)
{
    const char *s = *p;
    uint64_t n = 0;
    for (; *s >= '0' && *s <= '9'; s++) {
        const uint64_t digit = (uint64_t)(*s - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    if (s == *p || n > most)
        return false;
    *p = s;
    *out = n;
    return true;
}

static enum gguf_status count_depth(void *user,
                                    const struct gguf_json_value *v,
                                    struct gguf_error *err)
{
    unsigned *depth = user;
    *depth += v->kind == GGUF_JSON_ARRAY || v->kind == GGUF_JSON_OBJECT;
    *depth -= v->kind == GGUF_JSON_END;
    return *depth <= MEMBERS_DEPTH
               ? GGUF_OK
               : gguf_error_set(err, GGUF_E_LIMIT,
                                "JSON has more than %d levels",
                                (int)MEMBERS_DEPTH);
}

static bool are_members(const char *text, struct gguf_error *err)
{
    struct text all = { NULL, 0, 0 };
    unsigned depth = 0;
    text_addf(&all, "{%s}", text);
    gguf_error_clear(err);
    const enum gguf_status st = gguf_json_walk(
        (struct gguf_str){ all.s, all.n },
        (struct gguf_json_callback){ count_depth, &depth }, err);
    text_fini(&all);
    return st == GGUF_OK;
}

static bool is_kind(const struct row *row, const char *value,
                    struct gguf_error *err)
{
    struct gguf_digest d;
    uint64_t n = 0;
    char *end;
    const char *p = value;
    const bool number =
        !*value || (ppl_parse_number(&p, row->most, &n) && !*p);
    switch (row->kind) {
    case NUMBER: return number;
    case SECONDS: {
        const double x = *value ? strtod(value, &end) : 0;
        return !*value || (!*end && x >= 0 && x < 1e12);
    }
    case DTYPE: return number && gguf_dtype_find((uint32_t)n);
    case DIGEST:
        return !*value || !strcmp(value, "-") || ev_parse_digest(value, &d);
    default: return are_members(value, err);
    }
}

/* Check a value, which may be NULL. prefix: the part of its name before that of
 * the row. */
static bool check_value(const char *path, const char *what, const char *prefix,
                        const struct row *row, const char *value)
{
    static const char *const kinds[] = { "a number in its range", "seconds",
                                         "the number of a tensor type",
                                         "a digest",
                                         "members of a JSON object" };
    struct gguf_error err;
    gguf_error_clear(&err);
    if (!value || is_kind(row, value, &err))
        return true;
    return msg_error(path, "%s '%s%s' is '%.40s', expected %s%s%s", what,
                     prefix, row->name, value, kinds[row->kind],
                     err.message[0] ? ": " : "", err.message);
}

static bool check_model(const char *path, const struct gguf_part *p,
                        const char *prefix)
{
    bool good = true;
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model && good; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", prefix, of_model[i].name);
        good = check_value(path, "note", prefix, &of_model[i],
                           gguf_part_note(p, name));
    }
    return good;
}

static bool check_notes(const char *path, const struct gguf_part *p,
                        size_t n_models)
{
    bool good = check_model(path, p, "base.");
    for (size_t i = 0; i < sizeof notes / sizeof *notes && good; i++)
        good = check_value(path, "note", "", &notes[i],
                           gguf_part_note(p, notes[i].name));
    for (size_t i = 0; i < n_models && good; i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "model.%zu.", i);
        good = check_model(path, p, prefix);
    }
    const char *name, *value;
    for (size_t i = 0; good && (name = gguf_part_setting(p, i, &value)); i++)
        for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
            if (!strcmp(name, settings[k].name))
                good = check_value(path, "setting", "", &settings[k], value) &&
                       good;
    return good;
}

/* ---- numbers of chunks ---- */

/* Above all scores that single-precision logits can give. */
#define MOST_SCORE 1e39

static bool is_whole(double x, double least, double most)
{
    return x >= least && x <= most && x == floor(x);
}

/* Is x in the range of number i of a row? */
static bool is_value(const struct ppl_measure *m, size_t i, double x)
{
    if (m->task && i == PPL_TASK_TOKENS)
        return is_whole(x, 1, INT32_MAX);
    if ((m->task && i == PPL_TASK_RIGHT) ||
        (m->side && i % PPL_VALUES == PPL_VALUES - 1))
        return x == 0 || x == 1;
    return fabs(x) <= MOST_SCORE;
}

static bool check_chunk(const char *path, const struct gguf_part *p,
                        const struct ppl_measure *m, size_t chunk)
{
    size_t n_rows = 0;
    const size_t n = gguf_part_n_row_values(p);
    const double *head = gguf_part_chunk_values(p, chunk);
    const double *v = gguf_part_row_values(p, chunk, &n_rows);
    bool good = n_rows <= UINT32_MAX;
    for (size_t i = 0; v && i < m->n_heads && good; i++)
        good = is_whole(head[i], 0,
                        !m->task && i == PPL_FIRST ? UINT32_MAX : 0x1p53);
    for (size_t i = 0; v && i < n_rows * n && good; i++)
        good = is_value(m, i % n, v[i]);
    if (!good)
        msg_error(path, "chunk %zu has a number that is out of range for %s",
                  chunk, m->name);
    return good;
}

const struct ppl_measure *ppl_part_find_measure(const struct gguf_part *p)
{
    const char *name, *value;
    const struct ppl_measure *m = ppl_measures;
    for (size_t i = 0; (name = gguf_part_setting(p, i, &value)); i++)
        if (!strcmp(name, "measure"))
            break;
    while (m->name && (!name || strcmp(m->name, value) != 0))
        m++;
    const size_t n = gguf_part_n_row_values(p);
    if (m->name && gguf_part_n_chunk_values(p) == m->n_heads &&
        (m->side ? n % m->n_values == 0 : n == m->n_values))
        return m;
    msg_error(NULL, "unknown measure '%.40s' with %zu numbers in each row",
              name ? value : "", n);
    return NULL;
}

bool ppl_part_check(const char *path, const struct gguf_part *p)
{
    const struct ppl_measure *m = ppl_part_find_measure(p);
    bool good =
        m &&
        check_notes(path, p,
                    m->side ? gguf_part_n_row_values(p) / m->n_values : 1);
    for (size_t i = 0; good && i < gguf_part_n_chunks(p); i++)
        good = check_chunk(path, p, m, i);
    return good;
}
