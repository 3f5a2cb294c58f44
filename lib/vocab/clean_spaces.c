/* SPDX-License-Identifier: MIT */
/* clean_spaces.c - remove the blanks that WordPiece put before punctuation
 *
 * There are three steps; each passes on the characters about which it is sure.
 */
#include "config.h"
#include "vocab/clean_spaces.h"

/* Remove the blank of " 's", " 'm", " 're" and " 've". */
static void clean_contraction(struct gg_vocab_space_cleaner *c, char x)
{
    bool pair = c->contraction == 2 && (x == 's' || x == 'm');
    bool triple = c->contraction == 3 && x == 'e';
    if ((c->contraction == 1 && x == '\'') ||
        (c->contraction == 2 && (x == 'r' || x == 'v'))) {
        c->contraction++;
        c->letter = x;
        return;
    }
    if (c->contraction && !pair && !triple)
        gg_vocab_sink_put(c->out, ' ');
    if (c->contraction >= 2)
        gg_vocab_sink_put(c->out, '\'');
    if (c->contraction == 3)
        gg_vocab_sink_put(c->out, c->letter);
    c->contraction = x == ' ';
    if (x != ' ')
        gg_vocab_sink_put(c->out, x);
}

/* Remove both blanks of " ' ". */
static void clean_quote(struct gg_vocab_space_cleaner *c, char x)
{
    if (c->apart == 1 && x == '\'') {
        c->apart = 2;
        return;
    }
    if (c->apart == 2 && x == ' ') {
        c->apart = 0;
        clean_contraction(c, '\'');
        return;
    }
    if (c->apart)
        clean_contraction(c, ' ');
    if (c->apart == 2)
        clean_contraction(c, '\'');
    c->apart = x == ' ';
    if (x != ' ')
        clean_contraction(c, x);
}

void gg_vocab_clean_put(struct gg_vocab_space_cleaner *c, char x)
{
    if (c->blank && x != '?' && x != '!' && x != '.' && x != ',')
        clean_quote(c, ' ');
    c->blank = x == ' ';
    if (x != ' ')
        clean_quote(c, x);
}

void gg_vocab_clean_end(struct gg_vocab_space_cleaner *c)
{
    if (c->blank)
        clean_quote(c, ' ');
    if (c->apart)
        clean_contraction(c, ' ');
    if (c->apart == 2)
        clean_contraction(c, '\'');
    if (c->contraction)
        gg_vocab_sink_put(c->out, ' ');
    if (c->contraction >= 2)
        gg_vocab_sink_put(c->out, '\'');
    if (c->contraction == 3)
        gg_vocab_sink_put(c->out, c->letter);
    c->blank = false;
    c->apart = c->contraction = 0;
}
