/* SPDX-License-Identifier: MIT */
/* skeleton.h - a model of an architecture as a small text
 *
 * tests/family/F/NAME.txt is all that tests know of one model of family F. It
 * has sections. The first has no heading and is the model; each other section
 * begins with a line "[WORD ...]" and ends at the next one:
 *
 *     [variants]  changes of the model and what follows from them (variant.h)
 *     [folder CLASS]  a folder that is converted to it, and what must come of
 *                 it (tests/convert/folder_text.h)
 *     [published CLASS MODEL]  a folder with the names of a published model
 *
 * Lines that begin with # are remarks. In the section of the model a line is a
 * thing:
 *
 *     seed 0x60e336d390896756        of the weights (gen.h)
 *     gain attn_[qk]_norm 0.5        factor of weights whose name matches
 *     run decode                     or embed, encode+decode: how it is used
 *     tol 3e-6                       if the usual bound is too narrow
 *     key general.architecture str llama
 *     key .block_count u32 2         .x is ARCHITECTURE.x
 *     key .x arr:i32 0 2 0
 *     in blk 0,2-5                   what follows is in blk.0, blk.2, ...
 *     attn_q.weight 128 64           a tensor and its shape, innermost first
 *     in -                           or at the top, where it is at first, too
 *     digest 64 128 V ...            of 64 rows of 128 outputs, see below
 *
 * Tokens are (37 i + 11) mod 128. The digest is of what llama.cpp gives for
 * them: SKELETON_SUMS numbers, each the sum of a part of the outputs with signs
 * by chance. The squares of two such lists' differences, by the squares of one,
 * is an estimate without bias of what run_nmse says of all outputs, so that
 * these few numbers hold a bound as all would. Where a model has none,
 * its architecture is not evaluated.
 *
 * carry.py makes this section of the descriptions in ../shared/archs and keeps
 * others.
 */
#ifndef TESTS_FAMILY_SKELETON_H
#define TESTS_FAMILY_SKELETON_H

#include "tests/model/gen.h"

#include <stdbool.h>
#include <stdio.h>

enum { SKELETON_SUMS = 16, SKELETON_TOKENS = 64, SKELETON_VOCAB = 128 };

struct skeleton {
    char name[64];
    struct gen g;
    char run[16];
    double tol;           /* 0: the usual one */
    size_t n_rows, width; /* of the outputs; 0: no digest */
    double sum[SKELETON_SUMS];
};

/* Models that there are, in the order of their names: how many, at most max. */
size_t skeleton_names(char (*names)[64], size_t max);

/* The text of that name. false: there is none. */
bool skeleton_path(const char *name, char path[4400]);

/* The text of that name after the heading of its first section "[WORD ...]",
 * to be closed; NULL: there is no such section. */
FILE *skeleton_section(const char *name, const char *word, char heading[256]);

/* The one of that name; free what was read in any case. false: there is none
 * of that name, or a line cannot be read, which is printed. */
bool skeleton_open(struct skeleton *s, const char *name);
void skeleton_close(struct skeleton *s);
void skeleton_tokens(gguf_token tok[SKELETON_TOKENS]);

/* The same of a model with fewer than SKELETON_VOCAB tokens, modulo their
 * number, and how many outputs a token has: logits, or states. */
void skeleton_tokens_of(const struct skeleton *s,
                        gguf_token tok[SKELETON_TOKENS]);
size_t skeleton_width(const struct skeleton *s);

/* A key in full: ".x" is ARCHITECTURE.x. */
void skeleton_key(const struct skeleton *s, const char *key, char full[192]);
/* Set "KEY TYPE VALUE..."; the text is cut. false: it cannot be read. */
bool skeleton_set_key(struct skeleton *s, char *line);

/* Of n_rows rows of width outputs each. */
void skeleton_digest(const float *x, size_t n_rows, size_t width,
                     double sum[SKELETON_SUMS]);
/* How far outputs are from those of the digest: about sum (a - b)^2 / sum b^2,
 * as run_nmse. */
double skeleton_nmse(const struct skeleton *s, const float *x);

#endif
