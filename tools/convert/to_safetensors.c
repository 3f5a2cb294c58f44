/* SPDX-License-Identifier: MIT */
/* to_safetensors.c - converting a GGUF file to a folder */
#include "config.h"
#include "tools/convert/convert.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"

#include <gguf/text.h>

#include <string.h>

struct notes {
    const struct convert_options *o;
    unsigned n;
};

static void print_note(void *user, const char *key)
{
    struct notes *n = user;
    char text[300];
    gguf_text_escape(text, sizeof text, (struct gguf_str){ key, strlen(key) });
    n->n++;
    if (!n->o->q.quiet)
        msg_warn(n->o->q.in, "the folder has no place for %s", text);
}

enum gguf_status write_folder(struct convert_options *o, struct progress *bar,
                              const char **about, struct gguf_error *err)
{
    struct notes n = { o, 0 };
    const double begin = progress_clock();
    struct gguf_paths *noted = paths_new();
    progress_init(bar, "writing", NULL, o->q.quiet);
    o->back.progress = (struct gguf_progress_callback){ progress_report, bar };
    o->back.note = (struct gguf_folder_note_callback){ print_note, &n };
    o->back.paths = noted;
    const enum gguf_status st =
        gguf_folder_write(o->q.in, o->folder, &o->back, err);
    progress_clear(bar);
    gguf_paths_destroy(noted);
    if (st == GGUF_E_EXIST || st == GGUF_E_NOSPACE || st == GGUF_E_MISMATCH)
        *about = o->folder;
    if (st == GGUF_OK && !o->q.quiet)
        msg_info(o->folder, "wrote the folder in %.1f s",
                 progress_clock() - begin);
    return st;
}
