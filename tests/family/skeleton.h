/* SPDX-License-Identifier: MIT */
/* skeleton.h - a model of an architecture as a small text
 *
 * tests/family/F/NAME.txt describes one model of family F; tests know no more
 * of it. The text has sections. The first has no heading and describes the
 * model. Each other section begins with a line "[WORD ...]" and ends at the
 * next one:
 *
 *     [variants]  changes of the model and their consequences (variant.h)
 *     [folder CLASS]  a folder that is converted to the model, and checks
 *                 of the result (tests/convert/folder_text.h)
 *     [published CLASS MODEL]  a folder with the names of a published model
 *
 * Lines that begin with # are remarks. Each other line of the first section is
 * one of
 *
 *     seed 0x60e336d390896756        seed of the weights (gen.h)
 *     gain attn_[qk]_norm 0.5        factor of weights whose name matches
 *     run decode                     or embed, encode+decode: its use
 *     tol 3e-6                       bound, if the usual one is too narrow
 *     key general.architecture str llama
 *     key .block_count u32 2         .x is ARCHITECTURE.x
 *     key .x arr:i32 0 2 0
 *     in blk 0,2-5                   the next tensors are blk.0.X, blk.2.X, ...
 *     attn_q.weight 128 64           a tensor and its shape, innermost first
 *     in -                           the next tensors are X, as at the start
 *     digest 64 128 V ...            digest of 64 rows of 128 outputs
 *
 * The tokens are (37 i + 11) mod 128. The digest belongs to llama.cpp's
 * outputs for them. It has SKELETON_SUMS numbers, each the sum of one part of
 * the outputs with random signs. From the digests of two sets of outputs
 * follows an unbiased estimate of their NMSE (run_nmse), so that these few
 * numbers hold a bound as all outputs would. A model without a digest is not
 * evaluated.
 *
 * generate.py writes the first section from the descriptions in ../shared/archs
 * and keeps the others.
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
    double tol; /* bound of the NMSE; 0: the usual one */
    size_t n_rows,
        width; /* rows and width of the outputs; width 0: no digest */
    double sum[SKELETON_SUMS];
};

/* Names of all models in alphabetical order. Returns their number, at most
 * max. */
size_t skeleton_names(char (*names)[64], size_t max);

/* Path of a model's text. false: it does not exist. */
bool skeleton_path(const char *name, char path[4400]);

/* Open a model's text after the heading of its first section "[WORD ...]".
 * Close it with fclose(). NULL: the section is missing. */
FILE *skeleton_section(const char *name, const char *word, char heading[256]);

/* Read a model's text. false: it does not exist, or a line is malformed, which
 * is printed. Call skeleton_close() in both cases. */
bool skeleton_open(struct skeleton *s, const char *name);
void skeleton_close(struct skeleton *s);
void skeleton_tokens(gguf_token tok[SKELETON_TOKENS]);

/* The tokens modulo the model's vocabulary, for one with fewer than
 * SKELETON_VOCAB tokens; and the number of outputs per token, which are logits
 * or states. */
void skeleton_tokens_of(const struct skeleton *s,
                        gguf_token tok[SKELETON_TOKENS]);
size_t skeleton_width(const struct skeleton *s);

/* Write a key in full: ".x" is ARCHITECTURE.x. */
void skeleton_key(const struct skeleton *s, const char *key, char full[192]);
/* Set a key to "KEY TYPE VALUE...". Changes the text. false: it is malformed.
 */
bool skeleton_set_key(struct skeleton *s, char *line);

/* Compute the digest of n_rows rows of width outputs. */
void skeleton_digest(const float *x, size_t n_rows, size_t width,
                     double sum[SKELETON_SUMS]);
/* Estimate the NMSE of outputs against those of the digest. */
double skeleton_nmse(const struct skeleton *s, const float *x);

#endif
