/* SPDX-License-Identifier: MIT */
/* variant.h - a model of tests/family with changes from a text
 *
 * The section [variants] of a model's text names changes and their
 * consequences. tests/family/check-variants checks each line:
 *
 *     let NAME = CHANGES         a name for changes, in the lines after it
 *     same A: WHY                variant A has the outputs of the plain model
 *     same A and B: WHY          A and B have the same outputs
 *     differ A: WHY              A has other outputs than the plain model
 *     differ A and B: WHY
 *     refuse A: MESSAGE          A cannot be opened; the error has MESSAGE
 *     warn A: MESSAGE            opening A gives a warning that has MESSAGE
 *     quiet A: WHY               opening A gives no warning
 *     sound A: WHY               verifying A finds no error and no warning
 *     digest A: WHY              A has the outputs that the digest belongs to
 *     double A: WHY              A has the outputs of a calculation in double
 *                                precision (refbert.h)
 *     keeps A BYTES: WHY         a session of A has a cache of BYTES bytes
 *     sees A 32-40 at 36: WHY    token 36 of A depends on tokens 32 to 40 and
 *                                on no others
 *
 * After the variants of same or digest, "within X" is the largest NMSE
 * (run_nmse; default 0). After those of differ, "by X" is the smallest
 * (default 2e-3; rounding makes less than 1e-10). "at T" compares outputs of
 * token T only. After the variant of refuse, "with STATUS" is the error's
 * status: HPARAM for GGUF_E_HPARAM. A line that begins with a blank continues
 * the line before.
 *
 * CHANGES are names or changes, joined by " + " and made in that order:
 *
 *     plain                      nothing
 *     key KEY TYPE VALUE...      set a key, as in the model's section; types
 *                                also arr:f32, arr:u32 and arr:str
 *     nokey KEY...               remove keys
 *     tensor NAME NE... [= VALUES]    add a tensor, or give it another shape
 *     values NAME VALUES         give a tensor other values
 *     drop NAME...               remove tensors; "blk.2.*": all of layer 2
 *     like BLK LAYERS            layers get the tensors of layer BLK that they
 *                                lack, with values of their own
 *     copy BLK LAYERS            layers get the tensors of layer BLK that they
 *                                lack, with the values of layer BLK
 *     gain PATTERN FACTOR        multiply weights whose names match
 *     context N, tokens N, position N      size of the session, number of
 *                                decoded tokens, position of the first
 *     set MEMBER VALUE           set a member of gguf_session_params
 *
 * NAME may list several layers: blk.0,2-5.attn_q.weight. VALUES are an axis
 * (0: the innermost) and operands that are joined along it:
 *
 *     0.5                        a slice of this number; alone: all elements
 *     blk.@.attn_q.weight        the values of a tensor; @ is the layer of NAME
 *     NAME[2:3]                  its slices 2, 3 and 4 along the axis
 *     NAME'                      its first two axes exchanged
 *     ...*2                      each number times 2
 *     ...^3                      three times
 *     unit                       alone: the unit matrix
 */
#ifndef TESTS_FAMILY_VARIANT_H
#define TESTS_FAMILY_VARIANT_H

#include "tests/family/skeleton.h"
#include "tests/model/run.h"

enum { VARIANT_TOKENS = SKELETON_TOKENS, VARIANT_WIDTH = SKELETON_VOCAB };

struct variant {
    struct skeleton m;
    struct gguf_session_params params;
    size_t first, n_tok; /* range of skeleton_tokens() to decode */
    int32_t position;    /* position of the first token */
    uint64_t kept; /* bytes of the session's cache, set by variant_run() */
    float *values[256]; /* values of tensors that are not generated */
    size_t n_values;
};

/* Lines of a section [variants]; continued lines are joined. */
struct variant_text {
    char model[64];
    char *line[512];
    size_t n;
};

/* Lines of a model's section [variants]; none if it is missing. Valid until
 * the lines of another model are asked for. */
const struct variant_text *variant_text(const char *model);

/* Open a model with changes. A change that cannot be made is printed and
 * aborts the test. */
void variant_open(struct variant *v, const char *model, const char *changes);
void variant_close(struct variant *v);
/* The variant's file. Free it with free(). */
void *variant_file(const struct variant *v, size_t *size);

/* Outputs of the variant's tokens: logits, or states of an encoder. Rows of
 * less than VARIANT_WIDTH outputs follow each other; the rest is 0. false:
 * opening or computing failed, see err. */
bool variant_run(struct variant *v, float *out, struct gguf_error *err);

/* Call variant_open(), variant_run() and variant_close(). */
bool variant_outputs(const char *model, const char *changes, float *out,
                     struct gguf_error *err);
/* NMSE of the outputs of two variants (run_nmse); 9: one cannot be computed. */
double variant_apart(const char *model, const char *a, const char *b);

/* ---- variant_values.c ---- */

struct gen_tensor *variant_tensor(struct variant *v, const char *name);
/* Values of n elements, described by VALUES. ne: their shape; il: layer of @.
 * Valid until variant_close(). */
const float *variant_values(struct variant *v, char *words, const int64_t *ne,
                            int il);
/* Print a message and abort. */
_Noreturn void variant_fail(const struct variant *v, const char *fmt, ...)
    GGUF_PRINTF(2, 3);
/* Cut the next word off a text. */
char *variant_word(char **p);

#endif
