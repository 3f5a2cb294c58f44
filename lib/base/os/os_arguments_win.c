/* SPDX-License-Identifier: MIT */
/* os_arguments_win.c - arguments of a program, on Windows */
#include "config.h"
#include "base/os/os_command_line.h"
#include "base/os/os_program.h"
#include "base/os/os_win.h"

#include <stdlib.h>
#include <string.h>

/* Arguments, with room for one more and NULL. */
struct list {
    char **text;
    size_t n, room;
};

static bool add_text(struct list *l, char *text)
{
    if (l->n + 1 >= l->room) {
        const size_t room = 2 * l->room + 8;
        char **grown = realloc(l->text, room * sizeof *grown);
        if (!grown)
            return false;
        l->text = grown;
        l->room = room;
    }
    l->text[l->n++] = text;
    l->text[l->n] = NULL;
    return true;
}

/* Add the paths that match a pattern, or the word if none does. */
static bool add_word(struct list *l, const struct gg_os_word *word)
{
    struct gg_os_paths found;
    if (!word->is_pattern || gg_os_paths_find(&found, word->text, false) != 0)
        return add_text(l, word->text);
    for (size_t i = 0; i < found.n; i++)
        if (!add_text(l, found.path[i]))
            return false;
    free(found.path);
    return true;
}

void gg_os_program_arguments(int *argc, char ***argv)
{
    struct list l = { NULL, 0, 0 };
    char *line = gg_os_win_utf8(GetCommandLineW());
    const size_t n = line ? strlen(line) : 0;
    char *text = malloc(n + 2); /* kept: arguments point into it */
    struct gg_os_word *words = calloc(n / 2 + 2, sizeof *words);
    bool good = line && text && words;
    const size_t n_words =
        good ? gg_os_command_line_split(line, text, words) : 0;
    for (size_t i = 0; good && i < n_words; i++)
        good = add_word(&l, &words[i]);
    free(line);
    free(words);
    if (!good) { /* out of memory: the system's arguments stay */
        free(text);
        free(l.text);
        return;
    }
    *argc = (int)l.n;
    *argv = l.text;
}
