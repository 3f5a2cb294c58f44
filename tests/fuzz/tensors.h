/* SPDX-License-Identifier: MIT */
/* tensors.h - a .safetensors file from a list of tensors */
#ifndef TESTS_FUZZ_TENSORS_H
#define TESTS_FUZZ_TENSORS_H

#include <stddef.h>
#include <stdint.h>

/* Make a .safetensors file.
 *
 * text   n bytes: lines "NAME TYPE DIMENSION ...", slowest dimension first. A
 *        line "__metadata__ KEY TEXT" is a pair of the file's metadata, a line
 *        "NAME TEXT ..." a tensor of bytes, the text.
 * size   Receives the number of bytes of the file.
 *
 * All other bytes of data are 0x3c: numbers near 0.01 in F32 and BF16, 1 in
 * F16. The file has at most 1 MiB of data; if the tensors have more, the file
 * is cut. Words are copied to the header as they are. Free the result with
 * free(). */
uint8_t *tensors_make(const uint8_t *text, size_t n, size_t *size);

#endif
