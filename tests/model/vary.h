/* SPDX-License-Identifier: MIT */
/* vary.h - small changes of the models of tests/family, and what they do to
 * the outputs
 *
 * One model at a time: a change is a function that edits vary_model between
 * its being read and its becoming a file.
 */
#ifndef TESTS_MODEL_VARY_H
#define TESTS_MODEL_VARY_H

#include "tests/model/run.h"
#include "tests/family/skeleton.h"

enum { VARY_N = SKELETON_TOKENS, VARY_V = SKELETON_VOCAB };

/* What is being changed. */
extern struct skeleton vary_model;

typedef void vary_fn(void);

/* ---- changes; all abort if they cannot be made ---- */

/* Keys in full, or ".x" for ARCHITECTURE.x. */

void vary_must(enum gguf_status st);
void vary_u32(const char *key, uint32_t v);
void vary_f32(const char *key, float v);
void vary_bool(const char *key, bool v);
void vary_str(const char *key, const char *s);
void vary_i32s(const char *key, const int32_t *v, size_t n);
void vary_array(const char *key, enum gguf_val_type type, const void *v,
                size_t n);
void vary_drop(const char *key);
void vary_drop_tensor(const char *name);
void vary_gain(const char *pattern, double factor);
/* The tensor of that name. */
struct gen_tensor *vary_find(const char *name);
/* Values of a tensor, which are kept, instead of those that its name gives. */
void vary_values(const char *name, const float *v);

/* Room for n values, which is kept to the end of the test; and the values that
 * the description gives a tensor, in such room. */
float *vary_room(size_t n);
float *vary_values_of(const char *name);

/* Open vary_model by that name and change it, unless change is NULL: its file,
 * to be freed. skeleton_close(&vary_model) when nothing looks at it any more.
 */
void *vary_file(const char *name, vary_fn *change, size_t *size);

/* ---- outputs ---- */

/* Logits or states of a changed model of that name, of n_tok tokens in a
 * context, [n_tok][VARY_V], or less of that where there are fewer outputs;
 * change may be NULL. false: err says why it cannot be opened. */
bool vary_outputs(const char *name, vary_fn *change, uint32_t n_ctx,
                  size_t n_tok, float *out, struct gguf_error *err);

/* The same of the tokens [from, to), token i at position first + i. */
bool vary_part(const char *name, vary_fn *change, uint32_t n_ctx, size_t from,
               size_t to, int32_t first, float *out, struct gguf_error *err);

/* How far two variants are from each other (run_nmse); 9: one cannot be
 * opened. */
double vary_apart(const char *name, vary_fn *a, vary_fn *b, uint32_t n_ctx,
                  size_t n_tok);

/* Bytes that a session of a context of VARY_N tokens keeps of a changed model;
 * 0: it cannot be opened. */
uint64_t vary_kept(const char *name, vary_fn *change);

#endif
