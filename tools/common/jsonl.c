/* SPDX-License-Identifier: MIT */
/* jsonl.c - texts in lines of JSON */
#include "config.h"
#include "tools/common/jsonl.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <jansson.h>
#include <string.h>

/* The next line that has more than white space; false: there is none. */
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

/* The object has no such text: which members has it? */
static void say_members(const struct jsonl *j)
{
    struct text names = { NULL, 0, 0 };
    const char *name;
    json_t *value;
    json_object_foreach(j->root, name, value)
    {
        text_addf(&names, "%s'%s'%s", names.n ? ", " : "", name,
                  json_is_string(value) ? "" : " (no text)");
        if (names.n > 200)
            break;
    }
    msg_error(j->path, "line %zu has no text '%s'; it has %s", j->line,
              j->field, names.n ? names.s : "no member");
    text_fini(&names);
}

int jsonl_next(struct jsonl *j, struct gguf_str *text)
{
    struct gguf_str line;
    json_error_t err;
    jsonl_fini(j);
    if (!take_line(j, &line))
        return 0;
    /* integers may be longer than those that are counted with here */
    j->root = json_loadb(line.data, line.size,
                         JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL |
                             JSON_DECODE_INT_AS_REAL,
                         &err);
    if (!json_is_object(j->root)) {
        msg_error(j->path, "line %zu is not an object of JSON%s%s", j->line,
                  j->root ? "" : ": ", j->root ? "" : err.text);
        return -1;
    }
    const json_t *value = json_object_get(j->root, j->field);
    if (!json_is_string(value)) {
        say_members(j);
        return -1;
    }
    *text = (struct gguf_str){ json_string_value(value),
                               json_string_length(value) };
    return 1;
}

void jsonl_fini(struct jsonl *j)
{
    json_decref(j->root);
    j->root = NULL;
}
