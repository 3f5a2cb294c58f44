/* SPDX-License-Identifier: MIT */
/* nearest_arch.h - messages about a file of an unknown architecture */
#ifndef TOOLS_NEAREST_ARCH_H
#define TOOLS_NEAREST_ARCH_H

#include <gguf/file.h>

/* Print which architectures come nearest to that of a file, what differs, and
 * how --as evaluates the model. path: the file's, for messages. Nothing is
 * printed about a file of a known architecture, or without tensors. */
void nearest_arch_print(const struct gguf_file *file, const char *path);

#endif
