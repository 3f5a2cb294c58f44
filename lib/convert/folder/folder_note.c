/* SPDX-License-Identifier: MIT */
/* folder_note.c - the notes that a conversion gives its caller */
#include "config.h"
#include "convert/folder/folder.h"

#include <stdarg.h>
#include <stdio.h>

static void give_line(const struct gguf_convert_params *p,
                      enum gguf_convert_note_kind kind, const char *format,
                      va_list args)
{
    char line[512];
    if (!p->note.fn)
        return;
    vsnprintf(line, sizeof line, format, args);
    p->note.fn(p->note.user, kind, line);
}

void gg_folder_warn(const struct gg_folder *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    give_line(f->p, GGUF_CONVERT_WARNING, format, args);
    va_end(args);
}

void gg_folder_note(const struct gg_folder *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    give_line(f->p, GGUF_CONVERT_REMARK, format, args);
    va_end(args);
}
