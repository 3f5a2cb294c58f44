/* SPDX-License-Identifier: MIT */
/* roundtrip.h - converts folders to files, and files back to folders */
#ifndef TESTS_CONVERT_ROUNDTRIP_H
#define TESTS_CONVERT_ROUNDTRIP_H

#include "gguf/convert.h"

#include <stdbool.h>

/* Set for folders that are not models, to test their tokenizers. */
extern bool folder_any;

/* Set to convert dense layers after pooling. */
extern bool folder_dense;

/* Convert the folder at dir to the file out, in its own types or those of
 * recipe. Convert it once more through an opener (gguf/reader.h); if the files
 * differ, return GGUF_E_MISMATCH. */
enum gguf_status folder_convert(const char *dir, const char *out,
                                const char *recipe, struct gguf_error *err);

/* Convert the file at path to a folder `name' in back, and that to
 * back/again.gguf. Returns whether the files are equal; prints a difference.
 * The file must have been made from a folder of that name. */
bool folder_roundtrip(const char *path, const char *name, const char *back,
                      struct gguf_error *err);

#endif
