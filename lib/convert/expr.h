/* SPDX-License-Identifier: MIT */
/* expr.h - small expressions on config.json
 *
 * Rows of classes say sizes and keys that are computed. Numbers and names of
 * config.json with + - * / (with a fraction), // (rounded down), %,
 * parentheses, comparisons = < > (1 or 0), and A ? B : C; "A ? B" is missing
 * if A is 0 or missing. Functions: sqrt(X); pow(X, Y); max(X, Y); all(X), is
 * it true in each layer; first(X), the first layer in which it is, or how many
 * there are; has(NAME), is the layer in a list, or has(NAME, F), if that counts
 * layers from F; len(NAME), how many a list has, 0 without one; number(NAME),
 * with which a text or a list begins; quantile(P), of a normal distribution,
 * and part(X), what it has below X.
 *
 *     head_dim            a number; true and false are 1 and 0; of a list, the
 *                         element of the layer, the first without one
 *     a|b|16              the first that is there
 *     rope_scaling.type   a member of a member; .0: an element; .i: that of
 *                         the layer, where more follows
 *     layer_types:WORD    1 if the text, or the layer's in a list, is WORD,
 *                         else 0
 *     pattern#M           1 if the layer's letter of the text, which repeats,
 *                         is M
 *     i                   the layer
 *     h, k, g, e          heads, those of keys, queries that share one of
 *                         these, experts
 *     name!               1 if it is there, whatever it is, else 0
 */
#ifndef GG_CONVERT_EXPR_H
#define GG_CONVERT_EXPR_H

#include "convert/convert_int.h"

/* The largest number of layers. It is bounded since an expression may search a
 * list of all layers, and is computed for each of them. */
enum { GG_CONVERT_MOST_LAYERS = 4096 };

/* The value of text for a layer (-1: of none); NAN: something in it is
 * missing. Texts are the rows': asserted to be well-formed. */
double gg_convert_eval(const struct gguf_convert *c, const char *text,
                       int64_t layer);
/* The same of the n bytes at text. */
double gg_convert_eval_n(const struct gguf_convert *c, const char *text,
                         size_t n, int64_t layer);

#endif
