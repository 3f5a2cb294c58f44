/* SPDX-License-Identifier: MIT */
/* note.c - lines for the caller about what a conversion decided */
#include "config.h"
#include "convert/convert.h"

#include <stdarg.h>
#include <stdio.h>

void gg_convert_note(const struct gguf_convert *c, const char *format, ...)
{
    char line[512];
    va_list args;
    if (!c->p.note)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    c->p.note(c->p.note_user, line);
}
