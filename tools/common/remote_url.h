/* SPDX-License-Identifier: MIT */
/* remote_url.h - addresses of the Hub, and the token for it */
#ifndef TOOLS_REMOTE_URL_H
#define TOOLS_REMOTE_URL_H

#include <gguf/status.h>

/* Return the https or http address of path, an address of any form; free it.
 * Returns NULL after a failure. */
char *remote_url(const char *path, struct gguf_error *err);

/* Address of the Hub without a slash at its end: HF_ENDPOINT or
 * https://huggingface.co. */
const char *remote_hub(void);

/* Return path in a form that ends with the file name, to be freed. NULL: it
 * has that form already. */
char *remote_normalise(const char *path);

/* Return the address of a folder in a form to which a slash and a name can be
 * added, to be freed. NULL: it has that form already. Pages of the Hub become
 * hf://OWNER/REPO@REV. */
char *remote_normalise_folder(const char *path);

/* Find the token of the user for the Hub; free *out. *out is NULL without a
 * token. Returns GGUF_E_INVALID if it cannot be a token. */
enum gguf_status remote_token(char **out, struct gguf_error *err);

#endif
