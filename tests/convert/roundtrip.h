/* SPDX-License-Identifier: MIT */
/* roundtrip.h - a file becomes a folder, which becomes the same file */
#ifndef TESTS_CONVERT_ROUNDTRIP_H
#define TESTS_CONVERT_ROUNDTRIP_H

#include "gguf/convert.h"

#include <stdbool.h>

/* Folders need not be models: for tests of their tokenizers. */
extern bool folder_any;

/* Matrices after pooling are asked for. */
extern bool folder_dense;

/* Convert the folder at dir to the file out, in types of its own or those of
 * recipe; and from an opener (gguf/reader.h), which must give the same:
 * GGUF_E_MISMATCH. */
enum gguf_status folder_convert(const char *dir, const char *out,
                                const char *recipe, struct gguf_error *err);

/* Write the file at path, of which the folder called name was made, as a folder
 * of that name in back, and convert this to back/again.gguf: are these the
 * same bytes? What differs is printed. */
bool folder_roundtrip(const char *path, const char *name, const char *back,
                      struct gguf_error *err);

#endif
