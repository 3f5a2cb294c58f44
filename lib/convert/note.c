/* SPDX-License-Identifier: MIT */
/* note.c - the notes that a conversion gives its caller */
#include "config.h"
#include "convert/convert_int.h"

#include <stdarg.h>
#include <stdio.h>

static void give_line(const struct gguf_convert *c,
                      enum gguf_convert_note kind, const char *format,
                      va_list args)
{
    char line[512];
    if (!c->p.note)
        return;
    vsnprintf(line, sizeof line, format, args);
    c->p.note(c->p.note_user, kind, line);
}

void gg_convert_warn(const struct gguf_convert *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    give_line(c, GGUF_CONVERT_WARNING, format, args);
    va_end(args);
}

void gg_convert_note(const struct gguf_convert *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    give_line(c, GGUF_CONVERT_REMARK, format, args);
    va_end(args);
}
