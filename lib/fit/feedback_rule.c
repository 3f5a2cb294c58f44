/* SPDX-License-Identifier: MIT */
/* feedback_rule.c - forms prepared for the kernels of feedback */
#include "config.h"
#include "fit/feedback_task.h"

#include <string.h>

static void set_levels(struct gg_feedback_rule *r, const struct gg_form *f)
{
    r->kind = f->even ? GG_FEEDBACK_EVEN : GG_FEEDBACK_TABLE;
    r->n_levels = (unsigned)(f->code_hi - f->code_lo + 1);
    memcpy(r->level, f->level + f->code_lo, r->n_levels * sizeof *r->level);
    for (unsigned k = 0; k + 1 < r->n_levels; k++)
        r->mid[k] = 0.5f * (r->level[k] + r->level[k + 1]);
}

/* Number of n digits of a word from element `from` on. */
static unsigned half_of(const struct gg_form *f, unsigned word, unsigned from,
                        unsigned n_levels)
{
    const unsigned mask = (1u << f->word_bits) - 1;
    unsigned half = 0;
    for (unsigned j = from; j < from + f->group / 2u; j++)
        half = half * n_levels + (f->word[word] >> f->word_bits * j & mask);
    return half;
}

/* Sort words by their first half, and those with the same one by number:
 * counts of the halves, then places. */
static void sort_words(struct gg_feedback_words *w, const struct gg_form *f)
{
    uint16_t place[256] = { 0 };
    unsigned end = 0;
    for (unsigned k = 0; k < f->n_words; k++)
        place[half_of(f, k, 0, w->n_levels)]++;
    for (unsigned h = 0; h < GG_LEN(place); h++) {
        const unsigned first = end;
        end += place[h];
        place[h] = (uint16_t)first;
        if (end == first)
            continue;
        w->run_half[w->n_runs] = (uint16_t)h;
        w->run_end[w->n_runs++] = (uint16_t)end;
    }
    for (unsigned k = 0; k < f->n_words; k++) {
        const unsigned at = place[half_of(f, k, 0, w->n_levels)]++;
        w->half[at] = (uint16_t)half_of(f, k, f->group / 2u, w->n_levels);
        w->number[at] = (float)k;
    }
}

static void set_words(struct gg_feedback_words *w, const struct gg_form *f)
{
    const unsigned mask = (1u << f->word_bits) - 1;
    w->group = f->group;
    w->n_words = f->n_words;
    w->has_signs = f->has_signs;
    w->even_signs = f->even_signs;
    w->shift_in_group = f->shift_len == f->group;
    memcpy(w->shift, f->shift, sizeof w->shift);
    for (unsigned k = 0; k < f->n_words; k++)
        for (unsigned j = 0; j < f->group; j++) {
            unsigned l = f->word[k] >> f->word_bits * j & mask;
            w->element[k][j] = (int8_t)f->word_level[l];
            w->level[l] = f->word_level[l];
            w->n_levels = GG_MAX(w->n_levels, l + 1);
        }
    sort_words(w, f);
}

void gg_feedback_rule_init(struct gg_feedback_rule *r, const struct gg_form *f)
{
    memset(r, 0, sizeof *r);
    if (f->n_levels) {
        set_levels(r, f);
    } else {
        r->kind = GG_FEEDBACK_WORDS;
        set_words(&r->words, f);
    }
}
