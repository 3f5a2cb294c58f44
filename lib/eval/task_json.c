/* SPDX-License-Identifier: MIT */
/* task_json.c - read tasks from JSON lines (RFC 8259)
 *
 * Values of wanted keys are texts, numbers, and lists of these. Other values
 * are skipped, with any nesting up to a limit. */
#include "config.h"
#include "eval/task_int.h"

#include "base/str.h"

#include <string.h>

enum { DEPTH = 32 };

/* A line, and room for its texts without escapes, which are never longer. */
struct reader {
    const char *p, *end;
    char *room;
};

/* Values of the wanted keys, for all kinds. */
struct found {
    struct gguf_str stem;             /* ctx, question, sentence */
    struct gguf_str option[2], label; /* numbers, or texts of digits */
    struct gguf_str *list;            /* endings, choices */
    size_t n_list, n_labels;          /* SIZE_MAX: not given */
    uint8_t *labels;
};

static void skip_blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        r->p++;
}

/* Take c if it is next. */
static bool take_char(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

/* Take four hexadecimal digits. */
static bool take_hex(struct reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->p++) {
        static const char digits[] = "0123456789abcdef";
        const char *d = r->p < r->end && *r->p
                            ? strchr(digits, *r->p | (*r->p >= 'A' ? 32 : 0))
                            : NULL;
        if (!d)
            return false;
        *out = *out * 16 + (uint32_t)(d - digits);
    }
    return true;
}

