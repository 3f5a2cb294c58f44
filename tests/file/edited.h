/* SPDX-License-Identifier: MIT */
/* edited.h - a small model whose metadata is edited */
#ifndef TESTS_EDITED_H
#define TESTS_EDITED_H

#include "gguf/edit.h"

/* Paths in a folder of the test: the model, another file, the model's journal,
 * and a symbolic link to the model. */
extern char folder[18], model_path[64], other_path[64], journal_path[80],
    link_path[64];

/* Make the folder; remove it with its content. Returns 0 after a failure. */
int edited_begin(void);
int edited_end(void);

int exists(const char *name);

/* Write the model, with a text of n bytes under "text", and some data. */
void write_model(size_t n, size_t data);

/* Set "text" to n times c; n 0: remove it. */
enum gguf_status edit(size_t n, char c, const struct gguf_edit_params *p,
                      enum gguf_edit_result *way, struct gguf_error *err);

/* Length of "text" in a file, or of the padding pair; SIZE_MAX: missing. */
size_t length_of(const char *name, const char *key);

/* Do the tensors have the bytes that write_model() wrote? */
int data_good(const char *name);

#endif
