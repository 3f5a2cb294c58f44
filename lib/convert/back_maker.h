/* SPDX-License-Identifier: MIT */
/* back_maker.h - config.json while it is made */
#ifndef GG_CONVERT_BACK_MAKER_H
#define GG_CONVERT_BACK_MAKER_H

#include "convert/back/back.h"

struct gg_back_maker {
    struct gg_back *b;
    const struct gg_convert_arch *arch;
    char class_name[80];
    json_t *root;
};

/* The key of the file that a row is of, or NULL; its value; the shortest number
 * that is x in single precision. */
const struct gguf_kv *gg_back_key(const struct gg_back_maker *m,
                                  const char *key);
json_t *gg_back_value(const struct gguf_kv *kv);
json_t *gg_back_real(float x);
/* A member of o, or of a member of it, by points; v is given. */
void gg_back_put(json_t *o, const char *name, json_t *v);

/* back_rope.c: how positions are stretched; the part of a head that turns,
 * where it is not all. */
enum gguf_status gg_back_put_rope(struct gg_back_maker *m,
                                  struct gguf_error *err);
void gg_back_put_partial(struct gg_back_maker *m);

/* back_llama3.c: put rope_scaling of type llama3, whose factors are x, n of
 * them; false: it gives no such factors. base: rope_theta. */
bool gg_back_llama3(struct gg_back_maker *m, const float *x, size_t n,
                    double base);

/* back_own.c: what is computed of keys for an architecture. GGUF_E_NOMEM. */
enum gguf_status gg_back_put_own(struct gg_back_maker *m,
                                 struct gguf_error *err);

#endif
