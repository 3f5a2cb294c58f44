/* SPDX-License-Identifier: MIT */
/* edited.h - a small model whose metadata tests change */
#ifndef TESTS_EDITED_H
#define TESTS_EDITED_H

#include "gguf/edit.h"

/* In a folder of their own: the model, another file, the model's journal, and a
 * symbolic link to the model. */
extern char folder[18], model_path[64], other_path[64], journal_path[80],
    link_path[64];

/* Make the folder, and take it away with all that is in it. 0: that failed. */
int edited_begin(void);
int edited_end(void);

int exists(const char *name);

/* A model with a text of n bytes under "text" and some data. */
void write_model(size_t n, size_t data);

/* Set "text" to n times c, or take it out for n = 0. */
enum gguf_status edit(size_t n, char c, const struct gguf_edit_params *p,
                      enum gguf_edit_way *way, struct gguf_error *err);

/* The length of "text" in name (SIZE_MAX: missing), or of the padding pair. */
size_t length_of(const char *name, const char *key);

/* Are the tensors' bytes those of write_model? */
int data_good(const char *name);

#endif
