/* SPDX-License-Identifier: MIT */
/* version.h - version of libgguf
 *
 * The macros give the version that a program was compiled with, the function
 * the version that it runs with.
 */
#ifndef GGUF_VERSION_H
#define GGUF_VERSION_H

#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_VERSION_MAJOR 0
#define GGUF_VERSION_MINOR 1
#define GGUF_VERSION_PATCH 0

/* Version of the library that the program runs with, such as "0.1.0". It is
 * static. Threads: any. Since: 0.1 */
GGUF_API const char *gguf_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
