/* SPDX-License-Identifier: MIT */
/* suggestion.c - find the known name that is most like an unknown one */
#include "config.h"
#include "base/suggestion.h"
#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SIZE = 64 };

/* Copy the letters of s that are compared, in lower case. Returns their
 * number. */
static unsigned take_letters(char out[MAX_SIZE], struct gguf_str s)
{
    unsigned n = 0;
    for (size_t i = 0; i < s.size && n < MAX_SIZE; i++) {
        const char c = s.data[i];
        if (c != '-' && c != '_' && c != '.' && c != ' ')
            out[n++] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    return n;
}

unsigned gg_suggestion_distance(struct gguf_str sa, struct gguf_str sb)
{
    char a[MAX_SIZE], b[MAX_SIZE];
    const unsigned n = take_letters(a, sa), m = take_letters(b, sb);
    unsigned row[3][MAX_SIZE + 1]; /* rows for i, i - 1, i - 2 letters of a */
    for (unsigned i = 0; i <= n; i++) {
        unsigned *now = row[i % 3];
        const unsigned *last = row[(i + 2) % 3], *older = row[(i + 1) % 3];
        now[0] = i;
        for (unsigned k = 1; k <= m; k++) {
            if (i == 0) {
                now[k] = k;
                continue;
            }
            const unsigned replaced = last[k - 1] + (a[i - 1] != b[k - 1]);
            now[k] = GG_MIN(replaced, GG_MIN(last[k], now[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = GG_MIN(now[k], older[k - 2] + 1);
        }
    }
    return row[n % 3][m];
}

void gguf_suggestion_init(struct gguf_suggestion *near, struct gguf_str name)
{
    char word[MAX_SIZE];
    *near = (struct gguf_suggestion){ .name = name };
    near->limit = (take_letters(word, name) + 3) / 4;
}

void gguf_suggestion_try(struct gguf_suggestion *near, struct gguf_str known)
{
    const unsigned d = gg_suggestion_distance(near->name, known);
    if (d > near->limit || (near->best.size && d >= near->distance))
        return;
    near->best = known;
    near->distance = d;
}

const char *gguf_suggestion_text(const struct gguf_suggestion *near,
                                 char out[GGUF_SUGGESTION_SIZE])
{
    struct gg_str_esc esc;
    out[0] = '\0';
    if (near->best.size)
        snprintf(out, GGUF_SUGGESTION_SIZE, "; did you mean '%.80s'?",
                 gg_str_esc(&esc, near->best));
    return out;
}
