/* SPDX-License-Identifier: MIT */
/* pretok_names.c - all known names of tokenizer.ggml.pre
 *
 * A name that no program knows is a mistake of the file's author, and most
 * programs refuse the model for it. */
#include "config.h"
#include "vocab/pretok.h"
#include "vocab/pretok_row.h"

#include "base/suggestion.h"
#include "base/str.h"

#include <string.h>

/* Names that llama.cpp reads (src/llama-vocab.cpp, autumn of 2026) and
 * pretok_row.c lacks. */
static const char others[] = "soprano";

/* Position in all names: a row of pretok_row.c, or the list after them, and a
 * place in it. */
struct names {
    size_t row;
    const char *at;
};

static bool next_name(struct names *it, struct gguf_str *name)
{
    while (!it->at || !*it->at) {
        const struct gg_pretok_row *row = gg_pretok_row(it->row);
        bool last = it->row && !gg_pretok_row(it->row - 1);
        if (last)
            return false;
        it->at = row ? row->names : others;
        it->row++;
    }
    *name = (struct gguf_str){ it->at, strcspn(it->at, " ") };
    it->at += name->size;
    it->at += *it->at == ' ';
    return true;
}

bool gg_pretok_is_known(struct gguf_str name)
{
    struct names it = { 0, NULL };
    struct gguf_str known;
    while (next_name(&it, &known))
        if (gg_str_eq(known, name))
            return true;
    return false;
}

void gg_pretok_suggest(struct gg_pretok_suggestions *out, struct gguf_str name)
{
    unsigned best[2] = { ~0u, ~0u };
    struct names it = { 0, NULL };
    struct gguf_str known;
    while (next_name(&it, &known)) {
        unsigned d = gg_suggestion_distance(name, known);
        bool first = d < best[0];
        if (first) {
            best[1] = best[0];
            out->name[1] = out->name[0];
        }
        if (first || d < best[1]) {
            best[!first] = d;
            out->name[!first] = known;
        }
    }
}
