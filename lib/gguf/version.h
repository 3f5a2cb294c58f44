/* SPDX-License-Identifier: MIT */
/* version.h - which libgguf this is */
#ifndef GGUF_VERSION_H
#define GGUF_VERSION_H

#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_VERSION_MAJOR 0
#define GGUF_VERSION_MINOR 1
#define GGUF_VERSION_PATCH 0

/* The version of the linked library, such as "0.1.0". Any thread.
 * Since: 0.1 */
GGUF_API const char *gguf_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
