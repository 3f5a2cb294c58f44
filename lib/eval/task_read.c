/* SPDX-License-Identifier: MIT */
/* task_read.c - read tasks in llama.cpp's forms */
#include "config.h"
#include "eval/task_int.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/str.h"

#include <string.h>

bool gg_eval_task_next_line(const char **data, size_t *size,
                            struct gguf_str *line)
{
    if (!*size)
        return false;
    const char *end = memchr(*data, '\n', *size);
    size_t n = end ? (size_t)(end - *data) : *size;
    *line = (struct gguf_str){ *data, n };
    if (n && (*data)[n - 1] == '\r')
        line->size--;
    n += end != NULL;
    *data += n;
    *size -= n;
    return true;
}

/* A small number that is the whole text; -1: it is not. */
static int parse_number(struct gguf_str s)
{
    while (s.size && s.data[s.size - 1] == ' ')
        s.size--;
    if (!s.size || s.size > 3)
        return -1;
    int v = 0;
    for (size_t i = 0; i < s.size; i++) {
        if (s.data[i] < '0' || s.data[i] > '9')
            return -1;
        v = v * 10 + (s.data[i] - '0');
    }
    return v;
}

/* ---- HellaSwag: six lines ---- */

static enum gguf_status read_six(struct gguf_tasks *t, const char *data,
                                 size_t size, struct gg_eval_task_raw *raw,
                                 struct gguf_error *err)
{
    enum { ENDINGS = 4, LINES = ENDINGS + 2 };
    const char *begin = data;
    struct gguf_str line, six[LINES];
    for (size_t no = 1;; no += LINES) {
        const uint64_t off = (uint64_t)(data - begin);
        size_t n = 0;
        while (n < LINES && gg_eval_task_next_line(&data, &size, &line))
            six[n++] = line;
        if (!n)
            return GGUF_OK;
        if (n < LINES)
            return gg_error_set(err, GGUF_E_TRUNCATED, off,
                                "line %zu: a task of %d lines has %zu", no,
                                LINES, n);
        const int right = parse_number(six[1]);
        if (right < 0 || right >= ENDINGS)
            return gg_error_set(err, GGUF_E_FORMAT,
                                (uint64_t)(six[1].data - begin),
                                "line %zu is not the number of an ending, 0 "
                                "to 3",
                                no + 1);
        *raw = (struct gg_eval_task_raw){ .before = six[0], .n = ENDINGS };
        memcpy(raw->answer, six + 2, ENDINGS * sizeof *six);
        raw->right[right] = 1;
        GG_TRY(gg_eval_task_add(t, raw, no, off, err));
    }
}

/* ---- WinoGrande: CSV ---- */

/* Take the next field of a line; quotes are removed in place. */
static bool next_field(struct gguf_str *line, char *to, struct gguf_str *out)
{
    size_t i = 0, n = 0;
    const bool quoted = line->size && line->data[0] == '"';
    for (i += quoted; i < line->size; i++) {
        const char c = line->data[i];
        if (quoted && c == '"') {
            if (i + 1 == line->size || line->data[i + 1] != '"')
                break;
            i++;
        } else if (!quoted && c == ',') {
            break;
        }
        to[n++] = c;
    }
    if (quoted && i++ >= line->size)
        return false; /* the closing quote is missing */
    if (i < line->size && line->data[i] != ',')
        return false;
    *out = (struct gguf_str){ to, n };
    i += i < line->size;
    line->data += i;
    line->size -= i;
    return true;
}

static enum gguf_status read_row(struct gguf_tasks *t, struct gguf_str line,
                                 size_t no, uint64_t off, char *room,
                                 struct gg_eval_task_raw *raw,
                                 struct gguf_error *err)
{
    enum { NUMBER, SENTENCE, FIRST, SECOND, ANSWER, FIELDS };
    struct gguf_str f[FIELDS];
    size_t n = 0;
    while (n < FIELDS && line.size && next_field(&line, room, &f[n]))
        room += f[n++].size;
    const int right = n == FIELDS && !line.size ? parse_number(f[ANSWER]) : -1;
    *raw = (struct gg_eval_task_raw){ .n = 2 };
    if (right != 1 && right != 2)
        return gg_error_set(err, GGUF_E_FORMAT, off,
                            "line %zu is not number,sentence,name,name,1 or "
                            "2",
                            no);
    if (!gg_eval_task_split_blank(f[SENTENCE], raw))
        return gg_error_set(err, GGUF_E_FORMAT, off,
                            "line %zu: the sentence has not one blank, _, "
                            "with text after it",
                            no);
    raw->answer[0] = f[FIRST];
    raw->answer[1] = f[SECOND];
    raw->right[right - 1] = 1;
    return gg_eval_task_add(t, raw, no, off, err);
}

static enum gguf_status read_rows(struct gguf_tasks *t, const char *data,
                                  size_t size, struct gg_eval_task_raw *raw,
                                  struct gguf_error *err)
{
    const char *begin = data;
    struct gguf_str line;
    char *room = gg_mem_alloc(t->allocator, size + 1);
    enum gguf_status st = GGUF_OK;
    if (!room)
        return gg_error_set_nomem(err, size + 1);
    for (size_t no = 1;
         st == GGUF_OK && gg_eval_task_next_line(&data, &size, &line); no++)
        if (line.size)
            st = read_row(t, line, no, (uint64_t)(line.data - begin), room,
                          raw, err);
    gg_mem_free(t->allocator, room);
    return st;
}

