/* SPDX-License-Identifier: MIT */
/* sample.h - importance data for tests, in both forms of files, byte by byte
 *
 * As llama-imatrix writes them (tools/imatrix, August 2026) of the data that a
 * model like share/tiny-llama would give, and of experts: 8 chunks of 64
 * tokens, of "made.txt". The older form has the mean of a chunk's squares times
 * the chunks that a tensor was called in, experts that of the most called.
 */
#ifndef TESTS_IMATRIX_SAMPLE_H
#define TESTS_IMATRIX_SAMPLE_H

#include <stdbool.h>

bool write_sample_gguf(const char *path);
bool write_sample_dat(const char *path);

#endif
