/* SPDX-License-Identifier: MIT */
/* jsonl.c - reading texts from lines of JSON */
#include "config.h"
#include "tools/common/jsonl.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <gguf/text.h>

#include <stdlib.h>
#include <string.h>

/* Read the next line that is not white space. Returns false at the end. */
static bool take_line(struct jsonl *j, struct gguf_str *line)
{
    while (j->size) {
        const char *end = memchr(j->data, '\n', j->size);
        const size_t n = end ? (size_t)(end - j->data) : j->size;
        *line = (struct gguf_str){ j->data, n };
        j->data += end ? n + 1 : n;
        j->size -= end ? n + 1 : n;
        j->line++;
        for (size_t i = 0; i < n; i++)
            if (!strchr(" \t\r", line->data[i]) || !line->data[i])
                return true;
    }
    return false;
}

/* Result of parsing a line: the wanted member, and all names of members. */
struct line {
    const struct jsonl *j;
    unsigned depth;
    bool object; /* the line is a JSON object */
    struct text names;
    char *text;
    size_t size;
};

static enum gguf_status find_member(void *user,
                                    const struct gguf_json_value *v,
                                    struct gguf_error *err)
{
    struct line *l = user;
    char name[120];
    (void)err;
    l->object |= !l->depth && v->kind == GGUF_JSON_OBJECT;
    if (l->depth == 1 && v->name.data) {
        if (v->kind == GGUF_JSON_STRING && !l->text &&
            v->name.size == strlen(l->j->field) &&
            !memcmp(v->name.data, l->j->field, v->name.size)) {
            l->text = msg_must(malloc(v->string.size + 1));
            memcpy(l->text, v->string.data, v->string.size);
            l->size = v->string.size;
        }
        gguf_text_escape(name, sizeof name, v->name);
        if (l->names.n <= 200)
            text_addf(&l->names, "%s'%s'%s", l->names.n ? ", " : "", name,
                      v->kind == GGUF_JSON_STRING ? "" : " (no text)");
    }
    l->depth += v->kind == GGUF_JSON_OBJECT || v->kind == GGUF_JSON_ARRAY;
    l->depth -= v->kind == GGUF_JSON_END;
    return GGUF_OK;
}

int jsonl_next(struct jsonl *j, struct gguf_str *text)
{
    struct line l = { .j = j };
    struct gguf_str s;
    struct gguf_error err;
    jsonl_fini(j);
    if (!take_line(j, &s))
        return 0;
    gguf_error_clear(&err);
    const enum gguf_status st = gguf_json_walk(
        s, (struct gguf_json_callback){ find_member, &l }, &err);
    if (st == GGUF_E_NOMEM)
        msg_fail(j->path, &err);
    else if (st != GGUF_OK || !l.object)
        msg_error(j->path, "line %zu is not a JSON object%s%s", j->line,
                  st == GGUF_OK ? "" : ": ", st == GGUF_OK ? "" : err.message);
    else if (!l.text)
        msg_error(j->path, "line %zu has no text '%s'; it has %s", j->line,
                  j->field, l.names.n ? l.names.s : "no member");
    text_fini(&l.names);
    j->text = l.text;
    *text = (struct gguf_str){ l.text, l.size };
    return l.text ? 1 : -1;
}

void jsonl_fini(struct jsonl *j)
{
    free(j->text);
    j->text = NULL;
}