/* ---- multiple choice: bytes ---- */

static enum gguf_status read_text(struct gg_cursor *c, struct gguf_str *out,
                                  struct gguf_error *err)
{
    uint32_t n;
    const uint8_t *p = NULL;
    GG_TRY(gg_cursor_u32(c, &n, "the size of a text", err));
    GG_TRY(gg_cursor_take(c, n, &p, "a text", err));
    *out = (struct gguf_str){ (const char *)p, n };
    return GGUF_OK;
}

static enum gguf_status read_answers(struct gg_cursor *c,
                                     struct gg_eval_task_raw *raw,
                                     struct gguf_error *err)
{
    uint32_t n, label;
    uint64_t at = c->off;
    GG_TRY(gg_cursor_u32(c, &n, "the number of answers", err));
    if (n > GG_EVAL_MOST_ANSWERS)
        return gg_error_set(err, GGUF_E_LIMIT, at,
                            "%" PRIu32 " answers at byte %" PRIu64
                            ", limit is %d",
                            n, at, GG_EVAL_MOST_ANSWERS);
    raw->n = n;
    for (uint32_t i = 0; i < n; i++)
        GG_TRY(read_text(c, &raw->answer[i], err));
    for (uint32_t i = 0; i < n; i++) {
        at = c->off;
        GG_TRY(gg_cursor_u32(c, &label, "a label", err));
        if (label > 1)
            return gg_error_set(err, GGUF_E_FORMAT, at,
                                "the label at byte %" PRIu64 " is %" PRIu32
                                ", must be 0 or 1",
                                at, label);
        raw->right[i] = (uint8_t)label;
    }
    return GGUF_OK;
}

static enum gguf_status read_bytes(struct gguf_tasks *t, const void *data,
                                   size_t size, struct gg_eval_task_raw *raw,
                                   struct gguf_error *err)
{
    struct gg_cursor c = { .base = data, .size = size }, at;
    uint32_t n, off;
    GG_TRY(gg_cursor_u32(&c, &n, "the number of tasks", err));
    if (n > gg_cursor_left(&c) / 16)
        return gg_error_set(err, GGUF_E_FORMAT, 0,
                            "%" PRIu32 " tasks in %zu bytes: neither JSON "
                            "lines nor a file of choices",
                            n, size);
    const uint64_t first = 4 + 4 * (uint64_t)n;
    for (uint32_t i = 0; i < n; i++) {
        GG_TRY(gg_cursor_u32(&c, &off, "the offset of a task", err));
        if (off < first || off > size)
            return gg_error_set(err, GGUF_E_TRUNCATED, c.off - 4,
                                "task %" PRIu32 " is said to begin at byte "
                                "%" PRIu32 ", must be %" PRIu64 " to %zu",
                                i, off, first, size);
        at = (struct gg_cursor){ .base = data, .size = size, .off = off };
        *raw = (struct gg_eval_task_raw){ .n = 0 };
        GG_TRY(read_text(&at, &raw->before, err));
        GG_TRY(read_answers(&at, raw, err));
        GG_TRY(gg_eval_task_add(t, raw, i + 1, off, err));
    }
    return GGUF_OK;
}

/* ---- all kinds ---- */

static enum gguf_status read_all(struct gguf_tasks *t, const void *data,
                                 size_t size, struct gg_eval_task_raw *raw,
                                 struct gguf_error *err)
{
    static enum gguf_status (*const readers[])(
        struct gguf_tasks *, const char *, size_t, struct gg_eval_task_raw *,
        struct gguf_error *) = {
        [GGUF_TASK_HELLASWAG] = read_six, [GGUF_TASK_WINOGRANDE] = read_rows
    };
    if (gg_eval_task_is_json(data, size))
        return gg_eval_task_read_json(t, data, size, raw, err);
    return t->kind == GGUF_TASK_CHOICE
               ? read_bytes(t, data, size, raw, err)
               : readers[t->kind](t, data, size, raw, err);
}

enum gguf_status gguf_tasks_parse(struct gguf_tasks **out,
                                  enum gguf_task_kind kind, const void *data,
                                  size_t size,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    *out = NULL;
    if ((unsigned)kind > GGUF_TASK_CHOICE)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "kind %d of tasks, must be 0 to 2", (int)kind);
    struct gguf_tasks *t = gg_mem_alloc_zero(allocator, 1, sizeof *t);
    struct gg_eval_task_raw *raw = gg_mem_alloc(allocator, sizeof *raw);
    enum gguf_status st = GGUF_OK;
    if (t) {
        t->allocator = allocator;
        t->kind = kind;
        gg_mem_arena_init(&t->arena, allocator);
    }
    st = t && raw ? read_all(t, data, size, raw, err)
                  : gg_error_set_nomem(err, sizeof *raw);
    gg_mem_free(allocator, raw);
    if (st == GGUF_OK && !t->n)
        st = gg_error_set(err, GGUF_E_NOTFOUND, 0, "the file has no task");
    if (st == GGUF_OK)
        *out = t;
    else
        gguf_tasks_destroy(t);
    return st;
}
