/* SPDX-License-Identifier: MIT */
/* sample.h - importance data for tests, in both forms of files, byte by byte
 *
 * The files are those that llama-imatrix (tools/imatrix, August 2026) would
 * write for a model like share/tiny-llama with experts, and 8 chunks of 64
 * tokens of "made.txt". The older form stores the mean square of a chunk times
 * the number of chunks that called a tensor; for experts, the number of the
 * most called one.
 */
#ifndef TESTS_IMATRIX_SAMPLE_H
#define TESTS_IMATRIX_SAMPLE_H

#include <stdbool.h>

bool write_sample_gguf(const char *path);
bool write_sample_dat(const char *path);

#endif