/* Take a code point after \u, which may have two halves. */
static bool take_point(struct reader *r)
{
    uint32_t c, low;
    if (!take_hex(r, &c) || (c >= 0xdc00 && c < 0xe000))
        return false;
    if (c >= 0xd800 && c < 0xdc00) {
        if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
            return false;
        r->p += 2;
        if (!take_hex(r, &low) || low < 0xdc00 || low >= 0xe000)
            return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    if (c < 0x80) {
        *r->room++ = (char)c;
        return true;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *r->room++ = (char)((0xf00 >> more & 0xff) | (c >> (6 * more)));
    for (int i = more - 1; i >= 0; i--)
        *r->room++ = (char)(0x80 | (c >> (6 * i) & 0x3f));
    return true;
}

static bool take_text(struct reader *r, struct gguf_str *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char *begin = r->room;
    if (!take_char(r, '"'))
        return false;
    while (r->p < r->end && *r->p != '"') {
        if (*r->p != '\\') {
            *r->room++ = *r->p++;
            continue;
        }
        if (++r->p == r->end)
            return false;
        const char c = *r->p++;
        const char *at = c ? strchr(from, c) : NULL;
        if (at)
            *r->room++ = to[at - from];
        else if (c != 'u' || !take_point(r))
            return false;
    }
    *out = (struct gguf_str){ begin, (size_t)(r->room - begin) };
    return r->p < r->end && *r->p++ == '"';
}

/* Take a number, true, false or null, as it is written. */
static bool take_word(struct reader *r, struct gguf_str *out)
{
    skip_blanks(r);
    const char *begin = r->p;
    while (r->p < r->end &&
           ((*r->p >= 'a' && *r->p <= 'z') || (*r->p >= '0' && *r->p <= '9') ||
            *r->p == '-' || *r->p == '+' || *r->p == '.' || *r->p == 'E'))
        r->p++;
    *out = (struct gguf_str){ begin, (size_t)(r->p - begin) };
    return out->size != 0;
}

static bool take_scalar(struct reader *r, struct gguf_str *out)
{
    skip_blanks(r);
    return r->p < r->end && *r->p == '"' ? take_text(r, out)
                                         : take_word(r, out);
}

/* Skip any value; its depth is counted. */
static bool skip_value(struct reader *r)
{
    char close[DEPTH];
    size_t depth = 0;
    struct gguf_str s;
    do {
        if (take_char(r, '[') || take_char(r, '{')) {
            if (depth == DEPTH)
                return false;
            close[depth++] = r->p[-1] == '[' ? ']' : '}';
            if (!take_char(r, close[depth - 1])) {
                if (close[depth - 1] == '}' &&
                    (!take_text(r, &s) || !take_char(r, ':')))
                    return false;
                continue;
            }
            depth--;
        } else if (!take_scalar(r, &s)) {
            return false;
        }
        while (depth && !take_char(r, ',')) {
            if (!take_char(r, close[depth - 1]))
                return false;
            depth--;
        }
        if (depth && close[depth - 1] == '}' &&
            (!take_text(r, &s) || !take_char(r, ':')))
            return false;
    } while (depth);
    return true;
}

static bool take_list(struct reader *r, struct gguf_str *list, size_t *n)
{
    *n = 0;
    if (!take_char(r, '['))
        return false;
    if (take_char(r, ']'))
        return true;
    do {
        if (*n == GG_EVAL_MOST_ANSWERS || !take_scalar(r, &list[*n]))
            return false;
        ++*n;
    } while (take_char(r, ','));
    return take_char(r, ']');
}

/* Take labels: 0 or 1 for each answer. */
static bool take_labels(struct reader *r, struct found *f)
{
    struct gguf_str one;
    f->n_labels = 0;
    if (!take_char(r, '['))
        return false;
    do {
        if (f->n_labels == GG_EVAL_MOST_ANSWERS || !take_scalar(r, &one) ||
            one.size != 1 || (*one.data != '0' && *one.data != '1'))
            return false;
        f->labels[f->n_labels++] = *one.data == '1';
    } while (take_char(r, ','));
    return take_char(r, ']');
}

static bool take_value(struct reader *r, struct gguf_str key, struct found *f)
{
    if (gg_str_eqz(key, "ctx") || gg_str_eqz(key, "question") ||
        gg_str_eqz(key, "sentence"))
        return take_text(r, &f->stem);
    if (gg_str_eqz(key, "option1"))
        return take_text(r, &f->option[0]);
    if (gg_str_eqz(key, "option2"))
        return take_text(r, &f->option[1]);
    if (gg_str_eqz(key, "label") || gg_str_eqz(key, "answer"))
        return take_scalar(r, &f->label);
    if (gg_str_eqz(key, "endings") || gg_str_eqz(key, "choices"))
        return take_list(r, f->list, &f->n_list);
    return gg_str_eqz(key, "labels") ? take_labels(r, f) : skip_value(r);
}

static bool take_object(struct reader *r, struct found *f)
{
    struct gguf_str key;
    if (!take_char(r, '{'))
        return false;
    if (!take_char(r, '}')) {
        do {
            if (!take_text(r, &key) || !take_char(r, ':') ||
                !take_value(r, key, f))
                return false;
        } while (take_char(r, ','));
        if (!take_char(r, '}'))
            return false;
    }
    skip_blanks(r);
    return r->p == r->end;
}

/* ---- using the values ---- */

/* Index of the right answer, counted from first in the text; -1: it is not
 * such a number. */
static int64_t index_of(struct gguf_str s, int first, size_t n)
{
    size_t v = 0;
    for (size_t i = 0; i < s.size; i++) {
        if (s.data[i] < '0' || s.data[i] > '9' || v > n)
            return -1;
        v = v * 10 + (size_t)(s.data[i] - '0');
    }
    return s.size && v >= (size_t)first && v < n + (size_t)first
               ? (int64_t)(v - (size_t)first)
               : -1;
}

static enum gguf_status refuse_missing(size_t no, uint64_t off,
                                       const char *what,
                                       struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_FORMAT, off, "line %zu: %s", no, what);
}

static enum gguf_status use_fields(struct gguf_tasks *t, struct found *f,
                                   size_t no, uint64_t off,
                                   struct gg_eval_task_raw *raw,
                                   struct gguf_error *err)
{
    const bool gap = t->kind == GGUF_TASK_WINOGRANDE;
    const char *const stems[] = { "there is no \"ctx\"",
                                  "there is no \"sentence\"",
                                  "there is no \"question\"" };
    if (!f->stem.data)
        return refuse_missing(no, off, stems[t->kind], err);
    raw->before = f->stem;
    raw->n = f->n_list;
    if (gap) {
        if (!f->option[0].data || !f->option[1].data)
            return refuse_missing(
                no, off, "\"option1\" or \"option2\" is missing", err);
        if (!gg_eval_task_split_blank(f->stem, raw))
            return refuse_missing(
                no, off,
                "\"sentence\" has not one blank, _, with text after "
                "it",
                err);
        raw->n = 2;
        memcpy(raw->answer, f->option, sizeof f->option);
    } else if (!raw->n) {
        return refuse_missing(no, off,
                              "\"endings\" or \"choices\" are missing", err);
    }
    if (t->kind == GGUF_TASK_CHOICE && f->n_labels != SIZE_MAX)
        return f->n_labels == raw->n
                   ? gg_eval_task_add(t, raw, no, off, err)
                   : refuse_missing(no, off,
                                    "there are not as many \"labels\"", err);
    memset(raw->right, 0, sizeof raw->right);
    const int64_t right = index_of(f->label, gap, raw->n);
    if (right < 0)
        return refuse_missing(
            no, off, "\"label\" or \"answer\" is not the number of an answer",
            err);
    raw->right[right] = 1;
    return gg_eval_task_add(t, raw, no, off, err);
}

bool gg_eval_task_is_json(const char *data, size_t size)
{
    struct reader r = { data, data + size, NULL };
    while (r.p < r.end &&
           (*r.p == ' ' || *r.p == '\t' || *r.p == '\n' || *r.p == '\r'))
        r.p++;
    return r.p < r.end && *r.p == '{';
}

enum gguf_status gg_eval_task_read_json(struct gguf_tasks *t, const char *data,
                                        size_t size,
                                        struct gg_eval_task_raw *raw,
                                        struct gguf_error *err)
{
    const char *begin = data;
    char *room = gg_mem_alloc(t->allocator, size + 1);
    enum gguf_status st = GGUF_OK;
    struct gguf_str line;
    if (!room)
        return gg_error_set_nomem(err, size + 1);
    for (size_t no = 1;
         st == GGUF_OK && gg_eval_task_next_line(&data, &size, &line); no++) {
        struct reader r = { line.data, line.data + line.size, room };
        struct found f = { .list = raw->answer,
                           .labels = raw->right,
                           .n_labels = SIZE_MAX };
        const uint64_t off = (uint64_t)(line.data - begin);
        skip_blanks(&r);
        if (r.p == r.end)
            continue;
        raw->after = (struct gguf_str){ NULL, 0 };
        st = take_object(&r, &f)
                 ? use_fields(t, &f, no, off, raw, err)
                 : gg_error_set(err, GGUF_E_FORMAT,
                                off + (uint64_t)(r.p - line.data),
                                "line %zu is not an object of such a task, at "
                                "character %zu",
                                no, (size_t)(r.p - line.data) + 1);
    }
    gg_mem_free(t->allocator, room);
    return st;
}
